"""Exact moments of the hysteresis model and of CATNIP against every sequence of coins, and against random ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tcpfit.exceptions import InvalidParameter
from tcpfit.models import hysteresis, timeouts, transfer_time
from tcpfit.models.catnip import Catnip
from tcpfit.models.hysteresis import Hysteresis

FLOWS = [
    {"segments": 12, "p": 0.05, "rtt": 0.2, "rto": 1.0, "w_max": 24},
    {"segments": 60, "p": 0.08, "rtt": 0.1, "rto": 0.4, "w_max": 6},
    {"segments": 40, "p": 0.02, "rtt": 0.1, "rto": 1.0, "b": 1, "w_1": 10},
    {"segments": 30, "p": 0.3, "rtt": 0.05, "rto": 0.3},
]


def every_outcome(segments, p, rtt, rto, w_max=np.inf, b=2.0, w_1=1.0, delayed_ack=0.1):
    """Times and probabilities of all sequences of coins, cycle by cycle as the paper writes it (12)."""
    a = np.asarray
    d, cycles = float(segments), []
    while d >= 1:
        E_d = float(transfer_time.segments_before_loss(a(p), a(d)))
        cycles.append((E_d, 1 - (1 - p) ** d))
        d -= E_d
    eto, gamma = float(timeouts.timeout_duration(a(p), a(rto))), 1 + 1 / b
    outcomes = []
    for coins in product((True, False), repeat=len(cycles)):
        w, total, chance = min(w_1, w_max), 0.0, 1.0
        for (E_d, p_ss), timeout in zip(cycles, coins, strict=True):
            total += float(transfer_time.slow_start_time(a(E_d), a(w), a(gamma), a(w_max), a(rtt)))
            total += delayed_ack if w == 1 else 0.0
            grown = min(float(transfer_time.window_after_slow_start(a(E_d), a(w), a(gamma))), w_max)
            Q = float(timeouts.timeout_probability(a(p), a(grown)))
            chance *= Q if timeout else 1 - Q
            total += p_ss * (eto if timeout else rtt)
            w = 1.0 if timeout else max(grown / 2, 1.0)
        outcomes.append((total, chance))
    return np.array(outcomes).T


@pytest.mark.parametrize("flow", FLOWS)
def test_moments_are_those_of_every_sequence_of_coins(flow):
    if flow["p"] == 0.3:
        flow = flow | {"segments": 9}
    times, chances = every_outcome(**flow)
    assert chances.sum() == pytest.approx(1)
    mean = times @ chances
    assert mean == pytest.approx(float(Hysteresis().predict(**flow)), rel=1e-12)
    assert (times - mean) ** 2 @ chances == pytest.approx(float(Hysteresis().variance(**flow)), rel=1e-9, abs=1e-15)
    atoms, weights = Hysteresis().distribution(**flow)
    for t in np.quantile(times, [0.1, 0.5, 0.9]) + 1e-9:
        assert chances[times <= t].sum() == pytest.approx(weights[atoms <= t].sum(), abs=1e-12)


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("model", [Hysteresis(), Hysteresis(as_printed=True), Catnip(), Catnip(stop=0.2)], ids=repr)
def test_moments_are_those_of_random_coins(model, flow):
    flow = flow | ({"p_high": 0.1} if model.name == "catnip" else {})
    draws = 40_000
    times = model.simulate(draws=draws, seed=1, **flow)
    mean, variance = float(model.predict(**flow)), float(model.variance(**flow))
    assert abs(times.mean() - mean) < 4.5 * np.sqrt(variance / draws) + 1e-9
    fourth = np.mean((times - mean) ** 4)
    assert abs(times.var() - variance) < 4.5 * np.sqrt(fourth / draws) + 1e-9


@pytest.mark.parametrize("flow", FLOWS)
def test_distribution_has_the_moments(flow):
    for atoms in (4096, 50):
        times, chances = Hysteresis().distribution(atoms=atoms, **flow)
        assert (np.diff(times) >= 0).all() and (chances > 0).all()
        assert chances.sum() == pytest.approx(1, abs=1e-12)
        assert times @ chances == pytest.approx(float(Hysteresis().predict(**flow)), rel=1e-11)
        variance = (times - times @ chances) ** 2 @ chances
        assert variance == pytest.approx(float(Hysteresis().variance(**flow)), rel=1e-9 if atoms > 50 else 0.02)


def test_a_coarse_distribution_is_near_the_fine_one():
    flow = {"segments": 400, "p": 0.05, "rtt": 0.1, "rto": 0.7, "w_max": 30}
    fine, coarse = (Hysteresis().distribution(atoms=atoms, **flow) for atoms in (4096, 256))
    grid = np.linspace(fine[0][0], fine[0][-1], 50)
    cumulative = [np.array([chances[times <= t].sum() for t in grid]) for times, chances in (fine, coarse)]
    np.testing.assert_allclose(*cumulative, atol=0.02)
    draws = np.sort(Hysteresis().simulate(draws=50_000, seed=2, **flow))
    simulated = np.searchsorted(draws, grid, side="right") / draws.size
    np.testing.assert_allclose(cumulative[0], simulated, atol=0.02)


def test_many_flows_together_are_what_each_is_alone():
    """To the last digit: with other flows, of more or fewer cycles, in the same block or before it."""
    flows = [
        {"segments": float(n), "p": p, "rtt": rtt, "rto": 0.7, "w_max": 30.0}
        for n in range(1, 61, 3)
        for p in (0.0, 0.01, 0.2, 0.6)
        for rtt in (0.01, 0.1, 0.3, 0.35)
    ]
    columns = {key: np.array([flow[key] for flow in flows]) for key in flows[0]}
    model, seeds = Hysteresis(whole_rounds=True), list(range(len(flows)))
    assert len(flows) > hysteresis.BLOCK
    for flow, found in zip(flows, model.distributions(atoms=20, **columns), strict=True):
        np.testing.assert_array_equal(model.distribution(atoms=20, **flow), found)
    drawn = model.draw_losses_of(draws=30, seeds=seeds, **columns)
    for seed, flow, found in zip(seeds, flows, drawn, strict=True):
        np.testing.assert_array_equal(model.draw_losses(draws=30, seed=seed, **flow), found)
    with pytest.raises(InvalidParameter, match="inside its domain only"):
        next(model.distributions(**(columns | {"rtt": -columns["rtt"]})))


def test_cycles_that_repeat_are_carried_on_at_once(monkeypatch):
    rng = np.random.default_rng(5)
    n = 20
    flows = {"segments": 10 ** rng.uniform(3, 4.3, n), "p": 10 ** rng.uniform(-2.5, -0.1, n), "rtt": 0.1, "rto": 1.0}
    flows["w_max"] = 10 ** rng.uniform(0.1, 3, n)
    skipped = Hysteresis().predict(**flows), Hysteresis().variance(**flows)
    monkeypatch.setattr(hysteresis, "LONG", 10**9)
    np.testing.assert_allclose(Hysteresis().predict(**flows), skipped[0], rtol=1e-9)
    np.testing.assert_allclose(Hysteresis().variance(**flows), skipped[1], rtol=1e-8, atol=1e-9)


def test_when_cycles_end_matters_as_stated():
    flow = FLOWS[0]
    times = [float(Hysteresis(stop=stop).predict(**flow)) for stop in (1, 0.1, 0.01)]
    np.testing.assert_allclose([2.07, 2.26, 2.37], times, atol=0.005)
    with pytest.raises(InvalidParameter, match="stop of hysteresis must be between 0.001 and 1 segments, got 0"):
        Hysteresis(stop=0).predict(**flow)


def test_the_time_jumps_where_a_cycle_is_added():
    p = np.linspace(0.05, 0.1, 2000)
    times = Hysteresis().predict(segments=30, p=p, rtt=0.2, rto=1.0)
    steps = np.diff(times)
    assert steps.max() > 20 * np.median(np.abs(steps))
    assert times[-1] > times[0]


def test_one_flow_is_drawn_at_a_time():
    for call in (Hysteresis().distribution, lambda **flow: Catnip().simulate(draws=3, seed=1, **flow)):
        for wrong in ({"segments": [3, 4]}, {"p": 2.0}):
            with pytest.raises(InvalidParameter, match="draws transfer times of one flow inside its domain only"):
                call(**(FLOWS[0] | wrong))


def test_catnip_is_hysteresis_where_all_segments_are_of_high_priority():
    flow = {"segments": np.arange(1.0, 7.0), "rtt": 0.1, "rto": 1.0}
    np.testing.assert_allclose(
        Hysteresis().predict(p=0.02, **flow), Catnip().predict(p=0.3, p_high=0.02, **flow), rtol=1e-13
    )


def test_catnip_is_faster():
    # the paper: 5 to 42 % between 6 and 36 packets, p of 1 and 10 %, p' = 0 (figure 6)
    flow = {"segments": np.arange(6.0, 37.0), "rtt": 0.2, "rto": 1.0, "w_max": 24}
    for p in (0.01, 0.1):
        gain = 1 - Catnip().predict(p=p, **flow) / Hysteresis().predict(p=p, **flow)
        assert (gain > 0).all()
