"""Transfer time with a memory from loss to loss (Li and Williamson): T = sum over cycles of E[T_ss] + T_loss (12).

A cycle is a slow start up to a loss, (3) to (6), and that loss: with probability Q(p, w) (8) a timeout, which costs
p_ss E[Z^TO] (9) and leaves a window of 1, else a fast retransmit, which costs p_ss RTT and leaves half the window (11).
A cycle that begins with a window of 1 also waits T_delack for its first ACK. Cycles follow while d >= 1 segments are
left.

The paper draws the coin of Q and averages. Here the mean and the variance are exact: d does not depend on the coin, and
a timeout forgets the window, so after k cycles there are only as many states as cycles since the last timeout, and
their probabilities and first moments are carried on (O(k^2)). The windows of two states differ by 1/(2 gamma) of what
they did a cycle before: past 40 cycles they are one state.

**Symbols** N: segments of the transfer (`segments`), d: those left; p: loss probability of a segment (1, `q_tilde`);
RTT (s, `rtt`); T0: mean first timeout of a series (s, `rto`); b: rounds per segment of window growth (1, `b`), gamma =
1 + 1/b; Wmax: window limit (segments, `w_max`); w1: first window of the first cycle (segments); T_delack (s).

**Domain** N >= 1, 0 <= p <= 0.95, times within 1e-9 and 1e9 s, 1e-3 <= b <= 1e3, Wmax >= 1, w1 >= 1 (at most Wmax);
T_delack may be 0; nan outside. A cycle carries (1-p)/p segments, so that above p = 0.95 their number grows without
bound. T is not continuous: where one cycle more is needed it jumps by that cycle's cost, and T can fall a little where
p rises.

**Departures** `b = 2 (gamma = 1.5), w1 = 1, delayed_ack = 0.1 s`. The paper's b is segments per ACK, which makes gamma
the factor of a round of slow start; of a flow the growth in congestion avoidance is measured, and stands for it. (11)
halves min(E[W_ss], Wmax); (12) has T_delack (the text); `as_printed=True` does neither. "Until all data are
transferred" would never end, for E[d_ss] < d: cycles end below `stop = 1` segments, each with its loss phase weighted
by p_ss. This matters: N = 12, p = 0.05, RTT 0.2 s, T0 1 s take 2.07 s, with stop = 0.1 2.26 s. Q is taken at
min(E[W_ss], Wmax). The handshake is left out, as in the paper's figures.
Extensions: `whole_rounds=True` (`transfer_time`); `Hysteresis.draw_losses` draws how many segments lie between losses,
of which the paper takes the mean.

**Validation** `tests/models/test_model_values.py::test_grid[li_hysteresis.mean]`, `[li_hysteresis.var]`; against every
sequence of coins, and against the paper's random algorithm, `test_hysteresis.py`. Tables 2 and 3 are not reproduced:
they give mean squared errors against simulations that are not printed.

**Reference** Li, Williamson: A Hysteresis Model for Web/TCP Transfer Latency, MASCOTS 2004,
doi:10.1109/MASCOT.2004.1348194.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tcpfit import arguments
from tcpfit.exceptions import InvalidParameter
from tcpfit.models.base import Array, Assumption, Parameter
from tcpfit.models.timeouts import timeout_duration, timeout_probability
from tcpfit.models.transfer_time import (
    DELAYED_ACK,
    RTO,
    RTT,
    SEGMENTS,
    W_1,
    W_MAX,
    B,
    TransferTime,
    loss_probability,
    segments_before_loss,
    slow_start_time,
    window_after_slow_start,
)

Rows: TypeAlias = NDArray[np.intp]
State: TypeAlias = tuple[float, Array, Array]  # window, times and their probabilities
Seen: TypeAlias = tuple[Rows, Array, Array, Array, Array]

STATES = 40  # cycles since a timeout that are told apart: (2 gamma)^-40 is 1e-19 for b = 2, and 1e-12 at most
BLOCK = 256  # flows at once: arrays that stay in the cache
LONG = 64  # cycles after which a flow whose state repeats is carried on at once
LARGEST_P = 0.95


@dataclass(frozen=True)
class Path:
    """Parameters of flows (arrays over flows) and the conventions of their cycles."""

    p: Array
    RTT: Array
    T0: Array
    Wmax: Array
    gamma: Array
    delayed_ack: Array
    as_printed: bool = False
    whole_rounds: bool = False

    def __getitem__(self, rows: Any) -> Path:
        p, RTT, T0, Wmax, gamma, wait = (
            x[rows] for x in (self.p, self.RTT, self.T0, self.Wmax, self.gamma, self.delayed_ack)
        )
        return Path(p, RTT, T0, Wmax, gamma, wait, self.as_printed, self.whole_rounds)


@dataclass(frozen=True)
class Cycle:
    """One cycle from each window: what it costs either way, and the windows it leaves. Arrays (flows, states)."""

    Q: Array
    after_timeout: Array  # cost in seconds if the loss ends in a timeout
    after_retransmit: Array  # cost if not
    grown: Array  # E[W_ss], (5)
    halved: Array  # w1 of the next cycle after a fast retransmit, (11)


def sent_in_cycle(p: Array, d: Array) -> tuple[Array, Array]:
    # (3) E[d_ss] and (7) p_ss
    return segments_before_loss(p, d), loss_probability(p, d)


def cycle(path: Path, E_d: Array, p_ss: Array, w1: Array) -> Cycle:
    """(4) to (11) for flows with E_d segments to send in the cycle, from each of the windows w1."""
    p, RTT, T0, Wmax, gamma = (x[:, None] for x in (path.p, path.RTT, path.T0, path.Wmax, path.gamma))
    sent, p_ss = E_d[:, None], p_ss[:, None]
    grown = window_after_slow_start(sent, w1, gamma)
    w = np.minimum(grown, Wmax)
    T_ss = np.maximum(slow_start_time(sent, w1, gamma, Wmax, RTT, path.whole_rounds), 0.0)
    if not path.as_printed:
        T_ss = T_ss + path.delayed_ack[:, None] * (w1 == 1)
    return Cycle(
        timeout_probability(p, w),
        T_ss + p_ss * timeout_duration(p, T0),
        T_ss + p_ss * RTT,
        grown,
        np.maximum((grown if path.as_printed else w) / 2, 1.0),
    )


@dataclass
class States:
    """Where flows stand between cycles: arrays (flows, states), and the moments so far (flows).

    `first` holds E[T - E[T]; the flow is in that state], so that the variance needs no second moment a state.
    """

    w1: Array
    probability: Array
    first: Array
    mean: Array
    variance: Array

    @classmethod
    def start(cls, w1: Array) -> States:
        """All flows in one state, nothing sent."""
        one = w1[:, None].copy()
        return cls(one, np.ones_like(one), np.zeros_like(one), np.zeros(len(w1)), np.zeros(len(w1)))

    def __getitem__(self, rows: Any) -> States:
        return States(
            self.w1[rows], self.probability[rows], self.first[rows], self.mean[rows].copy(), self.variance[rows].copy()
        )


def _in_turn(of_states: Array) -> Array:
    """Sums over the states, the first one first: `sum` adds in an order that depends on the flows beside one."""
    return np.asarray(np.cumsum(of_states, axis=1)[:, -1])


def _spend(states: States, now: Cycle) -> tuple[Array, Array]:
    """Add the cycle's cost to mean and variance; what is left of `first` in (timeout, fast retransmit), per state."""
    to, fr = states.probability * now.Q, states.probability * (1 - now.Q)
    mean = _in_turn(to * now.after_timeout + fr * now.after_retransmit)
    late, soon = now.after_timeout - mean[:, None], now.after_retransmit - mean[:, None]
    first_to = states.first * now.Q + to * late
    first_fr = states.first * (1 - now.Q) + fr * soon
    # Var(T + c) = Var T + E[(c - E c)^2] + 2 E[(T - E T)(c - E c)]
    cross = states.first * (now.Q * late + (1 - now.Q) * soon)
    states.variance += _in_turn(to * late**2 + fr * soon**2 + 2 * cross)
    states.mean += mean
    return first_to, first_fr


