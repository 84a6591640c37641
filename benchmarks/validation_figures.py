"""The figures of docs/validation.md, from its tables."""

from __future__ import annotations

import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path as File
from typing import Any

import claims
import numpy as np
from calibration import Row

from tcpfit.report import figures

MODELS_FIGURES = File(__file__).resolve().parent.parent / "docs/models/make_figures.py"

MODELS = ("newreno-full", "pftk, events", "pftk, packets")
WAITS = {"sack": "SACK, simulated", "bohacek-sack": "bohacek-sack", "pftk": "PFTK"}
Curves = tuple[list[Row], list[Row], tuple[str, str], str, list[str]]


def drawings(data: Mapping[str, list[Row]]) -> Iterator[tuple[str, Any, str]]:
    """Name, chart and digest of every figure."""
    import altair as alt

    digest = runpy.run_path(str(MODELS_FIGURES))["digest"]
    for name, (lines, flows, x, y, panels) in curves(data).items():
        points, marks = (
            [row | {"x": float(f"{row['x']:.4g}"), "y": float(f"{row['y']:.3f}")} for row in part]
            for part in (lines, flows)
        )
        yield name, chart(alt, points, marks, x, y, panels), digest([points, marks])


def curves(data: Mapping[str, list[Row]]) -> dict[str, Curves]:
    """Of every figure its lines, its single flows, the axes and the panels."""
    bursts, flows = [], []
    for row in data["bursts"]:
        panel = f"p = {100 * (0.0005 if row['p'] < 0.003 else 0.01):g} %, simulated"
        for name in MODELS:
            bursts.append({"x": row["m"], "y": row[name], "of": name, "panel": panel})
    for row in data["flows"]:
        if row["recovery"] == "newreno":
            made = claims.three(row)
            for name in MODELS:
                flows.append({"x": row["m"], "y": made[name], "of": name, "panel": "recorded NewReno flows"})
    rates = [
        {"x": row["q_tilde"], "y": row[name], "of": name, "panel": "independent losses, simulated"}
        for row in data["bernoulli"]
        for name in MODELS
    ]
    times = [
        {
            "x": row["segments"] * 1.433,
            "y": float(np.log(row[name] / row["time_s"])),
            "of": name,
            "panel": f"p = {100 * row['p']:g} %",
        }
        for row in data["transfers"]
        for name in claims.TIMES
        if row["p"] in (0.01, 0.1)
    ]
    waits = [
        {"x": row["q_tilde"], "y": row[name], "of": text, "panel": "RTT 30 ms, timer 1 s"}
        for row in data["timeouts"]
        for name, text in WAITS.items()
    ]
    versions = [
        {
            "x": row["loss"],
            "y": row[name],
            "of": name,
            "panel": "rest of the round lost" if row["losses"] == "round" else "independent losses",
        }
        for row in data["correlated"]
        for name in claims.VERSIONS
    ]
    off = "ln(predicted/observed)"
    return {
        "bursts": (bursts, flows, ("losses per event", "linear"), off, sorted({row["panel"] for row in bursts})),
        "rates": (rates, [], ("packet loss rate", "log"), off, ["independent losses, simulated"]),
        "transfers": (times, [], ("transfer (KB)", "log"), "ln(predicted/simulated)", ["p = 1 %", "p = 10 %"]),
        "timeouts": (waits, [], ("packet loss rate", "log"), "share of time in timeouts", ["RTT 30 ms, timer 1 s"]),
        "correlated": (
            versions,
            [],
            ("loss rate", "log"),
            "goodput over Tahoe's",
            ["rest of the round lost", "independent losses"],
        ),
    }


def chart(alt: Any, lines: list[Row], marks: list[Row], x: tuple[str, str], y: str, panels: list[str]) -> Any:
    """Lines in panels side by side, single flows as points in a panel of their own."""
    names = list(dict.fromkeys(row["of"] for row in lines))
    colours = list(figures.COLOURS[: len(names)])
    colour = alt.Color("of:N", scale=alt.Scale(domain=names, range=colours), legend=alt.Legend(title=None))
    parts = []
    for rows, wanted in ((lines, panels), (marks, sorted({row["panel"] for row in marks}))):
        for panel in wanted:
            own = [
                {key: row[key] for key in ("x", "y", "of")}
                for row in rows
                if row["panel"] == panel and np.isfinite(row["y"])
            ]
            base = alt.Chart(alt.InlineData(values=own))
            mark = base.mark_line(point=alt.OverlayMarkDef(size=18)) if rows is lines else base.mark_point(size=28)
            parts.append(
                mark.encode(
                    x=alt.X("x:Q", title=x[0], scale=alt.Scale(type=x[1], nice=False, zero=False)),
                    y=alt.Y("y:Q", title=y, scale=alt.Scale(zero=False)),
                    color=colour,
                ).properties(
                    width=230,
                    height=190,
                    title=alt.TitleParams(panel, fontSize=11, fontWeight="normal", anchor="start"),
                )
            )
    return alt.hconcat(*parts)
