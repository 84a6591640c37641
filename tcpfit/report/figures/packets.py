"""The segments of a flow and what answered them, as the figures need them: times from the start of the capture, offsets
from the initial sequence number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import polars as pl

from tcpfit.report import traffic
from tcpfit.report.figures.kind import flow_row, start_ns

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis


@dataclass(frozen=True)
class Packets:
    """Tables in the capture's order, `t` in seconds.

    `data`: t, left, right, frame, tsecr of every segment with payload. `acks`: t, acked, frame, tsval and window in
    bytes (null where the scale is not known) of every packet of the other side with ACK. `sacks`: t, left, right,
    frame, repeated (a D-SACK, RFC 2883) of every block.
    """

    data: pl.DataFrame
    acks: pl.DataFrame
    sacks: pl.DataFrame


_KNOWN: WeakKeyDictionary[Analysis, dict[int, Packets]] = WeakKeyDictionary()


def packets(analysis: Analysis, flow: int) -> Packets:
    """The packets of a flow; they are kept as long as the analysis is, since several figures show them.

    Raises InvalidParameter for a flow that the capture does not have, and for an analysis without segments.
    """
    known = _KNOWN.setdefault(analysis, {})
    if flow not in known:
        known[flow] = _packets(analysis, flow)
    return known[flow]


def _packets(analysis: Analysis, flow: int) -> Packets:
    row = flow_row(analysis, flow)
    table = traffic.labelled(analysis, [flow]).with_columns(t=(pl.col("time_ns") - start_ns(analysis)) / 1e9)
    data = table.filter(pl.col("flow") == flow, pl.col("payload") > 0).select("t", "left", "right", "frame", "tsecr")
    heard = table.filter(
        pl.col("reverse") == flow, pl.col("acked").is_not_null(), (pl.col("flags") & traffic.RST) == 0
    ).with_columns(pl.col("acked").cum_max().alias("edge"))
    shift = row["window_scale_low"] if row["window_scale_low"] == row["window_scale_high"] else None
    scaled = pl.when((pl.col("flags") & traffic.SYN) != 0).then(0).otherwise(pl.lit(shift, pl.Int64))
    window = pl.col("window").cast(pl.Int64) * pl.lit(2, pl.Int64).pow(scaled)
    acks = heard.select("t", "acked", "frame", "tsval", window.alias("window"))
    return Packets(data, acks, _sacks(heard))


def _sacks(heard: pl.DataFrame) -> pl.DataFrame:
    """A row a block. The first block repeats (RFC 2883, 4) if it lies below the ACK, or within the second one."""
    with_blocks = heard.filter(pl.col("sack").list.len() >= 2)
    edges = pl.col("acked") + (pl.col("edges").cast(pl.Int64) - pl.col("ack").cast(pl.Int64) + 2**31) % 2**32 - 2**31
    blocks = (
        with_blocks.select("t", "acked", "ack", "frame", edges="sack")
        .explode("edges")
        .with_columns(edge=edges, place=pl.int_range(pl.len()).over("frame"))
        .with_columns(block=pl.col("place") // 2)
        .group_by("frame", "block", maintain_order=True)
        .agg(pl.col("t", "acked").first(), left=pl.col("edge").first(), right=pl.col("edge").last(), ends=pl.len())
        .filter(pl.col("ends") == 2)
    )
    following = [pl.col(name).shift(-1).over("frame") for name in ("left", "right")]
    inside = (pl.col("left") >= following[0]) & (pl.col("right") <= following[1])
    repeated = (pl.col("block") == 0) & ((pl.col("right") <= pl.col("acked")) | inside.fill_null(False))
    return blocks.with_columns(repeated=repeated).select("t", "left", "right", "frame", "repeated")
