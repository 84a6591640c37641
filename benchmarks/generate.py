"""Write a pcap of bulk TCP flows with losses, retransmissions and ACKs: `generate.py OUT PACKETS FLOWS SEED`.

Deterministic: the same arguments give the same bytes. A round of a flow is a window of full-sized segments, of which
the share LOSS is lost between sender and receiver (the capture is at the sender), an ACK for every second segment, with
SACK blocks after a hole, and the retransmission a round trip later; the window halves then and grows by one a round.
Frames are cut to 128 bytes as `tcpdump -s 128` would; nothing but headers and options of a packet is read by tcpfit.
"""

from __future__ import annotations

import heapq
import random
import struct
import sys
from collections.abc import Iterator

LOSS = 0.001
SMSS = 1448
SNAPLEN = 128
START_NS = 1_700_000_000 * 10**9
GAP_NS = 12_000  # of a sender at about 1 Gbit/s
FIN, SYN, PSH, ACK = 1, 2, 8, 16

RECORD = struct.Struct("<IIII")
IP_AND_TCP = struct.Struct(">BBHHHBBH4s4sHHIIHHHH")
TIMESTAMPS = struct.Struct(">BBBBII")

ETHERNET = b"\x02\0\0\0\0\1\x02\0\0\0\0\2\x08\0"
PADDING = bytes(SNAPLEN)


class Endpoint:
    """One side of a connection: builds its frames."""

    def __init__(self, address: bytes, port: int, peer: bytes, peer_port: int) -> None:
        self.ends = (address, peer, port, peer_port)
        self.ip_id = port

    def frame(self, time_ns: int, seq: int, ack: int, flags: int, payload: int, options: bytes) -> bytes:
        source, destination, port, peer_port = self.ends
        header = 20 + len(options)
        total = 20 + header + payload
        self.ip_id = (self.ip_id + 1) & 0xFFFF
        headers = IP_AND_TCP.pack(
            *(0x45, 0, total, self.ip_id, 0x4000, 64, 6, 0, source, destination),
            *(port, peer_port, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, header // 4 << 12 | flags, 0x4000, 0xBEEF, 0),
        )
        data = ETHERNET + headers + options
        wire = 14 + total
        data = (data + PADDING[: min(wire, SNAPLEN) - len(data)])[:SNAPLEN]
        seconds, rest = divmod(time_ns, 10**9)
        return RECORD.pack(seconds, rest, len(data), wire) + data


class Flow:
    """A bulk transfer of one connection, packet by packet in order of time."""

    def __init__(self, number: int, seed: int) -> None:
        self.random = random.Random(seed * 1_000_003 + number)
        address, peer = struct.pack(">I", 0x0A000001 + number), struct.pack(">I", 0xC0A80001 + number % 250)
        self.sender = Endpoint(address, 10_000 + number % 50_000, peer, 443)
        self.receiver = Endpoint(peer, 443, address, 10_000 + number % 50_000)
        self.rtt_ns = self.random.randrange(5, 60) * 1_000_000
        self.start_ns = START_NS + self.random.randrange(50_000_000)
        self.isn, self.peer_isn = self.random.getrandbits(32), self.random.getrandbits(32)

    @staticmethod
    def timestamps(time_ns: int, echo_ns: int) -> bytes:
        return TIMESTAMPS.pack(1, 1, 8, 10, time_ns // 1_000_000 & 0xFFFFFFFF, echo_ns // 1_000_000 & 0xFFFFFFFF)

    def packets(self) -> Iterator[tuple[int, bytes]]:
        now, rtt = self.start_ns, self.rtt_ns
        send, reply = self.sender.frame, self.receiver.frame
        syn = struct.pack(">BBHBBBBIIBBBB", 2, 4, 1460, 4, 2, 8, 10, now // 1_000_000 & 0xFFFFFFFF, 0, 1, 3, 3, 7)
        yield now, send(now, self.isn, 0, SYN, 0, syn)
        yield now + rtt, reply(now + rtt, self.peer_isn, self.isn + 1, SYN | ACK, 0, syn)
        now += rtt + 10_000
        una, ack = self.isn + 1, self.peer_isn + 1
        yield now, send(now, una, ack, ACK, 0, self.timestamps(now, now - rtt))
        window = 10.0
        resend: list[int] = []
        while True:
            now, una, resend, window = yield from self.round(now, una, ack, window, resend)

    def round(self, now: int, una: int, ack: int, window: float, resend: list[int]):
        """One window and its acknowledgements; what was lost is sent again first in the next, once they are all in."""
        ready: list[tuple[int, bytes]] = []
        lost: list[int] = []
        count = max(int(window), 2)
        last = now
        for seq in resend:
            ready.append((last, self.sender.frame(last, seq, ack, ACK | PSH, SMSS, self.timestamps(last, last))))
            last += GAP_NS
        for i in range(count):
            seq, sent = una + i * SMSS, last
            options = self.timestamps(sent, sent - self.rtt_ns)
            ready.append((sent, self.sender.frame(sent, seq, ack, ACK, SMSS, options)))
            last += GAP_NS
            if self.random.random() < LOSS:
                lost.append(seq)
            elif lost or i % 2 or i == count - 1:
                arrived = sent + self.rtt_ns
                options = self.timestamps(arrived, sent)
                left = seq + SMSS
                if lost:
                    left = lost[0]
                    edges = (lost[-1] + SMSS & 0xFFFFFFFF, seq + SMSS & 0xFFFFFFFF)
                    options += struct.pack(">BBBBII", 1, 1, 5, 10, *edges)
                ready.append((arrived, self.receiver.frame(arrived, ack, left, ACK, 0, options)))
        ready.sort(key=lambda packet: packet[0])
        yield from ready
        window = max(window / 2, 2.0) if lost else min(window + 1, 500.0)
        return last + self.rtt_ns, una + count * SMSS, lost, window


def generate(out: str, packets: int, flows: int, seed: int) -> None:
    """Merge the flows by time."""
    streams = heapq.merge(*(Flow(number, seed).packets() for number in range(flows)), key=lambda packet: packet[0])
    with open(out, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAPLEN, 1))
        buffer: list[bytes] = []
        for count, (_, frame) in enumerate(streams, 1):
            buffer.append(frame)
            if count == packets:
                break
            if len(buffer) == 4096:
                file.write(b"".join(buffer))
                buffer.clear()
        file.write(b"".join(buffer))


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit("usage: generate.py OUT PACKETS FLOWS SEED")
    generate(sys.argv[1], *map(int, sys.argv[2:]))
