#!/usr/bin/env python3
"""Draw the pictures of docs/figures.md from the sample traces: python docs/make_pictures.py. Needs the extra `plot`."""

from __future__ import annotations

from pathlib import Path

import tcpfit
from tcpfit.report import figures

HERE = Path(__file__).resolve().parent
SAMPLES = HERE.parent / "sample-traces"

SHOWN = {
    "time-sequence": ("timeouts", 0.0, 22.0),
    "window": ("sack-loss-sender", None, None),
    "rtt": ("sack-loss-sender", 0.0, 30.0),
    "rate": ("sack-loss-sender", None, None),
    "ranking": ("sack-loss-sender", None, None),
    "residuals": ("sack-loss-sender", None, None),
    "losses": ("reordering-receiver", None, None),
    "intervals": ("newreno-loss", None, None),
    "shares": ("slow-reader", None, None),
    "stalls": ("timeouts", None, None),
}
"""Of each kind the trace, and the span of it in seconds."""


def draw(kind: str) -> bytes:
    """The picture of a kind as SVG."""
    trace, from_s, to_s = SHOWN[kind]
    analysis = tcpfit.analyze(SAMPLES / f"{trace}.pcap.gz", from_s=from_s, to_s=to_s, segments=True)
    return figures.render(figures.draw(analysis, kind), ".svg")


if __name__ == "__main__":
    for name in figures.KINDS:
        (HERE / "figures" / f"{name}.svg").write_bytes(draw(name) + b"\n")
