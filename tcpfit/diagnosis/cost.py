"""What a cause cost: the rate the flow would have had without it.

**By the accounting**: what the flow moved in the cause's time would have moved at its reference rate. That is the rate
at its ceiling (window full, send buffer full, path full) where it spent a twentieth of the time and more there, else
the mean rate of the rest of its time, pauses apart; of losses only the ceiling is a reference. With T the duration and
B the bytes, of which t and b belong to the cause, and R the reference rate, the duration without it is T - t + b/R. A
window limit costs what twice the window would bring if nothing else came in its way: T - t/2. Where a tenth of the
time or less is left as a reference, nothing is said.
**By a model**: where the verdict of the ranking names models, the observed rate times the ratio of a model's
predictions with the parameter changed and as it is; low and high are the least and most of the models named.
**Interval**: by the accounting, bootstrap over the reference's stretches (200 draws, seeded).
**Joint**: where removing causes one by one brings together more than a fifth more or less than removing all of them at
once, they cannot be split, and that is said.
**Departures**: that the reference would last is an assumption: a flow without its losses fills the next limit.
**Validation**: tests/diagnosis/test_cost.py; docs/diagnosis.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tcpfit.diagnosis.causes import APPLICATION, BOTTLENECK, LOSS, SEND_BUFFER, STALLED, UNKNOWN, WINDOW
from tcpfit.models import catalogue
from tcpfit.parameters.intervals import Floats
from tcpfit.ranking.prediction import predict

CEILINGS = (WINDOW, SEND_BUFFER, BOTTLENECK)

ENOUGH = 0.05
"""Share of the time at a ceiling from which its rate is the reference."""

REST = 0.1
"""Share of the time that has to be left as a reference."""

JOINT = 0.2

DRAWS = 200
SEED = 1988


@dataclass(frozen=True)
class Cost:
    """The rate without a cause, in bit/s, its 95 % interval, and the seconds that the same bytes would take less.

    The interval is None where one stretch is all the reference that there is.
    """

    rate_bps: float
    low_bps: float | None
    high_bps: float | None
    gain_bps: float
    seconds: float
    basis: str


@dataclass(frozen=True)
class WhatIf:
    """The rate that models give for a change; low and high are the least and most of the models."""

    change: str
    rate_bps: float
    low_bps: float
    high_bps: float
    models: list[str]


def accounted(spans: Mapping[str, np.ndarray]) -> dict[str, Cost]:
    """The cost of every cause that has one, by the causes."""
    length = (spans["end_ns"] - spans["start_ns"]) / 1e9
    moved, cause = spans["bytes"], spans["cause"]
    total_s, total_b = float(length.sum()), float(moved.sum())
    if total_s <= 0 or total_b <= 0:
        return {}
    found = {}
    for name in dict.fromkeys(cause):
        if name in (UNKNOWN, BOTTLENECK):
            continue
        own = cause == name
        seconds, own_b = float(length[own].sum()), float(moved[own].sum())
        if name in (WINDOW, SEND_BUFFER):
            saved = seconds / 2
            rate = 8 * total_b / (total_s - saved)
            now = 8 * total_b / total_s
            basis = "at most, with twice the window, if nothing else limits the flow"
            found[name] = Cost(rate, now, rate, rate - now, saved, basis)
            continue
        reference = _reference(name, cause, length, total_s)
        if reference is None:
            continue
        at, basis = reference
        found_cost = _at_rate(total_s, total_b, seconds, own_b, length[at], moved[at], basis)
        if found_cost is not None:
            found[name] = found_cost
    return found


def _reference(name: str, cause: np.ndarray, length: Floats, total_s: float) -> tuple[np.ndarray, str] | None:
    """Which spans give the rate that the flow would have had in the cause's time, in words as well."""
    ceiling = np.isin(cause, CEILINGS)
    if length[ceiling].sum() >= ENOUGH * total_s:
        return ceiling, "at the rate it had at its limit"
    if name == LOSS:  # the rest of its time is slower still: timers, slow starts
        return None
    rest = (cause != name) & ~np.isin(cause, (APPLICATION, STALLED))
    if length[rest].sum() < REST * total_s:
        return None
    return rest, "at the rate of the rest of its time"


