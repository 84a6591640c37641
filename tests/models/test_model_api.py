"""The catalogue, the names, the errors, tables, fitting, and scikit-learn's protocol."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tcpfit.exceptions import InvalidParameter
from tcpfit.models import Assumption, Model, Parameter, catalogue, get
from tcpfit.models.mathis import Mathis
from tcpfit.models.newreno_full import NewRenoFull
from tcpfit.models.newreno_noto import NewRenoNoTO
from tcpfit.models.pftk_approx import PFTKApprox
from tcpfit.models.pftk_full import PFTKFull

NAMES = [
    "mathis",
    "pftk-simple",
    "pftk-approx",
    "pftk-full",
    "tfrc",
    "newreno-noto",
    "newreno-full",
    "sikdar-tahoe",
    "sikdar-reno",
    "sikdar-sack",
    "reordering-goodput",
    "bohacek-sack",
    "cubic",
    "hysteresis",
    "catnip",
    "cardwell-2000",
    "sikdar-tahoe-latency",
    "sikdar-reno-latency",
    "sikdar-sack-latency",
    "padhye-short",
]
COLUMNS = "segments p p_indication q_tilde q m rtt rto p_to w w_max b d a_h r".split()
ASSUMPTIONS = (
    "reno-growth cubic-growth no-fast-recovery "
    "loss-limited not-window-limited window-limited bulk sack no-sack no-reordering reordering "
    "reordering-felt no-timeouts bernoulli-loss correlated-loss-in-round priority-dropping"
).split()


def test_catalogue_is_in_the_order_of_the_contract():
    assert list(catalogue()) == NAMES
    assert all(get(name).name == name for name in NAMES)


@pytest.mark.parametrize("model", catalogue().values(), ids=NAMES)
def test_declarations(model):
    assert "doi:10." in model.paper
    assert model.title
    assert model.predicts == ("transfer-time" if "segments" in [p.name for p in model.parameters] else "throughput")
    assert model.quantity in ("send-rate", "throughput", "goodput")
    assert all(p.column in COLUMNS or p.default is not None for p in model.parameters)
    assert all(p.meaning and p.unit in ("1", "s", "segments", "segments/s^3") for p in model.parameters)
    required = [p.default is None for p in model.parameters]
    assert required == sorted(required, reverse=True), "required parameters come first"
    assert all(isinstance(a, Assumption) and a.name in ASSUMPTIONS and a.text for a in model.assumptions)
    columns = {"loss_event": "p", "loss_indication": "p_indication", "packet": "q_tilde", None: "w_max"}
    assert columns[model.p_definition] in [p.column for p in model.parameters]
    assert set(model.fittable) <= {p.name for p in model.parameters}


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: get("vegas"), "There is no model 'vegas'; known are mathis, pftk-simple,"),
        (lambda: get("mathis").predict(p=0.1), "mathis needs rtt (mean round-trip time, s), which was not given."),
        (lambda: get("mathis").predict(p=0.1, rtt=1, rto=2), "mathis has no parameter 'rto'; it takes p, rtt, b."),
        (lambda: get("mathis").predict(p="x", rtt=1), "p of mathis must be a number or an array of numbers, got 'x'."),
        (lambda: get("mathis").predict(p=[1, 1], rtt=[1, 1, 1]), "mathis cannot broadcast its parameters together:"),
        (lambda: get("mathis").predict(np.ones((2, 9))), "mathis reads a 2-d array with the columns p, rtt, b, got"),
        (lambda: get("cubic").predict(p=1, rtt=1, region="x"), "region of cubic must be one of both, cubic, reno, got"),
        (lambda: get("mathis").predict(p=1, rtt=1, losses="none"), "losses of mathis must be one of periodic, random,"),
        (lambda: get("mathis").set_params(c=2), "mathis has no convention 'c'; it has b, losses, free."),
        (lambda: Mathis(free=["rtt"]).fit([[0.1, 1]], [1]), "mathis can fit b, not 'rtt'."),
        (
            lambda: Mathis().fit([[0.1, 1]], [1]),
            "mathis needs at least 2 rows with finite rates to fit b, got 1 of 1 samples.",
        ),
        (lambda: Mathis().fit([[0.1, 1]], None), "mathis requires y to be passed, but the target y is None."),
        (lambda: Mathis().fit([[0.1, 1]] * 3, [1, 2]), "mathis got 3 values of p, but 2 of y."),
        (lambda: Mathis().predict([0.1, 1]), "mathis reads a 2-d array with the columns p, rtt, b, got shape (2,)."),
    ],
)
def test_errors_are_one_sentence(call, sentence):
    with pytest.raises(InvalidParameter) as caught:
        call()
    assert str(caught.value).startswith(sentence)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_conventions_can_be_given_to_the_constructor_or_to_one_call():
    flow = {"p": 0.02, "rtt": 0.1, "rto": 0.5}
    assert PFTKFull(variant="throughput").predict(**flow) == PFTKFull().predict(variant="throughput", **flow)
    assert PFTKFull(b=1).predict(**flow) == PFTKFull().predict(b=1, **flow) != PFTKFull().predict(**flow)
    assert PFTKFull(b=1).predict(b=2, **flow) == PFTKFull().predict(**flow)
    assert PFTKFull(variant="throughput").quantity == "throughput"
    assert PFTKFull().quantity == "send-rate"


def test_measured_timeouts_are_an_extension():
    flow = {"p": 0.02, "rtt": 0.1, "rto": 0.5}
    for model in (PFTKFull(), NewRenoFull(q_from="homogeneous")):
        rates = model.predict(p_to=[0.0, 0.3, 1.0], **flow)
        assert rates[0] > rates[1] > rates[2]
        assert "p_to" not in [p.name for p in model.parameters]


def test_without_timeouts_the_full_newreno_model_is_the_other_one():
    flow = {"p": 0.02, "q": 0.1, "rtt": 0.1}
    full, noto = NewRenoFull().predict(p_to=0, rto=1, **flow), NewRenoNoTO().predict(**flow)
    np.testing.assert_allclose(full, noto)


class Frame(dict):
    """What a data frame shows: `columns` and item access."""

    @property
    def columns(self):
        return list(self)


def test_tables():
    p, rtt, rto = np.array([0.01, 0.02]), np.array([0.1, 0.2]), np.array([0.5, 1.0])
    expected = PFTKApprox().predict(p=p, rtt=rtt, rto=rto)
    for table in (
        {"p": p, "rtt": rtt, "rto": rto},
        Frame({"p_indication": p, "rtt": rtt, "rto": rto, "flow": ["a", "b"]}),
        np.stack([p, rtt, rto], axis=1),
    ):
        np.testing.assert_array_equal(expected, PFTKApprox().predict(table))
    with_b = np.stack([p, rtt, rto, [1, 1]], axis=1)
    np.testing.assert_array_equal(expected, PFTKApprox(b=2).predict(with_b))


def simulated(model, n=400, noise=0.1, seed=1, **truth):
    rng = np.random.default_rng(seed)
    table = {"p": 10 ** rng.uniform(-4, -1.2, n), "rtt": rng.uniform(0.01, 0.3, n), "rto": rng.uniform(0.2, 2, n)}
    table = {p.name: table[p.name] for p in model.parameters if p.name in table}
    rates = model.predict(**(table | truth))
    return table, rates * np.exp(rng.normal(0, noise, n))


@pytest.mark.parametrize(
    ("model", "truth"),
    [
        (Mathis(), {"b": 1.6}),
        (PFTKApprox(free=("b", "rto")), {"b": 1.2, "rto": 0.7}),
        (PFTKFull(), {"b": 1.0}),
        (NewRenoFull(q_from="homogeneous"), {"rto": 0.6}),
        (NewRenoNoTO(), {"q": 0.2}),
        (get("tfrc"), {"b": 1.4}),
        (get("cubic"), {"c": 0.9}),
        (get("bohacek-sack"), {"rto": 0.6}),
        (get("sikdar-reno"), {"rto": 0.6}),
    ],
    ids=repr,
)
def test_fit_finds_the_truth(model, truth):
    covered = []
    for seed in range(8):
        table, rates = simulated(model, seed=seed, **{**truth})
        table = {name: column for name, column in table.items() if name not in truth}
        fitted = model.fit(table, rates)
        assert fitted is model
        assert model.converged_
        assert model.residual_std_ == pytest.approx(0.1, rel=0.25)
        covered += [abs(model.params_[name] - value) < 3 * model.params_se_[name] for name, value in truth.items()]
        assert model.score(table, rates) > 0.9
    assert np.mean(covered) >= 0.9


def test_a_parameter_fixed_in_the_constructor_is_not_fitted():
    table, rates = simulated(PFTKApprox(), b=1.0)
    fixed = PFTKApprox(b=1).fit(table | {"b": np.full(len(rates), 2.0)}, rates)
    assert fixed.params_ == {}
    assert fixed.residual_std_ == pytest.approx(0.1, rel=0.25)
    assert list(PFTKApprox(b=1, free=["rto"]).fit(table, rates).params_) == ["rto"]


def test_fit_leaves_out_rows_that_cannot_be_used():
    table, rates = simulated(Mathis(), b=1.3)
    rates[:5] = [0, np.nan, -1, np.inf, 0]
    assert Mathis().fit(table, rates).n_fitted_ == len(rates) - 5


def test_a_window_limit_is_found_and_its_error_is_honest():
    """Where no flow reaches the limit nothing determines it, and no standard error is made up."""
    limited = PFTKFull(b=1, free=["w_max"])
    table, rates = simulated(PFTKFull(b=1), w_max=12.0)
    fitted = limited.fit(table, rates)
    assert fitted.params_["w_max"] == pytest.approx(12.0, abs=3 * fitted.params_se_["w_max"])
    assert fitted.params_se_["w_max"] < 1
    table["p"] = np.maximum(table["p"], 0.03)
    assert np.isnan(limited.fit(table, PFTKFull(b=1).predict(table)).params_se_["w_max"])


def test_what_cannot_be_told_apart_has_no_error():
    """Mathis's b and a scale of the rate are one number; at a bound there is no error either."""
    table, rates = simulated(Mathis(), b=1.0)
    assert np.isnan(Mathis().fit(table, rates / 100).params_se_["b"])


