"""Does `tcpfit compare` put tshark's flags beside the right labels, and say why they differ only where it shows?"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import runpy
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import captures
import polars as pl
import pytest
from captures import ACK, FIN, PSH, SYN, Packet, Transfer
from test_cli import assert_sentence, tcpfit
from test_scenarios import FOLDER, Reader
from test_snapshot_length import SAMPLE, cut

from tcpfit import analysis, comparison, schema
from tcpfit.comparison import ANY, CLASSES, MAPPING, NOT_COMPARED, NOT_OF_PACKETS, RULES, Comparison, compare
from tcpfit.exceptions import CaptureError, InvalidParameter
from tcpfit.readers import wireshark
from tcpfit.readers.wireshark import FLAGS
from tcpfit.report.evidence import SEEN_LATE

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = sorted((ROOT / "sample-traces").glob("*.pcap*"))
THIRD_PARTY = sorted((ROOT / ".." / "shared" / "captures").glob("*.pcap"))

needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed: nothing to compare to"
)
needs_third_party = pytest.mark.skipif(not THIRD_PARTY, reason="the third-party captures are not there")
real = pytest.mark.parametrize("path", SAMPLES + THIRD_PARTY, ids=lambda path: path.name)

RST = 4
MSS = 1000


@dataclass
class Talk:
    """Packets between two hosts, written down one by one; times in milliseconds, data in whole segments."""

    packets: list[Packet] = field(default_factory=list)
    isn: int = 1000
    server_isn: int = 5000
    ids: int = 100

    def __post_init__(self) -> None:
        self.options = b"\x02\x04" + MSS.to_bytes(2, "big") + b"\x04\x02\x01\x03\x03\x00"

    def client(self, ms: float, seq: int, flags: int = ACK, payload: int = 0, ip_id: int | None = None, **more) -> int:
        """A packet of the data sender, `seq` counted from its initial number; gives back the frame."""
        self.ids += 1
        number = self.ids if ip_id is None else ip_id
        ack = self.server_isn + 1 if flags & ACK else 0
        ends = ("10.0.0.1", "10.0.0.2", 40000, 80)
        return self._add(ms, captures.tcp(*ends, self.isn + seq, ack, flags, payload, ip_id=number, **more))

    def server(self, ms: float, ack: int, flags: int = ACK, seq: int = 1, sack: tuple[int, ...] = (), **more) -> int:
        """A packet of the receiver; `sack` are edges, counted like `ack` from the sender's initial number."""
        if sack:
            edges = b"".join((self.isn + edge).to_bytes(4, "big") for edge in sack)
            more["options"] = b"\x01\x01\x05" + bytes([2 + len(edges)]) + edges
        ends = ("10.0.0.2", "10.0.0.1", 80, 40000)
        return self._add(ms, captures.tcp(*ends, self.server_isn + seq, self.isn + ack, flags, 0, **more))

    def shake_hands(self, at_receiver: bool = False) -> None:
        """SYN, SYN-ACK, ACK; a round trip of 50 ms."""
        self.client(0, 0, SYN, options=self.options)
        self.server(0.01 if at_receiver else 50, 1, SYN | ACK, seq=0, options=self.options)
        self.client(50.02, 1)

    def data(self, ms: float, *numbers: int, ip_id: int | None = None) -> list[int]:
        """Segments by number from 0, 0.1 ms apart; gives back their frames."""
        return [
            self.client(ms + 0.1 * at, 1 + number * MSS, ACK | PSH, MSS, ip_id=ip_id)
            for at, number in enumerate(numbers)
        ]

    def acks(self, ms: float, number: int, *sack: tuple[int, int]) -> int:
        """An ACK of all segments below that number, with blocks of segments."""
        return self.server(ms, 1 + number * MSS, sack=tuple(1 + edge * MSS for block in sack for edge in block))

    def _add(self, ms: float, datagram: bytes) -> int:
        frame = captures.link(datagram, captures.ETHERNET)
        self.packets.append(Packet(captures.START_NS + round(ms * 1e6), frame, len(frame)))
        return len(self.packets)

    def write(self, path: Path) -> Path:
        times = [packet.time_ns for packet in self.packets]
        assert sorted(times) == times
        path.write_bytes(captures.pcap(self.packets))
        return path


