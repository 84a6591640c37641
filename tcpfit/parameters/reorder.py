"""Reordering: d, a_h and r of Sharma et al., and what the sender made of it.

**Definitions**: an event is what one cause on the path delayed together (kind `reorder_event`). `d` is the mean number
of segments it delayed; `a_h` the mean time between the events' beginnings, in seconds; `r` the round trips until the
late segments' ACKs reach the sender, at least 1: the late time of an event's last segment over the mean round-trip
time, rounded up. The sender **reacted** to an event if a fast recovery or a timeout began with one of its segments and
that resend was needless; `a_h_reacted` is the mean time between the beginnings of such events. It **undid** the
reaction if it was told that the resend was needless, by DSACK, or by an ACK that echoes the late original's timestamp
(RFC 3522): then RFC 4015 and Linux restore the window. The window itself is not seen, and the flight is a poor
witness: held by the receiver's window it looks the same.
**Interval**: Student's over the events, over the gaps between them.
**Departures**: the end of a flow cuts off long gaps: of 3 events `a_h` is 0.7 of the truth in the mean, of 10 all.
The ranking takes the time of the steady part over its events instead (`ranking/blocks.py`), where none is cut off.
**Validation**: tests/parameters/test_windows.py.
**Reference**: Sharma et al., section III and eq 10 (`r` there is a whole number of rounds; the mean need not be).
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit.parameters.evidence import Evidence, once
from tcpfit.parameters.intervals import Estimate, Floats, alike, mean
from tcpfit.schema import check_tables


def d(evidence: Evidence) -> Estimate:
    """Segments that one reordering event delays."""
    events = evidence.of("reorder_event")
    return _other_by_one(mean(events.floats("segments"), events.owner, len(evidence)))


def a_h(evidence: Evidence) -> Estimate:
    """Mean time between reordering events, in seconds; NaN with fewer than two."""
    events = evidence.of("reorder_event")
    time = events.frame["time_ns"].to_numpy()
    same = events.owner[1:] == events.owner[:-1]
    return mean((np.diff(time)[same]) / 1e9, events.owner[1:][same], len(evidence))


def r(evidence: Evidence, rtt: Floats) -> Estimate:
    """Round trips until the ACKs of the late segments arrive, given the flows' mean round-trip times in seconds."""
    events = evidence.of("reorder_event")
    late = events.floats("value")
    with np.errstate(divide="ignore", invalid="ignore"):
        rounds = np.maximum(np.ceil(late / rtt[events.owner]), 1.0)
    return _other_by_one(mean(rounds, events.owner, len(evidence)))


def _other_by_one(found: Estimate) -> Estimate:
    """Where all are the same, another one may be one more, or one less where that is some."""
    return alike(found, np.minimum(found.value - 1.0, 1.0), np.ones(len(found.value)))


def a_h_reacted(evidence: Evidence) -> Estimate:
    """Mean time between reordering events that the sender reacted to, in seconds; NaN with fewer than two."""
    events = evidence.of("reorder_event")
    reacted = events.where(with_reaction(evidence)["reacted"].to_numpy())
    time = reacted.frame["time_ns"].to_numpy()
    same = reacted.owner[1:] == reacted.owner[:-1]
    return mean((np.diff(time)[same]) / 1e9, reacted.owner[1:][same], len(evidence))


def reactions(flows: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Every reordering event and what the sender made of it: columns flow, time_ns, frame, depth, reacted, by, undone.

    `by` is `recovery` or `timeout`; it and `undone` are null where it did not react. Sorted by flow and time.
    Raises InvalidParameter for tables that are none of `tcpfit.schema`.
    """
    check_tables(flows=flows, events=events)
    found = with_reaction(Evidence(flows, events, events.clear()))
    return found.select("flow", "time_ns", "frame", pl.col("segments").alias("depth"), "reacted", "by", "undone")


@once
def with_reaction(evidence: Evidence) -> pl.DataFrame:
    """The reordering events in their order, with `reacted`, `by` and `undone`."""
    begun = pl.concat(
        rows.frame.select("flow", "frame", "time_ns", pl.col("left").alias("at"), pl.lit(by).alias("by"))
        for by, rows in (("recovery", evidence.of("recovery")), ("timeout", evidence.first_timeouts))
    )
    events = evidence.of("reorder_event").frame.with_row_index("row")
    if events.is_empty() or begun.is_empty():
        nothing = {"by": pl.lit(None, pl.String), "undone": pl.lit(None, pl.Boolean), "reacted": pl.lit(False)}
        return events.with_columns(**nothing)
    needless = evidence.of("spurious").frame.drop_nulls("frame").group_by("flow", "frame").agg(pl.col("reason").first())
    # frames rise with the order in which the events took their segments: each event begins with its own first one
    key = ("flow", "frame", "left")
    late = (
        evidence.of("reordering")
        .frame.select(key)
        .join(events.select(*key, "row"), on=key, how="left")
        .sort("flow", "frame", "left")
        .select("flow", pl.col("row").forward_fill(), pl.col("frame").alias("late"), pl.col("left").alias("at"))
        .unique(["flow", "at"], keep="first", maintain_order=True)
    )
    found = (
        begun.join(needless, on=("flow", "frame"))
        .join(late, on=("flow", "at"))
        .join(evidence.flows.select("flow", "timestamps", "vantage"), on="flow")
    )
    # away from the sender, what came first is what the receiver's ACK echoed
    echoed = (pl.col("vantage") != "sender") & pl.col("timestamps") & (pl.col("late") < pl.col("frame"))
    told = pl.col("reason").cast(pl.String).is_in(["dsack", "eifel"]) | echoed
    reaction = (
        found.with_columns(undone=told)
        .sort("time_ns")
        .group_by("row", maintain_order=True)
        .agg(pl.col("by").first(), pl.col("undone").last())
    )
    joined = events.join(reaction, on="row", how="left", maintain_order="left")
    return joined.with_columns(reacted=pl.col("by").is_not_null())
