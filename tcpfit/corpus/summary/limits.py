"""What holds the flows of a corpus back: for every cause its share of flows, of bytes and of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit.corpus.summary.shares import Share, of_sums, share
from tcpfit.diagnosis.causes import CAUSES

if TYPE_CHECKING:
    from tcpfit.corpus.dataset import Corpus


def limits(corpus: Corpus, flows: pl.DataFrame) -> list[dict[str, Any]]:
    """A row a cause that is there: `flows` and `bytes` of which it is the verdict, `time` that the accounting gives it.

    Each is a `Share`; flows are of `summary.flows`, each counts once.
    """
    seconds = _seconds(corpus, flows)
    whole = seconds.group_by("cluster", maintain_order=True).agg(pl.col("seconds").sum())
    rows = []
    for cause in CAUSES:
        mine = pl.col("primary") == cause
        part = seconds.filter(pl.col("cause") == cause).select("cluster", part="seconds")
        sums = whole.join(part, on="cluster", how="left").sort("cluster").fill_null(0.0).filter(pl.col("seconds") > 0)
        of_time = of_sums(sums["part"].to_numpy(), sums["seconds"].to_numpy(), float(flows.height))
        row: dict[str, Any] = {
            "cause": cause,
            "flows": share(mine * pl.col("weight"), "weight", flows),
            "bytes": share(
                mine * pl.col("weight") * pl.col("data_bytes"), pl.col("weight") * pl.col("data_bytes"), flows
            ),
            "time": of_time,
        }
        if any(_some(row[name]) for name in ("flows", "bytes", "time")):
            rows.append(row)
    return sorted(rows, key=lambda row: -(row["time"].share or 0.0))


def _seconds(corpus: Corpus, flows: pl.DataFrame) -> pl.DataFrame:
    known = flows.select("capture", "flow", "cluster", "weight").lazy()
    parts = (
        corpus.causes.select("capture", "flow", pl.col("cause").cast(pl.String), "seconds")
        .join(known, on=["capture", "flow"])
        .collect(engine="streaming")
        .sort("capture", "flow", "cause")
    )
    return (
        parts.group_by("cluster", "cause", maintain_order=True)
        .agg((pl.col("seconds") * pl.col("weight")).sum())
        .sort("cluster", "cause")
    )


def _some(found: Share) -> bool:
    return found.share is not None and found.share > 0