def rows(comparison: Comparison, *names: str) -> list[tuple]:
    return comparison.packets.select(names or ("frame", "label", "tshark", "class")).rows()


def compared(path: Path, **settings) -> list[tuple]:
    return rows(compare(analysis.analyze(path, **settings), path))


# --- the mapping --------------------------------------------------------------------------------------------------


def test_every_kind_is_mapped_or_said_to_have_no_flag():
    assert set(schema.KINDS) == {kind for kind, _ in MAPPING} | set(NOT_OF_PACKETS)


def test_the_mapping_uses_words_that_exist():
    assert set() == {reason for _, reason in MAPPING} - set(schema.REASONS) - {ANY}
    assert set() == {flag for flags in MAPPING.values() for flag in flags} - set(FLAGS)
    assert [] == [name for name, _ in RULES if name not in CLASSES]
    assert {"unexplained", "no-flow"} == set(CLASSES) - {name for name, _ in RULES}


@needs_tshark
def test_every_flag_of_tshark_is_mapped_or_said_not_to_be():
    listed = subprocess.run(["tshark", "-G", "fields"], capture_output=True, text=True, check=True).stdout
    fields = (line.split("\t") for line in listed.splitlines())
    prefix = "tcp.analysis."
    flags = {f[2].removeprefix(prefix) for f in fields if f[2].startswith(prefix) and f[3] == "FT_NONE"} - {"flags"}
    ours = set(FLAGS) | {flag for flags in NOT_COMPARED for flag in flags.split(", ")}
    assert set() == ours - flags - {"duplicate_ack"}
    if wireshark.version().startswith("4.0."):
        assert set() == flags - ours


def test_the_page_says_what_the_code_says():
    page = (ROOT / "docs/compare.md").read_text()
    code = runpy.run_path(str(ROOT / "docs/make_compare.py"))["code_part"]()
    assert code == page[: len(code)], "run docs/make_compare.py"


# --- one class each -----------------------------------------------------------------------------------------------


@needs_tshark
@pytest.mark.parametrize("v6", [False, True], ids=["IPv4", "IPv6"])
def test_resends_that_both_see(v6, tmp_path):
    path = tmp_path / "sender.pcap"
    path.write_bytes(captures.pcap(Transfer(segments=60, lost=frozenset({13, 14, 33}), v6=v6).run()))
    assert [
        (42, "retransmission (fast-dupthresh)", "fast_retransmission", None),
        (43, "retransmission (recovery)", "retransmission", None),
        (85, "retransmission (fast-dupthresh)", "fast_retransmission", None),
    ] == compared(path)


@needs_tshark
def test_copies_of_a_mirror_port(tmp_path):
    path = tmp_path / "mirror.pcap"
    packets = [
        copy
        for packet in Transfer(segments=10).run()
        for copy in (packet, Packet(packet.time_ns + 2000, packet.data, packet.wire_len))
    ]
    path.write_bytes(captures.pcap(packets))
    handshake = [(2, "", "retransmission", "copy")]
    data = [(frame, "duplicate (copy)", "retransmission", "copy") for frame in range(8, 28, 2)]
    fins = [(48, "", "retransmission", "copy")]
    of_the_other_end = [(4, "", "retransmission", "copy"), (50, "", "retransmission", "copy")]
    assert handshake + data + fins + of_the_other_end == compared(path)


