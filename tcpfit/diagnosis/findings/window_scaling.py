"""Window scaling absent: the receiver could not offer more than 65,535 bytes, and that held the flow.

**Claim**: why scaling was not agreed, and the rate that 65,535 bytes a round trip allow.
**Rule**: one of SYN and SYN-ACK lacks the window scale option (RFC 7323, 2.2: both must have it), the receiver
advertised at least 60,000 bytes (a smaller one is its buffer's choice), the window had no room for another segment in a
tenth of the time at least, whatever else held the flow then, and the sender keeps to the window. A flight that came
near it and no further was held by something else.
**Evidence**: SYN and SYN-ACK. Which end lacks it, or whether the path took the option out, shows only from some
places: see `negotiation`.
**Remedy**: switch scaling on at the end that lacks it, or lift the middlebox's rule.
**Validation**: docs/diagnosis/window-scaling-absent.md; tests/test_findings.py.
"""

from __future__ import annotations

from tcpfit.diagnosis.accounting import account_of
from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.negotiation import absence, sure
from tcpfit.diagnosis.findings.view import View, duration, named, rate
from tcpfit.diagnosis.rounds import Rounds

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
    window, rtt = view["rwnd_max"], view["rtt_min_s"]
    if why is None or window is None or window * view["smss_bytes"] < NEAR or not rtt:
        return None
    share = full_share(view)
    if share < SHARE or heedless(view):
        return None
    return Finding(
        name=NAME,
        claim=f"The window cannot pass 65,535 bytes, which is {rate(FIELD * 8 / rtt)} at the smallest round trip of "
        f"{duration(rtt)}, and it was full in {share:.0%} of the time: {why}.",
        frames=named(handshake.frames),
        display_filter=view.show("tcp.flags.syn == 1"),
        remedy="Switch window scaling (RFC 7323) on at the end that lacks it, or stop the middlebox that removes it.",
        confidence=sure(view, handshake, asked),
        seconds=None,
    )


def full_share(view: View) -> float:
    """Share of the flow's time in which the advertised window had no room, but for that in which a timer ran."""
    spans = account_of(view.alone)
    length = spans["end_ns"] - spans["start_ns"]
    whole, full = int(length.sum()), int(length.filter(spans["window_full"] & ~spans["waited"]).sum())
    return full / whole if whole else 0.0


def heedless(view: View) -> bool:
    """The sender moves most of its data faster than a window a round trip: the window does not hold it."""
    return bool(Rounds(view.alone).flow_heedless[0])
