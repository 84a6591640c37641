"""Is a rate that stays while the window grows the path's, however short the queue, and a clock's rate not?"""

from __future__ import annotations

import heapq
import random
import struct
from pathlib import Path

import captures
import pytest
from captures import ACK, PSH, START_NS, SYN, Packet

import tcpfit
from tcpfit.diagnosis import Diagnosis, diagnose

SENDER, RECEIVER = "10.0.0.1", "10.0.0.2"
MSS, RTT_S, EACH_S = 1000, 0.05, 0.0025
OF_SYN = struct.pack(">BBHBBBB", 2, 4, MSS, 1, 3, 3, 7)


class Route:
    """At the sender: a path of one delay and rate that loses nothing, and that may delay each segment by some more."""

    def __init__(self, each_s: float, jitter_s: float = 0.0) -> None:
        self.each_s, self.jitter_s = each_s, jitter_s
        self.free_s = self.last_s = 0.0
        self.packets: list[Packet] = []
        self.acks: list[tuple[float, int]] = []
        self.sent, self.chance = 0, random.Random(1)
        self._add(0.0, captures.tcp(SENDER, RECEIVER, 40000, 80, 0, 0, SYN, 0, OF_SYN, ip_id=1))
        self._add(RTT_S, captures.tcp(RECEIVER, SENDER, 80, 40000, 0, 1, SYN | ACK, 0, OF_SYN))
        self._add(RTT_S + 1e-5, captures.tcp(SENDER, RECEIVER, 40000, 80, 1, 1, ACK, ip_id=2))

    def send(self, at_s: float) -> None:
        sequence = 1 + self.sent * MSS
        self.sent += 1
        data = captures.tcp(SENDER, RECEIVER, 40000, 80, sequence, 1, ACK | PSH, MSS, ip_id=2 + self.sent)
        self._add(at_s, data)
        self.free_s = max(self.free_s, at_s) + self.each_s
        self.last_s = max(self.last_s, self.free_s + RTT_S - self.each_s + self.chance.uniform(0, self.jitter_s))
        heapq.heappush(self.acks, (self.last_s, self.sent))

    def acked(self) -> tuple[float, int]:
        """The next ACK: when it comes, and how many segments it covers."""
        at_s, number = heapq.heappop(self.acks)
        self._add(at_s, captures.tcp(RECEIVER, SENDER, 80, 40000, 1, 1 + number * MSS, ACK))
        return at_s, number

    def _add(self, at_s: float, datagram: bytes) -> None:
        frame = captures.link(datagram, captures.ETHERNET)
        self.packets.append(Packet(START_NS + round(at_s * 1e9), frame, len(frame)))

    def diagnosed(self, folder: Path) -> Diagnosis:
        path = folder / "path.pcap"
        path.write_bytes(captures.pcap(sorted(self.packets, key=lambda packet: packet.time_ns)))
        analysis = tcpfit.analyze(path)
        (found,) = diagnose(analysis.flows, analysis.events, analysis.rounds).values()
        return found


def grown(each_s: float, least: int, most: int) -> Route:
    """A window that grows by a segment a round trip, and falls from its most to its least."""
    path, window, since = Route(each_s), least, 0
    for _ in range(window):
        path.send(0.1)
    at_s = 0.0
    while at_s < 20.0:
        at_s, number = path.acked()
        since += 1
        if since >= window:
            window, since = least if window >= most else window + 1, 0
        while path.sent - number < window:
            path.send(at_s + 1e-5)
    return path


def test_a_window_that_grows_beyond_the_path_is_held_by_it(tmp_path):
    """20 segments are all that the path takes; with more most round trips are longer by less than a quarter."""
    verdict = grown(EACH_S, 15, 26).diagnosed(tmp_path)
    assert "bottleneck-limited" == verdict.primary


def test_a_window_that_grows_below_it_is_not(tmp_path):
    verdict = grown(EACH_S / 2, 15, 26).diagnosed(tmp_path)
    assert "bottleneck-limited" not in {cause.cause for cause in verdict.causes}


@pytest.mark.parametrize("jitter_s", [0.0, 0.005, 0.01, 0.02, 0.03])
def test_a_clock_over_a_path_that_varies_is_not(tmp_path, jitter_s):
    """Its rate stays, and its flight goes up and down with the round trip."""
    path = Route(1e-5, jitter_s)
    for number in range(8000):
        while path.acks and path.acks[0][0] < 0.1 + EACH_S * number:
            path.acked()
        path.send(0.1 + EACH_S * number)
    verdict = path.diagnosed(tmp_path)
    assert "bottleneck-limited" not in {cause.cause for cause in verdict.causes}
