"""What is said of a capture that has one direction only: data without ACKs, or ACKs without data.

The samples, each filtered to one direction, are held against what happened on their path. Counts may be lower than the
truth, where a direction is missing; nothing may be claimed that was not so.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import tcpfit
from tcpfit.diagnosis.stalls import stalls
from tcpfit.report.explanation import explain
from tcpfit.report.figures import NothingToDraw
from tcpfit.report.figures.packets import packets

FOLDER = Path(__file__).parent.parent / "sample-traces"
TRUTHS = {path.name.removesuffix(".truth.json"): json.loads(path.read_text()) for path in FOLDER.glob("*.truth.json")}
CAPTURES = [(name, end) for name, truth in sorted(TRUTHS.items()) for end in truth["captures"]]


def one_way(name: str, end: str, word: str) -> tuple[tcpfit.Analysis, pl.DataFrame]:
    """The capture with only the packets that have the data sender as `word` (src or dst), and the flows of its data."""
    truth = TRUTHS[name]
    sender = truth["flows"][0]["src"]
    analysis = tcpfit.analyze(FOLDER / truth["captures"][end], filter=f"{word} host {sender}")
    return analysis, analysis.flows.filter(pl.col("src") == sender)


@pytest.mark.parametrize(("name", "end"), CAPTURES)
def test_data_alone(name, end):
    analysis, flows = one_way(name, end, "src")
    whole = tcpfit.analyze(FOLDER / TRUTHS[name]["captures"][end])
    both = whole.flows.filter(pl.col("src") == TRUTHS[name]["flows"][0]["src"])
    for column in ("data_segments", "data_bytes", "unique_bytes", "duplicated_segments"):
        assert both[column].sum() == flows[column].sum(), column
    assert not flows["acks_seen"].any()
    assert flows["vantage"].unique().to_list() == ["unknown"]
    for column in ("rtt_mean_s", "rto_s", "flight_max", "busy_s", "limited_share", "rwnd_max"):
        assert flows[column].null_count() == flows.height, column
    events = analysis.events.filter(pl.col("flow").is_in(flows["flow"].implode()))
    assert events.filter(pl.col("kind") != "reorder_event")["flight"].is_null().all()
    assert analysis.rounds.filter(pl.col("flow").is_in(flows["flow"].implode())).is_empty()
    assert flows["fast_recoveries"].sum() == flows["spurious_retransmissions"].sum() == 0
    assert "has the data but not the ACKs" in " ".join(analysis.warnings)


@pytest.mark.parametrize(("name", "end"), CAPTURES)
def test_losses_and_timers_that_data_alone_show_were_so(name, end):
    _, flows = one_way(name, end, "src")
    counts = TRUTHS[name]["counts"]
    assert flows["lost_low"].sum() <= counts["lost_segments"]
    assert flows["timeouts"].sum() <= counts["timeouts"]
    assert flows["reordered_segments"].sum() <= counts["reordered_segments"]


@pytest.mark.parametrize(("name", "end"), CAPTURES)
def test_acks_alone(name, end):
    analysis, flows = one_way(name, end, "dst")
    whole = tcpfit.analyze(FOLDER / TRUTHS[name]["captures"][end])
    both = whole.flows.filter(pl.col("src") == TRUTHS[name]["flows"][0]["src"])
    assert flows["data_segments"].sum() == 0
    assert flows["acks_seen"].all()
    # the FIN's number cannot be told from a byte of data
    over = flows["acked_bytes"].sum() - both["acked_bytes"].sum()
    assert 0 <= over <= flows.height
    assert flows["zero_window_episodes"].sum() == both["zero_window_episodes"].sum()
    for column in ("rtt_mean_s", "rto_s", "flight_max", "busy_s", "limited_share"):
        assert flows[column].null_count() == flows.height, column
    assert "has the ACKs but not the data" in " ".join(analysis.warnings)


@pytest.mark.parametrize(("name", "end"), CAPTURES)
def test_losses_that_the_acks_alone_prove_were_so(name, end):
    _, flows = one_way(name, end, "dst")
    counts = TRUTHS[name]["counts"]
    assert flows["lost_low"].sum() <= counts["lost_segments"]
    if TRUTHS[name]["sender"]["sack"] and not counts["reordered_segments"]:
        # every hole that SACK blocks show is a first loss; resends that were lost again do not show
        assert flows["lost_segments"].sum() <= counts["lost_segments"]
        assert flows["lost_segments"].sum() >= 0.75 * counts["lost_segments"]


def test_no_indication_is_counted_without_both_directions():
    name, end = "sack-loss", "sender"
    for word in ("src", "dst"):
        analysis, _ = one_way(name, end, word)
        values = analysis.parameters.filter(pl.col("name").is_in(["p_indication", "p_to", "rtt", "w"]))["value"]
        assert values.is_null().all(), word


def test_a_port_that_is_used_again_is_another_flow():
    truth = TRUTHS["short-web"]
    analysis, flows = one_way("short-web", next(iter(truth["captures"])), "src")
    assert flows.height == len(truth["flows"])


@pytest.mark.parametrize("word", ["src", "dst"])
def test_every_label_of_one_direction_can_be_explained(word):
    truth = TRUTHS["timeouts"]
    path = FOLDER / truth["captures"]["sender"]
    whole = tcpfit.analyze(path, filter=f"{word} host {truth['flows'][0]['src']}", segments=True)
    named = whole.events.filter(pl.col("frame").is_not_null())
    assert named.height > 50
    for frame in named["frame"].unique().sort().to_list():
        assert explain(whole, frame)["events"]


def test_pauses_between_data_are_no_stalls_for_want_of_a_round_trip():
    truth = TRUTHS["timeouts"]
    path = FOLDER / truth["captures"]["sender"]
    whole, alone = (
        tcpfit.analyze(path, filter=chosen, segments=True) for chosen in (None, f"src host {truth['flows'][0]['src']}")
    )
    of_whole, of_data = (stalls(each.flows.row(0, named=True), each.events, each.segments) for each in (whole, alone))
    assert {"timeout"} == {stall.cause for stall in of_data}
    assert 0 < len(of_data) <= len(of_whole)


HALVES = {
    "src": "only its data are in the capture, not the ACKs",
    "dst": "only the ACKs of its data are in the capture",
}
"""What is said of a capture that is filtered so."""


@pytest.mark.parametrize("word", HALVES)
def test_figures_say_which_direction_is_missing(word):
    pytest.importorskip("altair")
    truth = TRUTHS["window-limited"]
    path = FOLDER / truth["captures"]["sender"]
    half = tcpfit.analyze(path, filter=f"{word} host {truth['flows'][0]['src']}", segments=True)
    for kind in ("window", "rtt", "rate", "ranking", "residuals", "losses", "stalls"):
        with pytest.raises(NothingToDraw, match=f": {HALVES[word]}$"):
            half.plot(kind)


def test_acks_alone_are_drawn_where_they_would_be_beside_the_data():
    pytest.importorskip("altair")
    name, end = "sack-loss", "sender"
    path, sender = FOLDER / TRUTHS[name]["captures"][end], TRUTHS[name]["flows"][0]["src"]
    whole, alone = (tcpfit.analyze(path, filter=f, segments=True) for f in (None, f"dst host {sender}"))
    assert packets(whole, 0).acks.select("frame", "acked").equals(packets(alone, 0).acks.select("frame", "acked"))
    text = alone.plot("time-sequence").description
    assert text.startswith("Sequence numbers over time: ACKs of 6.27 MB in 60.9 s. Marked: lost ")


@pytest.mark.parametrize("word", HALVES)
def test_what_figures_of_half_a_flow_show_is_no_more_than_half(word):
    pytest.importorskip("altair")
    truth = TRUTHS["window-limited"]
    path = FOLDER / truth["captures"]["sender"]
    half = tcpfit.analyze(path, filter=f"{word} host {truth['flows'][0]['src']}", segments=True)
    for kind in ("time-sequence", "shares"):
        text = half.plot(kind).description
        assert text.endswith(f". O{HALVES[word][1:]}."), text
        assert "nothing was lost" not in text