def two_holes() -> tuple[Talk, list[int], list[int]]:
    """At the sender: 2 and 5 of ten are lost; new data go out with the resends, as SACK recovery does it."""
    talk = Talk()
    talk.shake_hands()
    first = talk.data(51, *range(10))
    talk.acks(101, 2)
    talk.acks(101.3, 2, (3, 4))
    talk.acks(101.4, 2, (3, 5))
    talk.acks(101.6, 2, (6, 7), (3, 5))
    talk.acks(101.7, 2, (6, 8), (3, 5))
    resent = talk.data(101.8, 2)
    talk.acks(101.9, 2, (6, 9), (3, 5))
    talk.data(102, 10)
    talk.acks(102.1, 2, (6, 10), (3, 5))
    resent += talk.data(102.2, 5)
    talk.acks(151.8, 5, (6, 10))
    talk.acks(152, 5, (6, 11))
    talk.acks(152.2, 11)
    talk.data(152.4, *range(11, 14))
    talk.acks(202.4, 14)
    return talk, first, resent


@needs_tshark
def test_a_resend_that_comes_soon_is_out_of_order_to_tshark(tmp_path):
    talk, first, (fast, second) = two_holes()
    comparison = compare(analysis.analyze(talk.write(tmp_path / "two.pcap")), tmp_path / "two.pcap")
    why = f"0.2 ms after frame {second - 2}, less than 50 ms; also sent in frame {first[5]}"
    assert [
        (fast, "retransmission (fast-dupthresh)", "fast_retransmission", True, None, None),
        (second, "retransmission (recovery)", "out_of_order", False, "too-soon", why),
    ] == rows(comparison, "frame", "label", "tshark", "agrees", "class", "why")


def at_the_receiver(late: bool) -> tuple[Talk, dict[int, int]]:
    """At the receiver: of ten segments 3 comes after 6, late by its identification, or lost and sent again."""
    talk = Talk()
    talk.shake_hands(at_receiver=True)
    frames: dict[int, int] = {}
    now, edge = 51.0, 0
    ids = {number: 200 + number for number in range(10)}
    for number in (0, 1, 2, 4, 5, 6):
        frames[number] = talk.data(now, number, ip_id=ids[number])[0]
        edge = number + 1 if number < 3 else 3
        talk.acks(now + 0.05, edge, *([] if number < 3 else [(4, number + 1)]))
        now += 0.1
    if not late:
        now += 50
        ids[3] = 210
    rest = [3, 7, 8, 9] if late else [7, 8, 9, 3]
    for number in rest:
        frames[number] = talk.data(now, number, ip_id=ids[number])[0]
        got = {*(n for n in frames), number}
        edge = next(n for n in range(11) if n not in got)
        talk.acks(now + 0.05, edge, *([] if edge > 3 else [(4, max(got) + 1)]))
        now += 0.1
    now += 50
    for number in range(10, 14):
        talk.data(now, number, ip_id=211 + number - 10)
        talk.acks(now + 0.05, number + 1)
        now += 0.1
    return talk, frames


@needs_tshark
def test_what_was_overtaken_is_a_fast_retransmission_to_tshark(tmp_path):
    talk, frames = at_the_receiver(late=True)
    assert [
        (frames[4], "", "lost_segment", "filled-late"),
        (frames[3], "reordering (ip-id)", "fast_retransmission", "overtaken"),
    ] == compared(talk.write(tmp_path / "late.pcap"), vantage="receiver")


@needs_tshark
def test_what_nothing_had_asked_for_is_a_fast_retransmission_to_tshark(tmp_path):
    text = (FOLDER / "reordering-unasked.trace").read_text()
    # a third segment overtakes the late one, 3 ms before that comes
    head, late, tail = text.partition("+0.0475 < . 13001:14001(1000) ack 1 win 500 #late\n")
    more = "+0.0445 < . 16001:17001(1000) ack 1 win 500\n+0.0001 > . 1:1(0) ack 13001 win 500\n"
    trace = Reader().read(
        head + more + late.replace("0.0475", "0.0029") + tail.splitlines()[0].replace("16001", "17001")
    )
    path = tmp_path / "unasked.pcap"
    path.write_bytes(captures.pcap(trace.packets))
    found = compare(analysis.analyze(path), path)
    (row,) = found.packets.filter(pl.col("frame") == trace.frames["late"]).to_dicts()
    assert ("reordering (unasked)", "fast_retransmission", "overtaken") == (row["label"], row["tshark"], row["class"])
    assert row["why"].endswith("; nothing had asked for it again")


