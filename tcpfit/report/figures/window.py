"""The window over time: data outstanding, the congestion window as the rounds bound it, the receiver's window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit.report import words
from tcpfit.report.figures import drawing, thinning
from tcpfit.report.figures.kind import Kind, NothingToDraw, flow_row, one_way, start_ns, subtitle

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

ROUNDS = 360
"""Most rounds drawn of each line."""

AT_LEAST = "M-.8,0H.8L0,-1.4Z"
"""Stands on the value and points up."""

LINES = {
    "flight": (drawing.BLUE, "M-1.5,.6H0V-.6H1.5"),
    "congestion window, inferred": (drawing.TEAL, "M-1.2,-.3H1.2V.3H-1.2Z"),
    "congestion window at least": (drawing.TEAL, AT_LEAST),
    "receiver's window": (drawing.OLIVE, "M-1.5,0H-.8M-.35,0H.35M.8,0H1.5"),
}
REACTIONS = {
    "loss_event": ("loss event", drawing.RED, "M-1,-1L1,1M1,-1L-1,1"),
    "timeout": ("timeout", drawing.ORANGE, "M-1,-1H1L-1,1H1Z"),
    "ecn_response": ("ECN response", drawing.PURPLE, "cross"),
}
"""Events at which a sender reduces its window: name, colour, shape."""

FAR = 2.0
"""A receiver's window so many times as large as the flight would flatten it; the axis then ends above the flight."""

STEEP = 8.0
"""A flight whose most is so many times its median gets a square-root axis: slow start would flatten the rest."""


def data(analysis: Analysis, flow: int) -> dict[str, pl.DataFrame]:
    """`rounds` (t, until, round, flight, low, high, least, rwnd; windows in segments) and `marks` (t, flight, kind,
    reason, frame, segments), an event each loss event, timeout and ECN response. `least` is `low` where a row of rounds
    begins that have that lower bound and no upper one."""
    row = flow_row(analysis, flow)
    since = (pl.col("start_ns") - start_ns(analysis)) / 1e9
    rounds = (
        analysis.rounds.filter(pl.col("flow") == flow)
        .sort("round")
        .select("round", "flight", "rwnd", t=since, low="cwnd_low", high="cwnd_high")
    )
    if rounds["flight"].null_count() == rounds.height:
        raise NothingToDraw(f"flow {flow} of {analysis.path} shows no flight: {one_way(row) or 'it has no round'}")
    rounds = rounds.with_columns(until=pl.col("t").shift(-1).fill_null((row["last_ns"] - start_ns(analysis)) / 1e9))
    if rounds.height > ROUNDS:
        near = rounds.select(pl.col("rwnd").min() < FAR * pl.col("flight").max()).item()
        names = ("flight", "rwnd") if near else ("flight",)
        lines = [thinning.line(rounds.drop_nulls(name), "t", name, ROUNDS) for name in names]
        rounds = pl.concat(lines).unique("round").sort("round")
    only = pl.when(pl.col("high").is_null()).then("low")
    rounds = rounds.with_columns(least=pl.when(only.ne_missing(only.shift())).then(only))
    marks = (
        analysis.events.filter(pl.col("flow") == flow, pl.col("kind").cast(pl.String).is_in(list(REACTIONS)))
        .sort("time_ns", maintain_order=True)
        .select(
            "flight",
            "frame",
            "segments",
            t=(pl.col("time_ns") - start_ns(analysis)) / 1e9,
            kind=pl.col("kind").cast(pl.String),
            reason=pl.col("reason").cast(pl.String),
        )
    )
    places = drawing.time_decimals((row["last_ns"] - row["first_ns"]) / 1e9)
    order = ("t", "until", "round", "flight", "low", "high", "least", "rwnd")
    windows = {"flight": 1, "low": 1, "high": 1, "rwnd": 1, "t": places, "until": places}
    return {
        "rounds": drawing.rounded(rounds.select(order), windows),
        "marks": drawing.rounded(
            marks.select("t", "flight", "kind", "reason", "frame", "segments"), {"t": places, "flight": 1}
        ),
    }


def describe(analysis: Analysis, flow: int) -> str:
    """Typical and largest flight, the receiver's window, what bounds the congestion window, and how often it was
    reduced."""
    row, tables = flow_row(analysis, flow), data(analysis, flow)
    own = analysis.rounds.filter(pl.col("flow") == flow)
    middle, bounded = own["flight"].median(), own["cwnd_high"].drop_nulls().len()
    below = own.filter(pl.col("cwnd_high").is_null(), pl.col("cwnd_low").is_not_null()).height
    text = (
        f"Windows of {words.plural(own.height, 'round')}: flight {_segments(middle)} in the middle, "
        f"{_segments(row['flight_max'])} at most"
    )
    if row["rwnd_max"] is not None:
        text += f"; the receiver advertised {_segments(row['rwnd_min'])} to {_segments(row['rwnd_max'])} segments"
    bounds = {"on both sides": bounded, "only from below, by the flight,": below}
    said = [f"{how} in {words.plural(count, 'round')}" for how, count in bounds.items() if count]
    text += f"; the congestion window is {'bounded ' if said else 'not bounded'}{' and '.join(said)}"
    counts = [(name, tables["marks"].filter(pl.col("kind") == kind).height) for kind, (name, *_) in REACTIONS.items()]
    marked = [words.plural(count, name) for name, count in counts if count]
    return f"{text}. Marked: {', '.join(marked)}." if marked else f"{text}."


