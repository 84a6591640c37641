"""The segments of a connection: between its ends, in its VLANs and tunnels, from its first SYN to the next one's.

What is around a segment is part of the key of a connection. The flows do not name it: it is that of the first data of
either flow. Where the other direction has none of it, that direction runs elsewhere, in what no connection has taken.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import polars as pl

from tcpfit.schema import ENDS, polars_schema

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

SYN, ACK = 2, 16

BEFORE_ALL = -(2**62)

BACK = (*ENDS[2:], *ENDS[:2])
"""The columns of the ends as the other direction has them."""

Rows = list[dict[str, Any]]


def segments_of(analysis: Analysis, flow: dict[str, Any]) -> pl.DataFrame:
    """The segments of the connection of a flow, a row of `flows`, by frame.

    Raises InvalidParameter where it has no segments.
    """
    rows = _index(analysis).filter(_between(flow))["row"]
    if rows.is_empty():
        return analysis.segments.clear()
    segments = analysis.segments[rows.explode().sort()]
    flows = analysis.conversations.flows.filter(_between(flow))
    if flows["connection"].n_unique() == 1 and segments["around"].n_unique() == 1:
        return segments
    found = placed(segments, connection_ends(flows, segments)).filter(pl.col("connection") == flow["connection"])
    return found.select(segments.columns)


def placed(segments: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Segments by frame with columns `connection`, `flow` and `reverse`, null where the connection carried no data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # polars says that it trusts the sorting where there are groups
        known = segments.sort("time_ns", maintain_order=True).join_asof(
            ends.sort("start_ns"),
            left_on="time_ns",
            right_on="start_ns",
            by=[*ENDS, "around"],
            strategy="backward",
        )
    return known.sort("frame").drop("start_ns")


def connection_ends(flows: pl.DataFrame, segments: pl.DataFrame) -> pl.DataFrame:
    """A row a connection, sender and identity of what is around: ends, around, connection, flow, reverse, start_ns.

    The first connection between two ends begins before everything; a later one, on ports used again, with the first SYN
    after its predecessor's last data, or with its own first data where no SYN was seen.
    """
    by_ends: dict[frozenset[tuple[str, int]], Rows] = defaultdict(list)
    for row in flows.select(*ENDS, "flow", "connection", "first_ns", "last_ns").iter_rows(named=True):
        by_ends[frozenset(((row["src"], row["src_port"]), (row["dst"], row["dst_port"])))].append(row)
    everywhere = segments["around"].unique().to_list()
    rows: list[tuple[Any, ...]] = []
    for of_ends in by_ends.values():
        between = segments.filter(_between(of_ends[0])) if len(everywhere) > 1 or len(of_ends) > 1 else segments.clear()
        rows += _of_ends(of_ends, between, everywhere[:1] if len(everywhere) == 1 else [])
    schema = polars_schema("flows")
    columns = {name: schema[name] for name in ENDS} | {"around": polars_schema("segments")["around"]}
    columns |= {"connection": schema["connection"], "flow": schema["flow"], "reverse": schema["flow"]}
    return pl.DataFrame(rows, schema=columns | {"start_ns": pl.Int64()}, orient="row")


def _of_ends(flows: Rows, segments: pl.DataFrame, everywhere: list[int]) -> Iterator[tuple[Any, ...]]:
    """The rows of the connections between two ends."""
    connections: dict[int, Rows] = defaultdict(list)
    for row in flows:
        connections[row["connection"]].append(row)
    arounds = dict.fromkeys(connections, set(everywhere)) if everywhere else _arounds(connections, segments)
    ordered = sorted(connections, key=lambda connection: min(row["first_ns"] for row in connections[connection]))
    latest: dict[int, Rows] = {}
    for connection in ordered:
        own = connections[connection]
        for around in sorted(arounds[connection]):
            start_ns = BEFORE_ALL
            if around in latest:
                start_ns = _start(segments.filter(pl.col("around") == around), latest[around], own)
            latest[around] = own
            yield from _both_ways(own, around, start_ns)


def _arounds(connections: dict[int, Rows], segments: pl.DataFrame) -> dict[int, set[int]]:
    """What is around the packets of each connection between two ends."""
    seen = segments.group_by(*ENDS, "around").agg(pl.col("frame").min()).sort("frame")
    ways = {(row["src"], row["src_port"], row["around"]) for row in seen.iter_rows(named=True)}
    every = list(dict.fromkeys(seen["around"]))
    if len(every) < 2:
        return {connection: set(every) for connection in connections}
    own = _around_first_data(connections, segments, every[0])
    left = [around for around in every if not any(around in arounds for arounds in own.values())]
    for end in dict.fromkeys((source, port) for source, port, _ in ways):
        one_way = [arounds for arounds in own.values() if not any((*end, around) in ways for around in arounds)]
        # in the order in which they came, where several connections have each direction elsewhere
        apart = list(dict.fromkeys(frozenset(arounds) for arounds in one_way))
        for at, around in enumerate(around for around in left if apart and (*end, around) in ways):
            for arounds in one_way:
                if apart[min(at, len(apart) - 1)] <= arounds:
                    arounds.add(around)
    return own


def _around_first_data(connections: dict[int, Rows], segments: pl.DataFrame, first: int) -> dict[int, set[int]]:
    """What is around the first data of each connection's flows; `first` where the capture has none of their packets."""
    own: dict[int, set[int]] = {}
    taken: set[tuple[int, int]] = set()
    for connection, flows in sorted(connections.items()):
        found = set()
        for flow in flows:
            there = _around_first(flow, segments)
            # copies in two VLANs may have one time: flows are numbered in the order of their packets
            free = [around for around in there if (flow["first_ns"], around) not in taken] or there
            found.update(free[:1])
        taken.update((flow["first_ns"], around) for flow in flows for around in found)
        own[connection] = found or {first}
    return own


