"""Does every kind of figure draw what the tables say, all of it?"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import polars as pl
import pytest

import tcpfit
from tcpfit.exceptions import InvalidParameter
from tcpfit.report.figures import KINDS, THEMES, config
from tcpfit.report.figures.causes import CAUSES

pytest.importorskip("altair")

SAMPLES = Path(__file__).parents[2] / "sample-traces"
SEVERAL = ("newreno-loss", "timeouts", "sack-loss-sender", "reordering-receiver", "slow-reader", "ecn-marks-sender")


@cache
def analysed(name: str) -> tcpfit.Analysis:
    return tcpfit.analyze(SAMPLES / f"{name}.pcap.gz", segments=True)


@pytest.mark.parametrize("name", SEVERAL)
def test_every_event_of_the_time_sequence_graph_is_drawn(name):
    analysis = analysed(name)
    drawn = KINDS["time-sequence"].data(analysis, 0)["marks"]
    kinds = {cause.kind for cause in CAUSES}
    events = analysis.events.filter(pl.col("kind").cast(pl.String).is_in(list(kinds)))
    assert events.height > 0
    assert events["frame"].drop_nulls().sort().to_list() == drawn["frame"].drop_nulls().sort().to_list()
    assert events.height == drawn.height


@pytest.mark.parametrize("name", SEVERAL)
def test_every_row_of_the_ranking_is_drawn(name):
    analysis = analysed(name)
    drawn = KINDS["ranking"].data(analysis, 0)["models"]
    assert analysis.ranking["model"].to_list() == drawn["model"].to_list()
    ratios = zip(analysis.ranking["log_ratio"], drawn["ratio"], strict=True)
    assert all((a is None and b is None) or b == pytest.approx(a, abs=1e-4) for a, b in ratios)


@pytest.mark.parametrize("kind", KINDS)
def test_themes_differ_in_their_config_alone(kind):
    specs = {theme: KINDS[kind].chart(analysed("timeouts"), 0, theme=theme).to_dict() for theme in THEMES}
    configs = [spec.pop("config") for spec in specs.values()]
    assert configs[0] != configs[1]
    assert specs["light"] == specs["dark"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_flow_that_is_not_there_is_said(kind):
    with pytest.raises(InvalidParameter, match="has no flow 7; its flows are 0 to 0"):
        KINDS[kind].chart(analysed("timeouts"), 7)


def test_an_unknown_theme_is_said():
    with pytest.raises(InvalidParameter, match="theme must be one of light, dark, got 'sepia'"):
        config("sepia")
