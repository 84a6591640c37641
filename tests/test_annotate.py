"""Is the annotated capture the capture, with every event as a comment where Wireshark shows it?"""

from __future__ import annotations

import gzip
import os
import shutil
import struct
import subprocess
import tracemalloc
from pathlib import Path

import captures
import polars as pl
import pytest
import zstandard
from captures import Packet, Transfer
from polars.testing import assert_frame_equal
from test_cli import assert_sentence, tcpfit

from tcpfit import analysis, schema
from tcpfit.annotation import Annotation, annotate
from tcpfit.exceptions import CaptureError, InvalidParameter
from tcpfit.readers import containers
from tcpfit.readers.files import Stream
from tcpfit.report import pcapng
from tcpfit.report.comments import CAUSES, MOST, comments, sentence

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = sorted((ROOT / "sample-traces").glob("*.pcap*"))
THIRD_PARTY = sorted((ROOT / ".." / "shared" / "captures").glob("*.pcap"))

needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed: nothing to show them"
)

COMMENT = 1
LOSSES = Transfer(segments=60, lost=frozenset({13, 14, 33})).run()
RAW = Transfer(segments=60, lost=frozenset({13, 14, 33}), link_type=captures.RAW).run()


def packets_of(path: Path) -> tuple[list[containers.Packet], containers.Facts]:
    stream = Stream(str(path))
    facts, packets = containers.open_capture(stream, str(path))
    found = list(packets)
    stream.close()
    return found, facts


def plain(packet: containers.Packet) -> tuple:
    """What has to stay as it is."""
    others = tuple(option for option in packet.options if option[0] not in (COMMENT, containers.EPB_FLAGS))
    return packet[:6] + (others,)


def texts(packet: containers.Packet) -> list[str]:
    return [value.decode() for code, value in packet.options if code == COMMENT]


def assert_round_trip(path: Path, out: Path) -> Annotation:
    """Same packets, same tables, and a comment for each event."""
    original = analysis.analyze(path)
    done = annotate(original, path, out)
    expected, facts = packets_of(path)
    found, written = packets_of(out)
    assert list(map(plain, expected)) == list(map(plain, found))
    assert (facts.packets, facts.wire_bytes, facts.link_types) == (
        written.packets,
        written.wire_bytes,
        written.link_types,
    )
    again = analysis.analyze(out)
    for table in ("flows", "events", "rounds"):
        assert_frame_equal(getattr(original, table), getattr(again, table))
    same = ("packets", "tcp_segments", "bytes", "link_types", "skipped", "interface_drops", "start_ns", "end_ns")
    assert {key: original.capture.get(key) for key in same} == {key: again.capture.get(key) for key in same}
    at = original.events.select(pl.coalesce("frame", "cause_frame").alias("at"))["at"]
    assert (facts.packets, done.commented) == (done.packets, at.drop_nulls().n_unique())
    assert done.without_frame == at.null_count()
    return done


# --- what is written ----------------------------------------------------------------------------------------------


FILES = {
    "pcap, little-endian, ns": captures.pcap(LOSSES),
    "pcap, big-endian, ns": captures.pcap(LOSSES, order=">"),
    "pcap, little-endian, us": captures.pcap(LOSSES, nanoseconds=False),
    "pcap, big-endian, us": captures.pcap(LOSSES, order=">", nanoseconds=False),
    "pcap, RAW": captures.pcap(RAW, captures.RAW),
    "pcapng, little-endian, ns": captures.pcapng(LOSSES),
    "pcapng, big-endian, us": captures.pcapng(LOSSES, order=">", resolution=6),
    "pcapng, big-endian, 10 ps": captures.pcapng(LOSSES, order=">", resolution=10),
    "pcapng, ms": captures.pcapng(LOSSES, resolution=3),
    "gzip": gzip.compress(captures.pcap(LOSSES)),
    "zstd": zstandard.compress(captures.pcapng(LOSSES)),
    "two sections": captures.pcapng(LOSSES[:50]) + captures.pcapng(LOSSES[50:], order=">", resolution=6),
    "cut by the snapshot length": captures.pcap(
        Transfer(segments=60, lost=frozenset({13, 14, 33}), snaplen=60).run(), nanoseconds=False
    ),
    "no packet": captures.pcap([]),
}


