"""What all figures share: Altair and vl-convert (the extra `plot`), the look in light and dark, data in compact form,
and files: HTML that needs no network, SVG, PNG, PDF, Vega-Lite's JSON.

Colours of marks have a contrast of at least 3:1 on both backgrounds (WCAG 2.2, 1.4.11), text one of at least 4.5:1
(1.4.3), so the two themes of a figure differ in `config` only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit import arguments
from tcpfit.exceptions import InvalidParameter
from tcpfit.report.figures.page import page

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

SUFFIXES = (".html", ".svg", ".png", ".pdf", ".json")

THEMES = ("light", "dark")

MISSING = "drawing needs Altair and vl-convert: pip install 'tcpfit[plot]'"

BACKGROUND = {"light": "#ffffff", "dark": "#14181d"}
TEXT = {"light": "#24292f", "dark": "#dde3ea"}
FAINT_TEXT = {"light": "#57606a", "dark": "#a3adb8"}
GRID = {"light": "#e7eaee", "dark": "#2a313a"}
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif"

BLUE, TEAL, RED, ORANGE, PURPLE, BROWN, GREY, GREEN, MAGENTA, OLIVE, INDIGO = (
    "#2a7fd4",
    "#1a8f96",
    "#dc3f3a",
    "#c2680c",
    "#9a5fd6",
    "#9d6a45",
    "#77808a",
    "#3a8f3e",
    "#cc459a",
    "#858019",
    "#6b72e6",
)

WIDTH, HEIGHT = 760, 340

REPEATED = 4
"""A text that comes so often in a table on average is a number in its CSV."""

ZOOM = "zoom"
"""Name of the selection that is bound to the scales of a figure."""

FILTER = "datum.frame == null ? '' : 'frame.number == ' + datum.frame"
"""The display filter that shows a mark's frame in Wireshark, as a Vega expression."""


def altair() -> Any:
    """The module; raises `InvalidParameter` where it is not installed."""
    try:
        import altair
    except ImportError:
        raise InvalidParameter(MISSING) from None
    return altair


def config(theme: str) -> dict[str, Any]:
    """Vega-Lite's `config` of a theme, the only part of a figure that depends on it.

    Raises `InvalidParameter` for a theme that is none of `THEMES`.
    """
    arguments.one_of("theme", theme, THEMES)
    text, faint, grid = TEXT[theme], FAINT_TEXT[theme], GRID[theme]
    return {
        "background": BACKGROUND[theme],
        "font": FONT,
        "axis": {
            "gridColor": grid,
            "domainColor": faint,
            "tickColor": faint,
            "labelColor": text,
            "titleColor": text,
            "labelFontSize": 11,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
        },
        "legend": {"labelColor": text, "titleColor": text, "labelFontSize": 11, "symbolSize": 70, "labelLimit": 240},
        "title": {
            "color": text,
            "subtitleColor": faint,
            "anchor": "start",
            "fontSize": 14,
            "subtitleFontSize": 12,
            "offset": 10,
        },
        "view": {"stroke": None},
        "mark": {"aria": False},  # the figure has one text alternative; a thousand labels are none
        "text": {"color": text},
        "style": {"guide": {"color": faint}, "note": {"color": faint, "fontSize": 11}},
    }


def source(table: str, frame: pl.DataFrame) -> Any:
    """A chart of a table of the figure, which `finished` puts beside it as CSV: each column is named once, and texts
    that come again and again are numbers there, which a transform turns back."""
    alt = altair()
    codes = _codes(frame)
    kinds = {name: "number" if name in codes else _parse(dtype) for name, dtype in frame.schema.items()}
    chart = alt.Chart(alt.NamedData(name=table, format=alt.CsvDataFormat(type="csv", parse=kinds)))
    texts = {name: f"{json.dumps(values)}[datum.{name}]" for name, values in codes.items()}
    return chart.transform_calculate(**texts) if texts else chart


def _parse(dtype: pl.DataType) -> str:
    if dtype.is_numeric():
        return "number"
    return "boolean" if dtype == pl.Boolean else "string"


def _codes(frame: pl.DataFrame) -> dict[str, list[str]]:
    """The texts of columns that have few different ones, in the order of their first rows."""
    columns = {name: frame[name].drop_nulls().unique(maintain_order=True) for name in frame.columns}
    few = {name: texts.to_list() for name, texts in columns.items() if texts.dtype == pl.String}
    return {name: texts for name, texts in few.items() if REPEATED * len(texts) < frame.height}


def _csv(frame: pl.DataFrame) -> str:
    numbered = [
        pl.col(name).replace_strict(texts, range(len(texts)), return_dtype=pl.UInt32)
        for name, texts in _codes(frame).items()
    ]
    return frame.with_columns(numbered).write_csv()


