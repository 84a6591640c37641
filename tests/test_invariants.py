"""What must hold of any flow of any capture, whatever happened on its path."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import tcpfit

ROOT = Path(__file__).parent.parent
CAPTURES = [
    path
    for folder in (ROOT / "sample-traces", ROOT.parent / "shared" / "captures")
    for path in sorted(folder.glob("*.pcap*"))
]

BROKEN = {
    "more unique bytes than bytes": pl.col("unique_bytes") > pl.col("data_bytes"),
    "acknowledged but neither seen nor missing": (pl.col("acked_bytes") > pl.col("unique_bytes"))
    & (pl.col("missing_segments") == 0),
    "losses beyond what was sent": pl.col("lost_segments") > pl.col("sent_segments"),
    "losses before the sender": (pl.col("vantage") == "sender") & (pl.col("lost_upstream") > 0),
    "a range that does not hold its value": ~pl.col("lost_segments").is_between("lost_low", "lost_high"),
    "a range that does not hold its late segments": ~pl.col("reordered_segments").is_between(
        "reordered_low", "reordered_high"
    ),
    "a mean round trip below the least": pl.col("rtt_mean_s") < pl.col("rtt_min_s") * (1 - 1e-9),
    "it ends before it begins": pl.col("last_ns") < pl.col("first_ns"),
}


@pytest.fixture(scope="module", params=CAPTURES, ids=lambda path: path.name)
def analysis(request):
    return tcpfit.analyze(request.param)


@pytest.mark.parametrize("name", BROKEN)
def test_flows(analysis, name):
    assert [] == analysis.flows.filter(BROKEN[name])["flow"].to_list()


def test_a_frame_is_late_or_sent_again_not_both(analysis):
    of_frame = analysis.events.filter(pl.col("kind").is_in(["reordering", "retransmission"]))
    twice = of_frame.group_by("flow", "frame").agg(pl.col("kind").n_unique()).filter(pl.col("kind") > 1)
    assert [] == twice["frame"].to_list()


def test_every_ack_is_of_a_round(analysis):
    sums = analysis.rounds.group_by("flow").agg(pl.col("acked_bytes", "acks").sum())
    flows = analysis.flows.select("flow", "acked_bytes", "acks").join(sums, on="flow", suffix="_of_rounds")
    same = (pl.col("acked_bytes") == pl.col("acked_bytes_of_rounds")) & (pl.col("acks") == pl.col("acks_of_rounds"))
    assert [] == flows.filter(~same).rows()


def test_intervals_hold_their_value(analysis):
    outside = (pl.col("low") > pl.col("value")) | (pl.col("high") < pl.col("value")) | (pl.col("low") < 0)
    assert [] == analysis.parameters.filter(outside).rows()


def test_nothing_is_said_of_a_few_rounds(analysis):
    short = analysis.flows.filter(pl.col("data_segments") < 8)["flow"]
    verdicts = analysis.verdicts.filter(pl.col("flow").is_in(short.implode()))
    assert set(verdicts["state"]) <= {"insufficient"}


def test_there_are_captures():
    assert len(CAPTURES) >= 10
