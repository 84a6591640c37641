"""Readers: a capture becomes segments, and the engine's tracker makes flows, events and rounds of them.

``engine`` reads and tracks natively. ``dpkt``, ``tshark`` and ``pyshark`` decode packets themselves and push batches
with the columns of `tcpfit.schema.SEGMENTS` into the same tracker, so there is one inference whatever the reader.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from tcpfit import arguments
from tcpfit.exceptions import InvalidParameter

if TYPE_CHECKING:
    import polars as pl

READERS = {
    "engine": "native, fast; the default",
    "dpkt": "pure Python; the oracle that the engine is compared with",
    "tshark": "whatever tshark can dissect; needs Wireshark's tshark",
    "pyshark": "display filters and live interfaces; slow; needs the extra [pyshark]",
}

VANTAGES = ("sender", "receiver", "middle")

LONGEST_S = 9e9
"""What is later than this after a capture's first packet is so after its last one: times are ns in 63 bits."""

Progress = Callable[[int, int], None]

Pieces = Callable[["pl.DataFrame"], None]
"""Takes the table of segments a piece at a time, some 100,000 rows each."""


@dataclass(frozen=True)
class Settings:
    """What a user may ask of a reader.

    `from_s` and `to_s` are seconds after the capture's first packet; `progress(read, total)` is told bytes, `total`
    being 0 where it is not known. `segments` asks for the table of segments, a row a packet: held in memory, or handed
    out in pieces as they come, of which none is kept.
    `max_flows` connections are followed at once (by default 262,144), and reading ends where the process has come to
    `max_memory` bytes.
    """

    vantage: str | None = None
    filter: str | None = None
    from_s: float | None = None
    to_s: float | None = None
    progress: Progress | None = None
    segments: bool | Pieces = False
    max_flows: int | None = None
    max_memory: int | None = None


@dataclass(frozen=True)
class Reading:
    """What a reader gives: facts about the capture, and the tables by name; `segments` only if it is to be held.

    `unsaved`: the tables were saved without the segments, and that of them is empty for this reason. `beside`: rows of
    flows, events and rounds that were not selected, of flows between the same ends as those that were.
    """

    capture: dict[str, Any]
    tables: dict[str, pl.DataFrame]
    unsaved: bool = False
    beside: dict[str, pl.DataFrame] = field(default_factory=dict)


class Reader(Protocol):
    """A module of this package: one function."""

    def read(self, path: str, settings: Settings) -> Reading: ...


def read(path: str | os.PathLike[str], reader: str = "engine", settings: Settings | None = None) -> Reading:
    """Read a capture with the reader of that name; '-' is standard input.

    Raises CaptureError for what cannot be read and InvalidParameter for a reader or setting that does not exist.
    """
    path, settings = arguments.path("the capture", path), checked(reader, settings or Settings())
    module: Reader = import_module(f"tcpfit.readers.{reader}")
    reading = module.read(path, settings)
    # of the capture, whatever flows are selected later
    totals = {name: int(reading.tables["flows"][name].sum()) for name in ("missing_segments", "data_segments")}
    return replace(reading, capture=reading.capture | totals)


def checked(reader: str, settings: Settings) -> Settings:
    """The settings as readers take them.

    Raises InvalidParameter for a reader that does not exist, and for settings with which no capture can be read.
    """
    arguments.one_of("reader", reader, READERS)
    if settings.vantage is not None:
        arguments.one_of("vantage", settings.vantage, VANTAGES)
    if settings.filter is not None:
        arguments.characters("filter", settings.filter)
    from_s, to_s = _seconds("from_s", settings.from_s), _seconds("to_s", settings.to_s)
    if from_s is not None and to_s is not None and to_s <= from_s:
        raise InvalidParameter(f"the end must come after the start, got {from_s:g} s to {to_s:g} s")
    if settings.progress is not None and not callable(settings.progress):
        raise InvalidParameter(f"progress must be a function, got {arguments.shown(settings.progress)}")
    if not (settings.segments is None or isinstance(settings.segments, bool) or callable(settings.segments)):
        said = arguments.shown(settings.segments)
        raise InvalidParameter(f"segments must be True, False or a function that takes a table, got {said}")
    max_flows, max_memory = _most("max_flows", settings.max_flows), _most("max_memory", settings.max_memory)
    return replace(settings, from_s=from_s, to_s=to_s, max_flows=max_flows, max_memory=max_memory)


def _seconds(name: str, given: object) -> float | None:
    return None if given is None else min(arguments.seconds(name, given), LONGEST_S)


def _most(name: str, given: object) -> int | None:
    return None if given is None else arguments.whole(name, given, below=2**63)
