"""Intervals of 95 %: of a renewal process for rates, exact for shares, Student's with Hall's correction for means.

Neighbours may be alike: a window follows from half of the last one, a queue makes round trips alike, a path may be
worse for some loss events at a time. So every variance is the long-run one, of the sum of dependent observations
(`long_run`), and its own doubt widens the interval.

Reference: Smith (1955), doi:10.1098/rspa.1955.0198 (renewal-reward); Cochran (1977), Sampling Techniques, 3rd ed.,
chapter 6 (ratios); Newey and West (1987), doi:10.2307/1913610, and Andrews and Monahan (1992), doi:10.2307/2951574
(neighbours that are alike); Marriott and Pope (1954), doi:10.1093/biomet/41.3-4.390 (bias of a correlation); Kiefer and
Vogelsang (2005), doi:10.1017/S0266466605050565 (bias and freedom of a long-run variance); Hall (1992),
doi:10.1111/j.2517-6161.1992.tb01872.x (skew observations); Garwood (1936), doi:10.1093/biomet/28.3-4.437 (Poisson,
exact); Brown, Cai and DasGupta (2001), doi:10.1214/ss/1009213286, and (2003), Statistica Sinica 13, 19-49 (Jeffreys'
intervals of a share and of a Poisson mean); Clopper and Pearson (1934), doi:10.1093/biomet/26.4.404 (shares); Korn and
Graubard (1998), Survey Methodology 24, 193-201 (shares of trials that are alike).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tcpfit.arguments import shown
from tcpfit.exceptions import InvalidParameter

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Z95 = 1.959963984540054
TAIL = 0.025
ALIKE = 8  # observations from which neighbours are compared
LEAST_ALIKE, MOST_ALIKE, MOST_OF_MANY = -0.5, 0.9, 0.99  # bounds of the correlation of neighbours
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


def long_run(values: Floats, owner: Ints, owners: int, *, follow: bool = True) -> tuple[Floats, Floats]:
    """Variance of each owner's sum of the values, which are residuals that sum to 0, and its degrees of freedom.

    The values stand in the order of time and `owner` does not decrease. From 8 values on neighbours may be alike: their
    covariances up to the cube root of the number of values are added with Bartlett's weights (Newey and West 1987).
    Where each may `follow` from the one before, that correlation, with its bias (Marriott and Pope 1954), is taken out
    first (Andrews and Monahan 1992). Bias and freedom are those of the first order (Kiefer and Vogelsang 2005): the
    freedom is n over 1 + 2 x the sum of the squared weights, that of the correlation taken out being 1. NaN for an
    owner with a single value.
    """
    n = np.bincount(owner, minlength=owners).astype(np.float64)
    if not len(owner):
        return np.full(owners, np.nan), np.zeros(owners)
    several = n >= ALIKE
    lags = np.where(several, np.floor(np.cbrt(n)), 0.0)
    first = np.concatenate((np.ones(1, np.bool_), owner[1:] != owner[:-1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        alike, weights = np.zeros(owners), lags * (2.0 * lags + 1.0) / (6.0 * (lags + 1.0))
        if follow:
            alike = _products(values, owner, owners, 1) / summed(values**2, owner, owners)
            alike = (alike + 1.0 / n) / (1.0 - 3.0 / np.maximum(n, ALIKE))
            most = np.clip(1.0 - 3.0 / n, MOST_ALIKE, MOST_OF_MANY)  # few do not show that they hardly change
            alike = np.where(several & np.isfinite(alike), np.clip(alike, LEAST_ALIKE, most), 0.0)
            weights = weights + 1.0 - (lags / (lags + 1.0)) ** 2
        new = np.where(first, np.sqrt(1.0 - alike**2)[owner] * values, values - alike[owner] * np.roll(values, 1))
        variance = summed(new**2, owner, owners)
        for lag in range(1, int(lags.max(initial=0.0)) + 1):
            weight = np.maximum(1.0 - lag / (lags + 1.0), 0.0)
            variance = variance + 2.0 * weight * _products(new, owner, owners, lag)
        b = (lags + 1.0) / n
        bias = np.where(several, 1.0 - b + b**2 / 3.0, 1.0 - 1.0 / n)
        variance = np.where(n > 1, variance / bias / (1.0 - alike) ** 2, np.nan)
    return variance, np.where(several, n / (1.0 + 2.0 * weights), n - 1.0)


def _products(values: Floats, owner: Ints, owners: int, lag: int) -> Floats:
    """Sum over each owner of the products of values that stand `lag` apart."""
    same = owner[lag:] == owner[:-lag]
    return summed((values[lag:] * values[:-lag])[same], owner[lag:][same], owners)


def renewal_count(sizes: Floats, cycles: Floats, dead: Floats, owner: Ints, owners: int) -> Floats:
    """Poisson events that tell as much of each owner's rate, sum of `sizes` over sum of `cycles`; 0 if it has none.

    Event i has a size (1 where events are counted) and a cycle, the exposure from the end of the dead time of the event
    before to the end of its own, of which `dead` is the dead time; a cycle contains what the size depends on. The
    variance of the sum is the long-run one of size - rate x cycle (Smith 1955; Cochran 1977, chapter 6). It is shrunk,
    with the weight of three events, to what it is where the rest of a cycle is exponential, and widened to Student's
    law. Of fewer than eight events it is shrunk to Poisson's law: where a flow ends at a time and not after so many
    segments, how many it sends varies too, and the rate of few events about as much as that law says.
    """
    n = np.bincount(owner, minlength=owners).astype(np.float64)
    total, exposure = summed(sizes, owner, owners), summed(cycles, owner, owners)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate, mean_size = total / exposure, total / n
        alive = 1.0 - np.clip(summed(dead, owner, owners) / exposure, 0.0, MOST_DEAD)
        alive = np.where(n >= ALIKE, alive, 1.0)
        variance, freedom = long_run(sizes - rate[owner] * cycles, owner, owners)
        spread = summed((sizes - mean_size[owner]) ** 2, owner, owners) / np.maximum(n - 1.0, 1.0)
        chance = spread + (mean_size * alive) ** 2
        weighed = PRIOR_EVENTS * chance + np.where(n > 1, variance * (n - 1.0) / n, 0.0)
        student = special.stdtrit(PRIOR_EVENTS + freedom, 0.975) / Z95
        count = total**2 / (n * weighed / (PRIOR_EVENTS + n - 1.0) * student**2)
    return np.where(n > 0, count, 0.0)


def count_factors(count: Floats) -> tuple[Floats, Floats]:
    """Ends of the interval of a Poisson mean over the count, which need not be whole; for 0 the ends: 0 and 3.69.

    The low end is the Jeffreys one (shape n + 1/2), the high end the exact one (n + 1).
    """
    count, place = np.unique(count, return_inverse=True)  # most flows have no event, and few flows many
    some = count > 0
    base = np.where(some, count, 1.0)
    low = np.where(some, special.gammaincinv(base + 0.5, 0.025) / base, 0.0)
    return low[place], (special.gammaincinv(np.where(some, count, 0.0) + 1.0, 0.975) / base)[place]


def numbers(name: str, value: Any) -> Floats:
    """Numbers that a user gives, as an array; raises InvalidParameter for what is none."""
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "biuf" and given.size:
            raise TypeError("neither text nor complex numbers")
        return given.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} must be a number or an array of numbers, got {shown(value)}") from None


def quantile_ranks(n: Ints, share: float) -> tuple[Ints, Ints]:
    """Places, from 0, of the order statistics of n values between which the quantile of that share lies, either end
    wrong with at most 2.5 % (binomial law); below 0 and n or above where even the first or the last value is no end."""
    n = np.asarray(n, np.int64)
    low = np.floor(share * n - Z95 * np.sqrt(share * (1.0 - share) * n)).astype(np.int64)
    high = np.ceil(share * n + Z95 * np.sqrt(share * (1.0 - share) * n)).astype(np.int64)

    def above(k: Ints) -> Floats:  # the value at k lies above the quantile: no more than k lie below it
        return np.where(k < 0, 0.0, special.bdtr(np.clip(k, 0, n), n, share))

    def below(k: Ints) -> Floats:
        return np.where(k < n, special.bdtrc(np.clip(k, 0, n), n, share), 0.0)

    low, high = np.minimum(low, n - 1), np.clip(high, 0, n)
    while (wrong := above(low) > TAIL).any():
        low = low - wrong
    while (narrower := (low < n - 1) & (above(low + 1) <= TAIL)).any():
        low = low + narrower
    while (wrong := below(high) > TAIL).any():
        high = high + wrong
    while (narrower := (high > 0) & (below(high - 1) <= TAIL)).any():
        high = high - narrower
    return low, high


@dataclass(frozen=True)
class Ordered:
    """Values of every owner by size: how many there are, and the one at a place from 0."""

    values: Floats
    first: Ints
    n: Ints

    def at(self, rank: Ints) -> Floats:
        """Each owner's value at its place; no number to be used where it has none there."""
        if not len(self.values):
            return np.full(len(self.n), np.nan)
        return np.asarray(self.values[np.clip(self.first + rank, 0, len(self.values) - 1)])


