"""Graphs of a flow as tcptrace writes them for xplot: time sequence, outstanding data, round trips, throughput.

Files, colours and marks are tcptrace's (6.6.7: -S, -N, -R, -T): `a2b_tsg.xpl` and so on, a the host that sent the first
packet of the first connection, b its peer, c and d those of the second. In the time sequence graph data are white
arrows, the ACKs a green line with a tick at each duplicate, the window's edge yellow, SACK blocks purple with an S, and
resends have a red R.
**Departures**: sequence numbers count from the initial one (as with tcptrace's -z), so that they do not wrap;
connections are those that carried data; a magenta x with an L stands at what was inferred lost and an orange O at what
came late; pushes, SYN and FIN have no marks; of outstanding data there is the course, not the averages.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tcpfit.report import traffic, words
from tcpfit.report.figures.kind import flow_row, start_ns
from tcpfit.report.figures.packets import Packets, packets
from tcpfit.report.figures.rtt import answers

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

RECENT = 10
"""Segments over which the throughput is averaged (tcptrace's -A)."""

GRAPHS = {
    "tsg": ("double", "time sequence graph", "sequence number"),
    "owin": ("signed", "outstanding data", "Outstanding Data (bytes)"),
    "rtt": ("double", "rtt samples", "rtt (ms)"),
    "tput": ("signed", "throughput", "thruput (bytes/sec)"),
}
"""Kinds of graphs: coordinates of the y axis, title, its label."""


def graphs(analysis: Analysis, flow: int) -> dict[str, str]:
    """The four files of a flow, by name; `analysis` needs its segments, of the whole capture.

    Raises InvalidParameter for a flow that there is not, and without segments.
    """
    row, seen = flow_row(analysis, flow), packets(analysis, flow)
    ends = [words.endpoint(row[end], row[f"{end}_port"]) for end in ("src", "dst")]
    zero = start_ns(analysis)
    bodies = {"tsg": _sequence(analysis, flow, seen), "owin": _outstanding(seen), "tput": _throughput(seen)}
    bodies["rtt"] = _round_trips(seen, row)
    name = _name(analysis, row["connection"], (row["src"], row["src_port"]))
    files = {}
    for graph, (coordinates, title, label) in GRAPHS.items():
        head = ["timeval " + coordinates, "title", f"{'_==>_'.join(ends)} ({title})", "xlabel", "time", "ylabel", label]
        files[f"{name}_{graph}.xpl"] = "\n".join([*head, *_timed(bodies[graph], zero), "go"]) + "\n"
    return files


LATELY = 1024
"""Times that are known as text: marks of one packet, and ends of lines, have the same."""

Line = tuple[str, tuple[float, ...], str]
"""A command, its places as time, y, ..., and the text or colour behind it."""


def _timed(lines: Iterator[Line], zero: int) -> Iterator[str]:
    """The lines with times since the epoch, in microseconds; `zero` in nanoseconds is where the times begin."""

    @lru_cache(LATELY)
    def time(value: float) -> str:
        seconds, us = divmod((zero + round(1e9 * value)) // 1000, 1_000_000)
        return f"{seconds}.{us:06d}"

    for command, places, rest in lines:
        at = [time(value) if n % 2 == 0 else f"{value:.10g}" for n, value in enumerate(places)]
        yield " ".join([command, *at])
        if rest:
            yield rest


def _name(analysis: Analysis, connection: int, sender: tuple[str, int]) -> str:
    flows = analysis.flows.filter(pl.col("connection") == connection)["flow"].to_list()
    first = traffic.labelled(analysis, flows).filter(pl.col("connection") == connection).row(0, named=True)
    number = sorted(analysis.flows["connection"].unique()).index(connection)
    one, other = _letters(2 * number), _letters(2 * number + 1)
    return f"{one}2{other}" if (first["src"], first["src_port"]) == sender else f"{other}2{one}"


def _letters(number: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    text = ""
    number += 1
    while number:
        number, place = divmod(number - 1, 26)
        text = chr(ord("a") + place) + text
    return text


def _steps(times: np.ndarray, values: np.ndarray, colour: str) -> Iterator[Line]:
    """A line that stays and jumps."""
    yield colour, (), ""
    points = zip(times.tolist(), values.tolist(), strict=True)
    for (since, old), (until, new) in pairwise(points):
        yield "line", (since, old, until, old), ""
        if new != old:
            yield "line", (until, old, until, new), ""


def _sequence(analysis: Analysis, flow: int, seen: Packets) -> Iterator[Line]:
    events = analysis.events.filter(pl.col("flow") == flow).with_columns(
        pl.col("kind").cast(pl.String), t=(pl.col("time_ns") - start_ns(analysis)) / 1e9
    )
    acks, edges = seen.acks["acked"].cum_max().to_numpy(), seen.acks.drop_nulls("window")
    at = seen.acks["t"].to_numpy()
    yield from _steps(at, acks, "green")
    again = np.flatnonzero(acks[1:] == acks[:-1]) + 1
    for point in zip(at[again].tolist(), acks[again].tolist(), strict=True):
        yield "dtick", point, ""
    yield from _steps(edges["t"].to_numpy(), (edges["acked"] + edges["window"]).to_numpy(), "yellow")
    yield "purple", (), ""
    for t, left, right in seen.sacks.select("t", "left", "right").iter_rows():
        yield "line", (t, left, t, right), ""
        yield "htick", (t, left), ""
        yield "htick", (t, right), ""
        yield "atext", (t, right), "S"
    yield "white", (), ""
    for t, left, right in seen.data.select("t", "left", "right").iter_rows():
        yield "darrow", (t, left), ""
        yield "uarrow", (t, right), ""
        yield "line", (t, left, t, right), ""
    for kind, colour, letter in (
        ("retransmission", "red", "R"),
        ("reordering", "orange", "O"),
        ("loss", "magenta", "L"),
    ):
        yield colour, (), ""
        for t, left, right in events.filter(pl.col("kind") == kind).select("t", "left", "right").iter_rows():
            if kind == "loss":
                yield "x", (t, left), ""
            yield "atext", (t, right), letter


def _outstanding(seen: Packets) -> Iterator[Line]:
    """Bytes sent beyond the last ACK, at each data segment and each ACK, and the advertised window."""
    data = seen.data.select("t", edge=pl.col("right").cum_max())
    acks = seen.acks.select("t", acked=pl.col("acked").cum_max())
    both = (
        pl.concat([data, acks], how="diagonal")
        .sort("t", maintain_order=True)
        .with_columns(pl.col("edge", "acked").forward_fill())
        .drop_nulls()
    )
    outstanding = (both["edge"] - both["acked"]).clip(0).to_numpy()
    yield from _steps(both["t"].to_numpy(), outstanding, "red")
    window = seen.acks.drop_nulls("window")
    yield from _steps(window["t"].to_numpy(), window["window"].to_numpy(), "yellow")


def _round_trips(seen: Packets, row: dict[str, Any]) -> Iterator[Line]:
    yield "red", (), ""
    before: tuple[float, float] | None = None
    for t, took in answers(seen, row).select("t", "ms").iter_rows():
        here = (t, 1e3 * took)
        yield "dot", here, ""
        if before is not None:
            yield "line", (*here, *before), ""
        before = here


def _throughput(seen: Packets) -> Iterator[Line]:
    """Between two segments (yellow), over the last ten (red), since the first (blue)."""
    at = seen.data["t"].to_list()
    sizes = (seen.data["right"] - seen.data["left"]).to_list()
    total = list(accumulate(sizes))
    yield "yellow", (), ""
    for n in range(1, len(at)):
        if at[n] > at[n - 1]:
            yield "dot", (at[n], round(sizes[n] / (at[n] - at[n - 1]))), ""
    for colour, recent in (("red", RECENT), ("blue", 0)):  # 0: all of them
        first = {n: n - recent if recent else 0 for n in range(RECENT, len(at), RECENT)}
        points = [
            (at[n], round((total[n] - total[since]) / (at[n] - at[since])))
            for n, since in first.items()
            if at[n] > at[since]
        ]
        yield colour, (), ""
        for n, point in enumerate(points):
            yield "dot", point, ""
            if n:
                yield "line", (*points[n - 1], *point), ""
