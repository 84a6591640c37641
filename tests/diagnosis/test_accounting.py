"""Is every instant of a flow given to one cause, and to the right one?"""

from __future__ import annotations

import json
from pathlib import Path

import captures
import polars as pl
import pytest
from test_timers import MSS, RTT_S, Conversation, stop_and_go

import tcpfit
from tcpfit.diagnosis import account, diagnose
from tcpfit.diagnosis.causes import CAUSES, RULE_OF, Reason

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample-traces"
TRACES = ROOT / ".." / "shared" / "traces"
CAPTURES = sorted(path for path in SAMPLES.iterdir() if ".pcap" in path.name)


def spans_of(path: Path) -> tuple[tcpfit.Analysis, pl.DataFrame]:
    analysis = tcpfit.analyze(path)
    return analysis, account(analysis.flows, analysis.events, analysis.rounds)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_spans_tile_the_time_of_every_flow(path):
    analysis, spans = spans_of(path)
    assert set(spans["cause"]) <= set(CAUSES)
    assert (spans["end_ns"] > spans["start_ns"]).all()
    ends = analysis.flows.select("flow", "first_ns", "last_ns", "acked_bytes", "flight_max")
    for number, part in spans.group_by("flow", maintain_order=True):
        row = ends.filter(pl.col("flow") == number[0]).row(0, named=True)
        assert part["start_ns"][0] == row["first_ns"]
        assert (part["start_ns"][1:] == part["end_ns"][:-1]).all()
        assert part["end_ns"][-1] <= row["last_ns"]
        if row["flight_max"] is not None:
            assert part["bytes"].sum() == pytest.approx(row["acked_bytes"], rel=0.02, abs=3000)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_shares_sum_to_one(path):
    analysis = tcpfit.analyze(path)
    for diagnosis in diagnose(analysis.flows, analysis.events, analysis.rounds).values():
        shown = sum(cause.time_share for cause in diagnosis.causes)
        assert shown <= 1 + 1e-9
        if diagnosis.causes:  # what is not shown is below half a percent a cause
            assert shown > 1 - 0.005 * len(CAUSES)


@pytest.mark.parametrize(
    ("name", "causes"),
    [
        ("slow-reader.pcap.gz", {"receiver-stalled"}),
        ("window-limited.pcap.gz", {"receiver-window-limited"}),
        ("newreno-loss.pcap.gz", {"loss-limited"}),
        ("sack-loss-sender.pcap.gz", {"loss-limited"}),
        ("sack-loss-receiver.pcap.gz", {"loss-limited"}),
        ("bursty-loss.pcap.gz", {"loss-limited"}),
        ("cubic.pcap.gz", {"loss-limited"}),
        ("timeouts.pcap.gz", {"loss-limited", "timeout-limited"}),
        ("reordering-sender.pcap.gz", {"reordering-limited"}),
        ("reordering-receiver.pcap.gz", {"reordering-limited"}),
        ("ecn-marks-sender.pcap.gz", {"bottleneck-limited"}),
    ],
)
def test_samples_have_the_cause_they_were_made_with(name, causes):
    analysis = tcpfit.analyze(SAMPLES / name)
    found = diagnose(analysis.flows, analysis.events, analysis.rounds)
    assert found[analysis.largest()[0]].primary in causes