def ordered(values: Floats, owner: Ints, owners: int) -> Ordered:
    """The values by owner and size."""
    n = np.bincount(owner, minlength=owners).astype(np.int64)
    return Ordered(values[np.lexsort((values, owner))], np.concatenate(([0], np.cumsum(n)))[:-1], n)


def quantile_ends(values: Floats, owner: Ints, owners: int, share: float) -> tuple[Floats, Floats]:
    """The values between which the quantile of that share lies, NaN where even the least or the largest is no end.

    The values stand in the order of time and `owner` does not decrease. The ends are order statistics by the binomial
    law (`quantile_ranks`) of as many independent values as tell as much of the share above the quantile, like those of
    `share_interval`: of neighbours that are alike there are fewer.
    """
    by_size = ordered(values, owner, owners)
    n = by_size.n
    if not len(values):
        return np.full(owners, np.nan), np.full(owners, np.nan)
    quantile = by_size.at(np.ceil(share * n).astype(np.int64) - 1)
    above = (values > quantile[owner]).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        part = summed(above, owner, owners) / n
        variance, freedom = long_run(above - part[owner], owner, owners)
        wider = special.stdtrit(freedom, 0.975) / special.stdtrit(n - 1.0, 0.975)
        alone = n**3 / (n - 1.0) * part * (1.0 - part) / (variance * wider**2)
        alone = np.where(np.isfinite(alone) & (part > 0), np.clip(np.floor(alone + 1e-9), 1, n), n).astype(np.int64)
        below, beyond = quantile_ranks(alone, share)
        low = np.floor(below * n / alone)
        high = np.ceil((beyond + 1) * n / alone - 1e-9) - 1.0
    bounded_low, bounded_high = (alone > 0) & (below >= 0), beyond < alone
    return (
        np.where(bounded_low, by_size.at(np.where(bounded_low, low, 0).astype(np.int64)), np.nan),
        np.where(bounded_high, by_size.at(np.where(bounded_high, high, 0).astype(np.int64)), np.nan),
    )


