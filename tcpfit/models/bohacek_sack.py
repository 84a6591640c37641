"""SACK's send rate under independent losses (Bohacek and Shah, section IV), segments/s:
T = c1/(R sqrt(delta)) (1 - P(TO)), P(TO) = x/(1 + x), x = (1 + 2 delta) RTO (lambda' + lambda'').

Outside timeouts the window is a random variable, approximately negative binomial. lambda' is the rate at which flows
run into a timeout because half a window or more is lost, lambda'' because a retransmission is lost.

**Symbols** delta: loss probability of a segment (1, argument `p`, column `q_tilde`); R: round-trip time (s, `rtt`);
RTO (s, `rto`); w: window (segments); c1, gamma: mean and variance of w are c1/sqrt(delta) and gamma/delta (1).

**Domain** 0 <= delta <= 1, R > 0, RTO > 0; nan outside. delta = 0 gives inf. The negative binomial of 5 and 6 needs a
mean below 1 + variance: delta < 0.1278 (with the default c1 and gamma). Beyond, up to 0.752, its Poisson limit with
the same mean is taken; above 0.752 the condition holds again, though a window of 1.4 has lost its meaning. P(TO) is
continuous there, its slope is not. c1 must be above 1, or the mean is not above one segment at delta = 1.

**Departures** 6: q = 1 - (delta/gamma)(c1/sqrt(delta) - 1), as follows from 5. Printed is + 1 (`as_printed=True`), with
which q is negative from 0.0464 on, and the Poisson limit is taken there. The second integral of 9 is over 2 RTO
(printed RTO); the closed form that follows it is right. c1 = sqrt(3/2), gamma = 0.31 are the paper's; the fluid
equation 3 has c1 = 1.3098, gamma = 0.2843 exactly (`exact_moment`). lambda and rho are per second (the text prints
their values "x R" for "/ R"). A third timeout of 4 RTO is left out, as in the paper.

**Validation** `tests/models/test_model_values.py` (rows `bohacek`: P(TO) of 5 % at delta = 0.01 and 60 % at 0.05, read
as 5.8 % and 62.3 %; grids). Not reproduced: lambda' R = 0.13 at delta = 0.09, here 0.112; rho'(4) R = 0.38, here 0.089
(without the binomial tail, delta w = 0.36). Density, moments and rates against equation 3, quadrature and a simulated
window in `tests/models/test_bohacek.py`.

**Reference** Bohacek, Shah: TCP Throughput and Timeout - Steady State and Time-varying Dynamics, IEEE GLOBECOM 2004,
doi:10.1109/GLOCOM.2004.1378225.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tcpfit import arguments
from tcpfit.exceptions import InvalidParameter
from tcpfit.models.base import LONGEST, SHORTEST, Array, Assumption, Model, Parameter

C1 = float(np.sqrt(1.5))
GAMMA = 0.31
TERMS = 24  # of the exact density: the k-th is 4^(-k^2/2) of the first
WIDEST = 400  # largest window that counts in lambda': half of a larger one is never lost, beside half of a small one
AT_ONCE = 50  # of these windows; divides WIDEST
LOWEST = 1e-8  # below it the rates are their leading powers of delta
NODES = 28  # of each Chebyshev polynomial
BLOCK = 1 << 14  # values interpolated at once: arrays that stay in the cache


# Section III: the window outside timeouts


def exact_coefficients() -> Array:
    # p(w) = sum a_k exp(-4^k delta w^2/2) solves (3) if a_k (1 - 4^k) = 4 a_(k-1); a_0 makes the integral 1
    a = np.ones(TERMS)
    for k in range(1, TERMS):
        a[k] = -4 * a[k - 1] / (4.0**k - 1)
    return np.asarray(a / (a @ (np.sqrt(np.pi / 2) * 0.5 ** np.arange(TERMS))))


def exact_density(w: Array, delta: Array) -> Array:
    # the solution of (3), dp/dw = w delta (4 p(2w) - p(w)), times sqrt(delta); rounding below 0 is cut off
    x = np.sqrt(delta) * w
    total = sum(a * np.exp(-(4.0**k) * x**2 / 2) for k, a in enumerate(exact_coefficients()))
    return np.asarray(np.sqrt(delta) * np.maximum(0.0, total))


def exact_moment(m: int) -> float:
    # c_m, with E(w^m) = c_m/delta^(m/2): x^m exp(-4^k x^2/2) integrates to Gamma((m+1)/2) 2^((m-1)/2) 2^(-k(m+1))
    from math import gamma

    a = exact_coefficients()
    return float(gamma((m + 1) / 2) * 2 ** ((m - 1) / 2) * (a @ 0.5 ** ((m + 1) * np.arange(TERMS))))


def mean_window(delta: Array, c1: float = C1) -> Array:
    # E(w) = c1/sqrt(delta)
    return c1 / np.sqrt(delta)


def window_variance(delta: Array, gamma: float = GAMMA) -> Array:
    # (4) Var(w) = gamma/delta
    return gamma / delta


def binomial_q(mean: Array, variance: Array) -> Array:
    # (5) q = 1 - (E(w) - 1)/Var(w); N = (1 - q)/q (E(w) - 1)
    return 1 - (mean - 1) / variance


def binomial_q_of(delta: Array, c1: float = C1, gamma: float = GAMMA, as_printed: bool = False) -> Array:
    # (6) q = 1 - (delta/gamma)(c1/sqrt(delta) - 1), printed + 1
    return 1 - delta / gamma * (c1 / np.sqrt(delta) + (1 if as_printed else -1))


def window_probability(w: Array, mean: Array, q: Array) -> Array:
    # p(w) = Gamma(N+w-1)/(Gamma(N) (w-1)!) (1-q)^N q^(w-1), whole w >= 1; q <= 0 takes the Poisson limit
    from scipy.special import betaln, gammaln, xlogy

    w, mean, q = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (w, mean, q)))
    positive = np.where(q > 1e-12, q, 0.5)
    N = (1 - positive) / positive * (mean - 1)
    binomial = N * np.log1p(-positive) + (w - 1) * np.log(positive) - np.log(N + w - 1) - betaln(N, w)
    poisson = xlogy(w - 1, mean - 1) - (mean - 1) - gammaln(w)
    return np.asarray(np.exp(np.where(q > 1e-12, binomial, poisson)))


# Section IV: the rates at which timeouts begin


def losses_to_time_out(w: Array) -> Array:
    # max(min(floor(w/2), w - 3), 0) further losses among the other w - 1 segments
    return np.maximum(np.minimum(np.floor(w / 2), w - 3), 0.0)


def tail(w: Array, delta: Array) -> Array:
    # sum_{k=kmin}^{w-1} C(w-1, k) delta^k (1-delta)^(w-1-k), 1 where kmin = 0
    from scipy.special import betainc

    k = losses_to_time_out(w)
    return np.where(k > 0, betainc(np.maximum(k, 1.0), np.maximum(w - k, 1.0), delta), 1.0)


def losses_rate(w: Array, delta: Array, R: Array) -> Array:
    # rho'(w, delta) = (w/R) delta tail: too many losses in a window
    return w / R * delta * tail(w, delta)


def lost_retransmission_rate(w: Array, delta: Array, R: Array) -> Array:
    # rho''(w, delta) = delta (w/R) delta (1 - tail): a retransmission is lost
    return delta * w / R * delta * (1 - tail(w, delta))


def windows_lost(delta: Array, c1: float = C1, gamma: float = GAMMA, as_printed: bool = False) -> Array:
    """E(w tail(w, delta)), so that lambda' R is delta times it: the sum over windows, one delta at a time.

    p(w + 1)/p(w) = (N q + (w - 1) q)/w with N q = (1 - q)(E(w) - 1) has no case for q = 0, the Poisson limit.
    """
    delta = np.asarray(delta, dtype=np.float64)
    mean = mean_window(delta, c1)
    q = np.clip(binomial_q_of(delta, c1, gamma, as_printed), 0.0, 1.0)
    Nq = (1 - q) * (mean - 1)
    small = np.maximum(q, 1e-12)
    chance = np.exp(Nq * np.where(q > 1e-12, np.log1p(-small) / small, -1.0))  # p(1) = (1 - q)^N
    total = np.zeros(delta.shape)
    for first in range(1, WIDEST + 1, AT_ONCE):
        w = np.arange(float(first), first + AT_ONCE).reshape(-1, *(1,) * delta.ndim)
        tails, growth, chances = tail(w, delta), Nq + (w - 1) * q, np.empty((AT_ONCE, *delta.shape))
        for i in range(AT_ONCE):
            chances[i] = chance
            chance = chance * growth[i] / (first + i)
        for term in w * chances * tails:
            total = total + term
    return total


def losses_timeout_rate(
    delta: Array, R: Array, c1: float = C1, gamma: float = GAMMA, as_printed: bool = False
) -> Array:
    # lambda'(delta) = E(rho'(w, delta))
    return delta / R * windows_lost(delta, c1, gamma, as_printed)


def lost_retransmission_timeout_rate(
    delta: Array, R: Array, c1: float = C1, gamma: float = GAMMA, as_printed: bool = False
) -> Array:
    # lambda''(delta) = E(rho''(w, delta)) = delta^2/R (E(w) - E(w tail))
    lost = windows_lost(delta, c1, gamma, as_printed)
    return delta**2 / R * np.maximum(0.0, mean_window(delta, c1) - lost)


def first_timeouts(rate: Array, delta: Array, RTO: Array) -> Array:
    # (7), (8) in steady state: I1 = lambda/(1 + RTO lambda (1 + 2 delta)), lambda = lambda' + lambda''; I2 = delta I1
    return rate / (1 + RTO * rate * (1 + 2 * delta))


def fraction_in_timeout(rate: Array, delta: Array, RTO: Array) -> Array:
    # (9) P(TO) = RTO I1 + 2 RTO I2
    return (1 + 2 * delta) * RTO * first_timeouts(rate, delta, RTO)


def send_rate(delta: Array, R: Array, RTO: Array, rate: Array, c1: float = C1) -> Array:
    # T = c1/(R sqrt(delta)) (1 - P(TO)), in segments; 1 - P(TO) = 1/(1 + (1 + 2 delta) RTO lambda)
    return mean_window(delta, c1) / R / (1 + (1 + 2 * delta) * RTO * rate)


# The same for many delta: E(w tail) depends on nothing else


@cache
def series(c1: float, gamma: float, as_printed: bool) -> tuple[tuple[float, float, Array], ...]:
    """ln E(w tail) as Chebyshev series in ln(delta), one between each two of the deltas where the window's law changes
    form (q = 0) and two powers of ten; their error is below 1e-11."""
    from numpy.polynomial import chebyshev

    changes = np.array([c1**2 + 4 * gamma if as_printed else c1**2 - 4 * gamma])
    roots = np.sqrt(changes[changes > 0]) * np.array([[1.0], [-1.0]])
    x = (roots - c1) / 2 if as_printed else (c1 + roots) / 2  # delta = x^2 solves (6) for q = 0
    ends = np.unique(np.clip([LOWEST, 1e-4, 1e-2, 1.0, *(x[x > 0] ** 2)], LOWEST, 1.0))
    nodes = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
    found = []
    for low, high in zip(np.log(ends[:-1]), np.log(ends[1:]), strict=True):
        delta = np.minimum(np.exp((high + low) / 2 + (high - low) / 2 * nodes), 1.0)
        values = np.log(windows_lost(delta, c1, gamma, as_printed))
        found.append((float(low), float(high), np.asarray(chebyshev.chebfit(nodes, values, NODES - 1), np.float64)))
    return tuple(found)


def windows_lost_fast(delta: Array, c1: float = C1, gamma: float = GAMMA, as_printed: bool = False) -> Array:
    """E(w tail(w, delta)) by interpolation; below LOWEST it falls as delta^(c1^2/(2 gamma))."""
    from numpy.polynomial import chebyshev

    x = np.log(delta)
    pieces = series(c1, gamma, as_printed)
    found = np.empty(x.shape)
    piece = np.clip(np.searchsorted([low for low, _, _ in pieces], x, side="right") - 1, 0, None)
    for i, (low, high, coefficients) in enumerate(pieces):
        here = np.flatnonzero(piece == i)
        for start in range(0, here.size, BLOCK):
            some = here[start : start + BLOCK]
            z = (2 * np.maximum(x[some], low) - (high + low)) / (high - low)
            found[some] = chebyshev.chebval(z, coefficients)
    return np.exp(found + np.minimum(0.0, x - pieces[0][0]) * c1**2 / (2 * gamma))


class BohacekSack(Model):
    """The send rate outside timeouts times the share of time outside them.

    c1, gamma: constants of the window's mean and variance (c1 > 1). as_printed: equation 6 with its printed sign. free:
    names of the parameters that `fit` fits, by default rto.
    """

    name = "bohacek-sack"
    title = "SACK under independent losses (Bohacek and Shah)"
    paper = "Bohacek, Shah 2004, IEEE GLOBECOM, doi:10.1109/GLOCOM.2004.1378225"
    p_definition = "packet"
    parameters = (
        Parameter("p", "1", "losses per segment sent", None, "q_tilde", high=1.0),
        Parameter("rtt", "s", "mean round-trip time", None, "rtt", low=SHORTEST, high=LONGEST),
        Parameter("rto", "s", "mean first timeout of a series", None, "rto", low=SHORTEST, high=LONGEST),
    )
    assumptions = (
        Assumption("reno-growth", "The window grows by one segment a round trip and halves at a loss."),
        Assumption("loss-limited", "Losses, and nothing else, bound the rate."),
        Assumption("not-window-limited", "The receiver's window never stops the growth."),
        Assumption("bulk", "There is always data to send, and slow start is over."),
        Assumption("sack", "The receiver reports what arrived; the sender repairs by it."),
        Assumption("bernoulli-loss", "Segments are lost independently of one another."),
        Assumption("no-reordering", "Duplicate ACKs mean loss.", required=False),
    )
    fittable = {"rto": (1e-3, 300.0, 1.0)}

    def __init__(
        self,
        *,
        c1: float = C1,
        gamma: float = GAMMA,
        as_printed: bool = False,
        free: Sequence[str] | None = None,
    ) -> None:
        self.c1 = c1
        self.gamma = gamma
        self.as_printed = as_printed
        self.free = free

    @property
    def quantity(self) -> Literal["send-rate", "throughput", "goodput"]:
        return "send-rate"

    def _inside(self, **a: Array) -> NDArray[np.bool_]:
        c1, gamma = (
            arguments.number(f"{name} of {self.name}", value)
            for name, value in (("c1", self.c1), ("gamma", self.gamma))
        )
        if not (1 < c1 < np.inf and 0 < gamma < np.inf):
            raise InvalidParameter(f"{self.name} needs c1 > 1 and gamma > 0, got {self.c1!r} and {self.gamma!r}.")
        return np.asarray(True)

    def timeout_rate(self, p: Array, rtt: Array) -> Array:
        """lambda' + lambda'', timeouts that begin per second outside timeouts; 0 without loss, nan outside the domain.

        Raises InvalidParameter for what is no number.
        """
        values = self._together(self._given({"p": p, "rtt": rtt})[1])
        inside = self._mask(values)
        some = inside & (values["p"] > 0)
        rate = np.where(inside, 0.0, np.nan)
        rate[some] = self._timeout_rate(values["p"][some], values["rtt"][some])
        return rate[()]

    def _timeout_rate(self, p: Array, rtt: Array) -> Array:
        lost = windows_lost_fast(p.reshape(-1), self.c1, self.gamma, self.as_printed).reshape(p.shape)
        return p / rtt * (lost + p * np.maximum(0.0, mean_window(p, self.c1) - lost))

    def _rate(self, **a: Array) -> Array:
        p, rtt, rto = a["p"], a["rtt"], a["rto"]
        some = np.where(p > 0, p, 1.0)
        return np.where(p > 0, send_rate(some, rtt, rto, self._timeout_rate(some, rtt), self.c1), np.inf)
