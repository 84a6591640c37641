"""Every encapsulation: the segment inside is found, by the engine and by the dpkt reader alike, and counts once."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import captures
import pytest
from captures import ACK, PSH, SYN, Packet, Transfer

import tcpfit
from tcpfit import analysis

Wrap = Callable[[bytes], bytes]
ETHERNET, RAW = 1, 101
OUTER = "192.0.2.1", "192.0.2.2"


def ipv4(inner: bytes, protocol: int, src: str = OUTER[0], dst: str = OUTER[1], total: int | None = None) -> bytes:
    ends = b"".join(bytes(map(int, address.split("."))) for address in (src, dst))
    length = 20 + len(inner) if total is None else total
    return struct.pack(">BBHHHBBH", 0x45, 0, length, 1, 0, 64, protocol, 0) + ends + inner


def ipv6(inner: bytes, protocol: int) -> bytes:
    return struct.pack(">IHBB", 6 << 28, len(inner), protocol, 64) + bytes(15) + b"\1" + bytes(15) + b"\2" + inner


def udp(inner: bytes, port: int, sport: int = 50000) -> bytes:
    return ipv4(struct.pack(">HHHH", sport, port, 8 + len(inner), 0) + inner, 17)


def ethernet(inner: bytes, kind: int | None = None) -> bytes:
    kind = kind or (0x0800 if inner[0] >> 4 == 4 else 0x86DD)
    return bytes(12) + struct.pack(">H", kind) + inner


def ppp(inner: bytes) -> bytes:
    return (b"\0\x21" if inner[0] >> 4 == 4 else b"\0\x57") + inner


def mpls(inner: bytes, *labels: int) -> bytes:
    stack = [struct.pack(">I", label << 12 | (label == labels[-1]) << 8 | 64) for label in labels]
    return b"".join(stack) + inner


def snap(inner: bytes) -> bytes:
    return b"\xaa\xaa\x03\0\0\0" + struct.pack(">H", 0x0800 if inner[0] >> 4 == 4 else 0x86DD) + inner


def wlan(inner: bytes, control: bytes = b"\x08\x01", more: bytes = b"") -> bytes:
    return control + bytes(22) + more + snap(inner)


def attribute(kind: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(f"{order}HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def nflog(inner: bytes, order: str = "<") -> bytes:
    family = 2 if inner[0] >> 4 == 4 else 10
    prefix = attribute(1, b"\x08\0\0\0", order) + attribute(10, b"drop\0", order)
    return bytes([family, 0, 0, 5]) + prefix + attribute(9, inner, order)


def pktap(inner: bytes, flags: int = 2) -> bytes:
    header = struct.pack("<III24sI", 108, 1, ETHERNET, b"en0", flags)
    return header.ljust(108, b"\0") + ethernet(inner)


def radiotap(inner: bytes) -> bytes:
    # two words of present fields, time and flags; the flags say that the header of the frame is padded
    header = struct.pack("<BBHII", 0, 0, 25, 0x80000003, 0).ljust(16, b"\0") + bytes(8) + b"\x20"
    return header + b"\x88\x01" + bytes(22) + b"\0\0" + b"\0\0" + snap(inner)


def nested(times: int) -> Wrap:
    def wrap(inner: bytes) -> bytes:
        for _ in range(times):
            inner = ipv4(inner, 4)
        return inner

    return wrap


# name -> link type, what stands around the datagram
WAYS: dict[str, tuple[int, Wrap]] = {
    "ip in ip": (RAW, lambda d: ipv4(d, 4)),
    "6in4": (RAW, lambda d: ipv4(captured_v6(d), 41)),
    "4in6": (RAW, lambda d: ipv6(d, 4)),
    "eight deep": (RAW, nested(8)),
    "gre": (RAW, lambda d: ipv4(struct.pack(">HH", 0, 0x0800) + d, 47)),
    "gre, checksum, key and number": (
        RAW,
        lambda d: ipv4(struct.pack(">HHIII", 0xB000, 0x0800, 0, 77, 9) + d, 47),
    ),
    "gre, ethernet": (RAW, lambda d: ipv4(struct.pack(">HH", 0, 0x6558) + ethernet(d), 47)),
    "nvgre": (RAW, lambda d: ipv4(struct.pack(">HHI", 0x2000, 0x6558, 4711 << 8 | 3) + ethernet(d), 47)),
    "pptp": (RAW, lambda d: ipv4(struct.pack(">HHHHII", 0x3081, 0x880B, len(d) + 4, 1, 5, 6) + b"\xff\3" + ppp(d), 47)),
    "erspan, type II": (RAW, lambda d: ipv4(struct.pack(">HHIQ", 0x1000, 0x88BE, 1, 0) + ethernet(d), 47)),
    "erspan, type III": (
        RAW,
        lambda d: ipv4(struct.pack(">HHI", 0x1000, 0x22EB, 1) + bytes(11) + b"\1" + bytes(8) + ethernet(d), 47),
    ),
    "vxlan": (RAW, lambda d: udp(struct.pack(">II", 0x08000000, 5000 << 8) + ethernet(d), 4789)),
    "vxlan, vlan within": (
        ETHERNET,
        lambda d: ethernet(
            udp(
                struct.pack(">II", 0x08000000, 5000 << 8) + ethernet(struct.pack(">HH", 7, 0x0800) + d, 0x8100),
                8472,
            )
        ),
    ),
    "vxlan-gpe": (RAW, lambda d: udp(struct.pack(">II", 0x0C000001, 5000 << 8) + d, 4790)),
    "geneve": (RAW, lambda d: udp(struct.pack(">BBHII", 1, 0, 0x6558, 5000 << 8, 0) + ethernet(d), 6081)),
    "gtp-u": (RAW, lambda d: udp(struct.pack(">BBHI", 0x30, 255, len(d), 9) + d, 2152)),
    "gtp-u, extension header": (
        RAW,
        lambda d: udp(struct.pack(">BBHIHBBBBBB", 0x34, 255, len(d) + 8, 9, 0, 0, 0x85, 1, 0, 0, 0) + d, 2152),
    ),
    "l2tp": (RAW, lambda d: udp(struct.pack(">HHHH", 0x4002, len(d), 1, 2) + b"\xff\3" + ppp(d), 1701, 1701)),
    "l2tp, offset": (RAW, lambda d: udp(struct.pack(">HHHHxx", 0x0202, 1, 2, 2) + ppp(d), 1701)),
    "teredo": (RAW, lambda d: udp(b"\0\1\0\0" + bytes(9) + b"\0\0" + bytes(6) + captured_v6(d), 3544)),
    "mpls": (ETHERNET, lambda d: ethernet(mpls(d, 16, 17), 0x8847)),
    "mpls, ethernet": (ETHERNET, lambda d: ethernet(mpls(bytes(4) + ethernet(d), 18), 0x8847)),
    "backbone bridge": (ETHERNET, lambda d: ethernet(struct.pack(">I", 99) + ethernet(d), 0x88E7)),
    "pppoe": (ETHERNET, lambda d: ethernet(struct.pack(">BBHH", 0x11, 0, 8, len(d) + 2) + ppp(d), 0x8864)),
    "llc and snap": (ETHERNET, lambda d: ethernet(snap(d), len(d) + 8)),
    "priority tag": (ETHERNET, lambda d: ethernet(struct.pack(">HH", 0xE000, 0x0800) + d, 0x8100)),
    "ppp": (9, lambda d: b"\xff\3" + ppp(d)),
    "ppp, compressed": (50, lambda d: b"\x21" + d),
    "ppp, direction": (204, lambda d: b"\1" + ppp(d)),
    "cisco hdlc": (104, lambda d: b"\x0f\0\x08\0" + d),
    "frame relay": (107, lambda d: b"\x18\x41\x03\xcc" + d),
    "frame relay, cisco": (107, lambda d: b"\x18\x41\x08\0" + d),
    "802.11": (105, wlan),
    "802.11, quality of service": (105, lambda d: wlan(d, b"\x88\x02", b"\0\0")),
    "802.11, four addresses": (105, lambda d: wlan(d, b"\x08\x03", bytes(6))),
    "radiotap": (127, radiotap),
    "prism": (119, lambda d: struct.pack("<II", 0x44, 144).ljust(144, b"\0") + wlan(d)),
    "avs": (163, lambda d: struct.pack(">II", 0x80211001, 64).ljust(64, b"\0") + wlan(d)),
    "ppi": (192, lambda d: struct.pack("<BBHI", 0, 0, 8, 105) + wlan(d)),
    "nflog": (239, nflog),
    "nflog, big-endian": (239, lambda d: nflog(d, ">")),
    "pktap": (258, pktap),
    "mpls link": (219, lambda d: mpls(d, 16)),
    "fddi": (10, lambda d: bytes(13) + snap(d)),
    "token ring, routed": (6, lambda d: bytes(8) + b"\x80" + bytes(5) + b"\x06\0\0\0\0\0" + snap(d)),
    "atm": (100, snap),
    "juniper": (178, lambda d: b"MGC\x81\0\3abc" + ethernet(d)),
    "juniper, no link layer": (178, lambda d: b"MGC\2" + bytes(4) + d),
    "infiniband": (242, lambda d: bytes(40) + b"\x08\0\0\0" + d),
}


def captured_v6(datagram: bytes) -> bytes:
    """The datagram's segment over IPv6."""
    header = ipv6(b"", 6)
    length = struct.pack(">H", len(datagram) - 20)
    return header[:4] + length + header[6:20] + datagram[12:16] + header[24:36] + datagram[16:20] + datagram[20:]


