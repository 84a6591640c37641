"""Is what makes no sense to a public function of Python told in one clear sentence, never by the error of a library?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tcpfit import arguments
from tcpfit.exceptions import InvalidParameter
from tcpfit.models import BohacekDynamics, BohacekSack, Catnip, Cubic, Hysteresis, Mathis, PFTKFull, get

SAMPLE = Path(__file__).resolve().parents[1] / "sample-traces" / "newreno-loss.pcap.gz"

Case = tuple[Callable[[Any], Any], str]


FLOW = {"segments": 10, "p": 0.01, "rtt": 0.1, "rto": 0.5}
TABLE = {"p": [0.1, 0.01, 0.02], "rtt": [0.1] * 3, "rto": [0.5] * 3}
SERIES: dict[str, Any] = {"times": [0, 5], "losses": [0.01, 0.02], "rtt": 0.1, "rto": 0.5, "end": 10}


def drawn(**given: Any) -> Callable[[Any], Any]:
    return lambda _: Hysteresis().simulate(**({"draws": 3, "seed": 1} | FLOW | given))


def course(**given: Any) -> Callable[[Any], Any]:
    return lambda _: BohacekDynamics().trajectory(**(SERIES | given))


MODELS: list[Case] = [
    (lambda _: get(["mathis"]), "There is no model ['mathis']; known are mathis"),
    (lambda _: get("mathis").predict(p="0.1", rtt=1), "p of mathis must be a number or an array of numbers, got '0.1'"),
    (lambda _: get("mathis").predict(pl.LazyFrame(TABLE)), "mathis does not take lazy frames; give it X.collect()"),
    (lambda _: Mathis(b="x").predict(p=0.1, rtt=1), "b of mathis must be a number or an array of numbers, got 'x'"),
    (lambda _: Cubic(as_printed="x").predict(p=0.1, rtt=1), "as_printed of cubic must be one of True, False, got 'x'"),
    (lambda _: BohacekSack(c1="x").predict(p=0.1, rtt=1, rto=1), "c1 of bohacek-sack must be a number, got 'x'"),
    (
        lambda _: BohacekSack().timeout_rate("x", 0.1),
        "p of bohacek-sack must be a number or an array of numbers, got 'x'",
    ),
    (lambda _: Hysteresis(stop="x").predict(**FLOW), "stop of hysteresis must be a number, got 'x'"),
    (lambda _: Catnip(stop=None).predict(**FLOW), "stop of catnip must be a number, got None"),
    (lambda _: PFTKFull(free=5).fit(TABLE, [1, 2, 3]), "free of pftk-full must be a list of names, got 5"),
    (lambda _: Mathis().score(TABLE, [1, 2]), "mathis got 3 values of p, but 2 of y"),
    (lambda _: Mathis().score(TABLE, 5), "mathis got 3 values of p, but 1 of y"),
    (lambda _: Mathis().score(TABLE, ["a", "b", "c"]), "y of mathis must be a number or an array of numbers"),
    (lambda _: Mathis().score(TABLE, None), "mathis requires y to be passed"),
    (lambda _: Mathis().domain(p=0.1, rtt=1, z=1), "mathis has no parameter 'z'; it takes p, rtt, b"),
    (lambda _: Hysteresis().variance(**FLOW, z=1), "hysteresis has no parameter 'z'"),
    (lambda _: Hysteresis().variance(**(FLOW | {"p": {}})), "p of hysteresis must be a number or an array of numbers"),
    (drawn(draws="x"), "draws must be a whole number of at least 0, got 'x'"),
    (drawn(draws=-1), "draws must be a whole number of at least 0, got -1"),
    (drawn(seed=1.5), "seed must be a whole number of at least 0, got 1.5"),
    (drawn(seed=-1), "seed must be a whole number of at least 0, got -1"),
    (drawn(z=1), "hysteresis has no parameter 'z'"),
    (drawn(p="x"), "p of hysteresis must be a number or an array of numbers, got 'x'"),
    (lambda _: Hysteresis().distribution(atoms=0, **FLOW), "atoms must be a whole number of at least 1, got 0"),
    (
        lambda _: Hysteresis().draw_losses(draws=1.5, seed=1, **FLOW),
        "draws must be a whole number of at least 0, got 1.5",
    ),
    (lambda _: BohacekDynamics(c1="x"), "c1 of bohacek-dynamics must be a number, got 'x'"),
    (lambda _: BohacekDynamics(mean=["12"]), "mean of bohacek-dynamics must be one of 12, 13, got ['12']"),
    (course(times="x"), "times of bohacek-dynamics must be a number or an array of numbers, got 'x'"),
    (course(losses=1j), "Complex data not supported: losses of bohacek-dynamics must be real"),
    (course(rtt="x"), "rtt of bohacek-dynamics must be a number, got 'x'"),
    (course(rto=[1, 2]), "rto of bohacek-dynamics must be a number, got [1, 2]"),
    (course(end=None), "end of bohacek-dynamics must be a number, got None"),
    (course(end=1e-12), "end of bohacek-dynamics must come after the first time, 0 s, got 1e-12"),
    (course(step=(5,)), "step of bohacek-dynamics must be a number, got (5,)"),
    (course(start=5), "start of bohacek-dynamics must be a list of two numbers, got 5"),
    (course(start=(5,)), "start of bohacek-dynamics must be a mean of at least 1 and a second moment not below its"),
    (course(start=("a", "b")), "each of start of bohacek-dynamics must be a number, got 'a'"),
]


@pytest.mark.parametrize(("call", "sentence"), MODELS)
def test_misuse_is_one_sentence(call: Callable[[Any], Any], sentence: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        call(None)
    said = str(caught.value)
    assert sentence in said
    assert "\n" not in said and len(said) < 400


def test_what_makes_sense_is_taken_as_before() -> None:
    assert BohacekSack().timeout_rate(0.01, 0.1) == BohacekSack().timeout_rate(np.array([0.01]), np.array([0.1]))[0]
    as_printed = Hysteresis(as_printed=True).variance(**FLOW)
    assert as_printed == Hysteresis().variance(as_printed=True, **FLOW) != Hysteresis().variance(**FLOW)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a\nb", r"'a\nb'"), (5, "5"), (None, "None"), ([1] * 99, "[" + "1, " * 18 + "1,..."), (Path("x"), "a PosixPath")],
)
def test_a_value_is_shown_on_one_line(value: object, expected: str) -> None:
    assert expected == arguments.shown(value)
