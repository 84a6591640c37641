"""Figures of a corpus as Vega-Lite: counts of flows in cells and bins, so that their size does not grow with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from tcpfit.report import words
from tcpfit.report.figures import drawing

MODELS = 6
"""Models whose predictions are drawn one by one: those that rank first most often."""

WIDTH, PANEL, COLUMNS = drawing.WIDTH, 210, 3

AXES = {"flows": drawing.BLUE, "bytes": drawing.ORANGE, "time": drawing.TEAL}
SHAPES = {"flows": "circle", "bytes": "square", "time": "diamond"}


@dataclass(frozen=True)
class Figure:
    """A figure of a corpus: its title, a text alternative, and the chart by theme."""

    name: str
    title: str
    text: str
    chart: Callable[[str], Any]


def figures(document: dict[str, Any]) -> list[Figure]:
    """The figures that `Overview.to_dict()` has something for, in the order in which a report shows them."""
    found = [
        _limits(document),
        _predicted(document),
        _residuals(document),
        _loss_law(document),
        _parameters(document),
        _prevalence(document),
        _contrast(document),
    ]
    return [figure for figure in found if figure is not None]


def _limits(document: dict[str, Any]) -> Figure | None:
    rows = [
        {"cause": row["cause"], "of": of, "share": row[of]["share"], "low": row[of]["low"], "high": row[of]["high"]}
        for row in document["limits"]
        for of in AXES
        if row[of]["share"] is not None
    ]
    if not rows:
        return None
    table = pl.DataFrame(rows)
    order = [row["cause"] for row in document["limits"]]
    first = document["limits"][0]
    time = first["time"]["share"]  # None where all flows are of one instant
    text = "What limits flows, as shares of flows, of bytes and of time with 95 % intervals. " + (
        "No flow lasted." if time is None else f"Most of the time goes to {first['cause']}, {time:.0%}."
    )
    return Figure("limits", "What limits the flows", text, lambda theme: _intervals(table, order, "cause", theme))


def _intervals(table: pl.DataFrame, order: list[str], row: str, theme: str) -> Any:
    """Shares as points with intervals, a band a row, a colour and a shape each of what they are shares of."""
    alt = drawing.altair()
    kinds = [kind for kind in AXES if kind in table["of"].to_list()]
    base = drawing.source("shares", table)
    y = alt.Y(f"{row}:N", sort=order, title=None, axis=alt.Axis(labelLimit=240, grid=True))
    offset = alt.YOffset("of:N", sort=kinds)
    x = alt.X("share:Q", title="share", axis=alt.Axis(format="%"), scale=alt.Scale(domainMin=0))
    legend = alt.Legend(title="share of", orient="top")
    colour = alt.Color("of:N", scale=alt.Scale(domain=kinds, range=[AXES[kind] for kind in kinds]), legend=legend)
    shape = alt.Shape("of:N", scale=alt.Scale(domain=kinds, range=[SHAPES[kind] for kind in kinds]), legend=legend)
    tooltip = [alt.Tooltip(f"{row}:N"), alt.Tooltip("of:N", title="share of")]
    tooltip += [alt.Tooltip(f"{name}:Q", format=".1%") for name in ("share", "low", "high")]
    chart = alt.layer(
        base.mark_rule(strokeWidth=1.6).encode(alt.X("low:Q"), y, offset, colour, x2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(x, y, offset, colour, shape, tooltip=tooltip),
    ).properties(width=WIDTH - 200, height=alt.Step(14))
    return drawing.finished(chart, {"shares": table}, title="", subtitle="", theme=theme)


def _predicted(document: dict[str, Any]) -> Figure | None:
    shown = [row for row in document["models"] if row["flows"] and row["cells"]][:MODELS]
    if not shown:
        return None
    half = 0.5 / shown[0]["per_decade"]
    table = pl.DataFrame(
        [
            {
                "model": row["model"],
                "observed": 10 ** (cell["observed"] + half),
                "predicted": 10 ** (cell["predicted"] + half),
                "flows": round(cell["flows"], 2),
            }
            for row in shown
            for cell in row["cells"]
        ]
    ).with_columns(pl.col("observed", "predicted").round_sig_figs(4))
    parts = [f"{row['model']} within 15 % on {row['near']:.0%} of {row['flows']:.0f}" for row in shown]
    text = f"Predicted against observed rate of the flows on which each model applies: {'; '.join(parts)}."
    names = [row["model"] for row in shown]

    def chart(theme: str) -> Any:
        alt = drawing.altair()
        ends = _beyond(table.select("observed", "predicted"))
        line = pl.DataFrame({"observed": ends, "predicted": ends})
        scale = alt.Scale(type="log", domain=ends, nice=False)
        axis = alt.Axis(format="~s", tickCount=4, labelOverlap=True)
        panels = []
        for name in names:
            base = drawing.source("cells", table).transform_filter(alt.datum.model == name)
            points = base.mark_point(filled=True, opacity=0.75, color=drawing.BLUE).encode(
                alt.X("observed:Q", scale=scale, title="observed (bit/s)", axis=axis),
                alt.Y("predicted:Q", scale=scale, title="predicted (bit/s)", axis=axis),
                alt.Size("flows:Q", scale=alt.Scale(range=[12, 220]), legend=None),
                tooltip=[alt.Tooltip(f"{each}:Q", format=".3s") for each in ("observed", "predicted", "flows")],
            )
            same = (
                drawing.source("line", line)
                .mark_line(color=drawing.GREY, strokeDash=[5, 4])
                .encode(alt.X("observed:Q", scale=scale), alt.Y("predicted:Q", scale=scale))
            )
            panels.append(alt.layer(same, points).properties(width=PANEL, height=PANEL, title=name))
        return drawing.finished(_grid(panels), {"cells": table, "line": line}, title="", subtitle="", theme=theme)

    return Figure("predicted", "Predicted against observed rate", text, chart)


MARGIN = 0.06
"""Room between the frame and the outermost points, as a share of the axis: a point is larger than its place."""


def _beyond(table: pl.DataFrame) -> list[float]:
    """Ends of a logarithmic axis on which every value of the table has its point whole."""
    values = [math.log10(value) for column in table for value in column]
    low, high = min(values), max(values)
    room = max(MARGIN * (high - low), 0.05)
    return [10 ** (low - room), 10 ** (high + room)]


def _grid(panels: list[Any]) -> Any:
    """Three panels a row. A wrapped `concat` would say the same, but the library packed into pages draws none."""
    alt = drawing.altair()
    return alt.vconcat(*(alt.hconcat(*panels[i : i + COLUMNS]) for i in range(0, len(panels), COLUMNS)))


def _residuals(document: dict[str, Any]) -> Figure | None:
    shown = [row for row in document["models"] if row["flows"]]
    if not shown:
        return None
    table = pl.DataFrame(
        [
            {"model": row["model"], "flows": round(row["flows"], 1)}
            | {f"q{round(100 * float(q))}": round(value, 4) for q, value in row["quantiles"].items()}
            for row in shown
        ]
    )
    bins = pl.DataFrame(
        [
            {
                "model": row["model"],
                "ratio": round((row["edges"][i] + row["edges"][i + 1]) / 2, 2),
                "flows": round(count, 2),
            }
            for row in shown
            for i, count in enumerate(row["counts"])
            if count
        ]
    )
    parts = [f"{row['model']} {row['quantiles']['0.5']:+.2f}" for row in shown[:MODELS]]
    text = f"ln(predicted/observed) by model, 0 being right; medians: {', '.join(parts)}."
    order = [row["model"] for row in shown]

    def chart(theme: str) -> Any:
        alt = drawing.altair()
        y = alt.Y("model:N", sort=order, title=None, axis=alt.Axis(labelLimit=200))
        scale = alt.Scale(domain=[-2, 2], clamp=True)
        x = alt.X("q50:Q", scale=scale, title="ln(predicted/observed)")
        base = drawing.source("quantiles", table)
        tooltip = ["model:N", "flows:Q", *(alt.Tooltip(f"q{q}:Q", title=f"{q} %") for q in (5, 25, 50, 75, 95))]
        zero = alt.Chart(alt.InlineData([{"zero": 0}])).mark_rule(color=drawing.GREY, strokeDash=[5, 4])
        dots = (
            drawing.source("bins", bins)
            .mark_point(filled=True, shape="square", opacity=0.25, color=drawing.GREY)
            .encode(alt.X("ratio:Q", scale=scale), y, alt.Size("flows:Q", legend=None, scale=alt.Scale(range=[4, 150])))
        )
        layered = alt.layer(
            zero.encode(alt.X("zero:Q", scale=scale)),
            dots,
            base.mark_rule(strokeWidth=1.4, color=drawing.BLUE).encode(alt.X("q5:Q", scale=scale), y, x2="q95:Q"),
            base.mark_bar(height=7, color=drawing.BLUE).encode(alt.X("q25:Q", scale=scale), y, x2="q75:Q"),
            base.mark_point(filled=True, size=70, color=drawing.ORANGE, opacity=1).encode(x, y, tooltip=tooltip),
        ).properties(width=WIDTH - 170, height=alt.Step(24))
        tables = {"quantiles": table, "bins": bins}
        return drawing.finished(layered, tables, title="", subtitle="", theme=theme)

    return Figure("residuals", "How far each model is off", text, chart)


def _loss_law(document: dict[str, Any]) -> Figure | None:
    law = document["loss_law"]
    if not law["cells"]:
        return None
    half = 0.5 / law["per_decade"]
    names = {True: "diagnosed as limited by loss", False: "limited by something else"}
    cells = pl.DataFrame(
        [
            {
                "p": 10 ** (cell["x"] + half),
                "window": 10 ** (cell["y"] + half),
                "flows": round(cell["flows"], 2),
                "diagnosis": names[bool(cell["by_loss"])],
            }
            for cell in law["cells"]
        ]
    ).with_columns(pl.col("p", "window").round_sig_figs(4))
    curves = pl.DataFrame(
        [
            {"model": curve["model"], "p": 10**x, "window": 10**y}
            for curve in law["curves"]
            for x, y in zip(curve["x"], curve["y"], strict=True)
        ],
        schema={"model": pl.String(), "p": pl.Float64(), "window": pl.Float64()},
    ).with_columns(pl.col("p", "window").round_sig_figs(4))
    low, high = cells["p"].min(), cells["p"].max()
    text = (
        f"Rate times round-trip time against loss events per segment of {law['flows']:.0f} flows with at least 4 "
        f"loss events, p from {words.number(low)} to {words.number(high)}, beside "  # type: ignore[arg-type]
        f"{', '.join(curve['model'] for curve in law['curves'])}."
    )

    def chart(theme: str) -> Any:
        alt = drawing.altair()
        x = alt.X("p:Q", scale=alt.Scale(type="log", nice=False, padding=12), title="p, loss events per segment")
        y = alt.Y("window:Q", scale=alt.Scale(type="log", nice=False, padding=12), title="rate x RTT (segments)")
        of_models = [curve["model"] for curve in law["curves"]]
        colours = [drawing.ORANGE, drawing.PURPLE, drawing.GREEN, drawing.MAGENTA][: len(of_models)]
        dashes = [[1, 0], [7, 3], [3, 3], [9, 3, 2, 3]][: len(of_models)]
        legend = alt.Legend(title="model", orient="right", symbolStrokeWidth=2)
        points = (
            drawing.source("cells", cells)
            .mark_point(filled=True, opacity=0.7, color=drawing.BLUE)
            .encode(
                x,
                y,
                alt.Size("flows:Q", scale=alt.Scale(range=[16, 300]), legend=None),
                alt.Shape(
                    "diagnosis:N",
                    scale=alt.Scale(domain=list(names.values()), range=["circle", "triangle-up"]),
                    legend=alt.Legend(title="flows", orient="right"),
                ),
                tooltip=[
                    alt.Tooltip("p:Q", format=".2e"),
                    alt.Tooltip("window:Q", format=".3s"),
                    "flows:Q",
                    "diagnosis:N",
                ],
            )
        )
        lines = (
            drawing.source("curves", curves)
            .mark_line(strokeWidth=2)
            .encode(
                x,
                y,
                alt.Color("model:N", scale=alt.Scale(domain=of_models, range=colours), legend=legend),
                alt.StrokeDash("model:N", scale=alt.Scale(domain=of_models, range=dashes), legend=legend),
            )
        )
        layered = alt.layer(points, lines).properties(width=WIDTH - 200, height=drawing.HEIGHT)
        layered = layered.add_params(alt.selection_interval(name=drawing.ZOOM, bind="scales"))
        return drawing.finished(layered, {"cells": cells, "curves": curves}, title="", subtitle="", theme=theme)

    return Figure("loss-law", "Rate against loss", text, chart)


def _parameters(document: dict[str, Any]) -> Figure | None:
    rows = document["parameters"]
    if not rows:
        return None
    table = pl.DataFrame(
        [
            {"parameter": row["name"], "low": low, "high": high, "flows": round(count, 2)}
            for row in rows
            for low, high, count in zip(row["edges"][:-1], row["edges"][1:], row["counts"], strict=True)
            if count
        ],
        schema={"parameter": pl.String(), "low": pl.Float64(), "high": pl.Float64(), "flows": pl.Float64()},
    ).with_columns(pl.col("low", "high").round_sig_figs(4))
    parts = [f"{row['name']} {words.quantity(row['name'], row['quantiles']['0.5'])}" for row in rows]
    text = f"Distributions of parameters over flows; medians: {', '.join(parts)}."
    linear = {row["name"]: math.isclose(row["edges"][0], 0) for row in rows}
    units = {row["name"]: row["unit"] for row in rows}
    zeros = {row["name"]: row["zero"] for row in rows}

    def chart(theme: str) -> Any:
        alt = drawing.altair()
        panels = []
        for name in units:
            some = table.filter(pl.col("parameter") == name)
            if not some.height:
                continue
            scale = alt.Scale(type="linear" if linear[name] else "log", nice=False)
            label = "format(datum.value, '~s') + 's'" if units[name] == "s" else "format(datum.value, '~g')"
            note = f"and {zeros[name]:.0f} with 0" if zeros[name] else " "
            bars = (
                drawing.source("bins", table)
                .transform_filter(alt.datum.parameter == name)
                .mark_rect(color=drawing.BLUE)
                .encode(
                    alt.X(
                        "low:Q", scale=scale, title=name, axis=alt.Axis(labelExpr=label, tickCount=4, labelOverlap=True)
                    ),
                    alt.Y(
                        "flows:Q", title="flows", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=3, format="~s")
                    ),
                    x2="high:Q",
                    y2=alt.datum(0),
                    tooltip=[
                        alt.Tooltip("low:Q", title="from", format=".3~g"),
                        alt.Tooltip("high:Q", title="to", format=".3~g"),
                        alt.Tooltip("flows:Q", format=".1f"),
                    ],
                )
            )
            title = alt.TitleParams(name, subtitle=note, fontSize=12)
            panels.append(bars.properties(width=PANEL, height=90, title=title))
        return drawing.finished(_grid(panels), {"bins": table}, title="", subtitle="", theme=theme)

    return Figure("parameters", "How parameters are distributed", text, chart)


def _prevalence(document: dict[str, Any]) -> Figure | None:
    rows = [
        {"what": row["what"], "of": of, "share": row[of]["share"], "low": row[of]["low"], "high": row[of]["high"]}
        for row in document["prevalence"]
        for of in ("flows", "bytes")
        if row["flows"]["share"] and row[of]["share"] is not None
    ]
    if not rows:
        return None
    table = pl.DataFrame(rows)
    parts = [f"{row['what']} {row['flows']['share']:.0%}" for row in document["prevalence"] if row["flows"]["share"]]
    text = f"Share of flows that see each thing at least once: {', '.join(parts)}."
    order = list(dict.fromkeys(row["what"] for row in rows))
    return Figure("prevalence", "What the flows see", text, lambda theme: _intervals(table, order, "what", theme))


def _contrast(document: dict[str, Any]) -> Figure | None:
    contrast = document["contrast"]
    rows = [row for row in contrast["rows"] if "low" in row] if contrast else []
    if not rows:
        return None
    table = pl.DataFrame(
        [
            {
                "what": row["what"],
                "side": f"{row['side']} against {row['against']}",
                "kind": "ratio of medians" if row["what"].startswith("median") else "difference of shares",
                "none": 1.0 if row["what"].startswith("median") else 0.0,
            }
            | {name: row[name] for name in ("change", "low", "high")}
            for row in rows
        ]
    )
    clear = [row for row in rows if row["clear"]]
    said = ", ".join(f"{row['what']} of {row['side']}" for row in clear) or "nothing"
    text = f"Differences by {contrast['by']} with 95 % intervals; clear of no difference: {said}."

    def chart(theme: str) -> Any:
        alt = drawing.altair()
        sides = table["side"].unique(maintain_order=True).to_list()
        palette = [drawing.BLUE, drawing.ORANGE, drawing.GREEN, drawing.PURPLE, drawing.MAGENTA]
        colour = alt.Color(
            "side:N",
            scale=alt.Scale(domain=sides, range=[palette[i % len(palette)] for i in range(len(sides))]),
            legend=alt.Legend(title=None, orient="top"),
        )
        panels = []
        for kind in table["kind"].unique(maintain_order=True):
            base = drawing.source("rows", table).transform_filter(alt.datum.kind == kind)
            y = alt.Y("what:N", sort=None, title=None, axis=alt.Axis(labelLimit=320))
            form = "~g" if kind.startswith("ratio") else "+.0%"
            scale = alt.Scale(type="log", nice=False) if kind.startswith("ratio") else alt.Scale(zero=True)
            x = alt.X("change:Q", title=kind, scale=scale, axis=alt.Axis(format=form, tickCount=6))
            offset = alt.YOffset("side:N")
            panels.append(
                alt.layer(
                    base.mark_rule(color=drawing.GREY, strokeDash=[5, 4]).encode(alt.X("mean(none):Q")),
                    base.mark_rule(strokeWidth=1.6).encode(alt.X("low:Q", scale=scale), y, offset, colour, x2="high:Q"),
                    base.mark_point(filled=True, size=60, opacity=1).encode(
                        x, y, offset, colour, tooltip=["what:N", "side:N", "change:Q", "low:Q", "high:Q"]
                    ),
                ).properties(width=WIDTH - 330, height=alt.Step(16))
            )
        return drawing.finished(alt.vconcat(*panels), {"rows": table}, title="", subtitle="", theme=theme)

    return Figure("contrast", f"Compared by {contrast['by']}", text, chart)
