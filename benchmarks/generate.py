"""Write a pcap of TCP flows with losses, reordering, retransmissions and ACKs: `generate.py OUT PACKETS FLOWS SEED`.

FLOWS is one of KINDS. Deterministic: the same arguments give the same bytes, and but for `open`, where all connections
are open at once, a smaller PACKETS gives the beginning of the same file.

The capture is at the sender. A round of a flow is a window of full-sized segments; a share of them is lost and another
overtaken by the next two, both on the way to the receiver. The receiver acknowledges every second segment, and at once,
with SACK blocks, what is out of order. What was lost is sent again at the third duplicate ACK or when the timer runs
out. The window halves after a loss and grows by one a round. One short flow of five is IPv6.
Frames are cut to 128 bytes as `tcpdump -s 128` would, but for `full`. What they carry is as random as encrypted data,
and neither checksums nor times are regular: such a capture compresses as real ones do, to half. tcpfit reads headers
and options only.
"""

from __future__ import annotations

import heapq
import random
import struct
import sys
import zlib
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice

REORDERED = 0.001
SMSS = 1448
SNAPLEN = 128
WHOLE = 65_535
START_NS = 1_700_000_000 * 10**9
GAP_NS = 12_000  # of a sender at about 1 Gbit/s
JITTER_NS = 4_000  # less than what lies between two packets of a host
LATE_NS = 30_000  # more than two gaps, less than three: no third duplicate ACK
TIMER_NS = 200_000_000
SPACING_NS = 140_000  # between the beginnings of short flows: 800 are open at a time
SIZES = (4, 8, 10, 14, 14, 18, 20, 24)  # segments of short flows: 27 packets a flow on average
PACKETS_A_FLOW = 27
TINY_SIZES = (1, 1, 1, 2, 2, 2, 4, 7)  # of flows of ten packets
BULK = 1 << 60
FIN, SYN, PSH, ACK = 1, 2, 8, 16

RECORD = struct.Struct("<IIII")
IP_AND_TCP = struct.Struct(">BBHHHBBH4s4sHHIIHHHH")
IPV6_AND_TCP = struct.Struct(">IHBB16s16sHHIIHHHH")
TIMESTAMPS = struct.Struct(">BBBBII")

ETHERNET = b"\x02\0\0\0\0\1\x02\0\0\0\0\2\x08\0"
ETHERNET_V6 = ETHERNET[:12] + b"\x86\xdd"
PREFIX = bytes.fromhex("20010db8") + bytes(8)  # 2001:db8::/32, for documentation (RFC 3849)
CONTENT_BYTES = 16 << 20  # so many that compressors, which look back over a few MiB, find little of it twice

Packet = tuple[int, bytes]  # time, record


@dataclass(frozen=True)
class Kind:
    """Flows of one sort."""

    flows: int = 0  # bulk flows; 0: short ones, a new one every `spacing_ns`
    loss: float = 0.001
    window: float = 10.0  # of the first round
    least_window: float = 2.0
    snaplen: int = SNAPLEN
    spacing_ns: int = SPACING_NS
    sizes: tuple[int, ...] = SIZES
    slower: int = 1  # round trips so many times as long


KINDS = {
    "large": Kind(flows=8, loss=0.0001, window=500.0, least_window=250.0),
    "short": Kind(),
    "tiny": Kind(sizes=TINY_SIZES, spacing_ns=250_000),
    "open": Kind(spacing_ns=100, slower=10),
    "full": Kind(flows=8, loss=0.0001, window=500.0, least_window=250.0, snaplen=WHOLE),
    "lossy": Kind(flows=64, loss=0.05, least_window=40.0),
}


