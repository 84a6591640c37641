"""Is the cause named that the rule names, and is what is printed whole?"""

from __future__ import annotations

import json
from pathlib import Path

import captures
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from tcpfit.cli.main import main

import tcpfit
from tcpfit.diagnosis import diagnose
from tcpfit.diagnosis.accounting import SPANS, account
from tcpfit.diagnosis.causes import (
    ACK_ASTRAY,
    AFTER,
    APPLICATION,
    AWAITING,
    BOTTLENECK,
    IDLE,
    OVERFLOWED,
    TIMEOUT,
    TIMER_RAN,
    TURN,
    UNKNOWN,
)
from tcpfit.diagnosis.stalls import Stall
from tcpfit.diagnosis.table import of_spans, report
from tcpfit.diagnosis.verdict import RECOVERING, REMEDIES, SENTENCES, WHO, WITH_PROBES, WITH_SACK, Diagnosis, judge
from tcpfit.ranking import observed
from tcpfit.report import diagnosed

SAMPLES = Path(__file__).resolve().parents[2] / "sample-traces"
S = 10**9


def spans(*rows: tuple[float, str, float]) -> pl.DataFrame:
    """Spans of flow 0 one after the other: seconds, cause, bytes."""
    ends = np.cumsum([round(seconds * S) for seconds, _, _ in rows])
    return pl.DataFrame(
        {
            "flow": [0] * len(rows),
            "start_ns": np.concatenate(([0], ends[:-1])),
            "end_ns": ends,
            "cause": [cause for _, cause, _ in rows],
            "rule": ["a rule"] * len(rows),
            "frame": pl.Series([None] * len(rows), dtype=pl.UInt64),
            "bytes": [float(moved) for _, _, moved in rows],
            "window_full": [False] * len(rows),
            "waited": [False] * len(rows),
        }
    )


def judged(*rows: tuple[float, str, float]) -> Diagnosis:
    return judge(spans(*rows), np.array([0]), np.array([0]), ["sender"], np.array([0.0]))[0]


@pytest.mark.parametrize(
    ("rows", "primary"),
    [
        # the most time
        ([(6, "loss-limited", 1e6), (4, "receiver-window-limited", 2e6)], "loss-limited"),
        # near the ceiling: 95 % of its rate
        ([(9, "receiver-window-limited", 9e6), (1, "loss-limited", 0.5e6)], "receiver-window-limited"),
        # most of the time at the ceiling, but a fifth of its rate is lost to reordering
        ([(6, "receiver-window-limited", 6e6), (4, "reordering-limited", 2e6)], "reordering-limited"),
        # so it is where the path's rate is the ceiling
        ([(9, "bottleneck-limited", 9e6), (1, "loss-limited", 0.5e6)], "bottleneck-limited"),
        ([(6, "bottleneck-limited", 6e6), (3, "loss-limited", 1.5e6), (1, "timeout-limited", 0)], "loss-limited"),
        # pauses of the application are none of the ceiling's business
        ([(6, "receiver-window-limited", 6e6), (4, "application-limited", 0)], "receiver-window-limited"),
    ],
)
def test_primary(rows, primary):
    assert judged(*rows).primary == primary


def test_a_verdict_that_had_less_of_the_time_says_so():
    found = judged((6, "bottleneck-limited", 6e6), (4, "loss-limited", 2e6))
    assert found.text == (
        "Network: in 40% of the time the window was what losses had left of it. It was bottleneck-limited for longer "
        "(60%), but a tenth faster then, or more."
    )


FULL = "of the time the path was full: a queue stood and the rate was the path's."
RECOVERED = "of the time the flow recovered from the losses of a queue that it had filled itself."


@pytest.mark.parametrize(
    ("recovered_s", "carried", "said"),
    [
        (2.5, 0.5e6, f"in 75% {FULL} In 25% it recovered from what that queue had lost, at 20% of that rate."),
        (2.5, 2.4e6, f"in 100% {FULL}"),
        (0.9, 0.1e6, f"in 100% {FULL}"),
        (6.0, 0.5e6, f"in 60% {RECOVERED} In 40% that queue stood and the rate was the path's."),
        (9.5, 0.5e6, f"in 95% {RECOVERED}"),
    ],
)
def test_a_slow_recovery_from_what_a_full_queue_lost_is_no_full_path(recovered_s, carried, said):
    full_s = 10 - recovered_s
    found = spans((full_s, BOTTLENECK, 1e6 * full_s), (recovered_s, BOTTLENECK, carried))
    found = found.with_columns(rule=pl.Series(["a rule", OVERFLOWED]))
    diagnosis = judge(found, np.array([0]), np.array([0]), ["sender"], np.array([0.0]))[0]
    assert f"Network: {said}" == diagnosis.text
    assert ("SACK" in diagnosis.remedy) == (recovered_s > 5)