def test_every_reason_of_a_class_has_its_words():
    assert {reason for kind, reason in MAPPING if kind == "reordering"} == set(comparison.SENT_EARLIER)


@needs_tshark
def test_a_hole_is_a_loss(tmp_path):
    talk, frames = at_the_receiver(late=False)
    found = compared(talk.write(tmp_path / "lost.pcap"), vantage="receiver")
    assert [(frames[4], "lost_segment", None)] == [(row[0], row[2], row[3]) for row in found[:1]]
    assert found[0][1] in ("loss (hole)", "loss (ip-id-gap)")
    assert [frames[4], frames[3]] == [row[0] for row in found]
    assert found[1][1].startswith("retransmission")


@needs_tshark
def test_probes_of_a_closed_window(tmp_path):
    talk = Talk()
    talk.shake_hands()
    talk.data(51, 0, 1)
    closed = talk.server(101.2, 1 + 2 * MSS, window=0)
    linux = talk.client(401, 2 * MSS)
    still = talk.server(451, 1 + 2 * MSS, window=0)
    other = talk.client(1001, 1 + 2 * MSS, ACK, 1)
    again = talk.server(1051, 1 + 2 * MSS, window=0)
    talk.server(1100, 1 + 2 * MSS, window=1000)
    talk.data(1101, 2, 3)
    talk.acks(1151.2, 4)
    assert [
        (closed, "zero_window (advertised)", "zero_window", None),
        (linux, "probe (window-probe)", "keep_alive", "window-probe"),
        (still, "zero_window (advertised)", "zero_window", None),
        (other, "probe (window-probe)", "zero_window_probe", None),
        (again, "zero_window (advertised)", "zero_window", None),
    ] == compared(talk.write(tmp_path / "closed.pcap"))


@needs_tshark
def test_data_that_the_capture_missed(tmp_path):
    talk = Talk()
    talk.shake_hands()
    before = talk.data(51, 0, 1)
    after = talk.data(51.3, 3, 4)  # 2 was sent too; the capture missed it
    ack = talk.acks(101.3, 3)
    talk.acks(101.5, 5)
    talk.data(102, *range(5, 10))
    talk.acks(152.5, 10)
    found = compared(talk.write(tmp_path / "missed.pcap"), vantage="sender")
    assert [before[-1] + 1] == [after[0]]
    assert (after[0], "", "lost_segment", "capture-loss") in found
    assert {"capture-loss"} == {row[3] for row in found}, ack


@needs_tshark
def test_an_old_connection_on_the_same_ports(tmp_path):
    talk = Talk(server_isn=900_000)
    talk.client(0, 0, SYN, options=talk.options)
    stray = talk.server(20, 77_000)  # it acknowledges what this connection never sent
    talk.client(20.1, 77_000, RST)
    again = talk.client(3000, 0, SYN, options=talk.options)
    talk.server_isn = 400_000
    opened = talk.server(3050, 1, SYN | ACK, seq=0, options=talk.options)
    answer = talk.client(3050.1, 1)
    talk.data(3051, *range(4))
    talk.acks(3101.4, 4)
    found = {row[0]: row[1:] for row in compared(talk.write(tmp_path / "old.pcap"))}
    assert ("", "ack_lost_segment", "old-connection") == found[stray]
    assert ("timeout (syn)", "retransmission", None) == found[again]
    assert {"renumbered"} == {found[frame][2] for frame in (opened, answer) if frame in found}


