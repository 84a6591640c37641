"""A capture with tcpfit's labels as comments of its packets, for Wireshark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import polars as pl

import tcpfit
from tcpfit import arguments
from tcpfit.analysis import Analysis, AtomicFile
from tcpfit.exceptions import CaptureError, InvalidParameter
from tcpfit.readers.containers import EPB_FLAGS, Facts, Packet, open_capture
from tcpfit.readers.files import DIRECTORY, Stream
from tcpfit.report.comments import comments
from tcpfit.report.pcapng import INTERFACE_NAME, PACKET_FLAGS, Option, Writer, comment

UNDESCRIBED = 147
"""Link type (USER0) of the interface that stands for those that the capture does not describe."""

BUFFER = 1 << 20

CLOSE_NS = 1000
"""Saved tables know the start of a capture as a number of seconds."""


@dataclass(frozen=True)
class Annotation:
    """What was written: packets, how many have comments and how many comments those are.

    `without_frame` counts events that no frame of the capture shows; `warnings` what is wrong with the capture.
    """

    path: str
    packets: int
    commented: int
    comments: int
    without_frame: int
    warnings: list[str]


def annotate(
    analysis: Analysis, path: str | os.PathLike[str], out: str | os.PathLike[str], *, force: bool = False
) -> Annotation:
    """Write the capture at `path` to `out` as pcapng with the events of `analysis` as comments.

    Every packet keeps its bytes, lengths, time (nanoseconds), interface and comments. The file is written under another
    name and renamed, so it is never half there; one that exists is replaced only with `force`. A damaged capture is
    written as far as it can be read.

    Raises InvalidParameter for an `out` that cannot be taken and for another capture than that of `analysis`, and
    CaptureError for a capture that cannot be read.
    """
    path, out = arguments.path("path", path), arguments.path("out", out)
    arguments.analysis(analysis)
    target = writable(path, out, force=force)
    stream = Stream(path)
    try:
        facts, packets = open_capture(stream, path)
        with AtomicFile(target) as partial, partial.open("wb", buffering=BUFFER) as file:
            commented, count = _Copy(file, facts, analysis.events).write(packets)
            _check_same(analysis, path, facts)
    finally:
        stream.close()
    # both readers say the same, unless one of them went further
    warnings = analysis.warnings + (facts.warnings if facts.packets != analysis.capture["packets"] else [])
    without = analysis.events.filter(pl.coalesce("frame", "cause_frame").is_null()).height
    return Annotation(out, facts.packets, commented, count, without, warnings)


def _check_same(analysis: Analysis, path: str, facts: Facts) -> None:
    """Refuse a file that begins at another time than what was analysed: its frames are others."""
    begun = analysis.capture.get("start_ns")
    if begun is None or facts.start_ns is None or facts.first_ns is None:
        same = begun is facts.start_ns or analysis.events.is_empty()
    else:  # the reader of the analysis may have stopped before an earlier time came
        same = facts.start_ns - CLOSE_NS <= begun <= facts.first_ns + CLOSE_NS
    if not same:
        raise InvalidParameter(f"{path}: not the capture that was analysed, it begins at another time; give that one")


def writable(path: str, out: str | os.PathLike[str], *, force: bool) -> Path:
    """The file to write for `out`, links followed.

    Raises InvalidParameter where it must not or cannot be written, CaptureError where the capture is a directory.
    """
    if path == "-":
        raise InvalidParameter("standard input can be read once only, and its packets are copied after it; give a file")
    if os.path.isdir(path):
        raise CaptureError(f"{path}: {DIRECTORY}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InvalidParameter(f"{path}: not a file, it can be read once only; give a file")
    target = Path(os.path.realpath(out))
    if not target.parent.is_dir():
        raise InvalidParameter(f"{out}: there is no directory {target.parent}; make it first")
    if target.exists():
        if not target.is_file():
            raise InvalidParameter(f"{out}: not a file; give the name of the pcapng file to write")
        if os.path.exists(path) and os.path.samefile(path, target):
            raise InvalidParameter(f"{out}: that is the capture itself; give another name")
        if not force:
            raise InvalidParameter(f"{out}: exists; --force replaces it")
    return target


class _Copy:
    """Writes packets as they come, those with comments among them; events come in the order of their frames."""

    def __init__(self, file: BinaryIO, facts: Facts, events: pl.DataFrame) -> None:
        self._facts = facts
        self._writer = Writer(file, f"tcpfit {tcpfit.__version__}")
        self._comments = comments(events)
        self._numbers: list[int] = []
        self._undescribed: int | None = None
        self._next = next(self._comments, None)
        self._commented = self._count = 0

    def write(self, packets: Iterator[Packet]) -> tuple[int, int]:
        """Copy all packets; how many got comments, and how many comments."""
        last, last_ns = 0, 0
        for packet in packets:
            self._stand_in(last, packet.frame, last_ns)
            self._packet(packet)
            last, last_ns = packet.frame, packet.time_ns
        self._stand_in(last, self._facts.packets + 1, last_ns)
        self._interfaces()
        for number, interface in zip(self._numbers, self._facts.interfaces, strict=True):
            if interface.statistics is not None:
                self._writer.statistics(number, interface.statistics_ns, interface.statistics)
        return self._commented, self._count

    def _packet(self, packet: Packet) -> None:
        self._interfaces()
        options: list[Option] = list(packet.options)
        if packet.direction and not any(code == EPB_FLAGS for code, _ in options):
            options.append((PACKET_FLAGS, packet.direction.to_bytes(4, "little")))
        options += self._of(packet.frame)
        since_ns = packet.time_ns - self._facts.interfaces[packet.interface].offset_s * 1_000_000_000
        self._writer.packet(self._numbers[packet.interface], since_ns, packet.wire_len, packet.data, options)

    def _of(self, frame: int) -> list[Option]:
        while self._next is not None and self._next[0] < frame:
            self._next = next(self._comments, None)
        if self._next is None or self._next[0] != frame:
            return []
        texts = self._next[1]
        self._commented += 1
        self._count += len(texts)
        return [comment(text) for text in texts]

    def _interfaces(self) -> None:
        """Describe the interfaces that the capture described since the last packet."""
        for interface in self._facts.interfaces[len(self._numbers) :]:
            self._numbers.append(self._writer.interface(interface.link_type, interface.snaplen, interface.options))

    def _stand_in(self, last: int, frame: int, time_ns: int) -> None:
        """Keep the numbers of the frames: an empty packet for each whose interface was not described."""
        for _ in range(last + 1, frame):
            if self._undescribed is None:
                name: Option = (INTERFACE_NAME, b"interfaces that the capture does not describe")
                self._undescribed = self._writer.interface(UNDESCRIBED, 0, [name])
            text = "left out: its interface is not described in the capture, so nothing says what its bytes are"
            self._writer.packet(self._undescribed, time_ns, 0, b"", [comment(text)])
