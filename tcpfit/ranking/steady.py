"""The steady part of a flow: what a steady-state model speaks about.

**Start**: the end of the first reaction of the sender (recovery, or timeouts); slow start and the overshoot it ends in
lie before it. What a timeout interrupts is over when all data that were sent by then are acknowledged (RFC 6582, 3.2,
calls their end `recover`), however many more timers run out on the way: until then the ACKs are of the overshoot. A
flow that never reacted starts where its flight first reaches nine tenths of its largest.
**Time**: a round lasts until the next one starts (a timeout's silence belongs to it), less the time in which nothing
was outstanding: an application's pauses are set apart. A flow's last round lasts until its last ACK; how long the
connection stays open after that (RFC 9293, 3.6) is neither the transfer's time nor a pause in it.
**Window-limited rounds** are counted (`limited`), not cut out: a loss rate measured only where the window was free
would be biased upwards. Their share decides which models apply.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcpfit.parameters import so_far
from tcpfit.parameters.evidence import Evidence, Rows
from tcpfit.parameters.intervals import Floats, Ints, summed
from tcpfit.parameters.nearest import earliest, latest

START = 0.9
AT_LIMIT = 0.95
AT_ONCE_NS = 1000
"""Between the end of a recovery and the timeout that ends it: the one is told by its length."""
CLOCK_S = 1e-6
"""A sum of times that is no longer than this is none: capture files have microseconds."""


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
    flight, idle = rounds.floats("flight"), idle_within(evidence)
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


def idle_within(evidence: Evidence) -> Floats:
    """Seconds of each round with nothing outstanding, of a flow's last round without what follows its end.

    The table has a round's `idle_s` up to the next one, and of the last one up to the connection's last packet. What of
    that lies before the flow's last ACK is what is left of the flow's time without its other pauses and `busy_s`.
    """
    rounds = evidence.rounds
    idle = np.nan_to_num(rounds.floats("idle_s"))
    if not len(rounds):
        return idle
    closing = np.flatnonzero(np.append(rounds.owner[1:] != rounds.owner[:-1], True))
    owner, last = rounds.owner[closing], evidence.flows["last_ns"].to_numpy()
    of_flow = (last - evidence.flows["first_ns"].to_numpy()) / 1e9
    earlier = summed(idle, rounds.owner, len(evidence))[owner] - idle[closing]
    with np.errstate(invalid="ignore"):
        left = (of_flow - evidence.column("busy_s"))[owner] - earlier
    end = rounds.frame["end_ns"].to_numpy()[closing]
    left -= np.maximum(last[owner] - end, 0) / 1e9
    lasted = (end - rounds.frame["start_ns"].to_numpy()[closing]) / 1e9
    left = np.where(left > CLOCK_S, left, 0.0)  # one direction alone does not show what is outstanding
    idle[closing] = np.minimum(np.minimum(left, idle[closing]), np.maximum(lasted, 0.0))
    return idle


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
    return _recovered(evidence, np.where(np.isfinite(first), first, np.nan))


def _recovered(evidence: Evidence, reacted: Floats) -> Floats:
    """When what timers interrupted up to `reacted`, or on the way from there, is made good; `reacted` where nothing
    was, or where it never is."""
    timeouts = evidence.data_timeouts
    if not len(timeouts) or not len(evidence.rounds):
        return reacted
    whole = _acknowledged(evidence, timeouts)
    chain = pl.DataFrame(
        {
            "owner": timeouts.owner,
            "time": timeouts.floats("time_ns"),
            "whole": whole,
            "reacted": reacted[timeouts.owner] + AT_ONCE_NS,
        }
    )
    earlier = pl.col("whole").cum_max().shift(1).over("owner")
    chain = chain.filter((pl.col("time") > pl.max_horizontal("reacted", earlier)).cum_sum().over("owner") == 0)
    last = chain.group_by("owner").agg(pl.col("whole").max()).filter(pl.col("whole").is_finite())
    recovered = reacted.copy()
    recovered[last["owner"].to_numpy()] = np.maximum(reacted[last["owner"].to_numpy()], last["whole"].to_numpy())
    return recovered


def _acknowledged(evidence: Evidence, timeouts: Rows) -> Floats:
    """Start (ns) of the first round after each timeout by which all is acknowledged that was sent up to the end of the
    timeout's round; infinite without one."""
    rounds, flows = evidence.rounds, len(evidence)
    start, new = rounds.times("start_ns"), rounds.floats("sent_segments") - rounds.floats("resent_segments")
    count = summed(new, rounds.owner, flows)
    with np.errstate(divide="ignore", invalid="ignore"):
        # few segments are of full size where applications write little
        size = np.where(count > 0, evidence.column("unique_bytes") / count, 0.0)[rounds.owner]
    sent = so_far.total(rounds.owner, new * size)
    acked = rounds.floats("acked_bytes")
    before = np.rint(so_far.total(rounds.owner, acked) - acked).astype(np.int64)
    at = latest(timeouts.owner, timeouts.times(), rounds.owner, start)
    asked = np.rint(sent[at] - evidence.column("smss_bytes")[timeouts.owner]).astype(np.int64)
    found = np.maximum(earliest(timeouts.owner, asked, rounds.owner, before), at + 1)
    there = (at >= 0) & (found < len(rounds))
    found = np.minimum(found, len(rounds) - 1)
    there &= (rounds.owner[found] == timeouts.owner) & (before[found] >= asked)
    return np.where(there, start[found].astype(np.float64), np.inf)
