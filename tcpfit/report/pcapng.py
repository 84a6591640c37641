"""A pcapng file, written block by block: one section, little-endian, times in nanoseconds.

Source: draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import BinaryIO

SECTION, INTERFACE, STATISTICS, PACKET = 0x0A0D0D0A, 1, 5, 6
COMMENT, END = 1, 0
PACKET_FLAGS, APPLICATION, INTERFACE_NAME, TSRESOL = 2, 4, 2, 9
NANOSECONDS = b"\x09"

LONGEST_OPTION = 0xFFFF
LATEST = (1 << 64) - 1

Option = tuple[int, bytes]


class Writer:
    """Writes blocks to a binary file; an interface is described before its packets."""

    def __init__(self, out: BinaryIO, application: str) -> None:
        self._out = out
        self._interfaces = 0
        body = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
        self._block(SECTION, body + _options([(APPLICATION, application.encode())]))

    def interface(self, link_type: int, snaplen: int, options: Iterable[Option] = ()) -> int:
        """Describe an interface; give back its number. Its time stamps are nanoseconds, whatever `options` say."""
        others = [option for option in options if option[0] != TSRESOL]
        body = struct.pack("<HHI", link_type, 0, snaplen)
        self._block(INTERFACE, body + _options([*others, (TSRESOL, NANOSECONDS)]))
        self._interfaces += 1
        return self._interfaces - 1

    def packet(self, interface: int, time_ns: int, wire_len: int, data: bytes, options: Iterable[Option] = ()) -> None:
        """Write a packet; `time_ns` counts from the interface's offset."""
        time_ns = min(max(time_ns, 0), LATEST)
        head = struct.pack("<IIIII", interface, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), wire_len)
        self._block(PACKET, head + data + bytes(-len(data) % 4) + _options(options))

    def statistics(self, interface: int, time_ns: int, options: Iterable[Option]) -> None:
        """Write what is known of an interface at that time."""
        time_ns = min(max(time_ns, 0), LATEST)
        head = struct.pack("<III", interface, time_ns >> 32, time_ns & 0xFFFFFFFF)
        self._block(STATISTICS, head + _options(options))

    def _block(self, kind: int, body: bytes) -> None:
        length = struct.pack("<I", 12 + len(body))
        self._out.write(struct.pack("<I", kind) + length + body + length)


def comment(text: str) -> Option:
    """A comment as an option; what is beyond its longest is cut."""
    return COMMENT, text.encode()[:LONGEST_OPTION].decode(errors="ignore").encode()


def _options(options: Iterable[Option]) -> bytes:
    parts = [
        struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)
        for code, value in options
        if len(value) <= LONGEST_OPTION
    ]
    return b"".join([*parts, bytes(4)]) if parts else b""
