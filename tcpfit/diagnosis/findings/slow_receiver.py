"""Slow receiver: the receiving application does not read as fast as data comes.

**Claim**: how long and how often the window was closed, and the share of the flow's time.
**Rule**, either of: (1) zero-window periods (RFC 9293, 3.8.6.1) of a twentieth of the flow's time in all at least:
the window closes only when the receive buffer is full, which the reader and nobody else empties; (2) the flight came
within three segments of the window in half of the rounds, and the window was below half of the largest offered before
in half of the ACKs: a reader that keeps up gives the whole buffer with each ACK.
**Evidence**: the ACKs that close the window. The same from every vantage.
**Remedy**: at the receiver: read sooner (its processor, its disk, its own downstream), or give the socket a larger
buffer where the reader only pauses. The network and the sender are not at fault.
**Validation**: docs/diagnosis/slow-receiver.md; tests/test_findings.py.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.view import SYN, View, duration, named, times

NAME = "slow-receiver"
SHARE = 0.05
LIMITED, SMALL, ACKS = 0.5, 0.5, 50


def find(view: View) -> Finding | None:
    closed = view.of("zero_window")
    if view.duration_s <= 0:
        return None
    total = float(closed["value"].fill_nan(None).sum())
    share = total / view.duration_s
    if share < SHARE:
        return _shrunken(view)
    return Finding(
        name=NAME,
        claim=f"{view['dst']} closed its window for {duration(total)} in {times(closed.height, 'period')}, "
        f"{min(share, 1):.0%} of the flow's time: its application did not read.",
        frames=named(closed["frame"]),
        display_filter=view.back("tcp.window_size == 0 && tcp.flags.reset == 0"),
        remedy=f"Look at the application on {view['dst']}: it reads too slowly or pauses; a larger receive "
        "buffer helps "
        "only against pauses.",
        confidence=0.95,
        seconds=total,
    )


def _shrunken(view: View) -> Finding | None:
    """The window never closes for long, but stays far below what the receiver had offered."""
    if (view["limited_share"] or 0.0) < LIMITED or view.received is None or view.received.is_empty():
        return None
    acks = view.received.filter(pl.col("flags") & SYN == 0)
    window = acks["window"].to_numpy().astype(float)
    if len(window) < ACKS:
        return None
    part = window / np.maximum(np.maximum.accumulate(window), 1.0)
    usual = float(np.median(part))
    if usual > SMALL:
        return None
    frames = named(acks["frame"].to_numpy()[part <= usual][:8])
    return Finding(
        name=NAME,
        claim=f"{view['dst']} offers a median of {usual:.0%} of the window it had offered before, and the "
        "flow is held by it in "
        f"{view['limited_share']:.0%} of its rounds: its application reads too slowly.",
        frames=frames,
        display_filter=view.back("tcp.flags.reset == 0"),
        remedy=f"Look at the application on {view['dst']}: it is what limits the flow.",
        confidence=0.85,
        seconds=None,
    )