@pytest.mark.parametrize("name", FILES)
def test_round_trip(name, tmp_path):
    path = tmp_path / "capture"
    path.write_bytes(FILES[name])
    done = assert_round_trip(path, tmp_path / "out.pcapng")
    assert (name != "no packet") == (done.comments > 0)


@pytest.mark.parametrize("path", SAMPLES + THIRD_PARTY, ids=lambda path: path.name)
def test_round_trip_of_real_captures(path, tmp_path):
    assert_round_trip(path, tmp_path / "out.pcapng")


def test_times_are_exact(tmp_path):
    """Nanoseconds that no float holds, and the resolution that says so."""
    packets = [Packet(captures.START_NS + 7 * at + 1, packet.data, packet.wire_len) for at, packet in enumerate(LOSSES)]
    path, out = tmp_path / "exact.pcap", tmp_path / "out.pcapng"
    path.write_bytes(captures.pcap(packets))
    annotate(analysis.analyze(path), path, out)
    found, facts = packets_of(out)
    assert [packet.time_ns for packet in packets] == [packet.time_ns for packet in found]
    assert [1_000_000_000] == [interface.units_per_second for interface in facts.interfaces]


def test_comments_say_what_the_events_say(tmp_path):
    path, out = tmp_path / "losses.pcap", tmp_path / "out.pcapng"
    path.write_bytes(captures.pcap(LOSSES))
    annotate(analysis.analyze(path), path, out)
    shown = {packet.frame: texts(packet) for packet in packets_of(out)[0] if texts(packet)}
    resent = "the data was sent again and nothing shows that the earlier copy arrived"
    third = "third duplicate ACK, or more than two SMSS SACKed above (RFC 5681, 3.2; RFC 6675, IsLost)"
    assert [27, 28, 42, 43, 69, 85] == list(shown)
    assert f"loss: {resent}, shown by frame 85, RTT 50.0 ms, flow 0, confidence 0.9" == shown[69][0]
    assert [
        f"retransmission: {third}, of frame 69, 50.7 ms since it was last sent, flow 0, confidence 0.9",
        f"recovery: {third}, begins with the resend of frame 69, lasting 50.0 ms, 1 resent, flow 0, confidence 0.9",
    ] == shown[85]


@needs_tshark
def test_wireshark_reads_the_comments(tmp_path):
    path, out = tmp_path / "losses.pcap", tmp_path / "out.pcapng"
    path.write_bytes(captures.pcap(LOSSES, order=">", nanoseconds=False))
    annotate(analysis.analyze(path), path, out)
    call = ["tshark", "-n", "-r", str(out), "-Y", "frame.comment", "-T", "fields", "-E", "aggregator=|"]
    call += ["-e", "frame.number", "-e", "frame.comment"]
    run = subprocess.run(call, capture_output=True, text=True, check=True)
    expected = {packet.frame: texts(packet) for packet in packets_of(out)[0] if texts(packet)}
    read = dict(line.split("\t") for line in run.stdout.splitlines())
    assert expected == {int(frame): comment.split("|") for frame, comment in read.items()}
    assert len(expected) > 3


@needs_tshark
def test_wireshark_reads_the_packets(tmp_path):
    path, out = tmp_path / "two.pcapng", tmp_path / "out.pcapng"
    path.write_bytes(FILES["two sections"])
    annotate(analysis.analyze(path), path, out)
    shown = []
    for file in (path, out):
        call = ["tshark", "-n", "-r", str(file), "-T", "fields"]
        for name in ("frame.number", "frame.time_epoch", "frame.len", "frame.cap_len", "frame.encap_type", "tcp.seq"):
            call += ["-e", name]
        shown.append(subprocess.run(call, capture_output=True, text=True, check=True).stdout)
    assert shown[0] == shown[1]
    assert len(LOSSES) == len(shown[0].splitlines())