def _move(states: States, now: Cycle, first_to: Array, first_fr: Array) -> States:
    """The states after the cycle: a timeout leads to the first, a fast retransmit to the next one."""
    to, fr = states.probability * now.Q, states.probability * (1 - now.Q)
    flows, size = to.shape
    grown = min(size + 1, STATES)
    w1, probability, first = np.ones((flows, grown)), np.empty((flows, grown)), np.empty((flows, grown))
    probability[:, 0], first[:, 0] = _in_turn(to), _in_turn(first_to)
    w1[:, 1:], probability[:, 1:], first[:, 1:] = (x[:, : grown - 1] for x in (now.halved, fr, first_fr))
    if size == STATES:
        probability[:, -1] += fr[:, -1]
        first[:, -1] += first_fr[:, -1]
    used = grown
    while used > 1 and not (probability[:, used - 1] > 1e-30).any():
        used -= 1
    return States(w1[:, :used], probability[:, :used], first[:, :used], states.mean, states.variance)


def after_last(path: Path, now: Cycle) -> Array:
    # section 5: w1 = gamma E[W_ss], at least 2 and at most Wmax, where no loss lies between two steps
    return np.minimum(np.maximum(path.gamma[:, None] * now.grown, 2.0), path.Wmax[:, None])


def carry(path: Path, d: Array, states: States, stop: float, keep: float = 0.0, growing_on: bool = False) -> States:
    """Cycles while d - keep >= stop.

    `keep` segments are left for later: a cycle sends at most d - keep, and is then lost with 1 - (1-p)^(d - keep).
    `growing_on` replaces the windows at the end by gamma E[W_ss] of the last cycle, between 2 and Wmax: what goes on
    without a loss between (CATNIP). Each state then holds both outcomes of its last coin.
    """
    flows = len(d)
    d, rows = d.copy(), np.arange(flows, dtype=np.intp)
    ended: list[tuple[Rows, States]] = []
    done = d - keep < stop
    if done.any():
        ended.append((rows[done], states[done]))
        path, d, rows, states = path[~done], d[~done], rows[~done], states[~done]
    count = 0
    seen: Seen | None = None
    while rows.size:
        E_d, p_ss = sent_in_cycle(path.p, d)
        if keep:
            cut = E_d > d - keep
            E_d = np.where(cut, d - keep, E_d)
            p_ss = np.where(cut, sent_in_cycle(path.p, d - keep)[1], p_ss)
        now = cycle(path, E_d, p_ss, states.w1)
        before = states.mean.copy(), states.variance.copy()
        first_to, first_fr = _spend(states, now)
        d = d - E_d
        # a cycle of all that is left (p = 0, or cut to `keep`) leaves rounding
        over = (d - keep < stop) | (d - keep <= 1e-9 * E_d)
        if over.any():
            ended.append((rows[over], _last(path, states, now, first_to, first_fr, over, growing_on)))
        states = _move(states, now, first_to, first_fr)
        if over.any():
            on = ~over
            path, d, rows, states = path[on], d[on], rows[on], states[on]
            before = before[0][on], before[1][on]
        count += 1
        if count % LONG == 0 and rows.size:
            seen = _skip(path, d, E_d[~over], states, seen, rows, before)
    return _join(ended, flows)


