"""The tables of some time only, so that parameters can be estimated for it.

Events of that time, rounds that begin in it, and of the flows what is counted: segments sent are those of the rounds,
losses and loss events those of the events, the round trip is the mean of the rounds' by their ACKs. What belongs to the
path or to the handshake (least round trip, SMSS, options) stays as it is.
**Validation**: tests/diagnosis/test_excerpt.py.
"""

from __future__ import annotations

import polars as pl


def excerpt(
    flows: pl.DataFrame, events: pl.DataFrame, rounds: pl.DataFrame, start_ns: int, end_ns: int
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Flows, events and rounds of the time from `start_ns` to `end_ns`; flows that have no round in it are left out."""
    within = rounds.filter(pl.col("start_ns").is_between(start_ns, end_ns, closed="left"))
    happened = events.filter(pl.col("time_ns").is_between(start_ns, end_ns, closed="left"))
    acks = pl.col("acks").filter(pl.col("rtt_s").is_not_null())
    by_rounds = within.group_by("flow").agg(
        pl.col("sent_segments").sum().alias("_sent"),
        pl.col("acked_bytes").sum().alias("_acked"),
        acks.sum().alias("_samples"),
        ((pl.col("rtt_s") * pl.col("acks")).sum() / acks.sum()).alias("_rtt"),
    )
    lost, loss_events = pl.col("kind") == "loss", pl.col("kind") == "loss_event"
    by_events = happened.group_by("flow").agg(
        pl.col("segments").filter(lost).sum().alias("_lost"), loss_events.sum().alias("_events")
    )
    joined = flows.join(by_rounds, on="flow").join(by_events, on="flow", how="left", maintain_order="left")
    sent = pl.col("_sent").cast(pl.UInt64)
    missed = pl.col("missing_segments") * sent / pl.max_horizontal(pl.col("sent_segments"), 1)
    segments = pl.col("_lost").fill_null(0).cast(pl.UInt64)
    cut = joined.with_columns(
        first_ns=pl.max_horizontal(pl.col("first_ns"), start_ns),
        last_ns=pl.min_horizontal(pl.col("last_ns"), end_ns),
        sent_segments=sent,
        data_segments=sent,
        unique_bytes=pl.col("_acked").cast(pl.UInt64),
        acked_bytes=pl.col("_acked").cast(pl.UInt64),
        missing_segments=missed.round().cast(pl.UInt64),
        lost_segments=segments,
        lost_low=segments,
        lost_high=segments,
        loss_events=pl.col("_events").fill_null(0).cast(pl.UInt64),
        rtt_samples=pl.col("_samples").cast(pl.UInt64),
        rtt_mean_s=pl.when(pl.col("_rtt").is_finite()).then("_rtt").otherwise("rtt_mean_s"),
    )
    return cut.select(flows.columns), happened, within
