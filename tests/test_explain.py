"""Does `tcpfit explain` say of a frame what it is, what names it, and why?"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import captures
import polars as pl
import pytest
from captures import Transfer
from test_cli import assert_sentence, tcpfit
from test_scenarios import Reader

import tcpfit as package
from tcpfit import InvalidParameter
from tcpfit.report import evidence, explained, terminal
from tcpfit.report.explanation import RULES, explain
from tcpfit.schema import KINDS, REASONS

ROOT = Path(__file__).parent.parent
SAMPLES = sorted((ROOT / "sample-traces").glob("*.pcap*"))
TIMEOUTS = ROOT / "sample-traces/timeouts.pcap.gz"


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    """A UDP packet, a transfer that loses its 14th segment, and a handshake that brought no data."""
    udp = bytearray(captures.link(captures.tcp("10.0.0.1", "10.0.0.2", 1, 2, 0, 0, 0), 1))
    udp[14 + 9] = 17
    first = captures.Packet(captures.START_NS - 1, bytes(udp), len(udp))
    packets = [first, *Transfer(lost=frozenset({13})).run(), *Transfer(segments=0, sport=40001, start_s=9).run()]
    path = tmp_path_factory.mktemp("explain") / "transfer.pcap"
    path.write_bytes(captures.pcap(packets))
    return path


@pytest.fixture(scope="module")
def analysis(capture):
    return package.analyze(capture, segments=True)


@pytest.fixture(scope="module")
def lost(analysis):
    """Frames and times of the lost segment: the original and the resend."""
    data = analysis.segments.filter(pl.col("payload") > 0, pl.col("seq") == 1001 + 13 * 1000)
    assert 2 == data.height
    return data.select("frame", "time_ns").rows()


def text_of(facts: dict, width: int = 80) -> str:
    out = io.StringIO()
    console = terminal.console(out)
    console.width = width
    explained.show(facts, console)
    return out.getvalue()


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_every_reason_is_in_words():
    assert set(REASONS) == set(RULES)
    for reason, rule in RULES.items():
        assert rule.sentence.endswith("."), reason
        assert rule.alternatives, reason
        assert all(instead and told_by for instead, told_by in rule.alternatives), reason
        assert reason == "unknown" or re.match(r"RFC \d{3,4}, \d|IsLost of RFC", rule.source), reason


def test_alternatives_are_reasons_and_kinds():
    """What stands in brackets is a word of the vocabularies or an option."""
    words = set(REASONS) | set(KINDS)
    for reason, rule in RULES.items():
        for instead, told_by in rule.alternatives:
            for inside in re.findall(r"\((.*?)\)", f"{instead} {told_by}"):
                named = set(inside.split(", "))
                assert named <= words or inside in ("SACK", "mirror port", "--vantage middle"), (reason, inside)


def test_every_kind_has_its_words():
    assert set(KINDS) == set(evidence.CAUSES) == set(evidence.SUBJECTS)
    assert set(KINDS) >= {*evidence.DECIDED, *evidence.SETTLED_LATER, *evidence.WITHOUT_FLIGHT}


def test_segment_that_was_sent_again(analysis, lost):
    (original, original_ns), (resend, resend_ns) = lost
    segment = explain(analysis, resend)["segment"]
    assert (0, None, "sender", "again") == tuple(
        segment[key] for key in ("flow", "reverse_flow", "vantage", "transmission")
    )
    assert (13_001, 14_001, 1000) == tuple(segment[key] for key in ("left", "right", "payload_bytes"))
    before = pytest.approx((original_ns - resend_ns) / 1e9)
    assert [{"frame": original, "seconds": before}] == segment["earlier_frames"]
    assert [] == segment["later_frames"]
    assert pytest.approx(0.05) == segment["acked_by"]["seconds"]
    assert ["PSH", "ACK"] == segment["flags"]
    first = explain(analysis, original)["segment"]
    assert ("first", []) == (first["transmission"], first["earlier_frames"])
    assert [resend] == [copy["frame"] for copy in first["later_frames"]]


def test_the_ack_that_covers_the_bytes_is_not_said_to_answer_the_frame(analysis, lost):
    (original, _), (resend, _) = lost
    quiet = analysis.segments.filter(pl.col("payload") > 0)["frame"]
    covered = "the first ACK after it that covers all its bytes is frame"
    doubt = "which may answer another frame with them"
    texts = [one_line(text_of(explain(analysis, frame))) for frame in (original, resend, quiet[0])]
    assert [(True, True), (True, True), (True, False)] == [(covered in text, doubt in text) for text in texts]
    cut = analysis.with_segments([analysis.segments.filter(pl.col("frame") <= quiet[-1])])
    assert "no ACK after it covers all its bytes" in one_line(text_of(explain(cut, quiet[-1])))


def test_events_of_a_resend(analysis, lost):
    (original, _), (resend, _) = lost
    facts = explain(analysis, resend)
    named = analysis.events.filter((pl.col("frame") == resend) | (pl.col("cause_frame") == resend))
    assert sorted(named["kind"]) == sorted(account["event"]["kind"] for account in facts["events"])
    by_kind = {account["event"]["kind"]: account for account in facts["events"]}
    assert {"loss", "loss_event", "retransmission", "recovery"} == set(by_kind)
    assert "cause_frame" == by_kind["loss"]["names_it_as"]
    fast = by_kind["retransmission"]
    assert "frame" == fast["names_it_as"]
    assert (KINDS["retransmission"], RULES["fast-dupthresh"].sentence) == (fast["what"], fast["rule"])
    assert len(RULES["fast-dupthresh"].alternatives) == len(fast["alternatives"])
    assert "recovery" == fast["evidence"]["phase"]
    assert pytest.approx(0.05, abs=0.001) == fast["evidence"]["rtt_s"]


def test_evidence_of_a_resend(analysis, lost):
    (original, original_ns), (resend, resend_ns) = lost
    facts = explain(analysis, resend)
    fast = next(account for account in facts["events"] if account["event"]["kind"] == "retransmission")
    previous, ack, data = fast["evidence"]["frames"]
    assert (original, evidence.CAUSES["retransmission"]) == (previous["frame"], previous["text"])
    assert pytest.approx((original_ns - resend_ns) / 1e9) == previous["seconds"]
    assert "bytes below 13001 have arrived, 6th duplicate, and 6000 bytes above the resend (SACK)" in ack["text"]
    rows = analysis.segments.filter(pl.col("frame") < resend)
    assert rows.filter(pl.col("src") == "10.0.0.2")["frame"].max() == ack["frame"]
    assert rows.filter(pl.col("src") == "10.0.0.1", pl.col("payload") > 0)["frame"].max() == data["frame"]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_every_label_of_the_samples_can_be_explained(path):
    """One event of each kind and reason: both frames that it names name it, and the text fits 80 columns."""
    analysis = package.analyze(path, segments=True)
    examples = analysis.events.unique(["kind", "reason"], keep="first", maintain_order=True)
    for event in examples.iter_rows(named=True):
        for role in ("frame", "cause_frame"):
            if event[role] is None:
                continue
            facts = explain(analysis, event[role])
            assert (role, event) in [(account["names_it_as"], account["event"]) for account in facts["events"]]
            text = text_of(facts)
            assert max(map(len, text.splitlines())) <= 80
            assert RULES[event["reason"]].sentence in one_line(text)
            json.dumps(facts, allow_nan=False)


def test_frames_that_were_not_captured():
    analysis = package.analyze(ROOT / "sample-traces/sack-loss-receiver.pcap.gz", segments=True)
    hole = analysis.events.filter(pl.col("reason") == "hole").row(0, named=True)
    assert hole["frame"] is None
    facts = explain(analysis, hole["cause_frame"])
    account = next(account for account in facts["events"] if account["event"] == hole)
    assert None is account["evidence"]["frames"][0]["frame"]
    assert "the transmission that was lost is not in the capture" in one_line(text_of(facts))
    assert "here for the first time" in one_line(text_of(facts))


def test_late_segment_shows_what_was_compared():
    analysis = package.analyze(ROOT / "sample-traces/reordering-receiver.pcap.gz", segments=True)
    late = analysis.events.filter(pl.col("kind") == "reordering").row(0, named=True)
    ids = dict(analysis.segments.select("frame", "ip_id").iter_rows())
    assert ids[late["frame"]] < ids[late["cause_frame"]]
    expected = f"IP identifications: {ids[late['frame']]}, of frame {late['cause_frame']} {ids[late['cause_frame']]}"
    assert expected in one_line(text_of(explain(analysis, late["frame"])))


def test_ack_that_closed_the_window():
    analysis = package.analyze(ROOT / "sample-traces/slow-reader.pcap.gz", segments=True)
    closed = analysis.events.filter(pl.col("kind") == "zero_window").row(0, named=True)
    facts = explain(analysis, closed["frame"])
    assert (None, 0, 0) == tuple(facts["segment"][key] for key in ("left", "reverse_flow", "window"))
    (account,) = facts["events"]
    (opened,) = account["evidence"]["frames"]
    assert (closed["cause_frame"], evidence.CAUSES["zero_window"]) == (opened["frame"], opened["text"])
    assert pytest.approx(closed["value"]) == opened["seconds"]


def sentence_of(capture, frame):
    run = tcpfit("explain", capture, frame)
    assert (0, "") == (run.returncode, run.stderr)
    return one_line(run.stdout)


def test_ack_without_data_is_one_sentence(capture, analysis, lost):
    acks = analysis.segments.filter(pl.col("ack") == 1001 + 13 * 1000, pl.col("frame") < lost[1][0])
    third = acks["frame"][2]
    said = sentence_of(capture, third)
    assert said.startswith(f"frame {third} of {capture} is a segment without data (ACK) that acknowledges the bytes")
    assert "below 13001, for the 3rd time, SACK 14001-16001; no event names it" in said
    assert 2 == explain(analysis, third)["segment"]["duplicate_ack"]


def test_segment_of_a_connection_without_data(capture, analysis):
    syn = analysis.segments.filter(pl.col("src_port") == 40001)["frame"][0]
    assert "(SYN) of a connection that carried no data: it has no flow and no events" in sentence_of(capture, syn)


def test_frames_that_cannot_be_explained(capture, analysis):
    assert_sentence(tcpfit("explain", capture, 1), 2, "frame 1 of", "is no TCP segment", "1 UDP")
    last = analysis.capture["packets"]
    assert_sentence(tcpfit("explain", capture, last + 1), 2, f"no frame {last + 1}", f"its last one is {last}")
    assert_sentence(tcpfit("explain", capture, 0), 2, "FRAME")
    assert_sentence(tcpfit("explain", capture, "first"), 2, "FRAME")
    assert_sentence(tcpfit("explain", capture), 2, "FRAME")
    assert_sentence(tcpfit("explain", "absent.pcap", 1), 1, "no such file")
    with pytest.raises(InvalidParameter, match="segments=True"):
        explain(package.analyze(capture), 2)


def test_quiet_data_is_said_to_be_so(capture, analysis):
    quiet = analysis.segments.filter(pl.col("payload") > 0)["frame"][0]
    assert [] == explain(analysis, quiet)["events"]
    assert "no event names this frame: nothing shows that anything was wrong with it" in sentence_of(capture, quiet)


def test_json_is_what_python_gives(capture, analysis, lost):
    frame = lost[1][0]
    run = tcpfit("explain", capture, frame, "--format", "json")
    assert (0, "") == (run.returncode, run.stderr)
    expected = explain(analysis, frame)
    assert expected == json.loads(run.stdout)
    assert ["schema", "capture", "frame", "time_s", "segment", "events"] == list(expected)


def test_readers_explain_alike(capture, lost):
    frame = lost[1][0]
    assert tcpfit("explain", capture, frame).stdout == tcpfit("explain", capture, frame, "--reader", "dpkt").stdout


def test_vantage_can_be_said(capture, lost):
    frame = lost[1][0]
    run = tcpfit("explain", capture, frame, "--vantage", "receiver", "--format", "json")
    assert "receiver" == json.loads(run.stdout)["segment"]["vantage"]
    assert "captured at the receiver" in tcpfit("explain", capture, frame, "--vantage", "receiver").stdout


def test_nothing_is_said_twice():
    analysis = package.analyze(TIMEOUTS, segments=True)
    timeout = analysis.events.filter(pl.col("kind") == "timeout").row(0, named=True)
    text = one_line(text_of(explain(analysis, timeout["frame"])))
    assert 1 == text.count(RULES["rto"].sentence)
    assert 1 == text.count("the last ACK before the resend")
    assert "timer 333 ms" in text


@pytest.mark.parametrize(
    ("number", "text"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (22, "22nd")]
)
def test_ordinals(number, text):
    assert text == evidence.ordinal(number)


def test_an_ack_that_had_passed_before_the_resend_is_said_to_have():
    subject, cause = {"time_ns": 10**9}, {"time_ns": 9 * 10**8}
    (said,) = evidence._comparison("spurious", "too-early", subject, cause)
    assert said.startswith("that ACK had passed here 100 ms before the resend")
    (said,) = evidence._comparison("spurious", "too-early", cause, subject)
    assert "that ACK came 100 ms after the resend" == said


def test_lost_acks_are_told_by_the_identifications_of_those_around_them(tmp_path):
    scenario = Reader().read((ROOT / "tests/scenarios/tail-acks-lost.trace").read_text())
    path = tmp_path / "tail.pcap"
    path.write_bytes(captures.pcap(scenario.packets))
    text = one_line(text_of(explain(package.analyze(path, segments=True), scenario.frames["third"])))
    before = scenario.frames["last"] - 1
    assert f"IP identifications: 56, of the ACK before, frame {before}, 53" in text


def test_a_late_original_is_told_by_the_duplicate_ack_that_answers_it(tmp_path):
    scenario = Reader().read((ROOT / "tests/scenarios/late-original-after-its-resend.trace").read_text())
    path = tmp_path / "late.pcap"
    path.write_bytes(captures.pcap(scenario.packets))
    analysis = package.analyze(path, segments=True)
    text = one_line(text_of(explain(analysis, scenario.frames["again"])))
    answer, late = scenario.frames["answer"], scenario.frames["late"]
    assert f"frame {answer}, 159 ms later: the duplicate ACK that answers the original" in text
    # it came when that ACK was sent; the first duplicate ACK, 52 ms after it, had asked for it
    sent, came = (analysis.segments.filter(frame=frame)["time_ns"][0] for frame in (late, answer))
    late_s = analysis.events.filter(kind="reordering")["value"][0]
    assert (came - sent) / 1e9 - 0.052 == pytest.approx(late_s, abs=1e-6)


def test_a_timer_behind_a_path_that_stood_still_is_told_by_timestamps(tmp_path):
    scenario = Reader().read((ROOT / "tests/scenarios/receiver-path-stood-still.trace").read_text())
    path = tmp_path / "still.pcap"
    path.write_bytes(captures.pcap(scenario.packets))
    text = one_line(text_of(explain(package.analyze(path, segments=True), scenario.frames["second"])))
    first = scenario.frames["first"]
    assert f"of frame {first} 2088: it was sent 520 ms later, and one of them was held on its way" in text
    assert "30.0 us since it was last sent" in text
    assert "timer 520 ms" in text


def test_a_loss_that_only_acks_show_is_no_transmission(tmp_path):
    scenario = Reader().read((ROOT / "tests/scenarios/one-way-acks.trace").read_text())
    path = tmp_path / "acks.pcap"
    path.write_bytes(captures.pcap(scenario.packets))
    analysis = package.analyze(path, segments=True)
    shown = scenario.frames["shown"]
    assert f"by the ACKs that showed them: frame {shown}" in one_line(text_of(explain(analysis, shown)))
    proof = one_line(text_of(explain(analysis, scenario.frames["filled"])))
    assert f"frame {shown}, 53.0 ms earlier: the ACK that showed the hole" in proof
    assert "transmission that was lost" not in proof
