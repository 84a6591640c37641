"""Intervals of 95 %: exact for counts, the Bayesian bootstrap over events or rounds for means.

Reference: Garwood (1936), doi:10.1093/biomet/28.3-4.437 (Poisson); Clopper and Pearson (1934),
doi:10.1093/biomet/26.4.404 (shares); Fay and Feuer (1997),
doi:10.1002/(SICI)1097-0258(19970415)16:7<791::AID-SIM500>3.0.CO;2-# (weighted Poisson sums); Rubin (1981),
doi:10.1214/aos/1176345338 (Bayesian bootstrap).
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
SEED = 20080


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


def poisson_interval(count: Floats) -> tuple[Floats, Floats]:
    """Exact interval of a Poisson mean (Garwood), for counts that need not be whole; 0 gives (0, 3.69)."""
    low = np.where(count > 0, special.gammaincinv(np.maximum(count, 1e-12), 0.025), 0.0)
    return low, special.gammaincinv(count + 1.0, 0.975)


def weighted_poisson_interval(total: Floats, squares: Floats, largest: Floats) -> tuple[Floats, Floats]:
    """Interval of the mean of a compound Poisson sum (Fay and Feuer's gamma interval).

    `total` is the sum of the events' sizes, `squares` the sum of the squares, `largest` the largest size. With sizes
    of one it is `poisson_interval`.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        shape = np.where(squares > 0, total**2 / squares, 0.0)
        low = np.where(shape > 0, special.gammaincinv(np.maximum(shape, 1e-12), 0.025) * squares / total, 0.0)
        upper, spread = total + largest, squares + largest**2
        high = special.gammaincinv(upper**2 / spread, 0.975) * spread / upper
    return low, np.where(np.isfinite(high), high, poisson_interval(np.zeros_like(total))[1])


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
    flow's observations are gathered into at most 32 batches of neighbours, so that what follows each other closely is
    resampled together; the interval is widened from the normal to Student's law of that many batches. The flow's number
    seeds its weights. A mean is the ratio with a denominator of ones.
    """
    flows = len(flow)
    n = np.bincount(owner, minlength=flows).astype(np.int64)
    if not len(owner):
        return nothing(flows)
    start = np.concatenate(([0], np.cumsum(n)))[owner]
    batches = np.minimum(n, BATCHES)
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
