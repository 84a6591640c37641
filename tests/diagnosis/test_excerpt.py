"""Are the parameters of some time those of what happened in it?"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import tcpfit
from tcpfit.diagnosis.excerpt import excerpt
from tcpfit.parameters import estimate

SAMPLES = Path(__file__).resolve().parents[2] / "sample-traces"


@pytest.fixture(scope="module")
def analysis() -> tcpfit.Analysis:
    return tcpfit.analyze(SAMPLES / "newreno-loss.pcap.gz")


def estimates(analysis: tcpfit.Analysis, start_ns: int, end_ns: int) -> dict[str, float]:
    tables = excerpt(analysis.flows, analysis.events, analysis.rounds, start_ns, end_ns)
    table = estimate(*tables).filter(pl.col("value").is_not_null())
    return dict(table.select("name", "value").iter_rows())


def test_all_of_the_time_gives_the_flow_s_parameters(analysis):
    """The mean round trip is over rounds, not over time, and rounds count what they sent."""
    row = analysis.flows.row(0, named=True)
    found = estimates(analysis, row["first_ns"], row["last_ns"] + 1)
    whole = dict(analysis.parameters.filter(pl.col("value").is_not_null()).select("name", "value").iter_rows())
    for name in ("p", "p_indication", "q_tilde", "q", "m", "rtt", "rtt_min", "rto", "w"):
        assert found[name] == pytest.approx(whole[name], rel=0.03), name


def test_halves_have_what_happened_in_them(analysis):
    row = analysis.flows.row(0, named=True)
    middle = (row["first_ns"] + row["last_ns"]) // 2
    cuts = [(row["first_ns"], middle), (middle, row["last_ns"] + 1)]
    tables = [excerpt(analysis.flows, analysis.events, analysis.rounds, *cut) for cut in cuts]
    for column, kind in (("loss_events", "loss_event"), ("lost_segments", "loss")):
        parts = [flows[column][0] for flows, _, _ in tables]
        assert parts == [events.filter(pl.col("kind") == kind).height for _, events, _ in tables]
        assert sum(parts) == row[column]
    assert sum(flows["sent_segments"][0] for flows, _, _ in tables) == pytest.approx(row["sent_segments"], rel=0.01)


def test_a_time_without_the_flow_has_none(analysis):
    flows, events, rounds = excerpt(analysis.flows, analysis.events, analysis.rounds, 0, 1)
    assert (flows.height, events.height, rounds.height) == (0, 0, 0)


def test_events_of_a_part_are_placed_within_it(analysis):
    """The second half of the losses is as sure as a flow of that many losses is."""
    row = analysis.flows.row(0, named=True)
    middle = (row["first_ns"] + row["last_ns"]) // 2
    flows, events, rounds = excerpt(analysis.flows, analysis.events, analysis.rounds, middle, row["last_ns"] + 1)
    part = flows.row(0, named=True)
    losses = events.filter(pl.col("kind") == "loss_event")
    for name, extent in (("left", part["unique_bytes"]), ("order", part["sent_segments"])):
        assert losses[name].min() < 0.2 * extent, name
        assert 0.8 * extent < losses[name].max() <= 1.01 * extent, name
    whole, half = (
        table.filter(pl.col("name") == "p").row(0, named=True)
        for table in (analysis.parameters, estimate(flows, events, rounds))
    )
    wide, wider = (each["high"] / each["low"] for each in (whole, half))
    assert wide < wider < wide**2


def test_bytes_of_a_part_are_those_of_its_segments(analysis):
    row = analysis.flows.row(0, named=True)
    middle = (row["first_ns"] + row["last_ns"]) // 2
    part = excerpt(analysis.flows, analysis.events, analysis.rounds, middle, row["last_ns"] + 1)[0].row(0, named=True)
    assert part["data_bytes"] / part["data_segments"] == pytest.approx(
        row["data_bytes"] / row["data_segments"], rel=0.05
    )