class Latency(Model):
    """A transfer time of a handshake and the segments at the window, as tcpfit's users may write one."""

    name = "latency"
    predicts = "transfer-time"
    parameters = (
        Parameter("size", "segments", "segments of the transfer", None, "segments", low=1.0),
        Parameter("rtt", "s", "mean round-trip time", None, "rtt", positive=True),
        Parameter("w_max", "segments", "window limit", 10.0, "w_max", low=1.0),
    )
    fittable = {"w_max": (1.0, 1e4, 10.0)}

    def _time(self, **a):
        return a["rtt"] * (1 + a["size"] / a["w_max"])


def test_transfer_times_are_predicted_and_fitted_in_seconds():
    X = {"size": np.array([10.0, 100.0, 1000.0]), "rtt": np.array([0.1, 0.2, 0.1])}
    model = Latency()
    np.testing.assert_allclose(model.predict(X), [0.2, 2.2, 10.1])
    assert model.fit(X, model.predict(X, w_max=25)).params_["w_max"] == pytest.approx(25)
    assert model.quantity == "goodput"
    with pytest.raises(InvalidParameter, match="at least 2 rows with finite times"):
        Latency().fit(X, [0.2, 0, -1])
    assert Latency().fit(X, [0.2, 2.2, -1]).params_["w_max"] == pytest.approx(10)


def test_import_needs_only_numpy():
    code = "import sys, tcpfit.models; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"scipy", "polars", "pandas", "sklearn", "importlib.metadata"} & set(loaded)