def _at_rate(
    total_s: float, total_b: float, seconds: float, own_b: float, length: Floats, moved: Floats, basis: str
) -> Cost | None:
    """The cost of `seconds` in which `own_b` bytes moved, had they moved at the rate of the reference's stretches."""
    if moved.sum() <= 0 or length.sum() <= 0:
        return None

    def saved(rate: Floats) -> Floats:
        return np.asarray(np.maximum(seconds - own_b / rate, 0.0))

    middle = float(saved(np.asarray(moved.sum() / length.sum())))
    if middle <= 0:
        return None
    now = 8 * total_b / total_s

    def rate_of(gain_s: float) -> float:
        return 8 * total_b / max(total_s - gain_s, 1e-9)

    low = high = None
    if len(length) > 1:
        drawn = np.random.default_rng(SEED).integers(0, len(length), (DRAWS, len(length)))
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = moved[drawn].sum(axis=1) / length[drawn].sum(axis=1)
        rates = rates[np.isfinite(rates) & (rates > 0)]
        if len(rates):
            low, high = (rate_of(float(x)) for x in np.quantile(saved(rates), (0.025, 0.975)))
    return Cost(rate_of(middle), low, high, rate_of(middle) - now, middle, basis)


def joint(costs: Mapping[str, Cost], total_s: float) -> bool:
    """The costs cannot be split: together they would save more than the flow took, or a fifth more than there is."""
    saved = sum(cost.seconds for cost in costs.values())
    return saved > (1 - JOINT) * total_s and len(costs) > 1


CHANGES: Sequence[tuple[str, Mapping[str, float | str]]] = (
    ("half the losses", {"p": 0.5, "p_indication": 0.5, "q_tilde": 0.5}),
    ("no bursts of losses", {"q_tilde": "p", "q": "p", "m": "one"}),
    ("the round trip at its least", {"rtt": "rtt_min"}),
    ("twice the window limit", {"w_max": 2.0}),
    ("no reaction to late segments", {"p_indication": "p"}),
)
"""What is asked of the models: parameters multiplied, or replaced by another one."""

NEEDS = {"no reaction to late segments": "a_h_reacted"}
"""Changes that are asked of those flows only that have this parameter. Loss indications are more than loss events for
other reasons too, a timeout out of a recovery among them; with needless recoveries they are the sender's reactions."""


def what_if(observed_bps: float, parameters: Mapping[str, float | None], models: Sequence[str]) -> list[WhatIf]:
    """What the models named say of every change that they know; those that change no parameter of theirs are left out.

    `parameters` are a flow's by their column names.
    """
    values = {name: np.asarray([np.nan if value is None else float(value)]) for name, value in parameters.items()}
    known = catalogue()
    found = []
    for text, change in CHANGES:
        if text in NEEDS and not np.isfinite(values.get(NEEDS[text], np.nan)).all():
            continue
        changed = dict(values)
        for name, how in change.items():
            if name not in values:
                continue
            if how == "one":
                changed[name] = np.ones(1)
            elif isinstance(how, str):
                changed[name] = values.get(how, np.full(1, np.nan))
            else:
                changed[name] = values[name] * how
        ratios = {}
        for name in models:
            if name not in known or not _uses(name, change):
                continue
            before, after = float(predict(known[name], values)[0]), float(predict(known[name], changed)[0])
            if np.isfinite(before) and np.isfinite(after) and before > 0 and abs(after / before - 1) > 1e-6:
                ratios[name] = after / before
        if ratios:
            every = list(ratios.values())
            found.append(
                WhatIf(
                    text, observed_bps * every[0], observed_bps * min(every), observed_bps * max(every), list(ratios)
                )
            )
    return found


def _uses(name: str, change: Mapping[str, float | str]) -> bool:
    return any((p.column or p.name) in change for p in catalogue()[name].parameters)
