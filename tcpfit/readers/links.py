"""Link layers in Python: what stands before IP on each link type, and Ethernet wherever it comes again."""

from __future__ import annotations

import struct

from tcpfit.readers.around import (
    AGGREGATE,
    ENCRYPTED,
    NOT_IP,
    PPPOE,
    PSEUDOWIRE,
    SERVICE,
    TRUNCATED,
    VLAN,
    Around,
    Network,
    Skipped,
    byte,
    need,
    u16,
    u32,
)
from tcpfit.readers.containers import INBOUND, OUTBOUND, Packet, name_of

TYPE_IPV4, TYPE_ARP, BRIDGING, TYPE_IPV6 = 0x0800, 0x0806, 0x6558, 0x86DD
VLAN_TAGS, MPLS = (0x8100, 0x88A8, 0x9100, 0x9200), (0x8847, 0x8848)
PPPOE_SESSION, BACKBONE, MACSEC, METADATA = 0x8864, 0x88E7, 0x88E5, 0x8909
LEAST_TYPE = 1536


def network_of(packet: Packet) -> tuple[Network, int]:
    """The IP datagram of a packet, and its direction.

    Raises Skipped with the reason where there is none.
    """
    # a header without a length, as offloading leaves it, means up to the end of the frame
    frame = Frame(packet.data, max(packet.wire_len, len(packet.data)), packet.direction)
    return frame.link(packet.link_type), frame.direction


