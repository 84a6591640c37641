"""Spurious timeouts: a delay spike ran longer than the retransmission timer, nothing was lost.

**Claim**: how many timeouts were needless, and how long the path held the data against the timer.
**Rule**: a first timeout of a series whose resend is labelled spurious (the original's ACK came: DSACK, Eifel or the
others of docs/inference.md), at least once, with no loss among what was sent in the time of the timer and a round trip before
it: an ACK that stays away because of a hole is not a delay. The receiver's capture seldom shows the timeout as such.
**Evidence**: the resend of each and the packet that proves it needless.
**Remedy**: find the spike (radio, bufferbloat by others, a host that sleeps). F-RTO (RFC 5682) or Eifel at the sender
undoes the cut of the window; without, it starts again from one segment.
**Validation**: docs/diagnosis/spurious-timeouts.md; tests/diagnosis/test_findings.py.
"""

from __future__ import annotations

import polars as pl

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.view import View, duration, in_frames, named, times

NAME = "spurious-timeouts"
PROOF = ("dsack", "eifel", "seen-twice", "ack-jump", "too-early", "discarded")


def find(view: View) -> Finding | None:
    expired = view.of("timeout").filter((pl.col("segments") == 0) & (pl.col("reason") != "syn"))
    needless = view.of("spurious").filter(pl.col("reason").cast(pl.String).is_in(PROOF))
    proved = expired.join(needless.select("left", proof="cause_frame", copy="frame"), on="left", how="inner")
    proved = (
        proved.filter((pl.col("frame") == pl.col("copy")) | pl.col("frame").is_null()).unique("time_ns").sort("time_ns")
    )
    losses = view.of("loss")["time_ns"].to_numpy()
    reach = proved["value"].fill_null(0.0).to_numpy() + (view["rtt_mean_s"] or 0.0)
    clean = [
        not ((losses >= at - wait * 1e9) & (losses <= at)).any()
        for at, wait in zip(proved["time_ns"].to_numpy(), reach, strict=True)
    ]
    proved = proved.filter(pl.Series(clean, dtype=pl.Boolean))
    if proved.is_empty():
        return None
    wait = proved["value"].median()
    usual = view["rtt_mean_s"]
    timer = f" after {duration(float(str(wait)))}" if wait is not None else ""
    rtt = f", with a mean round trip of {duration(usual)}" if usual else ""
    frames = named([*proved["frame"], *proved["proof"]])
    return Finding(
        name=NAME,
        claim=f"{proved.height} of {times(expired.height, 'timeout')} {'was' if proved.height == 1 else 'were'} spurious: "
        f"the timer ran out{timer}{rtt}, and the original had arrived: the path held it up and lost nothing.",
        frames=frames,
        display_filter=in_frames(frames),
        remedy="Find what holds packets up (radio link, hand-over, a queue that others fill, a sleeping host); switch F-RTO "
        "(RFC 5682) and timestamps on at the sender, so that the window is restored.",
        confidence=0.9,
        seconds=None,
    )
