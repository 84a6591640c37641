"""Round-trip times over time: samples, those that a delayed ACK made long, the least of each stretch, the handshake's.

**Samples**: those of `tcpfit.report.round_trips`, and which of them a delayed ACK made long. Away from the sender that
is the receiver's side of the round trip only; the sender's side, from an ACK to the first data that echo its timestamp
(RFC 7323), is then drawn beside it.
**Rounds**: `rounds.rtt_s`, the round trip as the engine sees it, both sides together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tcpfit.report import round_trips, words
from tcpfit.report.figures import drawing, thinning
from tcpfit.report.figures.kind import Kind, NothingToDraw, flow_row, one_way, start_ns, subtitle
from tcpfit.report.figures.packets import Packets, packets

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

SAMPLES, ROUNDS, STRETCHES = 600, 200, 40
"""Most samples drawn, most rounds, and the stretches of time that have a least sample each."""

RARE = 150
"""Samples that are kept of those that look alike, however few they are among all."""

SIDES = {
    "data to ACK": (drawing.BLUE, "circle"),
    "the ACK was delayed": (drawing.ORANGE, "triangle-up"),
    "ACK to data": (drawing.TEAL, "diamond"),
}
LINES = {
    "mean of a round": (drawing.INDIGO, "M-1.5,0H1.5"),
    "least of a stretch": (drawing.GREEN, "M-1.5,.4H-.2M.2,-.4H1.5"),
    "handshake": (drawing.MAGENTA, "M-1.5,0H-.8M-.35,0H.35M.8,0H1.5"),
}


def data(analysis: Analysis, flow: int) -> dict[str, pl.DataFrame]:
    """`samples` (t of the answer, ms, what, frame of the answer, of: the frame that it answers), `rounds` (t, ms),
    `least` (t, until, ms) and `handshake` (ms, a row or none); times in s from the start of the capture."""
    row, seen = flow_row(analysis, flow), packets(analysis, flow)
    heard = answers(seen, row)
    both = [heard.with_columns(pl.col("ms") * 1e3)]
    if row["vantage"] != "sender":
        both.append(_echoes(seen).with_columns(pl.col("ms") * 1e3))
    rounds = (
        analysis.rounds.filter(pl.col("flow") == flow, pl.col("rtt_s").is_not_null())
        .sort("round")
        .select(t=(pl.col("start_ns") - start_ns(analysis)) / 1e9, ms=pl.col("rtt_s") * 1e3)
    )
    if not any(table.height for table in both) and rounds.is_empty():
        why = one_way(row) or "no data with the ACK of it"
        raise NothingToDraw(f"flow {flow} of {analysis.path} shows no round trip: {why}")
    whole = both[0] if row["vantage"] == "sender" else rounds
    least = _least(whole, (row["first_ns"] - start_ns(analysis)) / 1e9, (row["last_ns"] - start_ns(analysis)) / 1e9)
    handshake = row["handshake_rtt_s"]
    tables = {
        "samples": _thinned(pl.concat(both)),
        "rounds": thinning.line(rounds, "t", "ms", ROUNDS),
        "least": least,
        "handshake": pl.DataFrame({"ms": [] if handshake is None else [1e3 * handshake]}, schema={"ms": pl.Float64}),
    }
    places = drawing.time_decimals((row["last_ns"] - row["first_ns"]) / 1e9)
    return {
        name: drawing.rounded(
            table, {key: n for key, n in (("t", places), ("until", places), ("ms", 3)) if key in table.columns}
        )
        for name, table in tables.items()
    }


SAMPLE = pl.Schema({"t": pl.Float64(), "ms": pl.Float64(), "what": pl.String(), "frame": pl.Int64(), "of": pl.Int64()})


def answers(seen: Packets, row: dict[str, Any]) -> pl.DataFrame:
    """A sample a cumulative ACK (columns `SAMPLE`), in seconds under `ms`; `row`: the flow's."""
    flow = pl.lit(row["flow"], pl.UInt32).alias("flow")
    time_ns = (pl.col("t") * 1e9).round().cast(pl.Int64).alias("time_ns")
    rows = pl.DataFrame([{name: row[name] for name in ("flow", "smss_bytes")}])
    samples = round_trips.between(seen.data.with_columns(flow, time_ns), seen.acks.with_columns(flow, time_ns), rows)
    what = pl.when("delayed").then(pl.lit("the ACK was delayed")).otherwise(pl.lit("data to ACK"))
    return samples.select(
        t=pl.col("time_ns") / 1e9,
        ms="rtt_s",
        what=what,
        frame=pl.col("frame").cast(pl.Int64),
        of=pl.col("of_frame").cast(pl.Int64),
    )


def _echoes(seen: Packets) -> pl.DataFrame:
    """From the first ACK with a timestamp to the first data that echo it, in seconds under `ms`."""
    acks = seen.acks.filter(pl.col("tsval").is_not_null()).unique("tsval", keep="first", maintain_order=True)
    echoes = seen.data.filter(pl.col("tsecr").is_not_null()).unique("tsecr", keep="first", maintain_order=True)
    joined = acks.select("tsval", begun="t", of="frame").join(
        echoes.select("t", "frame", tsval="tsecr"), on="tsval", how="inner", maintain_order="right"
    )
    return (
        joined.with_columns(ms=pl.col("t") - pl.col("begun"), what=pl.lit("ACK to data"))
        .filter(pl.col("ms") > 0)
        .select(pl.col(name).cast(dtype) for name, dtype in SAMPLE.items())
    )


