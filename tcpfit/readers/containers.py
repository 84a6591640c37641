"""pcap, pcapng and snoop in Python: bytes become packets, numbered as Wireshark numbers them.

Damage ends a capture with a warning; the packets before it are good. Sources: draft-ietf-opsawg-pcap,
draft-ietf-opsawg-pcapng, RFC 1761.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tcpfit.exceptions import CaptureError
from tcpfit.readers.files import Stream

MAX_RECORD = 1 << 20
LONGEST_BLOCK = MAX_RECORD + (256 << 10)
MAX_INTERFACES = 1 << 16
MAX_LINK_TYPES = 64
LAST_NS = 2**63 - 1
SNOOP = b"snoop\0\0\0"
PCAPNG = b"\x0a\x0d\x0d\x0a"  # of its section header

LINK_TYPES = {
    0: "NULL",
    1: "EN10MB",
    6: "IEEE802",
    9: "PPP",
    10: "FDDI",
    12: "RAW",
    14: "RAW",
    50: "PPP_SERIAL",
    51: "PPP_ETHER",
    100: "ATM_RFC1483",
    101: "RAW",
    104: "C_HDLC",
    105: "IEEE802_11",
    107: "FRELAY",
    108: "LOOP",
    113: "LINUX_SLL",
    117: "PFLOG",
    119: "PRISM_HEADER",
    122: "IP_OVER_FC",
    127: "IEEE802_11_RADIO",
    143: "DOCSIS",
    147: "USER0",
    149: "USER2",
    163: "IEEE802_11_RADIO_AVS",
    178: "JUNIPER_ETHER",
    189: "USB_LINUX",
    192: "PPI",
    195: "IEEE802_15_4",
    201: "BLUETOOTH_HCI_H4_WITH_PHDR",
    204: "PPP_WITH_DIR",
    219: "MPLS",
    220: "USB_LINUX_MMAPPED",
    228: "IPV4",
    229: "IPV6",
    239: "NFLOG",
    242: "IPOIB",
    249: "USBPCAP",
    252: "WIRESHARK_UPPER_PDU",
    258: "PKTAP",
    276: "LINUX_SLL2",
}

INBOUND, OUTBOUND = 1, 2

# magic, as it lies in the file: byte order, nanoseconds, Kuznetzov's longer record header
PCAP_MAGICS = {
    b"\xa1\xb2\xc3\xd4": (">", False, False),
    b"\xd4\xc3\xb2\xa1": ("<", False, False),
    b"\xa1\xb2\x3c\x4d": (">", True, False),
    b"\x4d\x3c\xb2\xa1": ("<", True, False),
    b"\xa1\xb2\xcd\x34": (">", False, True),
    b"\x34\xcd\xb2\xa1": ("<", False, True),
}

UNTIMED = "a simple packet block has no time; the time of the packet before it is used"

ANOTHER = "another pcap file begins here; it is read as part of this one"

SECTION, INTERFACE, OBSOLETE_PACKET, SIMPLE_PACKET, STATISTICS, ENHANCED_PACKET = 0x0A0D0D0A, 1, 2, 3, 5, 6
TSRESOL, TSOFFSET, EPB_FLAGS, EPB_DROPCOUNT, FCSLEN, ISB_STARTTIME, ISB_ENDTIME = 9, 14, 2, 4, 13, 2, 3
FCS_GIVEN = 1 << 26

# options whose value is one number, which the section's byte order concerns: of packets, interfaces, statistics
PACKET_NUMBERS = frozenset({2, 4, 5, 6})
INTERFACE_NUMBERS = frozenset({8, 10, 14, 16, 17})
STATISTICS_NUMBERS = frozenset({4, 5, 6, 7, 8})
CUSTOM = frozenset({2988, 2989, 19372, 19373})

Options = tuple[tuple[int, bytes], ...]
"""Options of a pcapng block, code and value; numbers are little-endian, whatever the section was."""


class Packet(NamedTuple):
    """One packet of a capture."""

    frame: int
    time_ns: int
    link_type: int
    wire_len: int
    direction: int
    data: bytes
    interface: int = 0
    options: Options = ()


@dataclass
class Interface:
    """An interface of a capture; a pcap file has one. Those of all sections are numbered through."""

    link_type: int
    snaplen: int
    units_per_second: int = 1_000_000
    offset_s: int = 0
    options: Options = ()
    statistics: Options | None = None
    """What was said of it last: times in nanoseconds since `offset_s`."""
    statistics_ns: int = 0

    def since_offset_ns(self, units: int) -> int:
        """A time stamp in nanoseconds since `offset_s`, as far as 64 bits hold it."""
        return min(units * 1_000_000_000 // self.units_per_second, LAST_NS)

    def time_ns(self, units: int) -> int:
        """A time stamp in nanoseconds since the epoch, as far as 64 bits hold it."""
        offset_ns = max(min(self.offset_s * 1_000_000_000, LAST_NS), -LAST_NS - 1)
        return max(min(self.since_offset_ns(units) + offset_ns, LAST_NS), -LAST_NS - 1)


@dataclass
class Facts:
    """What is known of a capture besides its packets; complete when the packets have been read."""

    format: str
    compression: str | None
    link_types: list[int] = field(default_factory=list)
    interfaces: list[Interface] = field(default_factory=list)
    packets: int = 0
    wire_bytes: int = 0
    first_ns: int | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    warnings: list[str] = field(default_factory=list)
    untimed: list[int] = field(default_factory=list)
    """Frames in blocks that have no time."""
    joined: list[tuple[int, int]] = field(default_factory=list)
    """Where further pcap files begin in this one: the next frame, and the byte."""
    old_version: bool = False
    """The first pcap file is of a version before today's, 2.4: lengths in its record headers may be swapped."""

    def add(self, interface: Interface) -> int:
        """Number an interface; its link type is told."""
        self.interfaces.append(interface)
        if len(self.link_types) < MAX_LINK_TYPES and interface.link_type not in self.link_types:
            self.link_types.append(interface.link_type)
        return len(self.interfaces) - 1