def test_nothing_that_rests_on_losses_is_claimed_when_the_capture_missed_data():
    """The runs of the timers stand: in all that time nothing passed in either direction."""
    analysis = tcpfit.analyze(SAMPLES / "newreno-loss.pcap.gz")
    missing = (pl.col("data_segments") // 50).alias("missing_segments")
    found = diagnose(analysis.flows.with_columns(missing), analysis.events, analysis.rounds)
    diagnosis = found[analysis.largest()[0]]
    assert diagnosis.primary == "unknown"
    claimed = {cause.cause: cause.seconds for cause in diagnosis.causes}
    timers = analysis.events.filter(pl.col("kind") == "timeout")["value"].sum()
    assert claimed.keys() & {"loss-limited", "reordering-limited"} == set()
    assert claimed["timeout-limited"] == pytest.approx(timers, rel=0.05)
    assert "missed" in diagnosis.text


def test_a_flow_with_one_direction_missing_is_unknown():
    analysis = tcpfit.analyze(SAMPLES / "newreno-small.pcapng.zst")
    flows = analysis.flows.with_columns(flight_max=pl.lit(None, pl.Float64))
    for diagnosis in diagnose(flows, analysis.events, analysis.rounds).values():
        assert diagnosis.primary == "unknown"


@pytest.mark.skipif(not TRACES.is_dir(), reason="the traces with truth are not here")
def test_kernel_shares_are_within_five_points():
    """TCP_INFO's busy, rwnd_limited and sndbuf_limited times, at the sender, of nine flows in ten."""
    near = []
    for path in sorted(TRACES.glob("*/truth.json")):
        truth = json.loads(path.read_text())
        if len(truth["flows"]) != 1:
            continue
        flow = truth["flows"][0]
        analysis = tcpfit.analyze(next(path.parent.glob("sender.pcap*")))
        own = analysis.flows.filter(pl.col("src") == flow["src"])
        seconds = (own["last_ns"][0] - own["first_ns"][0]) / 1e9
        found = diagnose(own, analysis.events, analysis.rounds)[own["flow"][0]].kernel
        names = {"busy": "busy_time_us", "rwnd_limited": "rwnd_limited_us", "sndbuf_limited": "sndbuf_limited_us"}
        off = [abs(found[mine] - min(flow["tcp_info"][name] / 1e6 / seconds, 1.0)) for mine, name in names.items()]
        near.append(max(off) <= 0.05)
    assert len(near) > 40
    assert sum(near) >= 0.9 * len(near)


def test_the_window_was_full_in_the_samples_made_so():
    """TCP_INFO says 99.3 % of the time of window-limited, 95.6 % of slow-reader."""
    for name, least in (("window-limited.pcap.gz", 0.98), ("slow-reader.pcap.gz", 0.94)):
        analysis = tcpfit.analyze(SAMPLES / name)
        found = diagnose(analysis.flows, analysis.events, analysis.rounds)[analysis.largest()[0]]
        assert found.kernel["rwnd_limited"] > least
        assert analysis.rounds["window_full_s"].sum() / sum(c.seconds for c in found.causes) > least


def test_idle_time_is_what_is_not_busy():
    analysis = tcpfit.analyze(SAMPLES / "slow-reader.pcap.gz")
    row = analysis.flows.row(0, named=True)
    seconds = (row["last_ns"] - row["first_ns"]) / 1e9
    assert row["busy_s"] + analysis.rounds["idle_s"].sum() == pytest.approx(seconds, rel=0.03)
    assert analysis.rounds["idle_s"].sum() > 0.5 * seconds


@pytest.mark.parametrize("lost", [True, False])
def test_the_wait_for_the_probe_of_a_lost_tail_is_losses(tmp_path, lost):
    """Ten segments of which the last is sent again 150 ms later; a D-SACK says whether it had come."""
    talk = Conversation(sack=True)
    at_s, head = stop_and_go(talk, 0.1, 10)
    end = head + 10 * MSS
    for n in range(10):
        talk.sent(at_s + 1e-4 * n, head + n * MSS, payload=MSS)
        if n < 9:
            talk.heard(at_s + RTT_S + 1e-4 * n, head + (n + 1) * MSS)
    probe_s = at_s + RTT_S + 0.15
    talk.sent(probe_s, end - MSS, payload=MSS)
    talk.heard(probe_s + RTT_S, end, *([] if lost else [(end - MSS, end)]))
    stop_and_go(talk, probe_s + 2 * RTT_S, 10, end)
    analysis = talk.analysed(tmp_path / "probe.pcap")
    flow = analysis.flows.row(0, named=True)
    assert (1, int(lost), 0) == tuple(flow[name] for name in ("tail_loss_probes", "lost_segments", "timeouts"))
    spans = account(analysis.flows, analysis.events, analysis.rounds).to_dicts()
    waited = [span for span in spans if span["end_ns"] == captures.START_NS + round(probe_s * 1e9)]
    rules = [span["rule"] for span in waited if span["cause"] == "loss-limited"]
    assert rules == [RULE_OF[Reason.PROBE]] * lost
