"""Captured at a receiver that sends data too, without timestamps and identifications: is the round trip the path's?

Data that acknowledge the receiver's own tell how long its ACKs were under way.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Callable
from itertools import count
from pathlib import Path

import captures
import pytest
from captures import ACK, START_NS, SYN, Packet

import tcpfit

SENDER, RECEIVER = "fd00::1", "fd00::2"
MSS = 1000
HANDSHAKE_S = 0.02
OF_SYN = struct.pack(">BBHBBBBBBBB", 2, 4, MSS, 4, 2, 1, 1, 1, 3, 3, 7)
PATIENCE = 3


class BothWays:
    """A sender that keeps a window outstanding, over a path whose round trip is longer than the handshake's.

    At first they are sent one after the other in a round trip, and then as ACKs come. The receiver answers each,
    with `own` data segments at once if that is not 0, and sends data by a clock if `clock_s` is not 0, `at_once`
    segments each time, which the path takes one after the other. The sender sends again what is lost when three
    segments above it have come; the first copies numbered in `lost` are.
    """

    def __init__(
        self, round_trip_s: float, *, window: int = 16, own: int = 0, clock_s: float = 0.0, at_once: int = 1
    ) -> None:
        self.way_s, self.window, self.own = round_trip_s / 2, window, own
        self.clock_s, self.at_once = clock_s, at_once
        self.lost: frozenset[int] = frozenset()
        self.packets: list[tuple[float, bytes]] = []
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = count()
        self._sent, self._una, self._again = 0, 0, set[int]()
        self._came, self._acked = set[int](), 0
        self._own_sent, self._own_came, self._free_s = 0, 0, 0.0

    def run(self, folder: Path, until_s: float = 12.0) -> dict[str, float]:
        """What the receiver's capture says of the sender's data."""
        self._pass(0.0, SENDER, 0, 0, SYN, 0, OF_SYN)
        self._pass(1e-5, RECEIVER, 0, 1, SYN | ACK, 0, OF_SYN)
        self._pass(HANDSHAKE_S, SENDER, 1, 1, ACK, 0)
        for n in range(self.window):
            self._at(HANDSHAKE_S + 2 * self.way_s * n / self.window, self._send_next)
        if self.clock_s:
            self._at(0.1, self._tick)
        while self._events and self._events[0][0] < until_s:
            at_s, _, act = heapq.heappop(self._events)
            act(at_s)
        path = folder / "receiver.pcap"
        frames = [(at_s, captures.link(datagram, captures.ETHERNET)) for at_s, datagram in sorted(self.packets)]
        path.write_bytes(captures.pcap(Packet(START_NS + round(at_s * 1e9), f, len(f)) for at_s, f in frames))
        flows = tcpfit.analyze(path).flows.to_dicts()
        (row,) = (flow for flow in flows if flow["src"] == SENDER)
        return row

    def _at(self, at_s: float, act: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (at_s, next(self._order), act))

    def _pass(
        self, at_s: float, source: str, seq: int, ack: int, flags: int, payload: int, options: bytes = b""
    ) -> None:
        ends = (SENDER, RECEIVER, 40000, 80) if source == SENDER else (RECEIVER, SENDER, 80, 40000)
        self.packets.append((at_s, captures.tcp(*ends, seq, ack, flags, payload, options)))

    def _send_next(self, now: float) -> None:
        self._sent += 1
        self._send(now, self._sent - 1)

    def _send(self, now: float, number: int) -> None:
        ack = 1 + self._own_came * MSS
        first = number not in self._again and number not in self._came
        if not (first and number in self.lost):
            self._at(now + self.way_s, lambda at_s: self._receive(at_s, number, ack))

    def _receive(self, now: float, number: int, ack: int) -> None:
        self._pass(now, SENDER, 1 + number * MSS, ack, ACK, MSS)
        self._came.add(number)
        while self._acked in self._came:
            self._acked += 1
        self._answer(now, self.own)

    def _tick(self, now: float) -> None:
        self._answer(now, self.at_once)
        self._at(now + self.clock_s, self._tick)

    def _answer(self, now: float, own: int) -> None:
        """An ACK, or as many data segments; those wait for each other for a millisecond each."""
        above = [number for number in self._came if number > self._acked]
        options = b""
        if above:
            options = struct.pack(">BBBBII", 1, 1, 5, 10, 1 + min(above) * MSS, 1 + (max(above) + 1) * MSS)
        acked, top = self._acked, len(above)
        for n in range(max(own, 1)):
            seq = 1 + self._own_sent * MSS
            self._pass(now + (2 + n) * 1e-6, RECEIVER, seq, 1 + acked * MSS, ACK, MSS if own else 0, options)
            self._own_sent += 1 if own else 0
            come = self._own_sent
            self._free_s = max(self._free_s, now + self.way_s) + (1e-3 if own else 1e-6)
            self._at(self._free_s, lambda at_s, come=come: self._hear(at_s, acked, top, come))

    def _hear(self, now: float, acked: int, above: int, own_came: int) -> None:
        """At the sender: an ACK, whose data are taken when it has been."""
        if above >= PATIENCE and acked not in self._again:
            self._again.add(acked)
            self._send(now, acked)
        self._una = max(self._una, acked)
        while self._sent >= self.window and self._sent < self._una + above + self.window:
            self._send_next(now)
        self._own_came = max(self._own_came, own_came)


@pytest.mark.parametrize("round_trip_s", [0.03, 0.08, 0.3])
@pytest.mark.parametrize("clock_s", [0.01, 0.2])
def test_the_round_trip_is_what_own_data_take(tmp_path, round_trip_s, clock_s):
    """No loss tells it: only the receiver's own data do, now and then or all the while."""
    found = BothWays(round_trip_s, window=32, clock_s=clock_s).run(tmp_path)
    assert found["rtt_mean_s"] == pytest.approx(round_trip_s, rel=0.06)


def test_without_own_data_it_is_the_handshakes(tmp_path):
    """Nothing else tells."""
    assert BothWays(0.3).run(tmp_path)["rtt_mean_s"] < 0.03


def test_own_data_that_wait_for_each_other_make_it_no_longer(tmp_path):
    """Forty segments sent at once are under way for up to 40 ms more; ACKs between are not."""
    found = BothWays(0.08, clock_s=0.5, at_once=40).run(tmp_path)
    assert found["rtt_mean_s"] == pytest.approx(0.08, rel=0.08)


@pytest.mark.parametrize("round_trip_s", [0.05, 0.3])
def test_own_data_ask_for_a_resend(tmp_path, round_trip_s):
    """Where each ACK comes with data, these report what has come; they are no duplicates (RFC 5681, 2)."""
    path = BothWays(round_trip_s, own=1)
    path.lost = frozenset(range(40, 240, 50))
    found = path.run(tmp_path)
    assert (4, 0) == (found["fast_recoveries"], found["timeouts"])
    assert 4 == found["lost_segments"]
    assert found["rtt_mean_s"] == pytest.approx(round_trip_s, rel=0.1)