def _last(
    path: Path, states: States, now: Cycle, first_to: Array, first_fr: Array, over: NDArray[np.bool_], growing_on: bool
) -> States:
    if growing_on:
        return States(after_last(path, now), states.probability, first_to + first_fr, states.mean, states.variance)[
            over
        ]
    return _move(states, now, first_to, first_fr)[over]


def _skip(
    path: Path, d: Array, E_d: Array, states: States, seen: Seen | None, rows: Rows, before: tuple[Array, Array]
) -> Seen:
    """Flows whose cycles repeat to the last digit are carried on to where d begins to matter again.

    While (1-p)^d is below rounding every cycle sends the same, so the states settle; mean and variance then grow by the
    same amount a cycle. Changes d, and the moments of `states`, in place; gives what the next call compares with.
    """
    gain, spread = states.mean - before[0], states.variance - before[1]
    if seen is not None:
        old_rows, old_probability, old_first, old_gain, old_spread = seen
        at = np.searchsorted(old_rows, rows)
        if old_probability.shape[1] == states.probability.shape[1]:
            steady = np.abs(states.probability - old_probability[at]).max(axis=1) < 1e-14
            scale = np.abs(states.first).max(axis=1) + gain  # where no coin is left, `first` is rounding
            steady &= np.abs(states.first - old_first[at]).max(axis=1) < 1e-12 * scale
            steady &= np.abs(gain - old_gain[at]) <= 1e-14 * states.mean
            steady &= np.abs(spread - old_spread[at]) <= 1e-13 * (states.variance + gain**2)
            with np.errstate(divide="ignore", invalid="ignore"):
                left = d + 37 / np.log1p(-path.p)  # (1-p)^d < 2^-53 above
                n = np.where(steady & (left > 0), np.floor(left / E_d), 0.0)
            states.mean += n * gain
            states.variance += n * spread
            d -= n * E_d
    return rows.copy(), states.probability.copy(), states.first.copy(), gain, spread


