"""Window, timeouts and rate of SACK flows while the loss probability changes (Bohacek and Shah, section V).

Outside timeouts the mean w and the second moment w2 of the window follow (12) and (14):
    dw/dt = 1/R - delta(t-R) w^2/(c1^2 R)
    dw2/dt = 2 w/R - 2 (c1/c2^(3/2)) delta(t-R) w2^(3/2)/R, c2 = c1^2 + gamma
They give the window's distribution (5), it gives the rate lambda at which flows run into a timeout, and of all flows
    I1(t) = lambda(t) (1 - P(t)), I2(t) = delta(t) I1(t-RTO), P(t) = int_{t-RTO}^t I1 + int_{t-2RTO}^t I2     (7), (8)
enter a first and a second timeout and are in one. The rate is w (1 - P)/R. P swings: flows that entered together leave
together, RTO or 2 RTO later.

**Symbols** delta(t): loss probability of a segment (1), a step function; R: round-trip time (s, `rtt`); RTO: first
timeout (s, `rto`); w (segments), w2 (segments^2); c1, gamma: as in `bohacek_sack`; P: share of flows in timeout (1).

**Domain** 0 <= delta <= 1; 0 < R, RTO < inf. Before the first time the first delta, above 0, has lasted for ever; or
`start` gives the moments, and no flow is in timeout. Where the variance is too small for a negative binomial (steady
state: delta > 0.1278; after a rise of delta for a while) its Poisson limit is taken. delta = 0: the window grows by
1/R.

**Departures** 13 has the factor 1/2 that 1 implies (printed 1; `as_printed=True`); 14: beta = c1 and c1^2 + 0.31 = c2
(printed with a minus, beta undefined), without which it is not exact in steady state. The text takes (12) for the mean,
and so does the default; `mean="13"` takes (13), whose mean would fall below one segment after a large rise of delta and
is held there. delta is delayed by R in the windows' equations and nowhere else. No third timeout (of 4 RTO), as
printed.

**Method** Times at which delta, its delayed copy, or what returns from timeouts jumps are grid points (the largest
jumps first, where they are very many), so no step contains a jump. 12 is solved in closed form, 14 for 1/sqrt(w2) by
Runge and Kutta's fourth order; 13 and 14 split into growth and loss, each in closed form, extrapolated to the fourth
order, by an implicit step where windows are so wide (from some 400,000) that w2 keeps its balance; 7 and 8 for the
integral of I1 block by block of RTO.

**Validation** `tests/models/test_bohacek_dynamics.py`: 104 points of P, w, w2 and rate; steady state against the closed
form (9); a simulated population of flows. Figures 4 to 6: not validated (drawn, not printed).

**Reference** Bohacek, Shah: TCP Throughput and Timeout - Steady State and Time-varying Dynamics, IEEE GLOBECOM 2004,
doi:10.1109/GLOCOM.2004.1378225.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import asinh, ceil, sinh, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcpfit import arguments
from tcpfit.exceptions import InvalidParameter
from tcpfit.models.base import Array, Assumption, Parameter, array_of
from tcpfit.models.bohacek_sack import C1, GAMMA, WIDEST, binomial_q, first_timeouts

SUBSTEPS = 64  # what a step of (13) is cut into at most
STIFF = 10.0  # times that u would come to its balance within a step, from which it is taken to keep it
MOST = 200_000  # grid points added for jumps
BLOCK = 8192  # windows' laws summed at once: arrays that stay in the cache


@dataclass(frozen=True)
class Trajectory:
    """The flows over time, arrays of one length.

    time: s. window: mean outside timeouts, segments. second_moment: of the window, segments^2. in_timeout: share of
    flows, 0 to 1. rate: segments/s. entering: first timeouts a second and flow, I1, just after `time`.
    """

    time: Array
    window: Array
    second_moment: Array
    in_timeout: Array
    rate: Array
    entering: Array

    def bit_rate(self, smss: float) -> Array:
        """Bit/s with segments of smss bytes."""
        return np.asarray(8 * smss * self.rate)


def windows_lost(mean: Array, variance: Array, delta: Array) -> Array:
    # E(w tail(w, delta)) as bohacek_sack.windows_lost, for any mean and variance; tail by recurrence in w, no betainc
    mean = np.maximum(mean, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(variance > 0, np.clip(binomial_q(mean, variance), 0.0, 1.0), 0.0)
    Nq, small = (1 - q) * (mean - 1), np.maximum(q, 1e-12)
    chance = np.exp(Nq * np.where(q > 1e-12, np.log1p(-np.minimum(small, 1 - 2.0**-53)) / small, -1.0))  # p(1)
    kept = 1 - delta
    x = delta * kept
    # tail, and the last term b = C(w-1, k) delta^k (1-delta)^(w-1-k) of it, k = losses_to_time_out(w)
    tail = {5: 1 - kept**4 - 4 * delta * kept**3, 6: delta**3 * (10 * kept**2 + 5 * x + delta**2)}
    term = {5: 6 * x**2, 6: 10 * delta * x**2}
    total, left = np.zeros(mean.shape), mean.copy()
    last = np.ones(mean.shape)
    for w in range(1, WIDEST + 1):
        if w == 4:
            last = 1 - kept**3
        elif w > 6:
            n, k = w - 3, (w - 2) // 2  # of w - 2: n + 1 segments, k losses
            b, S = term.pop(w - 2), tail.pop(w - 2)
            # P(Bin(n+2) >= k+1) = P(Bin(n) >= k) - b(n, k) (1-delta)^2 + b(n, k-1) delta^2
            last = np.maximum(S - b * kept * (kept - k / (n - k + 1) * delta), 0.0)
            tail[w], term[w] = last, b * x * ((n + 2) * (n + 1) / ((k + 1) * (n + 1 - k)))
        elif w > 4:
            last = tail[w]
        here = w * chance
        total += here * last
        left -= here
        if w > 8 and (last * left < 1e-17 * delta * mean).all():
            break
        chance = chance * (Nq + (w - 1) * q) / w
    return np.asarray(total + np.maximum(left, 0.0) * last)


def timeout_rate(mean: Array, second_moment: Array, delta: Array, R: float) -> Array:
    # lambda' + lambda'' = delta/R (E(w tail) + delta E(w (1 - tail))), with the law of (5)
    rate = np.empty(mean.shape)
    for at in range(0, mean.size, BLOCK):
        part = slice(at, at + BLOCK)
        E_w, d = np.maximum(mean[part], 1.0), delta[part]
        lost = windows_lost(E_w, second_moment[part] - mean[part] ** 2, d)
        rate[part] = d / R * (lost + d * np.maximum(E_w - lost, 0.0))
    return rate


def window_after(w: Array, h: Array, delta: Array, R: float, c1: float = C1) -> Array:
    # (12) after h seconds of one delta: w = winf (w + winf T)/(winf + w T), winf = c1/sqrt(delta), T = tanh(h/(R winf))
    up, down = _steps(np.asarray(h), np.asarray(delta), R, c1)
    return np.asarray((w + up) / (1 + w * down))


def _steps(h: Array, delta: Array, R: float, c1: float) -> tuple[Array, Array]:
    root = np.sqrt(delta) / c1
    T = np.tanh(h * root / R)
    return np.where(root > 0, T / np.where(root > 0, root, 1.0), h / R), T * root


def steady_moments(delta: float, c1: float, gamma: float, mean: str, as_printed: bool) -> tuple[float, float]:
    """Mean and second moment at which (12) or (13), and (14), stand still."""
    c2 = c1**2 + gamma
    if mean == "12":
        return c1 / sqrt(delta), c2 / delta
    losses = 1.0 if as_printed else 2.0  # w2 delta
    return c1 * losses / c2 * sqrt(losses / c2 / delta), losses / delta


def _windows(
    w: float, w2: float, h: Array, delta: Array, R: float, c1: float, gamma: float, factor: float | None
) -> tuple[Array, Array, Array, Array]:
    """Moments at the grid's points and in the middle of its steps: (12) or, with its factor, (13); and (14)."""
    n = len(h)
    pull = (c1 / (c1**2 + gamma) ** 1.5 * delta / R).tolist()  # du/dt = pull - (w/R) u^3, u = 1/sqrt(w2)
    means, us, u = [w], [1 / sqrt(w2)], 1 / sqrt(w2)
    if factor is None:
        up, down = (np.repeat(x, 4).tolist() for x in _steps(h / 4, delta, R, c1))
        for a, b in zip(up, down, strict=True):
            w = (w + a) / (1 + w * b)
            means.append(w)
        thrust = (np.asarray(means) / R).tolist()
        for i, (a, step) in enumerate(zip(pull, h.tolist(), strict=True)):
            s = step / 2
            for j in (4 * i, 4 * i + 2):  # w is known at quarters of the step
                p0, p, p1 = thrust[j : j + 3]
                k1 = a - p0 * u**3
                k2 = a - p * (u + s / 2 * k1) ** 3
                k3 = a - p * (u + s / 2 * k2) ** 3
                k4 = a - p1 * (u + s * k3) ** 3
                u += s / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
                us.append(u)
        means = means[::2]
    else:
        drain = (factor * delta / R).tolist()
        for a, b, step in zip(pull, drain, h.tolist(), strict=True):
            for _ in (0, 1):
                left, least = step / 2, step / SUBSTEPS
                while left > 0:
                    fall = w * u * u / R
                    if a > 0 and 3 * fall * left > STIFF and 2 * fall * u > a:
                        w, u = _in_balance(w, u, left, a, b, R)
                        break
                    # a large rise of delta pulls w2 down within less than a step: u grows by a fifth at most at a time
                    s = min(left, max(u / (5 * a), least)) if a > 0 else left
                    left -= s
                    w, u = _moments_after(w, u, s, a, b, R)
                means.append(w)
                us.append(u)
    mean, second = np.asarray(means), np.asarray(us) ** -2.0
    assert len(mean) == 2 * n + 1
    return mean[::2], second[::2], mean[1::2], second[1::2]


