"""Handoffs: reordering that comes at regular intervals.

**Claim**: how many reordering events, how far apart, how late the packets were.
**Rule**: six reordering events at least that keep one clock: their distances are one to three periods (an event in
which nothing was overtaken does not show), half of them one, and every event lies within 0.15 of a period of the
straight line through all: distances drawn at random drift off it. The period is ten round trips at least, so it is
not the flow's own.
**Evidence**: the late packets.
**Remedy**: a satellite or radio hand-over, a route that flaps, or a load balancer that moves flows at intervals: fix
the path, or let the sender tolerate it (RACK, RFC 8985; a larger duplicate-ACK threshold).
**Validation**: docs/diagnosis/handoffs.md; tests/test_findings.py.
"""

from __future__ import annotations

import numpy as np

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.view import View, duration, in_frames, named

NAME = "handoffs"
LEAST, MULTIPLES, TOLERANCE, ROUNDS = 6, 3, 0.15, 10


def find(view: View) -> Finding | None:
    events = view.of("reorder_event")
    if events.height < LEAST:
        return None
    period = _period((events["time_ns"].to_numpy() - events["time_ns"][0]) / 1e9)
    rtt = view["rtt_mean_s"] or view["handshake_rtt_s"]
    if period is None or not rtt or period < ROUNDS * rtt:
        return None
    late, depth = events["value"].median(), events["segments"].median()
    frames = named(events["frame"])
    held = f", by {duration(float(str(late)))} (median)" if late is not None and float(str(late)) > 0 else ""
    return Finding(
        name=NAME,
        claim=f"Every {duration(period)} packets arrive out of order, {events.height} times: "
        f"{float(str(depth)):.0f} late {'packet' if float(str(depth)) == 1 else 'packets'} a time{held}.",
        frames=frames,
        display_filter=in_frames(frames),
        remedy="Look for what the path does at that interval: a satellite or radio hand-over, a flapping route, a load "
        "balancer; RACK (RFC 8985) at the sender tolerates it.",
        confidence=0.9,
        seconds=None,
    )


def _period(times_s: np.ndarray) -> float | None:
    """The period of a clock that all times keep, in s; None if there is none."""
    distances = np.diff(times_s)
    shortest = distances.min()
    if shortest <= 0:
        return None
    base = float(np.median(distances[distances <= 1.5 * shortest]))
    multiples = np.maximum(np.rint(distances / base), 1)
    if multiples.max() > MULTIPLES or np.mean(multiples == 1) < 0.5:
        return None
    ticks = np.concatenate(([0.0], np.cumsum(multiples)))
    period, start = np.polyfit(ticks, times_s, 1)
    kept = np.abs(times_s - start - period * ticks) <= TOLERANCE * period
    return float(period) if kept.all() else None
