"""The ranking of flows whose law is known, and the verdicts on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_flows import Sender, Tables, event_row, flow_row, round_row, tables, together

from tcpfit.exceptions import InvalidParameter
from tcpfit.models import catalogue
from tcpfit.parameters import estimate
from tcpfit.ranking import RANKING, VERDICTS, rank
from tcpfit.ranking.applicability import NOT_RANKED
from tcpfit.ranking.rank import _kinds
from tcpfit.ranking.table import BASELINES


def ranked(parts: Tables) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Ranking by model and verdict of the only flow."""
    ranking, verdicts = rank(*parts, estimate(*parts))
    return {row["model"]: row for row in ranking.to_dicts()}, verdicts.to_dicts()[0]


@pytest.fixture(scope="module")
def pftk() -> Tables:
    """A flow under the assumptions of PFTK: correlated losses, no slow start after a timeout."""
    return Sender(0.004, slow_start=False).run(6000, seed=2)


def test_tables_have_their_columns_and_every_model(pftk: Tables) -> None:
    ranking, verdicts = rank(*pftk, estimate(*pftk))
    assert [(c.name, c.dtype) for c in RANKING] == list(ranking.schema.items())
    assert [(c.name, c.dtype) for c in VERDICTS] == list(verdicts.schema.items())
    rates = {name for name, model in catalogue().items() if model.predicts == "throughput"}
    assert {*rates, *BASELINES} - NOT_RANKED == set(ranking["model"])


def test_pftk_explains_a_flow_made_by_its_assumptions(pftk: Tables) -> None:
    models, verdict = ranked(pftk)
    assert abs(models["pftk-full"]["log_ratio"]) <= 0.1
    assert verdict["state"] in ("explained", "undecided")
    assert "pftk-full" in verdict["models"]
    assert "observed rate" in verdict["text"]


def test_the_best_has_rank_one_and_no_difference(pftk: Tables) -> None:
    models, _ = ranked(pftk)
    order = sorted((row for row in models.values() if row["rank"]), key=lambda row: row["rank"])
    assert list(range(1, len(order) + 1)) == [row["rank"] for row in order]
    assert (True, 0.0) == (order[0]["applicable"], order[0]["difference"])
    applicable = [row for row in order if row["applicable"]]
    assert applicable == order[: len(applicable)]
    assert sorted(row["score"] for row in applicable) == [row["score"] for row in applicable]
    assert 1.0 == pytest.approx(sum(row["probability_best"] for row in applicable))
    assert all(models[name]["rank"] is None for name in BASELINES)


def test_the_interval_holds_the_log_ratio(pftk: Tables) -> None:
    for row in ranked(pftk)[0].values():
        if row["log_ratio_low"] is not None:
            assert row["log_ratio_low"] - 1e-9 <= row["log_ratio"] <= row["log_ratio_high"] + 1e-9


def test_rates_are_payload_bits(pftk: Tables) -> None:
    """log_ratio is against the observed steady rate: segments of 1000 bytes sent or acknowledged per second."""
    models, _ = ranked(pftk)
    observed = models["pftk-full"]["predicted_bps"] / 2.718281828 ** models["pftk-full"]["log_ratio"]
    rounds = pftk[2].filter(pl.col("start_ns") > 60 * 10**9)
    span = (rounds["end_ns"].max() - rounds["start_ns"].min()) / 1e9  # type: ignore[operator]
    assert observed == pytest.approx(rounds["sent_segments"].sum() * 8000 / span, rel=0.03)


