"""Every model's predicted over the observed rate as a dot plot, with intervals and what speaks against each model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit.ranking.table import BASELINES
from tcpfit.report import words
from tcpfit.report.figures import drawing
from tcpfit.report.figures.kind import Kind, NothingToDraw, flow_row, one_way, subtitle

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

GROUPS = {
    "applies": ("models that apply", drawing.BLUE, "circle"),
    "fails": ("an assumption fails", drawing.ORANGE, "diamond"),
    "baseline": ("baselines, no models", drawing.GREY, "square"),
}
"""Groups of rows: heading, colour and shape."""

FARTHEST = math.log(64)
"""A point farther from the observed rate stands at the edge; its tooltip and the text beside it have the figure."""

ROWS = pl.Schema(
    {
        "model": pl.String(),
        "group": pl.String(),
        "rank": pl.UInt32(),
        "ratio": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "mbps": pl.Float64(),
        "best": pl.Float64(),
        "caveats": pl.String(),
        "reasons": pl.String(),
    }
)


def data(analysis: Analysis, flow: int) -> dict[str, pl.DataFrame]:
    """`models`, a row each row of the ranking in its order: group, ln(predicted/observed) with its interval, caveats.

    Of caveats `x` marks an assumption that the model requires, `~` another.
    """
    own, rows = flow_row(analysis, flow), []
    for row in analysis.ranking.filter(pl.col("flow") == flow).iter_rows(named=True):
        group = "baseline" if row["model"] in BASELINES else "applies" if row["applicable"] else "fails"
        caveats = [f"x {name}" for name in row["failed"]] + [f"~ {name}" for name in row["weakened"]]
        rows.append(
            {
                "model": row["model"],
                "group": group,
                "rank": row["rank"],
                "ratio": row["log_ratio"],
                "low": row["log_ratio_low"],
                "high": row["log_ratio_high"],
                "mbps": None if row["predicted_bps"] is None else row["predicted_bps"] / 1e6,
                "best": row["probability_best"],
                "caveats": ", ".join(caveats),
                "reasons": "; ".join(row["reasons"]),
            }
        )
    table = pl.DataFrame(rows, schema=ROWS)
    if table["ratio"].null_count() == table.height:
        why = one_way(own) or "it has too little data"
        raise NothingToDraw(f"flow {flow} of {analysis.path} cannot be compared with any model: {why}")
    table = table.with_columns(pl.col("mbps").round_sig_figs(4))
    return {"models": drawing.rounded(table, {"ratio": 4, "low": 4, "high": 4, "best": 3})}


def describe(analysis: Analysis, flow: int) -> str:
    """How many models apply, which assumptions the others fail, which come nearest, and how far off they are."""
    table = data(analysis, flow)["models"]
    verdict = analysis.verdicts.filter(pl.col("flow") == flow)["text"]
    nearest = (
        table.filter(pl.col("group") == "applies", pl.col("ratio").is_not_null()).sort(pl.col("ratio").abs()).head(3)
    )
    applying = table.filter(pl.col("group") == "applies").height
    others = table.filter(pl.col("group") == "fails").height
    failed = analysis.ranking.filter(pl.col("flow") == flow)["failed"].explode().drop_nulls().value_counts()
    failing = ", ".join(
        f"{name} {count}" for name, count in failed.sort("count", "failed", descending=[True, False]).rows()
    )
    named = ", ".join(f"{model} {_off(ratio)}" for model, ratio in nearest.select("model", "ratio").iter_rows())
    first = (
        f"Predicted over observed rate of {words.plural(applying, 'model')} that "
        f"{'applies' if applying == 1 else 'apply'} and {others} of which an assumption fails"
        f"{f' ({failing})' if failing else ''}"
    )
    return f"{first}{': nearest are ' + named if named else ''}. {verdict[0] if len(verdict) else ''}".strip()


def _off(ratio: float) -> str:
    percent = 100 * math.expm1(ratio)
    return f"{percent:+.0f} %" if ratio < math.log(11) else f"x{math.exp(ratio):.0f}"


def chart(analysis: Analysis, flow: int, *, theme: str = "light") -> Any:
    """A row a model in groups, the ratio on a logarithmic axis, interval ends cut at the edge; caveats to the right."""
    alt = drawing.altair()
    table = data(analysis, flow)["models"]
    groups = [group for group in GROUPS if group in table["group"].to_list()]
    order: list[str] = []
    for group in groups:
        order += [GROUPS[group][0], *table.filter(pl.col("group") == group)["model"]]
    span = min(max(0.8, *(abs(ratio) for ratio in table["ratio"].drop_nulls())) * 1.15, FARTHEST)
    headings = " || ".join(f"datum.label == '{GROUPS[group][0]}'" for group in groups)
    bold: Any = {"condition": {"test": headings, "value": "bold"}, "value": "normal"}
    nowhere: Any = {"condition": {"test": headings, "value": 0}, "value": 1}
    x = alt.X(
        "at:Q",
        title="predicted / observed rate",
        scale=alt.Scale(domain=[-span, span], nice=False, zero=False),
        axis=alt.Axis(values=_ticks(span), labelExpr="format(exp(datum.value), '.2~f') + ' x'"),
    )
    y = alt.Y(
        "model:N",
        title=None,
        scale=alt.Scale(domain=order),
        axis=alt.Axis(labelFontWeight=bold, gridOpacity=nowhere, ticks=False, domain=False, grid=True, labelLimit=220),
    )
    colours, shapes = ([GROUPS[group][n] for group in groups] for n in (1, 2))
    colour = alt.Color("group:N", scale=alt.Scale(domain=groups, range=colours), legend=None)
    tooltip = [
        alt.Tooltip("model:N"),
        alt.Tooltip("rank:Q"),
        alt.Tooltip("off:N", title="predicted / observed"),
        alt.Tooltip("interval:N", title="95 % interval"),
        alt.Tooltip("mbps:Q", title="predicted Mbit/s"),
        alt.Tooltip("best:Q", title="best in share of samples"),
        alt.Tooltip("reasons:N", title="against it"),
    ]
    ratio = "format(exp(datum.{}), '.3~r')"
    known = (
        drawing.source("models", table)
        .transform_filter("datum.ratio != null")
        .transform_calculate(
            at=f"clamp(datum.ratio, {-span:.4f}, {span:.4f})",
            off=ratio.format("ratio"),
            interval=f"datum.low == null ? '' : {ratio.format('low')} + ' to ' + {ratio.format('high')}",
        )
    )
    everything = drawing.source("models", table)
    zero = alt.Chart(alt.InlineData(values=[{"at": 0}])).mark_rule(color=drawing.GREY, strokeWidth=1.2).encode(x="at:Q")
    intervals = known.mark_rule(strokeWidth=2, clip=True).encode(x=alt.X("low:Q"), x2="high:Q", y=y, color=colour)
    points = known.mark_point(filled=True, size=75, opacity=1).encode(
        x=x, y=y, color=colour, shape=alt.Shape("group:N", scale=alt.Scale(domain=groups, range=shapes), legend=None)
    )
    note: dict[str, Any] = {"align": "left", "baseline": "middle", "dx": 10, "style": "note"}
    said = everything.transform_filter("datum.caveats").mark_text(**note)
    nothing = everything.transform_filter("datum.ratio == null").mark_text(**note, text="no prediction")
    notes = [said.encode(x=alt.value("width"), y=y, text="caveats:N"), nothing.encode(x=alt.value(0), y=y)]
    layers = [layer.encode(tooltip=tooltip) for layer in (intervals, points)]
    layers += [layer.encode(tooltip=[tooltip[0], tooltip[-1]]) for layer in notes]
    layered = alt.layer(zero, *layers).properties(width=400, height=alt.Step(18))
    return drawing.finished(
        layered,
        {"models": table},
        title=KIND.title,
        subtitle=[
            subtitle(flow_row(analysis, flow)),
            "lines: 95 % intervals; what fails: x the model requires it, ~ it does not",
        ],
        theme=theme,
    )


def _ticks(span: float) -> list[float]:
    """Natural logarithms of 1 and of factors either way that are easy to read."""
    factors = (1.25, 1.5, 2, 3) if span < math.log(3.5) else (2, 4, 8) if span < math.log(12) else (2, 5, 10, 20, 50)
    inside = [math.log(factor) for factor in factors if math.log(factor) <= span]
    return [-tick for tick in reversed(inside)] + [0.0] + inside


KIND = Kind("ranking", "Models: predicted over observed rate", False, describe, data, chart)
