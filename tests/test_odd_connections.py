"""Connections that are odd and allowed, or forged: what is counted is what the sender sent."""

from __future__ import annotations

import struct
from pathlib import Path

import captures
import pytest
from captures import ACK, PSH, RAW, SYN, Packet, Transfer, tcp

from tcpfit import Analysis, analysis

CLIENT, SERVER, PORT = "10.0.0.1", "10.0.0.2", 40000
RST, URG = 4, 32


def plain(**arguments: object) -> list[Packet]:
    return Transfer(link_type=RAW, **arguments).run()  # type: ignore[arg-type]


def out(seq: int, flags: int = ACK | PSH, payload: int = 1000, options: bytes = b"", ack: int = 5001) -> bytes:
    return tcp(CLIENT, SERVER, PORT, 80, seq, ack, flags, payload, options, ip_id=seq // 7)


def back(ack: int, flags: int = ACK, seq: int = 5001, options: bytes = b"", window: int = 1000) -> bytes:
    return tcp(SERVER, CLIENT, 80, PORT, seq, ack, flags, 0, options, window)


def read(path: Path, packets: list[Packet]) -> Analysis:
    path.write_bytes(captures.pcap(sorted(packets, key=lambda packet: packet.time_ns), RAW))
    by_engine, by_dpkt = analysis.analyze(path), analysis.analyze(path, reader="dpkt")
    assert by_engine.flows.equals(by_dpkt.flows)
    assert by_engine.events.equals(by_dpkt.events)
    return by_engine


def at(seconds: float, data: bytes) -> Packet:
    return Packet(captures.START_NS + round(seconds * 1e9), data, len(data))


def edited(packets: list[Packet], number: int, where: slice, value: bytes) -> list[Packet]:
    data = bytearray(packets[number].data)
    data[where] = value
    packets[number] = Packet(packets[number].time_ns, bytes(data), packets[number].wire_len)
    return packets


COUNTS = ("unique_bytes", "data_segments", "lost_segments", "retransmitted_segments", "timeouts")


def counts(found: Analysis) -> list[tuple[int, ...]]:
    return found.flows.select(COUNTS).rows()


@pytest.fixture
def usual(tmp_path: Path) -> list[tuple[int, ...]]:
    """What is counted of the transfer with nothing odd."""
    found = counts(read(tmp_path / "usual.pcap", plain(lost=frozenset({7}))))
    assert [(40_000, 41, 1, 1, 0)] == found
    return found


def test_a_window_shift_above_14_is_14(tmp_path: Path) -> None:
    packets = plain()
    for number in (0, 1):
        shift = packets[number].data.index(b"\x03\x03\x07") + 2
        packets = edited(packets, number, slice(shift, shift + 1), b"\xff")
    assert [14] == read(tmp_path / "a.pcap", packets).flows["window_scale"].to_list()


def test_data_in_the_syn_count(tmp_path: Path) -> None:
    """TCP Fast Open (RFC 7413): a cookie, and data before the handshake is over."""
    fast = b"\x02\x04\x03\xe8\x04\x02\x22\x0a" + bytes(8)
    packets = [at(0, out(999, SYN, 500, fast, ack=0)), at(0.05, back(1500, SYN | ACK, 5000, fast[:6]))]
    packets += [at(0.0501 + n / 1e4, out(1500 + 1000 * n)) for n in range(4)]
    packets += [at(0.1001 + n / 1e4, back(2500 + 1000 * n)) for n in range(4)]
    found = read(tmp_path / "a.pcap", packets)
    assert [(4500, 5, 0, 0, 0)] == counts(found)
    assert [4500] == found.flows["acked_bytes"].to_list()


def test_urgent_data_are_data(tmp_path: Path, usual: list[tuple[int, ...]]) -> None:
    packets = plain(lost=frozenset({7}))
    for number in (4, 8):
        packets = edited(packets, number, slice(33, 34), bytes([ACK | PSH | URG]))
        packets = edited(packets, number, slice(38, 40), struct.pack(">H", 500))
    assert usual == counts(read(tmp_path / "a.pcap", packets))


def test_a_reset_that_nobody_believes(tmp_path: Path) -> None:
    """An injected reset: the connection goes on for longer than a closed one is remembered."""
    packets = plain(lost=frozenset({7}), segments=400, rtt_s=0.6)
    usual = counts(read(tmp_path / "usual.pcap", packets))
    middle = packets[len(packets) // 4].time_ns + 500
    for name, seq in (("in the window", 150_000), ("far outside", 3_000_000_000)):
        forged = tcp(CLIENT, SERVER, PORT, 80, seq, 0, RST)
        found = read(tmp_path / f"{name}.pcap", [*packets, Packet(middle, forged, len(forged))])
        assert usual == counts(found), name


def test_two_syn_acks(tmp_path: Path, usual: list[tuple[int, ...]]) -> None:
    packets = plain(lost=frozenset({7}))
    again = Packet(packets[1].time_ns + 2_000_000, packets[1].data, packets[1].wire_len)
    assert usual == counts(read(tmp_path / "again.pcap", [*packets, again]))
    other = bytearray(packets[1].data)
    other[24:28] = struct.pack(">I", 77_777)
    forged = Packet(packets[1].time_ns - 1_000_000, bytes(other), len(other))
    assert usual == counts(read(tmp_path / "forged.pcap", [*packets, forged]))


def test_overlapping_data_count_once(tmp_path: Path) -> None:
    packets = [at(0, out(999, SYN, 0, ack=0)), at(0.05, back(1000, SYN | ACK, 5000)), at(0.0501, out(1000, ACK, 0))]
    packets += [at(0.051, out(1000, payload=1000)), at(0.052, out(1500, payload=1000)), at(0.3, out(1200, payload=600))]
    packets += [at(0.102, back(2000)), at(0.103, back(2500))]
    found = read(tmp_path / "a.pcap", packets)
    assert [(1500, 500 + 600)] == found.flows.select("unique_bytes", "retransmitted_bytes").rows()


@pytest.mark.parametrize("isn", [2**32 - 1, 2**32 - 2, 2**32 - 20_500, 2**31 - 10_000])
def test_sequence_numbers_wrap(isn: int, tmp_path: Path, usual: list[tuple[int, ...]]) -> None:
    assert usual == counts(read(tmp_path / "a.pcap", plain(lost=frozenset({7}), isn=isn)))


def late(packets: list[Packet], seconds: float, data: bytes) -> list[Packet]:
    end_ns = max(packet.time_ns for packet in packets)
    return [*packets, Packet(end_ns + round(seconds * 1e9), data, len(data))]


@pytest.mark.parametrize("seconds", [0.5, 3.0, 9.0])
def test_what_comes_late_is_no_new_connection(seconds: float, tmp_path: Path, usual: list[tuple[int, ...]]) -> None:
    """A copy, an ACK, a reset, or the SYN once more, of a connection whose ends have each other's FIN."""
    packets = plain(lost=frozenset({7}))
    for name, packet in {
        "ack": out(41_002, ACK, 0, ack=5002),
        "reset": tcp(SERVER, CLIENT, 80, PORT, 5002, 0, RST),
        "syn": packets[0].data,
    }.items():
        assert usual == counts(read(tmp_path / f"{name}.pcap", late(packets, seconds, packet))), name
    if seconds > 1:
        copy = late(packets, seconds, packets[20].data)
        assert usual == counts(read(tmp_path / "copy.pcap", copy))


@pytest.mark.parametrize(("quiet_s", "flows"), [(7200.0, 1), (7430.0, 1), (7510.0, 2)])
def test_a_connection_with_data_is_known_for_two_hours(quiet_s: float, flows: int, tmp_path: Path) -> None:
    packets = [at(0, out(1001)), at(0.05, back(2001)), at(0.1 + quiet_s, out(2001)), at(0.15 + quiet_s, back(3001))]
    found = read(tmp_path / "quiet.pcap", packets)
    assert [2 // flows] * flows == found.flows["data_segments"].to_list()


@pytest.mark.parametrize(("quiet_s", "connections"), [(590.0, 0), (670.0, 1)])
def test_a_connection_without_data_is_known_for_ten_minutes(quiet_s: float, connections: int, tmp_path: Path) -> None:
    """Data after the handshake are of its flow, or of a connection that was not seen to begin."""
    handshake = [at(0, out(1000, SYN, 0, ack=0)), at(0.05, back(1001, SYN | ACK, 5000)), at(0.0501, out(1001, ACK, 0))]
    packets = [*handshake, at(0.1 + quiet_s, out(1001)), at(0.15 + quiet_s, back(2001))]
    found = read(tmp_path / "quiet.pcap", packets)
    assert [12 + 3 * (1 - connections)] == found.flows["completeness"].to_list()
    assert connections == found.capture["without_data"]["opened"]


@pytest.mark.parametrize("seconds", [0.5, 3.0, 11.0])
def test_a_syn_with_another_number_opens_a_new_connection(seconds: float, tmp_path: Path) -> None:
    packets = plain()
    start_s = (packets[-1].time_ns - captures.START_NS) / 1e9 + seconds
    again = plain(isn=900_000, start_s=start_s, segments=10)
    found = read(tmp_path / "a.pcap", [*packets, *again])
    assert [0, 1] == found.flows["connection"].to_list()
    assert [40_000, 10_000] == found.flows["unique_bytes"].to_list()


def test_connections_that_are_over_are_not_counted_as_open(tmp_path: Path) -> None:
    """One is open at any time, so that none is settled early where one may be."""
    packets = []
    for number in range(5):
        packets += plain(segments=5, sport=50_000 + number, start_s=2.0 * number)
    path = tmp_path / "a.pcap"
    path.write_bytes(captures.pcap(packets, RAW))
    found = analysis.analyze(path, max_flows=1)
    assert [5_000] * 5 == found.flows["unique_bytes"].to_list()
    assert [] == found.capture["warnings"]


def one_way(seconds: float, seq: int, window: int) -> Packet:
    return at(seconds, tcp("10.9.0.1", "10.9.0.2", 2222, 3333, seq, 7000, ACK | PSH, 100, window=window))


def test_a_closed_window_is_of_its_own_connection(tmp_path: Path) -> None:
    """The other connection has one direction only; of the other one nothing is ever acknowledged, so it is no flow."""
    closed = [one_way(1.0, 1000, 0), one_way(1.1, 1100, 0), one_way(3.0, 1200, 500), one_way(3.1, 1300, 500)]
    found = read(tmp_path / "a.pcap", plain(segments=5) + closed)
    assert [5, 4] == found.flows["data_segments"].to_list()
    assert found.events.filter(kind="zero_window").is_empty()


def test_a_closed_window_lies_at_the_ack_that_closed_it(tmp_path: Path) -> None:
    packets = [
        at(0.0, out(1001)),
        at(0.0001, out(2001)),
        at(0.0201, back(2001, window=500)),
        at(0.0202, back(3001, window=0)),
        at(5.0, back(3001, window=500)),
        at(5.0001, out(3001)),
        at(5.0201, back(4001, window=500)),
    ]
    closed = read(tmp_path / "a.pcap", packets).events.filter(kind="zero_window")
    assert [(4, 5, 2001, 2001)] == closed.select("frame", "cause_frame", "left", "right").rows()


def test_a_fin_is_no_data_where_only_the_acks_are_there(tmp_path: Path) -> None:
    both = plain(segments=20, mss=1448)
    acks = [packet for packet in both if packet.data[12:16] == bytes([10, 0, 0, 2])]
    whole, alone = (read(tmp_path / "a.pcap", packets).flows for packets in (both, acks))
    counted = ("acked_bytes", "sent_segments")
    assert whole.select(counted).rows() == alone.select(counted).rows()
