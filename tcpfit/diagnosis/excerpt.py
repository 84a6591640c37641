"""The tables of some time only, so that parameters can be estimated for it.

Events of that time, rounds that begin in it, and of the flows what is counted: segments sent are those of the rounds,
losses and loss events those of the events, the round trip is the mean of the rounds' by their ACKs. The places of
events in the stream (left, right, order) count from what was sent before; bytes are cut like the segments that carried
them. What belongs to the path or to the handshake (least round trip, SMSS, options) stays as it is.
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
        NEW.sum().alias("_new"),
        pl.col("acked_bytes").sum().alias("_acked"),
        acks.sum().alias("_samples"),
        ((pl.col("rtt_s") * pl.col("acks")).sum() / acks.sum()).alias("_rtt"),
    )
    lost, loss_events = pl.col("kind") == "loss", pl.col("kind") == "loss_event"
    by_events = happened.group_by("flow").agg(
        pl.col("segments").filter(lost).sum().alias("_lost"), loss_events.sum().alias("_events")
    )
    joined = flows.join(by_rounds, on="flow").join(by_events, on="flow", how="left", maintain_order="left")
    joined = joined.join(_sent_before(flows, rounds, start_ns), on="flow", maintain_order="left")
    sent = pl.col("_sent").cast(pl.UInt64)
    share = pl.col("_sent") / pl.max_horizontal(pl.col("_all"), 1)
    share_of_new = pl.col("_new") / pl.max_horizontal(pl.col("_all_new"), 1)
    missed = pl.col("missing_segments") * sent / pl.max_horizontal(pl.col("sent_segments"), 1)
    segments = pl.col("_lost").fill_null(0).cast(pl.UInt64)
    cut = joined.with_columns(
        first_ns=pl.max_horizontal(pl.col("first_ns"), start_ns),
        last_ns=pl.min_horizontal(pl.col("last_ns"), end_ns),
        sent_segments=sent,
        data_segments=sent,
        **{name: (pl.col(name) * share).round().cast(pl.UInt64) for name in ("data_bytes", "retransmitted_bytes")},
        unique_bytes=(pl.col("unique_bytes") * share_of_new).round().cast(pl.UInt64),
        acked_bytes=pl.col("_acked").cast(pl.UInt64),
        missing_segments=missed.round().cast(pl.UInt64),
        lost_segments=segments,
        lost_low=segments,
        lost_high=segments,
        loss_events=pl.col("_events").fill_null(0).cast(pl.UInt64),
        rtt_samples=pl.col("_samples").cast(pl.UInt64),
        rtt_mean_s=pl.when(pl.col("_rtt").is_finite()).then("_rtt").otherwise("rtt_mean_s"),
    )
    return cut.select(flows.columns), _placed(happened, joined), within


NEW = pl.col("sent_segments").cast(pl.Int64) - pl.col("resent_segments").cast(pl.Int64)
"""Segments of a round that were sent for the first time."""


def _sent_before(flows: pl.DataFrame, rounds: pl.DataFrame, start_ns: int) -> pl.DataFrame:
    """What each flow sent in the rounds before a time, segments and bytes of the stream, and in all rounds."""
    earlier = pl.col("start_ns") < start_ns
    counts = rounds.group_by("flow").agg(
        pl.col("sent_segments").sum().alias("_all"),
        NEW.sum().alias("_all_new"),
        pl.col("sent_segments").filter(earlier).sum().cast(pl.Int64).alias("_order"),
        NEW.filter(earlier).sum().alias("_new_before"),
    )
    stream = pl.col("unique_bytes") * pl.col("_new_before") / pl.max_horizontal(pl.col("_all_new"), 1)
    table = flows.select("flow", "unique_bytes").join(counts, on="flow", maintain_order="left")
    return table.select("flow", "_all", "_all_new", "_order", stream.round().cast(pl.Int64).alias("_before"))


def _placed(events: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """Events with their places counted from what was sent before; what lies before that stands at the beginning."""
    joined = events.join(flows.select("flow", "_before", "_order"), on="flow", maintain_order="left")
    shifts = {"left": "_before", "right": "_before", "order": "_order"}
    return joined.with_columns(
        (pl.col(name).cast(pl.Int64) - pl.col(shift)).clip(0).cast(events.schema[name])
        for name, shift in shifts.items()
    ).select(events.columns)
