"""Predicted over observed rate of the nearest models, block by block: where in a flow each is right."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit.ranking.by_block import MEAN
from tcpfit.report import words
from tcpfit.report.figures import drawing
from tcpfit.report.figures.kind import Kind, NothingToDraw, flow_row, one_way, start_ns, subtitle

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

MOST = 6
"""Models drawn, those of the lowest ranks."""

SCALES = (1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0)
"""Factors that a bar of full length may stand for; larger errors are cut there."""

FULL, STEP = 0.45, 54
"""Length of the longest bar in rows, and height of a row in pixels."""


def data(analysis: Analysis, flow: int) -> dict[str, pl.DataFrame]:
    """`blocks` (row, model, begin and end in s, ratio: ln(predicted/observed), weight), a row each block and model: the
    models in the order of their ranks, and the mean of the other blocks."""
    row = flow_row(analysis, flow)
    ranked = analysis.ranking.filter(pl.col("flow") == flow, pl.col("rank").is_not_null()).sort("rank")["model"]
    found = analysis.select([flow]).by_block().filter(pl.col("log_ratio").is_not_null())
    names = [*ranked.filter(ranked.is_in(found["model"].unique().implode()))[:MOST], MEAN]
    if not found.height or len(names) == 1:
        why = one_way(row) or "it has too little data to be cut into blocks"
        raise NothingToDraw(f"flow {flow} of {analysis.path} has no errors of models: {why}")
    since = start_ns(analysis)
    places = drawing.time_decimals((int(found["end_ns"].to_numpy().max()) - since) / 1e9)
    table = (
        found.join(pl.DataFrame({"model": names}).with_row_index("row"), on="model")
        .select(
            "row",
            "model",
            begin=(pl.col("start_ns") - since) / 1e9,
            end=(pl.col("end_ns") - since) / 1e9,
            ratio="log_ratio",
            weight="weight",
        )
        .sort("row", "begin")
    )
    return {"blocks": drawing.rounded(table, {"begin": places, "end": places, "ratio": 4, "weight": 4})}


def describe(analysis: Analysis, flow: int) -> str:
    """How far the best model is off in a block, and where most."""
    table = data(analysis, flow)["blocks"]
    best = table.filter(pl.col("row") == 0)
    worst = best.row(int(best["ratio"].abs().arg_max() or 0), named=True)
    typical = math.sqrt(float((best["ratio"] ** 2 * best["weight"]).sum()))
    rows = table["row"].n_unique()
    return (
        f"Predicted over observed rate of {words.plural(rows - 1, 'model')} in {words.plural(best.height, 'block')}: "
        f"{best['model'][0]} is off by a factor of {math.exp(typical):.2f} in a typical one, and by "
        f"{math.exp(abs(worst['ratio'])):.2f} at most, {'above' if worst['ratio'] > 0 else 'below'} the observed rate "
        f"{words.seconds(worst['begin'])} after the start of the capture."
    )


def chart(analysis: Analysis, flow: int, *, theme: str = "light") -> Any:
    """A row a model: a bar each block, upwards where the model predicts more than was observed."""
    alt = drawing.altair()
    row, table = flow_row(analysis, flow), data(analysis, flow)["blocks"]
    names = table.select("row", "model").unique(maintain_order=True)["model"].to_list()
    largest = float(table["ratio"].abs().quantile(0.95, "higher") or 0.0)
    factor = next((factor for factor in SCALES if math.log(factor) >= largest), SCALES[-1])
    full = math.log(factor)
    y = alt.Y(
        "zero:Q",
        title=None,
        scale=alt.Scale(domain=[len(names) - 0.5, -0.5], nice=False, zero=False),
        axis=alt.Axis(
            values=list(range(len(names))),
            labelExpr=f"{json.dumps(names)}[datum.value]",
            labelLimit=220,
            ticks=False,
            domain=False,
        ),
    )
    tooltip = [
        alt.Tooltip("model:N"),
        alt.Tooltip("off:N", title="predicted / observed"),
        alt.Tooltip("begin:Q", title="from (s)"),
        alt.Tooltip("end:Q", title="to (s)"),
    ]
    gap = (table["end"].to_numpy().max() - table["begin"].to_numpy().min()) / drawing.WIDTH
    shown = table.select("row", "begin", "end", "ratio")
    blocks = drawing.source("blocks", shown).transform_calculate(
        zero="datum.row",
        model=f"{json.dumps(names)}[datum.row]",
        until=f"max(datum.end - {gap:.3g}, datum.begin)",
        at=f"datum.row - {FULL} * clamp(datum.ratio / {full:.6f}, -1, 1)",
        off="format(exp(datum.ratio), '.3~r')",
    )
    colour = alt.condition(f"datum.model == '{MEAN}'", alt.value(drawing.GREY), alt.value(drawing.BLUE))
    bars = blocks.mark_bar(clip=True).encode(
        x=drawing.time_axis(analysis, row, "begin:Q"), x2="until:Q", y=y, y2="at:Q", color=colour, tooltip=tooltip
    )
    view = drawing.layered([bars], encodings=["x"], height=STEP * len(names))
    return drawing.finished(
        view,
        {"blocks": shown},
        title=KIND.title,
        subtitle=[
            subtitle(row),
            f"bars: a block, predicted from the others; upwards too much, a full bar a factor of {factor:g} or more",
        ],
        theme=theme,
    )


KIND = Kind("residuals", "Models: error of every block", False, describe, data, chart)