@needs_tshark
def test_data_that_was_sacked_and_is_sent_again(tmp_path):
    """After a timeout the sender goes back, over what the receiver has."""
    talk = Talk()
    talk.shake_hands()
    first = talk.data(51, *range(10))
    talk.acks(101, 2)
    talk.acks(101.6, 2, (8, 10))
    again = talk.data(450, 2)
    talk.acks(500, 3, (8, 10))
    again += talk.data(500.1, 3, 4)
    talk.acks(550.1, 5, (8, 10))
    again += talk.data(550.2, 5, 6, 7, 8, 9)
    talk.acks(600.6, 10)
    talk.data(601, *range(10, 14))
    talk.acks(651.4, 14)
    found = {row[0]: row[1:] for row in compared(talk.write(tmp_path / "back.pcap"))}
    assert first[9] < again[0]
    sacked = {frame: found[frame] for frame in again[-2:]}
    assert {("retransmission", "sacked-before")} == {row[1:] for row in sacked.values()}
    assert [True, True] == ["retransmission (unneeded)" in row[0] for row in sacked.values()]
    assert [None] * 3 == [found[frame][2] for frame in again[:3]]


@needs_tshark
def test_a_tail_that_was_lost_before_the_capture_point(tmp_path):
    talk = Talk()
    talk.shake_hands(at_receiver=True)
    for number in range(4):
        talk.data(51 + 0.1 * number, number, ip_id=200 + number)
        talk.acks(51.05 + 0.1 * number, number + 1)
    (again,) = talk.data(480, 4, ip_id=205)  # 204 was lost with the first copy of segment 4
    talk.acks(480.05, 5)
    for number in range(5, 9):
        talk.data(531 + 0.1 * number, number, ip_id=201 + number)
        talk.acks(531.05 + 0.1 * number, number + 1)
    (row,) = compared(talk.write(tmp_path / "tail.pcap"), vantage="receiver")
    assert (again, "", "first-copy-unseen") == (row[0], row[2], row[3])
    assert row[1].startswith("retransmission")


@needs_tshark
def test_the_number_of_an_ack(tmp_path):
    talk = Talk()
    talk.shake_hands(at_receiver=True)
    talk.data(51, 0, 1)
    talk.acks(51.2, 2)
    ahead = talk.client(52, 1 + 5 * MSS)
    below = [talk.data(60 + at, number)[0] for at, number in enumerate((2, 3, 4))]
    talk.acks(63, 5)
    talk.data(113, *range(5, 9))
    talk.acks(113.5, 9)
    found = compared(talk.write(tmp_path / "ahead.pcap"), vantage="receiver")
    assert [ahead, *below] == [row[0] for row in found]
    assert {"number-of-an-ack"} == {row[3] for row in found}


@needs_tshark
def test_packets_without_a_time_are_compared(tmp_path):
    path = tmp_path / "simple.pcapng"
    packets = Transfer(segments=60, lost=frozenset({13, 33})).run()
    path.write_bytes(captures.pcapng(packets, simple=range(1, len(packets), 9)))
    assert {True} == {agrees for (agrees,) in rows(compare(analysis.analyze(path), path), "agrees")}


@needs_tshark
def test_a_frame_that_is_cut_hides_nothing(tmp_path):
    """The frame ends before the datagram: tshark counts what is there, and misses the rest."""
    talk = Talk()
    talk.shake_hands()
    (cut,) = talk.data(51, 0)
    packet = talk.packets[cut - 1]
    talk.packets[cut - 1] = Packet(packet.time_ns, packet.data[:-8], packet.wire_len - 8)
    (after,) = talk.data(51.1, 1)
    acked = talk.acks(101.1, 2)
    talk.data(102, *range(2, 6))
    talk.acks(152.4, 6)
    assert [(after, "", "lost_segment", "all-there"), (acked, "", "ack_lost_segment", "all-there")] == compared(
        talk.write(tmp_path / "cut.pcap")
    )