def _moments_after(w: float, u: float, s: float, a: float, b: float, R: float) -> tuple[float, float]:
    """w and u = 1/sqrt(w2) after s seconds of (13), dw/dt = 1/R - b/u^2, and (14), du/dt = a - w u^3/R."""
    whole_w, whole_u = _growth_and_loss(w, u, s, a, b, R)
    half_w, half_u = _growth_and_loss(*_growth_and_loss(w, u, s / 2, a, b, R), s / 2, a, b, R)
    # the error goes with s^2: Richardson's extrapolation, of ln u, which keeps its sign
    return max((4 * half_w - whole_w) / 3, 1.0), half_u * (half_u / whole_u) ** (1 / 3)


def _in_balance(w: float, u: float, s: float, a: float, b: float, R: float) -> tuple[float, float]:
    """The same where u soon reaches a = w u^3/R, the window being wide: an implicit step, x + s w/R x^3 = u + s a."""
    p = R / (s * w)
    x = 2 * sqrt(p / 3) * sinh(asinh(1.5 * (u + s * a) * sqrt(3 / p)) / 3)
    return max(w + s / R - b * s / 2 * (1 / u / u + 1 / x / x), 1.0), x


def _growth_and_loss(w: float, u: float, s: float, a: float, b: float, R: float) -> tuple[float, float]:
    """Growth for half of the time, loss, growth for the other half, each in closed form (Strang 1968,
    doi:10.1137/0705041): stable however stiff, and u never falls to 0."""
    for part in (0, 1):
        # without loss w = w + s/2R and w2 = w2 + 2 w s/2R + (s/2R)^2
        x = s / 2 / R
        u /= sqrt(1 + u * u * x * (2 * w + x))
        w += x
        if not part:
            # without growth u = u + a s, and w = w - b times the integral of 1/u^2, which is s/(u (u + a s))
            after = u + a * s
            w = max(w - b * s / u / after, 1.0)
            u = after
    return w, u


