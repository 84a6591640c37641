"""Transfer times: numbers over the whole domain, limits and directions, and every sum against its closed form."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcpfit.models import catalogue, get, sikdar_reno, sikdar_rounds, sikdar_sack, sikdar_tahoe, timeouts, transfer_time
from tcpfit.models.cardwell_2000 import Cardwell2000, first_phase_segments
from tcpfit.models.catnip import Catnip
from tcpfit.models.hysteresis import Hysteresis
from tcpfit.models.padhye_short import PadhyeShort
from tcpfit.models.sikdar_latency import (
    Reading,
    SikdarRenoLatency,
    SikdarSackLatency,
    SikdarTahoeLatency,
    chunk_rounds,
    last_of_round,
    mean_rounds,
    multiple_loss_rounds,
    second_of,
    single_loss_rounds,
    window_of_packet,
    window_range,
)

SIKDAR = [SikdarTahoeLatency, SikdarRenoLatency, SikdarSackLatency]
INDICATIONS = [sikdar_tahoe.indication, sikdar_reno.indication, sikdar_sack.indication]
VARIANTS = [
    *(model for model in catalogue().values() if model.predicts == "transfer-time"),
    PadhyeShort(variant="throughput", handshake=False),
    Cardwell2000(count_lost=False, handshake=False),
    Cardwell2000(as_printed=True),
    Hysteresis(as_printed=True),
    Hysteresis(stop=0.1),
    Catnip(as_printed=True, stop=0.3),
    *(model(as_printed=True) for model in SIKDAR),
    *(model(cap=True, handshake=False) for model in SIKDAR),
]
IDS = [repr(model) for model in VARIANTS]
LONGEST = {"sikdar": 60, "hysteresis": 3000, "catnip": 3000}  # segments drawn: the domain's end costs seconds a flow
SECONDS = st.floats(1e-6, 1e3) | st.floats(-9, 9).map(lambda power: min(max(10.0**power, 1e-9), 1e9))
PROBABILITY = st.floats(0, 1) | st.floats(-300, 0).map(lambda power: 10.0**power)
DRAWS = {
    "p": PROBABILITY,
    "p_high": PROBABILITY,
    "rtt": SECONDS,
    "rto": SECONDS,
    "syn_rto": SECONDS,
    "delayed_ack": SECONDS | st.just(0.0),
    "b": st.floats(0.05, 20) | st.floats(1e-3, 1e3),
    "w_1": st.floats(1, 1e6),
    "w_max": st.floats(1, 1e6) | st.just(float("inf")),
}


def drawn(data, model):
    longest = next((end for name, end in LONGEST.items() if model.name.startswith(name)), 10**7)
    flow = {"segments": data.draw(st.floats(1, longest) | st.integers(1, min(longest, 60)), label="segments")}
    for parameter in model.parameters:
        if parameter.name != "segments":
            value = data.draw(DRAWS[parameter.name], label=parameter.name)
            flow[parameter.name] = min(value, parameter.high)
    return flow


@pytest.mark.parametrize("model", VARIANTS, ids=IDS)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_every_time_in_the_domain_is_a_number_and_not_negative(model, data):
    flow = drawn(data, model)
    time = float(model.predict(**flow))
    assert model.domain(**flow)
    assert time >= 0
    if model.name in ("hysteresis", "catnip"):
        assert float(model.variance(**flow)) >= 0


@pytest.mark.parametrize("model", VARIANTS, ids=IDS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_arrays_give_what_scalars_give(model, data):
    flows = [drawn(data, model) for _ in range(data.draw(st.integers(1, 5)))]
    together = model.predict(**{name: [flow[name] for flow in flows] for name in flows[0]})
    for i, flow in enumerate(flows):
        np.testing.assert_allclose(together[i], model.predict(**flow), rtol=1e-10)


USUAL = {"segments": 40, "p": 0.02, "rtt": 0.1, "rto": 1.0}


@pytest.mark.parametrize("model", VARIANTS, ids=IDS)
def test_longer_round_trips_and_timeouts_take_longer(model):
    for name in ("rtt", "rto", "delayed_ack"):
        assert (np.diff(model.predict(**(USUAL | {name: np.geomspace(0.01, 10, 40)}))) >= 0).all()


@pytest.mark.parametrize("model", VARIANTS, ids=IDS)
def test_without_loss_nothing_but_slow_start_takes_time(model):
    times = model.predict(**(USUAL | {"p": [0.0, 1e-300, 1e-14]}))
    np.testing.assert_allclose(times, times[0], rtol=1e-5)
    assert times[0] < 2
    again = model.predict(**(USUAL | {"p": [0.0, 0.0], "rto": [0.5, 50.0]}))
    assert again[0] == again[1]


@pytest.mark.parametrize("model", [*SIKDAR, Cardwell2000, PadhyeShort])
def test_more_loss_takes_longer(model):
    p = np.linspace(0, 0.49, 200)
    assert (np.diff(model().predict(**(USUAL | {"p": p}))) > -1e-12).all()
    assert np.isinf(model().predict(**(USUAL | {"p": 0.5})))
    assert np.isfinite(model(handshake=False).predict(**(USUAL | {"p": 0.9})))
    at_one = model(handshake=False).predict(**(USUAL | {"p": 1.0}))  # PFTK still sends a segment every 64 T0
    assert at_one == pytest.approx(40 * 64 + 0.1) if model is PadhyeShort else np.isinf(at_one)


@pytest.mark.parametrize("model", [Cardwell2000(), Cardwell2000(count_lost=False), PadhyeShort()], ids=repr)
def test_more_segments_take_longer(model):
    for p in (0.0, 1e-6, 0.01, 0.3):
        times = model.predict(**(USUAL | {"segments": np.arange(1.0, 3000.0), "p": p, "w_max": 30}))
        assert (np.diff(times) > 0).all()


@pytest.mark.parametrize("model", SIKDAR)
def test_times_with_correlated_losses_rise_but_for_a_round(model):
    for p in (1e-6, 0.01, 0.1, 0.3):
        times = model(handshake=False).predict(**(USUAL | {"segments": np.arange(1.0, 300.0), "p": p}))
        assert (np.diff(times) > -0.1).all()  # a packet more can fill a round and spare a timeout
        assert times[-1] > times[0]


def test_outside_the_domain_the_time_is_nan():
    for model in VARIANTS:
        for parameter in model.parameters:
            for wrong in (-1.0, np.nan):
                assert np.isnan(model.predict(**(USUAL | {parameter.name: wrong})))
    for model in SIKDAR:
        assert np.isnan(model().predict(**(USUAL | {"segments": 1025})))
    assert np.isnan(Hysteresis().predict(**(USUAL | {"p": 0.96})))


# Slow start (Cardwell et al., Li and Williamson)


@pytest.mark.parametrize("p", [1e-9, 0.003, 0.1, 0.6, 1.0])
@pytest.mark.parametrize("d", [1, 3, 40])
def test_segments_before_a_loss_are_their_sum(p, d):
    total = sum((1 - p) ** k * p * k for k in range(d)) + (1 - p) ** d * d
    args = np.asarray(p), np.asarray(float(d))
    assert total == pytest.approx(float(transfer_time.segments_before_loss(*args)), rel=1e-9, abs=1e-15)
    assert 1 - (1 - p) ** d == pytest.approx(float(transfer_time.loss_probability(*args)), rel=1e-6)


@pytest.mark.parametrize(("w1", "gamma", "rounds"), [(1.0, 1.5, 7), (4.0, 2.0, 3), (10.0, 1.01, 20)])
def test_rounds_and_windows_are_a_geometric_series(w1, gamma, rounds):
    windows = w1 * gamma ** np.arange(rounds)
    args = np.asarray(windows.sum()), np.asarray(w1), np.asarray(gamma)
    assert rounds == pytest.approx(float(transfer_time.rounds_of_slow_start(*args)))
    assert windows[-1] == pytest.approx(float(transfer_time.window_after_slow_start(*args)))
    time = transfer_time.slow_start_time(*args, np.asarray(np.inf), np.asarray(0.3))
    assert 0.3 * rounds == pytest.approx(float(time))


def test_slow_start_joins_the_window_limit_continuously():
    w1, gamma, Wmax = (np.asarray(x) for x in (2.0, 1.5, 24.0))
    E_d = (gamma * Wmax - w1) / (gamma - 1) * np.array([1 - 1e-12, 1 + 1e-12])
    at = transfer_time.slow_start_time(E_d, w1, gamma, Wmax, np.asarray(1.0))
    np.testing.assert_allclose(at[0], at[1], rtol=1e-10)
    more = transfer_time.slow_start_time(E_d + 240, w1, gamma, Wmax, np.asarray(1.0))
    np.testing.assert_allclose(at[1] + 10, more[1], rtol=1e-10)


def test_cardwell_counts_the_lost_segment_but_never_more_than_there_are():
    p, d = np.array([0.0, 1e-12, 0.1, 1.0]), np.asarray(20.0)
    counted, not_counted = first_phase_segments(p, d), first_phase_segments(p, d, count_lost=False)
    np.testing.assert_allclose([20, 20, not_counted[2] + 1, 1], counted)
    np.testing.assert_allclose([21, 21], first_phase_segments(p, d, as_printed=True)[:2])


def test_a_long_transfer_goes_at_the_steady_rate():
    from tcpfit.models.pftk_full import PFTKFull

    flow = {"p": 0.01, "rtt": 0.1, "rto": 1.0}
    for model, variant in ((Cardwell2000(), "throughput"), (PadhyeShort(), "send")):
        rate = PFTKFull(variant=variant).predict(**flow)
        assert 1e7 / rate == pytest.approx(float(model.predict(segments=1e7, **flow)), rel=1e-4)


# Sikdar et al.


def brute_force(indication, N, p, RTT, To, Wmax):
    """(18, 29, 42) without setup and delayed ACK, case by case."""
    how = Reading(indication, float(Wmax), False, False)
    eto = float(timeouts.timeout_duration(np.asarray(p), np.asarray(To)))

    def single(n):
        rounds, times_out = single_loss_rounds(how, np.asarray(float(n)), np.arange(1.0, n + 1))
        return rounds.mean() * RTT + times_out.mean() * eto

    def chunk(D):
        c = int(window_range(np.asarray(D), np.asarray(float(Wmax))))
        found = []
        for h in range(1, c + 1):
            for j in range(1, h + 1):
                after = indication(np.asarray(float(h)), np.asarray(float(j)), np.asarray(float(Wmax)))
                rest = sikdar_rounds.linear_rounds(D - after.packets, after.ssthresh, np.asarray(float(Wmax)))
                found.append(float(after.rounds + rest) * RTT + float(after.times_out) * eto)
        return np.mean(found)

    loss_free = float(sikdar_rounds.loss_free_rounds(np.asarray(float(N)), np.asarray(float(Wmax)))) * RTT
    total = (1 - p) ** N * loss_free + N * p * (1 - p) ** (N - 1) * single(N)
    for M in range(2, N + 1):
        for m in range(2, N - M + 3):
            weight = p**M * (1 - p) ** (N - M) * (m - 1) * comb(N - m, M - 2)
            total += weight * (single(m - 1) + (M - 1) * chunk((N - m + 1) / (M - 1)))
    return total


@pytest.mark.parametrize("model", SIKDAR)
@pytest.mark.parametrize(("N", "p", "Wmax"), [(1, 0.1, 8), (2, 0.3, 1), (9, 0.2, 4), (14, 0.05, 24)])
def test_tables_give_the_sum_over_all_cases(model, N, p, Wmax):
    found = model(handshake=False).predict(segments=N, p=p, rtt=0.2, rto=1.5, w_max=Wmax, delayed_ack=0)
    assert brute_force(model._indication, N, p, 0.2, 1.5, Wmax) == pytest.approx(float(found), rel=1e-10)


@pytest.mark.parametrize("indication", INDICATIONS)
@pytest.mark.parametrize("Wmax", [1.0, 5.0, np.inf])
def test_chunks_of_half_packets_are_all_chunks(indication, Wmax):
    how = Reading(indication, Wmax, False, False)
    D = np.concatenate((np.arange(1, 120) / 7, np.arange(1, 60) / 3, [1e-9, 33.3]))
    exact, halves = chunk_rounds(how, D), chunk_rounds(how, np.ceil(2 * D) / 2)
    np.testing.assert_allclose(exact, halves, rtol=1e-12)


def test_probabilities_of_the_cases_add_up():
    N, p = 12, 0.1
    M = np.arange(2, N + 1)
    of_m = [second_of(N, np.full(N - k + 1, k), np.arange(2, N - k + 3)).sum() for k in M]
    np.testing.assert_allclose(of_m, 1.0)
    one = p * (1 - p) ** (N - 1)
    several = sum(comb(N, k) * p**k * (1 - p) ** (N - k) for k in M.tolist())
    assert (1 - p) ** N + N * one + several == pytest.approx(1)
    assert (1 - p) ** N + one + several == pytest.approx(0.655, abs=5e-4)  # as printed in (18)


@pytest.mark.parametrize("indication", INDICATIONS)
def test_a_window_limit_that_is_never_reached_does_not_matter(indication):
    p = np.array([0.01, 0.1, 0.5])
    for N in (1, 2, 3, 5, 10, 17, 40, 90, 200):
        limit = np.ceil(0.75 * N + 16)
        free, limited = (mean_rounds(Reading(indication, W, False, False), N, p) for W in (np.inf, limit))
        np.testing.assert_array_equal(free, limited)


def test_rounds_of_a_packet():
    # packets 1; 2, 3; 4, 5, 6; 7 to 10: the slow start of 2, whose last packets 11 gives
    i = np.arange(1.0, 11.0)
    np.testing.assert_array_equal([1, 2, 2, 3, 3, 3, 4, 4, 4, 4], window_of_packet(i, np.asarray(100.0)))
    np.testing.assert_array_equal([1, 3, 3, 6, 6, 6, 10, 10, 10, 10], last_of_round(i, np.asarray(100.0)))
    far = np.array([200.0, 203.0, 204.0, 205.0])
    np.testing.assert_array_equal(8, window_of_packet(far, np.asarray(8.0)))
    assert (last_of_round(far, np.asarray(8.0)) >= far).all()


@pytest.mark.parametrize("model", SIKDAR)
def test_misprints_matter_as_stated(model):
    flow = {"segments": 12, "p": 0.1, "rtt": 0.1, "rto": 1.0, "w_max": 24}
    right, printed = (float(model(as_printed=form, handshake=False).predict(**flow)) for form in (False, True))
    assert printed < 0.8 * right
    capped = float(model(cap=True, handshake=False).predict(**flow))
    assert capped != right
    assert capped == pytest.approx(right, rel=0.1)


def test_one_or_two_packets_have_no_several_losses():
    for indication in INDICATIONS:
        rounds, timeouts_ = multiple_loss_rounds(Reading(indication, np.inf, False, False), 1)
        assert rounds.size == timeouts_.size == 0


# Table 2 and 3 of Li and Williamson: V1, V2 are mean squared errors of two models against the same simulations, so the
# root mean square of the models' difference lies between |sqrt V1 - sqrt V2| and sqrt V1 + sqrt V2. 9 of 24 hold.
SHORT, LONG = [1, 3, 6, 12, 23, 36], [36, 46, 65, 79, 92, 115, 129, 143]
V = {
    "short": {0.01: (0.15, 0.17, 0.03), 0.03: (0.41, 0.44, 0.05), 0.08: (0.51, 0.10, 0.05), 0.1: (1.06, 0.15, 0.08)},
    "long": {0.01: (0.78, 0.22, 0.02), 0.03: (1.82, 0.47, 0.09), 0.08: (4.75, 4.20, 2.20), 0.1: (16.12, 22.24, 8.66)},
}


def test_intervals_that_follow_from_the_printed_errors_of_models():
    holds = []
    for table, segments in (("short", SHORT), ("long", LONG)):
        for p, errors in V[table].items():
            flow = {"segments": np.asarray(segments, float), "p": p, "rtt": 0.2, "rto": 1.0, "w_max": 24}
            models = SikdarRenoLatency(handshake=False), Cardwell2000(handshake=False), Hysteresis()
            times, roots = [model.predict(**flow) for model in models], np.sqrt(errors)
            for a, b in ((0, 1), (0, 2), (1, 2)):
                apart = np.sqrt(np.mean((times[a] - times[b]) ** 2))
                if abs(roots[a] - roots[b]) <= apart <= roots[a] + roots[b]:
                    holds.append((table, p, a, b))
    assert [
        ("short", 0.01, 0, 1),
        ("short", 0.03, 0, 1),
        ("short", 0.08, 0, 1),
        ("long", 0.03, 1, 2),
        ("long", 0.08, 0, 1),
        ("long", 0.08, 1, 2),
        ("long", 0.1, 0, 1),
        ("long", 0.1, 0, 2),
        ("long", 0.1, 1, 2),
    ] == holds


# Fitting


@pytest.mark.parametrize(
    "model", [Cardwell2000(free=("rto",)), SikdarRenoLatency(), Hysteresis(free=("rto",))], ids=repr
)
def test_fit_finds_the_timeout(model):
    rng = np.random.default_rng(3)
    n = 300
    table = {
        "segments": rng.integers(2, 60, n).astype(float),
        "p": rng.uniform(0.01, 0.2, n),
        "rtt": rng.uniform(0.02, 0.2, n),
    }
    times = model.predict(table, rto=0.8) * np.exp(rng.normal(0, 0.1, n))
    model.fit(table, times)
    assert model.converged_
    assert abs(model.params_["rto"] - 0.8) < 3 * model.params_se_["rto"]
    assert model.score(table, times) > 0.8


def test_drawn_losses_of_a_single_segment():
    """One segment: each loss, p/(1-p) on average, costs a round and E[Z^TO] (there is nothing to fast-retransmit)."""
    p, rtt, rto = 0.2, 0.1, 0.5
    flow = {"segments": 1.0, "p": p, "rtt": rtt, "rto": rto, "b": 1.0, "delayed_ack": 0.0}
    drawn = Hysteresis(whole_rounds=True).draw_losses(draws=40_000, seed=1, **flow)
    waited = float(timeouts.timeout_duration(np.array([p]), np.array([rto]))[0])
    expected = rtt + p / (1 - p) * (rtt + waited)
    assert expected == pytest.approx(drawn.mean(), abs=4 * drawn.std() / 200)
    assert 1 - p == pytest.approx(np.mean(drawn == rtt), abs=0.01)


def test_drawn_losses_without_loss():
    """All draws are the prediction, and three round trips of a window of 10 hold 70 segments."""
    flow = {"segments": 70.0, "p": 0.0, "rtt": 0.1, "rto": 1.0, "b": 1.0, "w_1": 10.0, "delayed_ack": 0.0}
    model = Hysteresis(whole_rounds=True)
    np.testing.assert_allclose(model.draw_losses(draws=10, seed=1, **flow), 0.3)
    assert 0.3 == pytest.approx(float(model.predict(**flow)))


@pytest.mark.parametrize("name", ["hysteresis", "catnip", "cardwell-2000"])
def test_whole_rounds_of_a_loss_free_transfer(name):
    """A window of 10 that doubles sends 10, 30 and 70 segments in 1, 2 and 3 round trips; as printed, 2 in less."""
    flow = {"p": 0.0, "rtt": 0.1, "rto": 1.0, "b": 1.0, "w_1": 10.0, "delayed_ack": 0.0}
    segments, expected = np.array([1.0, 2.0, 6.0, 10.0, 30.0, 70.0]), np.array([0.1, 0.1, 0.1, 0.1, 0.2, 0.3])
    if name == "catnip":  # steps of three segments from seven on
        segments, expected = segments[:3], expected[:3]
    model = get(name).set_params(**({"handshake": False} if name == "cardwell-2000" else {}))
    np.testing.assert_allclose(model.predict(segments=segments, whole_rounds=True, **flow), expected, rtol=1e-12)
    assert 0.1 * np.log2(1.2) == pytest.approx(float(model.predict(segments=2.0, **flow)))


@pytest.mark.parametrize("model", VARIANTS, ids=IDS)
def test_a_time_does_not_depend_on_the_flows_beside_it(model):
    """To the last digit: what is said of a capture is the same whatever is analysed with it."""
    chance, count = np.random.default_rng(3), 200
    drawn = {
        "segments": chance.choice([7.0, 30.0, 55.0], count),
        "p": 10 ** chance.uniform(-4, -0.5, count),
        "p_high": 10 ** chance.uniform(-1, -0.2, count),
        "rtt": chance.uniform(0.01, 0.3, count),
        "rto": chance.uniform(0.2, 1.5, count),
        "syn_rto": np.full(count, 1.0),
        "delayed_ack": chance.uniform(0, 0.04, count),
        "b": np.full(count, 1.5),
        "w_1": np.full(count, 10.0),
        "w_max": chance.choice([8.0, np.inf], count),
    }
    given = {parameter.name: drawn[parameter.name] for parameter in model.parameters}
    together = np.asarray(model.predict(**given))
    alone = [model.predict(**{name: values[i : i + 1] for name, values in given.items()})[0] for i in range(count)]
    assert np.array_equal(together, alone, equal_nan=True)
    assert np.isfinite(together).any()
