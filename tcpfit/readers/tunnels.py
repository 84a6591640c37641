"""Tunnels over IP in Python: IP in IP, GRE, and over UDP VXLAN, Geneve, GTP-U, L2TP and Teredo."""

from __future__ import annotations

from tcpfit.readers.around import (
    GENEVE,
    GRE,
    GRE_KEY,
    GTP,
    IP_IN_IP,
    L2TP,
    NOT_IP,
    TEREDO,
    VXLAN,
    Around,
    Network,
    Skipped,
    byte,
    need,
    u16,
    u32,
)
from tcpfit.readers.links import BRIDGING, Frame

PROTOCOLS = {1: "ICMP", 2: "IGMP", 17: "UDP", 50: "IPsec ESP", 58: "ICMP", 132: "SCTP"}


def protocol_reason(number: int) -> str:
    """The word under which packets of an IP protocol are counted."""
    return PROTOCOLS.get(number, f"IP protocol {number}")


def inside(protocol: int, payload: bytes, wire: int, ends: tuple[bytes, bytes], around: Around) -> Network:
    """The network that a datagram carries: `payload` of `wire` bytes between two addresses, each of 16 bytes.

    Raises Skipped with the protocol's name where there is none.
    """
    frame = Frame(payload, wire)
    if protocol in (4, 41):
        return frame.ip(4 if protocol == 4 else 6, payload, around.between(IP_IN_IP, ends))
    if protocol == 47:
        return _gre(frame, payload, ends, around)
    if protocol == 17:
        return _udp(frame, payload, around)
    raise Skipped(protocol_reason(protocol))


def _gre(frame: Frame, data: bytes, ends: tuple[bytes, bytes], around: Around) -> Network:
    """RFC 2784 with key and sequence number (RFC 2890), and PPTP's version 1 (RFC 2637, 4.1)."""
    flags, kind = u16(data, 0), u16(data, 2)
    version = flags & 7
    if version > 1 or flags & 0x4000:
        raise Skipped(protocol_reason(47))
    before = 8 if flags & 0x8000 else 4
    size = before + sum(4 for flag in (0x2000, 0x1000) if flags & flag) + (4 if version and flags & 0x80 else 0)
    need(data, size)
    if version == 0 and flags & 0x2000:
        key = u32(data, before)
        if kind == BRIDGING:  # NVGRE: the low octet tells flows apart
            around = around.inside(GRE_KEY, key >> 8)
        else:
            around = around.between(GRE, ends).tagged(GRE_KEY, key)
    else:
        around = around.between(GRE, ends)
    inner = data[size:]
    if kind == 0x880B:
        return frame.ppp_hdlc(inner, around)
    if kind in (0x88BE, 0x22EB):  # ERSPAN of types I, II and III
        header = (8 if flags & 0x1000 else 0) if kind == 0x88BE else 12 + (8 if byte(inner, 11) & 1 else 0)
        need(inner, header)
        return frame.ethernet(inner[header:], around)
    try:
        return frame.ethertype(kind, inner, around)
    except Skipped as reason:
        raise Skipped(protocol_reason(47)) if str(reason) == NOT_IP else reason from None


def _udp(frame: Frame, data: bytes, around: Around) -> Network:
    no_tunnel = Skipped("UDP")
    if len(data) < 8:
        raise no_tunnel
    ports, target, inner = {u16(data, 0), u16(data, 2)}, u16(data, 2), data[8:]
    network = None
    if target in (4789, 8472, 4790):
        network = _vxlan(frame, inner, target == 4790, around)
    elif target == 6081:
        network = _geneve(frame, inner, around)
    elif 2152 in ports:
        network = _gtp_u(frame, inner, around)
    elif 1701 in ports:
        network = _l2tp(frame, inner, around)
    elif 3544 in ports:
        network = _teredo(frame, inner, around)
    if network is None:
        raise no_tunnel
    return network


def _vxlan(frame: Frame, data: bytes, generic: bool, around: Around) -> Network | None:
    if len(data) < 8 or not data[0] & 8 or data[7]:
        return None
    around = around.inside(VXLAN, u32(data, 4) >> 8)
    if not generic or data[3] == 3:
        return frame.ethernet(data[8:], around)
    return frame.ip({1: 4, 2: 6}[data[3]], data[8:], around) if data[3] in (1, 2) else None


def _geneve(frame: Frame, data: bytes, around: Around) -> Network | None:
    if len(data) < 8 or data[0] >> 6:
        return None
    header = 8 + (data[0] & 0x3F) * 4
    need(data, header)
    return frame.ethertype(u16(data, 2), data[header:], around.inside(GENEVE, u32(data, 4) >> 8))


def _gtp_u(frame: Frame, data: bytes, around: Around) -> Network | None:
    """A user's packet in GTPv1; extension headers count in units of four octets, each naming the next."""
    if len(data) < 8 or data[0] & 0xF0 != 0x30 or data[1] != 255:
        return None
    at = 8
    if data[0] & 7:
        following = byte(data, 11) if data[0] & 4 else 0
        at = 12
        need(data, at)
        while following:
            length = byte(data, at) * 4
            need(data, at + length)
            if length == 0:
                return None
            at += length
            following = data[at - 1]
    return frame.ip(0, data[at:], around.inside(GTP, 0))


def _l2tp(frame: Frame, data: bytes, around: Around) -> Network | None:
    """A data message of version 2: PPP."""
    if len(data) < 2 or data[0] & 0x80 or data[1] & 15 != 2:
        return None
    flags = u16(data, 0)
    at = 6 + (2 if flags & 0x4000 else 0) + (4 if flags & 0x0800 else 0)
    if flags & 0x0200:
        at += 2 + u16(data, at)
    need(data, at)
    return frame.ppp_hdlc(data[at:], around.inside(L2TP, 0))


def _teredo(frame: Frame, data: bytes, around: Around) -> Network | None:
    """IPv6, perhaps behind an authentication and an origin indication."""
    if data[:2] == b"\0\1" and len(data) >= 4:
        length = 13 + data[2] + data[3]
        need(data, length)
        data = data[length:]
    if data[:2] == b"\0\0":
        need(data, 8)
        data = data[8:]
    if data[:1] and data[0] >> 4 == 6:
        return frame.ip(6, data, around.inside(TEREDO, 0))
    return None
