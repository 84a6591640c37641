"""ACK loss: ACKs are lost on the way back to the sender.

**Claim**: how many of the receiver's packets are missing at the capture point.
**Rule**: the receiver numbers its packets one by one, and numbers (IP identifications) are missing at random: ten at
least, one in a hundred at least; steps of one are as frequent as a loss of that share leaves them (0.7 of that, a
fifth of all at least). A counter that the host shares among connections skips numbers too, so a missing number must
also have carried an ACK: the ACK after a gap advances by half as much again as one after no gap (median). Numbers
missing at random are lost; ones missing at a fixed stride are `ack_thinning`'s.
**Evidence**: the packets after the gaps. Shows only behind the loss: at the sender or between; the receiver's capture
holds what it sent. Silent where the capture itself lost packets (data acknowledged but not seen), and for IPv6, which
has no identification.
**Remedy**: ACKs are cumulative, so some loss costs little; bursts come from larger advances, and a lost ACK of the
tail costs a timer. Look at the reverse path: its queue, its rate, its radio.
**Validation**: docs/diagnosis/ack-loss.md; tests/test_findings.py.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.view import SYN, View, in_frames, named

NAME = "ack-loss"
LEAST, SHARE = 10, 0.01
ONE, RANDOM, SMALL, LARGEST = 0.2, 0.7, 0.98, 100
ADVANCE = 1.5


def find(view: View) -> Finding | None:
    if view["vantage"] == "receiver" or view["vantage"] == "unknown" or view["missing_segments"] > 0:
        return None
    gaps = steps(view)
    if gaps is None:
        return None
    step = gaps["step"].to_numpy()
    missing = int(np.sum(step - 1))
    share = missing / (missing + gaps.height + 1)
    if missing < LEAST or share < SHARE or np.mean(step == 1) < max(ONE, RANDOM * (1 - share)):
        return None
    pure = gaps.filter((pl.col("payload") == 0) & (pl.col("advance") > 0))
    after = pure.filter(pl.col("step") > 1)["advance"]
    plain = pure.filter(pl.col("step") == 1)["advance"]
    if (
        len(after) < LEAST / 2
        or len(plain) < LEAST
        or float(str(after.median())) < ADVANCE * float(str(plain.median()))
    ):
        return None
    frames = named(gaps.filter(pl.col("step") > 1)["frame"].head(10))
    return Finding(
        name=NAME,
        claim=f"{missing} of {missing + gaps.height + 1} packets of {view['dst']} ({share:.1%}), nearly all "
        "of them ACKs, were "
        "lost before the capture point.",
        frames=frames,
        display_filter=in_frames(frames),
        remedy="Look at the way back from the receiver: a queue that overflows, an asymmetric link, radio "
        "loss, or a device "
        "that drops ACKs on purpose.",
        confidence=0.9,
        seconds=None,
    )


def steps(view: View) -> pl.DataFrame | None:
    """The receiver's packets with `step` of the identification and `advance` of the ACK; None where it does not count.

    Packets whose identification is lower than the one before are left out.
    """
    back = view.received
    if back is None or back.is_empty():
        return None
    back = back.filter((pl.col("flags") & SYN == 0) & pl.col("ip_id").is_not_null())
    step = (pl.col("ip_id").cast(pl.Int32).diff() % 65536).alias("step")
    back = back.with_columns(step, (pl.col("edge") - pl.col("edge").cum_max().shift()).alias("advance")).drop_nulls(
        "step"
    )
    if back.height < 5 * LEAST:
        return None
    values = back["step"].to_numpy()
    if np.mean((values >= 1) & (values <= LARGEST)) < SMALL:
        return None
    return back.filter(pl.col("step").is_between(1, LARGEST))