class _Entered:
    """J(t), the integral of I1 from 0, and K(t), that of I2, as far as they are known: cubic in each step."""

    def __init__(self, t: Array, delta: Array, RTO: float, before: float, delta0: float) -> None:
        self.t, self.delta, self.RTO, self.before, self.delta0 = t, delta, RTO, before, delta0
        self.J, self.K, self.Jd = np.zeros(t.size), np.zeros(t.size), np.zeros(t.size)
        self.start, self.end = np.zeros(t.size - 1), np.zeros(t.size - 1)  # I1 at the two ends of each step
        self.known = 0  # steps

    def first(self, s: Array) -> Array:
        """J(s)."""
        if s[-1] <= 0 or not self.known:
            return self.before * s
        i = np.clip(np.searchsorted(self.t, s, side="right") - 1, 0, self.known - 1)
        h = self.t[i + 1] - self.t[i]
        x = np.clip((s - self.t[i]) / h, 0.0, 1.0)
        rise = np.maximum(self.J[i + 1] - self.J[i], 0.0)
        a, b = (np.minimum(I1[i] * h, 3 * rise) for I1 in (self.start, self.end))  # so that it rises throughout
        inside = self.J[i] + x * (a + x * (3 * rise - 2 * a - b + x * (a + b - 2 * rise)))
        return np.where(s > 0, inside, self.before * s)

    def second(self, s: Array) -> Array:
        """K(s): in a step delta is constant, so K rises by delta times what J(s - RTO) rises by."""
        if s[-1] <= 0 or not self.known:
            return self.delta0 * self.before * s
        i = np.clip(np.searchsorted(self.t, s, side="right") - 1, 0, self.known - 1)
        inside = self.K[i] + self.delta[i] * (self.first(s - self.RTO) - self.Jd[i])
        return np.where(s > 0, inside, self.delta0 * self.before * s)


