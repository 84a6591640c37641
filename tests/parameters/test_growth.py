"""Families of congestion control: named on evidence only."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from simulated_flows import Sender, Tables, event_row, flow_row, round_row, tables

from tcpfit.parameters import families


def family(parts: Tables) -> dict[str, Any]:
    """The family's row of the only flow."""
    return families(*parts).to_dicts()[0]


@pytest.mark.parametrize(("name", "decrease", "b"), [("reno", 0.5, 1.0), ("reno", 0.5, 2.0), ("cubic", 0.7, 1.9)])
def test_decrease_and_growth_name_the_family(name: str, decrease: float, b: float) -> None:
    found = family(Sender(0.003, decrease=decrease, b=b).run(2500))
    assert name == found["family"]
    assert decrease == pytest.approx(found["decrease"], abs=0.05)
    assert found["confidence"] > 0.8


def test_a_decrease_like_cubics_with_growth_like_renos_is_unknown() -> None:
    assert ("unknown", 0.0) == (lambda f: (f["family"], f["confidence"]))(family(Sender(0.003, decrease=0.7).run(2500)))


def test_four_recoveries_are_not_enough() -> None:
    flows, events, rounds = Sender(0.003).run(2500)
    few = events.filter(pl.col("kind") == "recovery").head(4)["time_ns"].to_list()
    kept = events.filter((pl.col("kind") != "recovery") | pl.col("time_ns").is_in(few))
    assert "unknown" == family((flows, kept, rounds))["family"]


def steady_flight(spurious: bool) -> Tables:
    """A flight of 40 to 41 segments over 200 rounds with a recovery every 20 that changes nothing."""
    rounds, events = [], []
    for i in range(200):
        hit = i % 20 == 19
        rounds.append(round_row(i, 0.1 * i, 0.1, flight=40.0 + i % 2, phase="recovery" if hit else "open"))
        if hit:
            events.append(event_row("recovery", 0.1 * i, segments=1, flight=40.0, value=0.1))
            if not spurious:
                events.append(event_row("loss_event", 0.1 * i - 0.1, segments=1, flight=40.0))
    return tables([flow_row(rtt_p95_s=0.1, rtt_mean_s=0.1)], events, rounds)


def test_a_flight_that_losses_do_not_change_is_bbrs() -> None:
    assert "bbr" == family(steady_flight(spurious=False))["family"]


def test_a_flight_away_from_the_sender_needs_timestamps_to_be_bbrs() -> None:
    flows, events, rounds = steady_flight(spurious=False)
    away = flows.with_columns(pl.lit("receiver").cast(flows.schema["vantage"]).alias("vantage"))
    assert "unknown" == family((away, events, rounds))["family"]
    assert "bbr" == family((away.with_columns(timestamps=True), events, rounds))["family"]


def test_spurious_recoveries_show_no_family() -> None:
    assert ("unknown", 0) == (lambda f: (f["family"], f["episodes"]))(family(steady_flight(spurious=True)))


def test_no_rounds_no_family() -> None:
    assert "unknown" == family(tables([flow_row()], [], []))["family"]
