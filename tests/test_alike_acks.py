"""ACKs alike to the last bit, of a receiver without identifications: each answers a segment that it did not take."""

from __future__ import annotations

import struct

import captures
import pytest
from captures import ACK, SYN, Packet

from tcpfit.analysis import analyze

HOSTS = {4: ("10.0.0.1", "10.0.0.2"), 6: ("2001:db8::1", "2001:db8::2")}
MSS, SEGMENTS = 1000, 10


class Flow:
    """A sender's capture of SACK and timestamps, of packets without identifications."""

    def __init__(self, version: int):
        self.hosts, self.packets = HOSTS[version], []

    def add(self, at_s, by_sender, seq, ack, flags=ACK, payload=0, stamps=(0, 0), sack=(), more=b""):
        hosts, ports = (self.hosts, (40000, 80)) if by_sender else (self.hosts[::-1], (80, 40000))
        options = more + struct.pack(">BBBBII", 1, 1, 8, 10, *stamps)
        if sack:
            options += struct.pack(f">BBBB{2 * len(sack)}I", 1, 1, 5, 2 + 8 * len(sack), *sum(sack, ()))
        frame = captures.link(captures.tcp(*hosts, *ports, seq, ack, flags, payload, options), captures.ETHERNET)
        self.packets.append(Packet(captures.START_NS + round(at_s * 1e9), frame, len(frame)))

    def data(self, at_s, number, stamps):
        self.add(at_s, True, 1 + number * MSS, 1, payload=MSS, stamps=stamps)

    def answer(self, at_s, edge, stamps, *sack):
        blocks = tuple((1 + left * MSS, 1 + right * MSS) for left, right in sack)
        self.add(at_s, False, 1, 1 + edge * MSS, stamps=stamps, sack=blocks)


def of_late_originals(version: int, held: int) -> list[Packet]:
    """The path holds the first segments until the first of them has come again: to the receiver the stamps of
    the others are too old (RFC 7323, 5.3), and it answers each with the same ACK.
    """
    flow = Flow(version)
    offer = struct.pack(">BBHBB", 2, 4, MSS + 12, 4, 2)
    flow.add(0.0, True, 0, 0, SYN, stamps=(1, 0), more=offer)
    flow.add(0.05, False, 0, 1, SYN | ACK, stamps=(51, 1), more=offer)
    flow.add(0.0501, True, 1, 1, stamps=(51, 51))
    for number in range(SEGMENTS):
        flow.data(0.1, number, (101, 51))
    for number in range(held, SEGMENTS):
        flow.answer(0.15 + number * 1e-4, 0, (150, 51), (held, number + 1))
    above = (held, SEGMENTS)
    for number in range(held):
        flow.data(0.152 + number * 0.02, number, (152 + number * 20, 150))
    flow.answer(0.2021, 1, (202, 152), above)
    flow.answer(0.2025, 1, (203, 152), (0, 1), above)
    for number in range(1, held):
        flow.answer(0.2025 + number * 3e-6, 1, (203, 152), above)
    for number in range(1, held):
        edge = SEGMENTS if number + 1 == held else number + 1
        flow.answer(
            0.2021 + number * 0.02, edge, (202 + number * 20, 152 + number * 20), *([above] if edge < SEGMENTS else [])
        )
    return sorted(flow.packets, key=lambda packet: packet.time_ns)


def counted(packets: list[Packet], folder) -> tuple[int, int]:
    (folder / "alike.pcap").write_bytes(captures.pcap(packets))
    row = analyze(folder / "alike.pcap").flows.row(0, named=True)
    return row["lost_segments"], row["spurious_retransmissions"]


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("held", [2, 3, 5])
def test_each_answers_a_segment_that_was_not_taken(tmp_path, held, version):
    assert counted(of_late_originals(version, held), tmp_path) == (0, held)
