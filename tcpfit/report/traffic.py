"""The segments of a capture beside its flows: which flow a segment belongs to, and its offsets.

Offsets count from the initial sequence number, as those of events do: 0 is the SYN, 1 the first byte of data. Where no
SYN was seen they count from the byte before the first segment, without any segment from the byte before the first ACK.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit.diagnosis.connections import connection_ends, placed
from tcpfit.schema import ENDS

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE")
"""Names of the bits of the flags, lowest first (RFC 9293, 3.1; RFC 3168; RFC 9768)."""


def labelled(analysis: Analysis, flows: Iterable[int] | None = None) -> pl.DataFrame:
    """Segments of the connections of these flows, or of all, with what the flows say about them.

    Added columns: `connection`; `flow`, the flow whose data the sender of the segment sends, and `reverse`, the flow
    that it acknowledges, null where that direction carried no data; `left` and `right`, the range of its payload;
    `acked`, the offset that it acknowledges in the other direction, null without the ACK flag. Segments of connections
    that carried no data are left out where flows are named and have no offsets where they are not.
    """
    segments = analysis.segments
    ends = connection_ends(analysis.conversations.flows, segments)
    if flows is not None:
        wanted = analysis.flows.filter(pl.col("flow").is_in(list(flows)))["connection"].implode()
        segments = segments.join(
            ends.filter(pl.col("connection").is_in(wanted)), on=list(ENDS), how="semi", maintain_order="left"
        )
    known = placed(segments, ends)
    if flows is not None:
        known = known.filter(pl.col("connection").is_in(wanted))  # ports that were used again
    return _offsets(known)


def _signed(difference: pl.Expr) -> pl.Expr:
    """A difference of 32-bit numbers as the nearest step, up or down (RFC 9293, 3.4)."""
    return (difference + 2**31) % 2**32 - 2**31


def _unwrapped(number: pl.Expr, over: list[str]) -> pl.Expr:
    """Steps of a 32-bit number since the first of its direction."""
    return _signed(number.diff().over(over)).fill_null(0).cum_sum().over(over)


def _offsets(segments: pl.DataFrame) -> pl.DataFrame:
    """The columns `left`, `right` and `acked`."""
    over = ["connection", "src", "src_port"]
    has = {name: (pl.col("flags") & bit) != 0 for name, bit in (("syn", SYN), ("ack", ACK), ("rst", RST))}
    number = pl.col("seq").cast(pl.Int64)
    acknowledged = pl.when(has["ack"]).then(pl.col("ack").cast(pl.Int64)).forward_fill().over(over)
    table = segments.with_columns(
        _at=_unwrapped(number, over), _acked=acknowledged, _acked_at=_unwrapped(acknowledged, over)
    )
    # a SYN counts until data have come: a later one opens another connection
    opening = has["syn"] & ((pl.col("payload") > 0).cum_sum().over(over) == 0)
    initial = (
        table.with_columns(_opening=opening)
        .filter(pl.col("connection").is_not_null(), pl.col("_opening") | ~has["rst"])
        .group_by(over, maintain_order=True)
        .agg(
            _isn_at=pl.coalesce(pl.col("_at").filter("_opening").last(), pl.col("_at").first() - 1),
            _isn=pl.coalesce(number.filter("_opening").last(), number.first() - 1),
        )
    )
    answers = (
        table.filter(has["ack"], pl.col("connection").is_not_null())
        .group_by(over, maintain_order=True)
        .agg(_first_ack=pl.col("_acked").first())
        .join(
            initial.select("connection", dst="src", dst_port="src_port", _isn_of_data="_isn"),
            on="connection",
            how="left",
        )
        .filter(~((pl.col("dst") == pl.col("src")) & (pl.col("dst_port") == pl.col("src_port"))))
        .select(*over, _ack_start=_signed(pl.col("_first_ack") - pl.col("_isn_of_data")))
    )
    # where nothing of the data's direction is there, the first ACK is all that tells where it began
    start = pl.when(pl.col("connection").is_not_null()).then(pl.col("_ack_start").fill_null(1))
    left = pl.col("_at") - pl.col("_isn_at") + (has["syn"] & (pl.col("payload") > 0)).cast(pl.Int64)
    return (
        table.join(initial, on=over, how="left", maintain_order="left")
        .join(answers, on=over, how="left", maintain_order="left")
        .with_columns(
            left=left,
            right=left + pl.col("payload").cast(pl.Int64),
            acked=pl.when(has["ack"]).then(start + pl.col("_acked_at")),
        )
        .drop("_at", "_acked", "_acked_at", "_isn_at", "_isn", "_ack_start")
    )


def flag_names(flags: int) -> list[str]:
    """SYN, ACK, ... as in the header."""
    return [name for bit, name in enumerate(FLAGS) if flags & 1 << bit]


def sack_blocks(segment: dict[str, Any]) -> list[tuple[int, int]]:
    """SACK blocks of a labelled segment as ranges of offsets, in the segment's order."""
    if segment["acked"] is None:
        return []
    edges = [segment["acked"] + (edge - segment["ack"] + 2**31) % 2**32 - 2**31 for edge in segment["sack"]]
    return list(zip(edges[::2], edges[1::2], strict=True))