def write(path: Path, packets: list[Packet], link_type: int) -> Path:
    path.write_bytes(captures.pcap(packets, link_type))
    return path


def wrapped(packets: list[Packet], wrap: Wrap) -> list[Packet]:
    frames = [(packet.time_ns, wrap(packet.data)) for packet in packets]
    return [Packet(time_ns, frame, len(frame)) for time_ns, frame in frames]


def transfer(**arguments: object) -> list[Packet]:
    return Transfer(link_type=RAW, **arguments).run()  # type: ignore[arg-type]


def both(path: Path) -> tcpfit.Analysis:
    """The engine's analysis, which the dpkt reader's must equal segment by segment."""
    by_engine = analysis.analyze(path, segments=True)
    by_dpkt = analysis.analyze(path, reader="dpkt", segments=True)
    assert by_engine.segments is not None and by_dpkt.segments is not None
    assert by_engine.segments.equals(by_dpkt.segments)
    assert by_engine.capture["skipped"] == by_dpkt.capture["skipped"]
    assert by_engine.flows.equals(by_dpkt.flows)
    return by_engine


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_segment_inside_is_found(way: str, tmp_path: Path) -> None:
    link_type, wrap = WAYS[way]
    found = both(write(tmp_path / "a.pcap", wrapped(transfer(lost=frozenset({13})), wrap), link_type))
    assert [40_000] == found.flows["unique_bytes"].to_list()
    assert [1] == found.flows["lost_segments"].to_list()
    assert {} == found.capture["skipped"]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_cut_anywhere_is_a_reason_and_no_failure(way: str, tmp_path: Path) -> None:
    link_type, wrap = WAYS[way]
    frame = wrap(captures.tcp("10.0.0.1", "10.0.0.2", 1, 2, 3, 4, ACK, payload=20))
    packets = [Packet(captures.START_NS + n, frame[:n], len(frame)) for n in range(len(frame) + 1)]
    found = both(write(tmp_path / "a.pcap", packets, link_type))
    assert len(packets) == sum(found.capture["skipped"].values()) + found.capture["tcp_segments"]
    assert found.capture["tcp_segments"] >= 20


