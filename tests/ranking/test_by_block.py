"""The errors of models block by block: do they add up to the scores of the ranking?"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import polars as pl
import pytest
from simulated_flows import Sender, event_row

import tcpfit
from tcpfit.models import get
from tcpfit.parameters import estimate
from tcpfit.ranking.by_block import BY_BLOCK, MEAN, by_block
from tcpfit.ranking.table import BASELINES

SAMPLES = Path(__file__).parents[2] / "sample-traces"


@cache
def analysed(name: str) -> tcpfit.Analysis:
    return tcpfit.analyze(SAMPLES / f"{name}.pcap.gz")


@pytest.mark.parametrize("name", ["newreno-loss", "sack-loss-sender", "cubic"])
def test_the_weighted_mean_square_is_the_score(name: str) -> None:
    analysis = analysed(name)
    found = analysis.by_block()
    assert [(column.name, column.dtype) for column in BY_BLOCK] == list(found.schema.items())
    square = (pl.col("weight") * pl.col("log_ratio") ** 2).sum()
    missing = pl.col("log_ratio").null_count()
    own = found.group_by("flow", "model").agg(mean=square, missing=missing).filter(pl.col("missing") == 0)
    both = analysis.ranking.filter(pl.col("score").is_not_null()).join(own, on=["flow", "model"])
    assert both.height > 5
    assert MEAN in both["model"]
    assert both["score"].to_list() == pytest.approx(both["mean"].to_list())


def test_blocks_follow_one_another_in_the_flow() -> None:
    analysis = analysed("newreno-loss")
    of_one = analysis.by_block().filter(pl.col("model") == "pftk-full")
    assert list(range(of_one.height)) == of_one["block"].to_list()
    assert 1.0 == pytest.approx(of_one["weight"].sum())
    flow = analysis.flows.row(0, named=True)
    start, end = of_one["start_ns"].to_list(), of_one["end_ns"].to_list()
    assert flow["first_ns"] <= start[0]
    assert end[-1] <= flow["last_ns"] + 1e9
    assert all(a < b for a, b in zip(start, end, strict=True))
    # a round lasts until the next begins
    assert start[1:] == pytest.approx(end[:-1], abs=1e3)


def test_models_and_blocks_are_those_of_the_ranking() -> None:
    analysis = analysed("newreno-loss")
    few = analysis.ranked_by(["mathis", "pftk-full+p_to"], block=40)
    assert {"mathis", "pftk-full+p_to", MEAN} == set(few.by_block()["model"])
    assert few.by_block()["block"].n_unique() < analysis.by_block()["block"].n_unique()
    assert set(analysis.ranking["model"]) - set(BASELINES) == set(analysis.by_block()["model"]) - {MEAN}


def test_a_flow_of_one_block_has_no_row() -> None:
    assert 0 == analysed("slow-reader").by_block().height


def test_a_block_is_not_predicted_from_its_own_timeout() -> None:
    """One timeout in all the flow, ten times as long: the other blocks' predictions change, not that of its own."""
    flows, events, rounds = Sender(0.03, burst=1).run(1200, seed=4)
    is_timeout = pl.col("kind").cast(pl.String) == "timeout"
    last = events.filter(is_timeout & (pl.col("segments") == 0))["time_ns"][-1]
    events = events.filter(~is_timeout | (pl.col("time_ns") == last))

    def errors(timeout_s: float) -> list[float]:
        value = pl.when(is_timeout).then(timeout_s).otherwise("value").alias("value")
        tables = flows, events.with_columns(value), rounds
        found = by_block(*tables, estimate(*tables), {"pftk-full": get("pftk-full")})
        return found.filter(model="pftk-full")["log_ratio"].to_list()

    pairs = list(zip(errors(0.4), errors(4.0), strict=True))
    assert 1 == sum(short == long for short, long in pairs) < len(pairs)


def test_a_block_is_not_predicted_from_its_own_reordering() -> None:
    """All reordering in one block: the others are predicted from it, and it from nothing."""
    flows, events, rounds = Sender(0.01, w_max=12.0).run(900, seed=4)
    middle = rounds["start_ns"][450] / 1e9
    late = [
        event_row("reorder_event", middle + k, segments=3, value=0.05, flight=12.0, left=450_000 + 99_000 * k)
        for k in range(2)
    ]
    tables = flows, pl.concat([events, pl.DataFrame(late, schema=events.schema)]).sort("time_ns"), rounds
    found = by_block(*tables, estimate(*tables), {"reordering-goodput": get("reordering-goodput")})
    found = found.filter(model="reordering-goodput")
    begun = pl.Series([row["time_ns"] for row in late])
    own = [begun.is_between(start, end, closed="left").any() for start, end in found["start_ns", "end_ns"].iter_rows()]
    assert own == found["log_ratio"].is_null().to_list()
    assert 1 == sum(own) < len(own)
