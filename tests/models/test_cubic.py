"""CUBIC: the mean windows against integrals of the epoch, round-by-round windows, and each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from tcpfit.models import cubic, get
from tcpfit.models.cubic import Cubic

BETA = st.floats(0.3, 0.95)
C = st.floats(0.01, 10)


@given(C=C, beta=BETA, limit=st.floats(2, 1e5), rtt=st.floats(1e-3, 1))
def test_mean_window_is_the_integral_of_an_epoch(C, beta, limit, rtt):
    K = float(cubic.epoch(np.asarray(limit), C, beta))
    area = quad(lambda t: float(cubic.cubic_window(np.asarray(t), np.asarray(limit), C, beta)), 0, K)[0]
    p = np.asarray(rtt / area)  # 1/p segments an epoch, a window every rtt
    assert area / K == pytest.approx(float(cubic.mean_cubic_window(p, np.asarray(rtt), C, beta)), rel=1e-7)
    assert float(cubic.loss_rate_for(np.asarray(area / K), np.asarray(rtt), C, beta)) == pytest.approx(float(p))


@given(limit=st.floats(10, 1e5), C=C, beta=BETA)
def test_the_window_starts_at_beta_and_ends_where_it_was(limit, C, beta):
    ends = np.array([0.0, float(cubic.epoch(np.asarray(limit), C, beta))])
    np.testing.assert_allclose([beta * limit, limit], cubic.cubic_window(ends, np.asarray(limit), C, beta), rtol=1e-9)
    assert cubic.friendly_window(np.zeros(1), np.asarray(limit), np.asarray(0.1), beta)[0] == beta * limit


@pytest.mark.parametrize("beta", [0.5, 0.7, 0.85])
def test_reno_friendly_mean_does_not_depend_on_beta(beta):
    p = np.array([1e-4, 1e-2])
    np.testing.assert_allclose(np.sqrt(1.5 / p), cubic.mean_friendly_window(p, beta))
    np.testing.assert_allclose(1.2 / np.sqrt(p), cubic.mean_friendly_window(p, beta, as_printed=True))


def windows_at_losses(start, p, rtt, events):
    """A sender that takes the larger window of each round and loses a segment every 1/p: its windows at the losses, and
    the mean over the second half of them."""
    found, sent, rounds = [start], 0.0, 0
    for event in range(events):
        t = np.arange(0.0, 3000) * rtt
        window = cubic.cubic_window(t, np.asarray(found[-1]))
        window = np.maximum(window, cubic.friendly_window(t, np.asarray(found[-1]), np.asarray(rtt)))
        through = np.cumsum(window)
        last = int(np.searchsorted(through, 1 / p))
        if event >= events // 2:
            sent, rounds = sent + through[last], rounds + last + 1
        found.append(float(window[last]))
    return np.array(found), sent / rounds


@pytest.mark.parametrize(("p", "rtt", "within"), [(1e-5, 0.1, 0.005), (1e-6, 0.3, 0.005), (1e-4, 0.02, 0.03)])
def test_round_by_round(p, rtt, within):
    expected = float(cubic.mean_window(np.asarray(p), np.asarray(rtt)))
    _, mean = windows_at_losses(expected * 4 / 3.7, p, rtt, 40)
    assert mean == pytest.approx(expected, rel=within)


def test_the_mean_is_approached_slowly():
    """At the fixed point the window's slope is 0, so a loss leaves nearly as large a distance from it as there was."""
    expected = float(cubic.mean_window(np.asarray(1e-5), np.asarray(0.1)))
    windows, mean = windows_at_losses(2 * expected, 1e-5, 0.1, 250)
    assert (np.diff(windows) <= 0).all()
    assert 0.04 < mean / expected - 1 < 0.10


def test_the_larger_of_both():
    p = np.geomspace(1e-8, 0.1, 50)
    both, alone, reno = (Cubic(region=region).predict(p=p, rtt=0.05) for region in ("both", "cubic", "reno"))
    np.testing.assert_array_equal(np.maximum(alone, reno), both)
    assert (alone > reno)[0] and (reno > alone)[-1]
    np.testing.assert_allclose(get("mathis").predict(p=p, rtt=0.05, b=1), reno)


def test_friendly_where_the_estimate_is_above():
    t, limit, rtt = np.array([0.1, 5.0]), np.asarray(100.0), np.asarray(0.01)
    estimate = cubic.friendly_window(t, limit, rtt)
    np.testing.assert_array_equal(cubic.cubic_window(t, limit) < estimate, cubic.is_friendly(t, limit, rtt))
    assert cubic.is_friendly(t, limit, rtt).all()
    assert not cubic.is_friendly(t, limit, np.asarray(1.0)).any()


def test_constants_are_fitted():
    p, rtt = np.geomspace(1e-7, 1e-4, 30), np.linspace(0.05, 0.3, 30)
    rates = Cubic().predict(p=p, rtt=rtt, c=0.3, beta=0.8)
    found = Cubic(free=("c", "beta"), region="cubic").fit({"p": p, "rtt": rtt}, rates)
    assert found.residual_std_ < 1e-6  # the two constants enter as one product only
    assert Cubic(beta=0.8).fit({"p": p, "rtt": rtt}, rates).params_["c"] == pytest.approx(0.3, rel=1e-6)
