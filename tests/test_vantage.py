"""Where captures were taken that begin during their connections: by what the first packets show, or not at all."""

from __future__ import annotations

import gzip
import ipaddress
import struct
from dataclasses import dataclass
from pathlib import Path

import captures
import polars as pl
import pytest
from captures import ACK, PSH, Packet, tcp

import tcpfit

SAMPLES = Path(__file__).parent.parent / "sample-traces"
CLIENT, SERVER = 0, 1
HOSTS = {4: ("10.0.0.1", "192.0.2.9"), 6: ("2001:db8::1", "2001:db8:1::9")}
DELAYED_S = 0.04
LOCAL_S = 2e-5
"""What a host takes to answer itself."""


@dataclass
class Talk:
    """Requests and responses, seen `ways_s` (there and back) from the client and from the server. The server takes
    `service_s` for a response of some segments; the client takes `think_s` before it asks again, and acknowledges every
    second segment, or after 40 ms."""

    ways_s: tuple[float, float]
    service_s: float = 0.02
    think_s: float = 1.0
    segments: int = 1
    requests: int = 30
    stamps: bool = True
    version: int = 4
    ttls: tuple[int, int] = (64, 64)
    offloads: tuple[bool, bool] = (False, False)

    def packets(self) -> list[Packet]:
        self._packets: list[Packet] = []
        self._sent, self._stamp = [1, 1], [0, 0]
        now = 0.0
        for _ in range(self.requests):
            # times are those at the capture
            self._send(now, CLIENT, 400)
            now += self.ways_s[SERVER] + self.service_s
            for n in range(1, self.segments + 1):
                self._send(now, SERVER, 1448)
                if n % 2 == 0:
                    self._send(now + self.ways_s[CLIENT], CLIENT)
            if self.segments % 2 and self.think_s > DELAYED_S:
                self._send(now + self.ways_s[CLIENT] + DELAYED_S, CLIENT)
            now += self.ways_s[CLIENT] + self.think_s
        return sorted(self._packets, key=lambda packet: packet.time_ns)

    def _send(self, time_s: float, end: int, size: int = 0) -> None:
        src, dst = HOSTS[self.version] if end == CLIENT else HOSTS[self.version][::-1]
        ports = (40_000, 443) if end == CLIENT else (443, 40_000)
        options = b""
        if self.stamps:
            # stamped where it is sent, half a way before
            self._stamp[end] = 10_000 + round(1e3 * (time_s - self.ways_s[end] / 2))
            options = b"\1\1\x08\x0a" + struct.pack(">II", self._stamp[end], self._stamp[1 - end])
        sum_ = pseudo_header_sum(src, dst, 20 + len(options) + size) if self.offloads[end] else 0x1234
        data = tcp(
            src, dst, *ports, self._sent[end], self._sent[1 - end], ACK | (PSH if size else 0), size, options,
            ttl=self.ttls[end], checksum=sum_,
        )  # fmt: skip
        data = captures.link(data, captures.ETHERNET)
        self._packets.append(Packet(captures.START_NS + round(time_s * 1e9), data, len(data)))
        self._sent[end] += size


def pseudo_header_sum(src: str, dst: str, length: int) -> int:
    """RFC 9293, 3.1."""
    header = ipaddress.ip_address(src).packed + ipaddress.ip_address(dst).packed + struct.pack(">II", length, 6)
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total > 0xFFFF:
        total = (total >> 16) + (total & 0xFFFF)
    return total


def places(path: Path, packets: list[Packet]) -> list[str]:
    """Of the client's data, and of the server's."""
    path.write_bytes(captures.pcap(packets))
    flows = tcpfit.analyze(path).flows.sort(pl.col("src_port"), descending=True)
    return flows["vantage"].to_list()


AT_CLIENT, AT_SERVER = ["sender", "receiver"], ["receiver", "sender"]
UNKNOWN = ["unknown", "unknown"]
NEAR = {"client": (LOCAL_S, 0.03), "server": (0.03, LOCAL_S), "path": (0.02, 0.01)}
RIGHT = {"client": AT_CLIENT, "server": AT_SERVER, "path": ["middle", "middle"]}


@pytest.mark.parametrize("stamps", [True, False])
@pytest.mark.parametrize("segments", [1, 3, 10])
@pytest.mark.parametrize("think_s", [0.005, 0.2, 1.0])
@pytest.mark.parametrize("service_s", [0.0, 0.02, 0.5])
@pytest.mark.parametrize("place", NEAR)
def test_time_to_think_is_no_distance(tmp_path, place, service_s, think_s, segments, stamps):
    """Hosts that think, and hold their ACKs back, are not far: the other end is not called near for it."""
    talk = Talk(NEAR[place], service_s, think_s, segments, stamps=stamps)
    assert places(tmp_path / "a.pcap", talk.packets()) in (RIGHT[place], UNKNOWN)


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("think_s", [0.005, 1.0])
@pytest.mark.parametrize(("place", "ttls"), [("client", (128, 57)), ("server", (49, 64))])
def test_who_has_passed_no_router_is_near(tmp_path, place, ttls, think_s, version):
    talk = Talk(NEAR[place], think_s=think_s, ttls=ttls, version=version)
    assert RIGHT[place] == places(tmp_path / "a.pcap", talk.packets())


@pytest.mark.parametrize("ttls", [(64, 128), (61, 57), (0, 0), (0, 57)])
def test_times_to_live_that_say_nothing(tmp_path, ttls):
    talk = Talk(NEAR["client"], ttls=ttls)
    assert UNKNOWN == places(tmp_path / "a.pcap", talk.packets())


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("stamps", [True, False])
@pytest.mark.parametrize(("place", "offloads"), [("client", (True, False)), ("server", (False, True))])
def test_a_checksum_to_be_computed_is_at_its_host(tmp_path, place, offloads, stamps, version):
    talk = Talk(NEAR[place], offloads=offloads, stamps=stamps, version=version)
    assert RIGHT[place] == places(tmp_path / "a.pcap", talk.packets())


def test_checksums_computed_by_neither_end_say_nothing(tmp_path):
    """Containers of one machine leave them out on both ways."""
    talk = Talk(NEAR["client"], offloads=(True, True))
    assert UNKNOWN == places(tmp_path / "a.pcap", talk.packets())


@pytest.mark.parametrize("name", ["sack-loss", "ecn-marks"])
@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_a_transfer_tells_as_well_as_its_handshake(tmp_path, name, end):
    whole = gzip.decompress((SAMPLES / f"{name}-{end}.pcap.gz").read_bytes())
    packets, at = [], 24
    while at < len(whole):
        packets.append(whole[at : at + 16 + int.from_bytes(whole[at + 8 : at + 12], "little")])
        at += len(packets[-1])
    (tmp_path / "a.pcap").write_bytes(whole[:24] + b"".join(packets[len(packets) // 3 :]))
    assert [end] == tcpfit.analyze(tmp_path / "a.pcap").flows["vantage"].to_list()


def test_a_machine_that_talks_to_itself_is_both_ends(tmp_path):
    talk = Talk((LOCAL_S, LOCAL_S), service_s=0.5)
    packets = [
        Packet(packet.time_ns, packet.data.replace(bytes([192, 0, 2, 9]), bytes([10, 0, 0, 1])), packet.wire_len)
        for packet in talk.packets()
    ]
    assert ["sender", "sender"] == places(tmp_path / "a.pcap", packets)