def _join(parts: list[tuple[Rows, States]], flows: int) -> States:
    """States of all flows in their first order; those with fewer states are filled up with impossible ones."""
    size = max(part.w1.shape[1] for _, part in parts)
    joined = States(np.ones((flows, size)), *np.zeros((2, flows, size)), *np.zeros((2, flows)))
    for rows, part in parts:
        used = part.w1.shape[1]
        joined.w1[rows, :used], joined.probability[rows, :used] = part.w1, part.probability
        joined.first[rows, :used] = part.first
        joined.mean[rows], joined.variance[rows] = part.mean, part.variance
    return joined


def moments(N: Array, path: Path, w1: Array, stop: float = 1.0) -> tuple[Array, Array]:
    """(12): exact mean (s) and variance (s^2) of the transfer time, for 1-d arrays of flows."""
    mean, variance = np.empty(len(N)), np.empty(len(N))
    with np.errstate(divide="ignore"):
        order = np.argsort(N * path.p / (1 - path.p))  # flows with as many cycles go together
    for at in range(0, len(N), BLOCK):
        rows = order[at : at + BLOCK]
        found = carry(path[rows], N[rows], States.start(np.minimum(w1[rows], path.Wmax[rows])), stop)
        mean[rows], variance[rows] = found.mean, np.maximum(found.variance, 0.0)
    return mean, variance


def toss(
    path: Path,
    d: float,
    w1: Array,
    generator: np.random.Generator,
    stop: float,
    keep: float = 0.0,
    growing_on: bool = False,
) -> tuple[Array, Array]:
    """The paper's own algorithm for one flow, a random coin for every loss: times (s) and windows at the end.

    w1: the window of each draw; keep, growing_on: as in `carry`.
    """
    left, w1, total = np.asarray([d]), w1[None, :], np.zeros((1, w1.size))
    while left[0] - keep >= stop:
        E_d, p_ss = sent_in_cycle(path.p, left)
        if E_d[0] > left[0] - keep:
            E_d, p_ss = left - keep, sent_in_cycle(path.p, left - keep)[1]
        now = cycle(path, E_d, p_ss, w1)
        timeout = generator.random(w1.shape) <= now.Q
        total += np.where(timeout, now.after_timeout, now.after_retransmit)
        w1 = np.where(timeout, 1.0, now.halved)
        left = left - E_d
        if left[0] - keep < stop and growing_on:
            w1 = after_last(path, now)
    return total[0], w1[0]