def share_in_timeout(
    t: Array, delta: Array, rates: tuple[Array, Array, Array], RTO: float, before: float, delta0: float
) -> tuple[Array, Array]:
    """(7) and (8): the share of flows in timeout at the points t, and I1 at the start of each step.

    delta: in each step. rates: lambda at the start, middle and end of each step. before: I1 before t = 0.

    With D(t) = J(t-RTO) - K(t) + K(t-2RTO), known one RTO ahead, the share outside timeouts is A = 1 + D - J and obeys
    dA/dt = -lambda A + dD/dt.
    """
    n, h = delta.size, np.diff(t)
    grown = h * (rates[0] + 4 * rates[1] + rates[2]) / 6  # integral of lambda
    stay, half = np.exp(-grown), np.maximum(grown / 2, 1e-300)
    late = -np.expm1(-half) / half  # mean of exp(-what is left of grown) over the second half of the step
    early = np.exp(-half) * late
    past = _Entered(t, delta, RTO, before, delta0)
    past.Jd[0] = -before * RTO
    A = np.empty(n + 1)
    D0 = -before * RTO * (1 + 2 * delta0)
    A[0] = 1 + D0
    at = 0
    while at < n:
        to = max(int(np.searchsorted(t, t[at] + RTO * (1 + 1e-12), side="right")) - 1, at + 1)
        points = np.empty(2 * (to - at) + 1)
        points[::2], points[1::2] = t[at : to + 1], (t[at:to] + t[at + 1 : to + 1]) / 2
        Jd = past.first(points - RTO)
        K = past.K[at] + np.concatenate(([0.0], np.cumsum(np.repeat(delta[at:to], 2) * np.diff(Jd))))
        D = Jd - K + past.second(points - 2 * RTO)
        back = early[at:to] * (D[1::2] - D[:-1:2]) + late[at:to] * (D[2::2] - D[1::2])
        share = float(A[at])
        outside = []
        for a, b in zip(stay[at:to].tolist(), back.tolist(), strict=True):
            share = a * share + b
            outside.append(share)
        A[at + 1 : to + 1] = np.maximum(outside, 0.0)
        past.Jd[at : to + 1], past.K[at : to + 1] = Jd[::2], K[::2]
        past.J[at + 1 : to + 1] = 1 + D[2::2] - A[at + 1 : to + 1]
        past.start[at:to], past.end[at:to] = rates[0][at:to] * A[at:to], rates[2][at:to] * A[at + 1 : to + 1]
        past.known = at = to
    return np.clip(1 - A, 0.0, 1.0), past.start


