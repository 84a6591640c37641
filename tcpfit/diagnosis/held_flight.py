"""A flight that a buffer of the sender holds: it does not grow, below a window that has room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpfit.parameters.intervals import Floats, summed

if TYPE_CHECKING:
    from tcpfit.diagnosis.rounds import Flags, Rounds

FLAT_ROUNDS = 30
"""Rounds without growth that show a send buffer (T-RAT: 30 flights)."""

TOP = 0.9
"""Of the 95th percentile of the flight: a flight that is held is so high; it may pass that while the buffer fills."""

MOSTLY = 0.75
"""Of the rounds without a loss: a flight that is held is in so many the same."""

REPLACED = 0.85
"""Of the flight: each ACK lets as much go as it covers, so a flight that is held goes once in a round trip. Of flows
that a send buffer held 0.92 and more went, of applications that write several times in a round trip 0.73 at most."""

ACK_CLOCK = 0.25
"""Of the rounds: a sender that begins no more without an ACK sends when ACKs let it."""


def flat(rounds: Rounds) -> Flags:
    """Rounds of a flight that does not grow, without a loss: runs of 30 and more within a segment of each other; or
    those within a segment of the usual flight, if that is near the largest and in three quarters of the rounds.
    Only of senders that send when ACKs let them, below a window that is known, and all of it in each round; and not
    where the path was full and nothing tells how long the round trips were: the flight may have grown."""
    with np.errstate(invalid="ignore"):
        quiet = (rounds.lost == 0) & (rounds.resent == 0) & (rounds.flight > 2) & (rounds.full == 0)
        quiet &= rounds.acked > 0.5 * rounds.smss * rounds.sent
        quiet &= (rounds.flow_waited[rounds.owner] < ACK_CLOCK) & np.isfinite(rounds.window)
        quiet &= ~rounds.estimated
        went = np.where(quiet, rounds.sent - REPLACED * rounds.flight, 0.0)
    quiet &= (summed(went, rounds.owner, len(rounds.flow_count)) >= 0)[rounds.owner]
    flat = np.zeros(len(rounds), np.bool_)
    for flow in np.flatnonzero(rounds.count(quiet) >= FLAT_ROUNDS):
        rows = slice(rounds.flow_begin[flow], rounds.flow_begin[flow] + rounds.flow_count[flow])
        flat[rows] = _level(rounds.flight[rows], quiet[rows])
        whole = quiet[rows] & (went[rows] >= 0)
        if not flat[rows].any() and whole.sum() >= FLAT_ROUNDS:
            flat[rows] = _level(rounds.flight[rows], whole)
    return flat


def _level(flight: Floats, quiet: Flags) -> Flags:
    """The flat ones of one flow's rounds."""
    flat = np.zeros(len(flight), np.bool_)
    course = [*np.where(quiet, flight, np.nan).tolist(), np.nan]
    first = 0
    low = high = 0.0
    for k, value in enumerate(course):
        if k > first and max(high, value) - min(low, value) <= 1 and value == value:
            low, high = min(low, value), max(high, value)
            continue
        if k - first >= FLAT_ROUNDS:
            flat[first:k] = True
        first = k
        low = high = value
    values, number = np.unique(np.round(flight[quiet]), return_counts=True)
    usual = values[np.argmax(number)]
    level = quiet & (np.abs(flight - usual) <= 1)
    high = usual >= TOP * np.quantile(flight[quiet], 0.95)
    if high and level.sum() >= max(FLAT_ROUNDS, MOSTLY * quiet.sum()):
        flat |= level
    held: Flags = flat & quiet
    return held
