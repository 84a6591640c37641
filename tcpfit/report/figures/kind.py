"""What a kind of figure is: a name, a text alternative, tables, and a chart of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from tcpfit import arguments
from tcpfit.exceptions import InvalidParameter
from tcpfit.report import words

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis


class NothingToDraw(InvalidParameter):
    """The flow has nothing that this kind of figure shows; the message says what is missing."""


class Draw(Protocol):
    """How a chart is drawn."""

    def __call__(self, analysis: Analysis, flow: int, *, theme: str = "light") -> Any: ...


@dataclass(frozen=True)
class Kind:
    """A kind of figure of one flow.

    `describe(analysis, flow)` says in one or two sentences what it shows, with figures; `text(analysis, flow)`, its
    text alternative, also which direction of the flow is missing.
    `data(analysis, flow)` are the tables that it draws, by name, thinned out to what can be seen, but with every event.
    `chart(analysis, flow, theme="light")` is the Altair chart; `chart(...).to_dict()` its Vega-Lite specification, in
    which the tables are CSV under `datasets` and the theme is in `config` alone. Every mark that a frame stands behind
    has the field `frame` and, at run time, `filter`, a display filter of Wireshark; the selection `zoom` is bound to
    the scales.

    With `needs_segments` the analysis has to have its segments. All raise InvalidParameter for a flow that the capture
    does not have, `NothingToDraw` where the flow has nothing of the kind, and want an analysis of the whole capture
    (ports can be used again).
    """

    name: str
    title: str
    needs_segments: bool
    describe: Callable[[Analysis, int], str]
    data: Callable[[Analysis, int], dict[str, pl.DataFrame]]
    chart: Draw

    def text(self, analysis: Analysis, flow: int) -> str:
        """What the figure shows, and what the capture does not have of the flow."""
        missing = one_way(flow_row(analysis, flow))
        return self.describe(analysis, flow) + (f" {words.sentence(missing)}." if missing else "")


def flow_row(analysis: Analysis, flow: int) -> dict[str, Any]:
    """The row of a flow.

    Raises InvalidParameter for a number that the capture does not have.
    """
    return arguments.flow_rows(analysis, flow).row(0, named=True)


def one_way(row: dict[str, Any]) -> str | None:
    """Which direction of a flow alone is in the capture; None where both are."""
    if not row["data_segments"]:
        return "only the ACKs of its data are in the capture"
    return None if row["acks_seen"] else "only its data are in the capture, not the ACKs"


def start_ns(analysis: Analysis) -> int:
    """Where the times of a figure begin: at the capture's first packet, as those of `tcpfit events`."""
    return int(analysis.capture.get("start_ns") or 0)


def subtitle(row: dict[str, Any]) -> str:
    """The flow under a figure's title."""
    ends = " > ".join(words.endpoint(row[end], row[f"{end}_port"]) for end in ("src", "dst"))
    where = "" if row["vantage"] == "unknown" else f", seen at the {row['vantage']}"
    return f"flow {row['flow']}, {ends}{where}".replace("at the middle", "in the middle of the path")
