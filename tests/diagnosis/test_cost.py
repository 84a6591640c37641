"""Is the rate without a cause what the accounting and the models say?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tcpfit
from tcpfit.diagnosis import diagnose
from tcpfit.diagnosis.cost import accounted, accounted_together
from tcpfit.report import diagnosed

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
    found = accounted([spans((5, "receiver-window-limited", 500e3), (5, "reordering-limited", 250e3))])[0]
    # 250 kB at 100 kB/s take 2.5 s instead of 5: 750 kB in 7.5 s
    cost = found["reordering-limited"]
    assert cost.seconds == pytest.approx(2.5)
    assert cost.rate_bps == pytest.approx(8 * 100e3)
    assert cost.gain_bps == pytest.approx(8 * 25e3)


def test_twice_the_window_saves_half_of_its_time_at_most():
    rows = spans((8, "receiver-window-limited", 800e3), (2, "slow-start-limited", 50e3))
    cost = accounted([rows])[0]["receiver-window-limited"]
    assert cost.seconds == pytest.approx(4)
    assert cost.low_bps == pytest.approx(8 * 850e3 / 10)
    assert cost.high_bps == pytest.approx(8 * 850e3 / 6)
    assert cost.at_most
    assert diagnosed.saving(cost) == ("<= 4.00 s", "<= 1.13 Mb/s")


def test_what_is_held_against_a_reference_is_no_bound():
    rows = spans((8, "receiver-window-limited", 800e3), (2, "slow-start-limited", 50e3))
    cost = accounted([rows])[0]["slow-start-limited"]
    assert not cost.at_most
    assert diagnosed.saving(cost) == ("1.50 s", "800 kb/s")


def test_losses_without_a_ceiling_have_no_cost_by_the_accounting():
    found = accounted([spans((9, "loss-limited", 900e3), (1, "timeout-limited", 1e3))])
    assert [{"timeout-limited"}] == [costs.keys() for costs in found]


def test_pauses_are_no_reference():
    assert [{}] == accounted([spans((9.5, "application-limited", 900e3), (0.5, "slow-start-limited", 80e3))])


def test_causes_held_against_a_ceiling_add_up():
    rows = spans((4, "receiver-window-limited", 400e3), (3, "reordering-limited", 150e3), (3, "timeout-limited", 30e3))
    two = accounted_together(rows, accounted([rows])[0])[0]
    # 1.5 s and 2.7 s at 100 kB/s
    assert two.seconds == pytest.approx(two.apart_s) == pytest.approx(4.2)
    assert not two.joint


def test_causes_held_against_each_other_do_not():
    """Alone each is held against a rest in which the other one is; with both gone that is the 50 kB/s of slow start."""
    rows = spans((4, "timeout-limited", 20e3), (3, "reordering-limited", 60e3), (3, "slow-start-limited", 150e3))
    (costs,) = accounted([rows])
    two = next(two for two in accounted_together(rows, costs) if two.of == ("reordering-limited", "timeout-limited"))
    assert two.seconds == pytest.approx(7 - 80 / 50)
    assert two.apart_s == pytest.approx((4 - 20 / (210 / 6)) + (3 - 60 / (170 / 7)))
    assert two.rate_bps == pytest.approx(8 * 230e3 / (3 + 80 / 50))
    assert two.joint


def test_the_interval_is_that_of_resampled_stretches_whatever_flows_are_beside():
    """Stretches of 4, 1 and 2 s with 400, 0 and 400 kB are drawn; a draw of nothing but the second has no rate."""
    rows = spans(
        (3, "timeout-limited", 100e3),
        (4, "slow-start-limited", 400e3),
        (1, "slow-start-limited", 0.0),
        (2, "slow-start-limited", 400e3),
    )
    others = [
        spans((k, "timeout-limited", 1e3), (5, "slow-start-limited", 5e5), (1, "unknown", 1e4)) for k in (1, 2, 3)
    ]
    alone, *_, last = accounted([rows, *others, rows])
    cost = alone["timeout-limited"]
    drawn = np.random.default_rng(1988).integers(0, 3, (200, 3))
    rates = [sum([400e3, 0.0, 400e3][k] for k in own) / sum([4.0, 1.0, 2.0][k] for k in own) for own in drawn]
    saved = [max(3 - 100e3 / rate, 0.0) for rate in rates if rate > 0]
    low, high = (8 * 900e3 / (10 - gain) for gain in np.quantile(saved, (0.025, 0.975)))
    assert 200 > len(saved)
    assert cost.low_bps == pytest.approx(low) and cost.high_bps == pytest.approx(high)
    assert alone == last


def test_reordering_cost_the_sample_what_its_window_would_have_carried():
    """20 segments of 1460 bytes in 50.3 ms carry 4.64 Mb/s, and nothing but reordering was in the way."""
    analysis = tcpfit.analyze(SAMPLES / "reordering-sender.pcap.gz")
    found = diagnose(analysis.flows, analysis.events, analysis.rounds)[analysis.largest()[0]]
    cost = next(cause.cost for cause in found.causes if cause.cause == "reordering-limited")
    assert cost is not None
    assert cost.rate_bps == pytest.approx(20 * 1460 * 8 / 0.0503, rel=0.05)
