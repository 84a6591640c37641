"""Captured at the receiver, without timestamps: is a round trip known that is a queue's, which other flows fill?

What a window lets go then comes together, and nothing for the rest of the round trip.
"""

from __future__ import annotations

import struct
from pathlib import Path

import captures
import pytest
from captures import ACK, PSH, START_NS, SYN, Packet

import tcpfit

SENDER, RECEIVER = "10.0.0.1", "10.0.0.2"
MSS, PATH_S, EACH_S = 1000, 0.02, 0.001
OF_SYN = struct.pack(">BBHBBBB", 2, 4, MSS, 1, 3, 3, 7)


class Receiver:
    """What passes at the receiver, which answers at once."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.sent, self.came, self.acked = 0, set[int](), 0
        self._add(0.0, captures.tcp(SENDER, RECEIVER, 40000, 80, 0, 0, SYN, 0, OF_SYN, ip_id=1))
        self._add(1e-5, captures.tcp(RECEIVER, SENDER, 80, 40000, 0, 1, SYN | ACK, 0, OF_SYN))
        self._add(PATH_S, captures.tcp(SENDER, RECEIVER, 40000, 80, 1, 1, ACK, ip_id=2))
        self.ids = 2

    def data(self, at_s: float, number: int, lost: bool = False) -> None:
        self.ids += 1
        if lost:
            return
        sequence = 1 + number * MSS
        self._add(at_s, captures.tcp(SENDER, RECEIVER, 40000, 80, sequence, 1, ACK | PSH, MSS, ip_id=self.ids))
        self.came.add(number)
        while self.acked in self.came:
            self.acked += 1
        self._add(at_s + 1e-5, captures.tcp(RECEIVER, SENDER, 80, 40000, 1, 1 + self.acked * MSS, ACK))

    def analyzed(self, folder: Path) -> dict[str, float]:
        path = folder / "receiver.pcap"
        path.write_bytes(captures.pcap(self.packets))
        (row,) = tcpfit.analyze(path).flows.to_dicts()
        return row

    def _add(self, at_s: float, datagram: bytes) -> None:
        frame = captures.link(datagram, captures.ETHERNET)
        self.packets.append(Packet(START_NS + round(at_s * 1e9), frame, len(frame)))


def windows(longest_s: float, left: float, lost: int, count: int = 64, window: int = 24) -> tuple[Receiver, float]:
    """Windows that come together, one a round trip, and the mean of these.

    Of each eighth the segment `lost` is, and its resend comes a round trip after the third above it; half a window
    follows. A loss leaves this much of the longest round trip.
    """
    receiver, hole = Receiver(), -1
    start_s = 0.03
    for turn in range(count):
        round_trip_s = longest_s * (left + (1 - left) * ((turn - 5) % 8) / 7)
        new = hole < 0
        for place in range(window):
            at_s = start_s + place * EACH_S
            if not new and place == lost + 3:
                receiver.data(at_s, hole)
                hole = -1
            elif new or not lost + 3 < place < window - 4:
                falls = turn % 8 == 4 and place == lost
                hole = receiver.sent if falls else hole
                receiver.data(at_s, receiver.sent, falls)
                receiver.sent += 1
        start_s += round_trip_s
    return receiver, (start_s - 0.03) / count


@pytest.mark.parametrize("lost", [1, 12, 18])
def test_it_is_what_resends_take(tmp_path, lost):
    """All that fill a queue lose something when it overflows."""
    longest_s, left = 0.12, 0.6
    receiver, _ = windows(longest_s, left, lost)
    found = receiver.analyzed(tmp_path)
    assert (8, 0) == (found["fast_recoveries"], found["timeouts"])
    assert left * longest_s < found["rtt_mean_s"] < longest_s


@pytest.mark.parametrize("lost", [1, 12, 18])
def test_it_is_the_paths_where_windows_rest_for_another_reason(tmp_path, lost):
    """An application writes by a clock; the resend comes as soon as the path allows."""
    receiver, mean_s = windows(PATH_S + 0.008, 1.0, lost)
    assert PATH_S < receiver.analyzed(tmp_path)["rtt_mean_s"] <= mean_s
