"""Is a path known to be full by what was asked of it in vain, though that was lost, or at another share each time?"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator
from pathlib import Path

import captures
import pytest
from captures import ACK, PSH, START_NS, SYN, Packet
from queue_path import QueuePath

import tcpfit
from tcpfit.diagnosis import diagnose

SENDER, RECEIVER = "10.0.0.1", "10.0.0.2"
MSS, RTT_S = 1000, 0.05
OF_SYN = struct.pack(">BBHBBBB", 2, 4, MSS, 1, 3, 3, 7)
Step = tuple[int, float, bool]
"""Of a round trip: the window in segments, the time the path takes for one, and whether its last one is lost."""


class Flow:
    """At the sender: a window over a path of one delay; what is lost is sent again at the third duplicate ACK."""

    def __init__(self, course: Iterator[Step]) -> None:
        self.course = course
        self.window, self.each_s, self.loses = next(course)
        self.free_s, self.sent, self.una, self.turn = 0.0, 0, 0, 0
        self.duplicates, self.recover = 0, -1
        self.ids = 1
        self.arrivals: list[tuple[float, int]] = []
        self.came: set[int] = set()
        self.packets: list[Packet] = []
        self._add(0.0, captures.tcp(SENDER, RECEIVER, 40000, 80, 0, 0, SYN, 0, OF_SYN, ip_id=1))
        self._add(RTT_S, captures.tcp(RECEIVER, SENDER, 80, 40000, 0, 1, SYN | ACK, 0, OF_SYN))
        self._add(RTT_S + 1e-5, captures.tcp(SENDER, RECEIVER, 40000, 80, 1, 1, ACK, ip_id=2))

    def captured(self, seconds: float) -> list[Packet]:
        self._fill(0.1)
        while self.arrivals and self.arrivals[0][0] < seconds:
            at_s, number = heapq.heappop(self.arrivals)
            self.came.add(number)
            self._acknowledge(at_s + RTT_S)
        return sorted(self.packets, key=lambda packet: packet.time_ns)

    def _acknowledge(self, at_s: float) -> None:
        acked = self.una
        while acked in self.came:
            self.came.remove(acked)
            acked += 1
        self._add(at_s, captures.tcp(RECEIVER, SENDER, 80, 40000, 1, 1 + acked * MSS, ACK))
        self.duplicates = 0 if acked > self.una else self.duplicates + 1
        self.una = acked
        if self.duplicates == 3 and self.una > self.recover:
            self.recover = self.sent
            self._send(at_s + 1e-5, self.una, False)
        if self.una >= self.turn:
            self.turn = self.sent
            self.window, self.each_s, self.loses = next(self.course)
        self._fill(at_s + 1e-5)

    def _fill(self, at_s: float) -> None:
        while self.sent - self.una < self.window + self.duplicates:
            lost = self.loses and self.sent - self.una == self.window - 1
            self.loses &= not lost
            self._send(at_s, self.sent, lost)
            self.sent += 1

    def _send(self, at_s: float, number: int, lost: bool) -> None:
        self.ids += 1
        data = captures.tcp(SENDER, RECEIVER, 40000, 80, 1 + number * MSS, 1, ACK | PSH, MSS, ip_id=1 + self.ids)
        self._add(at_s, data)
        if not lost:
            self.free_s = max(self.free_s, at_s) + self.each_s
            heapq.heappush(self.arrivals, (self.free_s, number))

    def _add(self, at_s: float, datagram: bytes) -> None:
        frame = captures.link(datagram, captures.ETHERNET)
        self.packets.append(Packet(START_NS + round(at_s * 1e9), frame, len(frame)))


def shares(folder: Path, course: Iterator[Step], seconds: float = 30.0) -> dict[str, float]:
    """Causes of such a flow, and their share of its time."""
    path = folder / "path.pcap"
    path.write_bytes(captures.pcap(Flow(course).captured(seconds)))
    analysis = tcpfit.analyze(path)
    (found,) = diagnose(analysis.flows, analysis.events, analysis.rounds).values()
    return {cause.cause: cause.time_share for cause in found.causes}


def halved(most: int, alone_s: float, beside_s: list[float]) -> Iterator[Step]:
    """Congestion avoidance, for a while alone on the path, then beside others whose share changes."""
    for window in range(most // 2, most):
        yield window, alone_s, False
    while True:
        for each_s in beside_s:
            yield most, each_s, True
            for window in range(most // 2, most):
                yield window, each_s, False


def probed(window: int, more: int, each_s: float) -> Iterator[Step]:
    """The path's own window, and once in eight round trips more, of which some is lost."""
    while True:
        yield window + more, each_s, True
        yield window + more, each_s, False
        for _ in range(6):
            yield window, each_s, False


def test_a_share_of_the_path_is_full_whatever_it_is(tmp_path):
    """Alone the flow is faster than it ever is beside others, when all that its window gains waits in the queue."""
    found = shares(tmp_path, halved(40, 0.001, [0.002, 0.002, 0.003, 0.004, 0.004, 0.0025]))
    assert found["bottleneck-limited"] > 0.7


def test_a_window_that_losses_halve_below_it_is_not(tmp_path):
    found = shares(tmp_path, halved(40, 0.0005, [0.0005]))
    assert found["loss-limited"] > 0.8 and "bottleneck-limited" not in found


def test_what_is_asked_for_in_vain_may_be_lost(tmp_path):
    """A queue of a few segments, less than a quarter of a round trip, overflows each time."""
    found = shares(tmp_path, probed(50, 10, 0.001))
    assert found["bottleneck-limited"] > 0.7


def test_what_is_lost_of_a_path_that_is_not_full_is_not_asked_for_in_vain(tmp_path):
    found = shares(tmp_path, probed(50, 10, 0.0001))
    assert "bottleneck-limited" not in found


@pytest.mark.parametrize(
    ("written", "every_s", "limit"),
    [
        # 25 and 75 ms of the path's rate, once in 70 and 200 ms: it had room for nearly three times as much
        (20, 0.07, "application-limited"),
        (60, 0.2, "application-limited"),
        # 125 ms of 200: most of the time, which a faster path would have spared
        (100, 0.2, "bottleneck-limited"),
    ],
)
def test_a_single_flight_between_two_pauses_fills_no_path_with_its_own_queue(tmp_path, written, every_s, limit):
    pauses = dict.fromkeys(range(written, 10_000, written), every_s)
    QueuePath(rate=800, way_s=0.018, pauses=pauses, seconds=6, stamped=True).run(tmp_path)
    for end in ("sender", "receiver"):
        analysis = tcpfit.analyze(tmp_path / f"{end}.pcap")
        assert diagnose(analysis.flows, analysis.events, analysis.rounds)[0].primary == limit
