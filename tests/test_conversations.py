"""Connections in which both ends send, on LANs, behind mirror ports, among thousands of others: what only looks like a
loss, a timer or a copy is none."""

from __future__ import annotations

import heapq
import struct
from pathlib import Path

import captures
import polars as pl
import pytest
from captures import ACK, PSH, SYN, Packet, tcp
from test_scenarios import FOLDER, Reader

import tcpfit

FLAGS_OF_SYN = b"\x02\x04\x05\xb4\x04\x02\x01\x03\x03\x07"
"""Options: MSS 1460, SACK, window scale 7."""


class Conversation:
    """Packets between a client (end 0) and a server (end 1), times in seconds. Each end counts its identifications up,
    for lost packets too; IPv6 has none."""

    def __init__(self, *, v6: bool = False, stamps: bool = True) -> None:
        self.ends = ("fd00::1", "fd00::2") if v6 else ("10.0.0.1", "10.0.0.2")
        self.stamps = stamps
        self.ids = [100, 9000]
        self.packets: list[Packet] = []

    def send(
        self, time_s: float, end: int, seq: int, ack: int, size: int = 0, *, syn: bool = False, lost: bool = False,
        echo_s: float = 0.0, twice_s: float = 0.0,
    ) -> None:  # fmt: skip
        """A segment; sequence numbers count from the initial ones. `echo_s`: when the segment was sent whose time stamp
        it echoes; `twice_s`: its copy comes so much later."""
        self.ids[end] += 1
        if lost:
            return
        options = FLAGS_OF_SYN if syn else b""
        if self.stamps:
            options += b"\x01\x01\x08\x0a" + struct.pack(
                ">II", 10_000 + round(1e3 * time_s), 10_000 + round(1e3 * echo_s)
            )
        flags = (SYN if syn else PSH if size else 0) | (0 if syn and end == 0 else ACK)
        ports = (40_000, 443) if end == 0 else (443, 40_000)
        isns = (1_000_000, 5_000_000) if end == 0 else (5_000_000, 1_000_000)
        data = tcp(
            *(self.ends if end == 0 else self.ends[::-1]), *ports, isns[0] + seq, isns[1] + ack, flags, size, options,
            ip_id=self.ids[end],
        )  # fmt: skip
        data = captures.link(data, captures.ETHERNET)
        for later_s in (0.0, twice_s) if twice_s else (0.0,):
            self.packets.append(Packet(captures.START_NS + round((time_s + later_s) * 1e9), data, len(data)))

    def open(self, client_s: float, server_s: float, **how: float) -> None:
        """The handshake, as seen `client_s` from the client and `server_s` from the server (there and back)."""
        self.send(0.0, 0, 0, 0, syn=True, **how)
        self.send(server_s, 1, 0, 1, syn=True, **how)
        self.send(server_s + client_s, 0, 1, 1, echo_s=server_s, **how)

    def read(self, path: Path) -> tcpfit.Analysis:
        path.write_bytes(captures.pcap(sorted(self.packets, key=lambda packet: packet.time_ns)))
        return tcpfit.analyze(path)


def of(found: tcpfit.Analysis, end: int) -> dict[str, object]:
    """The flow of that end's data."""
    return found.flows.filter(pl.col("src_port") == (40_000, 443)[end]).row(0, named=True)


@pytest.mark.parametrize("pause_s", [0.3, 1.0, 3.0])
def test_an_ack_that_was_lost_is_no_data(tmp_path, pause_s):
    """At the server: the client's requests all come, now and then one of its ACKs does not. Its identifications skip
    one, and the next request comes after a pause, as if it were the resend of a lost one."""
    talk = Conversation()
    talk.open(0.04, 1e-5)
    for n in range(30):
        now = 0.1 + n * pause_s
        talk.send(now, 0, 1 + 300 * n, 1 + 14_480 * n, 300, echo_s=now - 0.1)
        for k in range(10):
            sent = now + 0.001 + 1e-5 * k
            talk.send(sent, 1, 1 + 14_480 * n + 1448 * k, 301 + 300 * n, 1448, echo_s=now)
            if k % 2:
                lost = n % 5 == 3 and k == 5
                talk.send(sent + 0.04, 0, 301 + 300 * n, 1 + 14_480 * n + 1448 * (k + 1), echo_s=sent, lost=lost)
    flow = of(talk.read(tmp_path / "a.pcap"), 0)
    assert ("receiver", 30) == (flow["vantage"], flow["data_segments"])
    assert (0, 0, 0) == (flow["lost_segments"], flow["tail_loss_probes"], flow["timeouts"])


