"""Episodes of loss recovery: bounds, windows and the losses they repaired."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import tcpfit
from tcpfit.parameters import EPISODES, episodes
from tcpfit.schema import polars_schema

SAMPLES = Path(__file__).resolve().parents[2] / "sample-traces"


def table(name: str, rows: list[dict]) -> pl.DataFrame:
    schema = polars_schema(name)
    return pl.DataFrame([{column: None for column in schema} | row for row in rows], schema=schema)


def test_a_loss_belongs_to_the_first_episode_that_can_repair_it() -> None:
    """Losses before a recovery, of a resend in it, of new data sent in it, after a timeout, and at the end."""
    loss = {"flow": 0, "kind": "loss", "reason": "resent", "segments": 1}
    rows = [
        loss | {"time_ns": 10, "left": 1000},
        loss | {"time_ns": 11, "left": 2000},
        {"flow": 0, "kind": "recovery", "reason": "fast-dupthresh", "time_ns": 100, "end_ns": 200, "right": 9000},
        loss | {"time_ns": 120, "left": 2000},
        loss | {"time_ns": 150, "left": 9000, "segments": 3},
        {"flow": 0, "kind": "timeout", "reason": "rto", "time_ns": 300, "end_ns": 400, "right": 10_000},
        loss | {"time_ns": 900, "left": 20_000},
    ]
    found = episodes(table("flows", [{"flow": 0}]), table("events", rows))
    assert [c.name for c in EPISODES] == found.columns
    assert [("recovery", 3), ("timeout", 3)] == list(found.select("kind", "losses").iter_rows())


@pytest.mark.parametrize("name", ["bursty-loss.pcap.gz", "timeouts.pcap.gz", "sack-loss-receiver.pcap.gz"])
def test_no_loss_is_repaired_twice(name: str) -> None:
    analysis = tcpfit.analyze(SAMPLES / name)
    found = episodes(analysis.flows, analysis.events)
    losses = analysis.events.filter(pl.col("kind") == "loss")
    last_end = found["end_ns"].max()
    assert losses.filter(pl.col("time_ns") < last_end)["segments"].sum() == found["losses"].sum()
    assert (found["end_ns"] >= found["start_ns"]).all()
    kinds = pl.col("kind").is_in(["recovery", "timeout"])
    assert len(analysis.events.filter(kinds & (pl.col("reason") != "syn"))) == len(found)
    assert (found["flight"].drop_nulls() >= 0).all() and (found["flight_after"].drop_nulls() >= 0).all()


def test_no_episode_without_events() -> None:
    assert episodes(table("flows", [{"flow": 0}]), table("events", [])).is_empty()
