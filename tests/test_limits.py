"""Bounds: what happens where one is reached, and that it is told (docs/limits.md)."""

from __future__ import annotations

import itertools
import re
import shutil
import sys
from pathlib import Path

import captures
import pytest
from captures import ACK, RAW, SYN, Packet, Transfer, tcp

import tcpfit
from tcpfit import InvalidParameter, analysis

ROOT = Path(__file__).resolve().parents[1]
READERS = ["engine", "dpkt"]


def flood(size: int, start_s: float = 0.0) -> list[Packet]:
    """Unanswered SYNs of as many ports, a millisecond apart."""
    packets = []
    for n in range(size):
        data = tcp("10.9.0.1", "10.0.0.2", 1024 + n, 80, n, 0, SYN)
        packets.append(Packet(captures.START_NS + round(start_s * 1e9) + n * 1_000_000, data, len(data)))
    return packets


def write(path: Path, packets: list[Packet]) -> Path:
    path.write_bytes(captures.pcap(sorted(packets, key=lambda packet: packet.time_ns), RAW))
    return path


@pytest.mark.parametrize("reader", READERS)
def test_attempts_without_data_make_room_first(reader: str, tmp_path: Path) -> None:
    """A transfer in a flood: its connection is quiet for longer than any of the attempts, and stays."""
    transfer = Transfer(lost=frozenset({7}), link_type=RAW).run()
    path = write(tmp_path / "a.pcap", [*transfer, *flood(600, 0.2)])
    whole = analysis.analyze(path, reader=reader)
    few = analysis.analyze(path, reader=reader, max_flows=8)
    assert whole.flows.equals(few.flows)
    assert [] == whole.warnings
    assert ["more than 8 connections were open at once"] == [warning.split(":")[0] for warning in few.warnings]


@pytest.mark.parametrize("reader", READERS)
def test_the_quietest_make_room(reader: str, tmp_path: Path) -> None:
    """Twelve transfers at once with room for four: each is seen in pieces, and no byte is lost or counted twice."""
    packets = [Transfer(sport=41000 + n, start_s=n / 1000, link_type=RAW).run() for n in range(12)]
    path = write(tmp_path / "a.pcap", list(itertools.chain(*packets)))
    found = analysis.analyze(path, reader=reader, max_flows=4)
    assert 12 < found.flows.height
    assert 12 * 40_000 == found.flows["unique_bytes"].sum()


def test_memory_ends_the_reading(tmp_path: Path) -> None:
    data = tcp("10.0.0.1", "10.0.0.2", 1, 2, 1, 1, ACK, payload=10)
    path = write(tmp_path / "a.pcap", [Packet(captures.START_NS + n, data, len(data)) for n in range(40_000)])
    for reader, every in (("engine", 16_384), ("dpkt", 4096)):
        found = analysis.analyze(path, reader=reader, max_memory=1 << 20)
        assert every == found.capture["packets"]
        assert every == told(found)[0]
        assert 40_000 == analysis.analyze(path, reader=reader, max_memory=sys.maxsize).capture["packets"]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_memory_ends_the_reading_of_tshark_too(tmp_path: Path) -> None:
    data = tcp("10.0.0.1", "10.0.0.2", 1, 2, 1, 1, ACK, payload=10)
    path = write(tmp_path / "a.pcap", [Packet(captures.START_NS + n, data, len(data)) for n in range(10_000)])
    found = analysis.analyze(path, reader="tshark", max_memory=1 << 20)
    assert 4096 == found.capture["packets"]
    assert 4096 == told(found)[0]


@pytest.mark.parametrize("reader", ["engine", "dpkt"])
def test_the_memory_that_is_told_is_that_of_the_process(reader: str, tmp_path: Path) -> None:
    data = tcp("10.0.0.1", "10.0.0.2", 1, 2, 1, 1, ACK, payload=10)
    path = write(tmp_path / "a.pcap", [Packet(captures.START_NS + n, data, len(data)) for n in range(20_000)])
    _, megabytes = told(analysis.analyze(path, reader=reader, max_memory=1000))
    assert 30 < megabytes < 30_000


def told(found: tcpfit.Analysis) -> tuple[int, int]:
    """Frame and MB of the only warning of memory."""
    said = (
        "frame (\\d+): the analysis has come to (\\d+) MB \\(--max-memory\\) and ends here; what came before is whole"
    )
    ((frame, megabytes),) = re.findall(said, "\n".join(found.warnings))
    return int(frame), int(megabytes)