class Damage(Exception):
    """The capture cannot be read any further; the message says why."""


class _End(Exception):
    """The capture ended where a record could begin."""


def name_of(link_type: int) -> str:
    """tcpdump's name of a link type."""
    return LINK_TYPES.get(link_type, f"LINKTYPE_{link_type}")


def open_capture(stream: Stream, path: str) -> tuple[Facts, Iterator[Packet]]:
    """Tell the format by its magic; the packets are read as they are asked for.

    Raises CaptureError where the bytes are in none of the formats.
    """
    container = _container(stream.peek(len(SNOOP)))
    magic = stream.take(4)
    place = "standard input" if path == "-" else path
    if stream.damage and not container:
        raise CaptureError(f"{place}: {stream.damage}; copy or compress it again")
    if not magic:
        raise CaptureError(f"{place}: empty file (0 bytes), no capture in it; capture or copy it again")
    if container == "pcap":
        return _open_pcap(stream, place, magic)
    if container == "pcapng":
        facts = Facts("pcapng", stream.compression)
        return facts, _counted(facts, stream, _Pcapng(stream, facts).records())
    if container == "snoop":
        return _open_snoop(stream, place)
    found = f"it begins {magic.hex(' ')}"
    raise CaptureError(
        f"{place}: in no format that tcpfit reads ({found}); if Wireshark opens it, convert it with editcap"
    )


def format_of(path: str) -> str | None:
    """Format of a file by its magic; None where it is none that is read, or cannot be looked at (a pipe)."""
    if not os.path.isfile(path):
        return None
    try:
        stream = Stream(path)
    except CaptureError:
        return None
    container = _container(stream.peek(len(SNOOP)))
    stream.close()
    return container


def _container(head: bytes) -> str | None:
    """The format that a file's first bytes name."""
    if head[:4] in PCAP_MAGICS:
        return "pcap"
    if head[:4] == PCAPNG:
        return "pcapng"
    return "snoop" if head == SNOOP else None


class _Record(NamedTuple):
    time_ns: int
    link_type: int
    wire_len: int
    direction: int
    data: bytes
    interface: int = 0
    options: Options = ()