def _segments(value: Any) -> str:
    return words.number(value)


def chart(analysis: Analysis, flow: int, *, theme: str = "light") -> Any:
    """Steps of the flight and of the receiver's window, a bar a round from the lower to the upper bound of the
    congestion window, a triangle on a lower bound without an upper one, a symbol at the flight of each event that
    reduces it."""
    alt = drawing.altair()
    tables = data(analysis, flow)
    rounds, marks = tables["rounds"], tables["marks"]
    bounded, below, known = (rounds[name].null_count() < rounds.height for name in ("high", "least", "rwnd"))
    flights = [*rounds["flight"].drop_nulls(), *rounds["high"].drop_nulls(), *marks["flight"].drop_nulls()]
    advertised = rounds["rwnd"].drop_nulls().to_list()
    top, widest = max(flights, default=1.0), max(advertised, default=0.0)
    cut = widest > FAR * top
    most = 1.15 * (top if cut else max(top, widest))
    shown = known and min(advertised) <= most
    drawn = [name for name, there in zip(LINES, (True, bounded, below, shown), strict=True) if there]
    looks = [(name, *LINES[name]) for name in drawn]
    looks += [REACTIONS[kind] for kind in REACTIONS if kind in marks["kind"].to_list()]
    seen_as, shape = alt.Color("what:N"), alt.Shape("what:N")
    x = drawing.time_axis(analysis, flow_row(analysis, flow))
    steep = top > STEEP * max(float(rounds["flight"].drop_nulls().median() or 0.0), 1.0)  # type: ignore[arg-type]
    kind = {"type": "sqrt"} if steep else {}
    scale = alt.Scale(domain=[0, most], nice=False, **kind)
    heading = "segments (square-root axis)" if steep else "segments"

    def y(field: str) -> Any:
        return alt.Y(field, title=heading, scale=scale)

    def of(name: str) -> Any:
        return drawing.source("rounds", rounds).transform_calculate(what=f'"{name}"')

    tooltip = [
        alt.Tooltip("round:Q"),
        alt.Tooltip("t:Q", title="start (s)"),
        alt.Tooltip("flight:Q"),
        alt.Tooltip("low:Q", title="congestion window at least"),
        alt.Tooltip("high:Q", title="at most"),
        alt.Tooltip("rwnd:Q", title="receiver's window"),
    ]
    between = thinning.interpolation(rounds, ROUNDS)
    layers = []
    if shown:
        steps = of("receiver's window").mark_line(interpolate=between, strokeDash=[6, 4], clip=True)
        layers.append(steps.encode(x, y("rwnd:Q"), seen_as))
    if bounded:
        inferred = of("congestion window, inferred").transform_filter("datum.high != null")
        from_low = inferred.transform_calculate(low="datum.low == null ? datum.high : datum.low")
        # not by the scale: its fill would be that of every symbol of the legend
        look: dict[str, Any] = {"fill": drawing.TEAL, "stroke": drawing.TEAL, "strokeJoin": "round", "clip": True}
        band = from_low.mark_rect(strokeWidth=4, strokeOpacity=0.55, fillOpacity=0.3, **look)
        layers.append(band.encode(x, y("low:Q"), x2="until:Q", y2="high:Q"))
    if below:
        least = of("congestion window at least").transform_filter("datum.least != null")
        above = least.mark_point(size=30, strokeWidth=1.2, opacity=1, clip=True)
        layers.append(above.encode(x, y("least:Q"), seen_as, shape, tooltip=tooltip))
    flight = of("flight").mark_line(interpolate=between, strokeWidth=1.3, clip=True)
    layers.append(flight.encode(x, y("flight:Q"), seen_as))
    hover = of("flight").mark_point(size=60, opacity=0)
    layers.append(hover.encode(x, y("flight:Q"), tooltip=tooltip))
    if marks.height:
        kinds = {kind: name for kind, (name, _, _) in REACTIONS.items()}
        symbols = (
            drawing.source("marks", marks)
            .transform_calculate(what=drawing.choose("datum.kind", kinds), filter=drawing.FILTER)
            .mark_point(size=45, strokeWidth=1.6, opacity=1)
        )
        said = [alt.Tooltip("what:N"), alt.Tooltip("frame:Q"), alt.Tooltip("t:Q", title="time (s)")]
        said += [alt.Tooltip("flight:Q"), alt.Tooltip("segments:Q"), alt.Tooltip("reason:N")]
        layers.append(symbols.encode(x, y("flight:Q"), seen_as, shape, tooltip=said))
    layers.append(drawing.key("what", looks))
    note = f"the receiver's window, up to {words.number(widest)} segments, lies above" if cut else ""
    return drawing.finished(
        drawing.layered(layers),
        tables,
        title=KIND.title,
        subtitle=[text for text in (subtitle(flow_row(analysis, flow)), note) if text],
        theme=theme,
    )


KIND = Kind("window", "Flight and windows", False, describe, data, chart)
