"""Captures made for the tests: a small TCP transfer with losses of our choice, in any link layer and container."""

from __future__ import annotations

import gzip
import ipaddress
import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

ETHERNET, NULL, RAW, LOOP, SLL, IPV4, IPV6, SLL2 = 1, 0, 101, 108, 113, 228, 229, 276
START_NS = 1_700_000_000_000_000_000
FIN, SYN, PSH, ACK = 1, 2, 8, 16
SAMPLES = Path(__file__).parents[1] / "sample-traces"


@dataclass(frozen=True)
class Packet:
    time_ns: int
    data: bytes
    wire_len: int


def tcp(
    src: str,
    dst: str,
    sport: int,
    dport: int,
    seq: int,
    ack: int,
    flags: int,
    payload: int = 0,
    options: bytes = b"",
    window: int = 1000,
    ip_id: int = 0,
    ttl: int = 64,
    checksum: int = 0x1234,
) -> bytes:
    """An IP datagram with a TCP segment; the payload is zeros."""
    options += b"\0" * (-len(options) % 4)
    header = struct.pack(
        ">HHIIHHHH", sport, dport, seq % 2**32, ack % 2**32, (5 + len(options) // 4) << 12 | flags, window, checksum, 0
    )
    segment = header + options + bytes(payload)
    source, target = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    if source.version == 4:
        fixed = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), ip_id % 65536, 0x4000, ttl, 6, 0)
        return fixed + source.packed + target.packed + segment
    return struct.pack(">IHBB", 6 << 28, len(segment), 6, ttl) + source.packed + target.packed + segment


def link(datagram: bytes, link_type: int, tags: Iterable[int] = ()) -> bytes:
    """The datagram behind a header of that link type; `tags` are EtherTypes of VLAN tags."""
    version = datagram[0] >> 4
    ethertype = 0x0800 if version == 4 else 0x86DD
    tail = b""
    kinds = [*tags, ethertype]
    for kind in kinds[1:]:
        tail += struct.pack(">HH", 7, kind)
    match link_type:
        case 1:
            return bytes(12) + struct.pack(">H", kinds[0]) + tail + datagram
        case 0:
            return struct.pack("<I", 2 if version == 4 else 30) + datagram
        case 108:
            return struct.pack(">I", 2 if version == 4 else 30) + datagram
        case 113:
            return struct.pack(">HHH8sH", 4, 1, 6, bytes(8), kinds[0]) + tail + datagram
        case 276:
            return struct.pack(">HHIHBB8s", kinds[0], 0, 1, 1, 4, 6, bytes(8)) + tail + datagram
        case _:
            return datagram