def _counted(facts: Facts, stream: Stream, records: Iterator[_Record | None]) -> Iterator[Packet]:
    """Number the packets and keep the facts; damage becomes a warning."""
    undescribed: list[int] = []
    try:
        for record in records:
            facts.packets += 1
            if record is None:
                undescribed.append(facts.packets)
                continue
            facts.wire_bytes += record.wire_len
            time = record.time_ns
            if facts.first_ns is None or facts.start_ns is None or facts.end_ns is None:
                facts.first_ns = facts.start_ns = facts.end_ns = time
            facts.start_ns, facts.end_ns = min(facts.start_ns, time), max(facts.end_ns, time)
            yield Packet(facts.packets, *record)
        damage = stream.damage
    except Damage as error:
        damage = stream.damage or str(error)
    facts.warnings += of_frames(undescribed, "packet of an interface that was not described; packet skipped")
    facts.warnings += of_frames(facts.untimed, UNTIMED)
    if facts.joined:
        (frame, byte), times = facts.joined[0], len(facts.joined)
        counted = f" ({times} times)" if times > 1 else ""
        facts.warnings.append(f"frame {frame} (byte {byte}): {ANOTHER}{counted}")
    if damage:
        facts.warnings.append(f"frame {facts.packets + 1} (byte {stream.offset}): {damage}; the capture ends here")


def of_frames(frames: list[int], sentence: str) -> list[str]:
    """What is wrong with these frames, the first one named; nothing where there are none."""
    times = f" ({len(frames)} times)" if len(frames) > 1 else ""
    return [f"frame {frames[0]}: {sentence}{times}"] if frames else []


def _whole(stream: Stream, count: int, what: str) -> bytes:
    """Exactly so many bytes; at the end of the stream there may be none, which ends the capture."""
    got = stream.take(count)
    if len(got) == count:
        return got
    if not got and what.endswith("header"):
        raise _End
    raise Damage(f"{what} cut, {len(got)} of {count} bytes")


def _open_pcap(stream: Stream, place: str, magic: bytes) -> tuple[Facts, Iterator[Packet]]:
    facts = Facts("pcap", stream.compression)
    try:
        first = _PcapFile(stream, facts, magic)
    except Damage as error:
        raise CaptureError(f"{place}: {error}; copy the capture again") from None
    return facts, _counted(facts, stream, _pcap_records(stream, facts, first))


def _pcap_records(stream: Stream, facts: Facts, file: _PcapFile) -> Iterator[_Record]:
    """The records of a pcap file and, as `cat` leaves them, of those behind it."""
    while True:
        yield from file.records()
        magic = stream.peek(4)
        if magic not in PCAP_MAGICS:
            return
        if (there := len(stream.peek(24))) < 24:
            raise Damage(f"pcap file header cut, {there} of 24 bytes")
        facts.joined.append((facts.packets + 1, stream.offset))
        file = _PcapFile(stream, facts, stream.take(4))


def begins_file(head: bytes) -> bool:
    """Whether what a record's place holds is the header of another file: magic, version, times of no told accuracy."""
    if head[:4] not in PCAP_MAGICS or len(head) < 16:
        return False
    major, minor, accuracy = struct.unpack_from(f"{PCAP_MAGICS[head[:4]][0]}4xHH4xI", head)
    return accuracy == 0 and ((major == 2 and minor <= 4) or (major, minor) == (543, 0))


