"""Spurious timeouts: a delay spike ran longer than the retransmission timer, nothing was lost.

**Claim**: how many timeouts were needless, and how long the path held the data against the timer.
**Rule**: a first timeout of a series, no sooner than a mean round trip, whose resend is labelled spurious
(docs/inference.md), and the ACK that first covers it answers the original: it comes sooner after the resend than any
round trip, or it echoes an older timestamp than the resend's (Eifel, RFC 3522) and comes two mean round trips after
the last copy or more; and it has no D-SACK, which an answer to the resend has. So the delay itself is seen. A lost ACK
leads to a needless resend too, but the next ACK then answers the resend, one round trip later. Nothing else may have
been lost in the time of the timer and a round trip before the timeout.
**Evidence**: the resend of each and that ACK. Shows at the sender and between; the receiver's capture seldom shows
that a resend was a timeout, and never that it was too early: silence.
**Remedy**: find the spike (radio, bufferbloat by others, a host that sleeps). F-RTO (RFC 5682) or Eifel at the sender
undoes the cut of the window; without, it starts again from one segment.
**Validation**: docs/diagnosis/spurious-timeouts.md; tests/test_findings.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.view import View, duration, in_frames, named, times

NAME = "spurious-timeouts"
SOON, LATE = 0.95, 2.0
"""Shares of the smallest and of the mean round trip."""


def find(view: View) -> Finding | None:
    if view["vantage"] == "receiver" or view.data is None or view.received is None or view.received.is_empty():
        return None
    expired = view.of("timeout").filter((pl.col("segments") == 0) & (pl.col("reason") != "syn"))
    needless = expired.join(view.of("spurious").select("frame").drop_nulls(), on="frame", how="semi")
    resends = needless.select("frame", wait="value").join(
        view.data.select("frame", "time_ns", "left", "tsval"), on="frame", how="inner", maintain_order="left"
    )
    losses = view.of("loss")["time_ns"].to_numpy()
    at, edge = view.received["time_ns"].to_numpy(), np.maximum.accumulate(view.received["edge"].to_numpy())
    proved: list[tuple[int, int, float, float]] = []
    for resend in resends.iter_rows(named=True):
        before = (resend["wait"] or 0.0) + (view["rtt_mean_s"] or 0.0)
        if (resend["wait"] or 0.0) < (view["rtt_mean_s"] or 0.0):
            continue
        if ((losses >= resend["time_ns"] - before * 1e9) & (losses <= resend["time_ns"])).any():
            continue
        place = int(np.searchsorted(edge, resend["left"], "right"))
        if (
            place < len(at)
            and at[place] > resend["time_ns"]
            and _early(view, view.data, resend, view.received.row(place, named=True))
        ):
            late = (at[place] - resend["time_ns"]) / 1e9
            proved.append((resend["frame"], int(view.received["frame"][place]), resend["wait"] or 0.0, late))
    if not proved:
        return None
    timer, late = (float(np.median([case[column] for case in proved])) for column in (2, 3))
    usual = view["rtt_mean_s"]
    rtt = f"; the mean round trip is {duration(usual)}" if usual else ""
    frames = named(frame for case in proved for frame in case[:2])
    return Finding(
        name=NAME,
        claim=f"{len(proved)} of {times(expired.height, 'timeout')} {'was' if len(proved) == 1 else 'were'} "
        "spurious: the timer ran "
        f"out after {duration(timer)}, and the ACK of the original came {duration(late)} later "
        f"(medians){rtt}: nothing was "
        "lost, the path held packets up.",
        frames=frames,
        display_filter=in_frames(frames),
        remedy="Find what holds packets up (radio link, hand-over, a queue that others fill, a sleeping "
        "host); switch F-RTO "
        "(RFC 5682) and timestamps on at the sender, so that the window is restored.",
        confidence=0.9,
        seconds=None,
    )


def _early(view: View, data: pl.DataFrame, resend: dict[str, Any], ack: dict[str, Any]) -> bool:
    """The ACK answers the original, not the resend."""
    blocks, shortest, usual = ack["sack"], view["rtt_min_s"], view["rtt_mean_s"]
    if shortest is None or usual is None or (blocks and 0 < (ack["ack"] - blocks[0]) % 2**32 < 2**31):
        return False
    late = (ack["time_ns"] - resend["time_ns"]) / 1e9
    if late < SOON * shortest:
        return True
    copies = data.filter((pl.col("left") <= resend["left"]) & (pl.col("right") > resend["left"]))
    last_ns = copies.filter(pl.col("time_ns") < ack["time_ns"])["time_ns"].to_numpy().max()
    # a receiver may answer a later copy with the stamp that it had taken before (RFC 7323, 4.3)
    if resend["tsval"] is None or ack["tsecr"] is None or (ack["time_ns"] - last_ns) / 1e9 < LATE * usual:
        return False
    return bool(0 < (resend["tsval"] - ack["tsecr"]) % 2**32 < 2**31)
