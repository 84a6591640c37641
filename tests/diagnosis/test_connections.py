"""Are the packets of a flow those of its own VLAN, and of no other connection between the same ends?"""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import captures
import polars as pl
import pytest
from captures import ETHERNET, Packet, Transfer

import tcpfit
from tcpfit.diagnosis import findings
from tcpfit.diagnosis.connections import segments_of
from tcpfit.diagnosis.stalls import stalls
from tcpfit.report import traffic

SAMPLE = Path(__file__).resolve().parents[2] / "sample-traces/findings/broken-off.pcap.gz"
RST = 4


def tagged(frame: bytes, vlan: int) -> bytes:
    return frame[:12] + struct.pack(">HH", 0x8100, vlan) + frame[12:]


def sample() -> list[Packet]:
    """The packets of the sample, a little-endian file of microseconds."""
    data, at, packets = gzip.decompress(SAMPLE.read_bytes()), 24, []
    while at < len(data):
        seconds, micros, kept, wire = struct.unpack_from("<IIII", data, at)
        packets.append(Packet(seconds * 10**9 + micros * 1000, data[at + 16 : at + 16 + kept], wire))
        at += 16 + kept
    return packets


def in_vlan(packets: list[Packet], vlan: int, later_s: float = 0.0) -> list[Packet]:
    return [Packet(p.time_ns + round(later_s * 1e9), tagged(p.data, vlan), p.wire_len + 4) for p in packets]


def analysed(path: Path, *streams: list[Packet]) -> tcpfit.Analysis:
    packets = sorted((packet for stream in streams for packet in stream), key=lambda packet: packet.time_ns)
    path.write_bytes(captures.pcap(packets, ETHERNET))
    return tcpfit.analyze(path, segments=True)


def is_reset(packet: Packet) -> bool:
    """A frame of IPv4 without options."""
    return bool(packet.data[14 + 20 + 13] & RST)


def test_a_transfer_in_another_vlan_is_no_part_of_the_broken_one(tmp_path):
    packets = sample()
    alone = analysed(tmp_path / "alone.pcap", in_vlan(packets, 1))
    whole = [packet for packet in packets if not is_reset(packet)]
    both = analysed(tmp_path / "both.pcap", in_vlan(packets, 1), in_vlan(whole, 2, later_s=0.2))
    of = {
        name: [row for row in both.flows.to_dicts() if (row["reset_frame"] is not None) == broken]
        for name, broken in (("broken", True), ("whole", False))
    }
    claims = [one.claim for row in alone.flows.to_dicts() for one in findings.find(alone, row["flow"])]
    assert claims == [one.claim for row in of["broken"] for one in findings.find(both, row["flow"])]
    assert "broken-off" not in {one.name for row in of["whole"] for one in findings.find(both, row["flow"])}
    for row, expected in zip(of["broken"], alone.flows.to_dicts(), strict=True):
        found, known = segments_of(both, row), segments_of(alone, expected)
        assert known["time_ns"].to_list() == found["time_ns"].to_list()
        silences = [stalls(expected, alone.events, known), stalls(row, both.events, found)]
        assert [s.length_s for s in silences[0]] == [s.length_s for s in silences[1]]


def test_offsets_count_in_their_own_vlan(tmp_path):
    first = Transfer(link_type=ETHERNET, lost=frozenset({7})).run()
    second = Transfer(link_type=ETHERNET, isn=900_000).run()
    found = analysed(tmp_path / "a.pcap", in_vlan(first, 10), in_vlan(second, 20, later_s=0.001))
    table = traffic.labelled(found).filter(pl.col("payload") > 0)
    assert [0, 1] == sorted(table["connection"].unique())
    assert {0: 40_001, 1: 40_001} == {c: t["right"].max() for (c,), t in table.group_by("connection")}
    assert 2 == table.select("around", "connection").n_unique()


def test_copies_of_one_time_in_two_vlans_are_told_apart(tmp_path):
    packets = Transfer(link_type=ETHERNET).run()
    found = analysed(tmp_path / "a.pcap", in_vlan(packets, 10), in_vlan(packets, 20))
    arounds = [segments_of(found, row)["around"].unique().to_list() for row in found.flows.to_dicts()]
    assert [1, 1] == [len(each) for each in arounds]
    assert arounds[0] != arounds[1]


@pytest.mark.parametrize(("there", "back"), [(10, 20), (None, 10), (10, None)])
def test_a_direction_in_another_vlan_is_of_the_connection(there, back, tmp_path):
    packets = [
        packet if vlan is None else Packet(packet.time_ns, tagged(packet.data, vlan), packet.wire_len + 4)
        for packet in Transfer(link_type=ETHERNET).run()
        for vlan in [there if packet.data[26:30] == bytes([10, 0, 0, 1]) else back]
    ]
    found = analysed(tmp_path / "a.pcap", packets)
    assert 1 == found.flows.height
    assert found.segments.equals(segments_of(found, found.flows.row(0, named=True)))
    assert 0 == traffic.labelled(found)["connection"].null_count()
