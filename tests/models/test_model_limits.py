"""Over the whole domain: rates that are numbers and not negative, the right limits, and the right direction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tcpfit.models import catalogue, get
from tcpfit.models.bohacek_sack import BohacekSack
from tcpfit.models.cubic import Cubic
from tcpfit.models.mathis import Mathis
from tcpfit.models.newreno_full import NewRenoFull
from tcpfit.models.newreno_noto import NewRenoNoTO
from tcpfit.models.pftk_full import PFTKFull
from tcpfit.models.pftk_simple import PFTKSimple
from tcpfit.models.reordering_goodput import ReorderingGoodput

# the whole domain: even, and even in the logarithm, ends included
PROBABILITY = st.floats(0, 1) | st.floats(-300, 0).map(lambda power: 10.0**power)
SECONDS = st.floats(1e-6, 1e3) | st.floats(-9, 9).map(lambda power: min(max(10.0**power, 1e-9), 1e9))
WINDOWS = st.floats(1, 1e6) | st.floats(0, 12).map(lambda power: 10.0**power)
DRAWS = {
    "p": PROBABILITY,
    "q": PROBABILITY,
    "q_tilde": PROBABILITY,
    "p_to": PROBABILITY,
    "rtt": SECONDS,
    "rto": SECONDS,
    "a_h": SECONDS,
    "b": st.floats(0.05, 20) | st.floats(1e-3, 1e3),
    "w_max": WINDOWS | st.just(float("inf")),
    "d": WINDOWS,
    "r": st.integers(1, 1000) | st.just(float("inf")),
    "c": st.floats(-9, 9).map(lambda power: min(max(10.0**power, 1e-9), 1e9)),
    "beta": st.floats(1e-3, 0.999),
}
VARIANTS = [
    *(model for model in catalogue().values() if model.predicts == "throughput"),
    Mathis(losses="random"),
    PFTKSimple(variant="exact"),
    PFTKFull(variant="throughput"),
    NewRenoNoTO(window="exact", q_from="eq30"),
    NewRenoFull(window="exact", q_from="self", series="exact", rounding="ceil"),
    NewRenoFull(rounding="real", q_from="homogeneous"),
    ReorderingGoodput(start="restart"),
    *(get(f"sikdar-{version}").set_params(as_printed=True) for version in ("tahoe", "reno", "sack")),
    BohacekSack(as_printed=True),
    BohacekSack(c1=1.3098, gamma=0.2844),
    Cubic(region="cubic"),
    Cubic(as_printed=True),
]
IDS = [repr(model) for model in VARIANTS]
LOSS_MODELS = [model for model in VARIANTS if model.p_definition]


@pytest.mark.parametrize("model", VARIANTS, ids=IDS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_every_rate_in_the_domain_is_a_number_and_not_negative(model, data):
    flow = {p.name: data.draw(DRAWS[p.name], label=p.name) for p in (*model.parameters, *model.extensions)}
    if data.draw(st.booleans(), label="without extensions"):
        flow = {name: value for name, value in flow.items() if not any(name == p.name for p in model.extensions)}
    rate = float(model.predict(**flow))
    assert model.domain(**flow) == (not np.isnan(rate))
    assert not rate < 0


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_reordering_inside_its_domain(data):
    flow = {"w_max": data.draw(WINDOWS), "rtt": data.draw(SECONDS), "b": data.draw(DRAWS["b"])}
    flow["d"] = data.draw(st.floats(1, flow["w_max"]))
    flow["r"] = data.draw(DRAWS["r"])
    flow["a_h"] = flow["rtt"] * min(flow["r"], flow["d"]) * data.draw(st.floats(1.001, 1e4))
    assume(flow["a_h"] <= 1e9)
    for start in ("limit", "restart"):
        rate = float(ReorderingGoodput(start=start).predict(**flow))
        assert 0 <= rate <= flow["w_max"] / flow["rtt"] * (1 + 1e-9)


@pytest.mark.parametrize("model", VARIANTS, ids=IDS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_arrays_give_what_scalars_give(model, data):
    size = data.draw(st.integers(1, 6))
    flows = {p.name: data.draw(st.lists(DRAWS[p.name], min_size=size, max_size=size)) for p in model.parameters}
    together = model.predict(**flows)
    for i in range(size):
        alone = model.predict(**{name: values[i] for name, values in flows.items()})
        assert alone.shape == ()
        np.testing.assert_allclose(together[i], alone, rtol=1e-12)


def test_what_stands_beside_a_flow_does_not_move_its_root():
    """At nearly p = 1 the last bits of q make an eighth of the rate."""
    model = NewRenoFull(window="exact", q_from="self", series="exact", rounding="ceil")
    p, q_tilde = [0.0, np.nextafter(1.0, 0.0), 0.5], [0.0, 1.0, 1.0]
    together = model.predict(p=p, rtt=1.0, rto=1.0, q_tilde=q_tilde)
    assert together[1] == model.predict(p=p[1], rtt=1.0, rto=1.0, q_tilde=q_tilde[1])


def flow(model, **changes):
    usual = {"rtt": 0.1, "rto": 1.0, "q": 0.05, "q_tilde": 0.05, "p": 0.01, "w_max": np.inf}
    return {p.name: usual[p.name] for p in model.parameters if p.name in usual} | changes


@pytest.mark.parametrize("model", LOSS_MODELS, ids=map(repr, LOSS_MODELS))
def test_without_loss_nothing_but_the_window_limits_the_rate(model):
    assert np.isinf(model.predict(**flow(model, p=0.0)))
    assert model.predict(**flow(model, p=1e-14)) > 1e6
    if any(p.name == "w_max" for p in model.parameters):
        rate = model.predict(**flow(model, p=[0.0, 1e-12], w_max=40))
        np.testing.assert_allclose([400, 400], rate, rtol=1e-6)


def test_when_everything_is_lost():
    assert float(PFTKFull().predict(p=1, rtt=0.1, rto=1)) == pytest.approx(1 / 64)
    assert float(PFTKFull(variant="throughput").predict(p=1, rtt=0.1, rto=1)) == 0
    assert float(get("sikdar-sack").predict(p=1, rtt=0.1, rto=1)) == 0
    assert float(NewRenoFull(series="exact").predict(p=1, q=1, rtt=0.1, rto=1)) == 0
    assert 0 < float(NewRenoFull().predict(p=1, q=1, rtt=0.1, rto=1)) < 1


@pytest.mark.parametrize("model", LOSS_MODELS, ids=map(repr, LOSS_MODELS))
def test_more_loss_longer_round_trips_and_longer_timeouts_lower_the_rate(model):
    p = np.geomspace(1e-6, 0.3, 60)
    step = np.diff(
        np.log(
            model.predict(
                **flow(model, p=p, q_tilde=np.minimum(1, 2 * p)) if model_takes(model, "q_tilde") else flow(model, p=p)
            )
        )
    )
    whole = model.name == "newreno-full" or model.name.startswith("sikdar")
    tolerance = 0.02 if whole else 0.0  # whole windows make small steps
    assert (step < tolerance).all()
    for name in ("rtt", "rto"):
        if model_takes(model, name):
            assert (np.diff(model.predict(**flow(model, **{name: np.geomspace(0.01, 10, 40)}))) <= 0).all()


CONTINUOUS = [
    *(get(name) for name in "mathis pftk-simple pftk-approx pftk-full tfrc newreno-noto bohacek-sack cubic".split()),
    PFTKFull(variant="throughput"),
    NewRenoNoTO(window="exact", q_from="homogeneous"),
]


@pytest.mark.parametrize("model", CONTINUOUS, ids=map(repr, CONTINUOUS))
def test_continuous_and_falling_in_p(model):
    p = np.geomspace(1e-7, 0.9, 100_001)
    slope = np.diff(np.log(model.predict(**flow(model, p=p)))) / np.diff(np.log(p))
    assert slope.max() < -0.2
    assert slope.min() > -15  # a jump would be a slope of thousands


def test_known_jump_of_newreno_full_is_at_whole_windows():
    from tcpfit.models.newreno_window import printed_window

    p = np.geomspace(1e-4, 0.2, 100_001)
    step = np.diff(np.log(get("newreno-full").predict(p=p, q=0.05, rtt=0.1, rto=1.0)))
    whole = np.floor(printed_window(p, np.asarray(0.05)))
    crossed = np.diff(whole) != 0
    assert np.abs(step[~crossed]).max() < 1e-3
    assert 0 < step[crossed].max() < 0.04
    last = crossed & (whole[:-1] == 4)  # below 4 every loss event is a timeout: about half the rate
    assert -0.75 < step[last].min() < -0.6


@pytest.mark.parametrize(("b", "jump"), [(1.0, 0.04), (2.0, 1e-6)])
def test_known_jump_of_pftk_full_is_where_the_window_limit_sets_in(b, jump):
    from tcpfit.models.pftk_simple import window

    for p in np.geomspace(1e-4, 0.2, 12):
        limit = float(window(np.asarray(p), np.asarray(b)))
        for rto in (0.3, 1.0, 4.0):
            rate = PFTKFull(b=b).predict(p=p, rtt=0.1, rto=rto, w_max=limit * np.array([1 - 1e-9, 1 + 1e-9]))
            assert -1e-6 < np.log(rate[1] / rate[0]) < jump


def test_known_jump_of_reordering_is_between_its_regimes():
    a_h = np.linspace(0.7, 8, 50_001)
    rate = get("reordering-goodput").predict(w_max=60, rtt=0.1, a_h=a_h, d=6, b=1)
    step = np.diff(np.log(rate))
    at_regime = int(np.argmin(step))  # F = 2 x/b = d + 2 at A_h/RTT = 10: the chain's mean, then its limit
    assert a_h[at_regime + 1] == pytest.approx(1.0, abs=2e-4)
    assert step[at_regime] == pytest.approx(-0.72, abs=0.01)
    assert np.abs(step[at_regime + 1 :]).max() < 1e-3  # on to where the window recovers, at 3.6 s, and past it
    assert (step[:at_regime] > -0.2).all()  # one period more in the mean


def model_takes(model, name):
    return any(p.name == name for p in model.parameters)


def test_a_window_limit_and_delayed_acks_lower_the_rate():
    limits = np.arange(4.0, 60.0)
    for name in ("pftk-approx", "pftk-full", "sikdar-tahoe", "sikdar-reno", "sikdar-sack"):
        assert (np.diff(get(name).predict(p=1e-3, rtt=0.1, rto=1, w_max=limits)) > -1).all()
    for name in ("mathis", "pftk-simple", "pftk-approx", "pftk-full", "tfrc"):
        assert (np.diff(get(name).predict(**flow(get(name), b=np.linspace(0.5, 3, 20)))) < 0).all()


def test_rarer_reordering_and_fewer_late_segments_raise_the_goodput():
    model = get("reordering-goodput")
    a_h = np.linspace(4.0, 60.0, 50)
    assert (np.diff(model.predict(w_max=60, rtt=0.1, a_h=a_h, d=6)) >= 0).all()
    assert (np.diff(model.predict(w_max=60, rtt=0.1, a_h=20, d=np.arange(1.0, 30.0))) < 0).all()


def test_the_constants_of_the_square_root_law():
    assert float(Mathis().predict(p=1, rtt=1)) == pytest.approx(1.22, abs=0.005)
    assert float(Mathis(b=2).predict(p=1, rtt=1)) == pytest.approx(0.87, abs=0.005)
    assert float(Mathis(b=2, losses="random").predict(p=1, rtt=1)) == pytest.approx(0.93, abs=0.005)


def test_a_window_below_four_always_times_out():
    model = NewRenoFull(q_from="homogeneous")
    from tcpfit.models.newreno_window import printed_window

    for p, share in ((0.1044, False), (0.1046, True)):
        W = printed_window(np.asarray(p), np.asarray(p))
        assert (model.timeout_share(np.asarray(p), np.asarray(p), W) == 1) == share


def test_outside_the_domain_the_rate_is_nan():
    for model in VARIANTS:
        for parameter in model.parameters:
            usual = {"rtt": 0.1, "rto": 1, "q": 0.1, "q_tilde": 0.1, "p": 0.01, "w_max": 50, "a_h": 5, "d": 3}
            given_ = {p.name: usual[p.name] for p in model.parameters if p.name in usual}
            for wrong in (-1.0, np.nan):
                assert np.isnan(model.predict(**(given_ | {parameter.name: wrong})))
                assert not model.domain(**(given_ | {parameter.name: wrong}))


@pytest.mark.parametrize(("name", "edge", "beyond"), [("p", 1.0, 1.001), ("q", 1.0, 1.001), ("w_max", 1.0, 0.999)])
def test_the_domain_reaches_to_its_edges_and_no_further(name, edge, beyond):
    """Probabilities end at 1, windows begin with a segment."""
    usual = {"rtt": 0.1, "rto": 1.0, "q": 0.1, "q_tilde": 0.1, "p": 0.01, "w_max": 50}
    found = set()
    for model in VARIANTS:
        names = {parameter.name for parameter in model.parameters}
        if name in names and not isinstance(model, ReorderingGoodput):  # its window has more bounds
            flow = {key: value for key, value in usual.items() if key in names}
            found.add((model.domain(**(flow | {name: edge})), model.domain(**(flow | {name: beyond}))))
    assert {(True, False)} == found
