"""Silences of the sender over time: when each began, how long it lasted, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit.diagnosis import stalls
from tcpfit.diagnosis.connections import segments_of
from tcpfit.report import words
from tcpfit.report.figures import drawing
from tcpfit.report.figures.causes import ARROW_DOWN, HOURGLASS, STAR
from tcpfit.report.figures.kind import Kind, NothingToDraw, flow_row, one_way, start_ns, subtitle

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

CAUSES = {
    stalls.TIMEOUT: (drawing.ORANGE, HOURGLASS),
    stalls.PROBE: (drawing.MAGENTA, STAR),
    stalls.ZERO_WINDOW: (drawing.MAGENTA, "square"),
    stalls.WINDOW: (drawing.OLIVE, "triangle-down"),
    stalls.APPLICATION: (drawing.BLUE, "circle"),
    stalls.DELAY: (drawing.TEAL, "triangle-right"),
    stalls.CAPTURE_GAP: (drawing.BROWN, ARROW_DOWN),
    stalls.UNKNOWN: (drawing.GREY, "cross"),
}
"""Colour and shape of each cause."""

STALLS = pl.Schema(
    {
        "begin": pl.Float64(),
        "end": pl.Float64(),
        "length": pl.Float64(),
        "cause": pl.String(),
        "detail": pl.String(),
        "outstanding": pl.Int64(),
        "timer": pl.Float64(),
        "frame": pl.Int64(),
        "last_before": pl.Int64(),
    }
)


def data(analysis: Analysis, flow: int) -> dict[str, pl.DataFrame]:
    """`stalls`: begin, end, length (s), cause, detail, outstanding (bytes), timer (s), the frame that ended it and the
    last one before it; a row each stall of `tcpfit.diagnosis.stalls`."""
    row = flow_row(analysis, flow)
    since = start_ns(analysis)
    found = [
        {
            "begin": (stall.start_ns - since) / 1e9,
            "end": (stall.end_ns - since) / 1e9,
            "length": stall.length_s,
            "cause": stall.cause,
            "detail": stall.detail,
            "outstanding": stall.outstanding_bytes,
            "timer": stall.timer_s,
            "frame": stall.frame_after,
            "last_before": stall.frame_before,
        }
        for stall in stalls.stalls(row, analysis.events, segments_of(analysis, row))
    ]
    if not found:
        why = one_way(row) or "no silence longer than two round trips or the timer"
        raise NothingToDraw(f"flow {flow} of {analysis.path} shows no stall: {why}")
    places = drawing.time_decimals((row["last_ns"] - row["first_ns"]) / 1e9)
    table = pl.DataFrame(found, schema=STALLS)
    return {"stalls": drawing.rounded(table, {"begin": places, "end": places, "length": 6, "timer": 6})}


def describe(analysis: Analysis, flow: int) -> str:
    """How many stalls of each cause, how long all took, and the longest."""
    row, table = flow_row(analysis, flow), data(analysis, flow)["stalls"]
    whole = (row["last_ns"] - row["first_ns"]) / 1e9
    counts = dict(table.group_by("cause").len().iter_rows())
    named = ", ".join(f"{cause} {counts[cause]}" for cause in CAUSES if cause in counts)
    longest = table.sort("length", descending=True).row(0, named=True)
    return (
        f"{words.plural(table.height, 'stall')} ({named}) took {words.seconds(float(table['length'].sum()))} of "
        f"{words.seconds(whole)}. The longest, {words.seconds(longest['length'])} from {longest['begin']:.3f} s on, "
        f"has the cause {longest['cause']} and ended with frame {longest['frame']}."
    )


def chart(analysis: Analysis, flow: int, *, theme: str = "light") -> Any:
    """A bar from begin to end at the height of its length, on a logarithmic axis, with a symbol by its cause."""
    alt = drawing.altair()
    table = data(analysis, flow)["stalls"]
    causes = [cause for cause in CAUSES if cause in set(table["cause"])]
    legend = drawing.legend()
    colours, shapes = ([CAUSES[cause][n] for cause in causes] for n in (0, 1))
    colour = alt.Color("cause:N", scale=alt.Scale(domain=causes, range=colours), legend=legend)
    lengths = table["length"].to_list()
    ticks = alt.Axis(format="~g", values=_ticks(min(lengths), max(lengths)))
    scale = alt.Scale(type="log", domain=[ticks["values"][0], ticks["values"][-1]], nice=False, padding=12)
    y = alt.Y("length:Q", title="length (s)", scale=scale, axis=ticks)
    tooltip = [
        alt.Tooltip("cause:N"),
        alt.Tooltip("detail:N"),
        alt.Tooltip("length:Q", title="length (s)"),
        alt.Tooltip("begin:Q", title="from (s)"),
        alt.Tooltip("end:Q", title="to (s)"),
        alt.Tooltip("timer:Q", title="timer (s)"),
        alt.Tooltip("outstanding:Q", title="bytes outstanding", format=","),
        alt.Tooltip("last_before:Q", title="last frame before"),
        alt.Tooltip("frame:Q", title="ended by frame"),
    ]
    base = drawing.source("stalls", table).transform_calculate(filter=drawing.FILTER)
    shape = alt.Shape("cause:N", scale=alt.Scale(domain=causes, range=shapes), legend=legend)
    bars = base.mark_rule(strokeWidth=3, opacity=0.6, clip=True)
    symbols = base.mark_point(size=55, strokeWidth=1.6, opacity=1, clip=True)
    x = drawing.time_axis(analysis, flow_row(analysis, flow), "begin:Q")
    layers = [
        bars.encode(x, y, colour, x2="end:Q", tooltip=tooltip),
        symbols.encode(x, y, colour, shape, tooltip=tooltip),
    ]
    return drawing.finished(
        drawing.layered(layers),
        {"stalls": table},
        title=KIND.title,
        subtitle=[subtitle(flow_row(analysis, flow)), "a bar as long as the silence, at the height of its length"],
        theme=theme,
    )


def _ticks(least: float, most: float) -> list[float]:
    """1, 2, 5, 10, ... from below the least to above the most."""
    steps = [round(n * 10.0**k, 9) for k in range(-9, 7) for n in (1, 2, 5)]
    first = max(i for i, step in enumerate(steps[:-1]) if step <= max(least, steps[0]))
    return [step for step in steps[first:] if steps[first] == step or step < most] + [
        next((step for step in steps if step >= most and step > steps[first]), steps[-1])
    ]


KIND = Kind("stalls", "Stalls", True, describe, data, chart)
