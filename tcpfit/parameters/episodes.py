"""Episodes of loss recovery: what each began and ended with, and the losses that it repaired.

An episode is a fast recovery (RFC 5681, 3.2; RFC 6582; RFC 6675) or what follows an expiry of the retransmission timer
(RFC 6298, 5.4), until all that was outstanding at its start is acknowledged, another timeout breaks it off, or an ACK
takes it back (RFC 3522).

A loss belongs to the first episode that ends after the lost transmission was sent, for nothing repairs it before. New
data that are sent while a recovery is under way lie above what it covers and belong to the next.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit.schema import EVENTS, F64, I64, U32, Column, check_tables

_OF_EVENTS = {column.name: column for column in EVENTS}

EPISODES = (
    Column("flow", U32, "", "number of the flow"),
    Column(
        "start_ns",
        I64,
        "ns",
        "first resend of the recovery, or end of the one before that left a hole; expiry of the timer",
    ),
    Column("end_ns", I64, "ns", _OF_EVENTS["end_ns"].meaning),
    Column("kind", _OF_EVENTS["kind"].dtype, "", "recovery or timeout"),
    Column("reason", _OF_EVENTS["reason"].dtype, "", "the rule that says so"),
    Column("frame", _OF_EVENTS["frame"].dtype, "", "frame it began with; null if the packet is not in the capture"),
    Column("losses", U32, "segments", "losses that it repaired"),
    Column("flight", F64, "segments", "data outstanding at its start"),
    Column("flight_after", F64, "segments", "data outstanding at its end"),
    Column("timeout_follows", _OF_EVENTS["timeout_follows"].dtype, "", "of a recovery: a timeout broke it off"),
)
"""Columns of the table that `tcpfit.parameters.episodes` returns."""


def episodes(flows: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Every recovery and timeout of every flow: columns as in `EPISODES`, by flow and time.

    The tables are those of `tcpfit.schema`. Expiries of the handshake's timer are no episodes. Losses that nothing
    repaired, at the end of a flow, belong to none. Raises InvalidParameter for a table that is none of those.
    """
    check_tables(flows=flows, events=events)
    known = events.filter(pl.col("flow").is_in(flows["flow"].implode()))
    found = known.filter(pl.col("end_ns").is_not_null()).sort("flow", "time_ns", maintain_order=True)
    lost = known.filter(pl.col("kind") == "loss").sort("flow", "time_ns", maintain_order=True)
    counts = np.zeros(len(found), np.int64)
    for part in found.with_row_index("row").partition_by("flow"):
        rows = part["row"].to_numpy()
        own = lost.filter(pl.col("flow") == part["flow"][0])
        start, end = part["time_ns"].to_numpy(), part["end_ns"].to_numpy()
        right, recovery = part["right"].to_numpy(), (part["kind"] == "recovery").to_numpy()
        sent, left, size = own["time_ns"].to_numpy(), own["left"].to_numpy(), own["segments"].to_numpy()
        at = np.searchsorted(end, sent, side="right")
        inside = np.minimum(at, len(rows) - 1)
        at = at + ((at < len(rows)) & recovery[inside] & (start[inside] <= sent) & (left >= right[inside]))
        repaired = at < len(rows)
        counts[rows] = np.bincount(at[repaired], size[repaired], len(rows)).astype(np.int64)
    table = found.with_columns(pl.Series("losses", counts)).rename({"time_ns": "start_ns"})
    return table.select(column.name for column in EPISODES).cast({c.name: c.dtype for c in EPISODES})
