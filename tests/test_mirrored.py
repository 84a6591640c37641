"""Does a capture that has every packet twice say what the same capture says that has it once?"""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

import tcpfit
from tcpfit.diagnosis import diagnose

SAMPLES = Path(__file__).resolve().parents[1] / "sample-traces"
SENDERS = ["sack-loss-sender", "newreno-loss", "reordering-sender", "ipv6", "slow-reader"]
HEADER = 24
TTL = 14 + 8


def records(name: str) -> tuple[bytes, list[tuple[int, bytes, int]]]:
    """A sample's file header, and time in nanoseconds, bytes and length on the wire of each packet."""
    data = gzip.decompress((SAMPLES / f"{name}.pcap.gz").read_bytes())
    assert 0xA1B23C4D == struct.unpack_from("<I", data)[0]
    packets, at = [], HEADER
    while at < len(data):
        seconds, nanoseconds, captured, wire = struct.unpack_from("<IIII", data, at)
        packets.append((seconds * 10**9 + nanoseconds, data[at + 16 : at + 16 + captured], wire))
        at += 16 + captured
    return data[:HEADER], packets


def routed(packet: bytes) -> bytes:
    """As it is behind a router; the IP checksum is not mended, which is not looked at."""
    return packet[:TTL] + bytes([packet[TTL] - 1]) + packet[TTL + 1 :]


def said(path: Path) -> tuple[dict, list]:
    """Counts of the largest flow, and its events without frames."""
    analysis = tcpfit.analyze(path)
    number = analysis.largest()[0]
    (flow,) = analysis.select([number]).flows.to_dicts()
    events = analysis.events.filter(flow=number).select("time_ns", "kind", "reason", "left", "right").rows()
    own = {name: value for name, value in flow.items() if name.endswith("segments") or name in NAMES}
    return own, [event for event in events if event[1] != "duplicate"]


NAMES = ("loss_events", "fast_recoveries", "timeouts", "spurious_retransmissions", "reorder_events", "duplicate_acks",
         "acks", "data_bytes", "rtt_mean_s", "flight_max")  # fmt: skip


@pytest.mark.parametrize("later_us", [2, 20, 1000])
@pytest.mark.parametrize("name", [*SENDERS, "sack-loss-receiver"])
def test_a_mirror_port_changes_nothing(tmp_path, name, later_us):
    head, packets = records(name)
    copies = [(time_ns + later_us * 1000, packet, wire) for time_ns, packet, wire in packets]
    written, once = tmp_path / "twice.pcap", tmp_path / "once.pcap"
    for path, those in ((once, packets), (written, sorted(packets + copies, key=lambda each: each[0]))):
        rows = (struct.pack("<IIII", *divmod(t, 10**9), len(data), wire) + data for t, data, wire in those)
        path.write_bytes(head + b"".join(rows))
    (expected, events), (actual, others) = said(once), said(written)
    assert 0 == expected["duplicated_segments"]
    assert expected["data_segments"] == actual["duplicated_segments"]
    assert expected == actual | {"duplicated_segments": 0}
    assert events == others


def test_copies_that_a_router_has_passed_on_are_copies_too(tmp_path):
    head, packets = records("newreno-loss")
    copies = [(time_ns + 5000, routed(packet), wire) for time_ns, packet, wire in packets]
    path = tmp_path / "twice.pcap"
    both = sorted(packets + copies, key=lambda each: each[0])
    rows = (struct.pack("<IIII", *divmod(t, 10**9), len(data), wire) + data for t, data, wire in both)
    path.write_bytes(head + b"".join(rows))
    expected, _ = said(SAMPLES / "newreno-loss.pcap.gz")
    assert expected == said(path)[0] | {"duplicated_segments": 0}


def test_captures_of_two_points_in_one_file_are_told(tmp_path):
    """What is lost between the points has passed the first: nothing is claimed of losses."""
    both = [records(f"sack-loss-{end}") for end in ("sender", "receiver")]
    path = tmp_path / "both.pcap"
    with path.open("wb") as file:
        file.write(both[0][0])
        for time_ns, packet, wire in sorted(both[0][1] + both[1][1]):
            file.write(struct.pack("<IIII", *divmod(time_ns, 10**9), len(packet), wire) + packet)
    found = tcpfit.analyze(path)
    assert ["1 flow has most of its data twice"] == [warning.split(",")[0] for warning in found.warnings]
    (verdict,) = found.verdicts.to_dicts()
    assert ("insufficient", True) == (verdict["state"], "twice" in verdict["text"])
    (diagnosis,) = diagnose(found.flows, found.events, found.rounds).values()
    assert ("unknown", True) == (diagnosis.primary, "twice" in diagnosis.text)


@pytest.mark.parametrize("later_ns", [2000, 300_000])
def test_what_a_mirror_port_doubles_is_judged(tmp_path, later_ns):
    head, packets = records("newreno-loss")
    doubled = sorted(packets + [(time_ns + later_ns, data, wire) for time_ns, data, wire in packets])
    path = tmp_path / "mirrored.pcap"
    path.write_bytes(head + b"".join(struct.pack("<IIII", *divmod(t, 10**9), len(d), w) + d for t, d, w in doubled))
    found = tcpfit.analyze(path)
    assert [] == found.warnings
    once = tcpfit.analyze(SAMPLES / "newreno-loss.pcap.gz")
    assert [once.verdicts["models"].to_list()] == [found.verdicts["models"].to_list()]