def _thinned(table: pl.DataFrame) -> pl.DataFrame:
    parts = [
        thinning.cloud(part, "t", "ms", max(SAMPLES * part.height // table.height, RARE)) for part in _sides(table)
    ]
    return pl.concat(parts).sort("t", maintain_order=True) if parts else table


def _sides(table: pl.DataFrame) -> list[pl.DataFrame]:
    return table.partition_by("what", maintain_order=True)


def _least(samples: pl.DataFrame, begin: float, end: float) -> pl.DataFrame:
    """The least of each stretch that has a sample, from its beginning to its end."""
    width = max(end - begin, 1e-9) / STRETCHES
    number = ((pl.col("t") - begin) / width).floor().clip(0, STRETCHES - 1)
    least = samples.group_by(number.alias("n"), maintain_order=True).agg(pl.col("ms").min()).sort("n")
    return least.select(t=begin + pl.col("n") * width, until=begin + (pl.col("n") + 1) * width, ms="ms")


def describe(analysis: Analysis, flow: int) -> str:
    """Least, middle and mean round trip, the handshake's, and how many samples a delayed ACK made long."""
    row, seen = flow_row(analysis, flow), packets(analysis, flow)
    data(analysis, flow)
    heard = answers(seen, row)
    delayed = heard.filter(pl.col("what") == "the ACK was delayed").height
    text = f"Round-trip times: {words.plural(heard.height, 'sample')} from data to ACK"
    if row["vantage"] != "sender":
        text += ", one side of the round trip"
    if heard.height:
        took = heard["ms"].to_numpy()
        text += f", least {words.seconds(float(took.min()))}, middle {words.seconds(float(np.median(took)))}"
        text += f", most {words.seconds(float(took.max()))}; {delayed} of them made long by a delayed ACK"
    if row["rtt_mean_s"] is not None:
        text += f"; mean as the sender sees it {words.seconds(row['rtt_mean_s'])}"
    if row["handshake_rtt_s"] is not None:
        text += f"; handshake {words.seconds(row['handshake_rtt_s'])}"
    return f"{text}."


def chart(analysis: Analysis, flow: int, *, theme: str = "light") -> Any:
    """A symbol a sample, lines of the rounds' means and of the least samples, a dashed line for the handshake."""
    alt = drawing.altair()
    row, tables = flow_row(analysis, flow), data(analysis, flow)
    there = set(tables["samples"]["what"])
    sides = [name for name in SIDES if name in there]
    by_line = zip(LINES, ("rounds", "least", "handshake"), strict=True)
    lines = {name: table for name, table in by_line if tables[table].height}
    names = [*sides, *lines]
    colours, shapes = ([SIDES[name][n] for name in sides] + [LINES[name][n] for name in lines] for n in (0, 1))
    legend = drawing.legend(3)
    colour = alt.Color("what:N", scale=alt.Scale(domain=names, range=colours), legend=legend)
    shape = alt.Shape("what:N", scale=alt.Scale(domain=names, range=shapes), legend=legend)
    x = drawing.time_axis(analysis, row)
    tops = [table["ms"].to_numpy().max() for table in tables.values() if table.height]
    y = alt.Y("ms:Q", title="round-trip time (ms)", scale=alt.Scale(domain=[0, 1.06 * float(max(tops))], nice=False))
    layers = []
    for name, table in lines.items():
        line = drawing.source(table, tables[table]).transform_calculate(what=f"'{name}'")
        if table == "handshake":
            layers.append(line.mark_rule(strokeDash=[6, 4], strokeWidth=1.5, clip=True).encode(y, colour))
        elif table == "least":
            layers.append(line.mark_rule(strokeWidth=2.5, clip=True).encode(x, y, colour, x2="until:Q"))
        else:
            layers.append(line.mark_line(strokeWidth=1.2, opacity=0.6, clip=True).encode(x, y, colour))
    if tables["samples"].height:
        tooltip = [
            alt.Tooltip("what:N"),
            alt.Tooltip("ms:Q"),
            alt.Tooltip("t:Q", title="time (s)"),
            alt.Tooltip("frame:Q"),
            alt.Tooltip("of:Q", title="answers frame"),
        ]
        points = drawing.source("samples", tables["samples"]).transform_calculate(filter=drawing.FILTER)
        layers.append(
            points.mark_point(size=16, strokeWidth=1.2, opacity=0.8, clip=True).encode(
                x, y, colour, shape, tooltip=tooltip
            )
        )
    halves = "" if row["vantage"] == "sender" else "away from the sender, each side is a part of the round trip"
    return drawing.finished(
        drawing.layered(layers),
        tables,
        title=KIND.title,
        subtitle=[text for text in (subtitle(row), halves) if text],
        theme=theme,
    )


KIND = Kind("rtt", "Round-trip times", True, describe, data, chart)
