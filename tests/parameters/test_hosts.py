"""What is learned of hosts: samples of Linux, and timeouts made by rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulated_flows import event_row, flow_row, tables

import tcpfit
from tcpfit.parameters import hosts

FOLDER = Path(__file__).parents[2] / "sample-traces"


def made(seen: list[float], linux: float, rfc: float) -> str:
    """Timer of a host with those first timeouts, where the rules give these."""
    flow = flow_row(src="10.0.0.1", data_segments=9, stamp_tick_s=0.001)
    first = [event_row("timeout", 1.0, segments=0, value=s, replayed_s=linux, replayed_rfc_s=rfc) for s in seen]
    flows, events, _ = tables([flow], first, [])
    return hosts(flows, events)["timer"][0]


@pytest.mark.parametrize("name", ["timeouts", "newreno-loss"])
def test_linux_senders_are_known_by_their_timers(name):
    analysis = tcpfit.analyze(FOLDER / f"{name}.pcap.gz")
    row = hosts(analysis.flows, analysis.events).row(0, named=True)
    assert row["timer"] == "linux"
    assert 1.0 <= row["timer_over_linux"] <= 1.125
    assert row["rto_least_s"] >= 0.2
    assert row["stamp_tick_s"] == 0.001


def test_a_floor_that_is_neither_rules_is_unknown():
    # the simulator's timer has RFC 6298's variance and a floor of 200 ms
    analysis = tcpfit.analyze(FOLDER / "ns2-reno.pcap.gz")
    row = hosts(analysis.flows, analysis.events).row(0, named=True)
    assert row["timeouts"] >= 3
    assert row["timer"] == "unknown"


def test_rules_by_ratio():
    assert made([1.0, 1.01, 1.02], 0.3, 1.0) == "rfc6298"
    assert made([0.31, 0.32, 0.33], 0.3, 1.0) == "linux"
    assert made([0.31, 0.32], 0.3, 1.0) == "unknown"
    assert made([2.0, 2.1, 2.1], 2.0, 2.0) == "unknown"