@pytest.mark.parametrize("server_us", [120, 250])
def test_a_fast_lan_is_no_loopback(tmp_path, server_us):
    talk = Conversation()
    talk.open(15e-6, 1e-6 * server_us)
    talk.send(3e-4, 0, 1, 1, 200)
    for n in range(20):
        talk.send(1e-3 + 1e-4 * n, 1, 1 + 1448 * n, 201, 1448)
        talk.send(1e-3 + 1e-4 * n + 1e-5, 0, 201, 1449 + 1448 * n)
    found = talk.read(tmp_path / "a.pcap")
    assert ["sender", "receiver"] == [of(found, end)["vantage"] for end in (0, 1)]


def test_a_machine_that_talks_to_itself_is_both_ends(tmp_path):
    talk = Conversation()
    talk.open(15e-6, 20e-6)
    talk.send(1e-4, 0, 1, 1, 200)
    talk.send(2e-4, 1, 1, 201, 200)
    found = talk.read(tmp_path / "a.pcap")
    assert ["sender", "sender"] == [of(found, end)["vantage"] for end in (0, 1)]


@pytest.mark.parametrize("beside", [False, True])
def test_a_probe_is_one_beside_the_data_of_the_other_end(tmp_path, beside):
    """At the client: of its requests one is lost, and the probe comes 243 ms later. Data of the server keep coming."""
    rtt, lost, probe = 0.04, 4, 0.243
    asked = [0.5 + 0.3 * n for n in range(8)]
    heard = [time + rtt + (probe if n == lost else 0.0) for n, time in enumerate(asked)]
    talk = Conversation()
    talk.open(1e-5, rtt)
    happened = [(time, "request", n) for n, time in enumerate(asked)] + [(asked[lost] + probe, "request", lost)]
    happened += [(time, "answer", n) for n, time in enumerate(heard)]
    happened += [(0.5003 + 0.0005 * n, "data", n) for n in range(5000)] if beside else []
    received = 0
    for now, what, n in sorted(happened):
        acknowledged = 1 + 100 * next((i for i, time in enumerate(heard) if time > now), len(heard))
        if what == "request":
            talk.send(now, 0, 1 + 100 * n, 1 + 1448 * received, 100, echo_s=now - 2e-4)
        elif what == "answer":
            talk.send(now, 1, 1 + 1448 * received, acknowledged, echo_s=now - rtt)
        else:
            talk.send(now, 1, 1 + 1448 * received, acknowledged, 1448, echo_s=now - rtt)
            received += 1
            if received % 2 == 0:
                sent = 1 + 100 * sum(time <= now for time in asked)
                talk.send(now + 2e-5, 0, sent, 1 + 1448 * received, echo_s=now)
    flow = of(talk.read(tmp_path / "a.pcap"), 0)
    assert ("sender", 1, 1, 0) == tuple(
        flow[name] for name in ("vantage", "lost_segments", "tail_loss_probes", "timeouts")
    )


