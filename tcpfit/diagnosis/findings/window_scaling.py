"""Window scaling absent: the receiver could not offer more than 65,535 bytes, and that held the flow.

**Claim**: why scaling was not agreed, and the rate that 65,535 bytes a round trip allow.
**Rule**: one of SYN and SYN-ACK lacks the window scale option (RFC 7323, 2.2: both must have it), the receiver
advertised at least 60,000 bytes (a smaller one is its buffer's choice), the flight came within three segments of it in
a tenth of the rounds at least, and the sender keeps to the window.
**Evidence**: SYN and SYN-ACK. Which end lacks it, or whether the path took the option out, shows only from some
places: see `negotiation`.
**Remedy**: switch scaling on at the end that lacks it, or lift the middlebox's rule.
**Validation**: docs/diagnosis/window-scaling-absent.md; tests/test_findings.py.
"""

from __future__ import annotations

import polars as pl

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.negotiation import absence, sure
from tcpfit.diagnosis.findings.view import View, duration, named, rate
from tcpfit.diagnosis.rounds import Rounds
from tcpfit.parameters.evidence import Evidence

NAME = "window-scaling-absent"
FIELD = 65535
NEAR = 60000
SHARE = 0.1


def find(view: View) -> Finding | None:
    handshake = view.handshake
    if handshake is None or not handshake.options_whole:
        return None
    asked = handshake.syn["window_scale"] is not None
    answered = handshake.syn_ack["window_scale"] is not None
    why = absence(view, handshake, asked, answered, "window scaling")
    share, window, rtt = view["limited_share"], view["rwnd_max"], view["rtt_min_s"]
    if why is None or not share or share < SHARE or window is None or window * view["smss_bytes"] < NEAR:
        return None
    if not rtt or heedless(view):
        return None
    return Finding(
        name=NAME,
        claim=f"The window cannot pass 65,535 bytes, which is {rate(FIELD * 8 / rtt)} at the smallest round trip of "
        f"{duration(rtt)}, and {share:.0%} of the rounds were held by it: {why}.",
        frames=named(handshake.frames),
        display_filter=view.show("tcp.flags.syn == 1"),
        remedy="Switch window scaling (RFC 7323) on at the end that lacks it, or stop the middlebox that removes it.",
        confidence=sure(view, handshake, asked),
        seconds=None,
    )


def heedless(view: View) -> bool:
    """The sender moves most of its data faster than a window a round trip: the window does not hold it."""
    own = pl.col("flow") == view["flow"]
    flows, rounds = (table.filter(own) for table in (view.analysis.flows, view.analysis.rounds))
    return bool(Rounds(Evidence(flows, view.analysis.events, rounds)).flow_heedless[0])
