"""The page as one file: templates, style and script put together, figures and Vega packed into it.

Everything from a capture goes through Jinja's escaping. Figures and the library are deflated and in base64: no string
in them can end the script element that holds them, and the file is a third of the size. The policy in the file's head
allows no request at all and no script but the two of the page, named by their hashes (CSP 2, 4.2.5): markup that came
through all the same would not run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import tcpfit
from tcpfit.exceptions import InvalidParameter
from tcpfit.report import sentences, words
from tcpfit.report.page.content import LISTED, Content, content

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis
    from tcpfit.report.page.pictures import Picture

DRAWN = 20
"""Flows that have a section of their own where no number was asked for."""

NUMBERS = ("flow", "goodput", "bytes", "duration", "lost", "p", "RTT")
"""Columns of the table of flows that are aligned right."""

MISSING = "a report needs Jinja, Altair and vl-convert: pip install 'tcpfit[report]'"

NO_SEGMENTS = (
    "The saved tables hold no segments: figures of packets, stalls and findings about packets are missing. "
    "tcpfit report CAPTURE --data saves them too."
)


@dataclass(frozen=True)
class Figures:
    """The figures of a flow: what the page says of them, and their specifications packed."""

    pictures: list[Picture]
    packed: str


def render(analysis: Analysis, *, drawn: int = DRAWN, data: str = "") -> str:
    """The page of an analysis as HTML; the `drawn` largest flows have a section of their own.

    The analysis needs its segments; where they are an empty table, the page says that they were not saved. `data`
    names the folder beside the page that holds its tables. Raises InvalidParameter where an extra is missing.
    """
    check()
    numbers = analysis.largest()
    listed = analysis.select(numbers[: max(LISTED, drawn)])
    with_segments = analysis.segments.height > 0 or not numbers
    page = content(listed, numbers[:drawn], [] if with_segments else [NO_SEGMENTS])
    figures = {each.flow: _figures(listed.around(each.flow), each.flow, with_segments) for each in page.sections}
    return _put_together(page, len(numbers), figures, data)


def check() -> None:
    """Raises InvalidParameter where a library that the page is made with is missing."""
    try:
        import altair  # noqa: F401
        import jinja2  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError:
        raise InvalidParameter(MISSING) from None


def _figures(analysis: Analysis, flow: int, with_segments: bool) -> Figures:
    from tcpfit.report.page.pictures import pictures

    found = pictures(analysis, flow, with_segments=with_segments)
    specs = {picture.name: picture.spec for picture in found if picture.spec is not None}
    return Figures(found, packed(json.dumps(specs, separators=(",", ":"))) if specs else "")


def packed(text: str) -> str:
    """Text deflated (RFC 1950) and in base64, as the page's script unpacks it."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _put_together(page: Content, flows: int, figures: dict[int, Figures], data: str) -> str:
    return put_together(
        "page.html",
        drawn=any(each.packed for each in figures.values()),
        name="standard input" if page.capture["path"] == "-" else PurePath(page.capture["path"]).name,
        facts=_facts(page.capture, flows),
        capture=page.capture,
        dropped=words.dropped(page.capture["interface_drops"]),
        missed=_missed(page.capture["capture_loss"]),
        doubtful=any(row.cells["p"][0].endswith("?") for row in page.rows) and sentences.DOUBTFUL,
        dataless=words.without_data(page.capture["without_data"]),
        flows=flows,
        rows=page.rows,
        listed=f"Showing {words.plural(len(page.rows), 'flow')}.",
        unlisted=_unlisted(flows, len(page.rows)),
        numbers=NUMBERS,
        causes=page.causes,
        states=page.states,
        missing=page.missing,
        sections=page.sections,
        figures=figures,
        data=data,
    )


def put_together(template: str, *, drawn: bool, **values: Any) -> str:
    """A page of that template as HTML, with the style, the script and, where something is `drawn`, the library."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    templates = Environment(
        loader=PackageLoader("tcpfit.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["sentence"] = words.sentence
    script = _file("page.js").replace("THEMES", json.dumps(_themes()) if drawn else "{}")
    html = templates.get_template(template).render(
        version=tcpfit.__version__,
        policy=_policy([script, _library()] if drawn else [script]),
        style=Markup(_file("page.css")),  # noqa: S704 files of this package
        script=Markup(script),  # noqa: S704
        library=packed(_library()) if drawn else "",
        **values,
    )
    return html.encode("utf-8", "replace").decode()  # a path may hold bytes that are no text


def _facts(capture: dict[str, Any], flows: int) -> str:
    links = ", ".join(capture["link_types"])
    facts = [
        " ".join(part for part in (capture["format"], links and f"({links})") if part),
        words.plural(capture["packets"] or 0, "packet"),
        words.plural(flows, "flow"),
        "" if capture["duration_s"] is None else words.seconds(capture["duration_s"]),
    ]
    return ", ".join(fact for fact in facts if fact)


def _missed(loss: dict[str, float | None]) -> str:
    if not loss["rate"]:
        return ""
    return (
        f"The capture itself missed {loss['rate']:.2%} of the data segments "
        f"(95 % interval {loss['low']:.2%} to {loss['high']:.2%})."
    )


def _unlisted(flows: int, listed: int) -> str:
    if flows <= listed:
        return ""
    return f"{words.plural(flows - listed, 'smaller flow')} not listed; tcpfit analyze --format csv has every flow."


def _policy(scripts: Sequence[str]) -> str:
    """The content security policy: these scripts and inline styles, nothing from anywhere."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


@cache
def _file(name: str) -> str:
    return resources.files("tcpfit.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    """Vega, Vega-Lite and vega-embed in one script."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _themes() -> dict[str, Any]:
    from tcpfit.report.figures import THEMES, config

    return {theme: config(theme) for theme in THEMES}
