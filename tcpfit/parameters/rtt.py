"""Round-trip times: rtt, rtt_min and rtt_p95, in seconds, as the sender sees them.

**Definitions**: `rtt` is `flows.rtt_mean_s`, the mean over the time with data outstanding; `rtt_min` the least
round trip that was seen, of the samples and of a SYN and its answer, which no queue of the flow's own has delayed;
`rtt_p95` the 95th percentile of the samples.
**Intervals**: of rtt, Student's over the rounds, each weighed by itself as a mean over time weighs it (a queue
makes them alike, `intervals.long_run`); of rtt_min, from below only: where n samples exceed the path's minimum by an
exponential time, 40^(1/(n-1)) - 1 times their mean excess over the least of them reaches from that one down to the
minimum in 97.5 % of cases; of rtt_p95, the
order statistics of the rounds' times by the binomial law, of as many independent rounds as tell as much
(`intervals.quantile_ends`: a queue makes neighbours alike), and never less than the 3 % of the bins the percentile is
read from. Below 72 such rounds it has no upper end: 0.95^n, the chance that all lie below it, is more than 2.5 %. Nor
have rtt and rtt_p95 one where a twentieth of the rounds and more are only estimated: they may have been longer.
**Validation**: tests/parameters/test_rates.py.
"""

from __future__ import annotations

import numpy as np

from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.intervals import Estimate, Floats, ordered, quantile_ends, ratio

BIN = 1.03

OPEN = 0.05
"""Share of the rounds whose round trips may have been longer, from which on nothing bounds those of the flow."""


def rtt(evidence: Evidence) -> Estimate:
    """Mean round-trip time."""
    rounds = evidence.rounds
    times = rounds.floats("rtt_s")
    known = np.isfinite(times)
    drawn = ratio(times[known] ** 2, times[known], rounds.owner[known], len(evidence))
    value = evidence.column("rtt_mean_s")
    value = np.where(np.isfinite(value), value, drawn.value)
    scale = _ratio(value, drawn.value)
    return Estimate(value, _above_least(drawn.low * scale, evidence), _bounded(drawn.high * scale, evidence), drawn.n)


def _ratio(values: Floats, to: Floats) -> Floats:
    """Of a clock too coarse for the round trip all may be 0, and no interval is known."""
    ratio: Floats = np.divide(values, to, out=np.full(len(values), np.nan), where=to > 0)
    return ratio


def _above_least(low: Floats, evidence: Evidence) -> Floats:
    """No mean and no percentile lies below the least round trip that the path can have."""
    return np.where(np.isnan(low), low, np.fmax(low, rtt_min(evidence).low))


def _bounded(high: Floats, evidence: Evidence) -> Floats:
    """NaN where too many round trips may have been longer (`estimated` of the rounds)."""
    rounds = evidence.rounds
    estimated = rounds.owner[rounds.frame["estimated"].fill_null(False).to_numpy()]
    every, open_ = (np.bincount(owner, minlength=len(evidence)) for owner in (rounds.owner, estimated))
    return np.where((open_ > 0) & (open_ >= OPEN * every), np.nan, high)


def rtt_min(evidence: Evidence) -> Estimate:
    """Smallest round-trip time."""
    value, samples = evidence.column("rtt_min_s"), evidence.column("rtt_samples")
    excess = np.maximum(evidence.column("rtt_mean_s") - value, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(samples > 1, np.maximum(value - _reach(samples) * excess, 0.0), np.nan)
    return Estimate(value, low, np.where(np.isfinite(low), value, np.nan), np.nan_to_num(samples).astype(np.int64))


def _reach(n: Floats) -> Floats:
    """How far the path's minimum may lie below the least of n samples, in their mean excess over that one.

    n times what the least exceeds the minimum by is exponential; what the others exceed the least by sums to a gamma
    variable of shape n - 1, of the same scale and independent. The first is above r times the second with a chance of
    (1 + r)^(1 - n), here 1/40.
    """
    return np.asarray(40.0 ** (1.0 / (n - 1.0)) - 1.0)


def rtt_p95(evidence: Evidence) -> Estimate:
    """95th percentile of the round-trip time."""
    value, rounds = evidence.column("rtt_p95_s"), evidence.rounds
    times = rounds.floats("rtt_s")
    known = np.isfinite(times)
    owner, times = rounds.owner[known], times[known]
    by_size = ordered(times, owner, len(evidence))
    n = by_size.n
    place = 0.95 * np.maximum(n - 1, 0)
    under = np.floor(place).astype(np.int64)
    over = by_size.at(np.minimum(under + 1, np.maximum(n - 1, 0)))
    middle = by_size.at(under) + (place - under) * (over - by_size.at(under))
    below, above = quantile_ends(times, owner, len(evidence), 0.95)
    low = value * np.minimum(_ratio(below, middle), 1 / BIN)
    high = value * np.maximum(_ratio(above, middle), BIN)
    return Estimate(value, _above_least(low, evidence), _bounded(high, evidence), n)