@pytest.mark.parametrize(
    ("waited_s", "own_s", "said"),
    [
        (1.0, 9.0, "Sender: in 100% of the time the sending application had nothing to send. In 10% or more it waited"),
        (7.0, 3.0, "waited for the other end's next data. In up to 30% the sending application had nothing to send."),
        (0.5, 9.5, "Sender: in 100% of the time the sending application had nothing to send."),
        (9.5, 0.5, "Receiver: in 100% of the time the sender had sent all that it was asked for and waited"),
    ],
)
def test_a_pause_is_divided_between_the_ends(waited_s, own_s, said):
    found = spans((waited_s, APPLICATION, 0), (own_s, APPLICATION, 0)).with_columns(rule=pl.Series([AWAITING, IDLE]))
    text = judge(found, np.array([0]), np.array([0]), ["sender"], np.array([0.0]))[0].text
    assert said in text
    assert text.count("%") == 1 + (0.1 <= waited_s / 10 <= 0.9)


@pytest.mark.parametrize(("known_s", "said"), [(3.0, " In 30% it was timeout-limited."), (0.5, "")])
def test_what_is_known_of_a_flow_of_which_most_is_not_is_said(known_s, said):
    diagnosis = judged((10 - known_s, UNKNOWN, 1e6), (known_s, TIMEOUT, 0))
    assert diagnosis.primary == UNKNOWN
    assert f"In {10 * (10 - known_s):.0f}% of the time {SENTENCES[UNKNOWN]}.{said}" == diagnosis.text


@pytest.mark.parametrize(("in_vain_s", "said"), [(2.0, False), (4.0, True)])
def test_timers_for_data_that_had_arrived_are_said_to_be_in_vain(in_vain_s, said):
    found = spans((3.0, TIMEOUT, 0), (in_vain_s, TIMEOUT, 0), (1.0, TIMEOUT, 1e5)).with_columns(
        rule=pl.Series([TIMER_RAN, ACK_ASTRAY, AFTER])
    )
    diagnosis = judge(found, np.array([0]), np.array([0]), ["sender"], np.array([0.0]))[0]
    assert (said, said) == ("had arrived" in diagnosis.text, "ACKs on the way back" in diagnosis.remedy)


@pytest.mark.parametrize(
    ("sack", "probes", "remedy"),
    [(False, 0, REMEDIES[TIMEOUT]), (None, 0, REMEDIES[TIMEOUT]), (True, 0, WITH_SACK), (True, 3, WITH_PROBES)],
)
def test_what_the_ends_do_already_is_no_remedy(sack, probes, remedy):
    flows = tcpfit.analyze(SAMPLES / "timeouts.pcap.gz").flows.head(1)
    found = spans((10.0, TIMEOUT, 0)).with_columns(flow=flows["flow"][0])
    changed = flows.with_columns(
        sack_permitted=pl.lit(sack, pl.Boolean),
        tail_loss_probes=pl.lit(probes, pl.UInt64),
        timeouts=pl.lit(1, pl.UInt64),
    )
    assert remedy == of_spans(changed, found)[flows["flow"][0]].remedy
    # where it is another limit's time, timers or not, its own remedy stays
    other = found.with_columns(cause=pl.lit(APPLICATION))
    assert REMEDIES[APPLICATION] == of_spans(changed, other)[flows["flow"][0]].remedy
    # so is SACK none of a long recovery from a full queue's losses
    overflowed = found.with_columns(cause=pl.lit(BOTTLENECK), rule=pl.lit(OVERFLOWED))
    expected = REMEDIES[BOTTLENECK] if sack else RECOVERING[1]
    assert expected == of_spans(changed, overflowed)[flows["flow"][0]].remedy


