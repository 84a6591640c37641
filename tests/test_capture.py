"""Captures in every format and encapsulation, whole and damaged, read through the engine."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars as pl
import pytest

from tcpfit import analysis, engine
from tcpfit.exceptions import CaptureError, InvalidParameter, TcpfitError
from tcpfit.schema import SEGMENTS, TABLES, polars_schema

ROOT = Path(__file__).resolve().parents[1]
REAL_CAPTURES = sorted((ROOT / ".." / "shared" / "captures").glob("*.pcap"))

ETHERNET, NULL, RAW, LOOP, SLL, SLL2 = 1, 0, 101, 108, 113, 276


# --- packets ---------------------------------------------------------------------------------------------------------


def tcp(seq: int = 1, payload: int = 10, options: bytes = b"", sport: int = 40000, dport: int = 443) -> bytes:
    offset = (20 + len(options)) // 4 << 4
    header = struct.pack(">HHIIBBHHH", sport, dport, seq, 2, offset, 0x18, 512, 0xBEEF, 0)
    return header + options + bytes(payload)


def ipv4(inner: bytes, protocol: int = 6, total: int | None = None, fragment: int = 0x4000) -> bytes:
    total = 20 + len(inner) if total is None else total
    header = struct.pack(">BBHHHBBH", 0x45, 1, total, 77, fragment, 64, protocol, 0)
    return header + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + inner


def ipv6(inner: bytes, protocol: int = 6) -> bytes:
    source, destination = bytes.fromhex("20010db8" + "00" * 11 + "01"), bytes.fromhex("20010db8" + "00" * 11 + "02")
    return struct.pack(">IHBB", 6 << 28, len(inner), protocol, 63) + source + destination + inner


def ethernet(inner: bytes, *types: int) -> bytes:
    tags = b"".join(struct.pack(">HH", kind, 5) for kind in types[:-1])
    return bytes(12) + tags + struct.pack(">H", types[-1]) + inner


PLAIN = ethernet(ipv4(tcp()), 0x0800)


# --- files -----------------------------------------------------------------------------------------------------------


def pcap(packets: list[bytes], link_type: int = ETHERNET, order: str = "<", nanoseconds: bool = False) -> bytes:
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    header = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link_type)
    records = (struct.pack(order + "IIII", 100 + i, 7, len(data), len(data)) + data for i, data in enumerate(packets))
    return header + b"".join(records)


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + length + body + length


def option(order: str, code: int, value: bytes) -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str) -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order: str, link_type: int, *options: bytes) -> bytes:
    return block(order, 1, struct.pack(order + "HHI", link_type, 0, 0) + b"".join(options))


def packet(order: str, number: int, ticks: int, data: bytes, *options: bytes) -> bytes:
    fields = struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
    return block(order, 6, fields + data + bytes(-len(data) % 4) + b"".join(options))


@pytest.fixture
def write(tmp_path):
    def write(data: bytes, name: str = "a.pcap") -> str:
        path = tmp_path / name
        path.write_bytes(data)
        return str(path)

    return write


def segments_of(path: str, **keywords) -> tuple[dict, pl.DataFrame]:
    result = engine.analyze(path, segments=True, **keywords)
    return result.capture, engine.frames(result)["segments"]


# --- formats ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_pcap_in_both_orders_and_resolutions(write, order, nanoseconds):
    capture, segments = segments_of(write(pcap([PLAIN, PLAIN], order=order, nanoseconds=nanoseconds)))
    fraction = 7 if nanoseconds else 7000
    start, end = 100 * 10**9 + fraction, 101 * 10**9 + fraction
    expected = {
        "format": "pcap",
        "compression": None,
        "link_types": ["EN10MB"],
        "packets": 2,
        "tcp_segments": 2,
        "bytes": 128,
        "start_ns": start,
        "end_ns": end,
        "skipped": {},
        "interface_drops": None,
        "without_data": {"refused": 0, "unanswered": 0, "opened": 0},
        "warnings": [],
    }
    assert expected == {name: value for name, value in capture.items() if name != "path"}
    assert [start, end] == segments["time_ns"].to_list()


def test_every_column_of_a_segment(write):
    syn = bytes([2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 3, 3, 7])
    sack = bytes([1, 1, 5, 18, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0, 2])
    frames = [ethernet(ipv4(tcp(options=syn)), 0x0800), ethernet(ipv6(tcp(options=sack)), 0x86DD)]
    _, segments = segments_of(write(pcap(frames)))
    assert polars_schema("segments") == segments.schema
    common = {"src_port": 40000, "dst_port": 443, "seq": 1, "ack": 2, "flags": 0x18, "window": 512, "payload": 10}
    common |= {"checksum": 0xBEEF, "direction": 0}
    first = {"frame": 1, "src": "10.0.0.1", "dst": "10.0.0.2", "ip_id": 77, "ttl": 64, "ecn": 1, "wire_bytes": 84}
    first |= {"mss": 1460, "window_scale": 7, "sack_permitted": True, "tsval": 9, "tsecr": 8, "sack": []}
    second = {"frame": 2, "src": "2001:db8::1", "dst": "2001:db8::2", "ip_id": None, "ttl": 63, "ecn": 0}
    second |= {"mss": None, "window_scale": None, "sack_permitted": False, "tsval": None, "tsecr": None}
    second |= {"sack": [5, 6, 1, 2], "wire_bytes": 104}
    rows = segments.to_dicts()
    for expected, row in zip([first | common, second | common], rows, strict=True):
        assert expected == {name: row[name] for name in expected}


def several_sections() -> bytes:
    return b"".join(
        [
            section("<"),
            interface("<", ETHERNET, option("<", 9, b"\x09")),
            interface("<", RAW, option("<", 9, bytes([0x80 | 20])), option("<", 14, struct.pack("<q", 50))),
            block("<", 0x0BAD, b"unknown"),
            packet("<", 0, 100 * 10**9 + 1, PLAIN, option("<", 2, struct.pack("<I", 2))),
            packet("<", 1, 100 << 20, ipv4(tcp())),
            block("<", 5, struct.pack("<III", 0, 0, 0) + option("<", 5, struct.pack("<Q", 3))),
            section(">"),
            interface(">", SLL2),
            packet(">", 0, 7, struct.pack(">HHIHBB8x", 0x0800, 0, 1, 1, 0, 6) + ipv4(tcp())),
            block(">", 5, struct.pack(">III", 0, 0, 0) + option(">", 5, struct.pack(">Q", 4))),
        ]
    )


def test_pcapng_sections_and_interfaces(write):
    capture, segments = segments_of(write(several_sections()))
    assert ["EN10MB", "RAW", "LINUX_SLL2"] == capture["link_types"]
    assert ("pcapng", 3, 7) == tuple(capture[k] for k in ("format", "packets", "interface_drops"))
    # the second section begins at another time
    assert ["frame 3: "] == [warning[:9] for warning in capture["warnings"]]
    assert [100 * 10**9 + 1, 150 * 10**9, 7000] == segments["time_ns"].to_list()
    assert [2, 0, 1] == segments["direction"].to_list()


def test_compression_is_known_by_content(write):
    data = several_sections()
    plain = segments_of(write(data))[1]
    members = gzip.compress(data[:90]) + gzip.compress(data[90:])
    capture, segments = segments_of(write(members, "misnamed.zst"))
    assert "gzip" == capture["compression"]
    assert plain.equals(segments)


@pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed")
def test_zstd_in_several_frames(write):
    data = several_sections()

    def compress(part: bytes) -> bytes:
        return subprocess.run(["zstd", "-qc"], input=part, capture_output=True, check=True).stdout

    capture, segments = segments_of(write(compress(data[:90]) + compress(data[90:]), "misnamed.gz"))
    assert "zstd" == capture["compression"]
    assert segments_of(write(data))[1].equals(segments)


@pytest.mark.parametrize("sizes", [(100, 9_000, 65_000), (40_000, 250_000, 262_000), (262_000,)])
@pytest.mark.parametrize("cut", [0, 7])
def test_blocks_end_anywhere_in_a_record(write, sizes, cut):
    """A decompressor hands over blocks: the rest of a record waits for the next one, or for several."""
    records = []
    for number in range(200):
        datagram = ipv4(tcp(seq=number, payload=100))
        padding = bytes([number]) * (sizes[number % len(sizes)] - len(datagram) - number)
        records.append(datagram + padding)
    data = pcap(records, RAW)
    whole = data[: len(data) - cut]
    plain = segments_of(write(whole))
    assert list(range(200 - (cut > 0))) == plain[1]["seq"].to_list()
    packed = segments_of(write(gzip.compress(whole, 1), "a.gz"))
    assert plain[1].equals(packed[1])
    assert plain[0]["warnings"] == packed[0]["warnings"]


@pytest.mark.parametrize(("checksum", "payload"), [("right", 500), ("wrong", 10), ("absent", 500)])
def test_a_length_beyond_the_frame_counts_unless_the_header_is_damaged(write, checksum, payload):
    """Some captures say of cut packets that they were no longer; a bit turned over shows in the checksum."""
    header = bytearray(ipv4(tcp(payload=10, options=b"\1\1\x08\x0a" + bytes(8)), total=20 + 32 + 500))
    words = sum(struct.unpack(">10H", header[:20]))
    right = ~((words & 0xFFFF) + (words >> 16)) & 0xFFFF
    header[10:12] = struct.pack(">H", {"right": right, "wrong": right ^ 0x0400, "absent": 0}[checksum])
    path = write(pcap([ethernet(bytes(header), 0x0800)]))
    assert [payload] == segments_of(path)[1]["payload"].to_list()
    by_dpkt = analysis.analyze(path, reader="dpkt", segments=True).segments
    assert by_dpkt is not None
    assert [payload] == by_dpkt["payload"].to_list()


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_standard_input(compress):
    code = (
        "from tcpfit import engine; c = engine.analyze('-').capture; print(c['packets'], c['path'], c['compression'])"
    )
    data = compress(pcap([PLAIN] * 3))
    run = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, cwd=ROOT, check=True)
    compression = "None" if compress is bytes else "gzip"
    assert f"3 - {compression}" == run.stdout.decode().strip()


# --- encapsulations --------------------------------------------------------------------------------------------------

ENCAPSULATIONS = {
    "vlan": (ETHERNET, ethernet(ipv4(tcp()), 0x8100, 0x0800)),
    "qinq": (ETHERNET, ethernet(ipv6(tcp()), 0x88A8, 0x8100, 0x86DD)),
    "qinq-9100": (ETHERNET, ethernet(ipv4(tcp()), 0x9100, 0x8100, 0x0800)),
    "pppoe": (ETHERNET, ethernet(struct.pack(">BBHHH", 0x11, 0, 1, 52, 0x21) + ipv4(tcp()), 0x8864)),
    "mpls": (ETHERNET, ethernet(bytes([0, 1, 1, 64]) + ipv4(tcp()), 0x8847)),
    "sll": (SLL, struct.pack(">HHH8xH", 4, 1, 6, 0x0800) + ipv4(tcp())),
    "sll-vlan": (SLL, struct.pack(">HHH8xHHH", 4, 1, 6, 0x8100, 5, 0x0800) + ipv4(tcp())),
    "sll2": (SLL2, struct.pack(">HHIHBB8x", 0x86DD, 0, 1, 1, 4, 6) + ipv6(tcp())),
    "null-le": (NULL, struct.pack("<I", 2) + ipv4(tcp())),
    "null-be": (NULL, struct.pack(">I", 30) + ipv6(tcp())),
    "loop": (LOOP, struct.pack(">I", 24) + ipv6(tcp())),
    "raw-4": (RAW, ipv4(tcp())),
    "raw-6": (12, ipv6(tcp())),
    "ipv4": (228, ipv4(tcp())),
    "ipv6": (229, ipv6(tcp())),
    "hop-by-hop": (RAW, ipv6(bytes([6, 0, 1, 4, 0, 0, 0, 0]) + tcp(), 0)),
    "routing, destination options": (RAW, ipv6(bytes([60, 0, 4, 0, 0, 0, 0, 0, 6, 1] + [0] * 14) + tcp(), 43)),
    "authentication": (RAW, ipv6(bytes([6, 4] + [0] * 22) + tcp(), 51)),
    "atomic fragment": (RAW, ipv6(bytes([6, 0, 0, 0, 0, 0, 0, 9]) + tcp(), 44)),
    "padding": (ETHERNET, ethernet(ipv4(tcp()), 0x0800) + bytes(20)),
    "TSO": (RAW, ipv4(tcp(), total=0)),
}


@pytest.mark.parametrize("name", ENCAPSULATIONS)
def test_encapsulation(write, name):
    link_type, frame = ENCAPSULATIONS[name]
    capture, segments = segments_of(write(pcap([frame], link_type)))
    assert ({}, [10], [40000]) == (capture["skipped"], segments["payload"].to_list(), segments["src_port"].to_list())
    outbound = link_type in (SLL, SLL2)
    assert [2 if outbound else 0] == segments["direction"].to_list()


def test_a_cut_packet_keeps_its_payload_length(write):
    data = bytearray(pcap([ethernet(ipv4(tcp(payload=1000)), 0x0800)[:60]]))
    data[36:40] = struct.pack("<I", 1054)
    _, segments = segments_of(write(bytes(data)))
    assert ([1000], [1054]) == (segments["payload"].to_list(), segments["wire_bytes"].to_list())


def test_what_is_not_analysed_is_counted_by_reason(write):
    packets = {
        "ARP": ethernet(b"", 0x0806),
        "UDP": ethernet(ipv4(bytes(8), 17), 0x0800),
        "ICMP": ethernet(ipv6(bytes(8), 58), 0x86DD),
        "not IP": ethernet(b"", 0x88CC),
        "IP fragment": ethernet(ipv4(tcp(), fragment=0x2001), 0x0800),
        "truncated header": PLAIN[:20],
        "bad IP header": ethernet(ipv4(tcp(), total=10), 0x0800),
        "bad TCP header length": ethernet(ipv4(tcp(), total=30), 0x0800),
    }
    capture, segments = segments_of(write(pcap([*packets.values(), PLAIN, packets["UDP"]])))
    assert {name: 1 + (name == "UDP") for name in packets} == capture["skipped"]
    assert [9] == segments["frame"].to_list()
    capture, _ = segments_of(write(pcap([PLAIN], 147)))
    assert {"unsupported link type 147 (USER0)": 1} == capture["skipped"]


# --- damage ----------------------------------------------------------------------------------------------------------


def test_a_capture_cut_within_a_record_is_read_up_to_there(write):
    data = pcap([PLAIN] * 3)
    capture, _ = segments_of(write(data[:-14]))
    place = 24 + 2 * 80
    assert [f"frame 3 (byte {place}): record cut, 50 of 64 bytes; the capture ends here"] == capture["warnings"]
    assert 2 == capture["tcp_segments"]


def test_every_truncation_is_read_up_to_there(write):
    for whole in (pcap([PLAIN] * 3), several_sections(), gzip.compress(pcap([PLAIN] * 3))):
        for cut in range(len(whole)):
            try:
                capture, _ = segments_of(write(whole[:cut]))
            except CaptureError as error:
                assert "\n" not in str(error)
            else:
                assert sum("the capture ends here" in warning for warning in capture["warnings"]) <= 1


def test_damaged_compressed_data_is_read_up_to_there(write):
    data = pcap([PLAIN[:-10] + os.urandom(10) for _ in range(2000)])
    compressed = gzip.compress(data)
    capture, _ = segments_of(write(compressed[: len(compressed) // 2]))
    assert 100 < capture["packets"] < 2000
    assert ["gzip" in warning for warning in capture["warnings"]].count(True) == 1


def test_an_absurd_length_ends_the_capture(write):
    data = pcap([PLAIN, PLAIN]) + struct.pack("<IIII", 1, 1, 0xFFFFFFF0, 64)
    capture, _ = segments_of(write(data))
    assert 2 == capture["packets"]
    assert capture["warnings"][0].startswith("frame 3 (byte 184): record length 4294967280 is beyond")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty file"),
        (b"just some text\n", "text file"),
        (b"btsnoop\0" + bytes(20), "editcap"),
        (b"\xfd7zXZ\0" + bytes(20), "xz -dc"),
        (bytes(range(1, 40)), "01 02 03 04"),
        (pcap([])[:10], "10 of 24"),
        (section("<")[:20], "20 of 28"),
        (gzip.compress(b"just some text\n", mtime=0), "text file"),
        (b"\x1f\x8b\x08", "gzip"),
    ],
)
def test_what_is_no_capture_is_one_sentence(write, data, words):
    path = write(data)
    with pytest.raises(CaptureError) as caught:
        engine.analyze(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert words in message
    assert "\n" not in message


def test_paths_that_cannot_be_read(tmp_path):
    with pytest.raises(CaptureError, match="directory"):
        engine.analyze(str(tmp_path))
    with pytest.raises(CaptureError, match="no such file"):
        engine.analyze(str(tmp_path / "absent.pcap"))
    with pytest.raises(OSError):
        engine.analyze(str(tmp_path / "absent.pcap"))


def test_a_capture_without_packets_is_fine(write):
    for data in (pcap([]), section("<"), gzip.compress(pcap([]))):
        result = engine.analyze(write(data), segments=True)
        capture = result.capture
        assert (0, None, None, []) == tuple(capture[name] for name in ("packets", "start_ns", "end_ns", "warnings"))
        for name, frame in engine.frames(result).items():
            assert (0, polars_schema(name)) == (len(frame), frame.schema)


# --- selection -------------------------------------------------------------------------------------------------------


def four_ports(write) -> str:
    return write(pcap([ethernet(ipv4(tcp(dport=port)), 0x0800) for port in (80, 443, 8080, 443)]))


@pytest.mark.parametrize(
    ("keywords", "frames"),
    [
        ({}, [1, 2, 3, 4]),
        ({"filter": "port 443"}, [2, 4]),
        ({"filter": "dst port 80 or 8080"}, [1, 3]),
        ({"filter": "host 10.0.0.1 and not portrange 400-500"}, [1, 3]),
        ({"filter": "ip6"}, []),
        ({"from_s": 1}, [2, 3, 4]),
        ({"to_s": 1.5}, [1, 2]),
        ({"from_s": 1, "to_s": 2, "filter": "port 443"}, [2]),
    ],
)
def test_selection_is_the_same_for_captures_and_segments(write, keywords, frames):
    path = four_ports(write)
    capture, segments = segments_of(path, **keywords)
    assert (frames, len(frames), 4) == (segments["frame"].to_list(), capture["tcp_segments"], capture["packets"])
    tracker = engine.Tracker(segments=True, **keywords)
    tracker.push(segments_of(path)[1])
    result = tracker.finish()
    assert segments.equals(engine.frames(result)["segments"])
    assert (len(frames), []) == (result.capture["tcp_segments"], result.capture["warnings"])


def test_arguments_outside_their_domain(write):
    path = four_ports(write)
    with pytest.raises(InvalidParameter, match='character 6: expected a port number from 0 to 65535, got "http"'):
        engine.analyze(path, filter="port http")
    with pytest.raises(InvalidParameter, match="vantage must be 'sender', 'receiver' or 'middle', got \"left\""):
        engine.analyze(path, vantage="left")
    with pytest.raises(InvalidParameter, match="from_s"):
        engine.Tracker(from_s=float("nan"))


# --- the tracker's door ----------------------------------------------------------------------------------------------


def test_segments_pushed_in_batches_come_back(write):
    segments = segments_of(four_ports(write))[1]
    tracker = engine.Tracker(segments=True)
    for part in segments.iter_slices(1):
        tracker.push(part)
    assert segments.equals(engine.frames(tracker.finish())["segments"])


def test_what_is_no_table_of_segments_is_named(write):
    segments = segments_of(four_ports(write))[1]
    tracker = engine.Tracker()
    with pytest.raises(InvalidParameter, match="Arrow stream"):
        tracker.push([1, 2])
    with pytest.raises(InvalidParameter, match='no column "frame"'):
        tracker.push(segments.drop("frame"))
    with pytest.raises(InvalidParameter, match='"seq" of segments must be UInt32, got Int64'):
        tracker.push(segments.cast({"seq": pl.Int64}))
    with pytest.raises(InvalidParameter, match='"src" of segments must hold IP addresses, got "here"'):
        tracker.push(segments.with_columns(src=pl.lit("here")))
    with pytest.raises(InvalidParameter, match='"ttl" of segments has 4 nulls'):
        tracker.push(segments.with_columns(ttl=pl.lit(None, pl.UInt8)))
    tracker.finish()
    with pytest.raises(InvalidParameter, match="finished"):
        tracker.finish()


def test_tables_have_the_dtypes_of_the_schema_as_they_come(write):
    result = engine.analyze(four_ports(write), segments=True)
    for name in TABLES:
        assert polars_schema(name) == pl.DataFrame(getattr(result, name)).schema


def test_streams_can_be_read_twice(write):
    result = engine.analyze(four_ports(write), segments=True)
    assert pl.DataFrame(result.segments).equals(pl.DataFrame(result.segments))
    assert [column.name for column in SEGMENTS] == pl.DataFrame(result.segments).columns
    assert engine.analyze(four_ports(write)).segments is None


# --- progress and interruption ---------------------------------------------------------------------------------------


def test_progress_ends_at_the_size_of_the_file(write):
    path = write(gzip.compress(pcap([PLAIN] * 5000)))
    calls = []
    engine.analyze(path, progress=lambda *position: calls.append(position))
    size = Path(path).stat().st_size
    assert (size, size) == calls[-1]


def test_an_exception_of_progress_ends_the_run(write):
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.analyze(write(pcap([PLAIN])), progress=stop)


@pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")
def test_a_signal_ends_a_read_that_waits(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in a shell's background ignores it
    try:
        os.write(writer, pcap([PLAIN]))
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            engine.analyze(str(pipe))
        assert time.monotonic() - start < 5
    finally:
        signal.signal(signal.SIGINT, before)
        os.close(writer)


def test_errors_share_a_base():
    assert issubclass(CaptureError, TcpfitError) and issubclass(InvalidParameter, ValueError)


# --- tshark ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not REAL_CAPTURES, reason="the shared captures are not there")
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("path", REAL_CAPTURES, ids=lambda path: path.name)
def test_counts_are_those_of_tshark(path):
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-e", "frame.number", "-e", "tcp.seq_raw"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    expected = [tuple(map(int, line.split("\t"))) for line in lines if line.split("\t")[1]]
    capture, segments = segments_of(str(path))
    assert (len(lines), len(expected)) == (capture["packets"], capture["tcp_segments"])
    assert expected == list(segments.select("frame", "seq").iter_rows())
    assert capture["packets"] == capture["tcp_segments"] + sum(capture["skipped"].values())