def test_a_segment_too_many_is_outstanding(tmp_path: Path) -> None:
    """More than 2^20 segments that nobody acknowledges."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import attacks
    finally:
        sys.path.pop(0)
    path = tmp_path / "a.pcap"
    with path.open("wb") as file:
        file.write(attacks.HEADER)
        file.writelines(attacks.outstanding((1 << 20) + 10))
    found = analysis.analyze(path)
    assert [(1 << 20) + 11] == found.flows["data_segments"].to_list()
    assert any("more than 1048576 segments outstanding" in warning for warning in found.warnings)


def test_more_than_is_held_of_data_without_acks(tmp_path: Path) -> None:
    """66,000 segments one way: all are counted, and a resend of one that was let go says nothing of its first copy."""

    def data(n: int, number: int) -> Packet:
        segment = tcp("10.0.0.1", "10.0.0.2", 1, 2, 1 + 100 * number, 1, ACK, payload=100, ip_id=n % 65_536)
        return Packet(captures.START_NS + n * 1_000_000, segment, len(segment))

    numbers = [*range(20), 10, *range(20, 66_000), 0]
    path = write(tmp_path / "a.pcap", [data(n, number) for n, number in enumerate(numbers)])
    flows = analysis.analyze(path).flows.select("data_segments", "unique_bytes", "retransmitted_segments", "lost_high")
    assert [(66_002, 6_600_000, 2, 1)] == flows.rows()


def test_more_is_missing_than_a_sender_would_bear(tmp_path: Path) -> None:
    """Each packet is 101 segments beyond the last: a gap of the capture after 1000 and 8 a packet."""

    def data(n: int) -> Packet:
        segment = tcp("10.0.0.1", "10.0.0.2", 1, 2, 1 + 101_000 * n, 1, ACK, payload=1000)
        return Packet(captures.START_NS + n * 1_000_000, segment, len(segment))

    answer = tcp("10.0.0.2", "10.0.0.1", 2, 1, 1, 1001, ACK)
    packets = [data(0), Packet(captures.START_NS + 1, answer, len(answer)), *map(data, range(1, 200))]
    found = analysis.analyze(write(tmp_path / "a.pcap", packets)).flows
    # the n-th packet is believed to have a gap before it where 100 more are at most 1000 and 8 n
    believed = 0
    for n in range(2, 201):
        believed += 100 if believed + 100 <= 1000 + 8 * n else 0
    assert (200, believed) == (found["data_segments"].item(), found["lost_segments"].item())


@pytest.mark.parametrize("place, kind", [("sender", "loss"), ("receiver", "spurious")])
def test_a_segment_sent_200_times(place: str, kind: str, tmp_path: Path) -> None:
    """Fewer of its transmissions are kept; each but the last was lost, or each but the first arrived for nothing."""
    ends, there_ns = ("10.0.0.1", "10.0.0.2"), 10_000_000 if place == "sender" else 10_000
    hello = [(0, tcp(*ends, 1, 2, 0, 0, SYN)), (there_ns, tcp(*ends[::-1], 2, 1, 0, 1, SYN | ACK))]
    sent = [(n * 10**8, tcp(*ends, 1, 2, 1, 1, ACK, payload=500, ip_id=n)) for n in range(1, 201)]
    hello.append((10_010_000, tcp(*ends, 1, 2, 1, 1, ACK)))
    packets = [Packet(captures.START_NS + time_ns, data, len(data)) for time_ns, data in [*hello, *sent]]
    found = analysis.analyze(write(tmp_path / "a.pcap", packets))
    assert [place] == found.flows["vantage"].to_list()
    assert 199 == found.flows["lost_segments" if kind == "loss" else "spurious_retransmissions"].item()
    frames = found.events.filter(kind=kind)["frame"].to_list()
    assert list(range(4, 203) if kind == "loss" else range(5, 204)) == frames


@pytest.mark.parametrize("name", ["max_flows", "max_memory"])
@pytest.mark.parametrize("value", [0, -1, 2**63])
def test_bounds_that_make_no_sense(name: str, value: int, tmp_path: Path) -> None:
    path = write(tmp_path / "a.pcap", flood(1))
    with pytest.raises(InvalidParameter, match=name):
        tcpfit.analyze(path, **{name: value})


@pytest.mark.parametrize("reader", READERS)
def test_times_that_jump_end_well(reader: str, tmp_path: Path) -> None:
    """A clock that leaps to the end of what a pcap can hold and back, packet by packet."""
    packets = Transfer(lost=frozenset({7}), link_type=RAW).run()
    last_ns = (2**32 - 1) * 10**9
    leaping = [Packet(last_ns if n % 2 else n, packet.data, packet.wire_len) for n, packet in enumerate(packets)]
    path = tmp_path / "a.pcap"
    path.write_bytes(captures.pcap(leaping, RAW))
    found = analysis.analyze(path, reader=reader)
    assert 40_000 == found.flows["unique_bytes"].sum()
    assert found.warnings
