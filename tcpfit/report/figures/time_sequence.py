"""The time-sequence graph: data, ACKs, SACK blocks and the receiver's window, with every loss and every resend by its
cause (after Jacobson's and tcptrace's plots)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit.report import words
from tcpfit.report.figures import causes, drawing, thinning
from tcpfit.report.figures.kind import Kind, NothingToDraw, flow_row, subtitle
from tcpfit.report.figures.packets import packets

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

DATA, ACKS, WINDOW, SACKS = 600, 160, 80, 120
"""Most points of each, besides the events, of which none is left out."""

LINES = {
    "data": (drawing.GREY, "M0,-1.2V1.2"),
    "acknowledged": (drawing.GREEN, "M-1.5,.6H0V-.6H1.5"),
    "window": (drawing.OLIVE, "M-1.5,0H-.8M-.35,0H.35M.8,0H1.5"),
    "SACK": (drawing.PURPLE, "M-.3,-1.2H.3V1.2H-.3Z"),
}
"""Colour and the legend's symbol of what is no event."""

FAR = 3.0
"""A window edge so many times as far as the data would flatten them; the axis then ends above the data."""


def data(analysis: Analysis, flow: int) -> dict[str, pl.DataFrame]:
    """`data` and `sacks` (t, left, right, frame, segments that the row stands for), `acks` (t, acked, frame), `window`
    (t, edge) and `marks` (`causes.marks`); t in seconds since the start of the capture, offsets in bytes."""
    row, seen = flow_row(analysis, flow), packets(analysis, flow)
    if not seen.data.height and not seen.acks.height:
        raise NothingToDraw(f"flow {flow} of {analysis.path} has no segment in the span of time that was analysed")
    marks = causes.marks(analysis, flow)
    plain = seen.data.drop("tsecr").filter(~pl.col("frame").is_in(marks["frame"].drop_nulls().implode()))
    acks = seen.acks.with_columns(pl.col("acked").cum_max()) if seen.data.height else seen.acks
    edge = seen.acks.select("t", "frame", edge=pl.col("acked") + pl.col("window")).drop_nulls("edge")
    tables = {
        "data": thinning.bars(plain, DATA),
        "sacks": thinning.bars(seen.sacks.filter(~pl.col("repeated")).drop("repeated"), SACKS),
        "acks": thinning.line(thinning.steps(acks.select("t", "acked", "frame"), "acked"), "t", "acked", ACKS),
        "window": thinning.line(thinning.steps(edge, "edge"), "t", "edge", WINDOW).select("t", "edge"),
        "marks": marks,
    }
    places = drawing.time_decimals((row["last_ns"] - row["first_ns"]) / 1e9)
    return {name: drawing.rounded(table, {"t": places}) for name, table in tables.items()}


def describe(analysis: Analysis, flow: int) -> str:
    """How much went in which time, and the marks counted by cause."""
    row, marks = flow_row(analysis, flow), data(analysis, flow)["marks"]
    length = words.seconds((row["last_ns"] - row["first_ns"]) / 1e9)
    carried = f"{words.plural(row['data_segments'], 'data segment')} with {words.size(row['unique_bytes'])} in {length}"
    none = "nothing was lost, resent or late"
    if not row["data_segments"]:
        carried = f"ACKs of {words.size(row['acked_bytes'])} in {length}"
        none = "they show no loss"
    elif not row["acks_seen"]:
        none = "they show nothing lost, resent or late"
    first = f"Sequence numbers over time: {carried}"
    counted = [f"{cause.name} {marks.filter(pl.col('cause') == cause.name).height}" for cause in causes.shown(marks)]
    return f"{first}. Marked: {', '.join(counted)}." if counted else f"{first}; {none}."


def chart(analysis: Analysis, flow: int, *, theme: str = "light") -> Any:
    """Bars of data and SACK blocks, steps of ACKs and the window's edge, a symbol an event; scales zoom and pan."""
    alt = drawing.altair()
    tables = data(analysis, flow)
    found = causes.shown(tables["marks"])
    drawn = [
        name for name, table in zip(LINES, ("data", "acks", "window", "sacks"), strict=True) if tables[table].height
    ]
    looks = [(name, *LINES[name]) for name in drawn] + [(cause.name, cause.colour, cause.shape) for cause in found]
    seen_as = alt.Color("cause:N")

    def of(table: str, name: str) -> Any:
        source = drawing.source(table, tables[table])
        return source.transform_calculate(cause=f"'{name}'", filter=drawing.FILTER)

    x = drawing.time_axis(analysis, flow_row(analysis, flow))
    top = max(_most(tables[table][name]) for table, name in (("data", "right"), ("acks", "acked"), ("marks", "right")))
    edge = _most(tables["window"]["edge"])
    domain = alt.Scale(domainMax=1.05 * top) if edge > FAR * top else alt.Scale(nice=False)

    def y(field: str) -> Any:
        axis = alt.Axis(labelExpr="format(datum.value, datum.value ? '~s' : 'd')", tickCount=8)
        return alt.Y(field, title="sequence number (bytes from the first)", scale=domain, axis=axis)

    frame, time = alt.Tooltip("frame:Q"), alt.Tooltip("t:Q", title="time (s)")
    span = [alt.Tooltip("left:Q", title="first byte", format=","), alt.Tooltip("right:Q", title="up to", format=",")]
    layers = []
    if tables["window"].height:
        layers.append(
            of("window", "window")
            .mark_line(
                interpolate=thinning.interpolation(tables["window"], WINDOW),
                strokeDash=[6, 4],
                strokeWidth=1.3,
                clip=True,
            )
            .encode(x, y("edge:Q"), seen_as)
        )
    bars = (("data", "data", 1.6, "segments"), ("sacks", "SACK", 3.0, "SACK blocks"))
    for table, name, width, what in bars:
        if tables[table].height:
            more = alt.Tooltip("segments:Q", title=f"{what} drawn as one")
            layers.append(
                of(table, name)
                .mark_rule(strokeWidth=width, clip=True)
                .encode(x, y("left:Q"), seen_as, y2="right:Q", tooltip=[frame, time, *span, more])
            )
    if tables["acks"].height:
        layers.append(
            of("acks", "acknowledged")
            .mark_line(interpolate=thinning.interpolation(tables["acks"], ACKS), strokeWidth=1.3, clip=True)
            .encode(x, y("acked:Q"), seen_as)
        )
    if found:
        tooltip = [
            alt.Tooltip("cause:N"),
            frame,
            alt.Tooltip("shown_by:Q", title="shown by frame"),
            time,
            *span,
            alt.Tooltip("reason:N"),
            alt.Tooltip("rule:N"),
        ]
        layers.append(
            drawing.source("marks", tables["marks"])
            .transform_calculate(filter=drawing.FILTER, rule=causes.reasons(tables["marks"]))
            .mark_point(size=55, strokeWidth=1.6, opacity=1, clip=True)
            .encode(
                x,
                y("left:Q"),
                seen_as,
                alt.Shape("cause:N"),
                tooltip=tooltip,
            )
        )
    layers.append(drawing.key("cause", looks))
    return drawing.finished(
        drawing.layered(layers),
        tables,
        title=KIND.title,
        subtitle=subtitle(flow_row(analysis, flow)),
        theme=theme,
    )


def _most(column: pl.Series) -> int:
    return max(column.drop_nulls().to_list(), default=0)


KIND = Kind("time-sequence", "Sequence numbers over time", True, describe, data, chart)