def test_a_mirror_port_between_packets_makes_no_losses_where_nothing_counts_them(tmp_path):
    """IPv6, in the middle: each packet twice, 20 us apart, and three others between."""
    talk = Conversation(v6=True)
    talk.open(0.02, 0.03, twice_s=2e-5)
    talk.send(0.0501, 0, 1, 1, 200, echo_s=0.03, twice_s=2e-5)
    talk.send(0.0801, 1, 1, 201, echo_s=0.05, twice_s=2e-5)
    for n in range(160):
        now = 0.1 + 0.055 * (n // 16) + 5e-6 * (n % 16)
        talk.send(now, 1, 1 + 1428 * n, 201, 1428, echo_s=now - 0.01, twice_s=2e-5)
        if n % 2:
            talk.send(now + 0.02, 0, 201, 1429 + 1428 * n, echo_s=now, twice_s=2e-5)
    flow = of(talk.read(tmp_path / "a.pcap"), 1)
    assert (160, 160, 0, 0) == tuple(
        flow[name] for name in ("sent_segments", "duplicated_segments", "lost_segments", "retransmitted_segments")
    )


def test_acks_of_one_checksum_are_not_copies_of_each_other(tmp_path):
    """IPv6 at a client whose card fills in checksums: all ACKs have the same in the capture. They come 4 us apart."""
    talk = Conversation(v6=True)
    talk.open(1e-5, 0.01)
    talk.send(0.0101, 0, 1, 1, 200, echo_s=0.01)
    for n in range(320):
        now = 0.0201 + 0.01 * (n // 16) + 2e-6 * (n % 16)
        talk.send(now, 1, 1 + 1428 * n, 201, 1428, echo_s=now - 0.01)
        if n % 2:
            talk.send(now + 5e-7, 0, 201, 1429 + 1428 * n, echo_s=now)
    flow = of(talk.read(tmp_path / "a.pcap"), 1)
    assert (160, 320 * 1428) == (flow["acks"], flow["acked_bytes"])


@pytest.mark.parametrize("others", [0, 2200])
def test_a_connection_among_many_lingers_as_alone(tmp_path, others):
    """Data and a FIN of one end are sent again for half a minute after both ends' FINs; many are kept packed."""
    own = Reader().read((FOLDER / "both-fins-then-timeouts.trace").read_text()).packets
    start = own[0].time_ns - 10**9
    handshake = (
        ("10.9.0.1", "10.9.0.2", 7, 0, SYN, FLAGS_OF_SYN),
        ("10.9.0.2", "10.9.0.1", 9, 8, SYN | ACK, FLAGS_OF_SYN),
        ("10.9.0.1", "10.9.0.2", 8, 10, ACK, b""),
    )
    packets = []
    for n in range(others):
        for step, (src, dst, seq, ack, flags, options) in enumerate(handshake):
            ports = (10_000 + n, 80) if src == "10.9.0.1" else (80, 10_000 + n)
            data = captures.link(tcp(src, dst, *ports, seq, ack, flags, 0, options, ip_id=n + step), captures.ETHERNET)
            packets.append(Packet(start + 1000 * n + 100_000_000 * step, data, len(data)))
    path = tmp_path / "a.pcap"
    path.write_bytes(captures.pcap(sorted([*packets, *own], key=lambda packet: packet.time_ns)))
    found = tcpfit.analyze(path).flows
    assert [(19, 5, 4)] == found.select("sent_segments", "lost_segments", "timeouts").rows()


@pytest.mark.parametrize("rtt_s", [0.0006, 0.001, 0.002])
def test_a_round_trip_below_a_tick_is_not_the_time_to_the_next_packet(tmp_path, rtt_s):
    """At a receiver in a LAN: many ACKs have one time stamp, and of these the one that a segment echoes has come. A
    window of 40 segments, of which every 150th is lost; the third duplicate ACK asks for it again."""
    talk = Conversation()
    talk.open(rtt_s, 1e-5)
    arriving = [(0.01 + 1.2e-5 * n, n, rtt_s) for n in range(40)]  # at the receiver: time, number, stamp echoed
    held: set[int] = set()
    expected = duplicates = 0
    sent, free = 40, arriving[-1][0]
    while arriving:
        now, number, echo_s = heapq.heappop(arriving)
        talk.send(now, 0, 1 + 1448 * number, 1, 1448, echo_s=echo_s)
        held.add(number)
        duplicates = 0 if number == expected else duplicates + 1
        while expected in held:
            expected += 1
        talk.send(now + 2e-6, 1, 1, 1 + 1448 * expected, echo_s=now - rtt_s / 2)
        again = [expected] if duplicates == 3 else []
        for new in [*again, *range(sent, min(sent + 1, 1500))]:
            free = max(free + 1.2e-5, now + 2e-6 + rtt_s)
            if new % 150 != 149 or new in again:
                heapq.heappush(arriving, (free, new, now + 2e-6))
        sent = min(sent + 1, 1500)
    flow = of(talk.read(tmp_path / "a.pcap"), 0)
    assert ("receiver", 9) == (flow["vantage"], flow["lost_segments"])
    assert rtt_s == pytest.approx(flow["rtt_min_s"], rel=0.03)