# --- what pcapng holds besides ------------------------------------------------------------------------------------


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + length + body + length


def option(order: str, code: int, value: bytes) -> bytes:
    return struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str) -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))


def rich(order: str) -> bytes:
    """Two interfaces, one with an offset and binary time stamps, every kind of packet block, statistics."""
    first = (
        option(order, 2, b"eth0")
        + option(order, 3, "Büro".encode())
        + option(order, 8, struct.pack(f"{order}Q", 10**9))
    )
    first += option(order, 9, b"\x8a") + option(order, 14, struct.pack(f"{order}q", 1_700_000_000))
    parts = [section(order)]
    parts.append(block(order, 1, struct.pack(f"{order}HHI", captures.ETHERNET, 0, 200) + first))
    parts.append(block(order, 1, struct.pack(f"{order}HHI", captures.RAW, 0, 0)))
    for at, packet in enumerate(LOSSES[:20]):
        data = packet.data[:100]
        padded = data + bytes(-len(data) % 4)
        ticks = at * 512
        if at == 5:
            parts.append(block(order, 3, struct.pack(f"{order}I", len(data)) + data))
            continue
        if at == 6:
            head = struct.pack(f"{order}HHIIII", 0, 3, 0, ticks, len(data), packet.wire_len)
            parts.append(block(order, 2, head + padded))
            continue
        more = b""
        if at == 4:
            more = option(order, 1, b"seen before") + option(order, 2, struct.pack(f"{order}I", 2))
            more += option(order, 4, struct.pack(f"{order}Q", 7)) + bytes(4)
        head = struct.pack(f"{order}IIIII", 0, 0, ticks, len(data), packet.wire_len)
        parts.append(block(order, 6, head + padded + more))
    micros = captures.START_NS // 1000
    data = RAW[0].data
    head = struct.pack(f"{order}IIIII", 1, micros >> 32, micros & 0xFFFFFFFF, len(data), len(data))
    parts.append(block(order, 6, head + data + bytes(-len(data) % 4)))
    drops = option(order, 5, struct.pack(f"{order}Q", 11)) + option(order, 2, struct.pack(f"{order}II", 0, 1024))
    parts.append(block(order, 5, struct.pack(f"{order}III", 0, 0, 4096) + drops))
    return b"".join(parts)


@pytest.mark.parametrize("order", ["<", ">"], ids=["little-endian", "big-endian"])
def test_what_pcapng_holds_besides_is_kept(order, tmp_path):
    path, out = tmp_path / "rich.pcapng", tmp_path / "out.pcapng"
    path.write_bytes(rich(order))
    assert_round_trip(path, out)
    found, facts = packets_of(out)
    first, second = facts.interfaces
    kept = dict(first.options)
    assert (b"eth0", "Büro".encode(), 10**9) == (kept[2], kept[3], int.from_bytes(kept[8], "little"))
    assert (captures.ETHERNET, 200, 1_700_000_000) == (first.link_type, first.snaplen, first.offset_s)
    assert (captures.RAW, 0, 0) == (second.link_type, second.snaplen, second.offset_s)
    assert [0] * 20 + [1] == [packet.interface for packet in found]
    annotated = found[4]
    assert "seen before" == texts(annotated)[0]
    assert containers.OUTBOUND == annotated.direction
    assert [(4, 7)] == [(code, int.from_bytes(value, "little")) for code, value in annotated.options if code == 4]
    assert [(4, 3)] == [(code, int.from_bytes(value, "little")) for code, value in found[6].options if code == 4]
    assert {5: (11).to_bytes(8, "little"), 2: struct.pack("<II", 0, 10**9)} == dict(first.statistics)
    assert 4 * 10**9 == first.statistics_ns
    assert 11 == analysis.analyze(out).capture["interface_drops"]


def test_sections_become_one_and_interfaces_are_numbered_through(tmp_path):
    path, out = tmp_path / "two.pcapng", tmp_path / "out.pcapng"
    path.write_bytes(rich(">") + rich("<"))
    assert_round_trip(path, out)
    found, facts = packets_of(out)
    assert ([0] * 20 + [1] + [2] * 20 + [3], 4) == ([packet.interface for packet in found], len(facts.interfaces))
    assert 1 == out.read_bytes().count(b"\x0a\x0d\x0d\x0a")


