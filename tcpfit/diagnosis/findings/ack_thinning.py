"""ACK thinning: far fewer ACKs than one for every second segment, so data leaves in bursts.

**Claim**: how many segments an ACK covers, and who withholds the others: the path, or the receiver.
**Rule**: over rounds without a loss or a resend, after one without, that sent eight segments or more, an ACK covers
four segments or more on average (RFC 9293, 3.8.6.3 asks for one for every second full segment), over a hundred segments
at least, and either of: (1) the path drops them: the receiver's identifications count one for every one to two and a
half segments acknowledged (median), so it sent the usual ACKs, half of them at least are missing, and those that come
are a fixed stride apart (the strides vary by less than 0.6 of what random loss of as many would give); (2) seen next to
the receiver, the data that an ACK covers comes over 1 ms or more (median), one segment at a time: a receiver that gets
a batch at once acknowledges it at once, and that is no thinning. Nor is what a receiver does whose buffer is full:
silence where the window closed.
**Evidence**: the receiver's ACKs. (1) shows behind the device only, at the sender as a rule, and not for IPv6, which
has no identification; at the sender a receiver that withholds ACKs and a batch look alike: silence.
**Remedy**: pacing at the sender smooths the bursts (RFC 9002, 7.7 has the reasons).
**Validation**: docs/diagnosis/ack-thinning.md; tests/test_findings.py.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.ack_loss import steps
from tcpfit.diagnosis.findings.view import View, duration, named

NAME = "ack-thinning"
STRIDE, SEGMENTS, ROUND = 4.0, 100, 8
USUAL = (0.8, 2.6)
"""Segments that an ACK of a receiver that keeps to the rule covers: delayed ACKs or not."""
REGULAR, MISSING, SPREAD_S = 0.6, 0.5, 0.001


def find(view: View) -> Finding | None:
    smss = view["smss_bytes"]
    # the ACK that ends a recovery covers what came long before
    calm = (pl.col("phase") == "open") & (pl.col("lost_segments") == 0) & (pl.col("resent_segments") == 0)
    rounds = view.rounds.filter(
        calm & calm.shift(1, fill_value=True) & (pl.col("sent_segments") >= ROUND) & (pl.col("acks") > 0)
    )
    segments = float(rounds["acked_bytes"].sum()) / smss if smss else 0.0
    if segments < SEGMENTS:
        return None
    stride = segments / float(rounds["acks"].sum())
    if stride < STRIDE or view.data is None or view.received is None or view["missing_segments"] > 0 or view["offload"]:
        return None
    if view["zero_window_episodes"] > 0:
        return None
    cause = _withheld(view) if view["vantage"] == "receiver" else _dropped(view, smss, stride)
    if cause is None:
        return None
    acks = view.received.filter(pl.col("payload") == 0)["frame"]
    return Finding(
        name=NAME,
        claim=f"An ACK covers {stride:.1f} segments on average where two are usual: {cause}.",
        frames=named(acks[acks.len() // 2 : acks.len() // 2 + 8]),
        display_filter=view.back("tcp.len == 0"),
        remedy="Let the sender pace (fq, BBR) so that bursts do not fill queues; look for ACK filtering on "
        "the way back or "
        "aggregation at the receiver.",
        confidence=0.85,
        seconds=None,
    )


def _dropped(view: View, smss: int, stride: float) -> str | None:
    """The path drops ACKs at a fixed stride, in words; None where the identifications do not show it. An ACK that comes
    covers `stride` segments."""
    gaps = steps(view)
    if gaps is None or view["vantage"] == "unknown":
        return None
    gaps = gaps.filter((pl.col("payload") == 0) & (pl.col("advance") > 0))
    if gaps.height < ROUND:
        return None
    step = gaps["step"].to_numpy().astype(float)
    each = float(np.median(gaps["advance"].to_numpy() / step)) / smss
    missing = 1.0 - 1.0 / step.mean()
    # strides of packets lost at random are geometric: sd / mean = sqrt(share lost)
    if missing < MISSING or not USUAL[0] <= each <= USUAL[1] or step.std() > REGULAR * np.sqrt(missing) * step.mean():
        return None
    sent = stride * (1.0 - missing)
    return f"{view['dst']} sent one for every {sent:.1f}, and the path drops {missing:.0%} of them at a fixed stride"


def _withheld(view: View) -> str | None:
    """The receiver waits for more data before it acknowledges, in words; None where data came in batches."""
    data, acks = view.data, view.received
    assert data is not None and acks is not None
    acks = acks.filter(pl.col("payload") == 0)
    edge, at = np.maximum.accumulate(acks["edge"].to_numpy()), acks["time_ns"].to_numpy()
    ahead = np.flatnonzero(np.diff(edge, prepend=edge[0]) > 0)
    right, time = data["right"].to_numpy(), data["time_ns"].to_numpy()
    if np.any(np.diff(right) < 0) and np.mean(np.diff(right) < 0) > 0.05:
        return None
    top = np.maximum.accumulate(right)
    first, last = np.searchsorted(top, edge[ahead - 1], "right"), np.searchsorted(top, edge[ahead])
    many = (last - first >= 3) & (last < len(time))
    if many.sum() < ROUND:
        return None
    spread = float(np.median(time[last[many]] - time[first[many]])) / 1e9
    wait = float(np.median(at[ahead[many]] - time[first[many]])) / 1e9
    if spread < SPREAD_S:
        return None
    return f"{view['dst']} waits {duration(wait)} (median) with data that comes one segment at a time"
