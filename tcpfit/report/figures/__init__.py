"""Figures as Vega-Lite, drawn by Altair and vl-convert (the extra `plot`): those of a flow, a kind a file, and models'
predictions.

kind.py           what a kind of figure is
drawing.py        the look in light and dark, data in compact form, files
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
predictions.py    models' predictions without a capture
"""

from tcpfit.report.figures import intervals, losses, ranking, rate, rtt, shares, stalls, time_sequence, window
from tcpfit.report.figures.drawing import SUFFIXES, THEMES, ZOOM, config, render
from tcpfit.report.figures.kind import Kind, NothingToDraw
from tcpfit.report.figures.predictions import COLOURS, predictions

KINDS: dict[str, Kind] = {
    module.KIND.name: module.KIND
    for module in (time_sequence, window, rtt, rate, ranking, losses, intervals, shares, stalls)
}
"""The figures of a flow by name, in the order in which a report shows them."""

__all__ = [
    "COLOURS",
    "KINDS",
    "SUFFIXES",
    "THEMES",
    "ZOOM",
    "Kind",
    "NothingToDraw",
    "config",
    "predictions",
    "render",
]
