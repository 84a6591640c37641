"""scikit-learn's own checks of estimators, on the base class and every model; polars frames, search, pipelines."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from tcpfit.models import Model, Parameter, catalogue
from tcpfit.models.pftk_full import PFTKFull

pytest.importorskip("sklearn", minversion="1.6")
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

REFUSED = {
    "check_dtype_object": "wants TypeError for a dict in X; tcpfit raises InvalidParameter, which is a ValueError",
    "check_supervised_y_2d": "wants a warning of a class of scikit-learn's, which tcpfit does not import",
}
DOMAIN = "fits numbers drawn at random, or as many columns as it likes: no probabilities and no times of a flow"
ON_FLOWS = REFUSED | dict.fromkeys(
    [
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_estimators_dtypes",
        "check_estimators_fit_returns_self",
        "check_estimators_overwrite_params",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit2d_1feature",
        "check_fit2d_1sample",
        "check_fit2d_predict1d",
        "check_fit_check_is_fitted",
        "check_fit_idempotent",
        "check_fit_score_takes_y",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_n_features_in",
        "check_n_features_in_after_fitting",
        "check_pipeline_consistency",
        "check_positive_only_tag_during_fit",
        "check_readonly_memmap_input",
        "check_regressor_data_not_an_array",
        "check_regressors_int",
        "check_regressors_no_decision_function",
        "check_regressors_train",
    ],
    DOMAIN,
)
"""Checks that a law of physical quantities cannot pass, and why; `AnyNumbers` passes those of the second reason."""


class AnyNumbers(Model):
    """A law whose domain is all numbers, so that scikit-learn's random data reach everything the base class does."""

    name = "any-numbers"
    title = "no law of TCP"
    paper = "none"
    p_definition = None
    parameters = (
        *(Parameter(f"x{i}", "1", "any number", 0.0, low=-np.inf) for i in range(12)),
        Parameter("scale", "1", "what is fitted", 1.0, positive=True),
    )
    assumptions = ()
    fittable = {"scale": (1e-6, 1e6, 1.0)}
    quantity = "throughput"

    def __init__(self, *, free=None):
        self.free = free

    def _rate(self, **a):
        return a["scale"] * np.exp(0.1 * sum(np.tanh(value) for name, value in a.items() if name != "scale"))


@pytest.mark.filterwarnings("ignore")
def test_base_class_passes_the_checks():
    results = check_estimator(AnyNumbers(), expected_failed_checks=REFUSED, on_skip=None)
    assert set(REFUSED) == {result["check_name"] for result in results if result["status"] == "xfail"}


@pytest.mark.filterwarnings("ignore")
def test_models_pass_the_checks_that_apply():
    failed = set()
    for model in catalogue().values():
        results = check_estimator(model, expected_failed_checks=ON_FLOWS, on_skip=None)
        failed |= {result["check_name"] for result in results if result["status"] == "xfail"}
        assert 10 < sum(result["status"] == "passed" for result in results)
    assert set(ON_FLOWS) == failed, "a check that no model fails is no exception"


def flows(n=300, **truth):
    rng = np.random.default_rng(3)
    X = pl.DataFrame(
        {"p": 10 ** rng.uniform(-4, -1.2, n), "rtt": rng.uniform(0.01, 0.3, n), "rto": rng.uniform(0.2, 2, n)}
    )
    rates = PFTKFull().predict(X, **truth) * np.exp(rng.normal(0, 0.1, n))
    return X, pl.Series("rate", rates)


def test_polars_frames_go_through_search_and_pipelines():
    X, y = flows(b=1.0)
    assert (cross_val_score(PFTKFull(), X, y, cv=3, error_score="raise") > 0.95).all()
    search = GridSearchCV(PFTKFull(), {"b": [2, 1], "variant": ["send"]}, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_ == {"b": 1, "variant": "send"}
    fitted = make_pipeline(PFTKFull()).fit(X, y)[-1]
    assert fitted.params_["b"] == pytest.approx(1.0, abs=3 * fitted.params_se_["b"])
    assert fitted.n_features_in_ == 3
    assert list(fitted.feature_names_in_) == ["p", "rtt", "rto"]
    assert not hasattr(clone(fitted), "params_")


def test_frame_and_array_fit_alike():
    X, y = flows(b=1.3)
    of_frame, of_array = PFTKFull().fit(X, y), PFTKFull().fit(X.to_numpy(), y.to_numpy())
    assert of_frame.params_ == of_array.params_
    assert of_frame.params_se_ == of_array.params_se_


def test_models_do_not_import_scikit_learn():
    code = (
        "import sys, numpy as np; from tcpfit.models import get; p = np.array([0.01, 0.02, 0.05]); X = "
        "{'p': p, 'rtt': p}; m = get('mathis'); m.fit(X, m.predict(X, b=2)).score(X, p); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "scipy.optimize" in loaded
    assert [] == [name for name in loaded if name.split(".")[0] in ("sklearn", "polars", "pandas")]
