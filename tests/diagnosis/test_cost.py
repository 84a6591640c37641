"""Is the rate without a cause what the accounting and the models say?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tcpfit
from tcpfit.diagnosis import diagnose
from tcpfit.diagnosis.cost import accounted, accounted_together

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


def test_causes_held_against_a_ceiling_add_up():
    rows = spans((4, "receiver-window-limited", 400e3), (3, "reordering-limited", 150e3), (3, "timeout-limited", 30e3))
    two = accounted_together(rows, accounted(rows))[0]
    # 1.5 s and 2.7 s at 100 kB/s
    assert two.seconds == pytest.approx(two.apart_s) == pytest.approx(4.2)
    assert not two.joint


def test_causes_held_against_each_other_do_not():
    """Alone each is held against a rest in which the other one is; with both gone that is the 50 kB/s of slow start."""
    rows = spans((4, "timeout-limited", 20e3), (3, "reordering-limited", 60e3), (3, "slow-start-limited", 150e3))
    costs = accounted(rows)
    two = next(two for two in accounted_together(rows, costs) if two.of == ("reordering-limited", "timeout-limited"))
    assert two.seconds == pytest.approx(7 - 80 / 50)
    assert two.apart_s == pytest.approx((4 - 20 / (210 / 6)) + (3 - 60 / (170 / 7)))
    assert two.rate_bps == pytest.approx(8 * 230e3 / (3 + 80 / 50))
    assert two.joint


def test_reordering_cost_the_sample_what_its_window_would_have_carried():
    """20 segments of 1460 bytes in 50.3 ms carry 4.64 Mb/s, and nothing but reordering was in the way."""
    analysis = tcpfit.analyze(SAMPLES / "reordering-sender.pcap.gz")
    found = diagnose(analysis.flows, analysis.events, analysis.rounds)[analysis.largest()[0]]
    cost = next(cause.cost for cause in found.causes if cause.cause == "reordering-limited")
    assert cost is not None
    assert cost.rate_bps == pytest.approx(20 * 1460 * 8 / 0.0503, rel=0.05)
