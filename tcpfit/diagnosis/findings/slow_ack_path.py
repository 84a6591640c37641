"""Slow ACK path: ACKs queue on the way back to the sender, so that the round trip is long and data leaves in bursts.

**Claim**: how far apart ACKs come, whatever they cover, and how much longer than at its least the round trip is.
**Rule**: of the times between two ACKs without data, a hundred at least and outside of recoveries as within, nine in
ten are within a tenth of the median, which is 1 ms at least; what the largest tenth of them covers is twice what the
smallest tenth does, at least; and the mean round trip exceeds the least by half of that and by three such times. A
bottleneck of the data sets ACKs that cover more further apart; a receiver that acknowledges by a clock adds no more
than one of its periods.
**Evidence**: ACKs in the middle of the flow. Shows behind the queue only, at the sender as a rule. Silent where ACKs
all cover the same: then they come as evenly behind a bottleneck of the data.
**Remedy**: more rate on the way back, or ACKs ahead of other traffic there (a queue for small packets, FQ-CoDel);
fewer ACKs (RFC 3449 has what paths with little rate one way can do).
**Validation**: docs/diagnosis/slow-ack-path.md; tests/test_findings.py.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.view import View, duration, named, rate

NAME = "slow-ack-path"
ACKS, APART_S = 100, 0.001
EVEN, NEAR, VARIED = 0.9, 0.1, 2.0
LONGER, PERIODS = 0.5, 3.0


def find(view: View) -> Finding | None:
    if view["vantage"] not in ("sender", "middle") or view.received is None or not view["rtt_min_s"]:
        return None
    acks = view.received.filter(pl.col("payload") == 0)
    if acks.height <= ACKS:
        return None
    apart = np.diff(acks["time_ns"].to_numpy()) / 1e9
    covers = np.diff(np.maximum.accumulate(acks["edge"].to_numpy())) / view["smss_bytes"]
    covers = covers[covers > 0]
    if not len(covers):
        return None
    usual = float(np.median(apart))
    least, longer_s = float(view["rtt_min_s"]), float(view["rtt_mean_s"]) - float(view["rtt_min_s"])
    low, middle, high = (float(value) for value in np.quantile(covers, (0.1, 0.5, 0.9)))
    if usual < APART_S or np.mean(np.abs(apart - usual) <= NEAR * usual) < EVEN or high < VARIED * low:
        return None
    if longer_s < max(LONGER * least, PERIODS * usual):
        return None
    bits = 8 * float(np.median(acks["wire_bytes"].to_numpy())) / usual
    return Finding(
        name=NAME,
        claim=f"ACKs come {duration(usual)} apart whatever they cover ({low:.0f} to {high:.0f} segments, {middle:.0f} "
        f"usually): they queue on the way back, which carries some {rate(bits)} of them. The round trip is "
        f"{duration(longer_s)} longer than at its least.",
        frames=named(acks["frame"][acks.height // 2 : acks.height // 2 + 8]),
        display_filter=view.back("tcp.len == 0"),
        remedy="Give the way back more rate, or ACKs a queue of their own there (FQ-CoDel does); an uplink that other "
        "traffic fills is the usual case.",
        confidence=0.85,
        seconds=None,
    )
