"""Captures whose snapshot length cuts the TCP options: what is said of losses rests on what is left of these."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

from tcpfit.analysis import analyze

SAMPLE = Path(__file__).resolve().parents[1] / "sample-traces" / "sack-loss-sender.pcap.gz"
LOST, RECOVERIES = 102, 83


def cut(capture: bytes, length: int) -> bytes:
    """A pcap file with so many bytes of every packet at most."""
    order = "<" if capture[0] in (0xD4, 0x4D) else ">"
    out, at = [capture[:24]], 24
    while at < len(capture):
        seconds, fraction, captured, wire = struct.unpack_from(f"{order}IIII", capture, at)
        kept = min(captured, length)
        out.append(struct.pack(f"{order}IIII", seconds, fraction, kept, wire) + capture[at + 16 : at + 16 + kept])
        at += 16 + captured
    return b"".join(out)


@pytest.mark.parametrize("length", [54, 60, 64, 68, 72, 74, 76, 78, 80, 84])
def test_sack_blocks_that_are_cut_off_are_not_taken_for_none(tmp_path: Path, length: int) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(cut(gzip.decompress(SAMPLE.read_bytes()), length))
    analysis = analyze(path)
    flow = analysis.flows.row(0, named=True)
    assert (LOST, LOST) == (flow["lost_segments"], flow["lost_high"])
    assert flow["lost_low"] <= LOST and 0 == flow["spurious_retransmissions"]
    assert 0.8 * RECOVERIES <= flow["fast_recoveries"] <= RECOVERIES
    assert any("cuts off the TCP options" in warning for warning in analysis.warnings)
