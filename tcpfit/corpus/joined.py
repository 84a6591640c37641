"""The parts of a rotated capture as one capture, and any file as a stream, through a pipe.

Parts come in order of their first packets. Of parts with the same pcap header the records follow each other, of pcapng
files the sections, each read in its own byte order with its own interfaces; other mixtures, snoop files and pcap files
of old versions become pcapng, packet by packet. A part that ends within a record, or is damaged, gives the packets
before that, with a warning; the next part follows. Frames are numbered through.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from tcpfit.corpus.files import BLOCK, opened
from tcpfit.exceptions import CaptureError
from tcpfit.readers.containers import MAX_RECORD, PCAP_MAGICS, PCAPNG, begins_file, open_capture
from tcpfit.readers.files import Stream

PCAP_HEADER, RECORD_HEADER = 24, 16
OTHER = b""
"""In place of a header: the packets are read one by one."""
LITTLE_ENDIAN = b"\x4d\x3c\x2b\x1a"

Write = Callable[[bytes], object]


@contextmanager
def pipe(paths: Sequence[str], warnings: list[str]) -> Iterator[str]:
    """A path to read the trace in these files from, once; what is wrong with a part is added to `warnings`.

    Raises CaptureError, at the end of the block, where a file could not be read.
    """
    reading, writing = os.pipe()
    failures: list[Exception] = []

    def feed() -> None:
        try:
            with os.fdopen(writing, "wb") as out:
                if len(paths) == 1:
                    copy(paths[0], out.write)
                else:
                    join(paths, out, warnings)
        except BrokenPipeError:
            pass  # whoever reads has had enough
        except Exception as error:
            failures.append(error)

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    try:
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)  # the feeder stops where it is
        feeder.join()
        if failures:
            raise failures[0]


def copy(path: str, write: Write) -> None:
    """Write a file's bytes."""
    with opened(path) as source:
        while block := source.read(BLOCK):
            write(block)


def join(paths: Sequence[str], out: BinaryIO, warnings: list[str]) -> None:
    """Write the trace that lies in several files.

    Raises CaptureError where none of them is a capture.
    """
    parts = _in_order(paths, warnings)
    heads = {head for _, _, head in parts}
    first = parts[0][2]
    if first == PCAPNG and heads == {first}:
        for number, path, _ in parts:
            _blocks(_stream(path), out.write, _warner(warnings, number))
    elif first not in (PCAPNG, OTHER) and heads == {first}:
        head = b""
        for number, path, _ in parts:
            if head != first:
                out.write(first)
            head = _records(_stream(path), first, out.write, _warner(warnings, number))
    else:
        _packets(parts, out, warnings)


def _in_order(paths: Sequence[str], warnings: list[str]) -> list[tuple[int, str, bytes]]:
    """Number, path and header of every part that is a capture, in order of time; those without packets are last."""
    found = []
    errors = []
    for number, path in enumerate(paths, 1):
        try:
            stream = _stream(path)
            facts, packets = open_capture(stream, path)
            time_ns = next((packet.time_ns for packet in packets), 1 << 63)
            stream.close()
            stream = _stream(path)
            head = {"pcapng": PCAPNG, "pcap": stream.take(PCAP_HEADER)}.get(facts.format, OTHER)
            head = OTHER if facts.old_version else head
            stream.close()
        except CaptureError as error:
            errors.append(error)
            warnings.append(f"part {number}: {str(error).removeprefix(f'{path}: ')}; the part is left out")
            continue
        found.append((time_ns, number, path, head))
    if not found:
        raise errors[0]
    return [part[1:] for part in sorted(found)]


def _stream(path: str) -> Stream:
    return Stream(opened(path))


def _warner(warnings: list[str], number: int) -> Callable[[str], None]:
    return lambda said: warnings.append(f"part {number}: {said}; the trace goes on with the next part")


def _records(stream: Stream, head: bytes, write: Write, warn: Callable[[str], None]) -> bytes:
    """Whole records of a pcap file behind its header, and of the files that `cat` has put behind it, with their
    headers; gives back the last header."""
    stream.take(PCAP_HEADER)
    order, _, modified = PCAP_MAGICS[head[:4]]
    length = struct.Struct(f"{order}8xI")

    def next_one(buffer: bytes, at: int) -> int:
        nonlocal head, modified, length
        captured: int = length.unpack_from(buffer, at)[0]
        if captured == 0 and begins_file(buffer[at : at + RECORD_HEADER]):
            if at + PCAP_HEADER <= len(buffer):
                head = buffer[at : at + PCAP_HEADER]
                order, _, modified = PCAP_MAGICS[head[:4]]
                length = struct.Struct(f"{order}8xI")
            return at + PCAP_HEADER
        if captured > MAX_RECORD:
            raise ValueError(f"record length {captured} is beyond {MAX_RECORD}")
        return at + (24 if modified else RECORD_HEADER) + captured

    _whole(stream, RECORD_HEADER, next_one, write, warn)
    return head


def _blocks(stream: Stream, write: Write, warn: Callable[[str], None]) -> None:
    """Whole blocks of a pcapng file."""
    order = "<"

    def next_one(buffer: bytes, at: int) -> int:
        nonlocal order
        if buffer[at : at + 4] == PCAPNG:
            order = "<" if buffer[at + 8 : at + 12] == LITTLE_ENDIAN else ">"
        length: int = struct.unpack_from(f"{order}I", buffer, at + 4)[0]
        if not 12 <= length <= MAX_RECORD + 4096:
            raise ValueError(f"block length {length} is impossible")
        return at + (length + 3 & ~3)

    _whole(stream, 12, next_one, write, warn)


def _whole(
    stream: Stream, header: int, next_one: Callable[[bytes, int], int], write: Write, warn: Callable[[str], None]
) -> None:
    """Write as many whole records as there are; `next_one` says where the one at a place ends."""
    buffer = b""
    try:
        while True:
            block = stream.take(BLOCK)
            buffer += block
            at, end = 0, len(buffer)
            try:
                while at + header <= end and (following := next_one(buffer, at)) <= end:
                    at = following
            except ValueError as error:
                write(buffer[:at])
                warn(f"{error}, it is damaged")
                return
            write(buffer[:at])
            buffer = buffer[at:]
            if not block:
                break
        if stream.damage or buffer:
            warn(stream.damage or "it ends within a record")
    finally:
        stream.close()


def _packets(parts: Sequence[tuple[int, str, bytes]], out: BinaryIO, warnings: list[str]) -> None:
    """Every packet of every part, as pcapng."""
    from tcpfit.report.pcapng import PACKET_FLAGS, Writer

    writer = Writer(out, "tcpfit")
    for number, path, _ in parts:
        facts, packets = open_capture(_stream(path), path)
        known: dict[int, int] = {}
        for packet in packets:
            if packet.interface not in known:
                known[packet.interface] = writer.interface(packet.link_type, MAX_RECORD)
            options = [(PACKET_FLAGS, struct.pack("<I", packet.direction))] if packet.direction else []
            writer.packet(known[packet.interface], packet.time_ns, packet.wire_len, packet.data, options)
        for said in facts.warnings:
            _warner(warnings, number)(said)
