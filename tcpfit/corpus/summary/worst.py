"""The flows that lose most by the cause that their verdict names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from tcpfit.corpus.dataset import Corpus

SHOWN = (
    "capture", "path", "flow", "src", "src_port", "dst", "dst_port", "primary", "who", "goodput_bps", "rate_bps",
    "low_bps", "high_bps", "gain_bps", "gain_s", "remedy", "confidence",
)  # fmt: skip


def worst(corpus: Corpus, flows: pl.DataFrame, most: int = 20) -> list[dict[str, Any]]:
    """Flows by the seconds that their verdict's cause cost, most first; of several captures of one flow, the
    dearest. Flows whose cost is not known are left out."""
    cost = corpus.causes.select(
        "capture", "flow", pl.col("cause").cast(pl.String), "rate_bps", "low_bps", "high_bps", "gain_bps", "gain_s"
    ).filter(pl.col("gain_s") > 0)
    return (
        flows.lazy()
        .filter(pl.col("primary") != "unknown")
        .join(cost, left_on=["capture", "flow", "primary"], right_on=["capture", "flow", "cause"])
        .sort(["gain_s", "capture", "flow"], descending=[True, False, False])
        .unique("group", keep="first", maintain_order=True)
        .head(most)
        .select(SHOWN)
        .collect()
        .to_dicts()
    )