@needs_tshark
def test_one_below_the_highest_number(tmp_path):
    """The last byte is lost and sent again together with what came after."""
    talk = Talk()
    talk.shake_hands()
    talk.data(51, 0, 1, 2)
    talk.client(51.3, 1 + 3 * MSS, ACK | PSH, 1)
    talk.acks(101.2, 3)
    again = talk.client(420, 1 + 3 * MSS, ACK | PSH, MSS)
    acked = talk.acks(470, 4)
    talk.data(471, *range(4, 8))
    talk.acks(521.4, 8)
    row, lost_count = compared(talk.write(tmp_path / "below.pcap"))
    assert (again, "", "one-below") == (row[0], row[2], row[3])
    assert row[1].startswith("retransmission")
    assert (acked, "", "ack_lost_segment", "all-there") == lost_count


@needs_tshark
def test_a_direction_without_data_has_no_flow(tmp_path):
    path = tmp_path / "syns.pcap"
    talk = Talk()
    talk.shake_hands()
    talk.data(51, 0, 1)
    talk.acks(101.1, 2)
    talk.client(102, 1 + 2 * MSS, FIN | ACK)
    talk.server(152, 2 + 2 * MSS, FIN | ACK)
    resent = talk.server(452, 2 + 2 * MSS, FIN | ACK)
    talk.client(453, 2 + 2 * MSS)
    found = compare(analysis.analyze(talk.write(path)), path)
    assert [(None, resent, "retransmission", "no-flow")] == rows(found, "flow", "frame", "tshark", "class")


@needs_tshark
def test_acks_alone_are_compared_by_what_they_show(tmp_path):
    talk = Talk()
    for number in range(1, 9):
        talk.acks(100 * number, number)
    closed = talk.server(900, 1 + 9 * MSS, window=0)
    talk.server(1000, 1 + 9 * MSS, window=50)
    path = talk.write(tmp_path / "acks.pcap")
    found = compare(analysis.analyze(path), path)
    shown = [(0, closed, "zero_window (advertised)", "zero_window", True)]
    assert shown == rows(found, "flow", "frame", "label", "tshark", "agrees")


@needs_tshark
def test_packets_that_are_cut_within_their_options_have_no_flags_of_tshark(tmp_path):
    path = tmp_path / "cut.pcap"
    path.write_bytes(cut(gzip.decompress(SAMPLE.read_bytes()), 60))
    assert {("", "cut-off")} == {row[2:] for row in compared(path)}


# --- real captures ------------------------------------------------------------------------------------------------


@needs_tshark
@real
def test_real_captures_are_compared_whole(path):
    """Nothing unexplained; every flag of tshark and every label of tcpfit once, in the flow that it belongs to."""
    analysed = analysis.analyze(path)
    found = compare(analysed, path).packets
    if wireshark.version().startswith("4.0."):  # the rules that the explanations know
        assert [] == rows_of(found.filter(pl.col("class") == "unexplained"))
    assert [] == rows_of(found.filter(pl.struct("flow", "frame").is_duplicated()))
    assert [] == rows_of(found.filter(pl.col("agrees") != pl.col("class").is_null()))

    kind = pl.col("kind").cast(pl.String)
    labels = analysed.events.filter(
        kind.is_in(["retransmission", "spurious", "reordering", "duplicate", "probe", "zero_window"])
        & pl.col("frame").is_not_null()
        & ((kind != "reordering") | pl.col("reason").cast(pl.String).is_in(SEEN_LATE))
    )
    missing = labels.join(found.filter(pl.col("label") != ""), on=["flow", "frame"], how="anti")
    assert 0 == missing.height

    call = ["tshark", "-n", "-r", str(path), "-Y", "tcp && !icmp && !icmpv6", "-T", "fields", "-e", "frame.number"]
    for flag in FLAGS:
        call += ["-e", f"tcp.analysis.{flag}"]
    printed = subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()
    flagged = {
        (int(cells[0]), flag)
        for cells in (line.split("\t") for line in printed)
        for flag, cell in zip(FLAGS, cells[1:], strict=True)
        if cell
    }
    shown = {
        (frame, flag) for frame, flags in found.select("frame", "tshark").rows() for flag in flags.split(", ") if flag
    }
    implied = {
        (frame, "retransmission") for frame, flag in shown if flag in ("fast_retransmission", "spurious_retransmission")
    }
    assert flagged == shown | implied


