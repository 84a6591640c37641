"""Windows: w, the window at which the sender reacted, and w_max, the limit it ran into.

**Definitions**: `w` is the mean `flight` (RFC 6675's pipe) of the recoveries and of the first timeouts that came in
the open phase. `w_max` is the median advertised window of the rounds that came within three segments of it (Zhang et
al. 2002, T-RAT) while nothing was lost or sent again, if at least three rounds did: in a recovery the data behind the
hole fill the receiver's buffer, and the window that it advertises shrinks to what is left of it. Otherwise, if a run of
30 rounds without loss below the advertised window has a flat second half (the largest flight and the 20th percentile
each less than three segments from the median, which is above six), the sender's own limit: the median of that half.
Null where neither was reached.
**Interval**: Student's over the events; where all are the same, another one may be as small as half of it, or a segment
larger; of w_max the order statistics around the median of the rounds, none below six that are not alike
(`intervals.quantile_ends`).
**Departures**: a flow with a shallow paced bottleneck can look send-limited; the diagnosis tells the two apart, the
models need only the flat window.
**Validation**: tests/parameters/test_windows.py.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit.parameters.evidence import Evidence, once
from tcpfit.parameters.intervals import Estimate, Floats, Ints, alike, mean, nothing, ordered, quantile_ends
from tcpfit.parameters.runs import run_numbers

NEAR = 3.0
FLAT_ROUNDS = 30
LIMITED_ROUNDS = 3


def w(evidence: Evidence) -> Estimate:
    """Mean data in flight, in segments, when a recovery or a series of timeouts began."""
    recoveries, timeouts = evidence.of("recovery"), evidence.first_timeouts
    alone = timeouts.where(np.asarray(timeouts.frame["phase"].cast(pl.String) == "open", dtype=np.bool_))
    owner = np.concatenate((recoveries.owner, alone.owner))
    flight = np.concatenate((recoveries.floats("flight"), alone.floats("flight")))
    time = np.concatenate((recoveries.floats("time_ns"), alone.floats("time_ns")))
    order = np.lexsort((time, owner))
    found = mean(flight[order], owner[order], len(evidence))
    return alike(found, found.value / 2, np.ones(len(evidence)))


@once
def w_max(evidence: Evidence) -> Estimate:
    """Window limit of receiver or sender in segments, NaN where none was reached."""
    rounds = evidence.rounds
    limited = np.asarray(rounds.frame["limited"].fill_null(False), dtype=np.bool_)
    window = rounds.floats("rwnd")
    quiet = (rounds.floats("lost_segments") == 0) & (rounds.floats("resent_segments") == 0)
    near = limited & quiet & np.isfinite(window)
    received = _median(window[near], rounds.owner[near], len(evidence))
    received = received.where(received.n >= LIMITED_ROUNDS, nothing(len(evidence)))
    flight = rounds.floats("flight")
    quiet &= ~limited & (flight < np.nan_to_num(window, nan=np.inf) - NEAR)
    run = run_numbers(rounds.owner, quiet)
    flat = _flat(run, flight)
    sent = _median(flight[flat], rounds.owner[flat], len(evidence))
    return received.where(np.isfinite(received.value), sent)


def _flat(run: Ints, flight: Floats) -> np.ndarray:
    """Rounds of the second half of each run that is long enough and flat."""
    table = pl.DataFrame({"run": run, "flight": flight}).with_row_index("row").filter(pl.col("run") >= 0)
    position, length = pl.int_range(pl.len()).over("run"), pl.len().over("run")
    table = table.filter((length >= FLAT_ROUNDS) & (position >= length // 2))
    middle = pl.col("flight").median().over("run")
    table = table.filter(
        (pl.col("flight").max().over("run") - middle < NEAR)
        & (middle - pl.col("flight").quantile(0.2).over("run") < NEAR)
        & (middle > 2 * NEAR)
    )
    chosen = np.zeros(len(run), np.bool_)
    chosen[table["row"].to_numpy()] = True
    return chosen


def _median(values: Floats, owner: Ints, flows: int) -> Estimate:
    """Median of the values of every owner, in the order of time, between order statistics (`quantile_ends`)."""
    by_size = ordered(values, owner, flows)
    n = by_size.n
    middle = np.where(n > 0, (by_size.at((n - 1) // 2) + by_size.at(n // 2)) / 2, np.nan)
    low, high = quantile_ends(values, owner, flows, 0.5)
    known = np.isfinite(low) & np.isfinite(high)
    return Estimate(middle, np.where(known, low, np.nan), np.where(known, high, np.nan), n)