def binomial_interval(hits: Floats, trials: Floats) -> tuple[Floats, Floats]:
    """Exact interval of a share (Clopper and Pearson); NaN without trials."""
    with np.errstate(invalid="ignore"):
        low = np.where(hits > 0, special.betaincinv(np.maximum(hits, 1e-12), trials - hits + 1.0, 0.025), 0.0)
        high = np.where(hits < trials, special.betaincinv(hits + 1.0, np.maximum(trials - hits, 1e-12), 0.975), 1.0)
    empty = trials <= 0
    return np.where(empty, np.nan, low), np.where(empty, np.nan, high)


def share_interval(hits: Floats, owner: Ints, owners: int) -> tuple[Floats, Floats]:
    """Interval of the share of each owner's trials, 0 or 1, that are hits; NaN without trials.

    That of Jeffreys, of Clopper and Pearson where no trial or each is a hit, for as many independent trials as tell as
    much (Korn and Graubard 1998), in the order of time: hits that come together are fewer than they seem. Trials
    without a hit do not show whether those would.
    """
    n = np.bincount(owner, minlength=owners).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        hits_of, share = summed(hits, owner, owners), summed(hits, owner, owners) / n
        variance, freedom = long_run(hits - share[owner], owner, owners, follow=False)
        wider = special.stdtrit(freedom, 0.975) / special.stdtrit(n - 1.0, 0.975)
        trials = n**2 * share * (1.0 - share) / (variance * wider**2)
    some = np.isfinite(trials) & (hits_of > 0) & (hits_of < n)
    trials = np.where(some, np.minimum(trials, n), n)
    low, high = binomial_interval(np.where(some, share * trials, hits_of), trials)
    a, b = (np.where(some, part * trials + 0.5, 1.0) for part in (share, 1.0 - share))
    return (
        np.where(some, special.betaincinv(a, b, 0.025), low),
        np.where(some, special.betaincinv(a, b, 0.975), high),
    )


