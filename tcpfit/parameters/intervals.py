"""Intervals of 95 %: of a renewal process for rates, exact for shares, the Bayesian bootstrap for means.

Reference: Smith (1955), doi:10.1098/rspa.1955.0198 (renewal-reward); Cochran (1977), Sampling Techniques, 3rd ed.,
chapter 6 (ratios); Newey and West (1987), doi:10.2307/1913610 (neighbours that are alike); Garwood (1936),
doi:10.1093/biomet/28.3-4.437 (Poisson, exact); Brown, Cai and DasGupta (2003), Statistica Sinica 13, 19-49 (Poisson,
Jeffreys); Clopper and Pearson (1934), doi:10.1093/biomet/26.4.404 (shares); Rubin (1981), doi:10.1214/aos/1176345338
(Bayesian bootstrap); Künsch (1989), doi:10.1214/aos/1176347265 (blocks of neighbours).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Z95 = 1.959963984540054
REPLICATES = 200
EDGE = REPLICATES // 40  # what the interval leaves out on either side
BATCHES = 32
ALIKE = 8  # observations from which neighbours are gathered
SEED = 20080
PRIOR_EVENTS = 3.0  # events that the dispersion expected of a renewal process counts as
MOST_DEAD = 0.9


@dataclass(frozen=True)
class Estimate:
    """One parameter of every flow: arrays of one length, NaN where a number cannot be had."""

    value: Floats
    low: Floats
    high: Floats
    n: Ints

    def where(self, condition: NDArray[np.bool_], other: Estimate) -> Estimate:
        """This estimate where the condition holds, the other elsewhere."""
        return Estimate(
            np.where(condition, self.value, other.value),
            np.where(condition, self.low, other.low),
            np.where(condition, self.high, other.high),
            np.where(condition, self.n, other.n),
        )

    def widened(self, below: Floats, above: Floats) -> Estimate:
        """The same value, its ends multiplied: by `below` (at most 1) and by `above` (at least 1)."""
        return Estimate(self.value, self.low * np.minimum(below, 1.0), self.high * np.maximum(above, 1.0), self.n)


def nothing(flows: int) -> Estimate:
    """An estimate that cannot be had, for every flow."""
    nan = np.full(flows, np.nan)
    return Estimate(nan, nan, nan, np.zeros(flows, np.int64))


def exact(value: Floats, n: Ints) -> Estimate:
    """A value that was read, not estimated: no interval."""
    nan = np.full(len(value), np.nan)
    return Estimate(value, nan, nan, n)


def summed(values: Floats, owner: Ints, owners: int) -> Floats:
    """Sum of the values of each owner, 0 to owners - 1."""
    return np.bincount(owner, values, owners).astype(np.float64)


def renewal_count(sizes: Floats, cycles: Floats, dead: Floats, owner: Ints, owners: int) -> Floats:
    """Poisson events that tell as much of each owner's rate, sum of `sizes` over sum of `cycles`; 0 if it has none.

    Event i has a size (1 where events are counted) and a cycle, the exposure from the end of the dead time of the event
    before to the end of its own, of which `dead` is the dead time; a cycle contains what the size depends on. The
    variance of the sum is that of size - rate x cycle (Smith 1955; Cochran 1977, chapter 6). Where neighbours up to the
    cube root of the number of events are alike, since a path may be worse for some events at a time, they add to it
    (Newey and West 1987); they never take from it, as that would mostly be chance. It is shrunk, with the weight of
    three events, to what it is where the rest of a cycle is exponential, and widened to Student's law.
    """
    n = np.bincount(owner, minlength=owners).astype(np.float64)
    total, exposure = summed(sizes, owner, owners), summed(cycles, owner, owners)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate, mean_size = total / exposure, total / n
        alive = 1.0 - np.clip(summed(dead, owner, owners) / exposure, 0.0, MOST_DEAD)
        off = sizes - rate[owner] * cycles
        squares, alike = summed(off**2, owner, owners), np.zeros(owners)
        lags = np.floor(np.cbrt(n))
        for lag in range(1, int(lags.max(initial=0.0)) + 1):
            same = owner[lag:] == owner[:-lag]
            together = summed((off[lag:] * off[:-lag])[same], owner[lag:][same], owners)
            alike += 2.0 * np.maximum(1.0 - lag / (lags + 1.0), 0.0) * together
        spread = summed((sizes - mean_size[owner]) ** 2, owner, owners) / np.maximum(n - 1.0, 1.0)
        freedom = PRIOR_EVENTS + n - 1.0
        chance = spread + (mean_size * alive) ** 2
        dispersion = (PRIOR_EVENTS * chance + squares + np.maximum(alike, 0.0)) / freedom
        student = special.stdtrit(freedom, 0.975) / Z95
        count = total**2 / (n * dispersion * student**2)
    return np.where(n > 0, count, 0.0)


def count_factors(count: Floats) -> tuple[Floats, Floats]:
    """Ends of the interval of a Poisson mean over the count, which need not be whole; for 0 the ends: 0 and 3.69.

    The low end is the Jeffreys one (shape n + 1/2), the high end the exact one (n + 1).
    """
    some = count > 0
    base = np.where(some, count, 1.0)
    low = np.where(some, special.gammaincinv(base + 0.5, 0.025) / base, 0.0)
    return low, special.gammaincinv(np.where(some, count, 0.0) + 1.0, 0.975) / base


def binomial_interval(hits: Floats, trials: Floats) -> tuple[Floats, Floats]:
    """Exact interval of a share (Clopper and Pearson); NaN without trials."""
    with np.errstate(invalid="ignore"):
        low = np.where(hits > 0, special.betaincinv(np.maximum(hits, 1e-12), trials - hits + 1.0, 0.025), 0.0)
        high = np.where(hits < trials, special.betaincinv(hits + 1.0, np.maximum(trials - hits, 1e-12), 0.975), 1.0)
    empty = trials <= 0
    return np.where(empty, np.nan, low), np.where(empty, np.nan, high)


def ratio(numerator: Floats, denominator: Floats, owner: Ints, flow: Ints) -> Estimate:
    """Sum of `numerator` over sum of `denominator` for every flow, with a Bayesian bootstrap over the observations.

    The observations stand in the order of time and `owner` (the position of their flow in `flow`) does not decrease. A
    flow's observations are gathered into batches of neighbours, so that what follows each other closely is resampled
    together: the cube root of their number in each, from 8 on, and at most 32 batches. The interval is widened from the
    normal to Student's law of that many batches. The flow's number seeds its weights. A mean is the ratio with a
    denominator of ones.
    """
    flows = len(flow)
    n = np.bincount(owner, minlength=flows).astype(np.int64)
    if not len(owner):
        return nothing(flows)
    start = np.concatenate(([0], np.cumsum(n)))[owner]
    size = np.where(n >= ALIKE, np.ceil(np.cbrt(n)), 1.0)
    batches = np.minimum(np.ceil(n / size).astype(np.int64), BATCHES)
    cell = owner * BATCHES + (np.arange(len(owner)) - start) * batches[owner] // n[owner]
    top = np.bincount(cell, numerator, flows * BATCHES).reshape(flows, BATCHES)
    bottom = np.bincount(cell, denominator, flows * BATCHES).reshape(flows, BATCHES)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = top.sum(1) / bottom.sum(1)
    value = np.where(np.isfinite(value), value, np.nan)
    low, high = np.full(flows, np.nan), np.full(flows, np.nan)
    for i in np.flatnonzero((n >= 2) & np.isfinite(value)):
        k = int(batches[i])
        weights = np.random.default_rng((SEED, int(flow[i]))).standard_exponential((REPLICATES, BATCHES))[:, :k]
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = (weights @ top[i, :k]) / (weights @ bottom[i, :k])
        drawn.sort()  # NaN last
        ends = drawn[EDGE], drawn[-1 - EDGE]
        student = special.stdtrit(k - 1, 0.975) / Z95 * np.sqrt((k + 1) / (k - 1))
        if ends[0] > 0:
            # of a positive quantity the logarithm is widened: no end can fall below zero
            low[i], high[i] = value[i] * (np.asarray(ends) / value[i]) ** student
        else:
            low[i], high[i] = value[i] - student * (value[i] - ends[0]), value[i] + student * (ends[1] - value[i])
            low[i] = max(low[i], 0.0) if (top[i, :k] >= 0).all() else low[i]
    return Estimate(value, low, high, n)


def mean(values: Floats, owner: Ints, flow: Ints) -> Estimate:
    """Mean of the observations of every flow; see `ratio`. Observations that are NaN do not count."""
    known = np.isfinite(values)
    return ratio(values[known], np.ones(int(known.sum())), owner[known], flow)
