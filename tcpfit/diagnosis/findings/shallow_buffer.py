"""Shallow buffer: the bottleneck's queue overflows before it can carry the flow over a window's cut.

**Claim**: the rate of the bottleneck, the size of its queue in bytes and time, beside the round trip.
**Rule**: one drop-tail queue separates the lost transmissions from those that passed (`token_bucket`, whose tokens
are the queue's free room; it must be right about 98 % of what passed, since a wrong rate fits less well), the packets
just before the losses were delayed by half of what that queue adds when full at least, and that is less than 3/7 of the
smallest round trip: a window cut to 0.7 (CUBIC, RFC 9438) empties a queue that holds less than 0.3/0.7 of a round trip,
one cut to 0.5 one that holds less than a whole one (Appenzeller, Keslassy, McKeown, SIGCOMM 2004).
**Evidence**: the packets that were dropped. Shows only before the queue, at the sender as a rule; silent where
several flows fill it, and for super-segments.
**Remedy**: a larger queue at the bottleneck, pacing at the sender, or a control that does not fill queues (BBR).
**Validation**: docs/diagnosis/shallow-buffer.md; tests/test_findings.py.
"""

from __future__ import annotations

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.token_bucket import fit
from tcpfit.diagnosis.findings.view import View, duration, in_frames, named, rate

NAME = "shallow-buffer"
DELAYED, SHALLOW, EXACT = 0.5, 3 / 7, 0.98


def find(view: View) -> Finding | None:
    bucket, rtt = fit(view), view["rtt_min_s"]
    if bucket is None or bucket.rise_s is None or not rtt or bucket.delay_s > SHALLOW * rtt:
        return None
    if bucket.rise_s < DELAYED * bucket.delay_s or bucket.passed < EXACT:
        return None
    frames = named(bucket.frames)
    return Finding(
        name=NAME,
        claim=f"A queue of {bucket.depth / 1000:.0f} kB at {rate(bucket.rate * 8)} explains "
        f"{bucket.losses:.0%} of the {bucket.lost} "
        f"losses: it holds {duration(bucket.delay_s)} of data, the round trip is {duration(rtt)}.",
        frames=frames,
        display_filter=in_frames(frames),
        remedy="Give the bottleneck a queue of half a round trip at least, pace at the sender, or use a "
        "congestion control "
        "that does not need to fill the queue (BBR).",
        confidence=0.85,
        seconds=None,
    )
