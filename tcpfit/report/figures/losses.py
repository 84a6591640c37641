"""The timeline of all events: losses and their bursts, resends, recoveries, timeouts, reordering, marks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit.report import words
from tcpfit.report.figures import drawing
from tcpfit.report.figures.causes import ARROW_DOWN, HOURGLASS, RING, SALTIRE, STAR, TWO
from tcpfit.report.figures.kind import Kind, NothingToDraw, flow_row, one_way, start_ns, subtitle
from tcpfit.schema import REASONS

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

LANES = {
    "loss": ("lost", drawing.RED, SALTIRE),
    "loss_event": ("loss event", drawing.RED, "circle"),
    "retransmission": ("resent", drawing.BLUE, "triangle-up"),
    "recovery": ("recovery", drawing.TEAL, "triangle-right"),
    "timeout": ("timeout", drawing.ORANGE, HOURGLASS),
    "tail_loss_probe": ("tail loss probe", drawing.MAGENTA, STAR),
    "spurious": ("needless resend", drawing.INDIGO, RING),
    "reordering": ("late segment", drawing.GREEN, "diamond"),
    "reorder_event": ("reordering event", drawing.GREEN, "circle"),
    "duplicate": ("copy", drawing.GREY, TWO),
    "zero_window": ("zero window", drawing.MAGENTA, "square"),
    "probe": ("probe", drawing.BROWN, "cross"),
    "ecn_mark": ("ECN mark", drawing.PURPLE, ARROW_DOWN),
    "ecn_response": ("ECN response", drawing.PURPLE, "cross"),
}
"""A lane a kind of event, in this order from the top: name, colour, shape."""

SIZED = ("loss_event", "reorder_event", "ecn_mark")
"""Kinds whose symbols grow with the segments concerned."""

LASTING = ("loss_event", "recovery", "zero_window", "ecn_mark")
"""Kinds whose value is how long they lasted; that of a timeout is the timer, which ran before it."""


def data(analysis: Analysis, flow: int) -> dict[str, pl.DataFrame]:
    """`events`: t (s), begin and end of its span (s, null for an instant), kind, reason, frame, shown_by, segments."""
    row = flow_row(analysis, flow)
    kind = pl.col("kind").cast(pl.String)
    t, value = (pl.col("time_ns") - start_ns(analysis)) / 1e9, pl.col("value")
    timer, lasts = kind == "timeout", kind.is_in(LASTING) & (value > 0)
    events = (
        analysis.events.filter(pl.col("flow") == flow)
        .sort("time_ns", maintain_order=True)
        .select(
            "frame",
            "segments",
            t=t,
            begin=pl.when(timer).then(t - value).when(lasts).then(t),
            end=pl.when(timer).then(t).when(lasts).then(t + value),
            kind=kind,
            reason=pl.col("reason").cast(pl.String),
            shown_by="cause_frame",
        )
        .select("t", "begin", "end", "kind", "reason", "frame", "shown_by", "segments")
    )
    if events.is_empty():
        why = one_way(row) or "nothing was lost, resent or late, no window was closed"
        raise NothingToDraw(f"flow {flow} of {analysis.path} shows no event: {why}")
    places = drawing.time_decimals((row["last_ns"] - row["first_ns"]) / 1e9)
    return {"events": drawing.rounded(events, {"t": places, "begin": places, "end": places})}


def describe(analysis: Analysis, flow: int) -> str:
    """The events counted by kind, the largest burst, the time in recovery and waiting for timers."""
    events = data(analysis, flow)["events"]
    counts = dict(events.group_by("kind").len().iter_rows())
    said = ", ".join(f"{LANES[kind][0]} {counts[kind]}" for kind in LANES if kind in counts)
    text = f"Events over time: {said}."
    bursts = events.filter(pl.col("kind") == "loss_event")
    if bursts.height:
        text += f" The largest loss event has {words.plural(max(bursts['segments'].to_list()), 'lost segment')}."
    spent = (
        events.filter(pl.col("kind").is_in(["recovery", "timeout"]))
        .group_by("kind")
        .agg((pl.col("end") - pl.col("begin")).sum())
    )
    spans = dict(spent.iter_rows())
    if spans:
        named = {"recovery": "fast recovery", "timeout": "timers that ran out"}
        took = " and ".join(f"{named[kind]} took {words.seconds(spans[kind])}" for kind in named if kind in spans)
        text += f" {took[0].upper()}{took[1:]}."
    return text


def chart(analysis: Analysis, flow: int, *, theme: str = "light") -> Any:
    """A lane a kind of event: a symbol each, larger for a larger burst, and a bar over what lasts."""
    alt = drawing.altair()
    events = data(analysis, flow)["events"]
    counts = dict(events.group_by("kind").len().iter_rows())
    there = [kind for kind in LANES if kind in counts]
    names = {kind: f"{LANES[kind][0]} ({counts[kind]})" for kind in there}
    domain = list(names.values())
    colours, shapes = ([LANES[kind][n] for kind in there] for n in (1, 2))
    y = alt.Y(
        "lane:N", title=None, scale=alt.Scale(domain=domain), axis=alt.Axis(grid=True, ticks=False, labelLimit=220)
    )
    colour = alt.Color("lane:N", scale=alt.Scale(domain=domain, range=colours), legend=None)
    tooltip = [
        alt.Tooltip("lane:N", title="kind"),
        alt.Tooltip("frame:Q"),
        alt.Tooltip("shown_by:Q", title="shown by frame"),
        alt.Tooltip("t:Q", title="time (s)"),
        alt.Tooltip("begin:Q", title="from (s)"),
        alt.Tooltip("end:Q", title="to (s)"),
        alt.Tooltip("segments:Q"),
        alt.Tooltip("reason:N"),
        alt.Tooltip("rule:N"),
    ]
    reasons = sorted(set(events["reason"]))
    sized = " || ".join(f"datum.kind == '{kind}'" for kind in SIZED)
    base = drawing.source("events", events).transform_calculate(
        lane=drawing.choose("datum.kind", names),
        rule=drawing.choose("datum.reason", {name: REASONS[name] for name in reasons}),
        filter=drawing.FILTER,
        area=f"{sized} ? 30 * pow(max(datum.segments, 1), 0.8) : 45",
    )
    spans = base.transform_filter("datum.end != null").mark_bar(height=8, opacity=0.45, clip=True)
    symbols = base.mark_point(strokeWidth=1.5, opacity=1, clip=True)
    x = drawing.time_axis(analysis, flow_row(analysis, flow))
    layers = [
        spans.encode(
            drawing.time_axis(analysis, flow_row(analysis, flow), "begin:Q"), y, colour, x2="end:Q", tooltip=tooltip
        ),
        symbols.encode(
            x,
            y,
            colour,
            alt.Shape("lane:N", scale=alt.Scale(domain=domain, range=shapes), legend=None),
            alt.Size("area:Q", scale=None),
            tooltip=tooltip,
        ),
    ]
    return drawing.finished(
        drawing.layered(layers, encodings=["x"], height=28 * len(there)),
        {"events": events},
        title=KIND.title,
        subtitle=[subtitle(flow_row(analysis, flow)), "bars: as long as it lasted; circles grow with the burst"],
        theme=theme,
    )


KIND = Kind("losses", "Losses, resends, reordering", False, describe, data, chart)