def draw_losses(N: Array, path: Path, w1: Array, generators: Sequence[np.random.Generator]) -> Array:
    """An extension: times (s) where the segments up to each loss are drawn too, not their mean (3).

    Each segment is lost with p on its own; the lost one belongs to the round that ends the cycle, as in Cardwell's (5),
    and is sent again in the next; a transfer ends when all is sent, in the cycle without a loss. A row a flow, drawn by
    a generator of its own, and a column a draw; w1: the window of each.
    """
    flows = len(N)
    left, w1, total = np.broadcast_to(np.ceil(N)[:, None], w1.shape).copy(), w1.astype(np.float64), np.zeros(w1.shape)
    timed_out = timeout_duration(path.p, path.T0)
    going = np.ones(w1.shape, np.bool_)
    while going.any():
        row, number = np.nonzero(going)[0], going.sum(axis=1).tolist()
        own, d, w = path[row], left[going], w1[going]
        segments = [
            generators[i].geometric(p, number[i]) - 1.0 if p > 0 else np.full(number[i], np.inf)
            for i, p in enumerate(path.p.tolist())
        ]
        before = np.concatenate(segments)
        ends = before >= d
        sent = np.where(ends, d, before + 1)
        total[going] += slow_start_time(sent, w, own.gamma, own.Wmax, own.RTT, path.whole_rounds)
        total[going] += own.delayed_ack * (w == 1)
        window = np.minimum(window_after_slow_start(sent, w, own.gamma), own.Wmax)
        coins = np.concatenate([generators[i].random(number[i]) for i in range(flows)])
        timeout = coins <= timeout_probability(own.p, window)
        total[going] += np.where(ends, 0.0, np.where(timeout, timed_out[row], own.RTT))
        w1[going] = np.where(timeout, 1.0, np.maximum(window / 2, 1.0))
        left[going] = d - before
        going[going] = ~ends
    return total


def distributions(N: Array, path: Path, w1: Array, stop: float = 1.0, atoms: int = 4096) -> list[tuple[Array, Array]]:
    """Transfer times (s), rising, and their probabilities, of each flow.

    Exact while no more than `atoms` times end in one state; then times are gathered in that many equal intervals, each
    at its mean, which keeps the mean exactly and moves no time by more than an interval a cycle.
    """
    flows: list[list[State]] = [[(w, np.zeros(1), np.ones(1))] for w in np.minimum(w1, path.Wmax).tolist()]
    d = N.copy()
    while (going := np.flatnonzero(d >= stop)).size:
        E_d, p_ss = sent_in_cycle(path.p[going], d[going])
        windows = np.ones((len(going), max(len(flows[i]) for i in going)))
        for own, i in zip(windows, going.tolist(), strict=True):
            own[: len(flows[i])] = [state[0] for state in flows[i]]
        now = cycle(path[going], E_d, p_ss, windows)
        costs = (now.Q, now.after_timeout, now.after_retransmit, now.halved)
        for i, *of_flow in zip(going.tolist(), *(cost.tolist() for cost in costs), strict=True):
            flows[i] = _split(flows[i], of_flow, atoms)
        d[going] -= E_d
    return [_gather([state[1:] for state in states], atoms) for states in flows]


def _split(states: list[State], costs: list[list[float]], atoms: int) -> list[State]:
    """The states of a flow after a cycle: a timeout leads to the first, a fast retransmit to the next one."""
    restarted, going = [], []
    for (_, times, chances), Q, late, soon, halved in zip(states, *costs, strict=False):
        restarted.append((times + late, chances * Q))
        if Q < 1:
            going.append((halved, times + soon, chances * (1 - Q)))
    states = [(1.0, *_gather(restarted, atoms)), *going]
    if len(states) > STATES:
        last, before = states.pop(), states.pop()
        states.append((before[0], *_gather([before[1:], last[1:]], atoms)))
    return [state for state in states if state[2].sum() > 1e-18] or states[:1]


def _gather(parts: Sequence[tuple[Array, Array]], atoms: int) -> tuple[Array, Array]:
    times, chances = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    times, chances = times[chances > 0], chances[chances > 0]
    if not times.size:
        return np.zeros(1), np.zeros(1)
    if times.size <= atoms:
        order = np.argsort(times, kind="stable")
        return times[order], chances[order]
    low, high = times.min(), times.max()
    place = np.minimum((times - low) * (atoms / (high - low)), atoms - 1).astype(np.int64) if high > low else None
    if place is None:
        return times[:1], chances.sum(keepdims=True)
    total = np.asarray(np.bincount(place, chances, atoms), dtype=np.float64)
    middle = np.bincount(place, chances * times, atoms)[total > 0] / total[total > 0]
    return middle, total[total > 0]


