"""Rate times round-trip time against loss: where flows lie, and where models of loss put them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from tcpfit import models
from tcpfit.corpus.summary.spread import weighted_quantiles

LEAST_EVENTS = 4
"""Loss events of a flow, without which its p says little."""

PER_DECADE = 10
CURVES: dict[str, dict[str, float]] = {"mathis": {}, "pftk-full": {"b": 1.0}, "tfrc": {}}
"""Models drawn, and what they are given beside p, RTT and timeout; Linux grows by acknowledged segments, so b = 1."""
POINTS = 60
BY_LOSS = ("loss-limited", "timeout-limited")


def loss_law(flows: pl.DataFrame) -> dict[str, Any]:
    """`cells` of flows, `per_decade` a decade: lower ends of log10 of p and of rate x RTT in segments, whether their
    diagnosis names losses; `curves` of models in the same units, for the median of rto/rtt; empty where no flow has
    enough losses."""
    some = flows.filter(
        (pl.col("loss_events") >= LEAST_EVENTS)
        & (pl.col("p") > 0)
        & (pl.col("rate") > 0)
        & pl.col("rtt").is_finite()
        & (pl.col("rtt") > 0)
    ).with_columns(x=pl.col("p").log10(), y=(pl.col("rate") * pl.col("rtt")).log10())
    if not some.height:
        return {"flows": 0.0, "per_decade": PER_DECADE, "cells": [], "curves": []}
    cells = (
        some.group_by(
            x=(pl.col("x") * PER_DECADE).floor() / PER_DECADE,
            y=(pl.col("y") * PER_DECADE).floor() / PER_DECADE,
            by_loss=pl.col("primary").is_in(list(BY_LOSS)),
            maintain_order=True,
        )
        .agg(flows=pl.col("weight").sum())
        .sort("x", "y", "by_loss")
    )
    ratio = some.filter(pl.col("rto").is_finite()).with_columns(over=pl.col("rto") / pl.col("rtt"))
    ratio = ratio.sort("over", maintain_order=True)
    over = weighted_quantiles(ratio["over"].to_numpy(), ratio["weight"].to_numpy(), (0.5,))[0] if ratio.height else 4.0
    x = some["x"].to_numpy()
    p = np.logspace(x.min() - 0.1, min(0.0, x.max() + 0.1), POINTS)
    return {
        "flows": float(some["weight"].sum()),
        "per_decade": PER_DECADE,
        "rto_over_rtt": over,
        "cells": cells.to_dicts(),
        "curves": [curve for name, extra in CURVES.items() if (curve := _curve(name, p, over, extra)) is not None],
    }


def _curve(name: str, p: Any, over: float, extra: dict[str, float]) -> dict[str, Any] | None:
    model = models.get(name)
    wanted = {each.name for each in model.parameters}
    given = {"p": p, "rtt": np.ones_like(p), "rto": np.full_like(p, over)}
    given |= {key: np.full_like(p, value) for key, value in extra.items()}
    with np.errstate(all="ignore"):
        rate = np.asarray(model.predict(**{key: value for key, value in given.items() if key in wanted}), float)
    good = np.isfinite(rate) & (rate > 0)
    if not good.any():
        return None
    return {"model": name, "x": np.log10(p[good]).tolist(), "y": np.log10(rate[good]).tolist()}
