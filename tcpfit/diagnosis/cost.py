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

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

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
SHARES = (0.025, 0.975)

WIDENED = "at most, with twice the window, if nothing else limits the flow"
"""What the cost of a limit on the window rests on."""

AT_ONCE = 1 << 20
"""Values drawn at once: those of many flows with few stretches."""


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

    @property
    def at_most(self) -> bool:
        """The rate and the seconds are bounds: what is next in the way is not known."""
        return self.basis == WIDENED


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


@dataclass(frozen=True)
class _Held:
    """A cause of a flow held against its reference: what the flow took and moved, what the cause did, and the lengths,
    bytes and mean rate of the reference's stretches."""

    total_s: float
    total_b: float
    seconds: float
    own_b: float
    length: Floats
    moved: Floats
    rate: float
    basis: str

    def saved(self, rate: Floats) -> Floats:
        """Seconds less, had the cause's bytes moved at that rate."""
        return np.asarray(np.maximum(self.seconds - self.own_b / rate, 0.0))

    def cost(self, ends_s: tuple[float, float] | None) -> Cost | None:
        """What the cause cost, given the ends of the seconds saved; None where it cost nothing."""
        middle = float(self.saved(np.asarray(self.rate)))
        if middle <= 0:
            return None

        def rate_of(gain_s: float) -> float:
            return 8 * self.total_b / max(self.total_s - gain_s, 1e-9)

        low, high = (None, None) if ends_s is None else map(rate_of, ends_s)
        now = 8 * self.total_b / self.total_s
        return Cost(rate_of(middle), low, high, rate_of(middle) - now, middle, self.basis)


def accounted(flows: Iterable[Mapping[str, np.ndarray]]) -> list[dict[str, Cost]]:
    """The cost of every cause that has one, by the causes, of each flow's spans."""
    found: list[dict[str, Cost]] = []
    held: list[tuple[int, str, _Held]] = []
    for flow, spans in enumerate(flows):
        length = (spans["end_ns"] - spans["start_ns"]) / 1e9
        moved, total_s, total_b = spans["bytes"], float(length.sum()), float(spans["bytes"].sum())
        found.append({})
        if total_s <= 0 or total_b <= 0:
            continue
        at = _places(spans["cause"])
        for name, own in at.items():
            if name in (UNKNOWN, BOTTLENECK):
                continue
            seconds, own_b = float(length[own].sum()), float(moved[own].sum())
            if name in (WINDOW, SEND_BUFFER):
                saved = seconds / 2
                rate = 8 * total_b / (total_s - saved)
                now = 8 * total_b / total_s
                found[flow][name] = Cost(rate, now, rate, rate - now, saved, WIDENED)
                continue
            reference = _reference((name,), at, length, total_s)
            if reference is None:
                continue
            there, basis = reference
            stretches, sizes = length[there], moved[there]
            lasted, carried = float(stretches.sum()), float(sizes.sum())
            if carried > 0 and lasted > 0:
                case = _Held(total_s, total_b, seconds, own_b, stretches, sizes, carried / lasted, basis)
                held.append((flow, name, case))
    ends = _intervals([case for *_, case in held])
    for (flow, name, case), ends_s in zip(held, ends, strict=True):
        cost = case.cost(ends_s)
        if cost is not None:
            found[flow][name] = cost
    return found


def _places(cause: np.ndarray) -> dict[str, NDArray[np.bool_]]:
    """Which spans each cause has."""
    return {name: cause == name for name in dict.fromkeys(cause.tolist())}


def _any(at: Mapping[str, NDArray[np.bool_]], names: Iterable[str]) -> NDArray[np.bool_]:
    """Which spans any of the causes has."""
    own = [at[name] for name in dict.fromkeys(names) if name in at]
    return reduce(np.logical_or, own) if own else np.zeros(len(next(iter(at.values()))), np.bool_)


def _reference(
    names: tuple[str, ...], at: Mapping[str, NDArray[np.bool_]], length: Floats, total_s: float
) -> tuple[NDArray[np.bool_], str] | None:
    """Which spans give the rate that the flow would have had in the causes' time, in words as well."""
    ceiling = _any(at, CEILINGS)
    if length[ceiling].sum() >= ENOUGH * total_s:
        return ceiling, "at the rate it had at its limit"
    if LOSS in names:  # the rest of its time is slower still: timers, slow starts
        return None
    rest = ~_any(at, (*names, APPLICATION, STALLED))
    if length[rest].sum() < REST * total_s:
        return None
    return rest, "at the rate of the rest of its time"


def _intervals(cases: Sequence[_Held]) -> list[tuple[float, float] | None]:
    """Ends of the seconds saved, by a bootstrap of the reference's stretches: cases of as many together.

    None where one stretch is all the reference that there is, and where no draw has a rate.
    """
    ends: list[tuple[float, float] | None] = [None] * len(cases)
    by_size: dict[int, list[int]] = defaultdict(list)
    for number, case in enumerate(cases):
        by_size[len(case.length)].append(number)
    for size, numbers in by_size.items():
        if size == 1:
            continue
        drawn = np.random.default_rng(SEED).integers(0, size, (DRAWS, size))
        step = max(AT_ONCE // drawn.size, 1)
        for first in range(0, len(numbers), step):
            places = numbers[first : first + step]
            some = [cases[place] for place in places]
            moved, length = (
                np.take(np.stack(values), drawn, axis=1).sum(axis=2)
                for values in ([case.moved for case in some], [case.length for case in some])
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                rates = moved / length
            known = np.isfinite(rates) & (rates > 0)
            whole = known.all(axis=1)
            if whole.any():
                together = [case.saved(rate) for case, rate, every in zip(some, rates, whole, strict=True) if every]
                own = np.array(places)[whole].tolist()
                for place, *both in zip(own, *np.quantile(together, SHARES, axis=1).tolist(), strict=True):
                    ends[place] = both[0], both[1]
            for i in np.flatnonzero(~whole & known.any(axis=1)).tolist():
                low, high = np.quantile(some[i].saved(rates[i][known[i]]), SHARES).tolist()
                ends[places[i]] = low, high
    return ends


def accounted_together(spans: Mapping[str, np.ndarray], costs: Mapping[str, Cost]) -> list[Together]:
    """What each two of the causes that have a cost would bring together, ceilings apart.

    With a ceiling all are held against the same rate, and their savings add up. Without, each is held against the rest
    of the time, in which the other one is: taken away together, that rest is faster.
    """
    length, moved, at = (spans["end_ns"] - spans["start_ns"]) / 1e9, spans["bytes"], _places(spans["cause"])
    total_s, total_b = float(length.sum()), float(moved.sum())
    found = []
    for one, other in combinations(sorted(name for name in costs if name not in CEILINGS), 2):
        reference = _reference((one, other), at, length, total_s)
        if reference is None:
            continue
        there, basis = reference
        own = _any(at, (one, other))
        rate = float(moved[there].sum() / length[there].sum())
        saved = max(float(length[own].sum() - moved[own].sum() / rate), 0.0) if rate > 0 else 0.0
        apart = costs[one].seconds + costs[other].seconds
        found.append(Together((one, other), 8 * total_b / max(total_s - saved, 1e-9), saved, apart, basis))
    return found