class _PcapFile:
    """A pcap file whose first four bytes have been taken; old versions and patched libpcaps differ in the header."""

    LOOKED_AT, WINDOW = 4, 64 << 10

    def __init__(self, stream: Stream, facts: Facts, magic: bytes) -> None:
        order, self._nanoseconds, self._modified = PCAP_MAGICS[magic]
        rest = stream.take(20)
        if len(rest) < 20:
            raise Damage(f"pcap file header cut, {4 + len(rest)} of 24 bytes")
        version = struct.unpack_from(f"{order}HH", rest)
        snaplen, network = struct.unpack(f"{order}II", rest[12:])
        self._link_type = network & 0xFFFF
        # the length of the frame check sequence in units of 16 bits, where it is given
        fcs = ((FCSLEN, bytes([(network >> 28) * 16])),) if network & FCS_GIVEN else ()
        interface = Interface(self._link_type, snaplen, options=fcs)
        same = facts.interfaces[-1:] == [interface]
        self._interface = len(facts.interfaces) - 1 if same else facts.add(interface)
        self._stream = stream
        self._fields = struct.Struct(f"{order}IIII")
        # before 2.3 and on Digital Unix the length on the wire came first; 2.3 was written in both ways
        self._wire_first = version in ((2, 0), (2, 1), (2, 2), (543, 0))
        self._either = version == (2, 3)
        if not facts.joined:
            facts.old_version = version != (2, 4)

    def _unpack(self, header: bytes) -> tuple[int, int, int, int]:
        """Seconds, fraction, bytes captured, bytes on the wire."""
        seconds, fraction, captured, wire_len = self._fields.unpack_from(header)
        if self._wire_first or self._either and captured > wire_len:
            captured, wire_len = wire_len, captured
        return seconds, fraction, captured, wire_len

    def _whole(self, window: bytes, header: int) -> int | None:
        """Whole records at the beginning with headers of that length; None where one of them makes no sense."""
        at = 0
        for whole in range(self.LOOKED_AT):
            if at + header > len(window):
                return whole
            _, fraction, captured, wire_len = self._unpack(window[at : at + header])
            if captured > min(MAX_RECORD, wire_len) or fraction >= (10**9 if self._nanoseconds else 10**6):
                return None
            at += header + captured
            if at > len(window):
                return whole
        return self.LOOKED_AT

    def records(self) -> Iterator[_Record]:
        """The records, up to the end or another file's header."""
        header = 24 if self._modified else 16
        window = self._stream.peek(self.WINDOW)
        if self._whole(window, header) is None:
            others = (16, 24, 28, 20)
            header = next((other for other in others if (self._whole(window, other) or 0) >= 2), header)
        while not begins_file(self._stream.peek(16)):
            try:
                fields = _whole(self._stream, header, "record header")
            except _End:
                return
            seconds, fraction, captured, wire_len = self._unpack(fields)
            if captured > MAX_RECORD:
                raise Damage(f"record length {captured} is beyond {MAX_RECORD}, the capture is damaged")
            data = _whole(self._stream, captured, "record")
            direction = {0: INBOUND, 4: OUTBOUND}.get(fields[22], 0) if header >= 24 else 0
            time_ns = seconds * 1_000_000_000 + fraction * (1 if self._nanoseconds else 1000)
            yield _Record(time_ns, self._link_type, wire_len, direction, data, self._interface)


def _open_snoop(stream: Stream, place: str) -> tuple[Facts, Iterator[Packet]]:
    rest = stream.take(12)[4:]
    if len(rest) < 8:
        raise CaptureError(f"{place}: snoop file header cut, {8 + len(rest)} of 16 bytes; copy the capture again")
    version, data_link = struct.unpack(">II", rest)
    link_type = {0: 1, 4: 1, 2: 6, 8: 10}.get(data_link)
    if link_type is None or version != 2:
        kind = f"of version {version}" if link_type is not None else f"of data link {data_link}"
        raise CaptureError(f"{place}: a snoop capture {kind}, which tcpfit does not read; convert it with editcap")
    facts = Facts("snoop", stream.compression, [link_type], [Interface(link_type, 0)])
    return facts, _counted(facts, stream, _snoop_records(stream, link_type))


def _snoop_records(stream: Stream, link_type: int) -> Iterator[_Record]:
    while True:
        try:
            fields = _whole(stream, 24, "record header")
        except _End:
            return
        wire_len, captured, total, _, seconds, micros = struct.unpack(">IIIIII", fields)
        if captured > MAX_RECORD or total < 24 + captured or total > 24 + 2 * MAX_RECORD:
            raise Damage(f"record length {total} around {captured} bytes is impossible, the capture is damaged")
        data = _whole(stream, captured, "record")
        stream.take(total - 24 - captured)  # padding, which the last may lack
        yield _Record(seconds * 1_000_000_000 + micros * 1000, link_type, wire_len, 0, data)


