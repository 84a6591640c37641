"""Senders that go by a clock of their own: an application that writes so much every so often. A loss costs them nothing
that lasts, and nothing that raises a window or a buffer makes them faster."""

from __future__ import annotations

import heapq
import random
import struct
from pathlib import Path

import captures
import pytest
from captures import ACK, PSH, SYN, Packet, tcp

import tcpfit
from tcpfit.diagnosis import diagnose, findings

MSS = 1448
SENDER, RECEIVER = "10.0.0.1", "10.0.0.2"
OF_SYN = b"\2\4\5\xb4\4\2\1\3\3\7"
HOST_S = 2e-5


def stamped(time_s: float) -> int:
    return 1000 + round(time_s * 1e3)


class Talk:
    """A sender and a receiver, `rtt_s` apart; some segments are lost once. What passes either end is kept.

    On the way to the receiver a segment takes `each_s` of a link that they pass one after the other, and up to
    `late_s` more, by chance, on a way that later ones may be faster on. Others fill a queue there that takes
    `others_s` when it is full, and lose something then.
    """

    def __init__(
        self,
        rtt_s: float,
        lost: set[int],
        size: int = MSS,
        each_s: float = 0.0,
        late_s: float = 0.0,
        others_s: float = 0.0,
    ) -> None:
        self.late_s, self.others_s = late_s, others_s
        self.way_s, self.lost, self.size = rtt_s / 2, set(lost), size
        self.each_s, self.free_s = each_s, 0.0
        self.at: dict[str, list[Packet]] = {"sender": [], "receiver": []}
        self.queue: list[tuple[float, int, str, int]] = []
        self.order = self.ids = 0
        self.echo = {"sender": 0, "receiver": 0}  # the newest time stamp that came to each end
        self.next, self.held, self.waiting = 0, set[int](), 0
        self._pass(0.0, "sender", "data", -1, SYN, OF_SYN)
        self._pass(rtt_s / 2, "receiver", "ack", 0, SYN | ACK, OF_SYN)
        self._pass(rtt_s + HOST_S, "sender", "data", 0, ACK)

    def _pass(
        self, time_s: float, end: str, what: str, number: int, flags: int, options: bytes = b"", size: int = 0
    ) -> None:
        """A packet leaves its end and, unless it is lost, passes the other."""
        options += b"\1\1\x08\x0a" + struct.pack(">II", stamped(time_s), self.echo[end])
        sequence = 1000 + 1 + number * self.size if number >= 0 else 1000
        self.ids += 1
        if what == "data":
            ip = tcp(SENDER, RECEIVER, 40000, 9, sequence, 5001, flags, size, options, ip_id=self.ids)
        else:
            ip = tcp(RECEIVER, SENDER, 9, 40000, 5001 - bool(flags & SYN), sequence, flags, 0, options, ip_id=0)
        data = captures.link(ip, captures.ETHERNET)
        here, there = ("sender", "receiver") if end == "sender" else ("receiver", "sender")
        packet = Packet(captures.START_NS + round(time_s * 1e9), data, len(data))
        self.at[here].append(packet)
        if not (what == "data" and size and number in self.lost):
            if what == "data" and size:
                self.free_s = max(self.free_s, time_s) + self.each_s
                time_s = self.free_s + self._late(number) + self._others(time_s)
            later = captures.START_NS + round((time_s + self.way_s) * 1e9)
            self.at[there].append(Packet(later, data, len(data)))

    def send(self, time_s: float, number: int) -> None:
        self._pass(time_s, "sender", "data", number, ACK | PSH, size=self.size)
        if number in self.lost:
            self.lost.discard(number)
        else:
            late_s = self._late(number) + self._others(time_s)
            self._after(max(self.free_s, time_s) + late_s + self.way_s, "arrives", number)

    def _late(self, number: int) -> float:
        return random.Random(number).uniform(0.0, self.late_s)

    def _others(self, time_s: float) -> float:
        """Full after 2.7 s, and from 0.6 to 1 in turn."""
        since_s = time_s % 3.0
        return self.others_s * (0.6 + 0.4 * (since_s / 2.7 if since_s < 2.7 else (3.0 - since_s) / 0.3))

    def _after(self, time_s: float, what: str, number: int) -> None:
        self.order += 1
        heapq.heappush(self.queue, (time_s, self.order, what, number))

    def arrives(self, time_s: float, number: int) -> None:
        """Every second segment is acknowledged, what is out of order and what fills a hole at once."""
        self.echo["receiver"] = stamped(time_s - self.way_s)
        self.held.add(number)
        hole = self.next not in self.held or len(self.held) > 1
        while self.next in self.held:
            self.held.discard(self.next)
            self.next += 1
        self.waiting += 1
        if hole or self.waiting == 2:
            self.waiting = 0
            above = sorted(self.held)
            sack = b""
            if above:
                edges = (1001 + above[0] * self.size, 1001 + (above[-1] + 1) * self.size)
                sack = b"\1\1\5\x0a" + struct.pack(">II", *edges)
            self._pass(time_s + HOST_S, "receiver", "ack", self.next, ACK, sack)
            self._after(time_s + HOST_S + self.way_s, "acknowledged", self.next if not above else -1 - self.next)

    def run(
        self,
        until_s: float,
        clock: tuple[int, float] | None,
        window: int = 0,
        gains: tuple[float, ...] = (1.0,),
        nagle: bool = False,
    ) -> None:
        """`clock`: so many segments every so often, and by the gains of one round trip each in turn more often;
        otherwise `window` segments are kept outstanding. With `nagle` what is left of each write, taken to be a segment
        like the others, waits for the ACK of the one that waited before."""
        sent = resent = acked = duplicates = 0
        rest = -1  # the last segment that had waited
        start_s = 0.06 + 2 * self.way_s
        due_s = start_s if clock else float("inf")
        if not clock:
            for _ in range(window):
                self.send(start_s, sent)
                sent += 1
        while True:
            if due_s <= (self.queue[0][0] if self.queue else due_s):
                if due_s > until_s:
                    return
                for _ in range(clock[0] if clock else 0):
                    self.send(due_s, sent)
                    sent += 1
                gain = gains[int((due_s - start_s) / (2 * self.way_s)) % len(gains)]
                due_s += clock[1] / gain if clock else 0.0
                continue
            time_s, _, what, number = heapq.heappop(self.queue)
            if time_s > until_s:
                return
            if what == "arrives":
                self.arrives(time_s, number)
                continue
            self.echo["sender"] = stamped(time_s - self.way_s)
            edge = number if number >= 0 else -1 - number
            duplicates = 0 if edge > acked else duplicates + 1
            acked = max(acked, edge)
            if number < 0 and duplicates == 3 and resent <= acked:
                resent = acked + 1
                self.send(time_s + HOST_S, acked)
            if clock and nagle and acked > rest:
                rest = sent
                self.send(time_s + HOST_S, sent)
                sent += 1
            while not clock and sent - acked < window:
                self.send(time_s + HOST_S, sent)
                sent += 1

    def diagnosed(self, folder: Path, end: str) -> tuple[str, dict[str, float]]:
        """The verdict at that end, and the causes' shares of the time."""
        path = folder / f"{end}.pcap"
        path.write_bytes(captures.pcap(sorted(self.at[end], key=lambda packet: packet.time_ns)))
        found = tcpfit.analyze(path)
        assert [end] == found.flows["vantage"].to_list()
        (diagnosis,) = diagnose(found.flows, found.events, found.rounds).values()
        return diagnosis.primary, {cause.cause: cause.time_share for cause in diagnosis.causes}


