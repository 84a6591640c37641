"""Events and segments one by one: lines for a terminal and JSON lines."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Collection, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit.report import traffic, words
from tcpfit.report.encoding import nan_as_null
from tcpfit.schema import ENDS, SCHEMA_VERSION

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

ROWS_AT_A_TIME = 4096

ALIGNED = 1 << 16
"""Rows of a table for people that are laid out together, so that the first are printed soon."""

NO_ROUND_TRIP = "  no round trip to show: no data with the ACK of it"

VALUES = {
    "retransmission": "{} since it was last sent",
    "loss": "RTT {}",
    "loss_event": "lasting {}",
    "recovery": "lasting {}",
    "timeout": "timer {}",
    "tail_loss_probe": "timer {}",
    "reordering": "{} late",
    "reorder_event": "{} late",
    "zero_window": "lasting {}",
    "ecn_mark": "lasting {}",
}
"""What the column `value` is of each kind that has one."""

COUNTS = {
    "loss_event": "{} lost",
    "recovery": "{} resent",
    "timeout": "back-off {}",
    "reordering": "overtaken by {}",
    "reorder_event": "{} late",
    "zero_window": "",
    "probe": "",
    "ecn_mark": "{} marked",
    "ecn_response": "",
}
"""What the column `segments` is of each kind; of the others, segments concerned."""


def events(
    analysis: Analysis, flows: Collection[int] | None = None, kinds: Collection[str] | None = None
) -> pl.DataFrame:
    """Events in order of time, of these flows and kinds or of all.

    Raises InvalidParameter for a flow that the capture does not have.
    """
    table = analysis.select(list(flows) if flows else None).events
    if kinds:
        table = table.filter(pl.col("kind").cast(pl.String).is_in(list(kinds)))
    return table.sort(["time_ns", "flow"], maintain_order=True)


def segments(analysis: Analysis, flows: Collection[int] | None = None) -> pl.DataFrame:
    """The table of segments; where flows are named, those of their connections, both directions.

    Raises InvalidParameter for a flow that the capture does not have.
    """
    if not flows:
        return analysis.segments
    analysis.select(list(flows))
    return traffic.labelled(analysis, flows).select(analysis.segments.columns)


def within(analysis: Analysis, table: pl.DataFrame, from_s: float | None, to_s: float | None) -> pl.DataFrame:
    """The rows of a table of events or segments in a span, both ends included, in seconds since the capture's start."""
    start_ns, time = analysis.capture.get("start_ns") or 0, pl.col("time_ns")
    if from_s is not None:
        table = table.filter(time >= start_ns + round(1e9 * from_s))
    if to_s is not None:
        table = table.filter(time <= start_ns + round(1e9 * to_s))
    return table


def json_lines(table: pl.DataFrame, capture: str) -> Iterator[str]:
    """A line of JSON a row, each with its capture's path and the schema."""
    head = json.dumps({"schema": SCHEMA_VERSION, "capture": capture}, separators=(",", ":")).removesuffix("}")
    for part in nan_as_null(table).iter_slices(ROWS_AT_A_TIME):
        for line in part.write_ndjson().splitlines():
            yield f"{head},{line.removeprefix('{')}"


def _ends(flow: dict[str, Any]) -> str:
    """10.0.0.1:40000 > 10.0.0.2:80; a long address loses its middle."""
    return " > ".join(words.short_endpoint(flow[end], flow[f"{end}_port"]) for end in ("src", "dst"))


def _legend(analysis: Analysis, numbers: list[int]) -> Iterator[str]:
    """A line a flow: its number and its ends."""
    width = max((len(str(number)) for number in numbers), default=0)
    table = analysis.flows.filter(pl.col("flow").is_in(numbers)).sort("flow")
    for flow in table.iter_rows(named=True):
        yield f"  flow {flow['flow']:>{width}}  {_ends(flow)}"