def _around_first(flow: dict[str, Any], segments: pl.DataFrame) -> list[int]:
    """What is around the packets at the time of a flow's first one, its sender's before its receiver's."""
    at = segments.filter(pl.col("time_ns") == flow["first_ns"])
    ahead = (pl.col("src") == flow["src"]) & (pl.col("src_port") == flow["src_port"])
    data, sent = at.filter(ahead, pl.col("payload") > 0), at.filter(ahead)
    return list(dict.fromkeys([*data["around"], *sent["around"], *at["around"]]))


def _start(segments: pl.DataFrame, before: Rows, flows: Rows) -> int:
    """When a connection starts that follows another one between the same ends."""
    first, last = min(flow["first_ns"] for flow in flows), max(flow["last_ns"] for flow in before)
    opening = segments.filter(
        pl.col("time_ns").is_between(last, first, closed="right"), (pl.col("flags") & (SYN | ACK)) == SYN
    )
    return first if opening.is_empty() else int(opening["time_ns"][0])


def _both_ways(flows: Rows, around: int, start_ns: int) -> Iterator[tuple[Any, ...]]:
    numbers = {(flow["src"], flow["src_port"]): flow["flow"] for flow in flows}
    one, other = ((flows[0][end], flows[0][f"{end}_port"]) for end in ("src", "dst"))
    for source, target in ((one, other), (other, one)):
        yield (*source, *target, around, flows[0]["connection"], numbers.get(source), numbers.get(target), start_ns)


def _between(flow: dict[str, Any]) -> pl.Expr:
    """Rows between the ends of a flow, either way."""
    ahead = pl.all_horizontal(pl.col(name) == flow[name] for name in ENDS)
    return ahead | pl.all_horizontal(pl.col(name) == flow[other] for name, other in zip(ENDS, BACK, strict=True))


_INDEXES: WeakKeyDictionary[Analysis, pl.DataFrame] = WeakKeyDictionary()


def _index(analysis: Analysis) -> pl.DataFrame:
    """The rows of the table of segments by ends, made once: what one flow asks for is found without going through
    all. A table for each of the ends would take some 15 KB."""
    if analysis not in _INDEXES:
        _INDEXES[analysis] = analysis.segments.select(ENDS).with_row_index("row").group_by(*ENDS).agg("row")
    return _INDEXES[analysis]