def _blocks(N: Array) -> Iterator[slice]:
    return (slice(at, at + BLOCK) for at in range(0, len(N), BLOCK))


class Cycles(TransferTime):
    """What hysteresis and catnip have in common; a subclass defines `_moments` and `_draw`."""

    paper = "Li, Williamson 2004, IEEE MASCOTS, 167-174, doi:10.1109/MASCOT.2004.1348194"
    p_definition = "packet"
    parameters: tuple[Parameter, ...] = (
        SEGMENTS,
        Parameter("p", "1", "losses per segment sent", None, "q_tilde", high=LARGEST_P),
        RTT,
        RTO,
        B,
        W_MAX,
        W_1,
        DELAYED_ACK,
    )
    assumptions: ClassVar[tuple[Assumption, ...]] = (
        Assumption("reno-growth", "Slow start after every loss, from one segment or from half the window."),
        Assumption("bernoulli-loss", "Losses are independent.", required=False),
        Assumption("no-sack", "Reno's recovery: one loss per fast retransmit.", required=False),
        Assumption("no-reordering", "Duplicate ACKs mean loss.", required=False),
    )
    fittable = {"b": (0.1, 10.0, 2.0), "rto": (1e-3, 300.0, 1.0)}
    choices = {"as_printed": (True, False), "whole_rounds": (True, False)}

    def __init__(
        self,
        *,
        b: float | None = None,
        stop: float = 1.0,
        as_printed: bool = False,
        whole_rounds: bool = False,
        free: Sequence[str] | None = None,
    ) -> None:
        self.b = b
        self.stop = stop
        self.as_printed = as_printed
        self.whole_rounds = whole_rounds
        self.free = free

    def variance(self, **arrays: Any) -> Array:
        """Exact variance of the transfer time (s^2), from the keywords of `predict`; nan outside the domain.

        Raises InvalidParameter for another keyword, and for what is no number.
        """
        model, given = self._given(arrays)
        values = model._resolve(given)
        inside = model._mask(values)
        found = np.full(inside.shape, np.nan)
        if inside.any():
            found[inside] = model._moments({key: value[inside] for key, value in values.items()})[1]
        return found

    def simulate(self, *, draws: int, seed: int, **flow: Any) -> Array:
        """Transfer times (s) of one flow, drawn as the paper does; to check the moments, or for quantiles.

        Raises InvalidParameter for a flow outside the domain, and for arguments that make no sense.
        """
        ones, generator = np.ones(arguments.whole("draws", draws, least=0)), self._generator(seed)
        model, values, path = self._one(flow)
        return model._draw(values, path, ones, generator)

    def _generator(self, seed: int) -> np.random.Generator:
        return np.random.default_rng(arguments.whole("seed", seed, least=0))

    def _one(self, flow: dict[str, Any]) -> tuple[Self, dict[str, float], Path]:
        model, given = self._given(flow)
        values = model._resolve(given)
        inside = model._mask(values)
        if inside.shape != () or not inside:
            raise InvalidParameter(f"{self.name} draws transfer times of one flow inside its domain only.")
        path = model._path({key: np.atleast_1d(value) for key, value in values.items()})
        return model, {key: float(value) for key, value in values.items()}, path

    def _each(self, flows: dict[str, Any]) -> tuple[Self, Array, Path, Array]:
        """The model with its conventions; sizes, parameters and first windows of flows, all inside the domain."""
        model, given = self._given(flows)
        values = {key: np.atleast_1d(value) for key, value in model._resolve(given).items()}
        if (dimensions := values["segments"].ndim) > 1:
            raise InvalidParameter(f"{self.name} takes flows as 1-d arrays here, got {dimensions} dimensions")
        if not model._mask(values).all():
            raise InvalidParameter(f"{self.name} draws transfer times of flows inside its domain only.")
        return model, values["segments"], model._path(values), values["w_1"]

    def _path(self, a: dict[str, Array]) -> Path:
        if not 1e-3 <= arguments.number(f"stop of {self.name}", self.stop) <= 1:
            raise InvalidParameter(f"stop of {self.name} must be between 0.001 and 1 segments, got {self.stop!r}.")
        gamma, wait = 1 + 1 / a["b"], a["delayed_ack"]
        return Path(a["p"], a["rtt"], a["rto"], a["w_max"], gamma, wait, self.as_printed, self.whole_rounds)

    def _moments(self, a: dict[str, Array]) -> tuple[Array, Array]:
        """Mean and variance for 1-d arrays inside the domain."""
        raise NotImplementedError

    def _draw(self, flow: dict[str, float], path: Path, one: Array, generator: np.random.Generator) -> Array:
        """As many transfer times as `one` has ones."""
        raise NotImplementedError

    def _time(self, **a: Array) -> Array:
        return self._moments(a)[0]