@pytest.mark.parametrize("end", ["sender", "receiver"])
@pytest.mark.parametrize("lost", [set(), {700}], ids=["nothing lost", "one lost"])
@pytest.mark.parametrize("clock", [(1, 0.007), (3, 0.02), (10, 0.054)], ids=str)
def test_who_goes_by_a_clock_is_held_by_no_loss_and_no_buffer(tmp_path, clock, lost, end):
    talk = Talk(0.05, lost)
    talk.run(15.0, clock)
    primary, shares = talk.diagnosed(tmp_path, end)
    assert primary in ("unknown", "application-limited")
    assert shares.get("loss-limited", 0.0) < 0.05
    assert shares.get("send-buffer-limited", 0.0) < 0.05


def test_a_clock_is_named_where_it_shows(tmp_path):
    talk = Talk(0.05, {700})
    talk.run(15.0, (10, 0.054))
    talk.diagnosed(tmp_path, "sender")
    found = tcpfit.analyze(tmp_path / "sender.pcap")
    (diagnosis,) = diagnose(found.flows, found.events, found.rounds).values()
    assert "a clock of the sender's own" in diagnosis.text
    assert "application" in diagnosis.remedy


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_small_segments_show_that_the_window_has_room(tmp_path, end):
    """Whatever the clock: what waits for a window is sent in full segments."""
    talk = Talk(0.05, {300, 900, 1500}, size=500)
    talk.run(15.0, (1, 0.005))
    primary, shares = talk.diagnosed(tmp_path, end)
    assert primary == "application-limited"
    assert shares.get("loss-limited", 0.0) < 0.1


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_a_buffer_that_acks_let_go_is_one_at_both_ends(tmp_path, end):
    talk = Talk(0.05, set())
    talk.run(10.0, None, window=20)
    primary, shares = talk.diagnosed(tmp_path, end)
    assert (primary, True) == ("send-buffer-limited", shares["send-buffer-limited"] > 0.9)


