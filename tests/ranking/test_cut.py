"""Are the parameters of the flows and the ends of their intervals in the same units?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from simulated_flows import Sender

import tcpfit
from tcpfit.parameters import estimate
from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.growth import CUBIC_AS_RENO
from tcpfit.ranking.cut import Cut, cut

SAMPLES = Path(__file__).resolve().parents[2] / "sample-traces"


def of_sample(name: str) -> Cut:
    found = tcpfit.analyze(SAMPLES / name)
    return cut(Evidence(found.flows, found.events, found.rounds), found.parameters)


@pytest.mark.parametrize("sample", ["cubic.pcap.gz", "newreno-loss.pcap.gz"])
def test_every_value_lies_between_its_ends(sample: str) -> None:
    found = of_sample(sample)
    assert ("cubic" if "cubic" in sample else "reno") == found.family["family"].item()
    known = [name for name in found.value if np.isfinite(found.low[name]).all() and np.isfinite(found.high[name]).all()]
    assert "b" in known
    assert [name for name in known if not (found.low[name] <= found.value[name]).all()] == []
    assert [name for name in known if not (found.value[name] <= found.high[name]).all()] == []


def test_both_ends_of_b_are_as_a_reno_senders() -> None:
    parts = Sender(0.003, decrease=0.7, b=1.9).run(2500)
    parameters = estimate(*parts)
    (measured,) = parameters.filter(name="b").select("value", "low", "high").rows()
    found = cut(Evidence(*parts), parameters)
    ends = [float(side["b"].item()) for side in (found.value, found.low, found.high)]
    assert [CUBIC_AS_RENO * end for end in measured] == pytest.approx(ends)