class Hysteresis(Cycles):
    """The mean of (12); `variance`, `distribution` and `simulate` give more of it.

    b: fixes the rounds per segment; None takes the measured column or 2. stop: segments left below which no cycle
    follows. as_printed: (11) and (12) as printed. whole_rounds: slow starts last whole round trips. free: names of the
    parameters that `fit` fits, by default b.
    """

    name = "hysteresis"
    title = "short flows with memory (Li, Williamson)"

    def distribution(self, *, atoms: int = 4096, **flow: Any) -> tuple[Array, Array]:
        """Possible transfer times (s), rising, and their probabilities, of one flow; see `distributions`.

        Raises InvalidParameter as `simulate` does.
        """
        atoms = arguments.whole("atoms", atoms)
        self._one(flow)
        return next(self.distributions(atoms=atoms, **flow))

    def distributions(self, *, atoms: int = 4096, **flows: Any) -> Iterator[tuple[Array, Array]]:
        """The distribution of each of some flows, given as 1-d arrays; see the function.

        Raises InvalidParameter as `simulate` does.
        """
        atoms = arguments.whole("atoms", atoms)
        model, N, path, w1 = self._each(flows)
        for rows in _blocks(N):
            yield from distributions(N[rows], path[rows], w1[rows], model.stop, atoms)

    def draw_losses(self, *, draws: int, seed: int, **flow: Any) -> Array:
        """Transfer times (s) of one flow where the positions of the losses are drawn too, an extension; see the
        function.

        Raises InvalidParameter as `simulate` does.
        """
        draws, seed = arguments.whole("draws", draws, least=0), arguments.whole("seed", seed, least=0)
        self._one(flow)
        return next(self.draw_losses_of(draws=draws, seeds=[seed], **flow))

    def draw_losses_of(self, *, draws: int, seeds: Sequence[int], **flows: Any) -> Iterator[Array]:
        """The same of each of some flows, given as 1-d arrays, with a seed each.

        Raises InvalidParameter as `simulate` does, and where there is no seed for each flow.
        """
        _, N, path, w1 = self._each(flows)
        draws = arguments.whole("draws", draws, least=0)
        seeds = [arguments.whole("each of seeds", seed, least=0) for seed in arguments.several("seeds", seeds, "seeds")]
        if len(seeds) != len(N):
            raise InvalidParameter(f"seeds must be as many as the flows, {len(N)}, got {len(seeds)}")
        first = np.minimum(w1, path.Wmax)
        for rows in _blocks(N):
            generators = [np.random.default_rng(seed) for seed in seeds[rows]]
            yield from draw_losses(N[rows], path[rows], np.repeat(first[rows, None], draws, axis=1), generators)

    def _moments(self, a: dict[str, Array]) -> tuple[Array, Array]:
        return moments(a["segments"], self._path(a), a["w_1"], self.stop)

    def _draw(self, flow: dict[str, float], path: Path, one: Array, generator: np.random.Generator) -> Array:
        first = one * min(flow["w_1"], flow["w_max"])
        return toss(path, flow["segments"], first, generator, self.stop)[0]
