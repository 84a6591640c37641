"""What all figures share: Altair and vl-convert (the extra `plot`), the look in light and dark, data in compact form,
and files: HTML that needs no network, SVG, PNG, PDF, Vega-Lite's JSON.

Colours of marks have a contrast of at least 3:1 on both backgrounds (WCAG 2.2, 1.4.11), text one of at least 4.5:1
(1.4.3), so the two themes of a figure differ in `config` only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tcpfit.exceptions import InvalidParameter

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
    if theme not in THEMES:
        raise InvalidParameter(f"theme must be one of {', '.join(THEMES)}, got {theme!r}")
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
        "text": {"color": text},
        "style": {"guide": {"color": faint}, "note": {"color": faint, "fontSize": 11}},
    }


def named(table: str, frame: pl.DataFrame) -> Any:
    """A reference to a table of the figure, with the types of its columns."""
    alt = altair()
    kinds = {name: _parse(dtype) for name, dtype in frame.schema.items()}
    return alt.NamedData(name=table, format=alt.CsvDataFormat(type="csv", parse=kinds))


def _parse(dtype: pl.DataType) -> str:
    if dtype.is_numeric():
        return "number"
    return "boolean" if dtype == pl.Boolean else "string"


def finished(
    chart: Any, tables: Mapping[str, pl.DataFrame], *, title: str, subtitle: str | Sequence[str], theme: str
) -> Any:
    """The chart with its tables as CSV (each column named once), its title and the look of a theme."""
    alt = altair()
    below = [subtitle] if isinstance(subtitle, str) else list(subtitle)
    return chart.properties(
        title=alt.TitleParams(title, subtitle=below),
        datasets={name: frame.write_csv() for name, frame in tables.items()},
        config=config(theme),
        usermeta={"embedOptions": {"actions": {"export": True, "source": False, "compiled": False, "editor": False}}},
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
        return str(vl_convert.vegalite_to_svg(spec)).encode()
    return str(vl_convert.vegalite_to_html(spec, bundle=True)).encode()
