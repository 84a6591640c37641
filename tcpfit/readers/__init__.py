"""Readers: a capture becomes segments, and the engine's tracker makes flows, events and rounds of them.

``engine`` reads and tracks natively. ``dpkt``, ``tshark`` and ``pyshark`` decode packets themselves and push batches
with the columns of `tcpfit.schema.SEGMENTS` into the same tracker, so there is one inference whatever the reader.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

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
    """What a reader gives: facts about the capture, and the tables by name; `segments` only if it is to be held."""

    capture: dict[str, Any]
    tables: dict[str, pl.DataFrame]


class Reader(Protocol):
    """A module of this package: one function."""

    def read(self, path: str, settings: Settings) -> Reading: ...


def read(path: str | os.PathLike[str], reader: str = "engine", settings: Settings | None = None) -> Reading:
    """Read a capture with the reader of that name; '-' is standard input.

    Raises CaptureError for what cannot be read and InvalidParameter for a reader or setting that does not exist.
    """
    settings = settings or Settings()
    if reader not in READERS:
        raise InvalidParameter(f"reader must be one of {', '.join(READERS)}, got {reader!r}")
    if settings.vantage is not None and settings.vantage not in VANTAGES:
        raise InvalidParameter(f"vantage must be one of {', '.join(VANTAGES)}, got {settings.vantage!r}")
    if settings.from_s is not None and settings.to_s is not None and settings.to_s <= settings.from_s:
        raise InvalidParameter(f"the end must come after the start, got {settings.from_s:g} s to {settings.to_s:g} s")
    for name, most in (("max_flows", settings.max_flows), ("max_memory", settings.max_memory)):
        if most is not None and not 1 <= most < 2**63:
            raise InvalidParameter(f"{name} must be at least 1 and below 2^63, got {most}")
    module: Reader = import_module(f"tcpfit.readers.{reader}")
    return module.read(os.fspath(path), settings)
