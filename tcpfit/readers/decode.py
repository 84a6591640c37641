"""Link layer, IP and TCP in Python: a packet becomes a segment, or a word for why it does not.

IP and TCP headers are dpkt's; link layers, lengths and what a short snapshot leaves are read here. Lengths come from
the IP header, never from what was captured.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, field
from functools import lru_cache

import dpkt

from tcpfit.readers.batches import Segment
from tcpfit.readers.containers import INBOUND, OUTBOUND, Packet, name_of

IPV4, IPV6, ARP, PPPOE = 0x0800, 0x86DD, 0x0806, 0x8864
VLAN_TAGS, MPLS = (0x8100, 0x88A8, 0x9100), (0x8847, 0x8848)
TCP = 6
HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION_OPTIONS = 0, 43, 44, 51, 60

NOT_IP, TRUNCATED, BAD_IP, BAD_TCP, FRAGMENTED = (
    "not IP",
    "truncated header",
    "bad IP header",
    "bad TCP header length",
    "IP fragment",
)
PROTOCOLS = {1: "ICMP", 2: "IGMP", 17: "UDP", 50: "IPsec ESP", 58: "ICMP", 132: "SCTP"}


class Skipped(Exception):
    """The packet is not analysed; the message is the reason it is counted under."""


def protocol_reason(number: int) -> str:
    """The word under which packets of an IP protocol are counted."""
    return PROTOCOLS.get(number, f"IP protocol {number}")


def segment(packet: Packet) -> Segment:
    """The TCP segment of a packet.

    Raises Skipped with the reason where there is none.
    """
    version, at, limit, direction = _link(packet)
    # a header without a length, as offloading leaves it, means up to the end of the frame
    wire = max(packet.wire_len, len(packet.data)) - at
    if version == 0:
        version = _byte(packet.data, at) >> 4
    if version == 4:
        return _ipv4(packet, packet.data[at:], wire, limit, direction)
    if version == 6:
        return _ipv6(packet, packet.data[at:], wire, limit, direction)
    raise Skipped(NOT_IP)


def _link(packet: Packet) -> tuple[int, int, int | None, int]:
    """IP version (0 where only its first nibble says it), offset of the IP header, bytes that the link says follow it
    (where it does), direction."""
    data, direction = packet.data, packet.direction
    match packet.link_type:
        case 1:
            _need(data, 14)
            return *_ethertype(data, _u16(data, 12), 14), direction
        case 113:
            _need(data, 16)
            direction = {0: INBOUND, 4: OUTBOUND}.get(_u16(data, 0), direction)
            return *_ethertype(data, _u16(data, 14), 16), direction
        case 276:
            _need(data, 20)
            direction = {0: INBOUND, 4: OUTBOUND}.get(data[10], direction)
            return *_ethertype(data, _u16(data, 0), 20), direction
        case 0 | 108:
            family = _u16(data, 0) << 16 | _u16(data, 2)
            if family > 0xFFFF:  # the other byte order: families are small numbers
                family = struct.unpack_from("<I", data)[0]
            versions = {2: 4, 10: 6, 24: 6, 28: 6, 30: 6}
            if family not in versions:
                raise Skipped(NOT_IP)
            return versions[family], 4, None, direction
        case 12 | 14 | 101:
            return 0, 0, None, direction
        case 228:
            return 4, 0, None, direction
        case 229:
            return 6, 0, None, direction
        case 9 | 50:
            return *_ppp(data, 2 if data[:2] == b"\xff\x03" else 0), None, direction
        case other:
            name = name_of(other)
            known = "" if name.startswith("LINKTYPE_") else f" ({name})"
            raise Skipped(f"unsupported link type {other}{known}")


def _ethertype(data: bytes, kind: int, at: int) -> tuple[int, int, int | None]:
    """Follow EtherTypes until IP: VLAN tags in any depth, PPPoE (which has a length, RFC 2516, 4), MPLS."""
    while kind in VLAN_TAGS:
        kind, at = _u16(data, at + 2), at + 4
    if kind == IPV4:
        return 4, at, None
    if kind == IPV6:
        return 6, at, None
    if kind == PPPOE:
        version, inner = _ppp(data, at + 6)
        return version, inner, max(_u16(data, at + 4) - (inner - at - 6), 0)
    if kind in MPLS:
        bottom = False
        while not bottom:
            _need(data, at + 4)
            bottom, at = bool(data[at + 2] & 1), at + 4
        return 0, at, None
    raise Skipped("ARP" if kind == ARP else NOT_IP)


def _ppp(data: bytes, at: int) -> tuple[int, int]:
    """The protocol field of PPP, two bytes or compressed to one (RFC 1661, 6.5)."""
    for prefix, version in ((b"\x00\x21", 4), (b"\x21", 4), (b"\x00\x57", 6), (b"\x57", 6)):
        if data.startswith(prefix, at):
            return version, at + len(prefix)
    _need(data, at + 2)
    raise Skipped(NOT_IP)


def _ipv4(packet: Packet, data: bytes, wire: int, limit: int | None, direction: int) -> Segment:
    _need(data, 20)
    header = (data[0] & 15) * 4
    total, ip_id, fragment = struct.unpack_from(">HHH", data, 2)
    total = total or wire  # 0 is what the host writes before the network card cuts a super-segment
    if data[0] >> 4 != 4 or header < 20 or total < header:
        raise Skipped(BAD_IP)
    if fragment & 0x3FFF:
        raise Skipped(FRAGMENTED)
    _need(data, header)
    if data[9] != TCP:
        raise Skipped(protocol_reason(data[9]))
    length = total - header if limit is None else min(total, limit) - header
    addresses = _address(data[12:16]), _address(data[16:20])
    return _tcp(packet, data[header : header + length], length, addresses, ip_id, data[8], data[1] & 3, direction)


def _ipv6(packet: Packet, data: bytes, wire: int, limit: int | None, direction: int) -> Segment:
    _need(data, 40)
    if data[0] >> 4 != 6:
        raise Skipped(BAD_IP)
    length = _u16(data, 4) or max(wire - 40, 0)  # 0 is a jumbogram, or what BIG TCP hands over
    following, at = data[6], 40
    while following != TCP:
        if following in (HOP_BY_HOP, ROUTING, DESTINATION_OPTIONS):
            size = 8 + 8 * _byte(data, at + 1)
        elif following == AUTHENTICATION:
            size = 8 + 4 * _byte(data, at + 1)
        elif following == FRAGMENT:
            _need(data, at + 8)
            if _u16(data, at + 2) & 0xFFF9:  # offset 0 and nothing more: a whole packet all the same (RFC 6946)
                raise Skipped(FRAGMENTED)
            size = 8
        else:
            raise Skipped(protocol_reason(following))
        _need(data, at + size)
        if size > length:
            raise Skipped(BAD_IP)
        following, at, length = data[at], at + size, length - size
    length = length if limit is None else min(length, max(limit - at, 0))
    addresses = _address(data[8:24]), _address(data[24:40])
    ecn = data[1] >> 4 & 3
    return _tcp(packet, data[at : at + length], length, addresses, None, data[7], ecn, direction)


def _tcp(
    packet: Packet,
    data: bytes,
    length: int,
    addresses: tuple[str, str],
    ip_id: int | None,
    ttl: int,
    ecn: int,
    direction: int,
) -> Segment:
    if length < 20:
        raise Skipped(BAD_TCP)
    _need(data, 16)
    offset = (data[12] >> 4) * 4
    if offset < 20 or offset > length:
        raise Skipped(BAD_TCP)
    header = dpkt.tcp.TCP(data[:20].ljust(20, b"\0"))
    options = tcp_options(data[20:offset], offset - 20)
    return Segment(
        packet.frame,
        packet.time_ns,
        *addresses,
        header.sport,
        header.dport,
        header.seq,
        header.ack,
        header.flags & 0xFF | (data[12] & 1) << 8,
        header.win,
        length - offset,
        packet.wire_len,
        ip_id,
        ttl,
        ecn,
        header.sum,
        direction,
        options.mss,
        options.window_scale,
        options.sack_permitted,
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
                options.mss = _u16(value, 0)
            case 3, 1:
                options.window_scale = value[0]
            case 4, 0:
                options.sack_permitted = True
            case 5, size:
                blocks = min(size // 8, 4)
                options.sack = list(struct.unpack_from(f">{2 * blocks}I", value))
            case 8, 8:
                options.tsval, options.tsecr = struct.unpack(">II", value)
        at = end
    options.incomplete = at >= len(area) and len(area) < length
    return options


@lru_cache(maxsize=4096)
def _address(raw: bytes) -> str:
    return str(ipaddress.ip_address(raw))


def _need(data: bytes, count: int) -> None:
    if len(data) < count:
        raise Skipped(TRUNCATED)


def _byte(data: bytes, at: int) -> int:
    _need(data, at + 1)
    return data[at]


def _u16(data: bytes, at: int) -> int:
    _need(data, at + 2)
    return data[at] << 8 | data[at + 1]
