"""Runs of losses: by hand, on simulated chains, and against the list of a path that knows what it dropped."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from simulated_flows import event_row, flow_row, tables

import tcpfit
from tcpfit.parameters import estimate, independence
from tcpfit.parameters.gilbert import INDEPENDENCE, few_runs, likelihood_ratio

FOLDER = Path(__file__).parents[2] / "sample-traces"


def loss(order: int, segments: int = 1, flow: int = 0, left: int | None = None, size: int = 1000) -> dict[str, Any]:
    left = order * size if left is None else left
    return event_row("loss", 1.0, flow, order=order, segments=segments, left=left, right=left + segments * size)


def values(sent: int, *losses: dict[str, Any]) -> dict[str, dict[str, Any]]:
    lost = sum(row["segments"] for row in losses)
    flow = flow_row(sent_segments=sent, lost_segments=lost, lost_low=lost, lost_high=lost)
    return {row["name"]: row for row in estimate(*tables([flow], list(losses), [])).to_dicts()}


def test_runs_by_hand() -> None:
    """Losses 10, 11, 12, then 20, then 30, 31 of 106 segments: 3 runs, 6 losses, 100 arrivals."""
    found = values(106, *(loss(n) for n in (31, 10, 20, 12, 30, 11)))
    assert (3 / 100, 3) == (found["p_gb"]["value"], found["p_gb"]["n"])
    assert (3 / 6, 6) == (found["p_bg"]["value"], found["p_bg"]["n"])
    assert (2.0, 3) == (found["loss_run"]["value"], found["loss_run"]["n"])
    # Clopper and Pearson: 3 of 6 is 0.1181 to 0.8819, 3 of 100 is 0.0062 to 0.0852
    assert (0.1181, 0.8819) == pytest.approx((found["p_bg"]["low"], found["p_bg"]["high"]), abs=1e-4)
    assert (0.0062, 0.0852) == pytest.approx((found["p_gb"]["low"], found["p_gb"]["high"]), abs=1e-4)
    assert (1 / 0.8819, 1 / 0.1181) == pytest.approx((found["loss_run"]["low"], found["loss_run"]["high"]), rel=1e-3)


def test_a_loss_of_several_segments_takes_as_many_places() -> None:
    assert 5.0 == values(100, loss(10, 3), loss(13, 2))["loss_run"]["value"]
    assert 2.5 == values(100, loss(10, 3), loss(14, 2))["loss_run"]["value"]


def test_pieces_of_a_super_segment_share_an_order() -> None:
    """Bytes 0 to 2000 and 2000 to 3000 of one are a run with the next segment; a gap between pieces ends it."""
    together = (loss(10, 2, left=0), loss(10, 1, left=2000), loss(13, 1, left=3000))
    assert 4.0 == values(100, *together)["loss_run"]["value"]
    apart = (loss(10, 1, left=0), loss(10, 1, left=2000))
    assert 1.0 == values(100, *apart)["loss_run"]["value"]


def test_a_loss_without_a_place_is_in_no_run() -> None:
    """Losses 10 and 11 in a run, and two of the last that no duplicate ACK speaks for: of 102 placed, 100 arrived."""
    unplaced = (loss(n) | {"reason": "not-held"} for n in (12, 13))
    found = values(104, loss(10), loss(11), *unplaced)
    assert (2.0, 1 / 100) == (found["loss_run"]["value"], found["p_gb"]["value"])


def test_flows_are_kept_apart_and_a_flow_without_loss_has_no_runs() -> None:
    rows = [flow_row(i, sent_segments=100, lost_segments=i, lost_low=i, lost_high=i) for i in (0, 1, 2)]
    table = estimate(*tables(rows, [loss(5, flow=1), loss(6, flow=2), loss(7, flow=2)], []))
    found = table.filter(pl.col("name") == "loss_run").select("flow", "value").rows()
    assert [(0, None), (1, 1.0), (2, 2.0)] == found


def test_runs_of_one_loss_event_are_one_observation_of_their_rate() -> None:
    """300 flows; at 0.5 % of the segments a loss event begins that takes each of the next 30 with 30 %: some seven runs
    each. With the interval of runs that each come by themselves p_gb was held in 59 %."""
    random, flows, sent, window = np.random.default_rng(9), 300, 2000, 30
    rows: list[dict[str, Any]] = []
    flow_rows = []
    for flow in range(flows):
        lost, at = 0, int(random.geometric(0.005))
        while at + window < sent:
            places = at + np.flatnonzero(np.append(True, random.random(window - 1) < 0.3))
            event = loss(at, flow=flow) | {"kind": "loss_event", "segments": len(places), "flight": window - 1}
            rows += [event | {"time_ns": at}, *(loss(int(place), flow=flow) for place in places)]
            lost, at = lost + len(places), at + window + int(random.geometric(0.005))
        counts = {"lost_segments": lost, "lost_low": lost, "lost_high": lost}
        flow_rows.append(flow_row(flow, sent_segments=sent, data_segments=sent, unique_bytes=1000 * sent, **counts))
    found = estimate(*tables(flow_rows, rows, [])).filter(pl.col("name") == "p_gb", pl.col("n") > 0)
    truth = found["n"].sum() / (flows * sent - sum(row["lost_segments"] for row in flow_rows))
    assert 0.93 <= ((found["low"] <= truth) & (truth <= found["high"])).mean()


def test_the_number_of_runs_has_the_law_of_all_orders() -> None:
    """Every way to lose 4, 6 or all of 9 segments, counted."""
    for lost in (4, 6, 9):
        ways = [1 + sum(b - a > 1 for a, b in zip(w, w[1:], strict=False)) for w in combinations(range(9), lost)]
        for most in range(1, lost + 1):
            assert np.mean(np.array(ways) <= most) == pytest.approx(few_runs(9, lost, most))
    assert few_runs(9, 0, 0) is None


def test_independent_losses_are_seldom_called_bursts_and_bursts_always() -> None:
    random = np.random.default_rng(3)
    alone = [few_runs(*chain(random, 4000, 0.02, 0.98)[:3]) for _ in range(200)]
    assert 0.01 <= np.mean(np.array(alone) < 0.05) <= 0.09
    assert all((few_runs(*chain(random, 4000, 0.01, 0.3)[:3]) or 1) < 1e-6 for _ in range(20))


def chain(random: np.random.Generator, sent: int, p_gb: float, p_bg: float) -> tuple[int, int, int, list[int]]:
    """Segments sent, lost, runs and the places of the losses of a two-state chain."""
    lost, places, runs = False, [], 0
    for place, u in enumerate(random.random(sent)):
        before, lost = lost, bool(u >= p_bg if lost else u < p_gb)
        runs += lost and not before
        places += [place] * lost
    return sent, len(places), runs, places


def test_intervals_cover_the_chain() -> None:
    random = np.random.default_rng(7)
    inside = {"p_gb": 0, "p_bg": 0}
    for _ in range(100):
        sent, _, _, places = chain(random, 3000, 0.01, 0.4)
        found = values(sent, *(loss(n) for n in places))
        for name, true in (("p_gb", 0.01), ("p_bg", 0.4)):
            inside[name] += found[name]["low"] <= true <= found[name]["high"]
    assert min(inside.values()) >= 90


def test_ratio_of_likelihoods_by_hand() -> None:
    """106 sent, 6 lost in 3 runs: chain 3 of 100 and 3 of 6, independent 6 of 106."""
    chained = 3 * np.log(0.03) + 97 * np.log(0.97) + 6 * np.log(0.5)
    independent = 6 * np.log(6 / 106) + 100 * np.log(100 / 106)
    found = likelihood_ratio(np.array([106.0]), np.array([6.0]), np.array([3.0]))[0]
    assert 2 * (chained - independent) == pytest.approx(found)


def test_the_table_of_independence_is_as_declared() -> None:
    rows = [flow_row(0, sent_segments=50), flow_row(1, sent_segments=50, lost_segments=2)]
    flows, events, _ = tables(rows, [loss(5, flow=1), loss(6, flow=1)], [])
    found = independence(flows, events)
    assert {c.name: c.dtype for c in INDEPENDENCE} == dict(found.schema)
    assert (0, 50, 0, 0, None, None, None, None) == found.row(0)
    assert (2, 1, 1 / 48, 0.5) == found.row(1)[2:6]
    assert few_runs(50, 2, 1) == found["p_value"][1]
    empty = independence(flows.clear(), events.clear())
    assert (0, dict(found.schema)) == (empty.height, dict(empty.schema))


@pytest.mark.parametrize(("name", "bursts"), [("bursty-loss", True), ("newreno-loss", False), ("sack-loss", False)])
def test_runs_are_those_of_the_path(name: str, bursts: bool) -> None:
    """Runs among all data segments of the sender's capture, each dropped or not by the path's list."""
    truth = json.loads((FOLDER / f"{name}.truth.json").read_text())
    analysis = tcpfit.analyze(FOLDER / truth["captures"]["sender"], segments=True)
    flow = truth["flows"][0]
    data = analysis.segments.filter(pl.col("payload") > 0, pl.col("src_port") == flow["src_port"])
    at = data.select(
        time=pl.col("time_ns") / 1e9, left=(pl.col("seq").cast(pl.Int64) - flow["initial_sequence_number"]) % 2**32
    )
    lost = np.zeros(at.height, np.bool_)
    for time, left, _ in flow["drops"]:
        same = np.flatnonzero(at["left"].to_numpy() == left)
        lost[same[np.abs(at["time"].to_numpy()[same] - time).argmin()]] = True
    runs = int(lost[0]) + int((lost[1:] & ~lost[:-1]).sum())
    row = independence(analysis.flows, analysis.events).row(0, named=True)
    assert lost.sum() / runs == pytest.approx(row["lost"] / row["runs"], rel=0.05)
    assert bursts == (row["p_value"] < 1e-6)