def finished(
    chart: Any, tables: Mapping[str, pl.DataFrame], *, title: str, subtitle: str | Sequence[str], theme: str
) -> Any:
    """The chart with its tables as CSV (each column named once), its title and the look of a theme."""
    alt = altair()
    chart.title = alt.TitleParams(title, subtitle=[subtitle] if isinstance(subtitle, str) else list(subtitle))
    chart.datasets = {name: _csv(frame) for name, frame in tables.items()}
    chart.config = config(theme)
    return chart


def layered(
    layers: Sequence[Any], *, encodings: Sequence[str] = ("x", "y"), width: int = WIDTH, height: int = HEIGHT
) -> Any:
    """A single view, of which the wheel and dragging change the scales."""
    alt = altair()
    zoom = alt.selection_interval(name=ZOOM, bind="scales", encodings=list(encodings))
    return alt.layer(layers[0].add_params(zoom), *layers[1:], width=width, height=height)


def time_axis(analysis: Analysis, row: Mapping[str, Any], field: str = "t:Q") -> Any:
    """The x axis of a figure over time: of all figures of a flow the same, so that they can be held side by side."""
    alt = altair()
    begin, end = ((row[name] - (analysis.capture.get("start_ns") or 0)) / 1e9 for name in ("first_ns", "last_ns"))
    margin = 0.01 * max(end - begin, 1e-5)
    domain = [round(begin - margin, 6), round(end + margin, 6)]
    return alt.X(
        field,
        title="time since the start of the capture (s)",
        scale=alt.Scale(domain=domain, nice=False),
        axis=alt.Axis(tickCount=12),
    )


def legend(columns: int = 5) -> Any:
    """A legend below the figure, of shapes as they are drawn."""
    alt = altair()
    return alt.Legend(
        title=None,
        orient="bottom",
        columns=columns,
        symbolStrokeWidth=1.8,
        symbolFillColor="transparent",
        symbolOpacity=1,
    )


def key(field: str, looks: Sequence[tuple[str, str, str]], columns: int = 5) -> Any:
    """A layer that draws nothing but gives each series of a figure, by name, colour and shape, its place in the legend,
    so that no two are told apart by colour alone. Layers over the same field take scales and legend from it."""
    alt = altair()
    names, colours, shapes = map(list, zip(*looks, strict=True))
    own = {"legend": legend(columns)}
    return (
        alt.Chart(alt.InlineData(values=[{field: ""}]))
        .transform_filter("false")
        .mark_point()
        .encode(
            alt.Color(f"{field}:N", scale=alt.Scale(domain=names, range=colours), **own),
            alt.Shape(f"{field}:N", scale=alt.Scale(domain=names, range=shapes), **own),
        )
    )


def rounded(frame: pl.DataFrame, decimals: Mapping[str, int]) -> pl.DataFrame:
    """Columns rounded to so many decimals; digits that nobody can see are bytes that somebody mails."""
    return frame.with_columns(pl.col(name).round(places) for name, places in decimals.items())


def time_decimals(duration_s: float) -> int:
    """Decimals of a time in seconds on an axis of that length: a millionth of it, milliseconds to microseconds."""
    return next((places for places in (3, 4, 5) if duration_s >= 10 ** (6 - places)), 6)


def choose(expression: str, texts: Mapping[str, str]) -> str:
    """A Vega expression that looks up a text."""
    return f"({json.dumps(dict(texts))})[{expression}]"


_COORDINATES = re.compile(r' (?:d|transform|x1|x2|y1|y2|x|y|width|height)="[^"]*"')
_NEEDLESS = re.compile(r'<path[^>]* opacity="0"/>| aria-hidden="true"| (?:fill-|stroke-)?opacity="1"')


def _slim(svg: str, description: str) -> str:
    """The same picture in half the bytes: hundredths of a pixel, nothing that is invisible, one text alternative."""
    places = re.compile(r"(\.\d\d)\d+")
    svg = _COORDINATES.sub(lambda match: places.sub(r"\1", match[0]), _NEEDLESS.sub("", svg))
    label = f' role="img" aria-label="{escape(description)}"' if description else ""
    return svg.replace("<svg ", f"<svg{label} ", 1)


def render(chart: Any, suffix: str) -> bytes:
    """The chart as a file of that suffix, one of `SUFFIXES`; HTML holds all its scripts.

    Raises `InvalidParameter` where vl-convert is missing.
    """
    try:
        import vl_convert
    except ImportError:
        raise InvalidParameter(MISSING) from None
    spec = chart.to_dict()
    spec["config"].setdefault("axis", {"gridColor": "#e6e6e6", "labelFontSize": 11, "titleFontSize": 12})
    if suffix == ".json":
        return (json.dumps(spec, indent=1, ensure_ascii=False) + "\n").encode()
    if suffix == ".png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=2))
    if suffix == ".pdf":
        return bytes(vl_convert.vegalite_to_pdf(spec))
    if suffix == ".svg":
        return _slim(str(vl_convert.vegalite_to_svg(spec)), spec.get("description", "")).encode()
    return page(spec, str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))).encode()
