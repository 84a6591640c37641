"""A corpus as a whole as one HTML file: what holds flows back, what differs, the dearest flows, models, parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from tcpfit.ranking import across
from tcpfit.report import words
from tcpfit.report.corpus import terminal
from tcpfit.report.corpus.figures import Figure, figures
from tcpfit.report.page.pictures import of_page
from tcpfit.report.page.render import check, packed, put_together


@dataclass(frozen=True)
class Table:
    """A table of text: headings, rows, which columns stand right and which may be long."""

    headings: list[str]
    rows: list[Any]
    numbers: tuple[str, ...] = ()
    long: tuple[str, ...] = ()


def render(document: dict[str, Any], links: Mapping[tuple[str, int], str] | None = None) -> str:
    """The page of `Overview.to_dict()` as HTML; `links` leads from capture and flow to reports of them.

    Raises InvalidParameter where an extra is missing.
    """
    check()
    found = figures(document)
    specs = {figure.name: of_page(_spec(figure)) for figure in found}
    contrast = document["contrast"]
    tree = _tree(document["winners"])
    captures = document["captures"]
    contents = [("verdict", "What holds flows back"), ("seen", "What they see"), ("models", "Models")]
    contents += [("parameters", "Parameters"), ("captures", "Captures"), ("about", "About")]
    if document["worst"]:
        contents.insert(1, ("worst", "Dearest flows"))
    if contrast:
        contents.insert(1, ("contrast", f"By {contrast['by']}"))
    return put_together(
        "corpus.html",
        drawn=bool(found),
        name=PurePath(document["folder"]).name or document["folder"],
        facts=terminal.facts(document)[0],
        contents=contents,
        lead=_lead(document),
        notes=_notes(document),
        figures=found,
        packed=packed(json.dumps(specs, separators=(",", ":"))) if specs else "",
        limits=_limits(document),
        contrast=_contrast(contrast) if contrast else None,
        by=contrast["by"] if contrast else "",
        changes=terminal.CHANGES,
        sides=_sides(contrast) if contrast else [],
        worst=_worst(document["worst"], links or {}),
        cost_unknown=terminal.cost_unknown(document["cost_unknown"]) if document["cost_unknown"] else "",
        prevalence=_prevalence(document["prevalence"]),
        verdicts=_verdicts(document["verdicts"]),
        models=_models(document["models"]),
        law=bool(document["loss_law"]["cells"]),
        tree=tree,
        parameters=_parameters(document["parameters"]),
        status=_status(captures),
        failures=Table(
            ["capture", "status", "why"],
            [[row["path"], row["status"], row["reason"] or ""] for row in captures["failures"]],
            long=("why",),
        ),
        failures_left_out=captures["failures_left_out"],
        skipped=Table(
            ["reason", "packets", "captures"],
            [[row["reason"], str(row["packets"]), str(row["captures"])] for row in captures["skipped"]],
            numbers=("packets", "captures"),
        ),
        data="",
    )


def _spec(figure: Figure) -> dict[str, Any]:
    spec: dict[str, Any] = figure.chart("light").to_dict(validate=False)
    return spec


def _lead(document: dict[str, Any]) -> list[str]:
    rows = document["limits"]
    if not rows:
        return ["No flow carried data."]
    most = {of: max(rows, key=lambda row: row[of]["share"] or 0.0) for of in ("time", "flows", "bytes")}
    known = {of: row for of, row in most.items() if row[of]["share"] is not None}
    sentences = []
    if "time" in known:
        row = known["time"]
        sentences.append(f"{terminal.interval(row['time'])} of the time the flows were {_words(row['cause'])}.")
    others = {"flows": "by number most flows are ", "bytes": "by bytes "}
    said = [
        f"{begin}{_words(known[of]['cause'])}, {terminal.interval(known[of][of])}"
        for of, begin in others.items()
        if of in known
    ]
    if said:
        sentence = "; ".join(said)
        sentences.append(f"{sentence[0].upper()}{sentence[1:]}. In parentheses 95 % intervals.")
    goodput = document["flows"]["goodput_bps"]
    if goodput["0.5"] is not None:
        sentences.append(
            f"The median flow had {words.rate(goodput['0.5'])}, nine of ten between {words.rate(goodput['0.05'])} and "
            f"{words.rate(goodput['0.95'])}."
        )
    return sentences


def _words(cause: str) -> str:
    return (
        "of unknown cause"
        if cause == "unknown"
        else cause.removesuffix("-limited").replace("-", " ") + (" limited" if cause.endswith("-limited") else "")
    )


def _notes(document: dict[str, Any]) -> list[str]:
    captures = document["captures"]
    failed = len(captures["failures"]) + captures["failures_left_out"]
    notes = []
    if failed:
        notes.append(f"{words.plural(failed, 'capture')} of {captures['captures']} could not be analysed; see below.")
    if captures["warned"]:
        notes.append(f"{terminal.warned(captures['warned'])}.")
    if document["flows"]["clusters"] == 1:
        notes.append(
            "All flows come from one capture or from captures of the same flows: the intervals say how "
            "much flows of this capture vary, not captures."
        )
    return notes


def _limits(document: dict[str, Any]) -> Table:
    rows = [
        [row["cause"], *(terminal.interval(row[name]) for name in ("flows", "bytes", "time"))]
        for row in document["limits"]
    ]
    return Table(["cause", "flows", "bytes", "time"], rows, ("flows", "bytes", "time"))


def _prevalence(rows: list[dict[str, Any]]) -> Table:
    return Table(
        ["what", "flows", "bytes", "meaning"],
        [
            [row["what"], terminal.interval(row["flows"]), terminal.interval(row["bytes"]), row["meaning"]]
            for row in rows
        ],
        ("flows", "bytes"),
        ("meaning",),
    )


def _verdicts(verdicts: dict[str, float]) -> str:
    said = ", ".join(f"{state.replace('_', ' ')} {count:.0f}" for state, count in verdicts.items())
    return f"Verdicts over flows: {said}." if said else "No flow has a verdict."


def _models(rows: list[dict[str, Any]]) -> Table:
    headings = ["model", "applies", "first", "named", "ln ratio", "5 to 95 %", "near"]
    cells = [
        [
            row["model"],
            *(f"{row[name]:.0f}" for name in ("flows", "first", "named")),
            f"{row['quantiles']['0.5']:+.2f}",
            f"{row['quantiles']['0.05']:+.2f} to {row['quantiles']['0.95']:+.2f}",
            f"{row['near']:.0%}",
        ]
        for row in rows
        if row["flows"]
    ]
    return Table(headings, cells, tuple(headings[1:]))


def _parameters(rows: list[dict[str, Any]]) -> Table:
    headings = ["parameter", "flows", "5 %", "25 %", "median", "75 %", "95 %", "meaning"]
    cells = [
        [
            row["name"],
            f"{row['flows']:.0f}",
            *(words.quantity(row["name"], value) for value in row["quantiles"].values()),
            words.meaning(row["name"]),
        ]
        for row in rows
    ]
    return Table(headings, cells, tuple(headings[1:-1]), ("meaning",))


def _worst(rows: list[dict[str, Any]], links: Mapping[tuple[str, int], str]) -> Table:
    headings = ["capture", "flow", "cause", "goodput", "without it", "cost", "remedy"]
    cells = [
        {
            "link": links.get((row["capture"], row["flow"]), ""),
            "cells": [
                terminal.short(row["path"]),
                f"{row['flow']}: "
                + " \u2192 ".join(words.endpoint(row[end], row[f"{end}_port"]) for end in ("src", "dst")),
                row["primary"],
                words.rate(row["goodput_bps"]),
                words.rate(row["rate_bps"]),
                words.seconds(row["gain_s"]),
                row["remedy"] or "",
            ],
        }
        for row in rows
    ]
    return Table(headings, cells, ("goodput", "without it", "cost"), ("flow", "remedy"))


def _sides(contrast: dict[str, Any]) -> list[str]:
    return [
        f"{side['value']}: {words.plural(round(side['flows']), 'flow')} in {words.plural(side['captures'], 'capture')}."
        for side in contrast["sides"]
    ]


def _contrast(contrast: dict[str, Any]) -> Table:
    headings = ["quantity", contrast["by"], "value", "change", "95 %", ""]
    rows = []
    for row in contrast["rows"]:
        what = row["what"] if "against" not in row else ""
        rows.append([what, row["side"], *terminal.change(row)])
    return Table(headings, rows, ("value", "change", "95 %"))


def _status(captures: dict[str, Any]) -> str:
    said = ", ".join(f"{count} {status}" for status, count in captures["status"].items())
    packets, segments = (
        words.plural(captures[name], noun) for name, noun in (("packets", "packet"), ("tcp_segments", "TCP segment"))
    )
    return f"{words.plural(captures['captures'], 'capture')}: {said}. {packets}, {segments}."


def _tree(winners: dict[str, Any]) -> dict[str, Any]:
    if "nodes" not in winners:
        return {"nodes": [], "text": f"No tree: {winners['reason']}"}
    nodes = []
    for node in winners["nodes"]:
        size = sum(node["flows"].values())
        ordered = sorted(node["flows"].items(), key=lambda item: -item[1])
        (first, most), others = ordered[0], ordered[1:4]
        nodes.append(
            {
                "first": first,
                "share": f"{most / size:.0%}",
                "size": size,
                "others": ", ".join(f"{model} {count / size:.0%}" for model, count in others),
                "questions": across.questions(node) if "condition" in node else {},
                "below": node.get("below"),
                "above": node.get("above"),
            }
        )
    return {"nodes": nodes, "text": f"{winners['text']} In the tree a flow counts for every capture that saw it."}
