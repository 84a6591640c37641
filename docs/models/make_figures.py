#!/usr/bin/env python3
"""Draw every model's figure into figures/, and the one that compares them.

    python docs/models/make_figures.py                      draw, from figures/flows.csv
    python docs/models/make_figures.py --measure [DIR ...]  analyse the captures below DIR first, and write flows.csv

A capture counts if its folder has a truth.json, which names it, or is called sender.pcap.gz there; without DIR those of
../shared are taken where they are, else sample-traces. Needs the extra `plot`. A figure carries the digest of what it
shows, by which a test sees that it is current.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tcpfit.models import Model, catalogue
from tcpfit.report import cards, figures
from tcpfit.report.predicted import Sweep, predict

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FIGURES = HERE / "figures"
FLOWS = FIGURES / "flows.csv"
COLUMNS = ("source", "trace", "flow", "model", "applicable", "predicted", "observed")
SHARED = [ROOT.parent / "shared" / name for name in ("traces", "traces-ns2")]

MOST = 40
"""Flows of a capture that are kept, evenly over all."""

SEGMENTS = {"throughput": 1000, "transfer-time": 10}
"""Data segments that a flow needs: to be in a steady state, or to take longer than its first flight."""

LONGEST = 10**9
"""Segments of a flow whose time is predicted: all are."""

PRINTED = {  # model: rows of the reference values that a paper prints for it
    "newreno-full": ("parvez.tab4.row", "parvez.tab4.single"),
    "cubic": ("rfc8312.tab1", "rfc8312.tab2"),
    "sikdar-tahoe-latency": ("sikdar.tabI.",),
    "sikdar-reno-latency": ("sikdar.tabII.",),
    "sikdar-sack-latency": ("sikdar.tabIII.",),
}

SOURCES = {"Linux": figures.COLOURS[0], "ns-2": figures.COLOURS[1]}

Row = dict[str, Any]


def measure(folders: list[Path]) -> list[Row]:
    """Every model's prediction of every flow of the captures taken at a sender, with what was observed."""
    import tcpfit
    from tcpfit.ranking.rank import of_evidence
    from tcpfit.ranking.short import alone

    rows: list[Row] = []
    for path, source, trace in captures(folders):
        analysis = tcpfit.analyze(path)
        segments = dict(analysis.flows.select("flow", "data_segments").iter_rows())
        long = sorted(flow for flow, count in segments.items() if count >= min(SEGMENTS.values()))
        kept = set(long[:: -(-len(long) // MOST) or 1])
        models = catalogue()  # all of them, also any that the ranking leaves out by default
        ranking, _ = of_evidence(analysis.evidence, analysis.parameters, models)
        timed = {name: model for name, model in models.items() if model.predicts == "transfer-time"}
        timed = {n: m.set_params(handshake=False) if "handshake" in m.get_params() else m for n, m in timed.items()}
        times = {(flow, name): rest for flow, name, *rest in alone(analysis, timed, LONGEST).iter_rows()}
        for row in ranking.filter(pl.col("model").is_in(list(models))).iter_rows(named=True):
            model = models[row["model"]]
            if row["flow"] not in kept or segments[row["flow"]] < SEGMENTS[model.predicts]:
                continue
            if model.name in timed:
                observed, predicted = times.get((row["flow"], model.name), (None, None))
            else:
                predicted = row["predicted_bps"] and row["predicted_bps"] / 1e6
                observed = predicted and predicted / np.exp(row["log_ratio"])
            if observed is None or predicted is None:
                continue
            values = (source, trace, row["flow"], model.name, int(not row["failed"]))
            rows.append(dict(zip(COLUMNS, (*values, f"{predicted:.4g}", f"{observed:.4g}"), strict=True)))
    return rows


def captures(folders: list[Path]) -> Iterator[tuple[Path, str, str]]:
    """Path, source and name of each capture with a known truth that was taken at the sender."""
    for folder in folders:
        for truth in sorted([*folder.glob("*/truth.json"), *folder.glob("*.truth.json")]):
            facts = json.loads(truth.read_text())
            name = facts.get("captures", {}).get("sender", "sender.pcap.gz")
            simulated = "ns-2" in str(facts.get("simulator", facts.get("made_with", "")))
            if (truth.parent / name).exists():
                yield truth.parent / name, "ns-2" if simulated else "Linux", str(facts["name"])


def flows() -> list[Row]:
    """The rows of flows.csv, numbers as numbers."""
    with FLOWS.open(newline="") as file:
        return [
            row | {"applicable": row["applicable"] == "1"} | {key: float(row[key]) for key in ("predicted", "observed")}
            for row in csv.DictReader(file)
        ]


def caption(rows: list[Row]) -> str:
    """What the flows of one model say, in a sentence or two."""
    if not rows:
        return "No flow at hand has all the parameters that it needs."
    ratios = np.log([row["predicted"] / row["observed"] for row in rows if row["applicable"]])
    if not ratios.size:
        return f"Its assumptions hold on none of the {len(rows)} flows that it has a value for."
    middle, near, most = np.median(ratios), np.median(abs(ratios)), np.quantile(abs(ratios), 0.75)
    return (
        f"{len(rows)} flows have a prediction, and the required assumptions hold on {ratios.size}. On those the median "
        f"of ln(predicted/observed) is {middle:+.2f}, that of its absolute value {near:.2f}; three of four are within "
        f"{most:.2f}."
    )


def printed(model: Model) -> list[Row]:
    """The numbers that the paper prints for a model, beside ours."""
    values = runpy.run_path(str(HERE / "make_values.py"))["values_module"]()
    rows = []
    for row in values.VALUES["printed"]:
        if row["id"].startswith(PRINTED.get(model.name, ("-",))):
            rows.append({"printed": row["expected"], "ours": values.printed(row), "status": row["status"]})
    return rows


def of_model(model: Model, rows: list[Row]) -> tuple[Any, list[Any]]:
    """The figure of a model, and the data in it: predicted against observed, ours against printed."""
    import altair as alt

    unit = "s" if model.predicts == "transfer-time" else "Mbit/s"
    points = [
        {"x": row["observed"], "y": row["predicted"], "source": row["source"], "applies": row["applicable"]}
        for row in rows
        if min(row["observed"], row["predicted"]) > 0
    ]
    paper = [
        {"x": row["printed"], "y": float(f"{row['ours']:.4g}"), "source": row["status"], "applies": True}
        for row in printed(model)
    ]
    panels = []
    if points:
        colour = alt.Color("source:N", scale=alt.Scale(domain=list(SOURCES), range=list(SOURCES.values())), title=None)
        titles = (f"observed {cards.predicts(model)} ({unit})", f"predicted ({unit})")
        panels.append(scatter(alt, points, colour, titles, "flows; hollow where an assumption fails"))
    if paper:
        colour = alt.Color("source:N", scale=alt.Scale(range=list(figures.COLOURS[2:])), title=None)
        panels.append(scatter(alt, paper, colour, ("printed in the paper", "tcpfit"), "the paper's values"))
    return alt.hconcat(*panels).resolve_scale(color="independent"), [points, paper]


def scatter(alt: Any, points: list[Row], colour: Any, titles: tuple[str, str], title: str) -> Any:
    """Points about the line y = x, with a band of 25 % either way."""
    values = [value for point in points for value in (point["x"], point["y"])]
    low, high = min(values) / 1.3, max(values) * 1.3
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    axis = alt.Axis(tickCount=5, grid=False)
    x = alt.X("x:Q", title=titles[0], scale=scale, axis=axis)
    y = alt.Y("y:Q", title=titles[1], scale=scale, axis=axis)
    ends = [{"x": end, "y": end / 1.25, "y2": end * 1.25} for end in (low, high)]
    line = alt.Chart(alt.InlineData(values=ends))
    band = line.mark_area(color="#dfe6ee", clip=True).encode(x=x, y=y, y2="y2:Q")
    equal = line.mark_line(color="#8a8a8a", strokeWidth=1).encode(
        x=x, y=alt.Y("x:Q", title=titles[1], scale=scale, axis=axis)
    )
    layers = [band, equal]
    for applies in (True, False):
        part = [{key: point[key] for key in ("x", "y", "source")} for point in points if point["applies"] is applies]
        if part:
            marks = alt.Chart(alt.InlineData(values=part)).mark_circle(size=26, opacity=0.85, aria=False)
            hollow = alt.Chart(alt.InlineData(values=part)).mark_point(size=26, strokeWidth=1.2, aria=False)
            layers.append((marks if applies else hollow).encode(x=x, y=y, color=colour))
    return alt.layer(*layers).properties(
        width=260, height=260, title=alt.TitleParams(title, fontSize=11, fontWeight="normal", anchor="start")
    )


def comparisons() -> Iterator[tuple[str, Any, list[Any]]]:
    """Name, figure and data of the page that compares the models: rates over p, times over size."""
    models = list(catalogue().values())
    kinds = {kind: [m for m in models if m.predicts == kind] for kind in ("throughput", "transfer-time")}
    p = Sweep("p", np.geomspace(1e-4, 0.3, 40))
    takes = {parameter.name for model in kinds["throughput"] for parameter in model.parameters}
    given = {name: value for name, value in {"rtt": 0.1, "rto": 0.4, "b": 1.0}.items() if name in takes}
    answer = predict(kinds["throughput"], given, sweep=p)
    yield "comparison", figures.predictions(answer, 460, 330), data_of(answer.models, "rate")
    if kinds["transfer-time"]:
        size = Sweep("size", np.unique(np.ceil(np.geomspace(1, 1000, 40))))
        answer = predict(kinds["transfer-time"], {"p": 0.02, "rtt": 0.1, "rto": 0.4}, sweep=size)
        if any(np.isfinite(one.time_s).any() for one in answer.models):
            yield "comparison-times", figures.predictions(answer, 460, 330), data_of(answer.models, "time_s")


def data_of(answers: list[Any], key: str) -> list[Any]:
    return [[one.model.name, *(f"{value:.4g}" for value in getattr(one, key))] for one in answers]


def digest(data: Any) -> str:
    """What stands in a figure's last line."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def drawings() -> Iterator[tuple[str, Any, str]]:
    """Name, chart and digest of every figure."""
    rows = flows()
    for model in catalogue().values():
        own = [row for row in rows if row["model"] == model.name]
        chart, data = of_model(model, own)
        if any(data):
            yield model.name, chart, digest(data)
    for name, chart, data in comparisons():
        yield name, chart, digest(data)


def main() -> int:
    """Measure if asked to, then draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", type=Path, nargs="*", metavar="DIR")
    arguments = parser.parse_args()
    FIGURES.mkdir(exist_ok=True)
    if arguments.measure is not None:
        folders = arguments.measure or [path for path in SHARED if path.exists()] or [ROOT / "sample-traces"]
        rows = measure(folders)
        with FLOWS.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    for name, chart, mark in drawings():
        svg = figures.render(chart, ".svg").decode().rstrip("\n")
        (FIGURES / f"{name}.svg").write_text(f"{svg}\n<!-- {mark} -->\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