def event_lines(analysis: Analysis, table: pl.DataFrame, width: int) -> Iterator[str]:
    """Events for people: flows with their ends, then time since the start of the capture and what is known of each."""
    if table.is_empty():
        yield "  no event to show"
        return
    yield from _legend(analysis, table["flow"].unique().to_list())
    yield ""
    start_ns = analysis.capture.get("start_ns") or 0
    several = table["flow"].n_unique() > 1
    heads = ["time", *(["flow"] if several else []), "kind", "reason", "frame", "cause", "conf"]

    def cells(row: dict[str, Any]) -> list[str]:
        time, flow = _since(row["time_ns"], start_ns), [str(row["flow"])] if several else []
        frames = [_number(row["frame"]), _number(row["cause_frame"])]
        return [time, *flow, row["kind"], row["reason"], *frames, f"{row['confidence']:.2f}"]

    rows = ((cells(row), details(row)) for row in table.iter_rows(named=True))
    yield from _table(heads, {"kind", "reason"}, "bytes, segments, value", rows, width, below="kind")


def segment_lines(analysis: Analysis, table: pl.DataFrame, width: int) -> Iterator[str]:
    """Segments for people, with offsets instead of sequence numbers.

    `0 >` is a segment of the sender of flow 0, `0 <` one of its receiver, where that one sends no data itself.
    """
    table = traffic.labelled(analysis).join(table.select("frame"), on="frame", how="semi", maintain_order="left")
    if table.is_empty():
        yield "  no TCP segment to show"
        return
    yield from _legend(analysis, table["flow"].drop_nulls().unique().to_list())
    yield ""
    start_ns = analysis.capture.get("start_ns") or 0
    heads = ["frame", "time", "flow", "flags", "bytes", "ack", "window"]

    def cells(row: dict[str, Any]) -> list[str]:
        flags = "".join(name[0] for name in traffic.flag_names(row["flags"]))
        data = f"{row['left']}-{row['right']}" if row["left"] is not None else words.plural(row["payload"], "byte")
        place = [str(row["frame"]), _since(row["time_ns"], start_ns), _way(row)]
        return [*place, flags, data if row["payload"] else "", _number(row["acked"]), str(row["window"])]

    rows = ((cells(row), _options(row)) for row in table.iter_rows(named=True))
    yield from _table(heads, {"flow", "flags"}, "options", rows, width, below="flow")


def round_trip_lines(analysis: Analysis, table: pl.DataFrame, width: int) -> Iterator[str]:
    """Samples of `round_trips` for people: when the ACK passed, what it answers, and whether it waited."""
    if table.is_empty():
        yield NO_ROUND_TRIP
        return
    yield from _legend(analysis, table["flow"].unique().to_list())
    yield ""
    start_ns = analysis.capture.get("start_ns") or 0
    several = table["flow"].n_unique() > 1
    heads = ["time", *(["flow"] if several else []), "ACK", "answers", "bytes", "rtt"]

    def cells(row: dict[str, Any]) -> list[str]:
        time, flow = _since(row["time_ns"], start_ns), [str(row["flow"])] if several else []
        numbers = [str(row[name]) for name in ("frame", "of_frame", "acked_bytes")]
        return [time, *flow, *numbers, f"{1e3 * row['rtt_s']:.2f} ms"]

    def tail(row: dict[str, Any]) -> str:
        if row["delayed"]:
            return "a delayed ACK"
        return "" if row["prompt"] else f"may have waited {words.seconds(row['wait_s'])}"

    rows = ((cells(row), tail(row)) for row in table.iter_rows(named=True))
    yield from _table(heads, (), "the ACK", rows, width, below="ACK")


def round_trip_summaries(analysis: Analysis, table: pl.DataFrame, width: int) -> Iterator[str]:
    """Rows of `round_trips.by_flow` for people, two lines each."""
    if table.is_empty():
        yield NO_ROUND_TRIP
        return
    yield ""
    counts = ("samples", "prompt", "delayed")
    times = {"least": "min_s", "5 %": "p05_s", "median": "p50_s", "95 %": "p95_s", "99 %": "p99_s"}

    def cells(row: dict[str, Any]) -> list[str]:
        shown = [words.seconds(row[name]) for name in times.values()]
        return [str(row["flow"]), *(str(row[name]) for name in counts), *shown]

    known = table.join(analysis.flows.select("flow", *ENDS), on="flow", how="left", maintain_order="left")
    rows = ((cells(row), _ends(row) + _drift(row)) for row in known.iter_rows(named=True))
    yield from _table(["flow", *counts, *times], (), "", rows, width, below="samples")


