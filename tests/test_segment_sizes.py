"""Segments of connections whose SYNs are not in the capture, and of super-segments that are acknowledged in pieces."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from captures import ACK, START_NS, SYN, Packet, link, pcap, tcp

from tcpfit.analysis import Analysis, analyze

RTT_S = 0.02
AT_ONCE = 4
"""Super-segments under way."""


def packet(at_s: float, datagram: bytes) -> Packet:
    frame = link(datagram, 1)
    return Packet(START_NS + round(at_s * 1e9), frame[:128], len(frame))


def analyzed(
    folder: Path, payloads: Sequence[int], step: int, opened: bool = False, peer: str = "10.0.0.2"
) -> Analysis:
    """A sender's super-segments, four under way, each acknowledged by `step` bytes; `opened`: with the handshake."""
    own = "10.0.0.1" if peer != "10.0.0.1" else peer
    packets = []

    def stamps(at_s: float, heard_s: float) -> bytes:
        """In milliseconds: of the packet, and of the last that its sender has heard."""
        return b"\x01\x01\x08\x0a" + struct.pack(">II", 1000 + int(at_s * 1000), 1000 + int(heard_s * 1000))

    def send(at_s: float, seq: int, size: int) -> None:
        options = stamps(at_s, at_s - 1e-3)
        packets.append(packet(at_s, tcp(own, peer, 40000, 80, seq, 5001, ACK, size, options, 500)))

    def answer(at_s: float, ack: int) -> None:
        options = stamps(at_s, at_s - RTT_S)
        packets.append(packet(at_s, tcp(peer, own, 80, 40000, 5001, ack, ACK, 0, options, 20000)))

    begin = 0.1
    if opened:
        offer = b"\x02\x04" + struct.pack(">H", 1460) + b"\x01\x03\x03\x07"
        packets.append(packet(0, tcp(own, peer, 40000, 80, 999, 0, SYN, 0, offer + stamps(0, 0))))
        packets.append(packet(RTT_S, tcp(peer, own, 80, 40000, 5000, 1000, SYN | ACK, 0, offer + stamps(RTT_S, 0))))
        packets.append(packet(RTT_S + 1e-5, tcp(own, peer, 40000, 80, 1000, 5001, ACK, 0, stamps(RTT_S, RTT_S), 500)))
    edge = 1000
    for n, size in enumerate(payloads):
        at_s = begin + n * (RTT_S + 1e-3) / AT_ONCE
        send(at_s, edge, size)
        for i, ack in enumerate([*range(edge + step, edge + size, step), edge + size]):
            answer(at_s + RTT_S + i * 1e-6, ack)
        edge += size
    path = folder / "super.pcap"
    path.write_bytes(pcap(sorted(packets, key=lambda p: p.time_ns)))
    return analyze(path)


@pytest.mark.parametrize(
    ("payloads", "smss", "segments"),
    [
        ([14480] * 40, 1448, 400),
        ([14480] * 10 + [20000] * 30, 1448, 100 + 30 * 14),
        ([14480] * 10 + [3000] + [63000], 1448, 100 + 3 + 44),
        ([8192] * 40, 1448, 240),
        ([100, 14480], 1448, 11),
        ([1388] * 40, 1388, 40),
        ([8948] * 40, 8948, 40),
    ],
    ids=["full", "then-written", "two-odd", "written", "small-first", "small-path", "jumbo"],
)
def test_the_size_of_super_segments_is_not_taken_for_the_smss(tmp_path, payloads, smss, segments):
    flow = analyzed(tmp_path, payloads, 2896).flows.row(0, named=True)
    assert (smss, segments) == (flow["smss_bytes"], flow["data_segments"])


def test_within_a_host_segments_are_as_large_as_they_are(tmp_path):
    flow = (
        analyzed(tmp_path, [32741] * 20, 65482, peer="10.0.0.1")
        .flows.filter(pl.col("dst_port") == 80)
        .row(0, named=True)
    )
    assert 32741 == flow["smss_bytes"]


def test_pieces_of_super_segments_leave_nothing_behind(tmp_path):
    """Segments of 1388 bytes, where the SYNs speak of 1448: pieces of two make more of these than the whole has."""
    rounds = analyzed(tmp_path, [1388 * 45] * 200, 2776, opened=True).rounds
    assert 30 < rounds.height
    flights = rounds["flight"][2:-1]
    assert AT_ONCE * 44 == flights.min() == flights.max()


def test_what_is_outstanding_is_counted_again_by_a_larger_size(tmp_path):
    """Six segments each of Ethernet's, as it seems, until frames of 9,000 bytes come."""
    analysis = analyzed(tmp_path, [1448 * 6] * 4 + [8948] * 76, 8948)
    assert 8948 == analysis.flows["smss_bytes"][0]
    assert {4.0} == set(analysis.rounds["flight"][5:-1])
