"""Has every TCP stream, in each direction, the packets and the bytes of payload that tshark counts?"""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter, defaultdict
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import captures
import polars as pl
import pytest
from captures import Packet, Transfer

from tcpfit import engine

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = sorted((ROOT / "sample-traces").glob("*.pcap*"))
THIRD_PARTY = sorted((ROOT / ".." / "shared" / "captures").glob("*.pcap"))

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed: nothing to compare to")
needs_third_party = pytest.mark.skipif(not THIRD_PARTY, reason="the third-party captures are not there")
samples = pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
third_party = pytest.mark.parametrize("path", THIRD_PARTY, ids=lambda path: path.name)

# Only what stands in the headers: nothing put together, nothing labelled, and TCP headers that an ICMP error quotes are
# no segments.
PREFERENCES = (
    "tcp.analyze_sequence_numbers:FALSE",
    "tcp.relative_sequence_numbers:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
    "ip.defragment:FALSE",
    "ipv6.defragment:FALSE",
    "ip.tso_support:TRUE",
    "ipv6.tso_support:TRUE",
)
FILTER = "tcp && !icmp && !icmpv6"
FIELDS = (
    "frame.number",
    "tcp.stream",
    "ip.src",
    "ipv6.src",
    "tcp.srcport",
    "ip.dst",
    "ipv6.dst",
    "tcp.dstport",
    "tcp.len",
)


class Ends(NamedTuple):
    """Who sends to whom: one direction of a connection."""

    src: str
    src_port: int
    dst: str
    dst_port: int


class Seen(NamedTuple):
    """A segment as tshark sees it."""

    frame: int
    stream: int
    ends: Ends
    payload: int


class Longer(NamedTuple):
    """Frames of a capture whose payload tcpfit counts longer than tshark, and by how much."""

    capture: str
    frames: dict[int, int]
    why: str


class Outside(NamedTuple):
    """Payload that passed and is no data of the flow: tcpfit shows it as events of that kind, not in `data_bytes`."""

    capture: str
    kind: str
    payload: int
    why: str


LONGER = [
    Longer(
        "zeek_tcp_reassembly.pcap",
        {7: 8, 26: 8, 35: 8, 39: 20, 85: 20},
        "the frame ends before the datagram does: tcpfit counts what the IP header says was sent, tshark what is there",
    ),
]
OUTSIDE = [
    Outside(
        "pcapplusplus_one_tcp_stream_max_seq.pcap",
        "probe",
        1,
        "frame 17 is a keep-alive: it repeats a byte that was acknowledged before (RFC 9293, 3.8.4)",
    ),
    Outside(
        "zeek_m57-long-49583-80.pcap",
        "duplicate",
        1676 + 98929,
        "a mirror port wrote every packet twice, 1 to 7 us apart: the sender sent it once",
    ),
    Outside(
        "zeek_vnd.ms-cab-compressed-multi-conn.pcap",
        "duplicate",
        1719 + 42598,
        "a mirror port wrote every packet twice, 1 to 7 us apart: the sender sent it once",
    ),
]


@cache
def by_tshark(path: Path) -> list[Seen]:
    """The segments of a capture; one pass, one run a capture."""
    call = ["tshark", "-n", "-r", str(path), "-Y", FILTER, "-T", "fields", "-E", "occurrence=l"]
    for preference in PREFERENCES:
        call += ["-o", preference]
    for name in FIELDS:
        call += ["-e", name]
    lines = subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()
    seen = []
    for line in lines:
        frame, stream, src, src6, src_port, dst, dst6, dst_port, payload = line.split("\t")
        ends = Ends(src or src6, int(src_port), dst or dst6, int(dst_port))
        seen.append(Seen(int(frame), int(stream), ends, int(payload)))
    return seen


@cache
def by_tcpfit(path: Path) -> dict[str, pl.DataFrame]:
    return engine.frames(engine.analyze(str(path), segments=True))


def ends_of(row: dict[str, object]) -> Ends:
    return Ends(*(row[name] for name in Ends._fields))  # type: ignore[arg-type]


