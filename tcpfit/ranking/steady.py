"""The steady part of a flow: what a steady-state model speaks about.

**Start**: the end of the first reaction of the sender (recovery, or series of timeouts); slow start and the overshoot
it ends in lie before it. A flow that never reacted starts where its flight first reaches nine tenths of its largest.
**Time**: a round lasts until the next one starts (a timeout's silence belongs to it), less the time in which nothing
was outstanding: an application's pauses are set apart.
**Window-limited rounds** are counted (`limited`), not cut out: a loss rate measured only where the window was free
would be biased upwards. Their share decides which models apply.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcpfit.parameters.evidence import Evidence, Rows
from tcpfit.parameters.intervals import Floats, Ints

START = 0.9
AT_LIMIT = 0.95


@dataclass(frozen=True)
class Steady:
    """The rounds of every flow with what the ranking needs of each; arrays of one length, in the order of the
    rounds."""

    owner: Ints
    inside: NDArray[np.bool_]
    duration_s: Floats
    idle_s: Floats
    limited: NDArray[np.bool_]


def steady(evidence: Evidence, w_max: Floats) -> Steady:
    """Which rounds are steady, and how long each lasts; `w_max` is the window limit of each flow, NaN for none."""
    rounds = evidence.rounds
    owner, start = rounds.owner, rounds.floats("start_ns")
    flight, idle = rounds.floats("flight"), np.nan_to_num(rounds.floats("idle_s"))
    reacted = _first_reaction(evidence)
    largest = np.zeros(len(evidence))
    np.maximum.at(largest, owner, np.nan_to_num(flight))
    full = np.full(len(evidence), np.inf)
    np.minimum.at(full, owner, np.where(flight >= START * largest[owner], start, np.inf))
    inside = start >= np.where(np.isfinite(reacted), reacted, full)[owner]
    with np.errstate(invalid="ignore"):
        limited = np.asarray(rounds.frame["limited"].fill_null(False), dtype=np.bool_)
        limited = limited | (flight >= AT_LIMIT * w_max[owner])
    return Steady(owner, inside, np.maximum(_durations(rounds) - idle, 0.0), idle, limited)


def _durations(rounds: Rows) -> Floats:
    start, end = rounds.frame["start_ns"].to_numpy(), rounds.frame["end_ns"].to_numpy()
    until = end.copy()
    if len(rounds) > 1:
        same = rounds.owner[1:] == rounds.owner[:-1]
        until[:-1] = np.where(same, start[1:], end[:-1])
    lasted: Floats = (until - start) / 1e9
    return lasted


def _first_reaction(evidence: Evidence) -> Floats:
    """End of each flow's first recovery or timeout, in ns; NaN without one."""
    first = np.full(len(evidence), np.inf)
    begun = np.full(len(evidence), np.inf)
    recoveries, timeouts = evidence.of("recovery"), evidence.first_timeouts
    time = recoveries.floats("time_ns")
    np.minimum.at(begun, recoveries.owner, time)
    earliest = time <= begun[recoveries.owner]
    np.minimum.at(
        first,
        recoveries.owner[earliest],
        (time + 1e9 * np.nan_to_num(recoveries.floats("value")))[earliest],
    )
    np.minimum.at(first, timeouts.owner, timeouts.floats("time_ns"))
    return np.where(np.isfinite(first), first, np.nan)
