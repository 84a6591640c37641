"""Every model's predicted rate beside the observed one, over the flows on which its assumptions hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tcpfit.corpus.summary.spread import QUANTILES, weighted_quantiles
from tcpfit.ranking.table import BASELINES

if TYPE_CHECKING:
    from tcpfit.corpus.dataset import Corpus

NEAR = 0.15
"""|ln(predicted/observed)| up to which a prediction counts as near."""

RESIDUAL_EDGES = np.round(np.arange(-2.0, 2.01, 0.1), 10)
CELLS_PER_DECADE = 10


def ranked(corpus: Corpus, flows: pl.DataFrame) -> pl.DataFrame:
    """A row a flow and model that predicted a rate, baselines left out, with the conditions of the flow."""
    known = flows.lazy()
    return (
        corpus.rankings.filter(~pl.col("model").is_in(list(BASELINES)) & pl.col("log_ratio").is_finite())
        .select("capture", "flow", "model", "rank", "applicable", "predicted_bps", "log_ratio")
        .join(known, on=["capture", "flow"])
        .with_columns(first=pl.col("rank") == 1, is_named=pl.col("named").list.contains(pl.col("model")))
        .collect(engine="streaming")
        .sort("capture", "flow", "model")
    )


def fits(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Models, the one that ranks first most often first: flows on which it applies, ranks `first` and is `named`
    by the verdict; quantiles of ln(predicted/observed), the share within `NEAR`, its histogram (what lies beyond
    the edges is in the outermost bins) and the `cells` of predicted against observed: log10 of their lower ends, of
    which `per_decade` make a decade, and flows.
    """
    rows = []
    for (model,), part in table.partition_by("model", as_dict=True, maintain_order=True).items():
        on = part.filter(pl.col("applicable")).sort("log_ratio", maintain_order=True)
        row: dict[str, Any] = {
            "model": model,
            "predicted": float(part["weight"].sum()),
            "flows": float(on["weight"].sum()),
            "first": float(on.filter(pl.col("first"))["weight"].sum()),
            "named": float(on.filter(pl.col("is_named"))["weight"].sum()),
        }
        if on.height:
            value, weight = on["log_ratio"].to_numpy(), on["weight"].to_numpy()
            counts, _ = np.histogram(np.clip(value, -1.999, 1.999), bins=RESIDUAL_EDGES, weights=weight)
            row |= {
                "quantiles": dict(zip(map(str, QUANTILES), weighted_quantiles(value, weight, QUANTILES), strict=True)),
                "near": float(weight[np.abs(value) <= NEAR].sum() / weight.sum()),
                "edges": RESIDUAL_EDGES.tolist(),
                "counts": [float(count) for count in counts],
                "per_decade": CELLS_PER_DECADE,
                "cells": _cells(on),
            }
        rows.append(row)
    return sorted(rows, key=lambda row: (-row["first"], -row["flows"], row["model"]))


def _cells(on: pl.DataFrame) -> list[dict[str, float]]:
    def cell(column: str) -> pl.Expr:
        return (pl.col(column).log10() * CELLS_PER_DECADE).floor() / CELLS_PER_DECADE

    observed = on.with_columns(observed_bps=pl.col("predicted_bps") / pl.col("log_ratio").exp())
    return (
        observed.filter((pl.col("predicted_bps") > 0) & (pl.col("observed_bps") > 0))
        .group_by(observed=cell("observed_bps"), predicted=cell("predicted_bps"), maintain_order=True)
        .agg(flows=pl.col("weight").sum())
        .sort("observed", "predicted")
        .to_dicts()
    )
