"""SYN loss: the connection waited for a handshake that had to be sent again.

**Claim**: the SYN (or SYN-ACK) was sent n times, and how long the handshake waited for that.
**Rule**: the connection's SYN, or its SYN-ACK, was seen more than once before the handshake was complete, the copies
a timer apart: 0.2 s at least, which no capture duplicate is. A SYN repeated although an answer to the first was on
its way is none: the SYN-ACK then echoes the first SYN's timestamp, and the first round trip is longer than the timer;
or the SYN-ACKs come after all SYNs, as many and as far apart.
**Evidence**: frames of the copies. Next to the initiator a lost SYN and a lost SYN-ACK look alike; next to the
responder a SYN seen twice with an answer between means that the answer was lost, and a SYN lost on its way there
does not show at all.
**Remedy**: RFC 6298 (2.1) starts the timer at one second, so each loss costs 1, 2, 4 s; a listener that drops SYNs (a
full backlog) looks the same as the network.
**Validation**: docs/diagnosis/syn-loss.md; tests/test_findings.py.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.view import ACK, View, duration, named

NAME = "syn-loss"
SLOW = 2.0
SPREAD = 0.2
"""Share of a round trip by which those of the SYNs may differ."""
TIMER_S = 0.2
"""Least time between copies that a timer sent: RFC 6298's floor is 1 s, Linux's for an established connection 0.2 s."""


def find(view: View) -> Finding | None:
    handshake = view.handshake
    if handshake is None or view.syns is None or not view.larger:
        return None
    answer = handshake.syn_ack
    asked = view.syns.filter((pl.col("flags") & ACK == 0) & (pl.col("seq") == answer["ack"] - 1))
    answered = view.syns.filter((pl.col("flags") & ACK > 0) & (pl.col("seq") == answer["seq"]))
    asked, answered = _by_timer(asked), _by_timer(answered)
    if asked.height < 2 and answered.height < 2:
        return None
    first = asked.row(0, named=True)
    if asked.height >= 2 and answered.height < 2 and answer["tsecr"] == first["tsval"] is not None:
        took, rtt = (answer["time_ns"] - first["time_ns"]) / 1e9, view["rtt_min_s"]
        if rtt is None or took < SLOW * rtt:
            return None  # the answer is to the first SYN, and no later than the path is long
    if _each_answered(asked, answered):
        return None
    copies = asked if asked.height >= 2 else answered
    wait = (copies["time_ns"][-1] - copies["time_ns"][0]) / 1e9
    syns = f"the SYN was sent {asked.height} times" if asked.height >= 2 else ""
    answers = f"the SYN-ACK {'' if syns else 'was sent '}{answered.height} times" if answered.height >= 2 else ""
    claim = (
        f"In the handshake {' and '.join(filter(None, (syns, answers)))}: the connection began {duration(wait)} late."
    )
    lost = "the SYN-ACK or the ACK of it" if answered.height >= 2 else "the SYN or the SYN-ACK"
    return Finding(
        name=NAME,
        claim=claim,
        frames=named([*asked["frame"], *answered["frame"]]),
        display_filter=view.show("tcp.flags.syn == 1"),
        remedy=f"Find what drops {lost}: the path, a filter, or a full backlog of the listener ({first['dst']}); "
        "retry or open connections ahead of need where a second matters.",
        confidence=0.9,
        seconds=wait,
    )


def _each_answered(asked: pl.DataFrame, answered: pl.DataFrame) -> bool:
    """Every SYN has its SYN-ACK, a round trip later that is longer than the timer."""
    if asked.height != answered.height or answered["time_ns"][0] <= asked["time_ns"][-1]:
        return False
    trips = (answered["time_ns"] - asked["time_ns"]).to_numpy()
    return bool(np.ptp(trips) < SPREAD * trips.min())


def _by_timer(copies: pl.DataFrame) -> pl.DataFrame:
    """Without copies that follow the one before too soon for a timer."""
    return copies.filter((pl.col("time_ns").diff() >= TIMER_S * 1e9).fill_null(True))