def test_ninth_tunnel_is_not_entered(tmp_path: Path) -> None:
    found = both(write(tmp_path / "a.pcap", wrapped(transfer(segments=3), nested(9)), RAW))
    assert ["more than 8 tunnels in each other"] == list(found.capture["skipped"])
    assert 0 == found.capture["tcp_segments"]


@pytest.mark.parametrize(
    ("link_type", "frame", "reason"),
    [
        (105, wlan(bytes([0x45]), b"\x08\x41"), "encrypted frame"),
        (105, wlan(bytes([0x45]), b"\x88\x01", b"\x80\0"), "802.11 aggregate (A-MSDU)"),
        (105, b"\x80\0" + bytes(40), "not IP"),
        (ETHERNET, ethernet(bytes(30), 0x88E5), "encrypted frame"),
        (RAW, udp(bytes(40), 53), "UDP"),
        (RAW, udp(bytes(40), 4789), "UDP"),
        (RAW, ipv4(struct.pack(">HH", 0, 0x88CC) + bytes(30), 47), "IP protocol 47"),
        (RAW, ipv4(bytes(40), 50), "IPsec ESP"),
        (
            258,
            pktap(bytes(40))[:8] + struct.pack("<I", 258) + pktap(bytes(40))[12:],
            "unsupported link type 258 (PKTAP)",
        ),
        (147, bytes(60), "unsupported link type 147 (USER0)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_segment_has_its_reason(link_type: int, frame: bytes, reason: str, tmp_path: Path) -> None:
    found = both(write(tmp_path / "a.pcap", [Packet(captures.START_NS, frame, len(frame))], link_type))
    assert {reason: 1} == found.capture["skipped"]


def test_a_segment_that_icmp_quotes_is_none_of_the_flow(tmp_path: Path) -> None:
    packets = transfer()
    quoted = ipv4(struct.pack(">BBHI", 3, 4, 0, 1400) + packets[5].data[:48], 1, "10.0.0.9", "10.0.0.1")
    error = Packet(packets[5].time_ns + 1000, quoted, len(quoted))
    found = both(write(tmp_path / "a.pcap", sorted([*packets, error], key=lambda p: p.time_ns), RAW))
    assert {"ICMP": 1} == found.capture["skipped"]
    assert [40] == found.flows["data_segments"].to_list()


# --- identity --------------------------------------------------------------------------------------------------------


def vlan(number: int) -> Wrap:
    return lambda d: ethernet(struct.pack(">HH", number, 0x0800) + d, 0x8100)


def vxlan(number: int) -> Wrap:
    return lambda d: ethernet(udp(struct.pack(">II", 0x08000000, number << 8) + ethernet(d), 4789))


def between(src: str, dst: str) -> Wrap:
    return lambda d: ethernet(ipv4(d, 4, src, dst))


def merged(*streams: list[Packet]) -> list[Packet]:
    return sorted((packet for stream in streams for packet in stream), key=lambda packet: packet.time_ns)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (vlan(10), vlan(20)),
        (vxlan(10), vxlan(20)),
        (ethernet, vlan(10)),
        (between("192.0.2.1", "192.0.2.2"), between("192.0.2.1", "192.0.2.3")),
    ],
    ids=["vlan", "vxlan", "tagged or not", "ip in ip"],
)
def test_the_same_addresses_elsewhere_are_another_connection(one: Wrap, other: Wrap, tmp_path: Path) -> None:
    first, second = transfer(lost=frozenset({7})), transfer(isn=900_000, start_s=0.001)
    packets = merged(wrapped(first, one), wrapped(second, other))
    found = both(write(tmp_path / "a.pcap", packets, ETHERNET))
    assert [1, 0] == found.flows["lost_segments"].to_list()
    assert [40_000, 40_000] == found.flows["unique_bytes"].to_list()
    assert found.segments is not None and 2 == found.segments["around"].n_unique()


def test_a_packet_before_and_after_a_tunnel_counts_once_each(tmp_path: Path) -> None:
    packets = transfer(lost=frozenset({7}))
    later = [Packet(packet.time_ns + 3000, packet.data, packet.wire_len) for packet in packets]
    found = both(write(tmp_path / "a.pcap", merged(wrapped(packets, ethernet), wrapped(later, vxlan(5))), ETHERNET))
    assert [1, 1] == found.flows["lost_segments"].to_list()
    assert [41, 41] == found.flows["data_segments"].to_list()


@pytest.mark.parametrize("there, back", [(vlan(10), ethernet), (ethernet, vlan(10)), (vlan(10), vlan(20))])
def test_directions_with_different_tags_are_one_connection(there: Wrap, back: Wrap, tmp_path: Path) -> None:
    frames = [
        (packet.time_ns, (there if packet.data[12:16] == bytes([10, 0, 0, 1]) else back)(packet.data))
        for packet in transfer(lost=frozenset({7}))
    ]
    packets = [Packet(time_ns, frame, len(frame)) for time_ns, frame in frames]
    found = both(write(tmp_path / "a.pcap", packets, ETHERNET))
    plain = both(write(tmp_path / "plain.pcap", transfer(lost=frozenset({7})), RAW))
    assert plain.flows.equals(found.flows)


# --- fragments -------------------------------------------------------------------------------------------------------


def pieces(datagram: bytes, size: int, number: int, v6: bool = False) -> list[bytes]:
    """The datagram in fragments of `size` bytes."""
    if v6:
        header, body = datagram[:40], datagram[40:]
    else:
        header, body = datagram[:20], datagram[20:]
    out = []
    for at in range(0, len(body), size):
        part, more = body[at : at + size], at + size < len(body)
        if v6:
            extension = struct.pack(">BBHI", 6, 0, at | more, number)
            out.append(header[:4] + struct.pack(">HBB", 8 + len(part), 44, 64) + header[8:] + extension + part)
        else:
            fields = struct.pack(">HHH", 20 + len(part), number, at // 8 | (0x2000 if more else 0))
            out.append(header[:2] + fields + header[8:] + part)
    return out


def fragmented(packets: list[Packet], size: int, v6: bool = False) -> list[Packet]:
    out = []
    for number, packet in enumerate(packets, 1):
        for at, part in enumerate(pieces(packet.data, size, number, v6)):
            out.append(Packet(packet.time_ns + at * 1000, part, len(part)))
    return out


@pytest.mark.parametrize("v6", [False, True], ids=["ipv4", "ipv6"])
def test_fragments_are_put_together(v6: bool, tmp_path: Path) -> None:
    found = both(write(tmp_path / "a.pcap", fragmented(transfer(lost=frozenset({7}), v6=v6), 400, v6), RAW))
    assert [(40_000, 1000)] == found.flows.select("unique_bytes", "retransmitted_bytes").rows()
    assert [0.0] == found.flows["missing_segments"].to_list()
    assert {} == found.capture["skipped"]


def test_first_fragments_alone_are_analysed(tmp_path: Path) -> None:
    packets = fragmented(transfer(), 400)
    firsts = [packet for packet in packets if not struct.unpack_from(">H", packet.data, 6)[0] & 0x1FFF]
    found = both(write(tmp_path / "a.pcap", firsts, RAW))
    assert [40 * 380] == found.flows["unique_bytes"].to_list()
    assert found.flows["missing_segments"][0] > 0


def test_later_fragments_alone_are_told(tmp_path: Path) -> None:
    packets = fragmented(transfer(), 400)
    later = [packet for packet in packets if struct.unpack_from(">H", packet.data, 6)[0] & 0x1FFF]
    found = both(write(tmp_path / "a.pcap", later, RAW))
    assert {"IP fragment": 80} == found.capture["skipped"]


def test_a_fragment_comes_too_late_or_beyond_the_datagram(tmp_path: Path) -> None:
    first, *rest = fragmented(transfer(segments=1)[3:4], 400)
    late = [Packet(packet.time_ns + 61 * 10**9, packet.data, packet.wire_len) for packet in rest]
    found = both(write(tmp_path / "late.pcap", [first, *late], RAW))
    assert {"IP fragment": 2} == found.capture["skipped"]
    far = bytearray(rest[0].data)
    far[6:8] = struct.pack(">H", 0x1FFF)
    found = both(write(tmp_path / "far.pcap", [first, Packet(first.time_ns, bytes(far), len(far))], RAW))
    assert {"bad IP header": 1} == found.capture["skipped"]


def test_only_the_newest_fragmented_datagrams_are_remembered(tmp_path: Path) -> None:
    split = [
        pieces(packet.data, 800, number)
        for number, packet in enumerate(transfer(segments=66))
        if len(packet.data) > 900
    ]
    assert 66 == len(split)
    order = [parts[0] for parts in split] + [parts[1] for parts in split]
    packets = [Packet(captures.START_NS + n * 1000, part, len(part)) for n, part in enumerate(order)]
    found = both(write(tmp_path / "a.pcap", packets, RAW))
    assert {"IP fragment": 2} == found.capture["skipped"]


def test_segments_of_super_size_have_no_length(tmp_path: Path) -> None:
    big = captures.tcp("10.0.0.1", "10.0.0.2", 1, 2, 1000, 1, ACK | PSH, payload=3000)
    syn = captures.tcp("10.0.0.1", "10.0.0.2", 1, 2, 999, 0, SYN)
    inner = big[:2] + b"\0\0" + big[4:]
    for number, wrap in enumerate((lambda d: d, lambda d: ipv4(d, 4))):
        packets = [Packet(captures.START_NS + n, wrap(d), len(wrap(d))) for n, d in enumerate((syn, inner))]
        found = both(write(tmp_path / f"{number}.pcap", packets, RAW))
        assert found.segments is not None
        assert [0, 3000] == found.segments["payload"].to_list()
