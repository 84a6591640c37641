"""Each assumption's check: what passes, what fails, and the sentence with its numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcpfit
from tcpfit.models import catalogue
from tcpfit.ranking.applicability import CHECKS, NOT_RANKED, Facts, check_all, says, table

SAMPLES = Path(__file__).parents[2] / "sample-traces"

GOOD = Facts(
    rounds=500,
    sent=5000,
    seconds=50,
    idle_s=0,
    limited_share=0,
    loss_events=50,
    indications=50,
    timeouts=2,
    reorder_events=0,
    whole_sent=6000,
    sack=False,
    family="reno",
    confidence=0.9,
    decrease=0.5,
    p=0.01,
    q_tilde=0.012,
    m_low=1.1,
    m_high=1.3,
    w=12,
    w_max=None,
    rtt=0.1,
)


def test_every_assumption_of_every_model_has_a_check() -> None:
    ranked = [model for name, model in catalogue().items() if name not in NOT_RANKED]
    assert set() == {a.name for model in ranked for a in model.assumptions} - set(CHECKS)


def test_a_plain_reno_flow_fails_only_what_it_cannot_meet() -> None:
    others = {"cubic-growth", "no-fast-recovery", "window-limited", "sack", "reordering", "correlated-loss-in-round"}
    assert others == set(check_all(GOOD))
    assert {"reno-growth", "cubic-growth"}.isdisjoint(check_all(GOOD._replace(family="unknown", confidence=0.0)))
    assert "cubic-growth" not in check_all(GOOD._replace(family="cubic", decrease=0.7))
    assert "no-fast-recovery" not in check_all(GOOD._replace(decrease=1 / 12))


@pytest.mark.parametrize(
    ("name", "facts", "words"),
    [
        ("reno-growth", GOOD._replace(family="bbr", decrease=0.95), "kept 0.95 of its size"),
        ("reno-growth", GOOD._replace(decrease=0.12), "as Tahoe's does"),
        ("reno-growth", GOOD._replace(family="cubic", decrease=0.7, p=1e-4, rtt=0.2), "CUBIC's window (315 segments)"),
        ("cubic-growth", GOOD, "kept 0.50 of its size at losses, as Reno does"),
        ("cubic-growth", GOOD._replace(family="bbr", decrease=0.95), "kept 0.95 of its size at losses, as BBR does"),
        ("no-fast-recovery", GOOD, "kept 0.50 of its size at losses, where Tahoe"),
        ("loss-limited", GOOD._replace(loss_events=0), "no loss event in 500 steady rounds"),
        ("loss-limited", GOOD._replace(loss_events=0, rounds=1), "no loss event in 1 steady round:"),
        (
            "loss-limited",
            GOOD._replace(marks=22, whole_loss_events=8),
            "for 22 windows with congestion marks beside 8 loss events",
        ),
        ("loss-limited", GOOD._replace(limited_share=0.9), "90% of the steady rounds"),
        ("loss-limited", GOOD._replace(idle_s=50), "50% of the time"),
        ("loss-limited", GOOD._replace(flatness=0.93, growth=0.8, standing=1.4), "filled its bottleneck"),
        ("loss-limited", GOOD._replace(flatness=0.76, growth=None, standing=2.0), "stood at 2.0 times its minimum"),
        ("not-window-limited", GOOD._replace(limited_share=0.3, w_max=20), "30% of the steady rounds"),
        ("bulk", GOOD._replace(whole_sent=9), "only 9 segments"),
        ("bulk", GOOD._replace(rounds=0), "never left slow start"),
        ("bulk", GOOD._replace(rounds=0, whole_loss_events=3), "the capture shows no steady round"),
        ("no-sack", GOOD._replace(sack=True), "SACK was in use"),
        ("no-reordering", GOOD._replace(reorder_events=20), "20 reordering events beside 50 loss events"),
        ("reordering", GOOD._replace(reorder_events=20), "50 loss events outweigh 20"),
        ("no-reordering", GOOD._replace(reorder_events=1, loss_events=0), "1 reordering event beside 0 loss events"),
        (
            "reordering-felt",
            GOOD._replace(loss_events=0, indications=1, reorder_events=145),
            "let most reordering pass: 1 recovery or timeout beside 145 reordering events",
        ),
        (
            "reordering-felt",
            GOOD._replace(loss_events=0, indications=4, reorder_events=19),
            "4 recoveries and timeouts beside 19",
        ),
        ("no-timeouts", GOOD._replace(timeouts=10), "10 of 50 loss indications"),
        ("no-timeouts", GOOD._replace(timeouts=1, indications=1), "the only loss indication was a timeout"),
        ("bernoulli-loss", GOOD._replace(m_low=4.0), "at least 4.0 losses"),
        ("correlated-loss-in-round", GOOD, "at most 1.3 losses on average, the rest of a round makes 6.5"),
    ],
)
def test_failed_checks_say_why(name: str, facts: Facts, words: str) -> None:
    assert words in check_all(facts)[name]


@pytest.mark.parametrize(("rounds", "fails"), [(0, False), (7, False), (8, True)])
def test_losses_before_few_steady_rounds_may_have_bound_the_rate(rounds: int, fails: bool) -> None:
    facts = GOOD._replace(loss_events=0, rounds=rounds, whole_loss_events=3)
    assert fails == ("loss-limited" in check_all(facts))


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_losses_do_not_explain_a_sender_that_marks_slowed_down(end: str) -> None:
    """22 of its 30 reductions answered marks: given the losses alone every Reno model is 70 to 97 % too fast."""
    analysis = tcpfit.analyze(str(SAMPLES / f"ecn-marks-{end}.pcap.gz")).select([0])
    assert ["none_applies"] == analysis.verdicts["state"].to_list()
    assert "for 22 windows with congestion marks beside 8 loss events" in analysis.verdicts["text"][0]
    assert not analysis.ranking["applicable"].any()


def test_few_marks_beside_losses_do_not_matter() -> None:
    assert "loss-limited" not in check_all(GOOD._replace(marks=5, whole_loss_events=50))


def test_cubic_in_its_reno_friendly_region_grows_like_reno() -> None:
    assert CHECKS["reno-growth"](GOOD._replace(family="cubic", decrease=0.7, p=0.02, rtt=0.05)) is None


def test_what_is_not_known_does_not_fail() -> None:
    unknown = GOOD._replace(family="unknown", confidence=0.0, sack=None, m_low=None, m_high=None)
    assert {"window-limited", "reordering"} == set(check_all(unknown))


def test_reordering_that_may_have_been_felt_does_not_fail() -> None:
    """Whether a resend was needless is not always seen: the recoveries are counted, whatever set them off."""
    assert "reordering-felt" not in check_all(GOOD._replace(loss_events=0, indications=24, reorder_events=40))
    assert "reordering-felt" not in check_all(GOOD._replace(loss_events=0, indications=0, reorder_events=0))


def test_weak_assumptions_do_not_rule_a_model_out() -> None:
    judged = table([check_all(GOOD._replace(sack=True))]).select(**says(catalogue()["pftk-full"])).row(0, named=True)
    assert (True, []) == (judged["applicable"], judged["failed"])
    assert "no-sack" in judged["weakened"] and "weakened: SACK was in use" in judged["reasons"]
    assert all(reason.startswith("weakened: ") for reason in judged["reasons"])


def test_flows_are_judged_each_by_its_own_failures() -> None:
    failed = [
        {"bulk": "too short", "no-sack": "SACK was in use"},
        {},
        {"loss-limited": "too short", "bulk": "too short"},
    ]
    judged = table(failed).select(**says(catalogue()["pftk-full"]))
    assert [False, True, False] == judged["applicable"].to_list()
    assert [["bulk"], [], ["loss-limited", "bulk"]] == judged["failed"].to_list()
    assert [["too short", "weakened: SACK was in use"], [], ["too short"]] == judged["reasons"].to_list()
