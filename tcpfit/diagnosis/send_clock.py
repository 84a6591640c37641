"""Senders that begin a round by a clock of their own: an application that has not enough to send, or a pacer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpfit.diagnosis.path_rate import OWN_CLOCK, PLATEAU
from tcpfit.parameters.intervals import Floats

if TYPE_CHECKING:
    from tcpfit.diagnosis.rounds import Flags, Rounds

PHASE = 0.1
"""Of the time between two ACKs: data that an ACK lets go follow it closer than that, or have their own times. Of flows
that a send buffer held the median was 0.02 at most, behind a shaper 0.25."""

SCHEDULED_S = 2e-4
"""Seconds that a host may take to answer an ACK however close ACKs come."""

ELSEWHERE = 1.5
"""So many times as long elsewhere than at the sender, where its delays are told by the round trips."""

RESTS = 4.0
"""Times as long as what passes between two segments of a round: a pacer spreads what it has, over a round trip about
evenly (RFC 9002, 7.7), or in bursts of a millisecond, and lets no ACK wait so long."""

FILLED = 0.6
"""Of the SMSS: a flow's segments are small if they carry less on average."""


def own_clock(rounds: Rounds) -> Flags:
    """Rounds of flows that send by a clock of their own; elsewhere than at the sender it may be a queue's."""
    own: Flags = (rounds.at_sender & (rounds.flow_unprompted >= OWN_CLOCK))[rounds.owner]
    return own


def unprompted(rounds: Rounds) -> Flags:
    """Those of them that begin later than the ACK that ended the round before: the window had room before."""
    late = np.append(False, rounds.lag_s[:-1] > rounds.host_s[:-1])[: len(rounds)]
    unprompted: Flags = rounds.own_clock & late & (rounds.position > 0)
    return unprompted


def runs_out(rounds: Rounds) -> Flags:
    """Rounds of flows that send by a clock of their own, and mostly a short segment in a round: whoever has more to
    send fills it (RFC 9293, 3.8.6.2.1). But for flows whose segments are filled on average: one that writes record by
    record ends each with a short one, and over a path whose MTU is below what the MSS option says all are short; these
    do where they mostly rest, too, as no pacer does."""
    told = (rounds.acked > 0) & (rounds.lost == 0) & (rounds.resent == 0)
    short = told & (rounds.acked % rounds.smss > 0)
    mostly = rounds.count(short) > rounds.count(told) / 2
    small = (rounds.flow_full_size < FILLED) & (rounds.flow_unprompted >= OWN_CLOCK)
    runs_out: Flags = (mostly & (small | (flow_rested(rounds) >= OWN_CLOCK)))[rounds.owner]
    return runs_out


def flow_rested(rounds: Rounds) -> Floats:
    """Share of each flow's steady rounds, wherever the capture was taken, that outlast their round trip by much more
    than what passes between two segments: nothing was sent, whatever ACKs had come."""
    lasted = (rounds.until - rounds.start) / 1e9
    step = lasted / np.maximum(np.nan_to_num(rounds.sent), 1.0)
    return _late_share(rounds, lasted - rounds.trip > np.maximum(RESTS * step, ELSEWHERE * rounds.host_s))


def flow_unprompted(rounds: Rounds) -> Floats:
    """Share of each flow's steady rounds that did not begin with the ACK that ended the round before.

    A sender that a window or a buffer holds sends when an ACK lets it; one that has not enough to send, or paces,
    sends by a clock of its own. 0 with fewer rounds than make a plateau, and where only losses tell how long ACKs were
    under way: when they came is not known to a part of that.
    """
    return _late_share(rounds, (rounds.lag_s > rounds.host_s) & ~rounds.flow_estimated[rounds.owner])


def flow_waited(rounds: Rounds) -> Floats:
    """The same wherever the capture was taken: elsewhere than at the sender an ACK counts as there when data that
    answer it pass, so a sender that lets it wait makes the round longer than the least round trip. What passes
    in even steps, paced or behind a shaper, lags behind the ACK by a good part of a step."""
    least = np.nan_to_num(rounds.flow_least_s[rounds.owner])
    longer = (rounds.end - rounds.start) / 1e9 - least > ELSEWHERE * rounds.host_s
    step = (rounds.until - rounds.start) / 1e9 / np.maximum(np.nan_to_num(rounds.acks), 1.0)
    even = rounds.at_sender[rounds.owner] & (rounds.lag_s > np.maximum(PHASE * step, SCHEDULED_S))
    return _late_share(rounds, (rounds.lag_s > rounds.host_s) | even | longer & ~rounds.at_sender[rounds.owner])


def _late_share(rounds: Rounds, late: Flags) -> Floats:
    """Share of these in each flow's steady rounds."""
    steady = (rounds.lost == 0) & (rounds.resent == 0) & (rounds.idle_ns == 0) & (rounds.full_ns == 0)
    steady &= rounds.position < rounds.flow_count[rounds.owner] - 1
    number = rounds.count(steady)
    share: Floats = np.where(number >= PLATEAU, rounds.count(steady & late) / np.maximum(number, 1), 0.0)
    return share
