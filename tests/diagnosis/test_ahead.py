"""Is nothing claimed of flows whose ACKs come before their data: two clocks, or a file that is out of order?"""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import captures
import pytest

import tcpfit
from tcpfit.diagnosis import diagnose
from tcpfit.diagnosis.verdict import Diagnosis

SAMPLES = Path(__file__).resolve().parents[2] / "sample-traces"
SOURCE = slice(26, 30)
UNIT = {0xA1B23C4D: 1, 0xA1B2C3D4: 1000}


def packets(name: str) -> list[captures.Packet]:
    data = gzip.decompress((SAMPLES / f"{name}.pcap.gz").read_bytes())
    unit, at, found = UNIT[struct.unpack("<I", data[:4])[0]], 24, []
    while at < len(data):
        seconds, part, length, wire = struct.unpack("<IIII", data[at : at + 16])
        at += 16
        found.append(captures.Packet(seconds * 10**9 + part * unit, data[at : at + length], wire))
        at += length
    return found


def judged(name: str, folder: Path, by_s: float) -> Diagnosis:
    """The verdict on the largest flow of a sample whose ACKs were captured by a clock that is so far behind."""
    found = packets(name)
    sender = found[0].data[SOURCE]
    moved = [
        captures.Packet(
            packet.time_ns - round(by_s * 1e9) * (packet.data[SOURCE] != sender), packet.data, packet.wire_len
        )
        for packet in found
    ]
    path = folder / "moved.pcap"
    path.write_bytes(captures.pcap(sorted(moved, key=lambda packet: packet.time_ns)))
    analysis = tcpfit.analyze(path)
    return diagnose(analysis.flows, analysis.events, analysis.rounds)[analysis.largest()[0]]


@pytest.mark.parametrize(
    ("name", "by_s"),
    [("newreno-loss", 0.06), ("newreno-loss", 0.3), ("newreno-loss", 2.0), ("window-limited", 0.1),
     ("window-limited", 0.3), ("window-limited", 2.0), ("causes/rate", 0.3), ("causes/rate", 2.0)],
)  # fmt: skip
def test_nothing_is_claimed_where_acks_come_before_data(tmp_path, name, by_s):
    verdict = judged(name, tmp_path, by_s)
    assert ("unknown", 0.0) == (verdict.primary, verdict.confidence)
    assert "before the data" in verdict.text
    assert "clock" in verdict.remedy
    assert ["unknown"] == [cause.cause for cause in verdict.causes]


@pytest.mark.parametrize("name", ["newreno-loss", "window-limited", "causes/rate"])
def test_a_clock_that_is_behind_by_less_than_a_round_trip_moves_only_the_place(tmp_path, name):
    assert judged(name, tmp_path, 0.0).primary == judged(name, tmp_path, 0.03).primary != "unknown"


def test_a_handshake_that_is_missing_says_nothing_of_clocks():
    """Away from the sender, without the handshake, round trips may not be known."""
    for path in sorted((SAMPLES / "causes").glob("*.pcap*")):
        analysis = tcpfit.analyze(path, from_s=1.0)
        for verdict in diagnose(analysis.flows, analysis.events, analysis.rounds).values():
            assert "before the data" not in verdict.text
