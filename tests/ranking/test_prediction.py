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
