"""IP and TCP in Python: a packet becomes a segment, or a word for why it does not.

TCP headers are dpkt's; lengths and what a short snapshot leaves are read here. Lengths come from the IP header, never
from what was captured. What stands before IP is told in `links`, what stands between one IP and another in `tunnels`.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, field
from functools import lru_cache

import dpkt

from tcpfit.readers.around import BAD_IP, BAD_TCP, FRAGMENTED, NOT_IP, Network, Skipped, byte, need, u16, u32
from tcpfit.readers.batches import Segment
from tcpfit.readers.containers import Packet
from tcpfit.readers.links import network_of
from tcpfit.readers.tunnels import inside

TCP = 6
HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION_OPTIONS = 0, 43, 44, 51, 60
FIN, SYN, PSH = 1, 2, 8
LARGEST = 65_535


@dataclass(frozen=True)
class Part:
    """Which part of a datagram a fragment is: `offset` bytes are before it."""

    id: int
    offset: int
    more: bool


@dataclass(frozen=True)
class Datagram:
    """An IP datagram without its headers; `data` is what was captured of `length` bytes. Addresses have 16 bytes."""

    ends: tuple[bytes, bytes]
    protocol: int
    data: bytes
    length: int
    ip_id: int | None
    ttl: int
    ecn: int
    part: Part | None


class Decoder:
    """Decodes the packets of a capture in their order; remembers what the first fragments of datagrams said."""

    REMEMBERED = 64
    PATIENCE_NS = 60_000_000_000

    def __init__(self) -> None:
        self._firsts: list[tuple[object, Segment, int]] = []

    def segment(self, packet: Packet) -> Segment:
        """The TCP segment of a packet, through tunnels.

        Raises Skipped with the reason where there is none.
        """
        network, direction = network_of(packet)
        while True:
            datagram = _datagram(network)
            part, around = datagram.part, network.around
            if part and part.offset and datagram.protocol == TCP:
                return self._further(packet, datagram, part, around.identity, direction)
            if part and part.offset:
                raise Skipped(FRAGMENTED)
            if datagram.protocol == TCP:
                segment = _tcp(packet, datagram, around.identity, direction)
                return self._remember(segment, datagram, part) if part else segment
            network = inside(datagram.protocol, datagram.data, datagram.length, datagram.ends, around)

    def _remember(self, segment: Segment, datagram: Datagram, part: Part) -> Segment:
        name = (datagram.ends, segment.around, part.id)
        self._firsts.append((name, segment, datagram.length - segment.payload))
        del self._firsts[: -self.REMEMBERED]
        # what ends the data ends the last part
        return segment._replace(flags=segment.flags & ~(FIN | PSH))

    def _further(self, packet: Packet, datagram: Datagram, part: Part, around: int, direction: int) -> Segment:
        """The rest of a segment whose beginning an earlier fragment showed."""
        name = (datagram.ends, around, part.id)
        in_time = packet.time_ns - self.PATIENCE_NS
        known = [row for row in self._firsts if row[0] == name and in_time <= row[1].time_ns <= packet.time_ns]
        if not known:
            raise Skipped(FRAGMENTED)
        _, first, header = known[-1]
        before = part.offset - header
        if before < 0 or part.offset + datagram.length > LARGEST:
            raise Skipped(BAD_IP)
        syn = 1 if first.flags & SYN else 0
        return first._replace(
            frame=packet.frame,
            time_ns=packet.time_ns,
            seq=(first.seq + before + syn) % 2**32,
            flags=first.flags & ~(SYN | (FIN | PSH if part.more else 0)),
            payload=datagram.length,
            wire_bytes=packet.wire_len,
            ip_id=None,
            ttl=datagram.ttl,
            ecn=datagram.ecn,
            checksum=0,
            direction=direction,
            mss=None,
            window_scale=None,
            sack_permitted=False,
            mptcp=False,
            ce_bytes=None,
            options_incomplete=False,
            sack=[],
        )


def _datagram(network: Network) -> Datagram:
    version = network.version or byte(network.data, 0) >> 4
    if version not in (4, 6):
        raise Skipped(NOT_IP)
    return _ipv4(network) if version == 4 else _ipv6(network)


def _ipv4(network: Network) -> Datagram:
    data = network.data
    need(data, 20)
    header = (data[0] & 15) * 4
    total, ip_id, fragment = struct.unpack_from(">HHH", data, 2)
    total = total or network.wire  # 0 is what the host writes before the network card cuts a super-segment
    if data[0] >> 4 != 4 or header < 20:
        raise Skipped(BAD_IP)
    if total > network.wire and len(data) >= header and _is_damaged(data[:header]):
        total = network.wire
    if total < header:
        raise Skipped(BAD_IP)
    need(data, header)
    length = total - header if network.limit is None else min(total - header, max(network.limit - header, 0))
    mapped = bytes(10) + b"\xff\xff"
    ends = mapped + data[12:16], mapped + data[16:20]
    part = Part(ip_id, (fragment & 0x1FFF) * 8, bool(fragment & 0x2000)) if fragment & 0x3FFF else None
    return Datagram(ends, data[9], data[header : header + length], length, ip_id, data[8], data[1] & 3, part)


def _is_damaged(header: bytes) -> bool:
    """The checksum is wrong (RFC 1071), and is there: hosts leave 0 to the network card."""
    words: tuple[int, ...] = struct.unpack(f">{len(header) // 2}H", header)
    total = sum(words)
    return words[5] != 0 and (total & 0xFFFF) + (total >> 16) != 0xFFFF


def _ipv6(network: Network) -> Datagram:
    data = network.data
    need(data, 40)
    if data[0] >> 4 != 6:
        raise Skipped(BAD_IP)
    length = u16(data, 4) or max(network.wire - 40, 0)  # 0 is a jumbogram, or what BIG TCP hands over
    following, at = data[6], 40
    part = None
    while following in (HOP_BY_HOP, ROUTING, DESTINATION_OPTIONS, AUTHENTICATION, FRAGMENT):
        if following == FRAGMENT:
            need(data, at + 8)
            field = u16(data, at + 2)
            if field & 0xFFF9:  # offset 0 and nothing more: a whole packet all the same (RFC 6946)
                part = Part(u32(data, at + 4), field & 0xFFF8, bool(field & 1))
            size = 8
        else:
            size = 8 + (4 if following == AUTHENTICATION else 8) * byte(data, at + 1)
        need(data, at + size)
        if size > length:
            raise Skipped(BAD_IP)
        following, at, length = data[at], at + size, length - size
        if part and part.offset:  # what follows in a later part is no header
            break
    if network.limit is not None:
        length = min(length, max(network.limit - at, 0))
    ends = data[8:24], data[24:40]
    return Datagram(ends, following, data[at : at + length], length, None, data[7], data[1] >> 4 & 3, part)


def _tcp(packet: Packet, datagram: Datagram, around: int, direction: int) -> Segment:
    data, length = datagram.data, datagram.length
    if length < 20:
        raise Skipped(BAD_TCP)
    need(data, 16)
    offset = (data[12] >> 4) * 4
    if offset < 20 or offset > length:
        raise Skipped(BAD_TCP)
    header = dpkt.tcp.TCP(data[:20].ljust(20, b"\0"))
    options = tcp_options(data[20:offset], offset - 20)
    return Segment(
        packet.frame,
        packet.time_ns,
        _address(datagram.ends[0]),
        _address(datagram.ends[1]),
        header.sport,
        header.dport,
        header.seq,
        header.ack,
        header.flags & 0xFF | (data[12] & 1) << 8,
        header.win,
        length - offset,
        packet.wire_len,
        datagram.ip_id,
        datagram.ttl,
        datagram.ecn,
        header.sum if len(data) >= 18 else 0,
        direction,
        around,
        options.mss,
        options.window_scale,
        options.sack_permitted,
        options.mptcp,
        options.ce_bytes,
        options.tsval,
        options.tsecr,
        options.incomplete,
        options.sack,
    )


@dataclass
class Options:
    """The TCP options that matter to inference."""

    mss: int | None = None
    window_scale: int | None = None
    sack_permitted: bool = False
    mptcp: bool = False
    ce_bytes: int | None = None
    tsval: int | None = None
    tsecr: int | None = None
    sack: list[int] = field(default_factory=list)
    incomplete: bool = False


def tcp_options(area: bytes, length: int) -> Options:
    """Options as far as they are whole (RFC 9293, 3.2), of an area of `length` bytes that may have been cut.

    A length that leads nowhere ends them.
    """
    options, at = Options(), 0
    while at < len(area) and area[at] != 0:
        if area[at] == 1:
            at += 1
            continue
        end = at + area[at + 1] if at + 1 < len(area) else 0
        if not at + 2 <= end <= len(area):
            options.incomplete = True
            return options
        kind, value = area[at], area[at + 2 : end]
        match kind, len(value):
            case 2, 2:
                options.mss = u16(value, 0)
            case 3, 1:
                options.window_scale = value[0]
            case 4, 0:
                options.sack_permitted = True
            case 5, size:
                blocks = min(size // 8, 4)
                options.sack = list(struct.unpack_from(f">{2 * blocks}I", value))
            case 30, _:
                options.mptcp = True
            case 172 | 174, 6 | 9:
                options.ce_bytes = u32(value, 2) & 0xFF_FFFF
            case 8, 8:
                options.tsval, options.tsecr = struct.unpack(">II", value)
        at = end
    options.incomplete = at >= len(area) and len(area) < length
    return options


@lru_cache(maxsize=4096)
def _address(raw: bytes) -> str:
    address = ipaddress.IPv6Address(raw)
    return str(address.ipv4_mapped or address)
