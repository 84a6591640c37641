"""What models say of a change: the observed rate times the ratio of a model's predictions, changed and as it is.

**Models**: those that the verdict of the ranking names and that know a parameter of the change; the rate is that of the
first. What is made of losses is that of the flow's steady part, as the ranking has it: what slow start lost when it
overshot comes not again.
**Interval**: the parameters are drawn from their 95 % intervals (64 draws, the loss rates together, as for the interval
of a prediction) and the ratio is taken draw by draw, so that what the change leaves as it is cancels; low and high are
the 2.5 and 97.5 percentiles of the draws of all models named, each with the same weight, times what models get wrong of
a change: log-normal with the deviation that 21 pairs of transfers show, `MODEL_ERROR`.
**Together**: two changes at once against one by one, by the first model that knows both.
**Validation**: tests/diagnosis/test_changes.py; docs/diagnosis/counterfactuals.md has pairs of transfers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import special

from tcpfit.diagnosis.cost import Together
from tcpfit.models import Model, catalogue
from tcpfit.parameters.intervals import Floats
from tcpfit.ranking.prediction import draws, predict
from tcpfit.ranking.variants import extended, extensions

Change = Mapping[str, float | str]

TIMERS = "timers that take no time"

CHANGES: Mapping[str, Change] = {
    "half the losses": {"p": 0.5, "p_indication": 0.5, "q_tilde": 0.5},
    "no bursts of losses": {"q_tilde": "p", "q": "p", "m": "one"},
    "the round trip at its least": {"rtt": "rtt_min"},
    "twice the window limit": {"w_max": 2.0},
    "no reaction to late segments": {"p_indication": "p"},
    TIMERS: {"rto": 1e-6},
}
"""What is asked of the models: parameters multiplied, or replaced by another one."""

NEEDS = {"no reaction to late segments": "a_h_reacted"}
"""Changes that are asked of those flows only that have this parameter. Loss indications are more than loss events for
other reasons too, a timeout out of a recovery among them; with needless recoveries they are the sender's reactions."""

MEASURED = {TIMERS: "p_to"}
"""Changes that are asked of models only with this parameter measured, where the printed laws derive it: from the window
they reckon far more timeouts than senders of today have."""

MODEL_ERROR = 0.06
"""Standard deviation of ln(said/measured) over the pairs of transfers of docs/diagnosis/counterfactuals.md of which
models say something, less what is chance in the measured ratios."""

STEPS = 199
"""Quantiles of the error that stand for its distribution."""

ERRORS: Floats = np.exp(MODEL_ERROR * special.ndtri((np.arange(STEPS) + 0.5) / STEPS))

LEAST = 1e-6
"""A ratio nearer to one says nothing."""


@dataclass(frozen=True)
class Estimate:
    """A parameter of a flow and its 95 % interval; NaN where there is none."""

    value: float
    low: float = np.nan
    high: float = np.nan


@dataclass(frozen=True)
class WhatIf:
    """The rate that models give for a change, with its interval."""

    change: str
    rate_bps: float
    low_bps: float
    high_bps: float
    models: list[str]


class Models:
    """The models named for a flow, asked for changes of the flow's parameters, by column name."""

    def __init__(self, observed_bps: float, parameters: Mapping[str, Estimate], names: Sequence[str]) -> None:
        self._observed_bps = observed_bps
        self._models = {name: catalogue()[name] for name in names if name in catalogue()}
        self._with = {parameter: _extended(self._models, parameter) for parameter in MEASURED.values()}
        ends = [
            {name: np.array([getattr(e, end)]) for name, e in parameters.items()} for end in ("value", "low", "high")
        ]
        values = ends[0]
        moved = draws(sorted(values), *ends)
        self._draws = next((len(column) for column in moved.values()), 0)
        # the estimate first, then the draws
        self._values = {
            name: np.concatenate((value, moved[name][:, 0] if name in moved else np.repeat(value, self._draws)))
            for name, value in values.items()
        }

    def what_if(self) -> list[WhatIf]:
        """What is said of every change that a model knows; one that changes no parameter of theirs is left out."""
        found = []
        for text in self._asked():
            ratios = self._ratios([text], self._asked_of([text]))
            if not ratios:
                continue
            pooled = np.concatenate([_known(ratio) for ratio in ratios.values()])
            low, high = (float(x) for x in np.quantile(np.outer(pooled, ERRORS), (0.025, 0.975), method="hazen"))
            first = float(next(iter(ratios.values()))[0])
            rate, least, most = (self._observed_bps * ratio for ratio in (first, min(low, first), max(high, first)))
            found.append(WhatIf(text, rate, least, most, list(ratios)))
        return found

    def together(self, seconds: float) -> list[Together]:
        """What each two changes save together of the flow's seconds, by the first model that knows both."""
        found = []
        for one, other in combinations(self._asked(), 2):
            asked = self._asked_of([one, other])
            both = self._ratios([one, other], asked)
            alone = [self._ratios([change], asked) for change in (one, other)]
            name = next((name for name in both if all(name in ratios for ratios in alone)), None)
            if name is None:
                continue
            saved, *apart = (seconds * (1 - 1 / float(ratios[name][0])) for ratios in (both, *alone))
            rate = self._observed_bps * float(both[name][0])
            found.append(Together((one, other), rate, saved, sum(apart), f"by {name}"))
        return found

    def _asked(self) -> list[str]:
        return [text for text in CHANGES if text not in NEEDS or self._has(NEEDS[text])]

    def _has(self, name: str) -> bool:
        return bool(np.isfinite(self._values.get(name, np.full(1, np.nan))[0]))

    def _asked_of(self, changes: Sequence[str]) -> dict[str, Model]:
        measured = next((MEASURED[text] for text in changes if text in MEASURED), None)
        return self._models if measured is None else self._with[measured]

    def _ratios(self, changes: Sequence[str], models: Mapping[str, Model]) -> dict[str, Floats]:
        """Predictions with the changes over those without, of each model that knows all of them: estimate and draws."""
        asked = [(name, how) for text in changes for name, how in CHANGES[text].items() if name in self._values]
        changed = dict(self._values)
        for name, how in asked:
            if how == "one":
                changed[name] = np.ones_like(changed[name])
            elif isinstance(how, str):
                changed[name] = self._values.get(how, np.full_like(changed[name], np.nan))
        for name, how in asked:  # after all are in their places: half of what takes the place
            if not isinstance(how, str):
                changed[name] = changed[name] * how
        found = {}
        for name, model in models.items():
            columns = {p.column or p.name for p in model.parameters}
            if not all(columns & CHANGES[text].keys() for text in changes):
                continue
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = self._predict(model, changed) / self._predict(model, self._values)
            if np.isfinite(ratio[0]) and abs(ratio[0] - 1) > LEAST:
                found[name] = ratio
        return found

    def _predict(self, model: Model, values: Mapping[str, Floats]) -> Floats:
        bounds = {p.column or p.name: p for p in model.parameters}
        inside = {
            name: np.clip(value, bounds[name].low, bounds[name].high) if name in bounds else value
            for name, value in values.items()
        }
        return predict(model, inside)


def _extended(models: Mapping[str, Model], parameter: str) -> dict[str, Model]:
    """The models that can take the measured parameter, with it."""
    return {name: extended(model, parameter) for name, model in models.items() if parameter in extensions(model)}


def _known(ratio: Floats) -> Floats:
    """The draws of a ratio where there are any, else the ratio of the estimates."""
    draws = ratio[1:][np.isfinite(ratio[1:])]
    return draws if len(draws) else ratio[:1]
