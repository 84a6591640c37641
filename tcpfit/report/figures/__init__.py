"""Figures as Vega-Lite, drawn by Altair and vl-convert (the extra `plot`): those of a flow, a kind a file, and models'
predictions.

kind.py           what a kind of figure is
drawing.py        the look in light and dark, data in compact form, files
page.py           a figure as an HTML file
thinning.py       points that cannot be told apart left out
packets.py        the segments of a flow and what answered them
causes.py         what an event looks like
time_sequence.py  data, ACKs, SACK blocks and window over time, with every loss and resend by its cause
window.py         flight, congestion window, receiver's window
rtt.py            round-trip times
rate.py           observed rate beside every model's
losses.py         all events, a lane a kind
intervals.py      segments between loss events
shares.py         where the time went
stalls.py         silences of the sender
ranking.py        predicted over observed rate of every model
residuals.py      the same of the nearest models, block by block
predictions.py    models' predictions without a capture
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpfit import arguments
from tcpfit.exceptions import InvalidParameter
from tcpfit.report.figures import (
    intervals,
    losses,
    ranking,
    rate,
    residuals,
    rtt,
    shares,
    stalls,
    time_sequence,
    window,
)
from tcpfit.report.figures.drawing import SUFFIXES, THEMES, ZOOM, config, render
from tcpfit.report.figures.kind import Kind, NothingToDraw
from tcpfit.report.figures.predictions import COLOURS, predictions

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

KINDS: dict[str, Kind] = {
    module.KIND.name: module.KIND
    for module in (time_sequence, window, rtt, rate, ranking, residuals, losses, intervals, shares, stalls)
}
"""The figures of a flow by name, in the order in which a report shows them."""


def draw(analysis: Analysis, kind: str, flow: int | None = None, *, theme: str = "light") -> Any:
    """The chart of a kind, with its text alternative as `description`; of the largest flow if none is named.

    Raises InvalidParameter for a kind, flow or theme that there is not, `NothingToDraw` where the flow has nothing of
    the kind.
    """
    arguments.analysis(analysis)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidParameter(f"{kind!r} is no kind of figure; the kinds are {', '.join(KINDS)}")
    if flow is not None:
        flow = arguments.flow_number(analysis, flow)
    else:
        largest = analysis.largest()
        if not largest:
            raise NothingToDraw(f"{analysis.path} has no TCP flow that carried data in what was analysed")
        flow = largest[0]
    if KINDS[kind].needs_segments:
        analysis.check_segments()
    chart = KINDS[kind].chart(analysis, flow, theme=theme)
    chart.description = KINDS[kind].text(analysis, flow)
    return chart


__all__ = [
    "COLOURS",
    "KINDS",
    "SUFFIXES",
    "THEMES",
    "ZOOM",
    "Kind",
    "NothingToDraw",
    "config",
    "draw",
    "predictions",
    "render",
]