def _drift(row: dict[str, Any]) -> str:
    """How the least of a flow's round trips changes, where that is more than chance."""
    if row["drift"] is None or row["drift_low"] <= 0 <= row["drift_high"]:
        return ""
    return f", {'rising' if row['drift'] > 0 else 'falling'} {words.seconds(60 * abs(row['drift']))} a minute"


def _table(
    heads: list[str],
    to_the_left: Collection[str],
    tail_head: str,
    rows: Iterator[tuple[list[str], str]],
    width: int,
    below: str,
) -> Iterator[str]:
    """Columns as wide as the first many rows need, and a last one.

    Where that does not fit beside the others all rows have further lines for it, which begin below the column `below`.
    """
    widths = [len(head) for head in heads]
    some = [(heads, tail_head), *islice(rows, ALIGNED)]
    one_line: bool | None = None
    while some:
        widths = [max(w, *(len(cells[n]) for cells, _ in some)) for n, w in enumerate(widths)]
        if one_line is None:
            one_line = sum(widths) + 2 * len(widths) + max(len(tail) for _, tail in some) <= width
        place = heads.index(below)
        margin = " " * (sum(widths[:place]) + 2 * place)
        for cells, tail in some:
            columns = zip(heads, cells, widths, strict=True)
            line = "  ".join(f"{cell:<{w}}" if head in to_the_left else f"{cell:>{w}}" for head, cell, w in columns)
            if one_line or not tail:
                yield f"{line}  {tail}".rstrip()
                continue
            yield line.rstrip()
            yield from _parts(tail, margin, width)
        some = list(islice(rows, ALIGNED))


def _parts(tail: str, margin: str, width: int) -> Iterator[str]:
    """A tail in lines of that width, broken between its parts only."""
    whole = re.sub(r"(?<!,) ", "\N{NO-BREAK SPACE}", tail)
    for line in textwrap.wrap(whole, width - len(margin), break_long_words=False, break_on_hyphens=False):
        yield margin + line.replace("\N{NO-BREAK SPACE}", " ")


def details(event: dict[str, Any]) -> str:
    """The range of bytes, the count and the value of an event with what they are: 1-1449, 1 segment, RTT 50.0 ms."""
    kind, count, value = event["kind"], event["segments"], event["value"]
    parts = [f"{event['left']}-{event['right']}"]
    counted = COUNTS[kind].format(count) if kind in COUNTS else words.plural(count, "segment")
    if counted:
        parts.append(counted)
    if value is not None and kind in VALUES:
        parts.append(VALUES[kind].format(words.seconds(value)))
    if (event["doublings"] or 0) > count:
        parts.append("doubled by a series before")
    if event["timeout_follows"]:
        parts.append("a timeout follows")
    return ", ".join(parts)


def _way(row: dict[str, Any]) -> str:
    if row["flow"] is not None:
        return f"{row['flow']} >"
    return words.NONE if row["reverse"] is None else f"{row['reverse']} <"


def _options(row: dict[str, Any]) -> str:
    """SACK blocks as offsets, then what only a handshake has."""
    parts = []
    for left, right in traffic.sack_blocks(row):
        parts.append(f"SACK {left}-{right}")
    for name, word in (("mss", "MSS"), ("window_scale", "scale")):
        if row[name] is not None:
            parts.append(f"{word} {row[name]}")
    if row["sack_permitted"]:
        parts.append("SACK permitted")
    if row["mptcp"] and row["mss"] is not None:
        parts.append("MPTCP")
    if row["ce_bytes"] is not None:
        parts.append(f"CE {row['ce_bytes']} bytes")
    return ", ".join(parts)


def _since(time_ns: int, start_ns: int) -> str:
    seconds, fraction = divmod(abs(time_ns - start_ns) + 500, 10**9)
    return f"{'-' if time_ns < start_ns else ''}{seconds}.{fraction // 1000:06d}"


def _number(number: int | None) -> str:
    return words.NONE if number is None else str(number)
