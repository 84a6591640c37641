"""Where a paper derives a result in two ways, both give the same number; and the errata, shown by numbers."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from model_values import VALUES, model_bps
from scipy.integrate import quad

from tcpfit.models import get, newreno_full, newreno_window, pftk_simple, sikdar_rounds, tfrc, timeouts
from tcpfit.models import reordering_goodput as sharma
from tcpfit.models.mathis import Mathis
from tcpfit.models.pftk_simple import PFTKSimple
from tcpfit.models.reordering_goodput import ReorderingGoodput

PROBABILITIES = np.array([1e-4, 0.003, 0.02, 0.1, 0.3, 0.6])


@pytest.mark.parametrize("p", PROBABILITIES)
@pytest.mark.parametrize("w", [4, 7, 20, 60])
def test_pftk_timeout_probability_is_its_sum(p, w):
    def first_loss_at(k):  # A(w, k): k segments of w arrive before the first loss
        return (1 - p) ** k * p / (1 - (1 - p) ** w)

    def of_last_round(n, m):  # C(n, m): m of the n segments of the last round arrive before the first loss
        return (1 - p) ** m * p if m < n else (1 - p) ** n

    total = sum(first_loss_at(k) for k in range(3))
    total += sum(first_loss_at(k) * sum(of_last_round(k, m) for m in range(3)) for k in range(3, w))
    assert total == pytest.approx(float(timeouts.timeout_probability(np.asarray(p), np.asarray(float(w)))), rel=1e-10)


@pytest.mark.parametrize("p", PROBABILITIES)
def test_timeout_duration_is_its_series(p):
    length = [(2**k - 1 if k <= 6 else 63 + 64 * (k - 6)) for k in range(1, 2000)]
    series = sum(p ** (k - 1) * (1 - p) * seconds for k, seconds in enumerate(length, 1))
    assert series == pytest.approx(float(timeouts.timeout_duration(np.asarray(p), np.asarray(1.0))), rel=1e-12)


def test_backoff_truncated_by_parvez():
    p = np.array([0.05, 0.1, 0.2, 0.3, 0.5])
    ratio = timeouts.backoff_second_order(p) / timeouts.timeout_duration(p, np.asarray(1.0)) - 1
    np.testing.assert_allclose([-0.001, -0.008, -0.06, -0.20, -0.63], ratio, atol=0.006)


def test_simple_law_is_the_leading_term_of_the_exact_one():
    p = np.array([1e-6, 1e-8, 1e-10])
    gap = PFTKSimple(variant="exact").predict(p=p, rtt=0.1) / PFTKSimple().predict(p=p, rtt=0.1) - 1
    assert (np.abs(gap) < 2 * np.sqrt(p)).all()
    np.testing.assert_allclose(Mathis(b=2).predict(p=p, rtt=0.1), PFTKSimple().predict(p=p, rtt=0.1))


def test_tfrc_is_pftk_without_its_minimum_and_window():
    p, rtt = np.array([1e-5, 1e-3, 0.1, 0.29]), np.array([0.01, 0.1, 0.2, 0.4])
    approx = get("pftk-approx").predict(p=p, rtt=rtt, rto=4 * rtt, b=1)
    np.testing.assert_allclose(approx, get("tfrc").predict(p=p, rtt=rtt), rtol=1e-12)
    np.testing.assert_allclose(approx, get("tfrc").predict(p=p, rtt=rtt, rto=4 * rtt), rtol=1e-12)
    assert get("tfrc").predict(p=0.5, rtt=0.1) < get("pftk-approx").predict(p=0.5, rtt=0.1, rto=0.4, b=1)
    in_bytes = tfrc.bytes_per_second(np.asarray(1460.0), rtt, p, tfrc.timeout(rtt), np.asarray(1.0))
    np.testing.assert_allclose(1460 * approx, in_bytes, rtol=1e-12)


def test_pftk_window_balances_the_segments_of_a_period():
    # (1-p)/p + W segments go in X = b W/2 rounds that grow from W/2 by 1/b a round, and half a window behind them
    for b in (1.0, 2.0):
        W = pftk_simple.window(PROBABILITIES, np.asarray(b))
        X = b * W / 2
        np.testing.assert_allclose((1 - PROBABILITIES) / PROBABILITIES + W, X / 2 * (W / 2 + W - 1) + W / 2, rtol=1e-12)


def test_exact_window_solves_7_and_13_and_14_does_not():
    p, q = np.array([0.01, 1e-4, 0.1, 0.5, 1e-9]), np.array([0.01, 0.3, 0.1, 0.9, 0.0])
    W = newreno_window.exact_window(p, q)
    np.testing.assert_allclose(
        newreno_window.period_segments(p, W, q), newreno_window.fluid_period_segments(W, q), rtol=1e-10
    )
    np.testing.assert_allclose([14.33, 144.2, 3.81], W[:3], rtol=2e-3)
    np.testing.assert_allclose([14.77, 137.6, 4.09], newreno_window.printed_window(p, q)[:3], rtol=2e-3)


@pytest.mark.parametrize(("p", "q"), [(0.01, 0.01), (1e-3, 0.4), (0.05, 0.9), (0.02, 0.0), (0.03, 1.0), (0.09, 0.09)])
def test_equation_24_is_its_sum(p, q):
    W = int(newreno_window.printed_window(np.asarray(p), np.asarray(q)))
    total = 1 - sum(
        comb(W - 1, m - 1) * (1 - q) ** (W - m) * q ** (m - 1) * (1 - p) ** (m * W / 2) for m in range(1, W - 2)
    )
    args = np.asarray(p), np.asarray(q), np.asarray(float(W))
    with np.errstate(divide="ignore"):
        closed = float(newreno_full.timeout_probability(*args))
    assert total == pytest.approx(closed, rel=1e-9)
    assert total == pytest.approx(float(newreno_full.timeout_probability_real(*args)), rel=1e-9)


@pytest.mark.parametrize(("p", "q"), [(1e-9, 0.5), (1e-5, 0.99), (1e-3, 0.2), (0.05, 0.05), (0.05, 0.0)])
def test_equation_24_goes_on_between_whole_windows(p, q):
    p, q = np.array([p]), np.array([q])
    W = newreno_window.printed_window(p, q)
    for whole in (np.floor(W), np.floor(W) + 1):
        real, closed = (rule(p, q, whole) for rule in (newreno_full.timeout_probability_real, closed_24))
        np.testing.assert_allclose(closed, real, rtol=1e-7)
    m = np.arange(1, np.floor(W[0] - 3) + 1)
    total = 1 - np.sum(newreno_window.losses_probability(W, m, q) * (1 - p) ** (m * W / 2))
    assert total == pytest.approx(float(newreno_full.timeout_probability_real(p, q, W)[0]), rel=1e-6)


def closed_24(p, q, W):
    with np.errstate(divide="ignore"):
        return newreno_full.timeout_probability(p, q, W)


def test_24_is_22_plus_23():
    p, q, W = 0.02, 0.3, 12
    A = [comb(W - 1, m - 1) * (1 - q) ** (W - m) * q ** (m - 1) for m in range(1, W + 1)]
    direct = sum(A[W - 3 :])
    during = sum(a * (1 - (1 - p) ** (m * W / 2)) for m, a in enumerate(A[: W - 3], 1))
    args = np.asarray(p), np.asarray(q), np.asarray(float(W))
    assert direct + during == pytest.approx(float(newreno_full.timeout_probability(*args)), rel=1e-12)
    assert direct == pytest.approx(float(newreno_full.direct_timeout_probability(*args[1:])), rel=1e-12)
    assert during == pytest.approx(float(newreno_full.failed_recovery_probability(*args)), rel=1e-12)
    for m in (1, 4, W):
        assert A[m - 1] == pytest.approx(float(newreno_window.losses_probability(*map(np.asarray, (W, m, q)))))


def test_segments_of_a_recovery_are_9_and_10():
    W = 12
    for m in range(1, W + 1):  # one round trip a loss; W/2 - m new segments in the first, one more in each
        sent = sum(max(0, W // 2 - m + j) for j in range(m))
        assert sent == float(newreno_window.recovery_segments_of(np.asarray(float(W)), np.asarray(float(m))))
    assert 1 + 2 + 4 == float(newreno_full.slow_start_segments(np.asarray(16.0)))  # (27): below half of 16


def test_fast_recovery_segments_are_11():
    # (9) m/2 (W - m - 1) averaged over the binomial m is (11), so (13) = (12) + W/2 + (11)
    W, q = 18, 0.23
    mean = sum(comb(W - 1, m - 1) * (1 - q) ** (W - m) * q ** (m - 1) * m / 2 * (W - m - 1) for m in range(1, W + 1))
    linear = sum(range(W // 2, W + 1))  # (12)
    assert float(newreno_window.increase_segments(np.asarray(float(W)))) == pytest.approx(linear)
    assert float(newreno_window.recovery_segments(np.asarray(float(W)), np.asarray(q))) == pytest.approx(mean)
    total = float(newreno_window.fluid_period_segments(np.asarray(float(W)), np.asarray(q)))
    assert linear + W / 2 + mean == pytest.approx(total)


def test_q_rules_agree_where_losses_are_single():
    p = np.array([0.001, 0.01, 0.05])
    for rule in (newreno_window.q_from_rates, newreno_window.q_self_consistent):
        np.testing.assert_array_equal(0.0, rule(p, p))
        np.testing.assert_array_equal(0.0, rule(p / 2, p))
        np.testing.assert_array_equal(1.0, rule(np.ones(3), p))
    m = np.array([1.5, 2.0, 1.1])
    q = newreno_window.q_self_consistent(m * p, p)
    np.testing.assert_allclose(m - 1, q * (newreno_window.printed_window(p, q) - 1), rtol=1e-12)


@pytest.mark.parametrize("b", [1, 3, 8])
@pytest.mark.parametrize("limit", [8, 12, np.inf])
def test_linear_growth_is_its_sum(b, limit):
    for a in range(1, 400):
        sent = rounds = 0
        while sent < a:
            sent += min(b + rounds // 2, limit)
            rounds += 1
        args = (np.asarray(float(value)) for value in (a, b, limit))
        assert rounds == sikdar_rounds.linear_rounds(*args), a


def test_slow_start_packets_is_its_sum_up_to_round_7():
    w = sikdar_rounds.slow_start_window(np.arange(1.0, 12.0))
    closed = sikdar_rounds.slow_start_packets(np.arange(1.0, 12.0))
    np.testing.assert_array_equal([1, 2, 3, 4], w[:4])
    np.testing.assert_array_equal(np.cumsum(w)[:7], closed[:7])
    np.testing.assert_array_equal([(57, 55), (84, 80), (122, 115), (176, 164)], np.stack([w.cumsum(), closed])[:, 7:].T)


@pytest.mark.parametrize("N", [7, 40, 199, 1000])
@pytest.mark.parametrize("Wmax", [4, 10, 24])
def test_loss_free_rounds_hold_the_first_round_at_the_limit_once(N, Wmax):
    rounds = float(sikdar_rounds.loss_free_rounds(np.asarray(float(N)), np.asarray(float(Wmax))))
    n_wm = float(sikdar_rounds.rounds_to_window(np.asarray(float(Wmax))))
    N_exp = float(sikdar_rounds.packets_to_window(np.asarray(float(Wmax))))
    if N > N_exp:
        assert N_exp + (rounds - n_wm - 1) * Wmax >= N > N_exp + (rounds - n_wm - 2) * Wmax
    else:
        assert rounds <= n_wm + 1


# Reordering


def test_a_window_limit_of_a_packet_sends_one_a_round():
    N = np.arange(1.0, 40.0)
    np.testing.assert_array_equal(N, sikdar_rounds.loss_free_rounds(N, np.ones(N.shape)))
    np.testing.assert_array_equal([0, 1, 3], sikdar_rounds.slow_start_packets(np.arange(3.0)))
    np.testing.assert_array_equal([1, 2, 2], sikdar_rounds.loss_free_rounds(np.arange(1.0, 4.0), np.full(3, 1.5)))


def test_window_solution_obeys_the_recurrence_and_the_printed_one_does_not():
    x, b = np.asarray(5.0), np.asarray(1.0)
    W = [float(sharma.window_after(np.asarray(100.0), np.asarray(float(n)), x, b)) for n in range(4)]
    assert [100, 55, 32.5, 21.25] == W
    printed = float(sharma.window_after(np.asarray(100.0), np.asarray(2.0), x, b, as_printed=True))
    assert printed == 30


@pytest.mark.parametrize("b", [1.0, 2.0])
@pytest.mark.parametrize("as_printed", [False, True])
def test_the_first_window_is_the_recurrence_s_in_both_forms(b, as_printed):
    """(4): half of the window before, and a segment more every b round trips."""
    W0, n, x = (np.asarray(value) for value in (100.0, 1.0, 5.0))
    assert 50 + 5 / b == pytest.approx(float(sharma.window_after(W0, n, x, np.asarray(b), as_printed)))


@pytest.mark.parametrize(
    ("d", "rounds", "window"), [(8.0, 10.0, 5 + (10 - np.log2(5)) / 2), (1.0, 10.0, 6.5), (8, 2, 5)]
)
def test_after_a_timeout_slow_start_ends_at_two_segments_at_least(d, rounds, window):
    """(9), whose ssthresh is (d + 2)/2 and never below two segments (RFC 5681, 3.1); no less than that is reached."""
    found = sharma.restart_window(np.asarray(rounds), np.asarray(d), np.asarray(2.0))
    assert window == pytest.approx(float(found))


def test_printed_forms_differ_as_stated():
    flow = {"w_max": 100, "rtt": 0.1, "a_h": 0.8, "d": 10, "r": 5, "b": 1}
    assert float(ReorderingGoodput(as_printed=True).predict(**flow)) == pytest.approx(119.9, abs=0.05)
    assert float(ReorderingGoodput(clamp=False).predict(**flow)) == pytest.approx(209.1, abs=0.05)


@pytest.mark.parametrize(("W", "d", "r", "x"), [(30.0, 4.0, 2.0, 6.0), (12.0, 10.0, 7.0, 3.0), (9.0, 9.0, 2.0, 4.0)])
def test_areas_are_integrals_of_the_sending_rate(W, d, r, x):
    b = 2.0
    recovery = quad(lambda t: max(0.0, W / 2 - d + t), 0, r, points=[max(0.0, min(r, d - W / 2))])[0]
    growth = quad(lambda t: W / 2 + t / b, 0, x)[0]
    args = (np.asarray(value) for value in (W, x, d, r, b))
    assert recovery + growth == pytest.approx(float(sharma.shrinking_segments(*args)))


def test_case_1_is_case_2_with_late_acknowledgements():
    flow = {"w_max": 60, "rtt": 0.1, "d": 6, "b": 2}
    a_h = np.array([0.9, 2.0, 4.0, 8.0, 20.0])
    case_1 = ReorderingGoodput().predict(a_h=a_h, **flow)
    np.testing.assert_array_equal(case_1, ReorderingGoodput().predict(a_h=a_h, r=9, **flow))
    G1 = 60 / 0.1 - (2 * 60**2 / 8 + 6 * 60 / 2 + 6**2 / 2) / a_h[-1]  # (2)
    assert G1 == pytest.approx(case_1[-1])


def test_no_timeout_regime_is_the_limit_of_many_periods():
    W0, x, d, r, b = (np.asarray(value) for value in (200.0, 12.0, 5.0, 5.0, 1.0))
    total, W = 0.0, W0
    for _ in range(20000):
        total, W = total + float(sharma.shrinking_segments(W, x, d, r, b)), W / 2 + x / b
    with np.errstate(divide="ignore", invalid="ignore"):
        limit = float(sharma.chain_segments(W0, x, d, r, b))
    assert total / 20000 == pytest.approx(limit, rel=1e-3)


def test_restart_window_shortens_the_chain():
    flow = {"w_max": 200, "rtt": 0.1, "a_h": 1.0, "d": 8, "b": 2}
    assert ReorderingGoodput(start="restart").predict(**flow) < ReorderingGoodput().predict(**flow)


# Figures that the docstrings quote


@pytest.mark.parametrize(("rto", "apart"), [(1.0, 0.125), (0.3, 0.049)])
def test_rounding_matters_at_small_windows(rto, apart):
    p = np.linspace(0.02, 0.104, 400)
    floor, ceil = (
        newreno_full.NewRenoFull(q_from="homogeneous", rounding=name).predict(p=p, rtt=0.1, rto=rto)
        for name in ("floor", "ceil")
    )
    assert apart == pytest.approx(np.abs(ceil / floor - 1).max(), abs=0.002)


def test_equation_8_as_printed_differs_in_most_of_the_grid():
    N, Wmax = np.meshgrid(np.arange(1.0, 400.0), np.arange(2.0, 100.0))
    differs = sikdar_rounds.loss_free_rounds(N, Wmax) != sikdar_rounds.loss_free_rounds(N, Wmax, as_printed=True)
    assert differs.mean() == pytest.approx(0.56, abs=0.005)


@pytest.mark.parametrize(("rounding", "largest"), [("floor", 0.048), ("ceil", 0.049)])
def test_table_4_with_one_chosen_rto(rounding, largest):
    rows = [row for row in VALUES["printed"] if ".single" in row["id"]]
    errors = [
        model_bps(row["inputs"]["p"], row["inputs"]["q"], row["inputs"]["R_s"], 1.5, rounding) / 1e3 / row["expected"]
        for row in rows
    ]
    assert largest == pytest.approx(np.abs(np.array(errors) - 1).max(), abs=0.001)