def test_the_other_end_is_waited_for_until_its_last_data(tmp_path):
    """An answer of a second's length, segment by segment over a path of 0.2 s, and 0.7 s of the client's thinking."""
    client, server = ("10.0.0.1", "10.0.0.2", 40000, 80), ("10.0.0.2", "10.0.0.1", 80, 40000)
    mss, request, sent = b"\x02\x04\x05\xb4", 100, 1000
    timed = [
        (0, captures.tcp(*client, 0, 0, captures.SYN, options=mss)),
        (0.2, captures.tcp(*server, 0, 1, captures.SYN | captures.ACK, options=mss)),
        (0.2001, captures.tcp(*client, 1, 1, captures.ACK)),
    ]
    for asked, at in enumerate((0.3, 2.2, 4.1)):
        answered = 1 + asked * 50 * sent
        timed.append((at, captures.tcp(*client, 1 + asked * request, answered, captures.ACK, request)))
        for number in range(50):
            left, then = answered + number * sent, at + 0.2 + number * 0.02
            timed.append((then, captures.tcp(*server, left, 1 + (asked + 1) * request, captures.ACK, sent)))
            timed.append((then + 1e-4, captures.tcp(*client, 1 + (asked + 1) * request, left + sent, captures.ACK)))
    frames = [captures.link(datagram, captures.ETHERNET) for _, datagram in timed]
    packets = [
        captures.Packet(captures.START_NS + round(at * 1e9), frame, len(frame))
        for (at, _), frame in zip(timed, frames, strict=True)
    ]
    (tmp_path / "answers.pcap").write_bytes(captures.pcap(packets))
    found = tcpfit.analyze(tmp_path / "answers.pcap")
    own = account(found.flows, found.events, found.rounds).filter(pl.col("flow") == 0)
    waits = own.filter(pl.col("rule").is_in([AWAITING, TURN]))
    ends = [(end - captures.START_NS) / 1e9 for end in waits["end_ns"][:2]]
    assert [1.48, 3.38] == pytest.approx(ends, abs=0.03)


def test_every_cause_has_its_words():
    assert WHO.keys() == SENTENCES.keys() == REMEDIES.keys()


def run(*arguments: str):
    return CliRunner().invoke(main, ["diagnose", *arguments], env={"COLUMNS": "80"})


def test_three_lines_come_first_and_all_fit_80_columns():
    result = run(str(SAMPLES / "slow-reader.pcap.gz"))
    assert result.exit_code == 0
    lines = result.output.splitlines()
    labels = [line.split()[0] for line in lines[3:] if line[:3] == "  " + line[2:3] and line[2:3].strip()]
    assert labels[:3] == ["verdict", "cost", "remedy"]
    assert max(map(len, lines)) <= 80


def test_json_has_what_the_text_has():
    flow = json.loads(run(str(SAMPLES / "timeouts.pcap.gz"), "--format", "json").output)["captures"][0]["flows"][0]
    diagnosis = flow["diagnosis"]
    assert diagnosis["primary"] == diagnosis["causes"][0]["cause"] == "loss-limited"
    assert sum(cause["time_share"] for cause in diagnosis["causes"]) == pytest.approx(1, abs=0.02)
    assert all(cause["evidence"] for cause in diagnosis["causes"])
    assert {change["change"] for change in diagnosis["what_if"]} >= {"half the losses"}
    assert len([stall for stall in diagnosis["stalls"] if stall["cause"] == "timeout"]) > 20


def test_between_accounts_for_that_time_only():
    arguments = (str(SAMPLES / "timeouts.pcap.gz"), "--between", "10s", "20s", "--format", "json")
    flow = json.loads(run(*arguments).output)["captures"][0]["flows"][0]
    assert sum(cause["seconds"] for cause in flow["diagnosis"]["causes"]) == pytest.approx(10, rel=0.01)
    whole = json.loads(run(arguments[0], "--format", "json").output)["captures"][0]["flows"][0]
    asked, of_all = ({change["change"]: change for change in f["diagnosis"]["what_if"]} for f in (flow, whole))
    assert asked.keys() == of_all.keys()
    halved = [change["half the losses"] for change in (asked, of_all)]
    assert halved[0]["rate_bps"] != halved[1]["rate_bps"]


def test_a_time_without_the_flow_says_so():
    one, other = str(SAMPLES / "timeouts.pcap.gz"), str(SAMPLES / "slow-reader.pcap.gz")
    result = run(one, "--between", "1000s", "2000s")
    assert result.exit_code == 2
    assert "timeouts.pcap.gz: --between begins 1000 s after its first packet, but it lasts" in result.output
    result = run(one, other, "--between", "1000s", "2000s")
    assert result.exit_code == 0
    assert ["--between begins" in line for line in result.output.splitlines()][:2] == [True, True]
    assert 2 == result.output.count("unknown")


