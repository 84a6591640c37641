"""Is what the models say of a change, of two together, and of its interval what their laws say?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import tcpfit
from tcpfit.diagnosis.changes import MODEL_ERROR, Estimate, Models, WhatIf
from tcpfit.diagnosis.table import report
from tcpfit.models import catalogue
from tcpfit.parameters.intervals import Z95
from tcpfit.ranking.cut import cut
from tcpfit.ranking.variants import extended

SAMPLES = Path(__file__).resolve().parents[2] / "sample-traces"


def models(parameters: Mapping[str, float | tuple[float, float, float]], names: Sequence[str]) -> Models:
    """The models at 1 Mbit/s observed; a parameter is a value, or value, low and high."""
    ends = {name: value if isinstance(value, tuple) else (value,) for name, value in parameters.items()}
    return Models(1e6, {name: Estimate(*each) for name, each in ends.items()}, names)


def what_if(parameters: Mapping[str, float | tuple[float, float, float]], names: Sequence[str]) -> dict[str, WhatIf]:
    return {change.change: change for change in models(parameters, names).what_if()}


def test_half_the_losses_of_a_square_root_law():
    parameters = {"p": 0.01, "p_indication": 0.01, "q_tilde": 0.02, "rtt": 0.1, "rtt_min": 0.05, "b": 1.0}
    found = what_if(parameters, ["mathis"])
    assert found["half the losses"].rate_bps == pytest.approx(1e6 * 2**0.5, rel=1e-6)
    assert found["the round trip at its least"].rate_bps == pytest.approx(2e6)
    assert "no bursts of losses" not in found  # the law does not know them


def test_reactions_to_late_segments_are_loss_indications_without_a_loss():
    """Only where some were seen; the square-root law, which counts loss events, does not know them."""
    parameters = {"p": 0.005, "p_indication": 0.02, "rtt": 0.1, "rto": 0.3, "b": 1.0, "a_h_reacted": 0.7}
    reacted = what_if(parameters, ["pftk-simple", "mathis"])["no reaction to late segments"]
    assert ["pftk-simple"] == reacted.models
    assert reacted.rate_bps == pytest.approx(2e6)  # the square root of a quarter, without timeouts
    assert "no reaction to late segments" not in what_if(parameters | {"a_h_reacted": np.nan}, ["pftk-simple"])


def test_what_a_change_leaves_as_it_is_is_not_in_its_interval():
    """Half of a loss rate known to a factor of two: the square root of two in every draw, but for the model's error."""
    halved = what_if({"p": (0.01, 0.005, 0.02), "rtt": (0.1, 0.05, 0.2), "b": 1.0}, ["mathis"])["half the losses"]
    ends = [1e6 * 2**0.5 * np.exp(sign * Z95 * MODEL_ERROR) for sign in (-1, 1)]
    assert [halved.low_bps, halved.high_bps] == pytest.approx(ends, rel=0.01)


def test_the_interval_has_the_parameters_and_the_models():
    """Timeouts make it matter how large p is; without them the square root of two is the other model's answer."""
    parameters = {"p_indication": (0.05, 0.03, 0.08), "rtt": 0.1, "rto": 0.3, "b": 1.0}
    alone = what_if(parameters, ["pftk-full"])["half the losses"]
    one, other = (
        float(catalogue()["pftk-full"].predict(p=p / 2, rtt=0.1, rto=0.3, b=1.0))
        / float(catalogue()["pftk-full"].predict(p=p, rtt=0.1, rto=0.3, b=1.0))
        for p in (0.03, 0.08)
    )
    error = np.hypot(Z95 * MODEL_ERROR, np.log(other / one) / 2)
    middle = np.sqrt(one * other)
    assert alone.low_bps == pytest.approx(1e6 * middle * np.exp(-error), rel=0.03)
    assert alone.high_bps == pytest.approx(1e6 * middle * np.exp(error), rel=0.03)
    both = what_if(parameters, ["pftk-full", "pftk-simple"])["half the losses"]
    assert both.low_bps < 1e6 * 2**0.5 < alone.low_bps * 1.1
    assert both.low_bps < alone.low_bps
    assert both.rate_bps == alone.rate_bps


