"""What a cause cost by the accounting: the rate the flow would have had without it. `changes` has what models say.

**Rule**: what the flow moved in the cause's time would have moved at its reference rate. That is the rate
at its ceiling (window full, send buffer full, path full) where it spent a twentieth of the time and more there, else
the mean rate of the rest of its time, pauses apart; of losses only the ceiling is a reference. With T the duration and
B the bytes, of which t and b belong to the cause, and R the reference rate, the duration without it is T - t + b/R. A
window limit costs what twice the window would bring if nothing else came in its way: T - t/2. Where a tenth of the
time or less is left as a reference, nothing is said.
**Interval**: bootstrap over the reference's stretches (200 draws, seeded).
**Joint**: two causes taken away together, against the sum of one by one. Where that is a fifth more or less, they
cannot be split, and it is said with both figures.
**Departures**: that the reference would last is an assumption: a flow without its losses fills the next limit.
**Validation**: tests/diagnosis/test_cost.py; docs/diagnosis.md has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tcpfit.diagnosis.causes import APPLICATION, BOTTLENECK, LOSS, SEND_BUFFER, STALLED, UNKNOWN, WINDOW
from tcpfit.parameters.intervals import Floats

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
class Together:
    """What two causes or changes bring together: the rate, the seconds saved, and the sum of what each saves alone."""

    of: tuple[str, str]
    rate_bps: float
    seconds: float
    apart_s: float
    basis: str

    @property
    def joint(self) -> bool:
        """They cannot be split: together they bring a fifth more or less than one by one."""
        return abs(self.seconds - self.apart_s) > JOINT * max(self.seconds, self.apart_s)


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
        reference = _reference((name,), cause, length, total_s)
        if reference is None:
            continue
        at, basis = reference
        found_cost = _at_rate(total_s, total_b, seconds, own_b, length[at], moved[at], basis)
        if found_cost is not None:
            found[name] = found_cost
    return found


def _reference(
    names: tuple[str, ...], cause: np.ndarray, length: Floats, total_s: float
) -> tuple[np.ndarray, str] | None:
    """Which spans give the rate that the flow would have had in the causes' time, in words as well."""
    ceiling = np.isin(cause, CEILINGS)
    if length[ceiling].sum() >= ENOUGH * total_s:
        return ceiling, "at the rate it had at its limit"
    if LOSS in names:  # the rest of its time is slower still: timers, slow starts
        return None
    rest = ~np.isin(cause, (*names, APPLICATION, STALLED))
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


def accounted_together(spans: Mapping[str, np.ndarray], costs: Mapping[str, Cost]) -> list[Together]:
    """What each two of the causes that have a cost would bring together, ceilings apart.

    With a ceiling all are held against the same rate, and their savings add up. Without, each is held against the rest
    of the time, in which the other one is: taken away together, that rest is faster.
    """
    length, moved, cause = (spans["end_ns"] - spans["start_ns"]) / 1e9, spans["bytes"], spans["cause"]
    total_s, total_b = float(length.sum()), float(moved.sum())
    found = []
    for one, other in combinations(sorted(name for name in costs if name not in CEILINGS), 2):
        reference = _reference((one, other), cause, length, total_s)
        if reference is None:
            continue
        at, basis = reference
        own = np.isin(cause, (one, other))
        rate = float(moved[at].sum() / length[at].sum())
        saved = max(float(length[own].sum() - moved[own].sum() / rate), 0.0) if rate > 0 else 0.0
        apart = costs[one].seconds + costs[other].seconds
        found.append(Together((one, other), 8 * total_b / max(total_s - saved, 1e-9), saved, apart, basis))
    return found
