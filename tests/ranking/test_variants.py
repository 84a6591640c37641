"""Extended and fitted models beside the printed ones, and the rule of loss events that feeds p."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from simulated_flows import Sender, Tables, event_row, flow_row, round_row, tables

import tcpfit
from tcpfit import InvalidParameter
from tcpfit.models import get
from tcpfit.parameters import OF_LOSS_EVENTS, RULES, estimate, estimates, under_rule
from tcpfit.parameters.evidence import Evidence
from tcpfit.ranking import by_name, rank
from tcpfit.ranking.blocks import blocks, parameters
from tcpfit.ranking.steady import steady
from tcpfit.ranking.variants import extended, fitted_parameter

SAMPLES = Path(__file__).parents[2] / "sample-traces"


@pytest.fixture(scope="module")
def pftk() -> Tables:
    return Sender(0.004, b=2.0, slow_start=False).run(6000, seed=2)


def rows(parts: Tables, names: list[str], **options: object) -> dict[str, dict[str, object]]:
    ranking, _ = rank(*parts, estimate(*parts), by_name(names), **options)  # type: ignore[arg-type]
    return {row["model"]: row for row in ranking.to_dicts()}


def test_the_b_of_a_sender_is_found_on_its_blocks(pftk: Tables) -> None:
    """A window that grows by one segment every second round: b = 2, though the default would be 1."""
    found = rows(pftk, ["pftk-full"], fits=["pftk-full.b"])
    fitted = found["pftk-full.b"]["fitted"]
    assert 2.0 == pytest.approx(fitted, rel=0.15)
    assert any(f"fitted: b = {fitted:.3g} on " in reason for reason in found["pftk-full.b"]["reasons"])
    assert found["pftk-full"]["fitted"] is None
    assert abs(found["pftk-full.b"]["log_ratio"]) <= 0.05
    assert not any("fitted" in reason for reason in found["pftk-full"]["reasons"])


def test_a_fitted_model_pays_for_its_freedom(pftk: Tables) -> None:
    """Its blocks are predicted with the value of the others: on a flow of the printed law it is not the better one."""
    found = rows(pftk, ["pftk-full"], fits=["pftk-full.rto"])
    assert found["pftk-full.rto"]["score"] >= 0.98 * found["pftk-full"]["score"]


def test_few_blocks_fit_nothing() -> None:
    parts = Sender(0.004, slow_start=False).run(120, seed=3)
    found = rows(parts, ["pftk-full"], fits=["pftk-full.b"])
    assert found["pftk-full.b"]["log_ratio"] is found["pftk-full.b"]["fitted"] is None
    assert any("fewer than 3" in reason for reason in found["pftk-full.b"]["reasons"])


def test_an_extension_takes_the_measured_share_of_timeouts(pftk: Tables) -> None:
    found = rows(pftk, ["newreno-full", "newreno-full+p_to"])
    table = {row["name"]: row["value"] for row in estimate(*pftk).to_dicts()}
    model = get("newreno-full")
    given = {name: np.array(table[name]) for name in ("p", "rtt", "rto", "q")}
    by_hand = math.log(model.predict(**given, p_to=np.array(table["p_to"])) / model.predict(**given))
    ratio = found["newreno-full+p_to"]["log_ratio"] - found["newreno-full"]["log_ratio"]
    assert by_hand == pytest.approx(ratio, abs=0.05)
    assert abs(by_hand) > 0.01


def test_reordering_events_without_reaction_do_not_count_in_the_extension() -> None:
    model = extended(get("reordering-goodput"), "a_h_reacted")
    assert ["w_max", "rtt", "a_h_reacted", "d", "r", "b"] == [p.column for p in model.parameters]
    given = {"w_max": 20.0, "rtt": 0.1, "a_h": 5.0, "d": 3.0}
    assert get("reordering-goodput").predict(**given) == model.predict(**given)
    assert "reordering-goodput+a_h_reacted" == model.name


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: by_name(["pftk"]), "pftk"),
        (lambda: by_name([]), "at least one model"),
        (lambda: by_name(["hysteresis"]), "transfer times"),
        (lambda: by_name(["mathis+p_to"]), "it has none"),
        (lambda: by_name(["newreno-full+q"]), "its extensions are p_to"),
        (lambda: fitted_parameter("pftk-full"), "NAME.PARAMETER"),
        (lambda: fitted_parameter("pftk-full.rtt"), "can fit b, rto, w_max"),
        (lambda: fitted_parameter("nothing.b"), "nothing"),
    ],
)
def test_what_makes_no_sense_is_said(call, words) -> None:
    with pytest.raises(InvalidParameter, match=words):
        call()


def test_larger_blocks_are_fewer(pftk: Tables) -> None:
    loss_events = pftk[0]["loss_events"][0]
    _, verdicts = rank(*pftk, estimate(*pftk), per_block=int(loss_events))
    assert f"blocks of {loss_events}" in verdicts["text"][0]


def lossy() -> Tables:
    """Three losses: two within a round trip but not a window (the second 11 segments after the first of a window of
    11), one alone; a recovery for the first two, a timeout for the last."""
    orders = {1.0: 100, 1.01: 111, 3.0: 300}
    events = [
        event_row("loss", time, order=order, flight=10.0, segments=1, left=1000 * order)
        for time, order in orders.items()
    ]
    events += [
        event_row("loss_event", 1.0, order=100, flight=10.0, segments=2, left=100_000, timeout_follows=False),
        event_row("loss_event", 3.0, order=300, flight=10.0, segments=1, left=300_000, timeout_follows=True),
        event_row("recovery", 1.1, flight=10.0, segments=1, value=0.1),
        event_row("timeout", 3.4, flight=10.0, segments=0, value=0.4),
        event_row("timeout", 4.2, flight=10.0, segments=1, value=0.8),
    ]
    flow = flow_row(0, sent_segments=1000, unique_bytes=1_000_000, smss_bytes=1000, loss_events=2, lost_segments=3)
    return tables([flow], events, [round_row(i, 0.1 * i, 0.1) for i in range(50)])


@pytest.mark.parametrize(("rule", "count", "m"), [("one-rtt", 2, 1.5), ("window", 3, 1.0), ("recovery-point", 2, 1.5)])
def test_each_rule_has_its_p(rule: str, count: int, m: float) -> None:
    flows, events, rounds = lossy()
    counted, ruled = under_rule(flows, events, rule)
    table = {row["name"]: row["value"] for row in estimate(counted, ruled, rounds).to_dicts()}
    assert count == counted["loss_events"][0]
    assert (count / 1000, m, 1 / count) == pytest.approx((table["p"], table["m"], table["p_to"]))
    assert events.schema == ruled.schema
    assert flows.schema == counted.schema


def test_under_the_rule_of_tfrc_blocks_have_the_p_of_weighted_intervals() -> None:
    """Of all blocks but the first event's segments together p_tfrc, where the whole flow is steady."""
    rounds = [round_row(i, 0.1 * i, 0.1, sent_segments=10, flight=10.0, acked_bytes=9000) for i in range(200)]
    order = [10 * k * (k + 1) // 2 for k in range(1, 19)]  # intervals that grow
    events = [event_row("loss_event", o / 100, order=o, flight=10.0, segments=1, left=1000 * o) for o in order]
    flow = flow_row(0, sent_segments=2000, unique_bytes=2_000_000, loss_events=18, lost_segments=18, rtt_mean_s=0.1)
    evidence = Evidence(*tables([flow], events, rounds))
    found, limit = estimates(evidence), np.full(1, np.nan)
    fixed = {name: estimate.value for name, estimate in found.items()}
    of_rule = {
        rule: parameters(blocks(evidence, steady(evidence, limit), fixed["rtt"], rule=rule).of_flows(), fixed)["p"][0]
        for rule in ("one-rtt", "tfrc")
    }
    assert 18 / 2000 == pytest.approx(of_rule["one-rtt"])
    assert found["p_tfrc"].value[0] == pytest.approx(of_rule["tfrc"])
    assert of_rule["tfrc"] > 1.2 * of_rule["one-rtt"]


def test_a_capture_is_ranked_under_the_rule_of_tfrc() -> None:
    analysis = tcpfit.analyze(str(SAMPLES / "newreno-loss.pcap.gz"))
    flow = analysis.largest()[0]
    predicted = {}
    for rule in ("one-rtt", "tfrc"):
        table = analysis.select([flow]).rank(["mathis"], rule=rule)[0]
        predicted[rule] = table.filter(pl.col("model") == "mathis")["predicted_bps"][0]
    value = dict(analysis.parameters.filter(pl.col("flow") == flow).select("name", "value").iter_rows())
    assert (value["p"] / value["p_tfrc"]) ** 0.5 == pytest.approx(predicted["tfrc"] / predicted["one-rtt"], rel=0.02)


def test_the_recovery_point_knows_no_q() -> None:
    flows, events, rounds = lossy()
    counted, ruled = under_rule(flows, events, "recovery-point")
    table = {row["name"]: row["value"] for row in estimate(counted, ruled, rounds).to_dicts()}
    assert table["q"] is None


def test_rules_decide_only_what_they_name() -> None:
    parts = lossy()
    before = estimate(*parts)
    for rule in RULES:
        flows, events = under_rule(parts[0], parts[1], rule)
        after = estimate(flows, events, parts[2])
        changed = before.filter(pl.Series(before["value"].eq_missing(after["value"]).not_()))["name"].cast(pl.String)
        assert set(changed) <= {*OF_LOSS_EVENTS, "p_tfrc"}
