"""What became of the captures of a corpus, and what of them was not analysed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from tcpfit.corpus.dataset import Corpus


def captures(corpus: Corpus, most: int = 100) -> dict[str, Any]:
    """Totals, captures by `status`, the first `most` of the `failures`, `skipped` packets by reason, and how many
    captures are `warned` of; the sentences name frames and bytes of theirs, and are in the table `captures`."""
    table = corpus.captures.collect()
    failed = table.filter(pl.col("status") != "analysed").sort("status", "path")
    skipped = (
        table.select("capture", "skipped")
        .explode("skipped", empty_as_null=True, keep_nulls=False)
        .filter(pl.col("skipped").is_not_null())
        .unnest("skipped")
        .group_by("reason")
        .agg(pl.col("packets").sum(), captures=pl.len())
        .sort("packets", "reason", descending=[True, False])
    )
    warned = table.filter(pl.col("warnings").list.len() > 0)
    status = table.group_by("status").len().sort("len", "status", descending=[True, False])
    start = table["start_time"].min()
    end = (table["start_time"] + table["duration_s"]).max()
    return {
        "captures": table.height,
        "copies": int(table["copies"].list.len().sum() or 0),
        "status": dict(status.iter_rows()),
        "file_bytes": int(table["file_bytes"].sum() or 0),
        "packets": int(table["packets"].sum() or 0),
        "tcp_segments": int(table["tcp_segments"].sum() or 0),
        "start_time": start,
        "end_time": end,
        "failures": failed.head(most).select("path", "status", "reason").to_dicts(),
        "failures_left_out": max(0, failed.height - most),
        "skipped": skipped.to_dicts(),
        "warned": warned.height,
    }
