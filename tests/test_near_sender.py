"""Captures a little away from the sender, as of the switch before it, and some that only seem to be."""

from __future__ import annotations

from dataclasses import replace

import captures
import pytest
from queue_path import QueuePath

from tcpfit.analysis import analyze

COUNTS = ("lost_segments", "loss_events", "fast_recoveries", "timeouts", "spurious_retransmissions")
SAMPLES = ["newreno-loss", "bursty-loss", "timeouts", "sack-loss-sender", "cubic"]
"""Of senders with timestamps."""
SOURCE = slice(26, 30)


def moved(packets: list[captures.Packet], way_s: float) -> list[captures.Packet]:
    """What passes so far away from the host that sent the first."""
    source, way_ns = packets[0].data[SOURCE], round(way_s * 1e9)
    later = [replace(p, time_ns=p.time_ns + (way_ns if p.data[SOURCE] == source else -way_ns)) for p in packets]
    return sorted(later, key=lambda packet: packet.time_ns)


def slow(packets: list[captures.Packet], by_s: float) -> list[captures.Packet]:
    """The host took so much longer to answer the SYN-ACK."""
    return [replace(p, time_ns=p.time_ns - round(by_s * 1e9)) for p in packets[:2]] + packets[2:]


def counted(packets: list[captures.Packet], folder) -> tuple[str, list[int]]:
    path = folder / "changed.pcap"
    path.write_bytes(captures.pcap(packets))
    row = analyze(path).flows.row(0, named=True)
    return row["vantage"], [row[column] for column in COUNTS]


@pytest.mark.parametrize(("queue", "window"), [(20, 200), (20, 400), (100, 400)])
@pytest.mark.parametrize("many", [3, 20])
def test_duplicate_acks_on_their_way_to_the_sender_ask_for_nothing(tmp_path, many, queue, window):
    lost = frozenset(range(1500, 1500 + many))
    path = QueuePath(rate=1000.0, way_s=0.075, window=window, middle_s=0.003, queue=queue, lost=lost, seconds=9.0)
    path.run(tmp_path)
    found = [analyze(tmp_path / f"{place}.pcap").flows.row(0, named=True) for place in ("sender", "middle")]
    assert ["sender", "sender"] == [row["vantage"] for row in found]
    assert [path.recoveries] * 2 == [row["fast_recoveries"] for row in found]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_echoes_tell_what_has_reached_a_sender_that_is_near(tmp_path, name):
    packets = captures.of_sample(name)
    at_host = counted(packets, tmp_path)
    assert at_host[0] == "sender"
    assert ("middle", at_host[1]) == counted(moved(packets, 0.0005), tmp_path)


@pytest.mark.parametrize("slow_s", [0.0015, 0.015])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_host_that_answers_acks_at_once_is_at_the_capture_point(tmp_path, name, slow_s):
    packets = captures.of_sample(name)
    assert counted(packets, tmp_path) == counted(slow(packets, slow_s), tmp_path)


def test_without_timestamps_two_resends_tell_that_the_host_is_at_the_capture_point(tmp_path):
    packets = captures.of_sample("reordering-sender")
    (_, expected), (place, found) = counted(packets, tmp_path), counted(slow(packets, 0.015), tmp_path)
    assert place == "sender"
    # the first of the two has passed by then
    recoveries = COUNTS.index("fast_recoveries")
    assert (expected.pop(recoveries), found.pop(recoveries)) == (24, 23)
    assert expected == found


def test_on_a_short_path_soon_is_not_at_once(tmp_path):
    path = QueuePath(rate=20_000.0, way_s=0.0005, window=40, middle_s=0.0001, seconds=0.5, stamped=True)
    path.run(tmp_path)
    assert analyze(tmp_path / "middle.pcap").flows["vantage"].to_list() == ["middle"]


def test_what_the_user_says_of_the_place_holds():
    analysis = analyze(captures.SAMPLES / "newreno-loss.pcap.gz", vantage="middle")
    assert analysis.flows["vantage"].to_list() == ["middle"]
