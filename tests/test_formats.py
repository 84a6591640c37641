"""Containers as old, patched and other programs wrote them: the engine and the dpkt reader read the same of each."""

from __future__ import annotations

import struct
from pathlib import Path

import captures
import pytest
from captures import ACK, Packet, Transfer

from tcpfit import Analysis, analysis
from tcpfit.exceptions import CaptureError

PACKETS = Transfer(segments=12, lost=frozenset({5})).run()


def both(path: Path, data: bytes) -> Analysis:
    path.write_bytes(data)
    by_engine = analysis.analyze(path, segments=True)
    by_dpkt = analysis.analyze(path, reader="dpkt", segments=True)
    assert by_engine.segments is not None
    assert by_engine.segments.equals(by_dpkt.segments)
    for fact in ("packets", "bytes", "start_ns", "end_ns", "skipped", "link_types", "format"):
        assert by_engine.capture[fact] == by_dpkt.capture[fact], fact
    return by_engine


def pcap(
    magic: int = 0xA1B2C3D4,
    version: tuple[int, int] = (2, 4),
    order: str = "<",
    rest: bytes = b"",
    swapped: bool = False,
    snaplen: int = 65535,
    packets: list[Packet] = PACKETS,
) -> bytes:
    """A pcap file in microseconds; `rest` follows the four fields of each record header."""
    out = [struct.pack(f"{order}IHHiIII", magic, *version, 0, 0, snaplen, 1)]
    for packet in packets:
        seconds, fraction = divmod(packet.time_ns // 1000, 1_000_000)
        lengths = len(packet.data), packet.wire_len
        fields = struct.pack(f"{order}IIII", seconds, fraction, *(lengths[::-1] if swapped else lengths))
        out += [fields, rest, packet.data]
    return b"".join(out)


def assert_whole(found: Analysis) -> None:
    assert [(12_000, 1)] == found.flows.select("unique_bytes", "lost_segments").rows()
    assert len(PACKETS) == found.capture["packets"] == found.capture["tcp_segments"]
    assert [] == found.warnings


CUT = [Packet(packet.time_ns, packet.data[:96], packet.wire_len) for packet in PACKETS]
KUZNETZOV = struct.pack("<IHBB", 2, 0x0800, 4, 0)

FILES = {
    "version 2.2, lengths the other way round": pcap(version=(2, 2), swapped=True, packets=CUT),
    "version 2.3, written as 2.4": pcap(version=(2, 3), packets=CUT),
    "version 2.3, written as 2.2": pcap(version=(2, 3), swapped=True, packets=CUT),
    "Digital Unix": pcap(version=(543, 0), swapped=True, packets=CUT, order=">"),
    "Kuznetzov": pcap(magic=0xA1B2CD34, rest=KUZNETZOV),
    "Kuznetzov, big-endian": pcap(magic=0xA1B2CD34, order=">", rest=KUZNETZOV),
    "Kuznetzov without his magic": pcap(rest=KUZNETZOV),
    "Kuznetzov of 1999-09-15": pcap(magic=0xA1B2CD34, rest=KUZNETZOV + bytes(4)),
    "Nokia": pcap(rest=bytes(4)),
    "a snapshot length of 0": pcap(snaplen=0),
    "a snapshot length of 68 that is not kept": pcap(snaplen=68),
    "a snapshot length of 2^32 - 1": pcap(snaplen=0xFFFFFFFF),
    "a length on the wire of 0": pcap(packets=[Packet(packet.time_ns, packet.data, 0) for packet in PACKETS]),
}


@pytest.mark.parametrize("name", FILES, ids=str)
def test_old_and_patched_pcap(name: str, tmp_path: Path) -> None:
    assert_whole(both(tmp_path / "a.pcap", FILES[name]))


def test_kuznetzov_says_which_way(tmp_path: Path) -> None:
    found = both(tmp_path / "a.pcap", FILES["Kuznetzov"])
    assert found.segments is not None
    assert {2} == set(found.segments["direction"])


# --- files behind one another, as `cat` leaves them ------------------------------------------------------------------


def test_pcap_files_behind_one_another_are_read_on(tmp_path: Path) -> None:
    first, second = pcap(packets=PACKETS[:7]), pcap(packets=[])
    third = pcap(magic=0xA1B2CD34, order=">", version=(2, 4), rest=KUZNETZOV, packets=PACKETS[7:])
    found = both(tmp_path / "a.pcap", first + second + third)
    assert [(12_000, 1)] == found.flows.select("unique_bytes", "lost_segments").rows()
    assert len(PACKETS) == found.capture["packets"] == found.capture["tcp_segments"]
    sentence = f"frame 8 (byte {len(first)}): another pcap file begins here; it is read as part of this one (2 times)"
    assert [sentence] == found.warnings
    assert [sentence] == analysis.analyze(tmp_path / "a.pcap", reader="dpkt").warnings


def test_a_pcap_file_of_another_link_behind_one(tmp_path: Path) -> None:
    raw = [Packet(packet.time_ns, packet.data[14:], packet.wire_len - 14) for packet in PACKETS[7:]]
    other = pcap(packets=raw).replace(struct.pack("<II", 65535, 1), struct.pack("<II", 9, 101))
    data = pcap(packets=PACKETS[:7]) + other
    found = both(tmp_path / "a.pcap", data)
    assert ["EN10MB", "RAW"] == found.capture["link_types"]
    assert [(12_000, 1)] == found.flows.select("unique_bytes", "lost_segments").rows()


def test_a_header_behind_a_pcap_file_that_is_cut(tmp_path: Path) -> None:
    for length, said in ((15, "record header cut, 15 of 16"), (16, "pcap file header cut, 16 of 24")):
        found = both(tmp_path / "a.pcap", pcap() + pcap()[:length])
        assert len(PACKETS) == found.capture["packets"]
        sentence = f"frame {len(PACKETS) + 1} (byte {len(pcap())}): {said} bytes; the capture ends here"
        assert [sentence] == found.warnings


def test_a_packet_without_bytes_is_no_file(tmp_path: Path) -> None:
    """Not even where its time is the magic of a file: some bytes of it were on the wire."""
    empty = Packet(0xA1B2C3D4 * 10**9 + (4 << 16 | 2) * 1000, b"", 60)
    found = both(tmp_path / "a.pcap", pcap(packets=[*PACKETS, empty]))
    assert (len(PACKETS) + 1, []) == (found.capture["packets"], found.warnings)


# --- snoop -----------------------------------------------------------------------------------------------------------


def snoop(version: int = 2, data_link: int = 4, drops: int = 0) -> bytes:
    out = [b"snoop\0\0\0" + struct.pack(">II", version, data_link)]
    for packet in PACKETS:
        seconds, fraction = divmod(packet.time_ns // 1000, 1_000_000)
        padding = bytes(-len(packet.data) % 4)
        total = 24 + len(packet.data) + len(padding)
        fields = struct.pack(">IIIIII", packet.wire_len, len(packet.data), total, drops, seconds, fraction)
        out += [fields, packet.data, padding]
    return b"".join(out)


def test_snoop(tmp_path: Path) -> None:
    found = both(tmp_path / "a.snoop", snoop(drops=3))
    assert_whole(found)
    assert 3 == found.capture["interface_drops"]


@pytest.mark.parametrize("reader", ["engine", "dpkt"])
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (snoop(version=3), "snoop capture of version 3.*editcap"),
        (snoop(data_link=26), "snoop capture of data link 26.*editcap"),
        (b"snoop\0\0\0" + bytes(3), "snoop file header cut"),
    ],
)
def test_snoop_that_cannot_be_read(data: bytes, said: str, reader: str, tmp_path: Path) -> None:
    path = tmp_path / "a.snoop"
    path.write_bytes(data)
    with pytest.raises(CaptureError, match=said):
        analysis.analyze(path, reader=reader)


