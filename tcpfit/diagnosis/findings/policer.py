"""Policer: a rate limit that drops what exceeds it instead of queueing it.

**Claim**: the rate and the bucket of the policer, and the share of the data that it dropped.
**Rule**: one token bucket separates the lost transmissions from those that passed (`token_bucket`: it must be right
about 85 % of the losses, and the shares of right losses and of right passed packets must add to 1.8), and the packets
just before the losses were not delayed: by a fifth at most of what a queue of that size would add, where that is 10
ms at least. Those sent while an earlier loss was open do not count: its hole holds up their ACKs.
**Evidence**: the packets that were dropped. Shows only before the policer, at the sender as a rule: behind it the
arrival times of what was dropped are not known. Silent where several flows share the bucket, and for super-segments.
**Remedy**: send below the rate (pacing, a lower ceiling); ask the operator for a shaper, or for a larger bucket.
**Validation**: docs/diagnosis/policer.md; tests/test_findings.py.
"""

from __future__ import annotations

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.token_bucket import fit
from tcpfit.diagnosis.findings.view import View, duration, in_frames, named, rate

NAME = "policer"
UNDELAYED, LEAST_S = 0.2, 0.01


def find(view: View) -> Finding | None:
    bucket = fit(view)
    if bucket is None or bucket.rise_s is None or bucket.delay_s < LEAST_S:
        return None
    if bucket.rise_s > UNDELAYED * bucket.delay_s:
        return None
    frames = named(bucket.frames)
    return Finding(
        name=NAME,
        claim=f"A policer of {rate(bucket.rate * 8)} with a bucket of {bucket.depth / 1000:.0f} kB explains "
        f"{bucket.losses:.0%} "
        f"of the {bucket.lost} losses and {bucket.passed:.0%} of what passed; a queue of that size would have added "
        f"{duration(bucket.delay_s)}, the round trip rose by {duration(max(bucket.rise_s, 0.0))}.",
        frames=frames,
        display_filter=in_frames(frames),
        remedy=f"Keep the sender below {rate(bucket.rate * 8)} (pacing, a lower ceiling), or ask the operator "
        "to shape instead of "
        "police.",
        confidence=0.9,
        seconds=None,
    )