def test_a_direction_that_pcap_holds_is_kept(tmp_path):
    """Kuznetzov's pcap says in each record which way the packet went."""
    path, out = tmp_path / "modified.pcap", tmp_path / "out.pcapng"
    records = [struct.pack("<IHHiIII", 0xA1B2CD34, 2, 4, 0, 0, 65535, captures.ETHERNET)]
    for at, packet in enumerate(LOSSES):
        seconds, nanos = divmod(packet.time_ns, 10**9)
        way = (0, 4, 2)[at % 3]
        records.append(
            struct.pack("<IIIIIHBB", seconds, nanos // 1000, len(packet.data), packet.wire_len, 1, 0, way, 0)
        )
        records.append(packet.data)
    path.write_bytes(b"".join(records))
    annotate(analysis.analyze(path), path, out)
    ways = [packet.direction for packet in packets_of(out)[0]]
    assert [(containers.INBOUND, containers.OUTBOUND, 0)[at % 3] for at in range(len(LOSSES))] == ways
    assert list(map(plain, packets_of(path)[0])) == list(map(plain, packets_of(out)[0]))


def test_an_interface_that_is_not_described_keeps_the_numbers_of_the_frames(tmp_path):
    path, out = tmp_path / "undescribed.pcapng", tmp_path / "out.pcapng"
    whole = captures.pcapng(LOSSES)
    stray = block("<", 6, struct.pack("<IIIII", 9, 0, 0, 4, 4) + b"lost")
    size = len(captures.pcapng(LOSSES[:20]))
    path.write_bytes(whole[:size] + stray + whole[size:] + stray)
    original = analysis.analyze(path)
    done = annotate(original, path, out)
    assert len(LOSSES) + 2 == done.packets
    assert 1 == len(done.warnings)
    found, _ = packets_of(out)
    assert [*range(1, len(LOSSES) + 3)] == [packet.frame for packet in found]
    assert [21, len(LOSSES) + 2] == [packet.frame for packet in found if packet.link_type == 147]
    assert ["left out"] == [text[:8] for text in texts(found[20])]
    assert_frame_equal(original.events, analysis.analyze(out).events)


# --- comments -----------------------------------------------------------------------------------------------------


def event(**more) -> dict:
    row = {
        "flow": 3,
        "time_ns": 0,
        "kind": "retransmission",
        "reason": "rto",
        "left": 1,
        "right": 1001,
        "frame": 20,
        "cause_frame": 12,
        "segments": 1,
        "flight": 2.0,
        "phase": "loss",
        "confidence": 0.9,
        "value": 0.25,
        "timeout_follows": None,
    }
    return row | more


RTO = "retransmission timer expired (RFC 6298, 5.4)"
SENTENCES = [
    (event(), f"retransmission: {RTO}, of frame 12, 250 ms since it was last sent, flow 3, confidence 0.9"),
    (
        event(kind="timeout", confidence=0.95),
        f"timeout: {RTO}, of frame 12, timer 250 ms, back-off 1, flow 3, confidence 0.95",
    ),
    (
        event(kind="spurious", reason="dsack", cause_frame=25, value=None, confidence=1.0),
        "spurious: the receiver reported the duplicate (RFC 2883), shown by frame 25, flow 3, confidence 1",
    ),
    (
        event(kind="loss", reason="hole", frame=None),
        "loss: a hole at the vantage point that a later transmission filled, bytes 1 to 1001, not in the capture, "
        "shown by this frame, RTT 250 ms, flow 3, confidence 0.9",
    ),
    (
        event(kind="loss_event", reason="one-rtt", segments=2, timeout_follows=True),
        "loss event: losses within one round trip of the first, shown by frame 12, lasting 250 ms, 2 lost, "
        "ended by a timeout, flow 3, confidence 0.9",
    ),
    (
        event(kind="zero_window", reason="advertised"),
        "zero window: the receiver advertised it, until frame 12, lasting 250 ms, flow 3, confidence 0.9",
    ),
    (
        event(kind="probe", reason="keep-alive", cause_frame=None, value=None),
        "probe: a keep-alive (RFC 9293, 3.8.4), flow 3, confidence 0.9",
    ),
]


@pytest.mark.parametrize("row, expected", SENTENCES, ids=[row["kind"] for row, _ in SENTENCES])
def test_sentences(row, expected):
    assert expected == sentence(row)


def test_every_kind_with_a_cause_names_it():
    assert set() == set(CAUSES) - set(schema.KINDS)
    for kind in CAUSES:
        assert "frame 12" in sentence(event(kind=kind))


def frame_of(rows: list[dict]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema.polars_schema("events"), orient="row")


def test_comments_come_in_the_order_of_frames_and_the_rest_is_counted():
    rows = [event(frame=30), event(frame=None, cause_frame=9, kind="loss"), event(frame=None, cause_frame=None)]
    rows += [event(frame=15, flow=number) for number in range(MOST + 3)]
    found = list(comments(frame_of(rows)))
    assert [9, 15, 30] == [frame for frame, _ in found]
    assert MOST + 1 == len(found[1][1])
    assert "3 more events; see tcpfit events" == found[1][1][-1]


def test_a_comment_is_cut_between_characters():
    code, value = pcapng.comment("ü" * 40_000)
    assert (COMMENT, "ü" * 32_767) == (code, value.decode())


# --- which flows --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("annotate") / "both.pcap"
    packets = Transfer(segments=30, lost=frozenset({3})).run()
    packets += Transfer(segments=30, lost=frozenset({12, 13}), sport=7).run()
    path.write_bytes(captures.pcap(sorted(packets, key=lambda packet: packet.time_ns)))
    return path


def test_one_flow(both, tmp_path):
    counts = {}
    for flow in (0, 1):
        out = tmp_path / f"{flow}.pcapng"
        run = tcpfit("annotate", both, out, "--flow", flow)
        assert (0, "") == (run.returncode, run.stderr)
        found, _ = packets_of(out)
        assert list(map(plain, packets_of(both)[0])) == list(map(plain, found))
        shown = [text for packet in found for text in texts(packet)]
        assert {f"flow {flow}"} == {part for text in shown for part in text.split(", ") if part.startswith("flow ")}
        counts[flow] = len(shown)
        assert f"{out}: {len(found)} packets, {len(shown)} comments on" in run.stdout
    assert analysis.analyze(both).events.height == sum(counts.values())
    assert_sentence(tcpfit("annotate", both, tmp_path / "none.pcapng", "--flow", 5), 2, "no flow 5")
    assert not (tmp_path / "none.pcapng").exists()


def test_vantage(both, tmp_path):
    out = tmp_path / "receiver.pcapng"
    assert 0 == tcpfit("annotate", both, out, "--vantage", "receiver").returncode
    expected = [text for _, some in comments(analysis.analyze(both, vantage="receiver").events) for text in some]
    assert expected == [text for packet in packets_of(out)[0] for text in texts(packet)]


# --- what goes wrong ----------------------------------------------------------------------------------------------


def test_nothing_is_overwritten_without_force(both, tmp_path):
    out = tmp_path / "out.pcapng"
    out.write_bytes(b"precious")
    assert_sentence(tcpfit("annotate", both, out), 2, out, "exists", "--force")
    assert b"precious" == out.read_bytes()
    assert 0 == tcpfit("annotate", both, out, "--force").returncode
    assert len(packets_of(both)[0]) == len(packets_of(out)[0])


def test_the_capture_itself_is_never_written(both, tmp_path):
    path = tmp_path / "capture.pcap"
    shutil.copy(both, path)
    (tmp_path / "symbolic.pcapng").symlink_to(path)
    os.link(path, tmp_path / "hard.pcapng")
    for name in ("capture.pcap", "symbolic.pcapng", "hard.pcapng"):
        assert_sentence(tcpfit("annotate", path, tmp_path / name, "--force"), 2, "the capture itself")
    assert both.read_bytes() == path.read_bytes()


def test_a_link_is_followed(both, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "real.pcapng", tmp_path / "link.pcapng"
    link.symlink_to(target)
    annotate(analysis.analyze(both), both, link)
    assert (True, True) == (link.is_symlink(), target.is_file())


@pytest.mark.parametrize("name", ["/dev/null", ".", "none/out.pcapng"])
def test_places_that_cannot_be_written(both, tmp_path, name):
    out = Path(name) if name.startswith("/") else tmp_path / name
    assert_sentence(tcpfit("annotate", both, out, "--force"), 2, out)
    assert [] == list(tmp_path.iterdir())
    assert not Path("/dev/null").is_file()


def test_captures_that_cannot_be_read(tmp_path):
    out = tmp_path / "out.pcapng"
    assert_sentence(tcpfit("annotate", tmp_path / "none.pcap", out), 1, "none.pcap", "no such file")
    text = tmp_path / "text.txt"
    text.write_text("no capture at all\n")
    assert_sentence(tcpfit("annotate", text, out), 1, text)
    assert_sentence(tcpfit("annotate", tmp_path, out), 1, tmp_path, "a directory, not a capture")
    assert_sentence(tcpfit("annotate", "-", out, stdin=subprocess.DEVNULL), 2, "give a file")
    os.mkfifo(tmp_path / "pipe")
    assert_sentence(tcpfit("annotate", tmp_path / "pipe", out), 2, tmp_path / "pipe", "give a file")
    assert {"text.txt", "pipe"} == {path.name for path in tmp_path.iterdir()}


def test_damage_is_annotated_as_far_as_it_goes(both, tmp_path):
    path, out = tmp_path / "cut.pcap", tmp_path / "out.pcapng"
    path.write_bytes(both.read_bytes()[:-500])
    run = tcpfit("annotate", path, out)
    assert_sentence(run, 0, path, "the capture ends here")
    good, _ = packets_of(path)
    assert list(map(plain, good)) == list(map(plain, packets_of(out)[0]))
    assert 0 < len(good) < len(packets_of(both)[0])
    assert_frame_equal(analysis.analyze(path).events, analysis.analyze(out).events)


def test_a_failure_leaves_nothing_behind(both, tmp_path, monkeypatch):
    analysed = analysis.analyze(both)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pcapng.Writer, "packet", full)
    with pytest.raises(OSError, match="No space left"):
        annotate(analysed, both, tmp_path / "out.pcapng")
    assert [] == list(tmp_path.iterdir())


def test_errors_of_the_function(both, tmp_path):
    analysed = analysis.analyze(both)
    existing = tmp_path / "there.pcapng"
    existing.write_bytes(b"")
    with pytest.raises(InvalidParameter, match="exists"):
        annotate(analysed, both, existing)
    with pytest.raises(CaptureError, match="no such file"):
        annotate(analysed, tmp_path / "none.pcap", tmp_path / "out.pcapng")


def test_another_capture_is_refused(both, tmp_path):
    other, out = SAMPLES[0], tmp_path / "out.pcapng"
    analysis.analyze(both).write_parquet(tmp_path / "tables")
    saved = analysis.load(tmp_path / "tables")
    with pytest.raises(InvalidParameter, match="not the capture that was analysed, it begins at another time"):
        annotate(saved, other, out)
    assert not out.exists()
    assert (
        annotate(analysis.analyze(both), both, tmp_path / "new.pcapng").comments == annotate(saved, both, out).comments
    )


def test_memory_does_not_grow_with_the_capture(tmp_path):
    path, out = tmp_path / "long.pcap", tmp_path / "out.pcapng"
    payload = Transfer(segments=4000, lost=frozenset(range(50, 4000, 500)), window=40).run()
    path.write_bytes(captures.pcap(payload))
    assert path.stat().st_size > 4_000_000
    analysed = analysis.analyze(path)
    tracemalloc.start()
    try:
        annotate(analysed, path, out)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(payload) == len(packets_of(out)[0])
    assert peak < 3_000_000
