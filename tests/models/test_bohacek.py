"""Bohacek and Shah: the window's density, moments and distribution, the rates of timeouts, and their balance."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from tcpfit.exceptions import InvalidParameter
from tcpfit.models import bohacek_sack as boh
from tcpfit.models import get, pftk_full
from tcpfit.models.bohacek_sack import BohacekSack

DELTAS = [1e-4, 0.003, 0.02, 0.09, 0.1277, 0.128, 0.3, 0.76, 1.0]


@pytest.mark.parametrize("delta", [1e-4, 0.01, 0.5])
def test_exact_density_solves_equation_3_and_is_a_density(delta):
    w = np.linspace(0.05, 5, 200) / np.sqrt(delta)
    step = 1e-5 / np.sqrt(delta)
    density = lambda x: boh.exact_density(x, np.asarray(delta))  # noqa: E731
    slope = (density(w + step) - density(w - step)) / (2 * step)
    np.testing.assert_allclose(w * delta * (4 * density(2 * w) - density(w)), slope, atol=1e-8 * delta)
    assert quad(density, 0, 12 / np.sqrt(delta), limit=200)[0] == pytest.approx(1)


@pytest.mark.parametrize("m", [0, 1, 2, 3, 4])
def test_exact_moments_are_integrals(m):
    one = np.asarray(1.0)
    assert boh.exact_moment(m) == pytest.approx(quad(lambda w: w**m * boh.exact_density(w, one), 0, 14)[0])
    # from (3): m c_(m-1) = (1 - 2^-m) c_(m+1)
    if m:
        assert m * boh.exact_moment(m - 1) == pytest.approx((1 - 0.5**m) * boh.exact_moment(m + 1))


def test_exact_moments_against_a_simulated_window():
    """Equation 1: growth by one a round trip, halving with probability w delta in it."""
    rng, delta, step = np.random.default_rng(5), 1e-4, 0.05
    w = np.full(4000, 100.0)
    sums = np.zeros(2)
    for i in range(20_000):
        w = np.where(rng.random(w.size) < w * delta * step, w / 2, w + step)
        if i >= 10_000:
            sums += (w.mean(), (w**2).mean())
    mean, square = sums / 10_000 * (np.sqrt(delta), delta)
    assert (boh.exact_moment(1), boh.exact_moment(2)) == pytest.approx((mean, square), rel=0.01)


@pytest.mark.parametrize("delta", DELTAS)
def test_window_distribution_has_its_mean_and_variance(delta):
    w = np.arange(1.0, 6000.0)
    mean, variance = float(boh.mean_window(np.asarray(delta))), float(boh.window_variance(np.asarray(delta)))
    q = boh.binomial_q_of(np.asarray(delta))
    assert float(q) == pytest.approx(float(boh.binomial_q(np.asarray(mean), np.asarray(variance))))
    chance = boh.window_probability(w, np.asarray(mean), q)
    assert (1, mean) == pytest.approx((chance.sum(), chance @ w))
    spread = chance @ (w - mean) ** 2
    assert spread == pytest.approx(variance if q > 0 else mean - 1)


def test_poisson_limit_is_the_limit():
    w = np.arange(1.0, 30.0)
    near, at = (boh.window_probability(w, np.asarray(2.4), np.asarray(q)) for q in (1e-7, 0.0))
    np.testing.assert_allclose(at, near, rtol=1e-4)


@pytest.mark.parametrize("w", [1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("delta", [0.01, 0.3])
def test_tail_is_its_sum(w, delta):
    least = max(min(w // 2, w - 3), 0)
    total = sum(comb(w - 1, k) * delta**k * (1 - delta) ** (w - 1 - k) for k in range(least, w))
    assert total == pytest.approx(float(boh.tail(np.asarray(float(w)), np.asarray(delta))))
    if w <= 3:
        assert boh.lost_retransmission_rate(np.asarray(float(w)), np.asarray(delta), np.asarray(1.0)) == 0


@pytest.mark.parametrize("delta", DELTAS)
def test_rates_are_means_over_the_distribution(delta):
    w, one, d = np.arange(1.0, 6000.0), np.asarray(1.0), np.asarray(delta)
    chance = boh.window_probability(w, boh.mean_window(d), boh.binomial_q_of(d))
    assert chance @ boh.losses_rate(w, d, one) == pytest.approx(float(boh.losses_timeout_rate(d, one)))
    expected = pytest.approx(float(boh.lost_retransmission_timeout_rate(d, one)), rel=1e-6, abs=1e-12)
    assert chance @ boh.lost_retransmission_rate(w, d, one) == expected


@settings(max_examples=200, deadline=None)
@given(exponent=st.floats(-8, 0), as_printed=st.booleans())
def test_interpolation_is_the_sum(exponent, as_printed):
    delta = np.array([10.0**exponent])
    fast = boh.windows_lost_fast(delta, as_printed=as_printed)
    np.testing.assert_allclose(boh.windows_lost(delta, as_printed=as_printed), fast, rtol=1e-10)


def test_below_the_interpolation_lost_retransmissions_are_all():
    model, rtt = BohacekSack(), np.ones(2)
    np.testing.assert_allclose(boh.C1 * 1e-15, model.timeout_rate(np.array([1e-10, 1e-10]), rtt), rtol=1e-4)


def test_fraction_in_timeout_is_the_balance_of_7_and_8():
    """The balance of flows that enter and leave, iterated in time steps of RTO."""
    delta, rate, RTO = 0.1, 0.8, 1.5
    I1 = float(boh.first_timeouts(np.asarray(rate), np.asarray(delta), np.asarray(RTO)))
    assert I1 == pytest.approx(rate * (1 - RTO * I1 - 2 * RTO * delta * I1))
    fraction = float(boh.fraction_in_timeout(np.asarray(rate), np.asarray(delta), np.asarray(RTO)))
    assert fraction == pytest.approx(RTO * I1 + 2 * RTO * delta * I1)
    x = (1 + 2 * delta) * RTO * rate
    assert fraction == pytest.approx(x / (1 + x))


def test_fraction_in_timeout_against_simulated_flows():
    """Flows alternate between sending, an exponential time of mean 1/rate, and timeouts of RTO, perhaps 2 RTO more."""
    rng, delta, rate, RTO = np.random.default_rng(11), 0.1, 0.8, 1.5
    sending = rng.exponential(1 / rate, 400_000).sum()
    waiting = (RTO + 2 * RTO * (rng.random(400_000) < delta)).sum()
    fraction = float(boh.fraction_in_timeout(np.asarray(rate), np.asarray(delta), np.asarray(RTO)))
    assert fraction == pytest.approx(waiting / (waiting + sending), rel=0.01)


def test_rate_is_continuous_where_the_distribution_changes_form():
    for change in (0.127742, 0.752258):
        delta = change * np.array([1 - 1e-6, 1 + 1e-6])
        rate = get("bohacek-sack").predict(p=delta, rtt=0.1, rto=1.0)
        assert abs(np.log(rate[1] / rate[0])) < 1e-5


def test_printed_sign_of_6():
    delta = np.array([0.1])
    assert float(boh.binomial_q_of(delta)[0]) == pytest.approx(0.073, abs=5e-4)
    assert float(boh.binomial_q_of(delta, as_printed=True)[0]) == pytest.approx(-0.57, abs=5e-3)
    zero = np.array([0.04635])
    assert abs(float(boh.binomial_q_of(zero, as_printed=True)[0])) < 1e-3


def test_constants_must_make_sense():
    with pytest.raises(InvalidParameter, match="bohacek-sack needs c1 > 1 and gamma > 0, got 0.9 and 0.31"):
        BohacekSack(c1=0.9).predict(p=0.1, rtt=0.1, rto=1)


@pytest.mark.parametrize("p", [1e-4, 0.01, 0.3])
@pytest.mark.parametrize("b", [1.0, 2.0])
def test_pftk_waits_for_what_its_denominator_says(p, b):
    """1 - P(TO) is the share of the rate's denominator that is no timeout: the same with and without timeouts."""
    share = float(pftk_full.time_in_timeout(p, 0.05, 0.7, b))
    rate = pftk_full.PFTKFull(variant="throughput", b=b)
    W = float(pftk_full.window(np.asarray(p), np.asarray(b)))
    Q = float(pftk_full.timeout_probability(np.asarray(p), np.asarray(W)))
    period = 0.05 * (b * W / 2 + 1)
    with_timeouts = float(rate.predict(p=p, rtt=0.05, rto=0.7)) / ((1 - p) / p + W / 2 + Q)
    assert (1 - share) / period == pytest.approx(with_timeouts)


def test_timeouts_begin_at_no_rate_without_loss_and_at_none_outside_the_domain():
    model, p = BohacekSack(), np.array([0.0, 1e-9, 0.01, 1.0, 1.5, -0.1, np.nan])
    rate = model.timeout_rate(p, 0.1)
    assert 0 == rate[0] < rate[1] < rate[2] < rate[3]
    assert np.isnan(rate[4:]).all()
    assert np.isnan(model.timeout_rate(0.01, np.array([-1.0, 0.0]))).all()
    assert (0.0, float) == (model.timeout_rate(0.0, 0.1), type(model.timeout_rate(0.0, 0.1).item()))


def test_printed_denominator_of_10():
    right, printed = (pftk_full.time_in_timeout(0.01, 0.03, 1.0, as_printed=form) for form in (False, True))
    assert (0.426, 0.758) == pytest.approx((float(right), float(printed)), abs=5e-4)
    np.testing.assert_array_equal([0, 1], pftk_full.time_in_timeout([0.0, 1.0], 0.03, 1.0))


def test_docstring_window_at_which_the_model_ends():
    assert float(boh.mean_window(np.asarray(0.752))) == pytest.approx(1.41, abs=0.005)
