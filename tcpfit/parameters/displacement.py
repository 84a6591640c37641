"""Reordering metrics of the receiver: n-reordering, reorder density and reorder buffer-occupancy density.

**Definitions**: a late segment is n-reordered if the n segments that arrived right before it were all sent later (RFC
4737, 5.3); from n = 3 on a sender with the standard threshold takes it for lost (RFC 5681, 3.2). The displacement of a
segment is its place in the order of arrival less its place in the order of sending; the shares of its values are the
reorder density. The occupancy of the reorder buffer, after an arrival, is how many segments wait for one sent before
them; the shares of its values are the buffer-occupancy density (RFC 5236).
**Derived from**: the events of kind `reordering` and `sent_segments - lost_upstream` of the flow. A late segment's
`arrival` and extent say where it came and where it was overtaken; everything else came in the order of sending, so the
order of the whole flow follows.
**Departures**: what never arrived has no place (RFC 5236 skips its number instead: the same unless a loss lies among
the displaced). Of late segments that one packet overtook the lower range counts as sent first. What is displaced by
more than the threshold counts as lost, as there. Super-segments hide their insides: their extents are lower bounds.
**Not to be had** at the sender: the ACKs do not show the order of all arrivals; `arrival` is null there.
**Validation**: tests/parameters/test_displacement.py.
**Reference**: RFC 4737, doi:10.17487/RFC4737; RFC 5236, doi:10.17487/RFC5236.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcpfit import arguments
from tcpfit.parameters.intervals import Floats, Ints
from tcpfit.schema import check_tables

DUPTHRESH = 3
"""Duplicate ACKs that set off a fast retransmit (RFC 5681, 3.2)."""

THRESHOLD = 32
"""Displacement beyond which a segment counts as lost, unless another is asked for."""


class _Order:
    """The arrivals of one flow around its late segments: the stretches from an overtaken segment's hole to its arrival.

    Positions are arrivals counted from 1. In and between the stretches nothing is displaced out of them.
    """

    def __init__(self, arrival: Ints, overtaken_at: Ints, left: Ints) -> None:
        """Late segments by arrival: its number, that of the first it was overtaken by, and what orders those of one."""
        self.overtaken_at = overtaken_at
        self.position = _union(overtaken_at, arrival)
        size = len(self.position)
        self.late = np.searchsorted(self.position, arrival)
        # sent where it was overtaken, before what overtook it
        key, second, third = self.position.copy(), np.ones(size, np.int64), np.zeros(size, np.int64)
        key[self.late], second[self.late], third[self.late] = overtaken_at, 0, left
        self.rank = np.empty(size, np.int64)
        self.rank[np.lexsort((third, second, key))] = np.arange(size)

    @property
    def displacement(self) -> Ints:
        """Place of arrival less place of sending, of each position: above 0 late, below 0 early."""
        return np.arange(len(self.rank)) - self.rank

    @property
    def occupancy(self) -> Ints:
        """Segments that wait for an earlier one after each arrival."""
        if not len(self.rank):
            return np.zeros(0, np.int64)
        to_come = np.append(np.minimum.accumulate(self.rank[::-1])[::-1][1:], len(self.rank))
        waiting: Ints = np.arange(1, len(self.rank) + 1) - to_come
        return waiting

    def n(self) -> Ints:
        """Of each late segment, how many arrivals right before it were sent later (RFC 4737, 5.3)."""
        found = np.zeros(len(self.late), np.int64)
        in_order = np.searchsorted(self.position, self.overtaken_at) - 1
        earlier: list[tuple[int, int]] = []  # rank and place of late ones that came before, both rising
        for k, at in enumerate(self.late):
            rank = int(self.rank[at])
            while earlier and earlier[-1][0] > rank:
                earlier.pop()
            # the last arrival that was sent before it: late itself, or in order just before it was overtaken
            found[k] = at - 1 - max(earlier[-1][1] if earlier else -1, in_order[k])
            earlier.append((rank, int(at)))
        return found


def _union(first: Ints, last: Ints) -> Ints:
    """Every whole number from `first` to `last` of any pair, once."""
    if not len(first):
        return np.zeros(0, np.int64)
    by_first = np.argsort(first, kind="stable")
    first, last = first[by_first], np.maximum.accumulate(last[by_first])
    begins = np.append(True, first[1:] > last[:-1] + 1)
    ends = np.append(np.flatnonzero(begins)[1:] - 1, len(first) - 1)
    pairs = zip(first[begins], last[ends], strict=True)
    return np.concatenate([np.arange(a, b + 1) for a, b in pairs])


def late_segments(events: pl.DataFrame) -> pl.DataFrame:
    """Late segments seen to arrive: columns flow, time_ns, frame, arrival, extent (segments), late_s and n.

    Sorted by flow and arrival. `n` is the largest for which the segment is n-reordered. Raises InvalidParameter for
    what is no table of events.
    """
    check_tables(events=events)
    late = _late(events)
    n = [_Order(*_places(part)).n() for part in _flows(late)]
    return late.select(
        "flow",
        "time_ns",
        "frame",
        "arrival",
        pl.col("segments").alias("extent"),
        pl.col("value").alias("late_s"),
        pl.Series("n", np.concatenate(n) if n else np.zeros(0, np.int64), pl.UInt32()),
    )


def past_dupthresh(events: pl.DataFrame) -> pl.DataFrame:
    """Per flow: columns flow, late, at_least_3 and share, of late segments those with n of at least 3.

    Raises InvalidParameter for what is no table of events.
    """
    enough = pl.col("n") >= DUPTHRESH
    return (
        late_segments(events)
        .group_by("flow", maintain_order=True)
        .agg(pl.len().alias("late"), enough.sum().alias("at_least_3"), enough.mean().alias("share"))
    )


def density(flows: pl.DataFrame, events: pl.DataFrame, threshold: int = THRESHOLD) -> pl.DataFrame:
    """Reorder density of every flow with late arrivals: columns flow, displacement (segments), share; sorted.

    Shares of a flow add up to 1. Raises InvalidParameter for a threshold below 1, and for tables that are none of
    `tcpfit.schema`.
    """
    return _shares(flows, events, threshold, "displacement")


def occupancy(flows: pl.DataFrame, events: pl.DataFrame, threshold: int = THRESHOLD) -> pl.DataFrame:
    """Reorder buffer-occupancy density of every flow with late arrivals: columns flow, occupancy (segments), share.

    Raises InvalidParameter as `density` does.
    """
    return _shares(flows, events, threshold, "occupancy")


def _shares(flows: pl.DataFrame, events: pl.DataFrame, threshold: int, name: str) -> pl.DataFrame:
    threshold = arguments.whole("threshold", threshold)
    check_tables(flows=flows, events=events)
    arrived = dict(flows.select("flow", pl.col("sent_segments") - pl.col("lost_upstream")).iter_rows())
    smss = dict(flows.select("flow", "smss_bytes").iter_rows())
    columns: dict[str, list[NDArray[np.generic]]] = {"flow": [], name: [], "share": []}
    for part in _flows(_late(events)):
        flow = part["flow"][0]
        places, late = _places(part, _width(part, smss[flow])), arrived[flow]
        order = _Order(*places)
        lost = order.displacement[order.late] > threshold
        if lost.any():
            order = _Order(*_without(places, lost))
            late -= int(lost.sum())
        values, counts = np.unique(getattr(order, name), return_counts=True)
        in_place = late - len(order.rank)
        if 0 not in values:
            values, counts = np.append(values, 0), np.append(counts, 0)
        counts = counts + np.where(values == 0, max(in_place, 0), 0)
        shares: Floats = counts / counts.sum()
        keep = counts > 0
        columns["flow"].append(np.full(keep.sum(), flow))
        columns[name].append(values[keep])
        columns["share"].append(shares[keep])
    schema = {"flow": pl.UInt32(), name: pl.Int64(), "share": pl.Float64()}
    return pl.DataFrame({k: np.concatenate(v) if v else [] for k, v in columns.items()}, schema=schema).sort(
        "flow", name
    )


def _without(places: tuple[Ints, Ints, Ints], lost: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
    """The places as if the lost ones had never come: later numbers move up."""
    arrival, overtaken_at, left = (of[~lost] for of in places)
    gone = places[0][lost]
    return arrival - np.searchsorted(gone, arrival), overtaken_at - np.searchsorted(gone, overtaken_at), left


def _late(events: pl.DataFrame) -> pl.DataFrame:
    late = events.filter(pl.col("kind") == "reordering", pl.col("arrival").is_not_null())
    return late.sort("flow", "arrival", maintain_order=True)


def _flows(late: pl.DataFrame) -> Iterator[pl.DataFrame]:
    yield from late.partition_by("flow", maintain_order=True)


def _places(late: pl.DataFrame, width: Ints | None = None) -> tuple[Ints, Ints, Ints]:
    """Arrival, arrival of what overtook it first, left edge; of every segment of a super-segment of `width`."""
    arrival, extent, left = (late[name].to_numpy().astype(np.int64) for name in ("arrival", "segments", "left"))
    if width is None:
        width = np.ones(len(late), np.int64)
    overtaken_at = np.clip(arrival + width - 1 - extent, 1, arrival - 1)
    inner = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
    return np.repeat(arrival, width) + inner, np.repeat(overtaken_at, width), np.repeat(left, width) + inner


def _width(late: pl.DataFrame, smss: int) -> Ints:
    """Segments of each late packet."""
    width: Ints = -(-(late["right"] - late["left"]).to_numpy().astype(np.int64) // max(smss, 1))
    return np.maximum(1, width)
