"""The course of window, timeouts and rate: reference points, steady states, equations, jumps, and simulated flows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from transfer_values import FIRST, STEP, course

from tcpfit.exceptions import InvalidParameter
from tcpfit.models import bohacek_dynamics as dynamics
from tcpfit.models import bohacek_sack as steady
from tcpfit.models.bohacek_dynamics import BohacekDynamics

TABLE = Path(__file__).parents[3] / "shared" / "model-values.json"
R, RTO = 0.03, 1.0
NAMES = ("time", "window", "second_moment", "in_timeout", "rate", "entering")


@pytest.mark.skipif(not TABLE.exists(), reason="the whole table of reference values is not part of this repository")
def test_windows_and_rates_of_the_reference_points():
    rows = [row for row in json.loads(TABLE.read_text())["rows"] if row["model"] == "bohacek.dynamic"]
    assert len(rows) == 104
    for row in rows:
        x = row["inputs"]
        found = course(x["delta0"], x["delta1"], x["R"], x["RTO"])
        at = round((x["t"] - FIRST) / STEP)
        assert found.window[at] == pytest.approx(row["w"], rel=1e-6)
        assert found.second_moment[at] == pytest.approx(row["w2"], rel=1e-5)
        assert found.rate[at] == pytest.approx(row["rate_pkts"], rel=1e-4)
        assert found.in_timeout[at] == pytest.approx(row["expected"], abs=1e-5)


@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.02, 0.1, 0.126])
def test_a_constant_loss_probability_is_the_steady_state(delta):
    found = BohacekDynamics().trajectory([0.0], [delta], rtt=R, rto=RTO, end=5.0, step=0.01)
    rate = steady.losses_timeout_rate(delta, R) + steady.lost_retransmission_timeout_rate(delta, R)
    np.testing.assert_allclose(found.window, steady.mean_window(delta), rtol=1e-9)
    np.testing.assert_allclose(found.second_moment, 1.81 / delta, rtol=1e-9)
    np.testing.assert_allclose(found.in_timeout, steady.fraction_in_timeout(rate, delta, RTO), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.rate, steady.BohacekSack().predict(p=delta, rtt=R, rto=RTO), rtol=1e-7)


@pytest.mark.parametrize("mean", ["12", "13"])
def test_courses_settle_at_the_steady_state(mean):
    model = BohacekDynamics(mean=mean)
    found = model.trajectory([0.0, 1.0], [0.05, 0.01], rtt=R, rto=RTO, end=40.0, step=0.1)
    w, w2 = dynamics.steady_moments(0.01, steady.C1, steady.GAMMA, mean, False)
    assert w == pytest.approx(found.window[-1], rel=1e-6)
    assert w2 == pytest.approx(found.second_moment[-1], rel=1e-6)
    again = model.trajectory([0.0], [0.01], rtt=R, rto=RTO, end=1.0, step=0.1)
    assert again.in_timeout[0] == pytest.approx(found.in_timeout[-1], rel=1e-6)


def test_the_equations_of_the_mean_agree_where_the_moments_are_exact():
    # with the exact c1 and c2 = 2 of the fluid equation, (12) and (13) stand still at the same moments
    c1 = steady.exact_moment(1)
    moments = [dynamics.steady_moments(0.01, c1, 2 - c1**2, mean, False) for mean in ("12", "13")]
    np.testing.assert_allclose(*moments, rtol=1e-9)
    printed = dynamics.steady_moments(0.01, c1, 2 - c1**2, "13", True)
    assert printed[1] == pytest.approx(moments[0][1] / 2)


@pytest.mark.parametrize("mean", ["12", "13"])
def test_windows_solve_their_equations(mean):
    times, losses = np.array([0.0, 0.4, 0.7, 1.1]), np.array([0.01, 0.03, 0.0, 0.002])
    found = BohacekDynamics(mean=mean).trajectory(times, losses, rtt=R, rto=RTO, end=2.0, step=0.001)
    c1, c2 = steady.C1, steady.C1**2 + steady.GAMMA

    def change(delta):
        def of(_, state):
            w, w2 = state
            first = 1 / R - delta * w**2 / (c1**2 * R) if mean == "12" else 1 / R - delta * w2 / (2 * R)
            return [first, 2 * w / R - 2 * c1 / c2**1.5 * delta * w2**1.5 / R]

        return of

    state = [found.window[0], found.second_moment[0]]
    edges = [0.0, *(times[1:] + R), 2.0]
    for delta, begin, end in zip(losses, edges[:-1], edges[1:], strict=True):
        state = solve_ivp(change(delta), (begin, end), state, rtol=1e-10, atol=1e-10).y[:, -1]
        at = round(end / 0.001)
        np.testing.assert_allclose(state, [found.window[at], found.second_moment[at]], rtol=1e-5)


def test_the_mean_in_closed_form_does_not_depend_on_the_steps():
    w = np.asarray(5.0)
    for delta in (0.0, 1e-12, 0.01, 1.0):
        whole = dynamics.window_after(w, np.asarray(0.4), np.asarray(delta), R)
        half = dynamics.window_after(w, np.asarray(0.2), np.asarray(delta), R)
        np.testing.assert_allclose(
            whole, dynamics.window_after(half, np.asarray(0.2), np.asarray(delta), R), rtol=1e-12
        )
    assert 5 + 0.4 / R == pytest.approx(float(dynamics.window_after(w, np.asarray(0.4), np.asarray(0.0), R)))


def test_shares_are_the_integrals_of_7_and_8():
    # RTO and R are no multiples of the step, and delta jumps between steps
    times, losses, rto = np.array([0.0, 0.5123, 1.777, 3.3]), np.array([0.01, 0.08, 0.005, 0.03]), 0.4137
    step = 2e-4
    found = BohacekDynamics().trajectory(times, losses, rtt=0.0307, rto=rto, end=6.0, step=step)
    before = found.in_timeout[0] / (rto * (1 + 2 * 0.01))
    t = np.arange(-3000, found.time.size) * step
    I1 = np.concatenate((np.full(3000, before), found.entering))
    delta = losses[np.maximum(np.searchsorted(times, t, side="right") - 1, 0)]
    I2 = delta * np.interp(t - rto, t, I1, left=before)
    J, K = (np.concatenate(([0.0], np.cumsum((x[1:] + x[:-1]) / 2 * step))) for x in (I1, I2))

    def since(total, lag):
        return np.interp(found.time, t, total) - np.interp(found.time - lag, t, total)

    late = found.time > 0.7
    P = since(J, rto) + since(K, 2 * rto)
    np.testing.assert_allclose(P[late], found.in_timeout[late], atol=2e-3)
    between = np.abs(found.time[:, None] - times).min(axis=1) > 2 * step
    np.testing.assert_allclose(
        found.entering[between],
        (dynamics.timeout_rate(found.window, found.second_moment, delta[3000:], 0.0307) * (1 - found.in_timeout))[
            between
        ],
        rtol=1e-6,
    )


@pytest.mark.parametrize("rtt", [0.03, 0.0307])
@pytest.mark.parametrize("rto", [1.0, 0.4137])
def test_jumps_cost_no_accuracy(rtt, rto):
    times, losses = [0.0, 0.51234, 2.0], [0.01, 0.1, 0.004]
    coarse, fine = (
        BohacekDynamics().trajectory(times, losses, rtt=rtt, rto=rto, end=5.0, step=step) for step in (0.05, 0.0005)
    )
    for name, tolerance in (("window", 1e-9), ("second_moment", 1e-4), ("in_timeout", 1e-4), ("rate", 1e-3)):
        np.testing.assert_allclose(getattr(coarse, name), getattr(fine, name)[::100], rtol=tolerance)


def test_very_many_jumps_are_followed_as_well(monkeypatch):
    rng = np.random.default_rng(1)
    times, losses = np.arange(0, 4, 0.01), 10 ** rng.uniform(-3, -1, 400)
    all_of_them = BohacekDynamics().trajectory(times, losses, rtt=0.0307, rto=0.4137, end=4.0, step=0.001)
    monkeypatch.setattr(dynamics, "MOST", 100)
    few = BohacekDynamics().trajectory(times, losses, rtt=0.0307, rto=0.4137, end=4.0, step=0.001)
    np.testing.assert_allclose(all_of_them.in_timeout, few.in_timeout, atol=2e-3)


def test_timeouts_come_back_one_rto_later():
    found = BohacekDynamics().trajectory([0.0, 1.0], [0.01, 0.1], rtt=R, rto=RTO, end=5.0, step=0.01)
    assert found.in_timeout[300] > found.in_timeout[225] < found.in_timeout[200]  # the swing of figure 4
    assert (np.diff(found.in_timeout[100:200]) > 0).all()
    assert found.bit_rate(1448)[0] == 8 * 1448 * found.rate[0]


@pytest.mark.parametrize("delta", [1e-7, 1e-3, 0.02, 0.1, 0.3, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("variance", [0.0, 0.5, 30.0, 1e5])
@pytest.mark.parametrize("mean", [1.0, 1.7, 9.0, 120.0])
def test_windows_lost_is_its_sum(delta, variance, mean):
    w = np.arange(1.0, 4000.0)
    q = steady.binomial_q(np.asarray(mean), np.asarray(variance)) if variance else np.asarray(0.0)
    q = float(np.clip(q, 0, 1))
    if mean == 1:
        total = 1.0
    elif q == 1 or variance > 1e4:
        pytest.skip("too wide for a sum to 4000")
    else:
        chances = steady.window_probability(w, np.asarray(mean), np.asarray(q))
        total = float((w * chances * steady.tail(w, np.asarray(delta))).sum())
    found = dynamics.windows_lost(np.array([mean]), np.array([variance]), np.array([delta]))
    assert total == pytest.approx(float(found[0]), rel=1e-7, abs=1e-13 / delta)


def simulate(times, losses, end, flows, dt, rng):
    """Flows of (1): windows that grow by 1/R and halve R after a loss; timeouts as (7) and (8) have them."""
    steps, lag = round(end / dt), round(R / dt)
    w = np.full(flows, 12.0)
    halved = np.zeros((lag, flows), bool)
    wait = np.zeros(flows)  # s left in timeout
    second = np.zeros(flows, bool)
    shares = np.empty(steps)
    for k in range(steps):
        delta = losses[np.searchsorted(times, k * dt, side="right") - 1]
        before = losses[max(np.searchsorted(times, k * dt - R, side="right") - 1, 0)]
        out = wait > 0
        wait = np.maximum(wait - dt, 0.0)
        ends = out & (wait < dt / 2)
        wait[ends] = 0.0
        again = ends & ~second & (rng.random(flows) < delta)
        wait[again], second[again] = 2 * RTO, True
        second[ends & ~again] = False
        inside = ~out
        whole = np.maximum(np.rint(w), 1)
        tail = steady.tail(whole, np.asarray(delta))
        rate = delta * whole / R * (tail + delta * (1 - tail))
        enters = inside & (rng.random(flows) < rate * dt)
        wait[enters] = RTO
        shares[k] = (wait > 0).mean()
        # the windows' law is that of flows outside timeouts, and knows none
        loses = rng.random(flows) < before * w / R * dt
        w = np.where(loses, np.maximum(w / 2, 1.0), w + dt / R)
    del halved
    return shares


def test_simulated_flows_swing_alike():
    rng = np.random.default_rng(7)
    times, losses, dt = [0.0, 3.0], [0.01, 0.06], 1e-3
    shares = simulate(times, losses, 7.0, 4000, dt, rng)
    c1 = steady.exact_moment(1)
    found = BohacekDynamics(c1=c1, gamma=2 - c1**2).trajectory(times, losses, rtt=R, rto=RTO, end=7.0, step=dt)
    np.testing.assert_allclose(shares[3200:].mean(), found.in_timeout[3200:-1].mean(), rtol=0.12)
    swing, seen = (x[3000:] - np.mean(x[5000:]) for x in (found.in_timeout[:-1], shares))
    assert np.corrcoef(swing[::50], seen[::50])[0, 1] > 0.95


LOSS = st.floats(0, 1) | st.floats(-12, 0).map(lambda power: 10.0**power)


@settings(max_examples=60, deadline=None)
@example([1e-12, 1e-7, 1.0], [1.0, 0.002, 1, 1, 1, 1], 0.002, 1.0, "12", None)  # a window of a million falls to one
@example([1e-148, 1e-7, 1.0], [1.0, 0.002, 1, 1, 1, 1], 0.002, 1.0, "13", None)
@example([1e-300, 1.0, 0.0, 5e-324], [1.0, 0.002, 1, 1, 1, 1], 0.1, 1.0, "13", None)
@given(
    losses=st.lists(LOSS, min_size=1, max_size=6),
    gaps=st.lists(st.floats(1e-3, 3), min_size=6, max_size=6),
    rtt=st.floats(1e-3, 0.5),
    rto=st.floats(0.05, 4),
    mean=st.sampled_from(["12", "13"]),
    start=st.none() | st.tuples(st.floats(1, 1e4), st.floats(1, 10)),
)
def test_every_course_is_a_number_in_its_range(losses, gaps, rtt, rto, mean, start):
    times = np.cumsum([0.0, *gaps[: len(losses) - 1]])
    if start is None and losses[0] < 1e-307:  # no steady state, or one beyond numbers
        losses[0] = 1e-12
    moments = None if start is None else (start[0], start[0] ** 2 * start[1])
    end = times[-1] + 2.0
    found = BohacekDynamics(mean=mean).trajectory(times, losses, rtt=rtt, rto=rto, end=end, step=0.01, start=moments)
    assert all(np.isfinite(getattr(found, name)).all() and (getattr(found, name) >= 0).all() for name in NAMES)
    assert (found.in_timeout <= 1).all()
    assert (found.window >= 1 - 1e-9).all()
    assert found.time[0] == 0 and found.time[-1] == end and (np.diff(found.time) > 0).all()


@pytest.mark.parametrize(
    ("losses", "tolerance"),
    [
        ([0.001, 0.1, 0.01, 0.05], 1e-8),
        ([0.01, 0.06, 0.0, 0.03], 1e-8),
        ([1e-10, 1.0, 0.001, 1.0], 1e-4),  # stiff: w2 keeps its balance with a window of a hundred thousand
        ([1e-12, 0.3, 0.01, 0.5], 1e-4),
    ],
)
def test_equation_13_agrees_with_an_implicit_solver(losses, tolerance):
    times, end, c1, gamma = [0.0, 1.0, 1.002, 3.0], 5.0, dynamics.C1, dynamics.GAMMA
    found = BohacekDynamics(mean="13").trajectory(times, losses, rtt=R, rto=RTO, end=end, step=0.01)
    y, begin = np.array([found.window[0], np.log(found.second_moment[0])]), 0.0
    for until, delta in zip([t + R for t in times[1:]] + [end], losses, strict=True):

        def slopes(_, y, delta=delta):
            w, w2 = max(y[0], 1.0), np.exp(y[1])
            fall = 2 * c1 / (c1**2 + gamma) ** 1.5 * delta / R * np.sqrt(w2)
            growth = (1 - delta * w2 / 2) / R
            return [growth if y[0] > 1 else max(growth, 0.0), 2 * w / R / w2 - fall]

        inside = (found.time > begin) & (found.time <= until)
        at, back = np.unique(np.append(found.time[inside], until), return_inverse=True)
        known = solve_ivp(slopes, (begin, until), y, method="Radau", rtol=1e-10, atol=1e-10, t_eval=at)
        expected = known.y.T[back][:-1]
        np.testing.assert_allclose(found.window[inside], np.maximum(expected[:, 0], 1.0), rtol=tolerance)
        np.testing.assert_allclose(found.second_moment[inside], np.exp(expected[:, 1]), rtol=tolerance)
        y, begin = np.array([max(known.y[0, -1], 1.0), known.y[1, -1]]), until


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"times": [0, 1]}, "bohacek-dynamics needs as many times as losses, got (2,) and (1,)."),
        ({"times": [0, 0], "losses": [0.1, 0.2]}, "times of bohacek-dynamics must be finite and rise."),
        ({"losses": [1.1]}, "losses of bohacek-dynamics must be probabilities, 0 to 1."),
        ({"losses": [float("nan")]}, "losses of bohacek-dynamics must be probabilities, 0 to 1."),
        ({"rtt": 0}, "rtt of bohacek-dynamics must be a positive number of seconds, got 0."),
        ({"end": -1}, "end of bohacek-dynamics must come after the first time, 0 s, got -1."),
        ({"step": 1e-9}, "bohacek-dynamics would take more than 10 million steps: choose a shorter end."),
        ({"losses": [0]}, "bohacek-dynamics needs start where the first loss probability is 0: no steady state."),
        (
            {"losses": [5e-324]},
            "bohacek-dynamics needs start where the first loss probability is 5e-324: its window is beyond numbers.",
        ),
        ({"start": (5, 20)}, "start of bohacek-dynamics must be a mean of at least 1 and a second moment not below"),
    ],
)
def test_errors_are_one_sentence(change, sentence):
    usual = {"times": [0], "losses": [0.1], "rtt": R, "rto": RTO, "end": 1.0}
    with pytest.raises(InvalidParameter) as caught:
        BohacekDynamics().trajectory(**(usual | change))
    assert str(caught.value).startswith(sentence)
    for wrong in ({"mean": "11"}, {"c1": 0}, {"gamma": float("inf")}):
        with pytest.raises(InvalidParameter):
            BohacekDynamics(**wrong)