class Frame:
    """A frame as it is taken apart: functions take what is left of it."""

    def __init__(self, data: bytes, wire: int, direction: int = 0) -> None:
        self._whole, self._wire, self.direction = data, wire, direction

    def ip(self, version: int, data: bytes, around: Around, limit: int | None = None) -> Network:
        """The end of the way."""
        return Network(version, data, self._wire - (len(self._whole) - len(data)), around, limit)

    def link(self, kind: int, data: bytes | None = None, outermost: bool = True) -> Network:
        """By link type; within PKTAP and PPI another is named."""
        data = self._whole if data is None else data
        nothing = Around()
        match kind:
            case 1:
                return self.ethernet(data, nothing)
            case 12 | 14 | 101:
                return self.ip(0, data, nothing)
            case 228:
                return self.ip(4, data, nothing)
            case 229:
                return self.ip(6, data, nothing)
            case 113:
                need(data, 16)
                self._way(u16(data, 0))
                return self.ethertype(u16(data, 14), data[16:], nothing)
            case 276:
                need(data, 20)
                self._way(data[10])
                return self.ethertype(u16(data, 0), data[20:], nothing)
            case 0 | 108:
                return self._loopback(data)
            case 9 | 50:
                return self.ppp_hdlc(data, nothing)
            case 204:
                self.direction = OUTBOUND if byte(data, 0) else INBOUND
                return self.ppp_hdlc(data[1:], nothing)
            case 51:
                return self._pppoe(data, nothing)
            case 104:
                return self._cisco_hdlc(data, nothing)
            case 107:
                return self._frame_relay(data)
            case 105:
                return self._wlan(data)
            case 127:
                return self._radiotap(data)
            case 119 | 163:
                return self._prism(data)
            case 239:
                return self._nflog(data)
            case 219:
                return self.mpls(data, nothing)
            case 10:
                need(data, 13)
                return self.llc(data[13:], nothing)
            case 6:
                return self._token_ring(data)
            case 100:
                return self.llc(data, nothing)
            case 122:
                need(data, 16)
                return self.llc(data[16:], nothing)
            case 242:  # a route of 40 bytes, EtherType, two reserved (RFC 4391)
                need(data, 44)
                return self.ethertype(u16(data, 40), data[44:], nothing)
            case 178:
                return self._juniper(data)
            case 258 | 192 if outermost:
                named, rest = self._pktap(data) if kind == 258 else self._ppi(data)
                return self.link(named, rest, outermost=False)
        name = name_of(kind)
        known = "" if name.startswith("LINKTYPE_") else f" ({name})"
        raise Skipped(f"unsupported link type {kind}{known}")

    def ethernet(self, data: bytes, around: Around) -> Network:
        """Two addresses and an EtherType."""
        need(data, 14)
        return self.ethertype(u16(data, 12), data[14:], around)

    def ethertype(self, kind: int, data: bytes, around: Around) -> Network:
        """Follow EtherTypes until IP."""
        while kind in VLAN_TAGS or kind == METADATA:
            size = 8 if kind == METADATA else 4
            need(data, size)
            number = u16(data, 0) & 0xFFF
            if kind != METADATA and number:  # 0 gives a priority and no VLAN
                around = around.tagged(VLAN, number)
            kind, data = u16(data, size - 2), data[size:]
        if kind == TYPE_IPV4:
            return self.ip(4, data, around)
        if kind == TYPE_IPV6:
            return self.ip(6, data, around)
        if kind == PPPOE_SESSION:
            return self._pppoe(data, around)
        if kind in MPLS:
            return self.mpls(data, around)
        if kind == BACKBONE:
            need(data, 4)
            return self.ethernet(data[4:], around.inside(SERVICE, u32(data, 0) & 0xFFFFFF))
        if kind == BRIDGING:
            return self.ethernet(data, around.inside(PSEUDOWIRE, 0))
        if kind == MACSEC:
            raise Skipped(ENCRYPTED)
        if kind < LEAST_TYPE:
            return self.llc(data, around)
        raise Skipped("ARP" if kind == TYPE_ARP else NOT_IP)

    def llc(self, data: bytes, around: Around) -> Network:
        """SNAP names an EtherType (RFC 1042), and IP has an access point of its own."""
        if data[:5] == b"\xaa\xaa\x03\0\0" and len(data) >= 8 and data[5] in (0, 0xF8):
            kind = u16(data, 6)
            if kind < LEAST_TYPE:  # no length within: it would lead here again
                raise Skipped(NOT_IP)
            return self.ethertype(kind, data[8:], around)
        if data[:3] == b"\x06\x06\x03":
            return self.ip(4, data[3:], around)
        need(data, 3)
        raise Skipped(NOT_IP)

    def mpls(self, data: bytes, around: Around) -> Network:
        """Labels; what follows the last is IP, or a pseudowire's control word, whose first nibble is 0 (RFC 4385)."""
        bottom = False
        while not bottom:
            need(data, 4)
            bottom, data = bool(data[2] & 1), data[4:]
        if len(data) >= 4 and data[0] >> 4 == 0:
            return self.ethernet(data[4:], around.inside(PSEUDOWIRE, 0))
        return self.ip(0, data, around)

    def ppp_hdlc(self, data: bytes, around: Around) -> Network:
        """PPP with or without address and control, or Cisco's framing in its place."""
        if data[:2] == b"\xff\x03":
            return self.ppp(data[2:], around)
        if data[:2] in (b"\x0f\0", b"\x8f\0"):
            return self._cisco_hdlc(data, around)
        return self.ppp(data, around)

    def ppp(self, data: bytes, around: Around) -> Network:
        """The protocol field of PPP, two bytes or compressed to one (RFC 1661, 6.5)."""
        for prefix, version in ((b"\x00\x21", 4), (b"\x21", 4), (b"\x00\x57", 6), (b"\x57", 6)):
            if data.startswith(prefix):
                return self.ip(version, data[len(prefix) :], around)
        if data[:2] == b"\x02\x81":
            return self.mpls(data[2:], around)
        need(data, 2)
        raise Skipped(NOT_IP)

    def _pppoe(self, data: bytes, around: Around) -> Network:
        """The header has a session and a length (RFC 2516, 4)."""
        need(data, 6)
        network = self.ppp(data[6:], around.inside(PPPOE, u16(data, 2)))
        limit = max(u16(data, 4) - (len(data) - 6 - len(network.data)), 0)
        return self.ip(network.version, network.data, network.around, limit)

    def _cisco_hdlc(self, data: bytes, around: Around) -> Network:
        need(data, 4)
        kind = u16(data, 2)
        if kind < LEAST_TYPE:
            raise Skipped(NOT_IP)
        return self.ethertype(kind, data[4:], around)

    def _juniper(self, data: bytes) -> Network:
        """Magic number, flags (1: came in, 2: without link layer, 128: extensions), extensions, and the frame."""
        need(data, 4)
        if data[:3] != b"MGC":
            raise Skipped(TRUNCATED)
        flags, rest = data[3], data[4:]
        self.direction = INBOUND if flags & 1 else OUTBOUND
        if flags & 128:
            need(rest, 2)
            length = 2 + u16(rest, 0)
            need(rest, length)
            rest = rest[length:]
        if flags & 2:
            need(rest, 4)
            return self.ip(0, rest[4:], Around())
        return self.ethernet(rest, Around())

    def _loopback(self, data: bytes) -> Network:
        family = u32(data, 0)
        if family > 0xFFFF:  # the other byte order: families are small numbers
            family = struct.unpack_from("<I", data)[0]
        versions = {2: 4, 10: 6, 24: 6, 28: 6, 30: 6}
        if family not in versions:
            raise Skipped(NOT_IP)
        return self.ip(versions[family], data[4:], Around())

    def _way(self, packet_type: int) -> None:
        self.direction = {0: INBOUND, 4: OUTBOUND}.get(packet_type, self.direction)

    def _frame_relay(self, data: bytes) -> Network:
        """An address of up to four octets, the last odd; then RFC 2427's identifier, or an EtherType."""
        last = next((at for at, octet in enumerate(data[:4]) if octet & 1), None)
        if last is None:
            raise Skipped(TRUNCATED)
        data = data[last + 1 :]
        for prefix, version in ((b"\x03\xcc", 4), (b"\x03\x8e", 6)):
            if data.startswith(prefix):
                return self.ip(version, data[2:], Around())
        if data[:6] == b"\x03\x00\x80\0\0\0" and len(data) >= 8:
            return self.ethertype(u16(data, 6), data[8:], Around())
        if u16(data, 0) >= 0x0800:
            return self.ethertype(u16(data, 0), data[2:], Around())
        raise Skipped(NOT_IP)

    def _token_ring(self, data: bytes) -> Network:
        need(data, 14)
        route = byte(data, 14) & 0x1F if data[8] & 0x80 else 0
        need(data, 14 + route)
        return self.llc(data[14 + route :], Around())

    def _radiotap(self, data: bytes) -> Network:
        """The field of flags says whether the frame's header is padded; only a time of 8 octets can precede it."""
        need(data, 8)
        length = struct.unpack_from("<H", data, 2)[0]
        need(data, length)
        fields, padded = data[:length], False
        at = 8
        while at - 1 < length and fields[at - 1] & 0x80:  # another word of fields that are present
            at += 4
        if at - 1 < length and len(fields) > 4 and fields[4] & 2:
            at = (at + 7 & ~7) + 8 if fields[4] & 1 else at
            padded = at < length and bool(fields[at] & 0x20)
        return self._wlan(data[length:], padded)

    def _prism(self, data: bytes) -> Network:
        """A length in the host's byte order; AVS's header, of the same link type, has the network's."""
        length = u32(data, 4)
        if length > 0xFFFF and data[:3] != b"\x80\x21\x10":
            length = struct.unpack_from("<I", data, 4)[0]
        need(data, length)
        return self._wlan(data[length:])

    def _wlan(self, data: bytes, padded: bool = False) -> Network:
        """An 802.11 data frame."""
        need(data, 2)
        subtype, flags = data[0] >> 4, data[1]
        if data[0] & 0x0F != 8 or subtype & 4:
            raise Skipped(NOT_IP)
        if flags & 0x40:
            raise Skipped(ENCRYPTED)
        header = 30 if flags & 3 == 3 else 24
        if subtype & 8:
            if byte(data, header) & 0x80:
                raise Skipped(AGGREGATE)
            header += 6 if flags & 0x80 else 2
        header = header + 3 & ~3 if padded else header
        need(data, header)
        return self.llc(data[header:], Around())

    def _nflog(self, data: bytes) -> Network:
        """Family, then attributes in the host's byte order, one of them the packet."""
        need(data, 4)
        version = {2: 4, 10: 6}.get(data[0])
        if version is None:
            raise Skipped(NOT_IP)
        data = data[4:]
        order = ">" if data[:1] == b"\0" and len(data) > 1 and data[1] >= 4 else "<"
        while True:
            need(data, 4)
            length, kind = struct.unpack_from(f"{order}HH", data)
            if length < 4:
                raise Skipped(TRUNCATED)
            if kind & 0x7FFF == 9:
                return self.ip(version, data[4:length], Around())
            length = length + 3 & ~3
            need(data, length)
            data = data[length:]

    def _pktap(self, data: bytes) -> tuple[int, bytes]:
        """macOS's header: length, type, link type, the interface's name, flags that say which way."""
        need(data, 40)
        length, _, kind = struct.unpack_from("<III", data)
        flags = struct.unpack_from("<I", data, 36)[0]
        self.direction = {1: INBOUND, 2: OUTBOUND}.get(flags & 3, self.direction)
        length = max(length, 40)
        need(data, length)
        return kind, data[length:]

    def _ppi(self, data: bytes) -> tuple[int, bytes]:
        need(data, 8)
        length, kind = struct.unpack_from("<HI", data, 2)
        length = max(length, 8)
        need(data, length)
        return kind, data[length:]