@dataclass
class Transfer:
    """A sender of `segments` segments over a path of one delay, seen at the sender, that resends what was lost."""

    segments: int = 40
    lost: frozenset[int] = frozenset()
    v6: bool = False
    rtt_s: float = 0.05
    mss: int = 1000
    window: int = 10
    isn: int = 1000
    sport: int = 40000
    start_s: float = 0.0
    link_type: int = ETHERNET
    tags: tuple[int, ...] = ()
    snaplen: int = 65535
    packets: list[Packet] = field(default_factory=list)

    def run(self) -> list[Packet]:
        """The packets at the sender, in order of time."""
        self._client, self._server = ("fd00::1", "fd00::2") if self.v6 else ("10.0.0.1", "10.0.0.2")
        self._ids = 0
        rtt = self.rtt_s
        syn = b"\x02\x04" + struct.pack(">H", self.mss) + b"\x04\x02\x01\x03\x03\x07"
        self._out(0, self.isn, 0, SYN, options=syn)
        self._in(rtt, 5000, self.isn + 1, SYN | ACK, options=syn)
        self._out(rtt + 1e-5, self.isn + 1, 5001, ACK)
        now, sent = rtt + 1e-4, 0
        while sent < self.segments:
            burst = range(sent, min(sent + self.window, self.segments))
            arrived = []
            for number in burst:
                self._data(now + 1e-4 * (number - sent), number)
                if number not in self.lost:
                    arrived.append(number)
            sent = burst.stop
            self._round(now, burst, arrived)
            now += 2 * rtt + 0.01 if len(arrived) < len(burst) else rtt + 0.01
        self._out(now, self._seq(self.segments), 5001, FIN | ACK)
        self._in(now + rtt, 5001, self._seq(self.segments) + 1, FIN | ACK)
        self._out(now + rtt + 1e-5, self._seq(self.segments) + 1, 5002, ACK)
        self.packets.sort(key=lambda packet: packet.time_ns)
        return self.packets

    def _round(self, now: float, burst: range, arrived: list[int]) -> None:
        """ACKs of a burst, and the repair of its holes a round trip later."""
        received: set[int] = set(range(burst.start))
        for at, number in enumerate(arrived):
            received.add(number)
            self._ack(now + self.rtt_s + 1e-4 * at, received)
        missing = [number for number in burst if number not in received]
        resend = now + self.rtt_s + 1e-4 * len(burst)
        for at, number in enumerate(missing):
            self._data(resend + 1e-4 * at, number)
            received.add(number)
            self._ack(resend + self.rtt_s + 1e-4 * at, received)

    def _ack(self, at: float, received: set[int]) -> None:
        edge = 0
        while edge in received:
            edge += 1
        above = sorted(number for number in received if number > edge)
        options = b""
        if above:
            left, right = above[0], above[0]
            while right + 1 in received:
                right += 1
            options = b"\x01\x01\x05\x0a" + struct.pack(">II", self._seq(left), self._seq(right + 1))
        self._in(at, 5001, self._seq(edge), ACK, options=options)

    def _seq(self, number: int) -> int:
        return (self.isn + 1 + number * self.mss) % 2**32

    def _data(self, at: float, number: int) -> None:
        self._out(at, self._seq(number), 5001, ACK | PSH, payload=self.mss)

    def _out(self, at: float, seq: int, ack: int, flags: int, payload: int = 0, options: bytes = b"") -> None:
        self._ids += 1
        ends = (self._client, self._server, self.sport, 80)
        self._add(at, tcp(*ends, seq, ack, flags, payload, options, ip_id=self._ids))

    def _in(self, at: float, seq: int, ack: int, flags: int, options: bytes = b"") -> None:
        ends = (self._server, self._client, 80, self.sport)
        self._add(at, tcp(*ends, seq, ack, flags, 0, options, ip_id=0))

    def _add(self, at: float, datagram: bytes) -> None:
        frame = link(datagram, self.link_type, self.tags)
        self.packets.append(Packet(START_NS + round((self.start_s + at) * 1e9), frame[: self.snaplen], len(frame)))


def pcap(packets: Iterable[Packet], link_type: int = ETHERNET, order: str = "<", nanoseconds: bool = True) -> bytes:
    """A pcap file."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    out = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, link_type)]
    for packet in packets:
        seconds, fraction = divmod(packet.time_ns, 1_000_000_000)
        fraction //= 1 if nanoseconds else 1000
        out.append(struct.pack(f"{order}IIII", seconds, fraction, len(packet.data), packet.wire_len))
        out.append(packet.data)
    return b"".join(out)


def pcapng(
    packets: Iterable[Packet],
    link_type: int = ETHERNET,
    order: str = "<",
    resolution: int = 9,
    simple: Collection[int] = (),
) -> bytes:
    """A pcapng file of one section and one interface; the frames `simple` are in blocks that have no time."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = struct.pack(f"{order}I", 12 + len(body))
        return struct.pack(f"{order}I", kind) + length + body + length

    option = struct.pack(f"{order}HHB3xHH", 9, 1, resolution, 0, 0)
    out = [block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))]
    out.append(block(1, struct.pack(f"{order}HHI", link_type, 0, 0) + option))
    for frame, packet in enumerate(packets, 1):
        if frame in simple:
            out.append(block(3, struct.pack(f"{order}I", packet.wire_len) + packet.data))
            continue
        ticks = packet.time_ns * 10**resolution // 10**9
        head = struct.pack(f"{order}IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(packet.data), packet.wire_len)
        out.append(block(6, head + packet.data + bytes(-len(packet.data) % 4)))
    return b"".join(out)


def of_sample(name: str) -> list[Packet]:
    """Packets of a sample in classic pcap, little endian."""
    data = gzip.decompress((SAMPLES / f"{name}.pcap.gz").read_bytes())
    unit = {0xA1B23C4D: 1, 0xA1B2C3D4: 1000}[struct.unpack("<I", data[:4])[0]]
    at, found = 24, []
    while at < len(data):
        seconds, part, length, wire = struct.unpack("<IIII", data[at : at + 16])
        at += 16
        found.append(Packet(seconds * 1_000_000_000 + part * unit, data[at : at + length], wire))
        at += length
    return found
