"""Rounds of a conversation, in which one end waits for the other's data, and of a sender that waits for an ACK to send
little."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpfit.parameters import so_far
from tcpfit.parameters.intervals import Ints
from tcpfit.parameters.nearest import latest

if TYPE_CHECKING:
    from tcpfit.diagnosis.rounds import Flags, Rounds

TURNS = 5
"""Rounds in a row that the other end's data end: fewer may be chance, or the opening of a connection."""

NAGLE = 3
"""Rounds whose ACK a short segment waits for: fewer may be chance."""

AT_ONCE = 0.75
"""Of the rounds whose ACK a short segment may have waited for: an application's own clock meets it in fewer."""


def turns(rounds: Rounds) -> Flags:
    """Rounds of a conversation: all that was sent was acknowledged, and more was sent only after the other end's
    data, in `TURNS` rounds in a row, with those that an ACK alone ended; and the flow's last round, after such."""
    if not (rounds.flow_opposite[rounds.owner] >= 0).any():
        return np.zeros(len(rounds), np.bool_)
    last = rounds.position == rounds.flow_count[rounds.owner] - 1
    turn = _answered(rounds) & _settled(rounds) & ~last | rounds.small_waits
    turn |= last & np.append(False, turn[:-1])
    breaks = np.append(True, (turn[1:] != turn[:-1]) | (rounds.owner[1:] != rounds.owner[:-1]))
    run: Ints = np.cumsum(breaks) - 1
    turns: Flags = turn & (np.bincount(run)[run] >= TURNS) & ~rounds.small_waits
    return turns


def small_waits(rounds: Rounds) -> Flags:
    """Rounds with whose ACK, as soon as nothing was outstanding, less than a segment was sent, and not for data of
    the other end: by Nagle's algorithm (RFC 9293, 3.7.4) it waits for that ACK.

    In a flow with three of them, where three quarters of what came so after all was acknowledged came at once.
    """
    if not len(rounds):
        return np.zeros(0, np.bool_)
    mine = np.append(rounds.owner[1:] == rounds.owner[:-1], False)
    next_ = np.minimum(np.arange(len(rounds)) + 1, len(rounds) - 1)
    calm = (rounds.lost == 0) & (rounds.resent == 0)
    less = (rounds.acked[next_] > 0) & (rounds.acked[next_] < rounds.smss)
    may = mine & calm & calm[next_] & less & (rounds.acked > 0) & _settled(rounds) & ~_answered(rounds)
    at_once = may & (rounds.idle <= rounds.host_s)
    number = rounds.count(at_once)
    enough = (number >= NAGLE) & (number >= AT_ONCE * rounds.count(may))
    waits: Flags = at_once & enough[rounds.owner]
    return waits


def _answered(rounds: Rounds) -> Flags:
    """Rounds in which the other end's data came to the sender."""
    said = latest(rounds.flow_opposite[rounds.owner], rounds.until, rounds.owner, rounds.start)
    spoke = np.append(rounds.start, 0)[said]
    heard = spoke + (1e9 * rounds.away * np.nan_to_num(rounds.flow_least_s))[rounds.owner]
    answered: Flags = (said >= 0) & (spoke > rounds.start) & (heard <= rounds.until)
    return answered


def _settled(rounds: Rounds) -> Flags:
    """Rounds at whose end nothing was outstanding: so it seems, or no more segments were sent than were
    acknowledged since that was so."""
    settled = rounds.idle > 0
    acked = np.ceil(np.nan_to_num(rounds.acked) / rounds.smss)
    stretch = np.cumsum(np.append(False, settled)[:-1]) + rounds.owner  # either begins another one
    more = so_far.total(stretch, rounds.sent - acked)
    none: Flags = settled | (more <= np.minimum(so_far.lowest(stretch, more), 0.0))
    return none