def rows_of(table: pl.DataFrame) -> list[tuple]:
    return table.select("flow", "frame", "label", "tshark", "class").rows()


@needs_tshark
@needs_third_party
def test_copies_and_keep_alives_of_third_party_captures():
    of = {path.name: path for path in THIRD_PARTY}
    mirrored = of["zeek_m57-long-49583-80.pcap"]
    classes = compare(analysis.analyze(mirrored), mirrored).packets["class"].unique().to_list()
    assert ["copy"] == classes
    kept_alive = of["pcapplusplus_one_tcp_stream_max_seq.pcap"]
    assert (17, "probe (keep-alive)", "keep_alive", None) in compared(kept_alive)


# --- the command --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Path:
    return two_holes()[0].write(tmp_path_factory.mktemp("compare") / "two.pcap")


@needs_tshark
def test_headers_that_are_all_cut_off_are_said_to_be(tmp_path):
    path = tmp_path / "cut.pcap"
    path.write_bytes(cut(captures.pcap(Transfer(segments=10).run()), 40))
    table, document = (tcpfit("compare", path, "--format", form).stdout for form in ("table", "json"))
    skipped = json.loads(document)["skipped"]
    assert {"truncated header": json.loads(document)["packets"]} == skipped
    assert f"not analysed: {skipped['truncated header']} truncated header" in table


@needs_tshark
def test_table(two):
    run = tcpfit("compare", two, env={"COLUMNS": "80"})
    assert (0, "") == (run.returncode, run.stderr)
    assert max(map(len, run.stdout.splitlines())) <= 80
    assert "1 packet labelled alike, 1 otherwise" in run.stdout
    assert "flow 0  10.0.0.1:40000 > 10.0.0.2:80" in run.stdout
    assert re.search(r"^ +\d+ +retransmission \(recovery\) +out_of_order +too-soon", run.stdout, re.MULTILINE)


@needs_tshark
def test_all_shows_every_packet(tmp_path):
    path = tmp_path / "mirror.pcap"
    packets = [
        copy
        for packet in Transfer(segments=40).run()
        for copy in (packet, Packet(packet.time_ns + 2000, packet.data, packet.wire_len))
    ]
    path.write_bytes(captures.pcap(packets))
    listed = re.compile(r"^ +\d+ +duplicate", re.MULTILINE)
    some, every = tcpfit("compare", path).stdout, tcpfit("compare", path, "--all").stdout
    assert (40, True) == (len(listed.findall(every)), len(listed.findall(some)) < 40)
    assert ("more; --all shows every one" in some, "--all" in every) == (True, False)


@needs_tshark
def test_json_and_csv_hold_every_packet(two):
    expected = compare(analysis.analyze(two), two).packets
    document = json.loads(tcpfit("compare", two, "--format", "json").stdout)
    (flow,) = document["flows"]
    assert (str(two), "tshark", 1, {"too-soon": 1}) == (
        document["path"],
        document["against"],
        flow["agree"],
        flow["differ"],
    )
    assert expected.drop("flow").to_dicts() == flow["packets"]
    table = list(csv.DictReader(io.StringIO(tcpfit("compare", two, "--format", "csv").stdout)))
    assert expected.columns == list(table[0])
    assert [str(frame) for frame in expected["frame"]] == [row["frame"] for row in table]


