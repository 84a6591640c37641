"""Calibration by simulation, its fast part, and is docs/validation.md current? `make validate` does the whole."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path as File
from typing import Any

import numpy as np
import polars as pl
import pytest

sys.path.insert(0, str(File(__file__).parent.parent / "benchmarks"))

import calibration
import claims
import validate
from calibration import WORLDS
from sender import SMSS, Path, Sender, simulate, transfer_times
from validation_figures import drawings
from validation_page import page

from tcpfit.parameters import estimate

ROOT = File(__file__).parent.parent
WORLD = {world.model: world for world in WORLDS}
FLOWS = 100


@cache
def covered(model: str) -> dict[str, dict[str, Any]]:
    world = WORLD[model]
    tables = world.flows(0.02, 60, FLOWS, seed=7)
    return {row["parameter"]: row for row in calibration.coverage(tables, world, estimate(*tables))}


@pytest.mark.parametrize("parameter", ["p", "p_indication", "q_tilde", "q", "m", "rtt", "rto"])
def test_intervals_hold_the_truth_in_93_to_97_per_cent(parameter: str) -> None:
    rows = [covered(model)[parameter] for model in ("pftk-full", "newreno-full", "sikdar-sack")]
    chance = 3 * (0.95 * 0.05 / sum(row["flows"] for row in rows)) ** 0.5
    assert 0.93 - chance <= np.mean([row["held"] for row in rows]) <= 0.97 + chance


@pytest.mark.parametrize(
    ("model", "p"), [("pftk-full", 0.01), ("newreno-noto", 0.02), ("newreno-full", 0.02), ("sikdar-sack", 0.02)]
)
def test_the_true_model_is_among_those_named_in_95_per_cent(model: str, p: float) -> None:
    tables = WORLD[model].flows(p, 60, 40, seed=3)
    found = calibration.verdicts(tables, estimate(*tables), model)
    assert 0.95 <= found["named"]
    assert 0.0 == found["wrong"]


def rounds_of(path: Path, sender: Sender, segments: int) -> pl.DataFrame:
    return simulate(path, sender, segments, 1)[2]


def test_a_window_grows_by_a_segment_every_b_rounds() -> None:
    for b in (1.0, 2.0):
        rounds = rounds_of(Path(1e-9), Sender(b=b, first_window=10.0, threshold=10.0), 2000)
        assert rounds["flight"].to_list() == [10 + int(k / b) for k in range(rounds.height)]


@pytest.mark.parametrize(("recovery", "rounds"), [("newreno", 4), ("sack", 1)])
def test_four_losses_of_a_wide_window_take_newreno_four_round_trips_and_sack_one(recovery: str, rounds: int) -> None:
    path = Path(0.0005, "burst", m=4, jitter=0.0)
    _, events, table = simulate(path, Sender(recovery, first_window=40.0, threshold=40.0), 40_000, 5, seed=1)
    clean = events.filter((pl.col("kind") == "recovery") & (pl.col("segments") == 4) & ~pl.col("timeout_follows"))
    assert clean.height > 20
    assert clean["value"].to_list() == pytest.approx([0.1 * rounds] * clean.height)
    assert table["resent_segments"].sum() >= 4 * (clean.height - 5)  # five flows, each cut off in its last recovery


def test_independent_losses_come_at_their_rate_and_every_one_is_sent_again() -> None:
    flows, events, rounds = simulate(Path(0.02), Sender("rack"), 20_000, 10, seed=2)
    assert flows["lost_segments"].sum() / flows["sent_segments"].sum() == pytest.approx(0.02, rel=0.05)
    assert rounds["lost_segments"].sum() == flows["lost_segments"].sum()
    assert rounds["resent_segments"].sum() == pytest.approx(flows["lost_segments"].sum(), rel=0.01)
    assert flows["acked_bytes"].sum() == (flows["sent_segments"].sum() - flows["lost_segments"].sum()) * SMSS
    in_events = events.filter(pl.col("kind") == "loss_event")["segments"].sum()
    assert in_events == pytest.approx(flows["lost_segments"].sum(), rel=0.01)  # but for the last round of each flow


def test_timers_double_until_a_resend_arrives() -> None:
    _, events, _ = simulate(Path(0.3, jitter=0.0, rto_s=0.5), Sender(), 3000, 1, seed=4)
    timers = events.filter(pl.col("kind") == "timeout")
    assert timers["segments"].max() >= 3  # type: ignore[operator]
    assert timers["value"].to_list() == pytest.approx([0.5 * 2.0 ** min(k, 6) for k in timers["segments"]])


def test_a_transfer_without_loss_takes_its_rounds_of_slow_start() -> None:
    # windows 1, 2, 3, 5, 8 with an ACK for every two segments: 19 segments in five round trips and a delayed ACK
    path = Path(1e-9, rtt_s=0.2, jitter=0.0, delayed_ack_s=0.1)
    times = transfer_times(path, Sender("reno", b=2.0, first_window=1.0), 19, 3)
    assert times == pytest.approx([5 * 0.2 + 0.1] * 3)


def test_pftk_does_not_see_the_losses_of_an_event_and_newreno_full_does() -> None:
    def made(m: int) -> dict[str, float]:
        path = Path(0.01, "burst", m=m, rtt_s=0.075, rto_s=0.5)
        return claims.three(claims.pooled(path, Sender("newreno"), 60, 10, m))

    one, many = made(1), made(8)
    assert abs(one["pftk, events"]) < 0.1
    assert many["pftk, events"] > 0.3
    assert many["pftk, packets"] < -0.8
    assert abs(many["newreno-full"]) < 0.15


def test_a_sack_sender_waits_for_timers_as_long_as_bohacek_and_shah_say() -> None:
    row = claims.pooled(Path(0.02, rtt_s=0.03, rto_s=1.0), Sender("sack", pipe=True), 100, 20, 3)
    made = claims.shares(row["q_tilde"], 0.03, 1.0)
    assert row["in_timeout"] == pytest.approx(made["bohacek-sack"], rel=0.3)
    assert made["pftk"] > 2 * row["in_timeout"]


def test_the_page_and_its_figures_are_current() -> None:
    data = validate.tables()
    assert (ROOT / "docs/validation.md").read_text() == page(data), "run benchmarks/validate.py --page"
    for name, _, mark in drawings(data):
        assert f"<!-- {mark} -->" in (validate.DATA / f"{name}.svg").read_text(), name


def test_flows_recorded_elsewhere_keep_their_rows(tmp_path: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "DATA", tmp_path)
    claims.save(tmp_path / "flows.csv", ["trace", "p"], [{"trace": name, "p": 0.5} for name in ("a", "b")])
    assert validate.with_others([{"trace": "b", "p": 0.25}]) == [{"trace": "b", "p": 0.25}, {"trace": "a", "p": 0.5}]
