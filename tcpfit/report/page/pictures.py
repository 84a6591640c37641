"""The figures of a flow for the page: heading, text alternative, Vega-Lite's specification, small tables as text."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit.report import words
from tcpfit.report.figures import KINDS, NothingToDraw

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

TABLED = 60
"""Most rows of a figure's tables together that are also shown as a table."""


@dataclass(frozen=True)
class Table:
    """One of a figure's tables as text."""

    name: str
    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Picture:
    """A figure of a flow; `spec` is None where there is nothing to draw, and `text` says why."""

    name: str
    title: str
    text: str
    spec: dict[str, Any] | None
    tables: list[Table]


def pictures(analysis: Analysis, flow: int, *, with_segments: bool) -> list[Picture]:
    """Every kind of figure of one flow, in the order of `KINDS`.

    Without segments the kinds that draw packets are left out. Raises InvalidParameter where Altair is missing.
    """
    return [_picture(analysis, flow, name) for name, kind in KINDS.items() if with_segments or not kind.needs_segments]


def _picture(analysis: Analysis, flow: int, name: str) -> Picture:
    kind = KINDS[name]
    try:
        spec = kind.chart(analysis, flow).to_dict(validate=False)
        text, data = kind.text(analysis, flow), kind.data(analysis, flow)
    except NothingToDraw as nothing:
        return Picture(name, kind.title, words.sentence(str(nothing).replace(f" of {analysis.path}", "")), None, [])
    return Picture(name, kind.title, text, of_page(spec), _tables(data))


def of_page(spec: dict[str, Any]) -> dict[str, Any]:
    """A Vega-Lite specification as the page has it: without title and theme, its tables by column."""
    for part in ("title", "config", "usermeta", "$schema"):  # the heading and the page's theme stand for them
        spec.pop(part, None)
    spec["datasets"] = {name: _columns(table) for name, table in spec.get("datasets", {}).items()}
    _without_csv(spec)
    return spec


def _columns(table: str | list[dict[str, Any]]) -> dict[str, list[Any]]:
    """A table by column. Vega reads CSV with code that it makes of the headings, which the page's policy forbids."""
    if isinstance(table, str):
        heading, *rows = csv.reader(io.StringIO(table))
        return {name: [row[place] or None for row in rows] for place, name in enumerate(heading)}
    names = dict.fromkeys(name for row in table for name in row)
    return {name: [row.get(name) for row in table] for name in names}


def _without_csv(spec: Any) -> None:
    """Let every source of data be read as objects; the types of its columns stay."""
    if isinstance(spec, dict):
        if spec.get("type") == "csv" and "parse" in spec:
            del spec["type"]
        for part in spec.values():
            _without_csv(part)
    elif isinstance(spec, list):
        for part in spec:
            _without_csv(part)


def _tables(data: dict[str, pl.DataFrame]) -> list[Table]:
    """The tables of a figure where they are small enough to be read."""
    if not 0 < sum(table.height for table in data.values()) <= TABLED:
        return []
    return [
        Table(name, table.columns, [[_cell(cell) for cell in row] for row in table.iter_rows()])
        for name, table in data.items()
        if table.height
    ]


def _cell(value: Any) -> str:
    if value is None:
        return words.NONE
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
