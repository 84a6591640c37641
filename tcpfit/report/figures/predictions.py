"""Models' predictions as lines over a sweep, or as points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcpfit.exceptions import InvalidParameter
from tcpfit.report import cards
from tcpfit.report.figures.drawing import altair
from tcpfit.report.predicted import Predictions, question, timed

COLOURS = ("#1f6fb4", "#d4721c", "#2b8c3e", "#c2332f", "#7a5bb0", "#7d5446", "#cf62ae", "#6b6b6b", "#a3a11f", "#1aa3b5")
DASHES = ((1, 0), (6, 3), (2, 2))
"""A colour and a dash a model: models beyond the colours get the next dash."""


def predictions(answer: Predictions, width: int = 560, height: int = 340) -> Any:
    """The models' rates or times over a sweep as lines, or without one as points; an Altair chart.

    Raises `InvalidParameter` where Altair is missing or no model has a value.
    """
    alt = altair()
    rows = [
        {"model": p.model.name, "x": x, "y": y, "what": cards.predicts(p.model), "panel": panel}
        for p in answer.models
        for panel, values in [
            ("transfer time (s)", p.time_s) if timed(answer, p) else ("Mbit/s", 8e-6 * answer.mss * p.rate)
        ]
        for x, y in zip(answer.sweep.values if answer.sweep else [0.0], values, strict=True)
        if np.isfinite(y) and y > 0
    ]
    if not rows:
        raise InvalidParameter("there is nothing to draw: no model has a value here.")
    names = list(dict.fromkeys(row["model"] for row in rows))
    draw = _lines if answer.sweep else _points
    charts = [
        draw(alt, answer, [row for row in rows if row["panel"] == panel], panel, names, width, height)
        for panel in dict.fromkeys(row["panel"] for row in rows)
    ]
    chart = alt.vconcat(*charts) if len(charts) > 1 else charts[0]
    return chart.properties(title=alt.TitleParams(question(answer), fontSize=12, fontWeight="normal", anchor="start"))


def _lines(
    alt: Any, answer: Predictions, rows: list[dict[str, Any]], title: str, names: list[str], width: int, height: int
) -> Any:
    assert answer.sweep is not None
    values = answer.sweep.values
    log = values[0] > 0 and values[-1] / values[0] >= 20
    units = {p.name: p.unit for one in answer.models for p in one.model.parameters} | {"size": "segments"}
    unit = units[answer.sweep.name]
    heading = answer.sweep.name if unit == "1" else f"{answer.sweep.name} ({unit})"
    colour, dash = styles(alt, names)
    return (
        alt.Chart(alt.InlineData(values=rows), width=width, height=height)
        .mark_line(strokeWidth=1.8)
        .encode(
            x=alt.X("x:Q", title=heading, scale=scale(alt, [values[0], values[-1]], log)),
            y=alt.Y("y:Q", title=title, scale=scale(alt, [row["y"] for row in rows], True)),
            color=colour,
            strokeDash=dash,
            tooltip=["model:N", "what:N", alt.Tooltip("x:Q", title=heading), alt.Tooltip("y:Q", title=title)],
        )
    )


def _points(
    alt: Any, answer: Predictions, rows: list[dict[str, Any]], title: str, names: list[str], width: int, height: int
) -> Any:
    return (
        alt.Chart(alt.InlineData(values=rows), width=width, height=18 * len({row["model"] for row in rows}))
        .mark_point(filled=True, size=70, color=COLOURS[0])
        .encode(
            x=alt.X("y:Q", title=title, scale=alt.Scale(zero=True)),
            y=alt.Y("model:N", title=None, sort=names),
            tooltip=["model:N", "what:N", alt.Tooltip("y:Q", title=title)],
        )
    )


def styles(alt: Any, names: Sequence[str]) -> tuple[Any, Any]:
    """Colour and dash of each model, with one legend for both."""
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(names))]
    dashes = [list(DASHES[i // len(COLOURS) % len(DASHES)]) for i in range(len(names))]
    legend = alt.Legend(title=None, symbolSize=400, symbolStrokeWidth=2, labelLimit=220)
    return (
        alt.Color("model:N", scale=alt.Scale(domain=list(names), range=colours), legend=legend),
        alt.StrokeDash("model:N", scale=alt.Scale(domain=list(names), range=dashes), legend=legend),
    )


def scale(alt: Any, values: Sequence[float], log: bool) -> Any:
    """An axis from the least to the largest value."""
    low, high = float(min(values)), float(max(values))
    return alt.Scale(type="log" if log else "linear", domain=[low, high], nice=not log, zero=False)