def test_timers_are_asked_of_models_with_the_measured_share_of_timeouts():
    """The printed laws derive it from the window; without a measured one nothing is said of timers."""
    parameters = {"p": 0.03, "p_indication": 0.03, "rtt": 0.1, "rto": 0.3, "b": 1.0}
    names = ["pftk-full", "mathis"]
    assert "timers that take no time" not in what_if(parameters, names)
    found = what_if(parameters | {"p_to": 0.1}, names)["timers that take no time"]
    law = extended(catalogue()["pftk-full"], "p_to")
    now, then = (float(law.predict(p=0.03, rtt=0.1, rto=rto, b=1.0, p_to=0.1)) for rto in (0.3, 1e-6))
    assert found.models == ["pftk-full"]
    assert found.rate_bps == pytest.approx(1e6 * then / now)
    assert found.rate_bps < 1.1e6  # the printed law, which reckons a third of timeouts, says 1.2e6


def test_bursts_and_the_timers_that_they_end_in():
    parameters = {"p": 0.002, "q": 0.3, "rtt": 0.05, "rto": 1.0, "p_to": 0.4}
    found = models(parameters, ["newreno-full"]).together(100.0)
    two = next(two for two in found if two.of == ("no bursts of losses", "timers that take no time"))
    newreno = extended(catalogue()["newreno-full"], "p_to")

    def saved(q: float, rto: float) -> float:
        cases = ((0.3, 1.0), (q, rto))
        rates = (float(newreno.predict(p=0.002, q=q, rtt=0.05, rto=rto, p_to=0.4)) for q, rto in cases)
        return 100.0 * (1 - next(rates) / next(rates))

    assert two.seconds == pytest.approx(saved(0.002, 1e-6))
    assert two.apart_s == pytest.approx(saved(0.002, 1.0) + saved(0.3, 1e-6))


def test_half_the_losses_and_the_least_round_trip_multiply():
    """Of the square-root law: 1/sqrt(2) and 1/2 of the time, not what they leave one by one."""
    found = models({"p": 0.01, "rtt": 0.1, "rtt_min": 0.05, "b": 1.0}, ["mathis"]).together(10.0)
    two = next(two for two in found if two.of == ("half the losses", "the round trip at its least"))
    assert two.seconds == pytest.approx(10 * (1 - 0.5 / 2**0.5))
    assert two.apart_s == pytest.approx(10 * (1 - 0.5 + 1 - 1 / 2**0.5))


def test_half_the_losses_of_single_ones_are_half_of_the_single_ones():
    """A loss a burst instead of two, and half as many bursts: a quarter of the losses."""
    parameters = {"p": 0.001, "q_tilde": 0.002, "rtt": 0.1, "rto": 0.3}
    found = models(parameters, ["bohacek-sack"]).together(10.0)
    two = next(two for two in found if two.of == ("half the losses", "no bursts of losses"))
    model = catalogue()["bohacek-sack"]
    rates = [float(model.predict(p=p, rtt=0.1, rto=0.3)) for p in (0.0005, 0.002)]
    assert two.seconds == pytest.approx(10 * (1 - rates[1] / rates[0]))


def test_a_report_says_what_cannot_be_split():
    analysis = tcpfit.analyze(SAMPLES / "timeouts.pcap.gz", segments=True)
    found = report(analysis)[0]
    assert found.what_if
    for change in found.what_if:
        assert change.low_bps <= change.rate_bps <= change.high_bps
    for two in found.together:
        assert two.joint == (abs(two.seconds - two.apart_s) > 0.2 * max(two.seconds, two.apart_s))


def test_the_models_of_a_cubic_flow_are_given_what_the_ranking_gives_them(monkeypatch):
    analysis = tcpfit.analyze(SAMPLES / "cubic.pcap.gz", segments=True)
    flow = analysis.largest()[0]
    asked = []
    monkeypatch.setattr("tcpfit.diagnosis.table.Models", lambda *given: asked.append(given) or Models(*given))
    report(analysis.select([flow]))
    (b,) = cut(analysis.evidence, analysis.parameters).value["b"][analysis.evidence.flow == flow]
    assert asked[0][1]["b"].value == pytest.approx(b)


def test_what_slow_start_lost_is_no_burst_that_comes_again():
    """IPv6 and 1 % of single losses: its overshoot lost ten segments in four events."""
    analysis = tcpfit.analyze(SAMPLES / "ipv6.pcap.gz", segments=True)
    found = {change.change: change for change in report(analysis)[0].what_if}
    assert 1.0 == pytest.approx(found["no bursts of losses"].rate_bps / report(analysis)[0].observed_bps, abs=0.05)
