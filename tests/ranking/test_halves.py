"""Is the second half of a flow predicted from the first alone, and is a law that holds in both recognised?"""

from __future__ import annotations

import polars as pl
import pytest
from simulated_flows import Sender, Tables

from tcpfit.parameters import estimate
from tcpfit.ranking import rank
from tcpfit.ranking.halves import HALVES, halves
from tcpfit.ranking.rank import ranked_models


def second(parts: Tables, half_of: Tables | None = None) -> pl.DataFrame:
    ranking, _ = rank(*parts, estimate(*parts))
    return halves(*(half_of or parts), ranking, ranked_models())


@pytest.fixture(scope="module")
def pftk() -> Tables:
    return Sender(0.004, slow_start=False).run(6000, seed=2)


def test_the_law_of_a_flow_predicts_its_second_half(pftk: Tables) -> None:
    found = second(pftk)
    assert [(c.name, c.dtype) for c in HALVES] == list(found.schema.items())
    of = {row["model"]: row for row in found.to_dicts()}
    assert abs(of["pftk-full"]["log_ratio"]) <= 0.15
    assert of["pftk-full"]["as_good"]
    assert not of["sikdar-reno"]["as_good"]


def test_the_parameters_are_those_of_the_first_half(pftk: Tables) -> None:
    """Losses taken out of the second half leave the prediction what it was, and the observed rate with it."""
    flows, events, rounds = pftk
    late = rounds["start_ns"].max() * 0.75
    fewer = events.filter((pl.col("kind").cast(pl.String) != "loss_event") | (pl.col("time_ns") < late))
    before, after = (
        dict(table.select("model", "log_ratio").iter_rows())
        for table in (second(pftk), second(pftk, (flows, fewer, rounds)))
    )
    assert fewer.height < events.height
    assert before == pytest.approx(after)


def test_a_flow_without_events_has_no_second_half() -> None:
    parts = Sender(1e-9, w_max=20.0).run(50, seed=1)
    assert second(parts).filter("as_good").is_empty()
