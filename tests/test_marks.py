"""Are congestion marks counted as the path and the kernel counted them, by either feedback and by every reader?"""

from __future__ import annotations

import json
import shutil
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


def with_counter(data: bytes, header: Header, counter: int) -> bytes:
    """The frame with AE, CWR and ECE as a number."""
    offset, flags = data[header.tcp + 12] & 0xFE | counter >> 2, header.flags & 0x3F | (counter & 3) << 6
    return data[: header.tcp + 12] + bytes([offset, flags]) + data[header.tcp + 14 :]


def accurate(end: str) -> list[captures.Packet]:
    """The capture as a receiver with accurate feedback would have made it (RFC 9768, 3.2.2), echo by echo."""
    marked, counters = 0, {}
    for packet in packets_of(path_of("receiver")):
        header = Header(packet.data)
        if header.of_sender:
            marked += header.ecn == CE
        else:
            counters[header.ip_id] = (FIRST + marked) % 8
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
