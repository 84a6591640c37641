"""Decoded segments on their way into the engine's tracker, a batch at a time, so that memory stays bounded."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, NamedTuple

import polars as pl

from tcpfit import engine
from tcpfit.readers import Reading, Settings
from tcpfit.schema import polars_schema

BATCH = 1 << 15
WEIGHED_EVERY = 1 << 12


class Segment(NamedTuple):
    """A row of `tcpfit.schema.SEGMENTS`, in its order."""

    frame: int
    time_ns: int
    src: str
    dst: str
    src_port: int
    dst_port: int
    seq: int
    ack: int
    flags: int
    window: int
    payload: int
    wire_bytes: int
    ip_id: int | None
    ttl: int
    ecn: int
    checksum: int
    direction: int
    around: int
    mss: int | None
    window_scale: int | None
    sack_permitted: bool
    mptcp: bool
    ce_bytes: int | None
    tsval: int | None
    tsecr: int | None
    options_incomplete: bool
    sack: list[int]


class Batches:
    """Takes segments in the capture's order and gives the tables at the end.

    The span of time that the settings ask for is cut here, since it counts from the capture's first packet, of
    whatever protocol, which the tracker does not see.
    """

    def __init__(self, settings: Settings) -> None:
        self._pieces = settings.segments if callable(settings.segments) else None
        self._tracker = engine.Tracker(
            vantage=settings.vantage,
            filter=settings.filter,
            segments=bool(settings.segments),
            max_flows=settings.max_flows,
        )
        self._max_memory, self._weighed = settings.max_memory, 0
        self.full: str | None = None
        """Why no more is to be read; None where more may be."""
        self._from_s, self._to_s = settings.from_s, settings.to_s
        self._schema = polars_schema("segments")
        self._rows: list[Segment] = []

    def wanted(self, time_ns: int, first_ns: int) -> bool:
        """Whether a packet of that time lies in the span that was asked for."""
        if self._from_s is not None and time_ns < first_ns + round(self._from_s * 1e9):
            return False
        return self._to_s is None or time_ns <= first_ns + round(self._to_s * 1e9)

    def add(self, segment: Segment) -> None:
        """Take the next segment."""
        self._rows.append(segment)
        self._weighed += 1
        if self._max_memory is not None and self._weighed % WEIGHED_EVERY == 0:
            held = resident()
            if held > self._max_memory:
                self.full = (
                    f"frame {segment.frame}: the analysis has come to {held // 10**6} MB (--max-memory) and ends here; "
                    "what came before is whole"
                )
        if len(self._rows) >= BATCH:
            self._push()

    def finish(self, facts: dict[str, Any]) -> Reading:
        """Settle what is open; `facts` is what the reader knows of the capture."""
        if self._rows:
            self._push()
        result = self._tracker.finish()
        bound = [] if self.full is None else [self.full]
        warnings = {"warnings": [*facts["warnings"], *bound, *result.capture["warnings"]]}
        tables = engine.frames(result)
        if self._pieces is not None:
            self._pieces(tables.pop("segments"))
        return Reading(dict(result.capture) | facts | warnings, tables)

    def _push(self) -> None:
        self._tracker.push(pl.DataFrame(self._rows, schema=self._schema, orient="row"))
        self._rows = []
        piece = None if self._pieces is None else self._tracker.take_piece()
        if self._pieces is not None and piece is not None:
            self._pieces(engine.frame(piece, "segments"))


def resident() -> int:
    """Bytes of memory that the process has; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as sizes:
            return int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def counts(skipped: Counter[str]) -> dict[str, int]:
    """Packets that were not analysed by reason, the most frequent first."""
    return dict(sorted(skipped.items(), key=lambda item: (-item[1], item[0])))
