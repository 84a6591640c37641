"""Is the rate without a cause what the accounting and the models say?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tcpfit
from tcpfit.diagnosis import diagnose
from tcpfit.diagnosis.cost import Cost, accounted, joint, what_if

SAMPLES = Path(__file__).resolve().parents[2] / "sample-traces"
S = 10**9


def spans(*rows: tuple[float, str, float]) -> dict[str, np.ndarray]:
    """Spans one after the other: seconds, cause, bytes."""
    ends = np.cumsum([round(seconds * S) for seconds, _, _ in rows])
    return {
        "start_ns": np.concatenate(([0], ends[:-1])),
        "end_ns": ends,
        "cause": np.array([cause for _, cause, _ in rows], dtype=object),
        "bytes": np.array([moved for _, _, moved in rows], dtype=float),
    }


def test_time_without_a_cause_is_at_the_rate_of_the_ceiling():
    found = accounted(spans((5, "receiver-window-limited", 500e3), (5, "reordering-limited", 250e3)))
    # 250 kB at 100 kB/s take 2.5 s instead of 5: 750 kB in 7.5 s
    cost = found["reordering-limited"]
    assert cost.seconds == pytest.approx(2.5)
    assert cost.rate_bps == pytest.approx(8 * 100e3)
    assert cost.gain_bps == pytest.approx(8 * 25e3)


def test_twice_the_window_saves_half_of_its_time_at_most():
    cost = accounted(spans((8, "receiver-window-limited", 800e3), (2, "slow-start-limited", 50e3)))[
        "receiver-window-limited"
    ]
    assert cost.seconds == pytest.approx(4)
    assert cost.low_bps == pytest.approx(8 * 850e3 / 10)
    assert cost.high_bps == pytest.approx(8 * 850e3 / 6)


def test_losses_without_a_ceiling_have_no_cost_by_the_accounting():
    assert accounted(spans((9, "loss-limited", 900e3), (1, "timeout-limited", 1e3))).keys() == {"timeout-limited"}


def test_pauses_are_no_reference():
    assert accounted(spans((9.5, "application-limited", 900e3), (0.5, "slow-start-limited", 80e3))) == {}


def test_causes_that_save_more_than_there_is_are_joint():
    half = Cost(2.0, 2.0, 2.0, 1.0, 6.0, "")
    assert joint({"a": half, "b": half}, 10.0)
    assert not joint({"a": half}, 10.0)


def test_half_the_losses_of_a_square_root_law():
    parameters = {"p": 0.01, "p_indication": 0.01, "q_tilde": 0.02, "rtt": 0.1, "rtt_min": 0.05, "b": 1.0}
    found = {change.change: change for change in what_if(1e6, parameters, ["mathis"])}
    assert found["half the losses"].rate_bps == pytest.approx(1e6 * 2**0.5, rel=1e-6)
    assert found["the round trip at its least"].rate_bps == pytest.approx(2e6)
    assert "no bursts of losses" not in found  # the law does not know them


def test_reactions_to_late_segments_are_loss_indications_without_a_loss():
    """Only where some were seen; the square-root law, which counts loss events, does not know them."""
    parameters = {"p": 0.005, "p_indication": 0.02, "rtt": 0.1, "rto": 0.3, "b": 1.0, "a_h_reacted": 0.7}
    found = {change.change: change for change in what_if(1e6, parameters, ["pftk-simple", "mathis"])}
    reacted = found["no reaction to late segments"]
    assert ["pftk-simple"] == reacted.models
    assert reacted.rate_bps == pytest.approx(2e6)  # the square root of a quarter, without timeouts
    without = what_if(1e6, parameters | {"a_h_reacted": None}, ["pftk-simple"])
    assert "no reaction to late segments" not in {change.change for change in without}


def test_reordering_cost_the_sample_what_its_window_would_have_carried():
    """20 segments of 1460 bytes in 50.3 ms carry 4.64 Mb/s, and nothing but reordering was in the way."""
    analysis = tcpfit.analyze(SAMPLES / "reordering-sender.pcap.gz")
    found = diagnose(analysis.flows, analysis.events, analysis.rounds)[analysis.largest()[0]]
    cost = next(cause.cost for cause in found.causes if cause.cause == "reordering-limited")
    assert cost is not None
    assert cost.rate_bps == pytest.approx(20 * 1460 * 8 / 0.0503, rel=0.05)