def test_many_captures_are_a_table_sorted_by_cost():
    result = run(str(SAMPLES / "window-limited.pcap.gz"), str(SAMPLES / "slow-reader.pcap.gz"))
    rows = [line for line in result.output.splitlines() if "limited" in line or "stalled" in line]
    assert ["slow-reader" in row for row in rows] == [True, False]


@pytest.mark.parametrize("arguments", [("--between", "20s", "10s"), ("--flow", "99")])
def test_arguments_that_make_no_sense(arguments):
    result = run(str(SAMPLES / "timeouts.pcap.gz"), *arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_a_flow_that_one_flight_carried_is_told_to_have_waited_for_no_window():
    analysis = tcpfit.analyze(SAMPLES / "short-web.pcap.gz")
    found = diagnose(analysis.flows, analysis.events, analysis.rounds)
    rounds = analysis.rounds.group_by("flow").agg(pl.len(), pl.col("resent_segments").sum()).filter(pl.col("len") == 1)
    single = rounds.filter(pl.col("resent_segments") == 0)["flow"].to_list()
    slow = [found[flow] for flow in single if found[flow].primary == "slow-start-limited"]
    assert len(slow) > 100
    assert all("under way at once" in each.text and "larger window" not in each.remedy for each in slow)
    others = [found[flow] for flow in analysis.rounds["flow"].unique() if flow not in single]
    assert not any("under way at once" in each.text for each in others)


def test_times_of_a_part_count_from_the_first_data_of_the_flow():
    analysis = tcpfit.analyze(SAMPLES / "timeouts.pcap.gz", segments=True)
    start = analysis.capture["start_ns"]
    whole = report(analysis)[0]
    part = report(analysis, (start + 20 * 10**9, start + 30 * 10**9))[0]
    first_s = (whole.flow["first_ns"] - start) / 1e9
    assert part.span_ns is not None and whole.span_ns is None
    for cause in part.diagnosis.causes:
        assert 20 - first_s - 1e-6 <= cause.since_s < 30
    assert 20 - first_s == pytest.approx(min(cause.since_s for cause in part.diagnosis.causes), abs=1e-6)


@pytest.mark.parametrize(
    ("completeness", "said"),
    [
        (1, "sent 3 times and was not answered."),
        (1 | 32, "sent 3 times and was refused."),
        (1 | 2 | 4, "no data came."),
    ],
)
def test_a_flow_of_syns_alone_says_so(completeness: int, said: str) -> None:
    row = {"flow": 0, "data_segments": 0, "timeouts": 2, "completeness": completeness, "acks_seen": False}
    flows = tcpfit.analyze(SAMPLES / "newreno-loss.pcap.gz").flows[:1]
    flows = flows.with_columns(pl.lit(value).cast(flows.schema[name]).alias(name) for name, value in row.items())
    found = of_spans(flows, pl.DataFrame(schema={c.name: c.dtype for c in SPANS}))
    assert ("unknown", True) == (found[0].primary, found[0].text.endswith(said))


def test_the_cost_is_of_all_the_time_and_says_what_its_rate_is_of():
    """Causes of less than half a percent are not named, but their time passed too. At the receiver's end the last
    segments arrived and were not acknowledged any more."""
    for name, acknowledged in (("findings/window-scaling-receiver", True), ("slow-reader", False)):
        analysis = tcpfit.analyze(SAMPLES / f"{name}.pcap.gz", segments=True)
        found = report(analysis)[0]
        spans = account(analysis.flows, analysis.events, analysis.rounds).filter(pl.col("flow") == found.flow["flow"])
        assert found.accounted_s == pytest.approx((spans["end_ns"] - spans["start_ns"]).sum() / 1e9)
        named = sum(cause.seconds for cause in found.diagnosis.causes)
        assert (found.accounted_s > named + 0.1) == (name == "slow-reader")
        assert acknowledged == (" acknowledged (" in diagnosed.cost_sentence(found))
        arrived = observed(analysis.flows, analysis.events, analysis.rounds).filter(
            pl.col("flow") == found.flow["flow"]
        )
        assert arrived["goodput_bps"][0] == found.goodput_bps


def test_frames_of_a_stall_that_did_not_pass_are_not_printed():
    frames = [(None, None, "-"), (4, None, "4 to -"), (4, 5, "4 to 5")]
    for before, after, shown in frames:
        assert shown == diagnosed._frames(Stall(0, 1, "timeout", "other", None, 0.3, before, after))