class Endpoint:
    """One side of a connection: builds its frames."""

    def __init__(self, address: bytes, port: int, peer: bytes, peer_port: int, snaplen: int, content: bytes) -> None:
        self.ends = (address, peer, port, peer_port)
        self.ip_id = port
        self.snaplen = snaplen
        self.content = content

    def frame(self, time_ns: int, seq: int, ack: int, flags: int, payload: int, options: bytes) -> Packet:
        source, destination, port, peer_port = self.ends
        header = 20 + len(options)
        # what is sent again is the same bytes; offsets of neighbours are far apart
        at = seq * 2_654_435_761 % (len(self.content) - WHOLE)
        carried = self.content[at : at + min(payload, self.snaplen)]
        # no true checksum, but as hard to guess, and so is what the clock says beyond a few microseconds
        chance = zlib.crc32(options + carried, (seq ^ ack) & 0xFFFFFFFF)
        checksum, time_ns = chance & 0xFFFF, time_ns + (chance >> 16) % JITTER_NS
        tcp = (port, peer_port, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, header // 4 << 12 | flags, 0x4000, checksum, 0)
        if len(source) == 16:
            data = ETHERNET_V6 + IPV6_AND_TCP.pack(6 << 28, header + payload, 6, 64, source, destination, *tcp)
            wire = 54 + header + payload
        else:
            self.ip_id = (self.ip_id + 1) & 0xFFFF
            ip = (0x45, 0, 20 + header + payload, self.ip_id, 0x4000, 64, 6, 0, source, destination)
            data = ETHERNET + IP_AND_TCP.pack(*ip, *tcp)
            wire = 34 + header + payload
        data = (data + options + carried)[: self.snaplen]
        seconds, rest = divmod(time_ns, 10**9)
        return time_ns, RECORD.pack(seconds, rest, len(data), wire) + data


class Receiver:
    """What has arrived: RFC 5681, 4.2 says when it is acknowledged, RFC 2018, 4 which blocks an ACK names."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.above: list[tuple[int, int]] = []
        self.unacknowledged = 0
        self.echo_ns = 0

    def take(self, left: int, right: int, sent_ns: int) -> bool:
        """A segment arrives; whether it is acknowledged at once."""
        if left != self.expected:
            self.above = merged([*self.above, (left, right)])
            return True
        self.echo_ns = sent_ns
        self.expected = right
        self.unacknowledged += 1
        filled = bool(self.above)
        while self.above and self.above[0][0] == self.expected:
            self.expected = self.above.pop(0)[1]
        return filled or self.unacknowledged == 2

    def blocks(self, newest: int) -> bytes:
        """The SACK option, the block of the newest segment first; empty where nothing is missing."""
        if not self.above:
            return b""
        blocks = sorted(self.above, key=lambda block: not block[0] <= newest < block[1])[:3]
        edges = [edge & 0xFFFFFFFF for block in blocks for edge in block]
        return struct.pack(f">BBBB{len(edges)}I", 1, 1, 5, 2 + 4 * len(edges), *edges)


def merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in order, those that touch made one."""
    result: list[tuple[int, int]] = []
    for left, right in sorted(ranges):
        if result and result[-1][1] == left:
            result[-1] = (result[-1][0], right)
        else:
            result.append((left, right))
    return result


class Flow:
    """The transfer of one connection, packet by packet in order of time."""

    def __init__(self, number: int, seed: int, kind: Kind, content: bytes) -> None:
        self.random = random.Random(seed * 1_000_003 + number)
        self.kind = kind
        address, peer = struct.pack(">I", 0x0A000001 + number), struct.pack(">I", 0xC0A80001 + number % 250)
        if not kind.flows and number % 5 == 4:
            address, peer = PREFIX + address, PREFIX + peer
        self.sender = Endpoint(address, 10_000 + number % 50_000, peer, 443, kind.snaplen, content)
        self.receiver = Endpoint(peer, 443, address, 10_000 + number % 50_000, kind.snaplen, content)
        self.rtt_ns = self.random.randrange(5, 60) * 1_000_000 * kind.slower
        self.start_ns = START_NS + (self.random.randrange(50_000_000) if kind.flows else number * kind.spacing_ns)
        self.isn, self.peer_isn = self.random.getrandbits(32), self.random.getrandbits(32)
        size = BULK if kind.flows else self.random.choice(kind.sizes) * SMSS - self.random.randrange(SMSS)
        self.end = self.isn + 1 + size
        self.arrived = Receiver(self.isn + 1)

    @staticmethod
    def timestamps(time_ns: int, echo_ns: int) -> bytes:
        return TIMESTAMPS.pack(1, 1, 8, 10, time_ns // 1_000_000 & 0xFFFFFFFF, echo_ns // 1_000_000 & 0xFFFFFFFF)

    def packets(self) -> Iterator[Packet]:
        now, rtt = self.start_ns, self.rtt_ns
        send, reply = self.sender.frame, self.receiver.frame
        syn = struct.pack(">BBHBBBBIIBBBB", 2, 4, 1460, 4, 2, 8, 10, now // 1_000_000 & 0xFFFFFFFF, 0, 1, 3, 3, 7)
        yield send(now, self.isn, 0, SYN, 0, syn)
        yield reply(now + rtt, self.peer_isn, self.isn + 1, SYN | ACK, 0, syn)
        now += rtt + GAP_NS
        una, ack = self.isn + 1, self.peer_isn + 1
        yield send(now, una, ack, ACK, 0, self.timestamps(now, now - rtt))
        window = self.kind.window
        while una < self.end:
            now, una, window = yield from self.round(now + GAP_NS, una, ack, window)
        now += GAP_NS
        yield send(now, una, ack, FIN | ACK, 0, self.timestamps(now, now - rtt))
        yield reply(now + rtt, ack, una + 1, FIN | ACK, 0, self.timestamps(now + rtt, now))
        now += rtt + GAP_NS
        yield send(now, una + 1, ack + 1, ACK, 0, self.timestamps(now, now - rtt))

    def data(self, now: int, left: int, right: int, ack: int, flags: int) -> Packet:
        return self.sender.frame(now, left, ack, flags, right - left, self.timestamps(now, now - self.rtt_ns))

    def round(self, now: int, una: int, ack: int, window: float) -> Generator[Packet, None, tuple[int, int, float]]:
        """One window, its ACKs, and what was lost again; the time after it, the next sequence number and window."""
        ready: list[Packet] = []
        transit: list[tuple[int, int, int, int]] = []  # time its ACK is back, left, right, time it was sent
        lost: list[tuple[int, int]] = []
        nxt = una
        for _ in range(max(int(window), 2)):
            if nxt == self.end:
                break
            left, nxt = nxt, min(nxt + SMSS, self.end)
            ready.append(self.data(now, left, nxt, ack, ACK))
            fate = self.random.random()
            if fate < self.kind.loss:
                lost.append((left, nxt))
            else:
                late = LATE_NS if fate < self.kind.loss + REORDERED else 0
                heapq.heappush(transit, (now + self.rtt_ns + late, left, nxt, now))
            now += GAP_NS
        window = max(window / 2, self.kind.least_window) if lost else min(window + 1, 500.0)
        duplicates = 0
        while transit or lost:
            if lost and (duplicates == 3 or not transit):
                at = now + GAP_NS if duplicates == 3 else now + self.rtt_ns + TIMER_NS
                for left, right in lost:
                    ready.append(self.data(at, left, right, ack, ACK | PSH))
                    heapq.heappush(transit, (at + self.rtt_ns, left, right, at))
                    at += GAP_NS
                lost = []
            now, left, right, sent = heapq.heappop(transit)
            duplicates += left != self.arrived.expected
            if self.arrived.take(left, right, sent) or not transit:
                options = self.timestamps(now, self.arrived.echo_ns) + self.arrived.blocks(left)
                ready.append(self.receiver.frame(now, ack, self.arrived.expected, ACK, 0, options))
                self.arrived.unacknowledged = 0
        ready.sort(key=lambda packet: packet[0])
        yield from ready
        return ready[-1][0], nxt, window


class Merged:
    """Frames of flows in order of time. Flows come in order of their start, and are opened when their time has come."""

    def __init__(self, flows: Iterable[Flow]) -> None:
        self.flows = flows
        self.opened = 0
        self.most_open = 0

    def __iter__(self) -> Iterator[bytes]:
        streams: list[tuple[Packet, int, Iterator[Packet]]] = []
        coming = iter(self.flows)
        flow = next(coming, None)
        while flow or streams:
            while flow and (not streams or flow.start_ns <= streams[0][0][0]):
                packets = flow.packets()
                heapq.heappush(streams, (next(packets), self.opened, packets))
                self.opened += 1
                self.most_open = max(self.most_open, len(streams))
                flow = next(coming, None)
            (_, frame), number, packets = streams[0]
            yield frame
            if following := next(packets, None):
                heapq.heapreplace(streams, (following, number, packets))
            else:
                heapq.heappop(streams)


def flows_of(name: str, packets: int, seed: int) -> Iterable[Flow]:
    """Bulk flows, or short flows without end; of those that are all open at once as many as make so many packets."""
    kind, content = KINDS[name], random.Random(seed).randbytes(CONTENT_BYTES)
    numbers: Iterable[int] = count()
    if name == "open":
        numbers = range(-(-packets // PACKETS_A_FLOW))
    elif kind.flows:
        numbers = range(kind.flows)
    flows = (Flow(number, seed, kind, content) for number in numbers)
    return sorted(flows, key=lambda flow: flow.start_ns) if kind.flows else flows


def generate(out: str, packets: int, flows: str, seed: int) -> str:
    """Write the file and say what is in it."""
    frames = Merged(flows_of(flows, packets, seed))
    with open(out, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, KINDS[flows].snaplen, 1))
        file.writelines(islice(frames, packets))
    return f"{packets:,} packets, {frames.opened:,} connections, at most {frames.most_open:,} open at a time"


if __name__ == "__main__":
    if len(sys.argv) != 5 or sys.argv[3] not in KINDS:
        sys.exit(f"usage: generate.py OUT PACKETS {'|'.join(KINDS)} SEED")
    print(generate(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