def test_small_segments_count_by_what_they_carry(pftk: Tables) -> None:
    """An application that fills half of every segment: models are held against bytes, whichever rate they predict."""
    flows, events, rounds = pftk
    half = [pl.col(name) // 2 for name in ("data_bytes", "unique_bytes", "acked_bytes")]
    small = ranked((flows.with_columns(half), events, rounds.with_columns(half[-1])))[0]
    whole = ranked(pftk)[0]
    for name in ("pftk-full", "newreno-full", "mathis"):
        assert small[name]["predicted_bps"] == pytest.approx(whole[name]["predicted_bps"])
        assert small[name]["log_ratio"] - whole[name]["log_ratio"] == pytest.approx(np.log(2), abs=1e-3)
        assert small[name]["predicted_time_s"] == pytest.approx(whole[name]["predicted_time_s"] / 2, rel=1e-3)


def test_a_window_limited_flow_is_outside_the_loss_models() -> None:
    models, verdict = ranked(Sender(0.0002, w_max=20).run(1000, seed=1))
    for name in ("mathis", "pftk-simple", "pftk-full", "newreno-full"):
        assert not models[name]["applicable"]
        assert "at the window limit" in models[name]["reasons"][0]
    assert "none_applies" == verdict["state"]
    assert "window limit" in verdict["text"]


@pytest.mark.parametrize(("share", "withheld"), [(0.009, False), (0.011, True), (0.05, True)])
def test_above_one_per_cent_of_capture_loss_the_verdict_is_withheld(pftk: Tables, share: float, withheld: bool) -> None:
    flows, events, rounds = pftk
    seen = flows["data_segments"].item()
    missing = pl.lit(round(share * seen / (1 - share)), pl.UInt64)
    clean = ranked(pftk)[1]
    models, verdict = ranked((flows.with_columns(missing.alias("missing_segments")), events, rounds))
    assert clean["state"] in ("explained", "undecided")
    assert ("insufficient" if withheld else clean["state"]) == verdict["state"]
    assert [] == verdict["models"] if withheld else clean["models"] == verdict["models"]
    assert withheld == (f"The capture missed {100 * share:.1f} % of the flow's data segments" in verdict["text"])
    assert any(row["rank"] == 1 for row in models.values())


def test_few_events_are_insufficient_but_every_model_is_predicted() -> None:
    models, verdict = ranked(Sender(0.01).run(150, seed=1))
    assert ("insufficient", []) == (verdict["state"], verdict["models"])
    assert "a comparison needs 8" in verdict["text"]
    assert models["pftk-full"]["predicted_bps"] is not None
    assert all(row["score"] is None for row in models.values())
    by_ratio = [
        abs(row["log_ratio"])
        for row in sorted((r for r in models.values() if r["rank"]), key=lambda r: r["rank"])
        if row["applicable"]
    ]
    assert sorted(by_ratio) == by_ratio


def test_bbr_is_outside_every_model() -> None:
    rounds, events = [], []
    for i in range(900):
        hit = i % 20 == 19
        rounds.append(
            round_row(
                i,
                0.1 * i,
                0.1,
                flight=40.0,
                sent_segments=40,
                acked_bytes=40_000,
                lost_segments=int(hit),
                phase="recovery" if hit else "open",
            )
        )
        if hit:
            events.append(event_row("loss_event", 0.1 * i, segments=1, flight=40.0, timeout_follows=False))
            events.append(event_row("recovery", 0.1 * i, segments=1, flight=40.0, value=0.1))
    flow = flow_row(
        sent_segments=36_000,
        lost_segments=45,
        lost_low=45,
        lost_high=45,
        loss_events=45,
        rtt_mean_s=0.1,
        rtt_p95_s=0.1,
        rto_s=0.3,
        unique_bytes=36_000_000,
        last_ns=90 * 10**9,
    )
    models, verdict = ranked(tables([flow], events, rounds))
    assert not any(row["applicable"] for row in models.values())
    assert "none_applies" == verdict["state"]
    assert "as BBR does" in verdict["text"]


def test_half_the_round_trip_doubles_the_predictions_and_keeps_the_ratios() -> None:
    fast, slow = (ranked(Sender(0.01, rtt_s=rtt, rto_s=4 * rtt).run(1500))[0] for rtt in (0.1, 0.2))
    for name in ("mathis", "pftk-full", "newreno-full"):
        assert fast[name]["predicted_bps"] == pytest.approx(2 * slow[name]["predicted_bps"])
        assert fast[name]["log_ratio"] == pytest.approx(slow[name]["log_ratio"], abs=1e-9)


def test_flows_are_ranked_independently_and_reproducibly() -> None:
    parts = [Sender(0.01, flow=i).run(700) for i in range(2)]
    both = rank(*together(parts), estimate(*together(parts)))
    for i, part in enumerate(parts):
        alone = rank(*part, estimate(*part))
        assert alone[0].equals(both[0].filter(pl.col("flow") == i))
        assert alone[1].equals(both[1].filter(pl.col("flow") == i))


def test_a_flow_of_another_number_is_ranked_the_same(pftk: Tables) -> None:
    """Captures that are merged, or cut, number their flows anew."""
    renumbered = tuple(table.with_columns(flow=pl.lit(7, pl.UInt32)) for table in pftk)
    ranking, other = (rank(*parts, estimate(*parts))[0].drop("flow") for parts in (pftk, renumbered))
    assert 0 < ranking["probability_best"].max() < 1
    assert ranking.equals(other)


def test_verdicts_beside_flows_that_show_too_little() -> None:
    parts = [Sender(0.01, flow=flow).run(rounds) for flow, rounds in enumerate((4, 700, 4, 4, 700, 4))]
    every = rank(*together(parts), estimate(*together(parts)))[1]
    steady = [text.startswith("The flow has") for text in every["text"]]
    assert [True, False, True, True, False, True] == steady
    assert pl.concat([rank(*part, estimate(*part))[1] for part in parts]).equals(every)


def test_nothing_to_rank() -> None:
    empty = tables([], [], [])
    ranking, verdicts = rank(*empty, estimate(*empty))
    assert (0, 0) == (ranking.height, verdicts.height)
    silent = tables([flow_row()], [], [])
    models, verdict = ranked(silent)
    assert all(row["rank"] is None for row in models.values())
    assert verdict["state"] in ("insufficient", "none_applies")


def test_one_model_can_be_chosen(pftk: Tables) -> None:
    ranking, verdicts = rank(*pftk, estimate(*pftk), {"mathis": catalogue()["mathis"]})
    assert {"mathis", *BASELINES} == set(ranking["model"])
    assert ("undecided", ["mathis"]) == (verdicts["state"][0], verdicts["models"][0].to_list())
    assert verdicts["text"][0].startswith("No other model was compared with mathis: it is ")


def test_a_flow_without_a_loss_leaves_doubt_of_the_rate_at_its_window_limit() -> None:
    """1000 segments without a loss: the loss rate may be 3.69 in 1000, where PFTK is far below the limit."""
    parts = Sender(0.0, w_max=40).run(25)
    sent = parts[0]["sent_segments"].item()
    row = ranked(parts)[0]["pftk-full"]
    law = catalogue()["pftk-full"]
    rates = [float(law.predict(p=p, rtt=0.1, rto=0.4, b=1.0, w_max=40.0)) for p in (0.0, 3.689 / sent)]
    assert np.log(rates[1] / rates[0]) == pytest.approx(row["log_ratio_low"] - row["log_ratio"], rel=0.05)
    assert row["log_ratio_high"] - row["log_ratio"] == pytest.approx(0.0, abs=0.01)


def test_a_law_without_a_limit_is_not_outside_its_domain() -> None:
    reasons = ranked(Sender(0.0, w_max=40).run(25))[0]["mathis"]["reasons"]
    assert "without loss the law sets no limit" == reasons[-1]
    assert not any("domain" in reason for reason in reasons)


def test_a_value_beyond_the_models_range_is_shown_but_no_good(pftk: Tables) -> None:
    """A window limit below a segment is none that PFTK takes."""
    beyond = pl.col("name").cast(pl.String) == "w_max"
    narrow = estimate(*pftk).with_columns(value=pl.when(beyond).then(0.5).otherwise("value"))
    reasons = rank(*pftk, narrow)[0].filter(model="pftk-full")["reasons"].item().to_list()
    assert any("w_max is outside its domain, at least 1" in reason for reason in reasons)
    assert not any("does not show" in reason for reason in reasons)
    hidden = estimate(*pftk).with_columns(value=pl.when(pl.col("name").cast(pl.String) != "rtt").then("value"))
    flows = pftk[0].with_columns(rtt_mean_s=None)
    reasons = rank(flows, pftk[1], pftk[2].with_columns(rtt_s=None), hidden)[0].filter(model="mathis")["reasons"].item()
    assert any("the flow does not show rtt, which it needs" in reason for reason in reasons)


def losses_in_one_block() -> Tables:
    """A flow of 400 rounds whose reordering makes blocks everywhere, and whose losses all lie in the middle one: no
    other block has a loss rate."""
    lossy, rounds, events = (1, 196, 197, 198, 199), [], []
    for i in range(400):
        flight = 20.0 + i % 8
        hit = {"lost_segments": 1, "phase": "recovery"} if i in lossy else {}
        rounds.append(round_row(i, 0.1 * i, 0.1, flight=flight, sent_segments=20, acked_bytes=20_000, **hit))
        if hit:
            events.append(event_row("loss_event", 0.1 * i, segments=1, flight=19.0, timeout_follows=False))
            events.append(event_row("recovery", 0.1 * i + 0.01, segments=1, flight=20.0, value=0.05))
        elif i % 10 == 5:
            events.append(event_row("reorder_event", 0.1 * i + 0.05, segments=1, value=0.02))
    flow = flow_row(
        sent_segments=8000,
        data_segments=8000,
        data_bytes=8_000_000,
        unique_bytes=8_000_000,
        lost_segments=5,
        lost_low=5,
        lost_high=5,
        loss_events=5,
        rtt_mean_s=0.1,
        rtt_p95_s=0.1,
        rto_s=0.3,
        flight_max=27.0,
        last_ns=40 * 10**9,
    )
    return tables([flow], events, rounds)


def test_no_model_is_named_that_no_block_could_be_compared_by() -> None:
    parts = losses_in_one_block()
    chosen = {name: catalogue()[name] for name in ("mathis", "pftk-full")}
    ranking, verdicts = rank(*parts, estimate(*parts), chosen)
    models = ranking.filter(pl.col("model").is_in([*chosen]))
    assert models["applicable"].any() and models["log_ratio"].is_not_null().all()
    assert models["score"].is_null().all()
    assert ("insufficient", []) == (verdicts["state"].item(), verdicts["models"].item().to_list())
    assert "no model that applies can be compared" in verdicts["text"].item()


def test_transfer_times_are_not_ranked_by_blocks(pftk: Tables) -> None:
    with pytest.raises(InvalidParameter, match="hysteresis predicts transfer times; flows are ranked by models of thr"):
        rank(*pftk, estimate(*pftk), {"hysteresis": catalogue()["hysteresis"]})


@given(st.integers(0, 99), st.integers(1, 40), st.integers(0, 65), st.booleans())
def test_kinds_of_flows_are_those_that_differ_in_anything(seed, flows, flags, said):
    chance = np.random.default_rng(seed)
    row = chance.integers(0, 3, flows)
    conditions = [chance.random(flows) < 0.1 for _ in range(flags)]
    conditions += [chance.choice(["", "a", "b"], flows)] if said else []
    first, kind = _kinds(row, conditions)
    of_flow = list(zip(row.tolist(), *(values.tolist() for values in conditions), strict=True))
    assert sorted({of_flow[i] for i in first}) == sorted(set(of_flow))
    assert of_flow == [of_flow[first[k]] for k in kind]
