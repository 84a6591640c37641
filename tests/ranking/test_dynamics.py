"""Bit rate over time: a simulated SACK sender under a step of loss, sums by hand, and refusals."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from simulated_flows import Sender

import tcpfit
from tcpfit import parameters
from tcpfit.exceptions import InvalidParameter
from tcpfit.parameters.growth import CUBIC_AS_RENO, families
from tcpfit.ranking.dynamics import COURSE, COURSE_SCORES, course
from tcpfit.ranking.prediction import predict

SAMPLES = Path(__file__).parents[2] / "sample-traces"
PHASE = 400  # rounds of one loss rate


class Stepping(Sender):
    """Loses 0.3 % and 3 % of its segments by turns."""

    def _round(self, *arguments: Any, **more: Any) -> None:
        super()._round(*arguments, **more)
        self.p = (0.003, 0.03)[len(self.rounds) // PHASE % 2]


@pytest.fixture(scope="module")
def stepping() -> SimpleNamespace:
    flows, events, rounds = Stepping(p=0.003, burst=1, slow_start=False).run(4 * PHASE, seed=5)
    found = parameters.estimate(flows, events, rounds)
    return SimpleNamespace(path="made", flows=flows, events=events, rounds=rounds, parameters=found)


def test_a_step_of_loss_is_followed(stepping):
    found = course(stepping, 0)
    score = {row["model"]: row for row in found.scores.to_dicts()}
    assert score["bohacek-dynamics"]["rms"] < 0.3
    assert score["mean-of-flow"]["rms"] > 1.5 * score["bohacek-dynamics"]["rms"]
    assert score["bohacek-dynamics"]["shape"] < score["mean-of-flow"]["shape"]
    rate = found.table["loss_rate"]
    assert rate.min() < 0.006
    assert rate.max() > 0.02
    assert "follows the changes" in found.text


def test_bins_hold_what_was_acknowledged(stepping):
    found = course(stepping, 0, bin_s=2.0)
    time = found.table["time_s"].to_numpy()
    np.testing.assert_allclose(np.diff(time), 2.0)
    total = 2.0 * found.table["observed_bps"].sum() / 8
    acked = stepping.rounds["acked_bytes"].sum()
    assert 0.9 * acked < total <= acked  # slow start, and what is left of the last bin, are not in it


def test_loss_events_drive_it_where_asked(stepping):
    """Single losses are their own events; where they come in bursts there are fewer events than losses."""
    by_loss, by_event = (course(stepping, 0, losses=name).table["loss_rate"] for name in ("segments", "events"))
    np.testing.assert_allclose(by_loss, by_event)
    bursts = tcpfit.analyze(SAMPLES / "bursty-loss.pcap.gz")
    flow = bursts.largest()[0]
    by_loss, by_event = (course(bursts, flow, losses=name).table["loss_rate"] for name in ("segments", "events"))
    assert (by_event <= by_loss).all()
    assert by_event.mean() < 0.8 * by_loss.mean()


def test_columns(stepping):
    found = course(stepping, 0)
    assert [c.name for c in COURSE] == found.table.columns[: len(COURSE)]
    assert [c.name for c in COURSE_SCORES] == found.scores.columns
    assert found.table["in_timeout"].is_between(0, 1).all()
    assert isinstance(found.table["pftk-full"], pl.Series)


def test_a_cubic_flow_grows_as_the_ranking_takes_it():
    """The models of Reno are given the b of the Reno flow with the same mean rate."""
    analysis = tcpfit.analyze(SAMPLES / "cubic.pcap.gz")
    flow = analysis.largest()[0]
    assert "cubic" == families(analysis.evidence).filter(pl.col("flow") == flow)["family"].cast(pl.String)[0]
    given = analysis.parameters.filter(pl.col("flow") == flow, pl.col("name").cast(pl.String) == "b")["value"][0]
    with patch("tcpfit.ranking.dynamics.predict", wraps=predict) as asked:
        course(analysis, flow)
    assert {CUBIC_AS_RENO * given} == {b for call in asked.call_args_list for b in call.args[1]["b"]}


def test_losses_without_an_event_are_said(stepping):
    """Late segments cut the blocks too; the rounds count what was lost."""
    kinds = stepping.events["kind"].cast(pl.String).replace("loss_event", "reorder_event")
    late = SimpleNamespace(**vars(stepping))
    late.events = stepping.events.with_columns(kinds.cast(stepping.events.schema["kind"]))
    with pytest.raises(InvalidParameter, match="has no loss event"):
        course(late, 0, losses="events")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"flow": 9}, "has no flow 9"),
        ({"flow": 0, "bin_s": 0.01}, "a bin must last between"),
        ({"flow": 0, "bin_s": 1e6}, "a bin must last between"),
        ({"flow": 0, "losses": "acks"}, "losses must be one of segments, events"),
    ],
)
def test_bad_arguments(stepping, arguments, says):
    with pytest.raises(InvalidParameter, match=says):
        course(stepping, **arguments)


def test_too_few_losses():
    quiet = tcpfit.analyze(SAMPLES / "window-limited.pcap.gz")
    with pytest.raises(InvalidParameter, match="a loss rate that changes needs 2 blocks"):
        course(quiet, quiet.largest()[0])