def assert_same_streams(path: Path) -> None:
    """Packets and payload bytes a stream and direction."""
    longer = {frame: more for row in LONGER if row.capture == path.name for frame, more in row.frames.items()}
    packets: Counter[tuple[int, Ends]] = Counter()
    payload: Counter[tuple[int, Ends]] = Counter()
    streams = {}
    for seen in by_tshark(path):
        streams[seen.frame] = seen.stream
        packets[seen.stream, seen.ends] += 1
        payload[seen.stream, seen.ends] += seen.payload + longer.pop(seen.frame, 0)
    assert {} == longer, "the table names frames that are not there"
    expected = {key: (packets[key], payload[key]) for key in packets}
    assert len({stream for stream, _ in expected}) > 0

    found: dict[tuple[int, Ends], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row in by_tcpfit(path)["segments"].iter_rows(named=True):
        key = streams.get(row["frame"], -1), ends_of(row)
        count, size = found[key]
        found[key] = count + 1, size + row["payload"]
    assert expected == dict(found)


def assert_same_flows(path: Path) -> None:
    """Payload bytes a flow; a stream that carried data is one connection, and a connection one stream."""
    sent: Counter[tuple[Ends, int]] = Counter()
    for seen in by_tshark(path):
        sent[seen.ends, seen.stream] += seen.payload
    for row in LONGER:
        if row.capture == path.name:
            for seen in by_tshark(path):
                sent[seen.ends, seen.stream] += row.frames.get(seen.frame, 0)
    outside = {row.kind: row.payload for row in OUTSIDE if row.capture == path.name}
    tables = by_tcpfit(path)
    size = pl.col("right") - pl.col("left")
    events = tables["events"].filter(pl.col("kind").cast(pl.String).is_in(list(outside)))
    apart = dict(events.group_by("flow").agg(size.sum()).iter_rows())
    assert outside == dict(events.group_by(pl.col("kind").cast(pl.String)).agg(size.sum()).iter_rows())

    # two connections between the same ends are compared in the order in which they came
    expected: dict[Ends, list[tuple[int, int]]] = defaultdict(list)
    for (ends, stream), payload in sorted(sent.items(), key=lambda item: item[0][1]):
        if payload:
            expected[ends].append((stream, payload))
    found: dict[Ends, list[tuple[int, int]]] = defaultdict(list)
    for flow in tables["flows"].sort("connection").iter_rows(named=True):
        if flow["data_bytes"]:
            payload = flow["data_bytes"] + apart.get(flow["flow"], 0)
            found[ends_of(flow)].append((flow["connection"], payload))
    assert {ends: [payload for _, payload in rows] for ends, rows in expected.items()} == {
        ends: [payload for _, payload in rows] for ends, rows in found.items()
    }
    pairs = {
        (stream, connection)
        for ends in expected
        for (stream, _), (connection, _) in zip_longest(expected[ends], found[ends])
    }
    assert len(pairs) == len({stream for stream, _ in pairs}) == len({connection for _, connection in pairs})


def test_there_are_samples() -> None:
    assert len(SAMPLES) >= 10
    for path in SAMPLES:
        assert sum(seen.payload for seen in by_tshark(path)) > 0


@samples
def test_streams_of_samples(path: Path) -> None:
    assert_same_streams(path)


@samples
def test_flows_of_samples(path: Path) -> None:
    assert_same_flows(path)


@needs_third_party
@third_party
def test_streams_of_third_party_captures(path: Path) -> None:
    assert_same_streams(path)


@needs_third_party
@third_party
def test_flows_of_third_party_captures(path: Path) -> None:
    assert_same_flows(path)


@needs_third_party
def test_the_tables_name_captures_that_are_there() -> None:
    named = {row.capture for row in LONGER} | {row.capture for row in OUTSIDE}
    assert set() == named - {path.name for path in THIRD_PARTY}


# --- the same ports again --------------------------------------------------------------------------------------------


def later(packets: list[Packet], seconds: float) -> list[Packet]:
    return [Packet(packet.time_ns + round(seconds * 1e9), packet.data, packet.wire_len) for packet in packets]


def with_pause(seconds: float) -> list[Packet]:
    packets = Transfer().run()
    middle = len(packets) // 2
    return packets[:middle] + later(packets[middle:], seconds)


# what happens between the same addresses and ports -> streams of tshark, connections of tcpfit, the rule
SPLITS = {
    "another initial sequence number": (
        Transfer().run() + Transfer(isn=77_000_000, start_s=30).run(),
        2,
        2,
        "a SYN with another number opens a new connection",
    ),
    "another initial sequence number, at once": (
        Transfer().run() + Transfer(isn=77_000_000, start_s=0.6).run(),
        2,
        2,
        "the connection before need not have been forgotten",
    ),
    "the same initial sequence number, half a minute after the close": (
        Transfer().run() + Transfer(start_s=30).run(),
        1,
        2,
        "a closed connection is forgotten after 10 s; tshark takes the SYN for one sent again",
    ),
    "two hours of silence": (with_pause(7200), 1, 1, "a quiet connection is followed from keep-alive to keep-alive"),
    "three hours of silence": (
        with_pause(10800),
        1,
        2,
        "a connection quiet for 2 hours and 4 minutes is settled, so that memory stays bounded; tshark keeps all",
    ),
}


@pytest.mark.parametrize("case", SPLITS, ids=str)
def test_where_a_stream_ends(case: str, tmp_path: Path) -> None:
    packets, streams, connections, why = SPLITS[case]
    path = tmp_path / "again.pcap"
    path.write_bytes(captures.pcap(packets))
    assert streams == len({seen.stream for seen in by_tshark(path)})
    flows = by_tcpfit(path)["flows"]
    assert connections == flows.filter(pl.col("data_bytes") > 0)["connection"].n_unique(), why
    assert sum(seen.payload for seen in by_tshark(path)) == flows["data_bytes"].sum()
    assert_same_streams(path)