def test_a_record_that_cannot_be(tmp_path: Path) -> None:
    whole = snoop()
    found = both(tmp_path / "a.snoop", whole[:16] + struct.pack(">IIIIII", 60, 60, 20, 0, 1, 0) + bytes(60))
    assert "the capture ends here" in found.warnings[0]
    assert 0 == found.capture["packets"]


def test_erf_is_refused_by_name(tmp_path: Path) -> None:
    record = struct.pack("<II", 0, 1_700_000_000) + struct.pack(">BBHHH", 2, 4, 16 + 2 + 60, 0, 60) + bytes(62)
    path = tmp_path / "a.erf"
    path.write_bytes(record * 3)
    with pytest.raises(CaptureError, match=r"ERF.*editcap"):
        analysis.analyze(path)


# --- pcapng ----------------------------------------------------------------------------------------------------------


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + length + body + length


def option(order: str, code: int, value: bytes) -> bytes:
    return struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str) -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order: str, *options: bytes, link_type: int = 1) -> bytes:
    return block(order, 1, struct.pack(f"{order}HHI", link_type, 0, 0) + b"".join(options))


def enhanced(order: str, number: int, ticks: int, data: bytes, *options: bytes) -> bytes:
    ticks %= 2**64
    fields = struct.pack(f"{order}IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
    return block(order, 6, fields + data + bytes(-len(data) % 4) + b"".join(options))


def drops(order: str, number: int, by_interface: int, by_system: int) -> bytes:
    counts = option(order, 5, struct.pack(f"{order}Q", by_interface))
    counts += option(order, 7, struct.pack(f"{order}Q", by_system))
    return block(order, 5, struct.pack(f"{order}III", number, 0, 0) + counts)


OTHERS = {
    "names": (4, b"\0\1\0\x0a\x0a\0\0\1host\0\0\0\0"),
    "secrets": (10, b"TLSK\x08\0\0\0CLIENT_R"),
    "custom": (0x0BAD, struct.pack("<I", 32473) + bytes(20)),
    "custom, not to be copied": (0x40000BAD, struct.pack("<I", 32473) + bytes(20)),
    "journal": (9, b"__CURSOR=s\n"),
    "of a vendor, long": (0x80000001, bytes(3 << 20)),
    "empty": (0x7FFFFFFF, b""),
}


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("kind", OTHERS, ids=str)
def test_blocks_that_hold_no_packets_are_passed_over(kind: str, order: str, tmp_path: Path) -> None:
    number, body = OTHERS[kind]
    other = block(order, number, body)
    packets = [enhanced(order, 0, packet.time_ns // 1000, packet.data) + other for packet in PACKETS[:3]]
    rest = [enhanced(order, 0, packet.time_ns // 1000, packet.data) for packet in PACKETS[3:]]
    data = section(order) + other + interface(order) + b"".join(packets + rest)
    assert_whole(both(tmp_path / "a.pcapng", data))


def test_every_section_has_its_order_and_every_interface_its_clock(tmp_path: Path) -> None:
    seconds = 1_700_000_000
    fine = option("<", 9, b"\x09") + option("<", 14, struct.pack("<q", seconds))
    binary = option(">", 9, b"\x94")
    data = section("<") + interface("<") + interface("<", fine)
    for at, packet in enumerate(PACKETS[:9]):
        since = packet.time_ns - seconds * 10**9
        data += enhanced("<", at % 2, since if at % 2 else packet.time_ns // 1000, packet.data)
    data += section(">") + interface(">", binary)
    for packet in PACKETS[9:]:
        data += enhanced(">", 0, (packet.time_ns << 20) // 10**9 + 1, packet.data)
    found = both(tmp_path / "a.pcapng", data)
    assert found.segments is not None
    assert all(abs(a - b.time_ns) <= 1000 for a, b in zip(found.segments["time_ns"], PACKETS, strict=True))
    assert_whole(found)


def test_drops_are_added_up_over_interfaces_and_sections(tmp_path: Path) -> None:
    data = section("<") + interface("<") + interface("<")
    data += b"".join(enhanced("<", 0, packet.time_ns // 1000, packet.data) for packet in PACKETS)
    # counters are totals: the later replaces the earlier
    data += drops("<", 0, 5, 1) + drops("<", 0, 7, 2) + drops("<", 1, 1, 0)
    data += section(">") + interface(">") + drops(">", 0, 100, 0) + drops(">", 9, 1000, 0)
    found = both(tmp_path / "a.pcapng", data)
    assert 7 + 2 + 1 + 100 == found.capture["interface_drops"]


def test_absurd_clocks_and_lengths(tmp_path: Path) -> None:
    frame = captures.link(captures.tcp("10.0.0.1", "10.0.0.2", 1, 2, 3, 4, ACK, payload=9), 1)
    data = section("<")
    for number, resolution in enumerate((0, 9, 19, 127, 128, 255)):
        offset = option("<", 14, struct.pack("<q", (-1) ** number * 2**62))
        data += interface("<", option("<", 9, bytes([resolution])), offset if number % 2 else b"")
    for ticks in (0, 1, 2**63, 2**64 - 1):
        data += b"".join(enhanced("<", number, ticks, frame) for number in range(7))
    found = both(tmp_path / "a.pcapng", data)
    assert 28 == found.capture["packets"]
    assert 24 == found.capture["tcp_segments"]


def test_more_interfaces_than_anyone_has(tmp_path: Path) -> None:
    frame = PACKETS[3].data
    data = section("<") + interface("<") * 65_537 + enhanced("<", 65_535, 1, frame) + enhanced("<", 65_536, 1, frame)
    found = both(tmp_path / "a.pcapng", data)
    assert (2, 1) == (found.capture["packets"], found.capture["tcp_segments"])
    assert any("more than 65536 interfaces" in warning for warning in found.warnings)


def test_a_packet_of_no_interface_is_told_with_its_place(tmp_path: Path) -> None:
    before = section("<") + interface("<")
    found = both(tmp_path / "a.pcapng", before + enhanced("<", 5, 1, PACKETS[0].data) + enhanced("<", 0, 1, b"whole"))
    assert 2 == found.capture["packets"]
    said = "packet of an interface that was not described; packet skipped"
    assert [f"frame 1 (byte {len(before)}): {said}"] == found.warnings
