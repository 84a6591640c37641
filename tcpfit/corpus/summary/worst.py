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


def worst(corpus: Corpus, flows: pl.DataFrame, most: int = 20) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Flows by the seconds that their verdict's cause cost, most first; of several captures of one flow, the dearest.
    Those whose cost the accounting does not know are left out: how many each cause has of them, flows counting once.
    """
    cost = corpus.causes.select(
        "capture", "flow", pl.col("cause").cast(pl.String), "rate_bps", "low_bps", "high_bps", "gain_bps", "gain_s"
    ).filter(pl.col("gain_s") > 0)
    judged = flows.lazy().filter(pl.col("primary") != "unknown")
    dearest = (
        judged.join(cost, left_on=["capture", "flow", "primary"], right_on=["capture", "flow", "cause"])
        .sort(["gain_s", "capture", "flow"], descending=[True, False, False])
        .unique("group", keep="first", maintain_order=True)
        .head(most)
        .select(SHOWN)
        .collect()
        .to_dicts()
    )
    known = corpus.causes.filter(pl.col("gain_s").is_not_null())
    known = known.select("capture", "flow", pl.col("cause").cast(pl.String))
    keys = ["capture", "flow", "primary"]
    without = judged.join(known, left_on=keys, right_on=["capture", "flow", "cause"], how="anti")
    counted = without.collect().sort("capture", "flow").group_by("primary", maintain_order=True)
    number = counted.agg(pl.col("weight").sum()).sort("weight", "primary", descending=[True, False])
    return dearest, dict(number.iter_rows())
