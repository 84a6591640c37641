"""Sikdar et al.'s three steady states: the sums in closed form against sums, rounds counted one by one, and errata."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcpfit.models import get, sikdar_reno, sikdar_rounds, sikdar_sack, sikdar_steady, sikdar_tahoe, timeouts

VERSIONS = {"tahoe": sikdar_tahoe, "reno": sikdar_reno, "sack": sikdar_sack}
BETWEEN = st.integers(1, 40_000).map(float) | st.floats(1, 40_000)  # 1/p
LIMIT = st.integers(1, 300).map(float) | st.just(float("inf"))


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=60, deadline=None)
@given(between=BETWEEN, limit=LIMIT)
def test_runs_give_the_sum_over_all_pairs(version, between, limit):
    module = VERSIONS[version]
    rounds, share = sikdar_steady.mean_over_runs(np.array([1 / between]), np.array([limit]), module.runs)
    expected = sikdar_steady.mean_over_pairs(1 / between, limit, module.indication)
    assert expected == pytest.approx((float(rounds[0]), float(share[0])), rel=1e-12)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("room", [0, 1, 2, 3, 7, np.inf])
def test_runs_hold_every_pair_once(version, room):
    h = np.arange(1.0, 200.0)
    runs = VERSIONS[version].runs(h, h + room)
    np.testing.assert_array_equal(h, sum(np.maximum(0.0, run.size) for run in runs))


@settings(max_examples=200, deadline=None)
@given(
    a=st.integers(-400, 40_000).map(lambda eighths: eighths / 8),
    count=st.integers(0, 60),
    stride=st.integers(1, 17),
    b=st.integers(1, 60),
    limit=LIMIT,
)
def test_a_run_of_equation_5_is_its_sum(a, count, stride, b, limit):
    args = (np.asarray(float(b)), np.asarray(limit))
    expected = sum(float(sikdar_rounds.linear_rounds(np.asarray(a - stride * i), *args)) for i in range(count))
    columns = (np.array([value], dtype=float) for value in (a, count, stride, b, limit))
    assert expected == sikdar_rounds.linear_rounds_of_run(*columns)[0]


def counted(window, packets):
    """Rounds until `packets` are through, when round i sends window(i)."""
    rounds = 0
    while packets > 0:
        packets -= window(rounds)
        rounds += 1
    return rounds


def slow_start(n):
    """Windows of slow start below n: rounds 1, 2, ... of equation 2."""
    windows = (int(2 ** ((k - 1) / 2) + 2 ** ((k - 2) / 2)) for k in range(1, 99))
    return [w for w in windows if w < n]


@pytest.mark.parametrize("h", [1, 2, 3, 4, 7, 8, 9, 14, 21])
@pytest.mark.parametrize("between", [12, 57, 400])
def test_tahoe_round_by_round(h, between):
    for j in range(1, h + 1):
        n = max(2, -(-h // 2))
        sent = [j - 1] * (j > 1) + slow_start(n)
        rounds = len(sent) + counted(lambda i, n=n: n + i // 2, between - sum(sent))
        after = sikdar_tahoe.indication(np.asarray(float(h)), np.asarray(float(j)))
        linear = sikdar_rounds.linear_rounds(between - after.packets, after.ssthresh, np.asarray(np.inf))
        assert rounds == after.rounds + linear
        assert after.times_out == (j - 1 < 3)


@pytest.mark.parametrize(
    ("h", "j", "times_out", "rounds", "packets", "ssthresh"),
    [
        (3, 3, True, 2, 2 + 1, 2),  # two duplicate ACKs; slow start: one round of one packet
        (6, 6, False, 2, 1 + 5 + 2, 3),  # one loss: 5 packets, cwnd2 = 3 + 5 = 8 sends 2 more
        (6, 5, True, 2 + 1, 4 + 1 + 1 + 1, 2),  # two losses up to 8: cwnd2 = 3 + 4 = 7 sends 1 more, one is resent
        (12, 11, False, 3, 2 + 10 + 4, 3),  # two losses above 8, n = 12/4
        (12, 10, True, 3 + 1, 9 + 3 + 2 + 1, 2),  # three losses: nrnd2 = 3, so two fast retransmits, n = 12/8
        (12, 5, True, 2 + 2, 4 + 0 + 1 + 3, 3),  # eight losses: nrnd2 = 0, one fast retransmit, n = 12/4
    ],
)
def test_reno_case_by_case(h, j, times_out, rounds, packets, ssthresh):
    found = sikdar_reno.indication(np.asarray(float(h)), np.asarray(float(j)))
    assert (times_out, rounds, packets, ssthresh) == tuple(float(value) for value in found)


@pytest.mark.parametrize("version", VERSIONS)
def test_midpoints_come_near_the_double_sum(version, monkeypatch):
    p, limit = np.array([1e-4, 5e-6, 2e-8]), np.full(3, np.inf)
    exact, _ = sikdar_steady.mean_over_runs(p, limit, VERSIONS[version].runs)
    monkeypatch.setattr(sikdar_steady, "PAIRS", 1)
    middle = [sikdar_steady.mean_over_pairs(x, np.inf, VERSIONS[version].indication)[0] for x in p]
    np.testing.assert_allclose(exact, middle, rtol=4e-4)


def test_beyond_the_exact_sums_the_rate_goes_on_smoothly():
    p = 16 / (2 * np.array([16380.0, 16390.0]) + 1) ** 2  # c_wm on either side of 16384
    for version in VERSIONS:
        rate = get(f"sikdar-{version}").predict(p=p, rtt=0.1, rto=1.0)
        assert abs(np.log(rate[1] / rate[0]) - np.log(p[0] / p[1]) / 2) < 1e-3
        huge = get(f"sikdar-{version}").predict(p=[1e-13, 1e-100, 0.0], rtt=0.1, rto=1.0, w_max=40)
        np.testing.assert_allclose(400, huge, rtol=1e-9)


def test_sack_times_out_when_half_a_round_is_lost():
    h = np.full(20, 20.0)
    after = sikdar_sack.indication(h, np.arange(1.0, 21.0))
    np.testing.assert_array_equal(np.arange(1, 21) <= 9, after.times_out)


# Errata


def test_printed_equation_4_is_not_the_series():
    p = np.array([0.3, 0.6])
    ratio = timeouts.timeout_duration(p, np.asarray(1.0), as_printed=True) / timeouts.timeout_duration(p, np.ones(2))
    np.testing.assert_allclose([1.0028, 1.0224], ratio, atol=1e-4)


def test_printed_reno_counts_other_packets_before_a_timeout():
    h, j = np.asarray(12.0), np.asarray(10.0)
    right, printed = (sikdar_reno.indication(h, j, as_printed=form).packets for form in (False, True))
    # 9 packets, then 3 and a retransmission, then another: 14; printed max(12, 15) - 9
    slow = sikdar_rounds.slow_start_packets
    assert float(right - slow(np.asarray(1.0))) == 9 + 3 + 2
    assert float(printed - slow(sikdar_rounds.rounds_to_packet(np.asarray(2.0)))) == 15 - 9


def test_printed_sack_threshold_is_never_above_two():
    h = np.arange(1.0, 100.0)
    assert sikdar_sack.indication(h, h, as_printed=True).ssthresh.max() == 2
    assert sikdar_sack.indication(h, h).ssthresh.max() == 50


# Figures that the docstrings quote


@pytest.mark.parametrize(
    ("version", "low", "high"), [("tahoe", 0.59, 0.87), ("reno", 0.545, 0.72), ("sack", 0.59, 0.86)]
)
def test_ratio_to_pftk(version, low, high):
    p = np.append(np.geomspace(1e-3, 0.3, 3000), 0.5)
    ratio = get(f"sikdar-{version}").predict(p=p, rtt=0.1, rto=1.0) / get("pftk-full").predict(p=p, rtt=0.1, rto=1.0)
    assert (low, high) == pytest.approx((ratio[:-1].min(), ratio[:-1].max()), abs=0.005)
    assert ratio[-1] == pytest.approx(0.40, abs=0.01)


@pytest.mark.parametrize("version", VERSIONS)
def test_steps_upward_are_small(version):
    rate = get(f"sikdar-{version}").predict(p=np.geomspace(1e-4, 0.3, 20001), rtt=0.1, rto=1.0)
    assert 0 < np.diff(np.log(rate)).max() < 0.03