@needs_tshark
def test_csv_has_its_header_where_nothing_is_labelled(tmp_path):
    path = tmp_path / "quiet.pcap"
    path.write_bytes(captures.pcap(Transfer(segments=5).run()))
    run = tcpfit("compare", path, "--format", "csv")
    assert (0, "flow,frame,time_ns,label,tshark,agrees,class,why\n") == (run.returncode, run.stdout)


@needs_tshark
def test_one_flow(tmp_path):
    path = tmp_path / "both.pcap"
    packets = Transfer(segments=30, lost=frozenset({3})).run()
    packets += Transfer(segments=30, lost=frozenset({12, 13}), sport=7).run()
    path.write_bytes(captures.pcap(sorted(packets, key=lambda packet: packet.time_ns)))
    both = compare(analysis.analyze(path), path).packets
    assert [0, 1] == sorted(both["flow"].unique().to_list())
    for flow in (0, 1):
        table = tcpfit("compare", path, "--flow", flow, "--format", "csv").stdout
        assert 1 <= both.filter(pl.col("flow") == flow).height
        assert {str(flow)} == {row["flow"] for row in csv.DictReader(io.StringIO(table))}
        only = compare(analysis.analyze(path), path, flows=[flow]).packets
        assert both.filter(pl.col("flow") == flow).rows() == only.rows()
    assert_sentence(tcpfit("compare", path, "--flow", 9), 2, "no flow 9")


@needs_tshark
def test_a_damaged_capture_is_compared_as_far_as_it_goes(two, tmp_path):
    path = tmp_path / "cut.pcap"
    path.write_bytes(two.read_bytes()[:-700])
    run = tcpfit("compare", path, "--format", "csv")
    assert 0 == run.returncode
    assert [] == [line for line in run.stderr.splitlines() if not line.startswith(f"tcpfit: {path}: ")]
    assert "cut" in run.stderr
    assert rows(compare(analysis.analyze(two), two)) == compared(path)


@needs_tshark
@pytest.mark.parametrize("length", [38, 40, 44])
def test_headers_that_are_cut_off_are_not_compared(tmp_path, length):
    """The ports are there and what follows them is not: tshark has no number for the connection."""
    path = tmp_path / "short.pcap"
    path.write_bytes(captures.pcap(Transfer(snaplen=length, lost=frozenset({5})).run()))
    run = tcpfit("compare", path)
    assert (0, "") == (run.returncode, run.stderr)
    assert "0 packets labelled alike, 0 otherwise" in run.stdout


def test_without_tshark_one_sentence_says_so(two, tmp_path):
    run = tcpfit("compare", two, env={"PATH": str(tmp_path)})
    assert_sentence(run, 1, "tshark is not installed")
    assert "" == run.stdout


@needs_tshark
def test_another_capture_is_refused(two):
    with pytest.raises(InvalidParameter, match="tshark finds no flow in it that was analysed"):
        compare(analysis.analyze(two), SAMPLES[0])


@needs_tshark
def test_captures_that_cannot_be_compared(tmp_path):
    assert_sentence(tcpfit("compare", tmp_path / "none.pcap"), 1, "none.pcap", "no such file")
    text = tmp_path / "text.txt"
    text.write_text("no capture at all\n")
    assert_sentence(tcpfit("compare", text), 1, text)
    assert_sentence(tcpfit("compare", tmp_path), 1, tmp_path, "a directory, not a capture")
    empty = analysis.analyze(two_holes()[0].write(tmp_path / "two.pcap"))
    with pytest.raises(CaptureError, match="give a file"):
        compare(empty, "-")
    assert_sentence(tcpfit("compare", "-", stdin=subprocess.DEVNULL), 1, "give a file")
    os.mkfifo(tmp_path / "pipe")
    assert_sentence(tcpfit("compare", tmp_path / "pipe"), 1, tmp_path / "pipe", "give a file")
