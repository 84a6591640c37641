"""b: rounds per segment of window growth in congestion avoidance.

The models let the window grow by one segment every b rounds because a delayed ACK covers b segments and growth counted
ACKs (Padhye et al. 1998). A sender that counts acknowledged bytes (RFC 3465; Linux) grows by one segment a round
whatever the receiver does: b is measured, not assumed.

**Estimate**: stretches of at least 4 consecutive rounds, after the flow's first loss, in phase open, without loss,
resending, idle time or window limit, in congestion avoidance (the flight is at least half of that when the last
recovery or timeout began, so that slow start after a timeout is left out). Each stretch has a least-squares slope of
flight on round; b is the inverse of their median, in which a stretch counts by the rounds that it grew. A window that
happens to grow slowly is hit later: counted by more than its time, as the least-squares weights would, its stretch
makes b too large. A stretch steeper than 1.5 segments a round is no congestion avoidance (slow start, a window restored
after a spurious loss). Null with fewer than 3 stretches, fewer than 15 rounds or a slope that is not positive.
**Interval**: of the weighted median (Woodruff 1952): its ends are the slopes below which as much of the weight lies as
chance may make of a half. Fewer than six have no such ends: then Student's of the mean slope, around the median.
**Departures**: a CUBIC window's growth gives a number here too; it is not a b of any model (see `growth.py`).
**Validation**: tests/parameters/test_windows.py.
**Reference**: Woodruff (1952), doi:10.1080/01621459.1952.10483443 (medians of weighted observations).
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from tcpfit.parameters.evidence import Evidence, once
from tcpfit.parameters.intervals import Estimate, Floats, Ints, nothing, ratio, summed
from tcpfit.parameters.nearest import latest
from tcpfit.parameters.runs import run_numbers

STRETCH = 4
STRETCHES = 3
ORDERED = 6  # stretches from which on the least and the largest are as far apart as 95 % asks
ROUNDS = 15
FLATTEST, STEEPEST = 0.05, 1.5  # segments a round


def b(evidence: Evidence) -> Estimate:
    """Rounds per segment of growth of every flow; NaN where the flow shows too little clean growth."""
    found = slope(evidence)
    grows = found.value > FLATTEST
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(grows, 1 / found.value, np.nan)
        low, high = (
            np.where(grows, 1 / found.high, np.nan),
            np.where(grows, 1 / np.maximum(found.low, FLATTEST), np.nan),
        )
    return Estimate(value, low, high, np.where(grows, found.n, 0))


@once
def slope(evidence: Evidence) -> Estimate:
    """Segments of growth per round in congestion avoidance; NaN with too few stretches. A flat flight gives about 0."""
    stretches = slopes(evidence)
    if stretches.is_empty():
        return nothing(len(evidence))
    owner: Ints = stretches["owner"].to_numpy().astype(np.int64)
    slope_of, lasted = stretches["slope"].to_numpy(), stretches["rounds"].to_numpy().astype(np.float64)
    grew = lasted - 1.0
    pooled = ratio(slope_of * grew, grew, owner, len(evidence))
    flows, half = len(evidence), np.full(len(evidence), 0.5)
    middle = _weighted_quantile(slope_of, grew, owner, half)
    with np.errstate(divide="ignore", invalid="ignore"):
        doubt = 0.5 * np.sqrt(summed(grew**2, owner, flows)) / summed(grew, owner, flows)
        doubt *= special.stdtrit(pooled.n - 1.0, 0.975)
    low, high = (_weighted_quantile(slope_of, grew, owner, half + side * doubt) for side in (-1.0, 1.0))
    enough = (pooled.n >= STRETCHES) & (summed(lasted, owner, flows) >= ROUNDS)
    shift = middle - pooled.value
    few = pooled.n < ORDERED
    low, high = np.where(few, pooled.low + shift, low), np.where(few, pooled.high + shift, high)
    found = Estimate(middle, low, high, pooled.n)
    return found.where(enough, nothing(len(evidence)))


def avoidance(evidence: Evidence) -> NDArray[np.bool_]:
    """Which rounds are clean congestion avoidance."""
    rounds = evidence.rounds
    if not len(rounds):
        return np.zeros(0, np.bool_)
    open_phase = np.asarray(rounds.frame["phase"].cast(pl.String) == "open", dtype=np.bool_)
    clean = (rounds.floats("lost_segments") == 0) & (rounds.floats("resent_segments") == 0)
    clean &= open_phase & ~np.asarray(rounds.frame["limited"].fill_null(False), dtype=np.bool_)
    clean &= rounds.floats("idle_s") <= 0.1 * np.nan_to_num(rounds.floats("rtt_s"))
    inside: NDArray[np.bool_] = clean & (rounds.floats("flight") >= 0.5 * last_reaction(evidence) - 0.5)
    return inside


def last_reaction(evidence: Evidence) -> Floats:
    """Flight at the latest recovery or timeout before each round; infinite before the first one."""
    rounds = evidence.rounds
    parts = [evidence.of("recovery"), evidence.first_timeouts]
    owner = np.concatenate([part.owner for part in parts])
    time = np.concatenate([part.times() for part in parts])
    flight = np.concatenate([*(part.floats("flight") for part in parts), [np.inf]])  # -1 is the last one: none
    last: Floats = flight[latest(rounds.owner, rounds.times("start_ns"), owner, time)]
    return np.where(np.isnan(last), np.inf, last)


def slopes(evidence: Evidence) -> pl.DataFrame:
    """The stretches: owner, rounds, and the slope in segments per round."""
    rounds = evidence.rounds
    run = run_numbers(rounds.owner, avoidance(evidence))
    table = pl.DataFrame({"run": run, "owner": rounds.owner, "flight": rounds.floats("flight")})
    position = pl.int_range(pl.len()).over("run")
    x = pl.col("x") - pl.col("x").mean()
    return (
        table.filter(pl.col("run") >= 0)
        .with_columns(position.cast(pl.Float64).alias("x"))
        .group_by("run", maintain_order=True)
        .agg(
            pl.col("owner").first(),
            pl.len().alias("rounds"),
            ((x * pl.col("flight")).sum() / (x * x).sum()).alias("slope"),
        )
        .filter((pl.col("rounds") >= STRETCH) & (pl.col("slope") <= STEEPEST))
    )


def _weighted_quantile(values: Floats, weights: Floats, owner: Ints, share: Floats) -> Floats:
    """Smallest value of each flow that has at least its share of the weight at or below it."""
    order = np.lexsort((values, owner))
    values, weights, owner = values[order], weights[order], owner[order]
    cumulated = np.cumsum(weights)
    total = summed(weights, owner, len(share))
    before = np.concatenate(([0.0], np.cumsum(total)))[:-1]
    past = cumulated - before[owner] >= np.clip(share, 0.0, 1.0)[owner] * total[owner] * (1 - 1e-9)
    first = past & np.concatenate(([True], (owner[1:] != owner[:-1]) | ~past[:-1]))
    result = np.full(len(share), np.nan)
    result[owner[first]] = values[first]
    return result