@pytest.mark.parametrize("end", ["sender", "receiver"])
@pytest.mark.parametrize(("rtt_s", "clock"), [(0.0403, (4, 0.02)), (0.0805, (6, 0.04)), (0.062, (5, 0.02))], ids=str)
def test_what_acks_let_go_now_and_then_is_no_buffer(tmp_path, rtt_s, clock, end):
    """What is left of each write goes with an ACK, so that rounds begin with ACKs; most of the data do not."""
    talk = Talk(rtt_s, set())
    talk.run(11.0, clock, nagle=True)
    _, shares = talk.diagnosed(tmp_path, end)
    assert shares.get("send-buffer-limited", 0.0) == 0.0


@pytest.mark.parametrize("end", ["sender", "receiver"])
@pytest.mark.parametrize("clock", [(1, 0.003), (1, 0.006), (2, 0.01)], ids=str)
def test_round_trips_that_are_long_by_chance_are_no_queue(tmp_path, clock, end):
    """A queue would be in the next round what it is in this one, but for what a round brings or takes."""
    talk = Talk(0.04, set(), late_s=0.025)
    talk.run(12.0, clock)
    _, shares = talk.diagnosed(tmp_path, end)
    assert shares.get("bottleneck-limited", 0.0) == 0.0


@pytest.mark.parametrize(("late_s", "lost"), [(0.03, {100, 101, 102}), (0.05, {60})], ids=str)
def test_a_flight_that_goes_up_and_down_with_the_round_trip_is_held_by_no_loss_of_long_ago(tmp_path, late_s, lost):
    """The path delays each segment by chance, so the flight is not one value; the data keep to a straight line."""
    talk = Talk(0.04, lost, late_s=late_s)
    talk.run(14.0, (1, 0.01))
    primary, shares = talk.diagnosed(tmp_path, "receiver")
    assert primary in ("unknown", "application-limited")
    assert shares.get("loss-limited", 0.0) + shares.get("reordering-limited", 0.0) < 0.05


@pytest.mark.parametrize("end", ["sender", "receiver"])
@pytest.mark.parametrize("lost", [set(), {400, 1100}], ids=["nothing lost", "two lost"])
@pytest.mark.parametrize("clock", [(1, 0.005), (2, 0.012), (1, 0.003)], ids=str)
def test_a_clock_beside_a_queue_of_others_is_held_by_neither_that_nor_its_losses(tmp_path, clock, lost, end):
    """The round trip is long and the rate is steady, but the flight follows the round trip, down as well as up."""
    talk = Talk(0.04, lost, others_s=0.05)
    talk.run(15.0, clock)
    primary, shares = talk.diagnosed(tmp_path, end)
    assert primary in ("unknown", "application-limited")
    assert shares.get("bottleneck-limited", 0.0) + shares.get("loss-limited", 0.0) < 0.05


PROBES = (1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
"""The gains of BBR's pacing, draft-cardwell-iccrg-bbr-congestion-control-00, 4.3.4."""


@pytest.mark.parametrize("lost", [set(), {500, 1700, 2900, 4100}], ids=["nothing lost", "four lost"])
def test_a_pacer_that_gets_no_more_than_before_is_held_by_the_path(tmp_path, lost):
    """BBR at the rate of the path: its queue is short, and losses are no reason to slow."""
    talk = Talk(0.05, lost, each_s=0.001)
    talk.run(6.0, (1, 0.001), gains=PROBES)
    primary, shares = talk.diagnosed(tmp_path, "sender")
    assert primary == "bottleneck-limited"
    assert shares["bottleneck-limited"] > 0.9
    assert shares.get("loss-limited", 0.0) < 0.02


@pytest.mark.parametrize("lost", [set(), {500, 1700, 2900, 4100}], ids=["nothing lost", "four lost"])
def test_a_pacer_that_gets_what_it_asks_for_is_not(tmp_path, lost):
    talk = Talk(0.05, lost, each_s=0.0001)
    talk.run(6.0, (1, 0.001), gains=PROBES)
    _, shares = talk.diagnosed(tmp_path, "sender")
    assert shares.get("bottleneck-limited", 0.0) == 0.0


def test_acks_that_end_recoveries_are_no_thin_ones(tmp_path):
    """A pacer that loses a segment in twenty: an ACK covers much where it fills a hole, and hardly one comes else."""
    draw = random.Random(7)
    talk = Talk(0.03, {number for number in range(200, 9000) if draw.random() < 0.05}, each_s=0.00057)
    talk.run(8.0, (1, 0.0006))
    talk.diagnosed(tmp_path, "receiver")
    analysis = tcpfit.analyze(tmp_path / "receiver.pcap", segments=True)
    assert [] == [found.name for found in findings.find(analysis, 0)]
