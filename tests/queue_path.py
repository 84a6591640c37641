"""A NewReno sender behind a link with a queue, captured at both ends.

The sender is RFC 6582's: slow start, congestion avoidance, a resend at the third duplicate ACK and at every
partial one. The receiver answers each segment. The queue takes so many packets and drops the rest.
"""

from __future__ import annotations

import heapq
import struct
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import captures
from captures import ACK, PSH, START_NS, SYN, Packet

SENDER, RECEIVER = "10.0.0.1", "10.0.0.2"
MSS = 1000
STAMPED = 12
TIMER_S = 1.0


@dataclass
class QueuePath:
    """`run` writes sender.pcap, middle.pcap and receiver.pcap; windows and the queue are in segments."""

    rate: float
    """Segments a second."""
    way_s: float
    """From one end to the other, without the queue."""
    queue: int = 10**6
    window: int = 400
    """The receiver's."""
    buffer: int = 10**6
    """The sender's: no more is outstanding."""
    timer_s: float = TIMER_S
    """The sender's, which does not double."""
    threshold: float = 1e6
    """Where slow start ends."""
    patience: int = 3
    """Duplicate ACKs that begin a recovery; until then each lets a new segment go."""
    sack: bool = False
    """The receiver says what it holds; the sender does not heed it, which makes no difference to single losses."""
    lost: frozenset[int] = frozenset()
    """Numbers of the segments that are lost behind the queue."""
    again: frozenset[int] = frozenset()
    """Those of them that are lost the second time too."""
    held: dict[int, float] = field(default_factory=dict)
    """Numbers of the segments that the path holds behind the queue when they are sent first, for so many seconds."""
    pauses: dict[int, float] = field(default_factory=dict)
    """Numbers of the segments that the application writes so many seconds late."""
    pushes: bool = False
    """The segment before one of those has PSH."""
    stamped: bool = False
    """Both hosts send timestamps, of a millisecond."""
    apart: float = 0.0
    """How much faster the hosts' clocks run than the captures'."""
    others: int = 0
    """Packets of the sender's other connections for every ten of this one: the host numbers all of them together."""
    first_answer: int | None = None
    """Identification of the receiver's first ACK, if it counts them."""
    numbered: bool = True
    """The sender's packets have identifications."""
    slow_s: float = 0.0
    """How much longer the handshake took than the path, as the receiver saw it."""
    middle_s: float = 0.005
    """From the sender to the capture point on the way, before the queue and what loses and holds."""
    seconds: float = 20.0

    def run(self, folder: Path) -> None:
        self._at_sender: list[Packet] = []
        self._at_middle: list[Packet] = []
        self._at_receiver: list[Packet] = []
        self._events: list[tuple] = []
        self._order, self._ids = count(), count(1)
        self._answer_ids = count(self.first_answer or 0)
        self._free_s = self._now_s = 0.0
        self._una = self._next = 0
        self._window, self._duplicates, self._recover = 2.0, 0, -1
        self._held: set[int] = set()
        self._edge = 0
        self._moved_s = self._written_s = 0.0
        self._unwritten = dict(self.pauses)
        self._copies: Counter[int] = Counter()
        self._echoes = {SENDER: 0, RECEIVER: 0}
        self.recoveries = self.timeouts = 0
        options = struct.pack(">BBHBBBB", 2, 4, MSS + STAMPED * self.stamped, 1, 3, 3, 4)
        options += b"\x04\x02\x01\x01" if self.sack else b""
        way = self.way_s
        opened_s = way - self.slow_s
        for at, times, packet in (
            (SENDER, (0.0, opened_s), (0, 0, SYN, options)),
            (RECEIVER, (2 * way, opened_s), (0, 1, SYN | ACK, options)),
            (SENDER, (2 * way, 3 * way), (1, 1, ACK, b"")),
        ):
            seq, ack, flags, extra = packet
            stamps = self._stamps(at, min(times))
            for packets, at_s in zip((self._at_sender, self._at_receiver), times, strict=True):
                self._capture(packets, at_s, at, seq, ack, flags, options=extra, stamps=stamps)
        self._now_s = self._moved_s = 2 * way + 1e-4
        self._send()
        while self._events and self._now_s < self.seconds:
            self._now_s, _, take, number = heapq.heappop(self._events)
            take(number)
        for name, packets in (
            ("sender", self._at_sender),
            ("middle", self._at_middle),
            ("receiver", self._at_receiver),
        ):
            packets.sort(key=lambda packet: packet.time_ns)
            (folder / f"{name}.pcap").write_bytes(captures.pcap(packets))

    def _stamps(self, src, sent_s) -> tuple[int, int]:
        """TSval and TSecr of what is sent then."""
        return 1000 + int(sent_s * 1000 * (1 + self.apart)), self._echoes[src]

    def _capture(self, packets, at_s, src, seq, ack, flags, payload=0, options=b"", ip_id=0, stamps=None):
        if self.stamped:
            options += struct.pack(">BBBBII", 1, 1, 8, 10, *(stamps or self._stamps(src, at_s)))
        ends = (SENDER, RECEIVER, 40000, 80) if src == SENDER else (RECEIVER, SENDER, 80, 40000)
        field = 65535 if flags & SYN else self.window * MSS >> 4
        datagram = captures.tcp(*ends, seq, ack, flags, payload, options, field, ip_id=ip_id)
        frame = captures.link(datagram, captures.ETHERNET)
        packets.append(Packet(START_NS + round(at_s * 1e9), frame, len(frame)))
        if packets is self._at_sender:
            at_s += self.middle_s if src == SENDER else -self.middle_s
            self._at_middle.append(Packet(START_NS + round(at_s * 1e9), frame, len(frame)))

    def _later(self, at_s, take, number):
        heapq.heappush(self._events, (at_s, next(self._order), take, number))

    def _send(self):
        """All that the windows have room for."""
        limit = min(int(self._window), self.window, self.buffer)
        if self._next == self._una:
            # RFC 6298, 5.1
            self._moved_s = self._now_s
        while self._next < self._una + limit and not self._pauses():
            self._transmit(self._next)
            self._next += 1
        self._later(self._now_s + self.timer_s, self._expire, self._una)

    def _pauses(self) -> bool:
        seconds = self._unwritten.pop(self._next, None)
        if seconds is not None:
            self._written_s = self._now_s + seconds
            self._later(self._written_s, lambda _: self._send(), None)
        return self._now_s < self._written_s

    def _flags(self, number) -> int:
        return ACK | PSH if self.pushes and number + 1 in self.pauses else ACK

    def _transmit(self, number):
        ip_id = next(self._ids)
        if ip_id % (10 + self.others) == 9:
            self._ids = count(ip_id + 1 + self.others)
        if not self.numbered:
            ip_id = 0
        stamps = self._stamps(SENDER, self._now_s)
        flags = self._flags(number)
        self._capture(self._at_sender, self._now_s, SENDER, 1 + number * MSS, 1, flags, MSS, ip_id=ip_id, stamps=stamps)
        waits_s = max(0.0, self._free_s - self._now_s)
        copies, self._copies[number] = self._copies[number], self._copies[number] + 1
        first = copies == 0
        lost = number in self.lost and (first or copies == 1 and number in self.again)
        held_s = self.held.get(number, 0.0) if first else 0.0
        if waits_s * self.rate > self.queue:
            return
        self._free_s = self._now_s + waits_s + 1 / self.rate
        if not lost:
            self._later(self._free_s + self.way_s + held_s, self._arrive, (number, ip_id, stamps))

    def _arrive(self, packet):
        number, ip_id, stamps = packet
        seq = 1 + number * MSS
        flags = self._flags(number)
        self._capture(self._at_receiver, self._now_s, SENDER, seq, 1, flags, MSS, ip_id=ip_id, stamps=stamps)
        if number == self._edge:
            # what moves the left edge is echoed (RFC 7323, 4.3)
            self._echoes[RECEIVER] = stamps[0]
        if number >= self._edge:
            self._held.add(number)
        while self._edge in self._held:
            self._held.discard(self._edge)
            self._edge += 1
        numbered = 0 if self.first_answer is None else next(self._answer_ids)
        answered_s = self._now_s + 2e-5
        answer = self._edge, self._blocks(number), numbered, self._stamps(RECEIVER, answered_s)
        self._acknowledge(self._at_receiver, answered_s, *answer)
        self._later(answered_s + self.way_s, self._answer, answer)

    def _blocks(self, newest):
        """The block that the segment came into, then others (RFC 2018, 4)."""
        if not self.sack or newest not in self._held:
            return b""
        starts = [number for number in self._held if number - 1 not in self._held]
        ends = [number + 1 for number in self._held if number + 1 not in self._held]
        blocks = sorted(
            zip(sorted(starts), sorted(ends), strict=True), key=lambda block: not block[0] <= newest < block[1]
        )
        edges = [1 + edge * MSS for block in blocks[:3] for edge in block]
        return b"\x01\x01" + struct.pack(f">BB{len(edges)}I", 5, 2 + 4 * len(edges), *edges)

    def _acknowledge(self, packets, at_s, edge, blocks, ip_id, stamps):
        self._capture(packets, at_s, RECEIVER, 1, 1 + edge * MSS, ACK, options=blocks, ip_id=ip_id, stamps=stamps)

    def _answer(self, answer):
        edge = answer[0]
        self._acknowledge(self._at_sender, self._now_s, *answer)
        self._echoes[SENDER] = answer[3][0]
        if edge > self._una:
            self._advance(edge)
        elif edge == self._una and self._next > edge:
            self._duplicates += 1
            if self._duplicates == self.patience and edge > self._recover:
                outstanding = self._next - self._una
                self.threshold = max(outstanding / 2, 2.0)
                self._window = self.threshold + 3
                self._recover = self._next - 1
                self.recoveries += 1
                self._transmit(edge)
            elif self._duplicates > 3:
                # the window grows (RFC 5681, 3.2), or the segment is one that has left the path (RFC 3042)
                self._window += 1
        self._send()

    def _advance(self, edge):
        covered, self._una = edge - self._una, edge
        self._moved_s = self._now_s
        if self._recover >= edge:
            self._transmit(edge)
            self._window = max(self._window - covered + 1, 1.0)
            return
        if self._duplicates >= self.patience:
            self._window = self.threshold
        elif self._window < self.threshold:
            self._window += covered
        else:
            self._window += covered / self._window
        self._duplicates = 0

    def _expire(self, una):
        if self._una == una and self._next > una and self._now_s - self._moved_s >= self.timer_s - 1e-9:
            self.threshold = max((self._next - una) / 2, 2.0)
            self._window, self._duplicates, self._recover = 1.0, 0, self._next - 1
            self._moved_s = self._now_s
            self.timeouts += 1
            self._transmit(una)
            self._later(self._now_s + self.timer_s, self._expire, una)
