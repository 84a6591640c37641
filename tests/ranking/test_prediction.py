"""Does the interval of a prediction have the width that its parameters' intervals give it?"""

from __future__ import annotations

import numpy as np
import pytest

from tcpfit.models import get
from tcpfit.ranking.prediction import predict, spread


@pytest.mark.parametrize("low", [0.005, 0.009])
def test_an_interval_of_one_parameter_goes_over_into_the_prediction(low: float) -> None:
    """Mathis' rate goes with one over the root of p: half of p's interval in logarithms, the other way round."""
    model, flow = get("mathis"), {"p": np.array([0.01]), "rtt": np.array([0.1]), "b": np.array([1.0])}
    ends = [flow | {"p": np.array([end])} for end in (low, 0.02)]
    below, above = spread(model, predict(model, flow), flow, *ends)
    assert float(below[0]) == pytest.approx(-0.5 * np.log(0.02 / 0.01), rel=0.01)
    assert float(above[0]) == pytest.approx(0.5 * np.log(0.01 / low), rel=0.01)


@pytest.mark.parametrize(
    ("name", "zero", "high"),
    [("pftk-full", "p_indication", 0.004), ("newreno-noto", "q", 0.2), ("hysteresis", "q_tilde", 0.01)],
)
def test_a_rate_of_zero_may_be_as_high_as_its_interval_says(name: str, zero: str, high: float) -> None:
    """That no loss was seen, or none but the first of each event, bounds the prediction from one side only."""
    given = {"p": 0.01, "p_indication": 0.01, "rtt": 0.1, "rto": 0.4, "b": 1.0, "w_max": 40.0, "segments": 50.0}
    model, flow = get(name), {column: np.array([value]) for column, value in (given | {zero: 0.0}).items()}
    ends = [flow, flow | {zero: np.array([high])}]
    centre = predict(model, flow)
    below, above = (float(end[0]) for end in spread(model, centre, flow, *ends))
    course = [float(predict(model, flow | {zero: np.array([at])})[0] / centre[0]) for at in np.linspace(0.0, high, 101)]
    assert max(course) / min(course) > 1.1
    assert below == pytest.approx(np.log(min(course)), abs=0.003)
    assert above == pytest.approx(np.log(max(course)), abs=0.003)