def ratio(numerator: Floats, denominator: Floats, owner: Ints, owners: int) -> Estimate:
    """Sum of `numerator` over sum of `denominator` of every owner, with Student's interval of the long-run variance.

    The observations stand in the order of time and `owner` does not decrease. The interval is corrected for the
    skewness of the observations (Hall 1992: the studentised bootstrap's ends, in closed form); fewer than eight do not
    show theirs, and have that of a gamma law with their spread, twice the coefficient of variation, unless some are
    negative. Where no numerator is negative the interval is that of the logarithm, so that no end falls below zero. A
    mean is the ratio with a denominator of ones. One observation has no interval.
    """
    n = np.bincount(owner, minlength=owners).astype(np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        bottom = summed(denominator, owner, owners)
        value = summed(numerator, owner, owners) / bottom
        value = np.where(np.isfinite(value), value, np.nan)
        off = numerator - value[owner] * denominator
        variance, freedom = long_run(off, owner, owners)
        spread = np.sqrt(np.maximum(variance, 0.0) * n) / bottom  # of one observation
        power = summed(off**2, owner, owners) / n
        skewness = np.where((n >= ALIKE) & (power > 0), summed(off**3, owner, owners) / n / power**1.5, 0.0)
        positive = (np.bincount(owner[numerator < 0], minlength=owners) == 0) & (value > 0)
        relative = spread / value
        skewness = np.where((n < ALIKE) & positive, 2.0 * relative, skewness)
        curve = skewness / 3.0 - np.where(positive, relative / 2.0, 0.0)
        student = special.stdtrit(freedom, 0.975) / np.sqrt(n)
        down, up = (_unskewed(side * student - skewness / (6.0 * n), curve) for side in (1.0, -1.0))
        low = np.where(positive, value * np.exp(-relative * down), value - spread * down)
        high = np.where(positive, value * np.exp(-relative * up), value - spread * up)
    return Estimate(value, np.where(n > 1, low, np.nan), np.where(n > 1, high, np.nan), n)


def _unskewed(x: Floats, curve: Floats) -> Floats:
    """Hall's inverse: y of which y + curve y^2 + curve^2 y^3/3 = x, the cubic that makes Student's t symmetrical."""
    straight = np.abs(curve) < 1e-9
    safe = np.where(straight, 1.0, curve)
    return np.where(straight, x, (np.cbrt(1.0 + 3.0 * safe * x) - 1.0) / safe)


def mean(values: Floats, owner: Ints, owners: int) -> Estimate:
    """Mean of the observations of every owner; see `ratio`. Observations that are NaN do not count."""
    known = np.isfinite(values)
    return ratio(values[known], np.ones(int(known.sum())), owner[known], owners)


def alike(found: Estimate, down: Floats, up: Floats) -> Estimate:
    """A mean whose observations are all the same, with the doubt that leaves: the interval of others.

    A share of 1 - 0.025^(1/n) of all may be others without one among the n that came (the exact binomial interval of no
    hit); `down` and `up` are how far such a one may be from those that came. Other means stay as they are.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        # a ratio of equal observations differs from each by rounding
        same = found.high - found.low <= 1e-9 * np.abs(found.value)
        share = 1.0 - 0.025 ** (1.0 / found.n)
    low, high = found.value - share * down, found.value + share * up
    return Estimate(found.value, np.where(same, low, found.low), np.where(same, high, found.high), found.n)