class _Pcapng:
    """Sections, interfaces and packets of a pcapng stream whose first four bytes have been taken."""

    def __init__(self, stream: Stream, facts: Facts) -> None:
        self._stream, self._facts = stream, facts
        self._order = "<"
        self._first = 0
        self._last_ns = 0

    @property
    def _interfaces(self) -> list[Interface]:
        """The interfaces of this section."""
        return self._facts.interfaces[self._first :]

    def records(self) -> Iterator[_Record | None]:
        self._section()
        while True:
            try:
                head = _whole(self._stream, 4, "block header")
            except _End:
                return
            if head == PCAPNG:
                self._section()
                continue
            kind = self._u32(head)
            length = self._length(self._stream.take(4))
            if kind not in (INTERFACE, STATISTICS, ENHANCED_PACKET, OBSOLETE_PACKET, SIMPLE_PACKET):
                self._pass_over((length + 3 & ~3) - 8)
                continue
            if length > LONGEST_BLOCK:
                raise Damage(f"block length {length} is beyond {LONGEST_BLOCK}, the capture is damaged")
            body = self._body(length, kind)
            if kind == INTERFACE:
                self._interface(body)
            elif kind == STATISTICS:
                self._statistics(body)
            elif kind in (ENHANCED_PACKET, OBSOLETE_PACKET, SIMPLE_PACKET):
                yield self._packet(kind, body)

    def _u32(self, data: bytes, at: int = 0) -> int:
        value: int = struct.unpack_from(f"{self._order}I", data, at)[0]
        return value

    def _length(self, field: bytes) -> int:
        if len(field) < 4:
            raise Damage(f"block header cut, {4 + len(field)} of 8 bytes")
        length = self._u32(field)
        if length < 12:
            raise Damage(f"block length {length} is under 12, the capture is damaged")
        return length

    def _pass_over(self, count: int) -> None:
        """A block that says nothing of packets: names, secrets, what a vendor has added. Of any length."""
        while count > 0:
            taken = len(self._stream.take(min(count, 1 << 17)))
            if taken == 0:
                raise Damage("block cut")
            count -= taken

    def _body(self, length: int, kind: int) -> bytes:
        # lengths that are no multiple of 4 have been seen; the block is padded all the same
        body = _whole(self._stream, (length + 3 & ~3) - 8, f"block of type {kind}")
        if self._u32(body, len(body) - 4) != length:
            raise Damage(f"block length {length} at its start, {self._u32(body, len(body) - 4)} at its end")
        least = {INTERFACE: 8, SIMPLE_PACKET: 4, ENHANCED_PACKET: 20, OBSOLETE_PACKET: 20}.get(kind, 0)
        if len(body) - 4 < least:
            raise Damage(f"block of type {kind} cut short")
        return body[:-4]

    def _section(self) -> None:
        length_field, byte_order = self._stream.take(4), self._stream.take(4)
        if len(byte_order) < 4:
            raise Damage("section header cut")
        if byte_order == b"\x1a\x2b\x3c\x4d":
            self._order = ">"
        elif byte_order == b"\x4d\x3c\x2b\x1a":
            self._order = "<"
        else:
            raise Damage(f"section header with byte-order magic {byte_order.hex()}")
        length = self._length(length_field)
        if length > LONGEST_BLOCK:
            raise Damage(f"block length {length} is beyond {LONGEST_BLOCK}, the capture is damaged")
        rest = _whole(self._stream, (length + 3 & ~3) - 12, "section")
        repeated = self._u32(rest, len(rest) - 4) if rest else length
        if repeated != length:
            raise Damage(f"block length {length} at its start, {repeated} at its end")
        self._first = len(self._facts.interfaces)

    def _options(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        at = 0
        while at + 4 <= len(data):
            code, length = struct.unpack_from(f"{self._order}HH", data, at)
            if code == 0 or at + 4 + length > len(data):
                return
            yield code, data[at + 4 : at + 4 + length]
            at += 4 + (length + 3 & ~3)

    def _in_little_endian(self, data: bytes, numbers: frozenset[int]) -> Options:
        options = []
        for code, value in self._options(data):
            if self._order == ">" and code in numbers:
                value = value[::-1]
            elif self._order == ">" and code in CUSTOM:
                value = value[3::-1] + value[4:]
            options.append((code, value))
        return tuple(options)

    def _interface(self, body: bytes) -> None:
        link_type, snaplen = struct.unpack_from(f"{self._order}HxxI", body)
        interface = Interface(link_type, snaplen, options=self._in_little_endian(body[8:], INTERFACE_NUMBERS))
        for code, value in interface.options:
            if code == TSRESOL and len(value) == 1:
                interface.units_per_second = 2 ** (value[0] & 0x7F) if value[0] & 0x80 else 10 ** value[0]
            elif code == TSOFFSET and len(value) == 8:
                interface.offset_s = struct.unpack_from("<q", value)[0]
        if len(self._facts.interfaces) - self._first == MAX_INTERFACES:
            sentence = f"a section describes more than {MAX_INTERFACES} interfaces; packets of further ones are skipped"
            self._facts.warnings.extend([sentence] if sentence not in self._facts.warnings else [])
            return
        self._facts.add(interface)

    def _statistics(self, body: bytes) -> None:
        if len(body) < 12:
            return
        number, high, low = struct.unpack_from(f"{self._order}III", body)
        if number >= len(self._interfaces):
            return
        interface = self._interfaces[number]
        interface.statistics_ns = interface.since_offset_ns(high << 32 | low)
        options = dict(interface.statistics or ())
        for code, value in self._in_little_endian(body[12:], STATISTICS_NUMBERS):
            if code in (ISB_STARTTIME, ISB_ENDTIME) and len(value) >= 8:
                high, low = struct.unpack_from(f"{self._order}II", value)
                value = _high_and_low(interface.since_offset_ns(high << 32 | low))
            options[code] = value
        interface.statistics = tuple(options.items())

    def _packet(self, kind: int, body: bytes) -> _Record | None:
        interfaces = self._facts.interfaces
        if kind == SIMPLE_PACKET:
            if len(interfaces) == self._first:
                return None
            interface = interfaces[self._first]
            self._facts.untimed.append(self._facts.packets + 1)
            wire_len = self._u32(body)
            captured = min(wire_len, interface.snaplen or wire_len, len(body) - 4)
            data = body[4 : 4 + captured]
            return _Record(self._last_ns, interface.link_type, wire_len, 0, data, self._first)
        dropped = 0xFFFF
        if kind == OBSOLETE_PACKET:
            number, dropped = struct.unpack_from(f"{self._order}HH", body)
        else:
            number = self._u32(body)
        number += self._first
        high, low, captured, wire_len = struct.unpack_from(f"{self._order}IIII", body, 4)
        data = body[20 : 20 + captured]
        if len(data) < captured:
            raise Damage(f"packet of {captured} bytes in a block that holds {len(body) - 20}")
        if number >= len(interfaces):
            return None
        interface = interfaces[number]
        direction = 0
        options = self._in_little_endian(body[20 + (captured + 3 & ~3) :], PACKET_NUMBERS)
        for code, value in options:
            if code == EPB_FLAGS and len(value) == 4:
                direction = {1: INBOUND, 2: OUTBOUND}.get(value[0] & 3, 0)
        if dropped != 0xFFFF:
            options += ((EPB_DROPCOUNT, dropped.to_bytes(8, "little")),)
        time_ns = interface.time_ns(high << 32 | low)
        self._last_ns = time_ns
        return _Record(time_ns, interface.link_type, wire_len, direction, data, number, options)


def _high_and_low(value: int) -> bytes:
    """A time stamp as pcapng has it: the high half first."""
    return struct.pack("<II", value >> 32 & 0xFFFFFFFF, value & 0xFFFFFFFF)


def facts_of(facts: Facts) -> dict[str, Any]:
    """The facts under the names that the engine uses."""
    return {
        "format": facts.format,
        "compression": facts.compression,
        "link_types": [name_of(link_type) for link_type in facts.link_types],
        "packets": facts.packets,
        "bytes": facts.wire_bytes,
        "start_ns": facts.start_ns,
        "end_ns": facts.end_ns,
        "warnings": list(facts.warnings),
    }
