"""Loss events under named rules, of which three give three counts and so three p, and one another mean.

**Rules**: `one-rtt`, what `flows.loss_events` and `p` count: the losses sent within one smoothed round trip of the
first (RFC 5348, 5.2, a rule in time). `window`: the losses among the W segments that start with the first (Parvez et
al., section II, a rule in segments). `recovery-point`: what the congestion window felt, fast recoveries and series of
timeouts (Padhye et al. 1998, section II-B), what `p_indication` counts. `tfrc`: the events of `one-rtt`, of which p is
the rate that TFRC's receiver computes, `p_tfrc` (RFC 5348, 5.4).
**Symbols**: a loss's `order`, the segments sent before it; W its `flight` and itself, the data outstanding once it was
sent. A loss of k segments takes k places.
**Domain**: the first two rules part where the sender does not send a window in a round trip: after idle time, while
the round trip grows, or where a burst is sent before the window is full (then W here is short of the window). Pieces
of a super-segment share their order. A loss whose flight is not known is of no `window` event. `recovery-point` has
no order: what it felt is a resend, not a loss.
**Validation**: tests/parameters/test_event_rules.py (hand-computed).
**Reference**: Floyd et al. (2008), RFC 5348; Parvez, Mahanti, Williamson (2010), doi:10.1109/TNET.2009.2030889.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit import arguments
from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.intervals import Ints
from tcpfit.schema import F64, I64, U32, U64, Column, check_tables

RULES = {
    "one-rtt": "losses sent within one round trip of the first (RFC 5348, 5.2)",
    "window": "losses among the W segments that start with the first (Parvez et al., section II)",
    "recovery-point": "fast recoveries and series of timeouts (Padhye et al. 1998, section II-B)",
    "tfrc": "those of one-rtt; p from the weighted mean of the last eight loss intervals (RFC 5348, 5.4)",
}

OF_LOSS_EVENTS = ("p", "q", "m", "p_to")
"""The parameters that a rule decides."""

LOSS_EVENTS = (
    Column("flow", U32, "", "number of the flow"),
    Column("rule", pl.Enum(list(RULES)), "", "the rule that makes losses one event"),
    Column("time_ns", I64, "ns", "when its first loss was sent; of recovery-point when the sender reacted"),
    Column("frame", U64, "", "frame of that transmission; null if it is not in the capture"),
    Column("left", U64, "bytes", "its first byte, as an offset from the initial sequence number"),
    Column("segments", U32, "segments", "losses of the event; of recovery-point null"),
    Column("flight", F64, "segments", "data outstanding then, without it"),
    Column("order", U64, "segments", "segments sent before its first loss; of recovery-point null"),
    Column(
        "interval", U64, "segments", "from its first loss to that of the next event (RFC 5348, 5.3); null for the last"
    ),
)
"""Columns of the table that `loss_events` returns."""


def loss_events(flows: pl.DataFrame, events: pl.DataFrame, rule: str = "one-rtt") -> pl.DataFrame:
    """The loss events of every flow under a rule, columns as in `LOSS_EVENTS`, by flow and time.

    `flows` and `events` are tables of `tcpfit.schema`. Raises InvalidParameter for others, and for a rule that is not
    in `RULES`.
    """
    arguments.one_of("rule", rule, RULES)
    check_tables(flows=flows, events=events)
    evidence = Evidence(flows, events, pl.DataFrame(schema={"flow": pl.UInt32(), "round": pl.UInt32()}))
    if rule in ("one-rtt", "tfrc"):
        table = evidence.of("loss_event").frame
    elif rule == "window":
        known = pl.col("flight").is_not_null() & pl.col("flight").is_not_nan()
        losses = evidence.of("loss").frame.filter(known).sort("flow", "order", "left")
        number = window_events(losses["flow"].to_numpy(), losses["order"].to_numpy(), losses["flight"].to_numpy())
        first = pl.exclude("segments").first()
        table = losses.group_by(pl.Series("event", number), maintain_order=True).agg(first, pl.col("segments").sum())
    else:
        felt = evidence.loss_indications.frame
        table = felt.with_columns(segments=pl.lit(None), order=pl.lit(None))
    interval = pl.col("order").cast(pl.Int64).diff().shift(-1).over("flow")
    table = table.with_columns(rule=pl.lit(rule), interval=pl.when(interval >= 0).then(interval))
    return table.select(pl.col(c.name).cast(c.dtype) for c in LOSS_EVENTS)


def under_rule(flows: pl.DataFrame, events: pl.DataFrame, rule: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables with the loss events of a rule in the place of the engine's, from which p, m, q and p_to then come; of
    `tfrc` they are the engine's.

    An event is followed by a timeout if a series of timeouts begins before the next event. Raises InvalidParameter for
    a rule that is not in `RULES`, and for tables that are none of `tcpfit.schema`.
    """
    arguments.one_of("rule", rule, RULES)
    check_tables(flows=flows, events=events)
    if rule in ("one-rtt", "tfrc"):
        return flows, events
    found = loss_events(flows, events, rule).sort("time_ns")
    of_timer = pl.col("kind").cast(pl.String) == "timeout"
    timers = events.filter(of_timer & (pl.col("segments") == 0)).select("flow", "time_ns").sort("time_ns")
    marked = found.select("flow", "time_ns").unique().with_columns(begun=pl.col("time_ns")).sort("time_ns")
    followed = (
        timers.join_asof(marked, on="time_ns", by="flow", check_sortedness=False)
        .select("flow", "begun")
        .drop_nulls()
        .unique()
        .with_columns(timeout_follows=pl.lit(True))
        .rename({"begun": "time_ns"})
    )
    rows = found.join(followed, on=("flow", "time_ns"), how="left").select(
        "flow",
        "time_ns",
        "frame",
        "left",
        "segments",
        "flight",
        "order",
        pl.col("timeout_follows").fill_null(False),
        kind=pl.lit("loss_event"),
        right=pl.col("left"),
        reason=pl.lit("unknown"),
    )
    others = events.filter(pl.col("kind").cast(pl.String) != "loss_event")
    rows = rows.cast({name: events.schema[name] for name in rows.columns})
    table = (
        pl.concat([others, rows], how="diagonal").select(events.columns).sort("flow", "time_ns", maintain_order=True)
    )
    count = rows.group_by("flow").agg(pl.len().cast(flows.schema["loss_events"]).alias("loss_events"))
    counted = flows.drop("loss_events").join(count, on="flow", how="left", maintain_order="left")
    return counted.with_columns(pl.col("loss_events").fill_null(0)).select(flows.columns), table


def window_events(flow: Ints, order: Ints, flight: np.ndarray) -> Ints:
    """Number of the event of each loss; losses come by flow and order, `flight` is without the loss itself."""
    number = np.zeros(len(flow), np.int64)
    event, owner, end = -1, -1, -1.0
    for i in range(len(flow)):
        if flow[i] != owner or order[i] >= end:
            event, owner, end = event + 1, flow[i], float(order[i]) + flight[i] + 1.0
        number[i] = event
    return number