def _points(times: Array, losses: Array, end: float, step: float, R: float, RTO: float) -> tuple[Array, NDArray[Any]]:
    """Grid points, jumps among them, and which of them are multiples of `step` (or the end)."""
    asked = np.append(np.arange(0.0, end - step * 1e-6, step), end)
    parts = ceil(step / min(step, R / 8, RTO / 8) - 1e-9)
    fine = np.unique(np.append((asked[:-1, None] + step / parts * np.arange(parts)).ravel(), end))
    fine = fine[fine <= end]
    size = np.abs(np.diff(losses))
    jumps, size = times[1:][size > 0], size[size > 0]
    echoes = np.arange(int(end / RTO) + 1) * RTO
    most = max(MOST // (2 * echoes.size), 1)
    if jumps.size > most:
        jumps = jumps[np.argsort(-size, kind="stable")[:most]]
    kinks = (jumps[:, None] + np.concatenate((echoes, R + echoes))).ravel()
    kinks = np.concatenate((kinks, echoes, R + echoes)) if jumps.size else kinks
    found = np.concatenate((asked, fine, kinks[(kinks > 0) & (kinks < end)]))
    order = np.argsort(found, kind="stable")
    found = found[order]
    apart = np.concatenate(([True], np.diff(found) > 1e-9 * step))
    points = found[apart]
    points[-1] = end
    return points, np.searchsorted(points, asked - 1e-9 * step)


class BohacekDynamics:
    """Equations 7, 8, 12 (or 13) and 14, driven by a series of loss probabilities.

    c1, gamma: constants of the window's moments. mean: "12" or "13", the equation of the mean. as_printed: (13) without
    its factor 1/2. It is no regressor: it predicts a course, not a number a flow.
    """

    name: ClassVar[str] = "bohacek-dynamics"
    title: ClassVar[str] = "SACK under changing loss (Bohacek, Shah)"
    paper: ClassVar[str] = "Bohacek, Shah 2004, IEEE GLOBECOM, doi:10.1109/GLOCOM.2004.1378225"
    predicts: ClassVar[str] = "course"
    quantity: ClassVar[str] = "send-rate"
    p_definition: ClassVar[str] = "packet"
    plugin: ClassVar[str | None] = None
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {"mean": ("12", "13"), "as_printed": (False, True)}
    extensions: ClassVar[tuple[Parameter, ...]] = ()
    fittable: ClassVar[dict[str, tuple[float, float, float]]] = {}
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("losses", "1", "losses per segment sent, from each of `times` on", None, "q_tilde", high=1.0),
        Parameter("rtt", "s", "mean round-trip time", None, "rtt", positive=True),
        Parameter("rto", "s", "mean first timeout of a series", None, "rto", positive=True),
    )
    assumptions: ClassVar[tuple[Assumption, ...]] = (
        Assumption("reno-growth", "The window grows by one segment a round trip and halves at a loss event."),
        Assumption("not-window-limited", "The receiver's window never stops the growth."),
        Assumption("bulk", "There is always data to send, and slow start does not matter."),
        Assumption("sack", "The receiver reports what arrived; the sender repairs by it."),
        Assumption("bernoulli-loss", "Losses are independent.", required=False),
        Assumption("no-reordering", "Late segments are not taken for lost ones.", required=False),
    )

    def __init__(self, *, c1: float = C1, gamma: float = GAMMA, mean: str = "12", as_printed: bool = False) -> None:
        if not isinstance(mean, str) or mean not in ("12", "13"):
            raise InvalidParameter(f"mean of {self.name} must be one of 12, 13, got {mean!r}.")
        c1, gamma = arguments.number(f"c1 of {self.name}", c1), arguments.number(f"gamma of {self.name}", gamma)
        if not (c1 > 0 and gamma > 0 and c1 < np.inf and gamma < np.inf):
            raise InvalidParameter(f"c1 and gamma of {self.name} must be positive and finite, got {c1!r}, {gamma!r}.")
        self.c1, self.gamma, self.mean, self.as_printed = c1, gamma, mean, as_printed

    def get_params(self) -> dict[str, Any]:
        """The conventions by name, as a regressor of scikit-learn has them."""
        return {"c1": self.c1, "gamma": self.gamma, "mean": self.mean, "as_printed": self.as_printed}

    def trajectory(
        self,
        times: ArrayLike,
        losses: ArrayLike,
        *,
        rtt: float,
        rto: float,
        end: float,
        step: float = 1e-3,
        start: tuple[float, float] | None = None,
    ) -> Trajectory:
        """The flows from times[0] to `end` (s), every `step` (s) and at the end.

        losses[i] holds from times[i] (s, rising) to times[i + 1]; losses[0] also before. start: mean and second moment
        of the window at times[0] of flows none of which is in timeout; else the steady state of losses[0].
        Raises InvalidParameter for arguments that make no sense.
        """
        times, losses = (np.atleast_1d(array_of(self.name, *given)) for given in (("times", times), ("losses", losses)))
        rtt, rto, end, step = (
            arguments.number(f"{name} of {self.name}", given)
            for name, given in (("rtt", rtt), ("rto", rto), ("end", end), ("step", step))
        )
        self._check(times, losses, rtt, rto, end, step)
        origin, delta0 = float(times[0]), float(losses[0])
        times = times - origin
        w, w2, before = self._start(delta0, rtt, rto, start)
        t, asked = _points(times, losses, end - origin, step, rtt, rto)
        middle = (t[1:] + t[:-1]) / 2
        now, delayed = (
            losses[np.maximum(np.searchsorted(times, s, side="right") - 1, 0)] for s in (middle, middle - rtt)
        )
        factor = None if self.mean == "12" else 1.0 if self.as_printed else 0.5
        mean, second, mean_, second_ = _windows(w, w2, np.diff(t), delayed, rtt, self.c1, self.gamma, factor)
        at_start = timeout_rate(mean[:-1], second[:-1], now, rtt)
        at_end = np.append(at_start[1:], timeout_rate(mean[-1:], second[-1:], now[-1:], rtt))
        jump = np.append(np.flatnonzero(np.diff(now)), now.size - 1)
        at_end[jump] = timeout_rate(mean[jump + 1], second[jump + 1], now[jump], rtt)
        rates = at_start, timeout_rate(mean_, second_, now, rtt), at_end
        P, entering = share_in_timeout(t, now, rates, rto, before, delta0)
        entering = np.append(entering, at_end[-1] * (1 - P[-1]))
        return Trajectory(
            origin + t[asked],
            mean[asked],
            second[asked],
            P[asked],
            mean[asked] * (1 - P[asked]) / rtt,
            entering[asked],
        )

    def _start(
        self, delta0: float, rtt: float, rto: float, start: tuple[float, float] | None
    ) -> tuple[float, float, float]:
        """Mean, second moment, and I1 before the start."""
        if start is not None:
            both = arguments.several(f"start of {self.name}", start, "two numbers")
            w, w2 = (
                arguments.number(f"each of start of {self.name}", x) for x in (both if len(both) == 2 else (0.0, 0.0))
            )
            if not (1 <= w < np.inf and w**2 <= w2 * (1 + 1e-12) and w2 < np.inf):
                raise InvalidParameter(
                    f"start of {self.name} must be a mean of at least 1 and a second moment not below its square, "
                    f"got {start!r}."
                )
            return w, w2, 0.0
        if delta0 == 0:
            raise InvalidParameter(f"{self.name} needs start where the first loss probability is 0: no steady state.")
        w, w2 = steady_moments(delta0, self.c1, self.gamma, self.mean, self.as_printed)
        if not w2 < np.inf:
            raise InvalidParameter(
                f"{self.name} needs start where the first loss probability is {delta0!r}: its window is beyond numbers."
            )
        rate = timeout_rate(np.asarray([w]), np.asarray([w2]), np.asarray([delta0]), rtt)
        return w, w2, float(first_timeouts(rate, np.asarray([delta0]), np.asarray([rto]))[0])

    def _check(self, times: Array, losses: Array, rtt: float, rto: float, end: float, step: float) -> None:
        if times.ndim != 1 or times.shape != losses.shape or not times.size:
            raise InvalidParameter(f"{self.name} needs as many times as losses, got {times.shape} and {losses.shape}.")
        if not (np.isfinite(times).all() and (np.diff(times) > 0).all()):
            raise InvalidParameter(f"times of {self.name} must be finite and rise.")
        if not ((losses >= 0) & (losses <= 1)).all():
            raise InvalidParameter(f"losses of {self.name} must be probabilities, 0 to 1.")
        for name, value in {"rtt": rtt, "rto": rto, "step": step}.items():
            if not 0 < value < np.inf:
                raise InvalidParameter(f"{name} of {self.name} must be a positive number of seconds, got {value!r}.")
        if not times[0] < end < np.inf or end - times[0] <= 1e-8 * step:
            raise InvalidParameter(f"end of {self.name} must come after the first time, {times[0]:g} s, got {end!r}.")
        if (end - times[0]) / min(step, rtt / 8, rto / 8) > 1e7:
            raise InvalidParameter(f"{self.name} would take more than 10 million steps: choose a shorter end.")
