"""Are congestion marks counted as the path and the kernel counted them, by either feedback and by every reader?"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import captures
import polars as pl
import pytest

import tcpfit
from tcpfit.readers.containers import open_capture
from tcpfit.readers.files import Stream
from tcpfit.report import traffic
from tcpfit.report.explanation import explain

FOLDER = Path(__file__).parent.parent / "sample-traces"
TRUTH = json.loads((FOLDER / "ecn-marks.truth.json").read_text())
ENDS = ("sender", "receiver")
CE, FIRST = 3, 5
SYN = 2


def path_of(end: str) -> Path:
    return FOLDER / TRUTH["captures"][end]


@pytest.mark.parametrize("end", ENDS)
def test_windows_are_those_that_the_kernel_answered(end):
    flow = tcpfit.analyze(path_of(end)).flows.row(0, named=True)
    assert (True, "classic") == (flow["ecn"], flow["ecn_feedback"])
    assert TRUTH["counts"]["mark_events"] == flow["mark_events"]
    assert 0 == flow["ace_marks"]


def test_every_mark_is_seen_at_the_receiver():
    analysis = tcpfit.analyze(path_of("receiver"), segments=True)
    data = traffic.labelled(analysis).filter(pl.col("payload") > 0, pl.col("ecn") == CE)
    assert sorted(offset for _, offset in TRUTH["flows"][0]["marks"]) == sorted(data["left"])
    flow = analysis.flows.row(0, named=True)
    assert TRUTH["counters"]["receiver"]["InCEPkts"] == flow["ce_segments"]
    marks = analysis.events.filter(kind="ecn_mark", reason="ce")
    assert flow["ce_segments"] == marks["segments"].sum()
    assert 0 == tcpfit.analyze(path_of("sender")).flows["ce_segments"].sum()


@pytest.mark.parametrize("end", ENDS)
def test_every_cwr_answers_marks_or_a_recovery(end):
    events = tcpfit.analyze(path_of(end)).events
    answers = events.filter(kind="ecn_response")
    echoes = events.filter(kind="ecn_mark", reason="ece")
    named = answers["cause_frame"].drop_nulls()
    assert sorted(echoes["frame"]) == sorted(named)
    others = answers.filter(pl.col("cause_frame").is_null())
    assert ["recovery"] == others["phase"].unique().to_list()


def test_marks_are_no_losses():
    counts = TRUTH["counts"]
    flow = tcpfit.analyze(path_of("sender")).flows.row(0, named=True)
    assert (counts["lost_segments"], counts["fast_recoveries"]) == (flow["lost_segments"], flow["fast_recoveries"])


@pytest.mark.parametrize("end", ENDS)
def test_fields_are_the_same_in_every_reader(end, reader):
    expected = tcpfit.analyze(path_of(end), segments=True).segments
    actual = tcpfit.analyze(path_of(end), reader=reader, segments=True).segments
    assert expected.select("frame", "flags", "ecn").equals(actual.select("frame", "flags", "ecn"))


@pytest.fixture(params=["dpkt", "tshark"])
def reader(request):
    if request.param == "tshark":
        if shutil.which("tshark") is None:
            pytest.skip("tshark is not installed: the tshark reader is not compared")
    return request.param


def packets_of(path: Path) -> list:
    stream = Stream(str(path), None)
    try:
        return list(open_capture(stream, str(path))[1])
    finally:
        stream.close()


class Header:
    """Fields of an Ethernet frame with IPv4 and TCP."""

    def __init__(self, data: bytes) -> None:
        self.tcp = 14 + (data[14] & 15) * 4
        self.ecn = data[15] & 3
        self.ip_id = int.from_bytes(data[18:20], "big")
        self.of_sender = int.from_bytes(data[self.tcp : self.tcp + 2], "big") == TRUTH["flows"][0]["src_port"]
        self.flags = (data[self.tcp + 12] & 1) << 8 | data[self.tcp + 13]
        self.end = self.tcp + (data[self.tcp + 12] >> 4) * 4
        self.payload = 14 + int.from_bytes(data[16:18], "big") - self.end


def with_counter(data: bytes, header: Header, counter: int) -> bytes:
    """The frame with AE, CWR and ECE as a number."""
    offset, flags = data[header.tcp + 12] & 0xFE | counter >> 2, header.flags & 0x3F | (counter & 3) << 6
    return data[: header.tcp + 12] + bytes([offset, flags]) + data[header.tcp + 14 :]


@dataclass
class Marked:
    """What a receiver has counted: packets, and bytes of payload."""

    packets: int = 0
    payload: int = 0


def marked_by(marked: Callable[[Header], bool]) -> dict[int, Marked]:
    """What the receiver had counted by each of its ACKs, by their identifications."""
    counted, by_ack = Marked(), {}
    for packet in packets_of(path_of("receiver")):
        header = Header(packet.data)
        if not header.of_sender:
            by_ack[header.ip_id] = counted
        elif marked(header):
            counted = Marked(counted.packets + 1, counted.payload + header.payload)
    return by_ack


def accurate(end: str) -> list[captures.Packet]:
    """The capture as a receiver with accurate feedback would have made it (RFC 9768, 3.2.2), echo by echo."""
    by_ack = marked_by(lambda header: header.ecn == CE)
    counters = {ip_id: (FIRST + counted.packets) % 8 for ip_id, counted in by_ack.items()}
    out = []
    for place, packet in enumerate(packets_of(path_of(end))):
        header = Header(packet.data)
        if header.flags & SYN:
            counter = 7 if header.of_sender else 2
        elif header.of_sender:
            counter = 2 if place == 2 else FIRST  # the third packet says how the SYN-ACK came
        else:
            counter = counters[header.ip_id]
        out.append(captures.Packet(packet.time_ns, with_counter(packet.data, header, counter), packet.wire_len))
    return out


@pytest.mark.parametrize("end", ENDS)
def test_a_counter_in_place_of_ece_tells_every_mark(end, tmp_path):
    path = tmp_path / "accurate.pcap"
    path.write_bytes(captures.pcap(accurate(end)))
    flow = tcpfit.analyze(path).flows.row(0, named=True)
    assert "accurate" == flow["ecn_feedback"]
    assert TRUTH["counts"]["marked_segments"] == flow["ace_marks"]
    assert TRUTH["counts"]["mark_events"] == flow["mark_events"]
    assert (0, 0) == (flow["ece_acks"], flow["cwr_segments"])


def with_option(data: bytes, header: Header, payload: int) -> bytes:
    """The ACK with the option that counts marked bytes (RFC 9768, 3.2.3), if there is room for it."""
    option = bytes([172, 11]) + b"".join(n.to_bytes(3, "big") for n in (1, payload % 2**24, 1)) + b"\1"
    if header.end + len(option) - header.tcp > 60:
        return data
    length = int.from_bytes(data[16:18], "big") + len(option)
    words = (header.end + len(option) - header.tcp) // 4
    offset = bytes([words << 4 | data[header.tcp + 12] & 15])
    ip = data[:16] + length.to_bytes(2, "big") + data[18 : header.tcp + 12]
    return ip + offset + data[header.tcp + 13 : header.end] + option + data[header.end :]


def thinned(end: str, every: int, option: bool) -> tuple[list[captures.Packet], int]:
    """All data marked, and one ACK of so many left; how many packets the last of these tells of."""
    by_ack = marked_by(lambda header: header.payload > 0)
    out, acks, told = [], 0, 0
    for packet, original in zip(accurate(end), packets_of(path_of(end)), strict=True):
        header = Header(original.data)
        data = packet.data
        if not header.of_sender and not header.flags & SYN:
            acks += 1
            if acks % every:
                continue
            counted = by_ack[header.ip_id]
            data = with_counter(original.data, header, (FIRST + counted.packets) % 8)
            data = with_option(data, header, counted.payload) if option else data
            told = counted.packets
        out.append(captures.Packet(packet.time_ns, data, packet.wire_len + len(data) - len(packet.data)))
    return out, told


@pytest.mark.parametrize("end", ENDS)
def test_bytes_tell_how_often_the_counter_went_round(end, tmp_path):
    # 30 ACKs and some 60 marks to each that is left: the counter alone has lost most of them
    path, marks = tmp_path / "thinned.pcap", {}
    for option in (False, True):
        packets, told = thinned(end, 30, option)
        path.write_bytes(captures.pcap(packets))
        marks[option] = tcpfit.analyze(path).flows["ace_marks"][0]
    assert told == marks[True]
    assert 4 * marks[False] < told


@pytest.mark.parametrize("end", ENDS)
def test_the_bytes_are_the_same_in_every_reader(end, reader, tmp_path):
    path = tmp_path / "thinned.pcap"
    path.write_bytes(captures.pcap(thinned(end, 2, option=True)[0]))
    expected = tcpfit.analyze(path, segments=True).segments
    assert expected["ce_bytes"].drop_nulls().is_sorted()
    assert expected["ce_bytes"].max() > 10**5
    actual = tcpfit.analyze(path, reader=reader, segments=True).segments
    assert expected["ce_bytes"].equals(actual["ce_bytes"])


def test_an_echo_is_explained_by_its_mark_and_its_answer():
    analysis = tcpfit.analyze(path_of("receiver"), segments=True)
    echo = analysis.events.filter(kind="ecn_mark", reason="ece").row(0, named=True)
    answer = analysis.events.filter(kind="ecn_response", cause_frame=echo["frame"]).row(0, named=True)
    account = explain(analysis, echo["frame"])["events"][0]
    frames = {entry["frame"]: entry["text"] for entry in account["evidence"]["frames"]}
    assert {
        echo["cause_frame"]: "the first marked segment since the echoes before",
        answer["frame"]: "the data whose CWR answers it",
    } == frames
    marked = analysis.segments.filter(frame=echo["cause_frame"])
    assert CE == marked["ecn"][0]
