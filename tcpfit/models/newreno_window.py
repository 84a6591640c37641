"""What both NewReno models of Parvez et al. share: the peak window W(p, q) and the ways to q.

**Symbols** p: loss events per segment (1, column `p`); q: loss probability of the other segments of a loss event (1,
`q`); q_tilde: losses per segment (1, `q_tilde`); m: losses per loss event (1, `m`); W: mean peak window (segments).

**Domain** 0 < p <= 1, 0 <= q <= 1. W falls with p from infinity to 1.18 at p = 1, q = 0.

**Departures** Equation 14 is kept as the model, for the paper says that W comes from it; it is not the root of 7 =
13. Dropping delta from 7 = 13 gives -7p and 73p where 14 has -5p and 49p: 14 solves a quadratic with one W/2 less,
and drops O(q) under the root (W 14.77 against 14.33 at p = q = 0.01). `exact_window` is the root of 7 = 13. Equation
30 is clipped to [0, 1]; with one loss per event or fewer q is 0.

**Validation** `tests/models/test_model_values.py` (rows `parvez_W`, `parvez_W_exact`, `parvez_q.eq30`,
`parvez_q.self`); `test_model_derivations.py` puts the exact root back into 7 and 13.

**Reference** Parvez, Mahanti, Williamson: An Analytic Throughput Model for TCP NewReno, IEEE/ACM ToN 18(2), 2010,
doi:10.1109/TNET.2009.2030889.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tcpfit.models.base import Array, Parameter

BLOCK = 1 << 14  # values solved for at once: arrays that stay in the cache


def losses_probability(W: Array, m: Array, q: Array) -> Array:
    # (4) A(W, m) = C(W-1, m-1) (1-q)^(W-m) q^(m-1), for whole or real W >= m >= 1
    from scipy.special import gammaln, xlog1py, xlogy

    log_c = gammaln(W) - gammaln(m) - gammaln(W - m + 1)
    return np.asarray(np.exp(log_c + xlog1py(W - m, -q) + xlogy(m - 1, q)))


def losses_per_event(W: Array, q: Array) -> Array:
    # (5) E[m] = 1 + W q
    return 1 + W * q


def burst_segments(W: Array, q: Array) -> Array:
    # (6) delta = W^2 q / (1 + W q)
    return W**2 * q / losses_per_event(W, q)


def period_segments(p: Array, W: Array, q: Array) -> Array:
    # (7) S_CAFR = 1/p + delta
    return 1 / p + burst_segments(W, q)


def recovery_segments_of(W: Array, m: Array) -> Array:
    # (9) m/2 (W - m - 1) new segments in a fast recovery of m <= W/2 losses; (10) W^2/8 - W/4 for more
    return np.where(m <= W / 2, m / 2 * (W - m - 1), W**2 / 8 - W / 4)


def recovery_segments(W: Array, q: Array) -> Array:
    # (11) S_FR = W^2/2 (q - q^2) + W/2 (1 - 5q + 3q^2) - (1 - 2q + q^2): the mean of (9) over every m, (10) left out
    return W**2 / 2 * (q - q**2) + W / 2 * (1 - 5 * q + 3 * q**2) - (1 - q) ** 2


def increase_segments(W: Array) -> Array:
    # (12) S_LI = 3/8 W^2 + 3/4 W
    return 3 / 8 * W**2 + 3 / 4 * W


def fluid_period_segments(W: Array, q: Array) -> Array:
    # (8), (13) S_CAFR = S_LI + W/2 + S_FR = (3/8 + q/2 - q^2/2) W^2 + (7/4 - 5q/2 + 3q^2/2) W - (1 - 2q + q^2)
    a, b, c = _coefficients(q)
    return (a * W + b) * W - c


def printed_window(p: Array, q: Array) -> Array:
    # (14) W = (10 p q - 5 p + sqrt(p (24 + 32 q + 49 p))) / (p (3 + 4 q)), numerator and denominator divided by p
    return np.asarray((10 * q - 5 + np.sqrt((24 + 32 * q) / p + 49)) / (3 + 4 * q))


def exact_window(p: Array, q: Array) -> Array:
    # root of (7) = (13) by Newton's method; their difference rises with W, so there is one root
    a, b, c = _coefficients(q)
    W = np.sqrt((1 / p + c) / a) + 2 / (3 + 4 * q)  # an upper bound within a few segments
    found = np.zeros(np.shape(W), np.bool_)  # one that is found stays, whatever stands beside it
    for _ in range(50):
        m = losses_per_event(W, q)
        excess = (a * W + b) * W - c - 1 / p - W**2 * q / m
        step = np.where(found, 0.0, excess / (2 * a * W + b - 1 + 1 / m**2))
        W = np.maximum(W - step, 0.1 * W)
        found = ~(np.abs(step) > 1e-14 * W)
        if found.all():
            break
    return np.asarray(W)


WINDOWS: dict[str, Callable[[Array, Array], Array]] = {"eq14": printed_window, "exact": exact_window}


def q_from_rates(q_tilde: Array, p: Array, window: str = "eq14") -> Array:
    # (30) q = (q_tilde/p - 1) / (W - 1), W at q = q_tilde
    W = WINDOWS[window](p, np.minimum(q_tilde, 1.0))
    return np.clip((q_tilde / p - 1) / (W - 1), 0.0, 1.0)


def q_self_consistent(q_tilde: Array, p: Array, window: str = "eq14") -> Array:
    # q (W(p, q) - 1) = q_tilde/p - 1: the left side rises with q. Regula falsi within [0, 1] that halves the value
    # of an end which stays (the Illinois rule), in blocks that stay in the cache
    q_tilde, p = np.broadcast_arrays(np.asarray(q_tilde, dtype=np.float64), np.asarray(p, dtype=np.float64))
    found = np.empty(q_tilde.size)
    for start in range(0, found.size, BLOCK):
        block = slice(start, start + BLOCK)
        found[block] = _root_for_q(q_tilde.ravel()[block] / p.ravel()[block] - 1, p.ravel()[block], window)
    return found.reshape(q_tilde.shape)


def _root_for_q(excess: Array, p: Array, window: str) -> Array:
    low, high = np.zeros_like(p), np.ones_like(p)
    below, above = -excess, WINDOWS[window](p, high) - 1 - excess
    always, never = above <= 0, excess <= 0
    side, q = np.zeros_like(p), high
    found = always | never  # one that is found stays, whatever stands beside it
    for _ in range(100):
        q = np.where(found, q, np.where(above > below, (low * above - high * below) / (above - below), low))
        value = q * (WINDOWS[window](p, q) - 1) - excess
        short = value < 0
        above = np.where(short, np.where(side < 0, above / 2, above), value)
        below = np.where(short, value, np.where(side > 0, below / 2, below))
        low, high, side = np.where(short, q, low), np.where(short, high, q), np.where(short, -1.0, 1.0)
        found |= ~((np.abs(value) > 5e-16 * (1 + excess)) & (high - low > 1e-15 * high))
        if found.all():
            break
    return np.where(never, 0.0, np.where(always, 1.0, np.clip(q, 0.0, 1.0)))


Q_RULES = ("measured", "eq30", "self", "homogeneous")


def q_parameters(q_from: str) -> tuple[Parameter, ...]:
    """The parameter that the rule for q needs, if any."""
    if q_from == "measured":
        meaning = "loss probability of the other segments of a loss event"
        return (Parameter("q", "1", meaning, None, "q", high=1.0),)
    if q_from in ("eq30", "self"):
        return (Parameter("q_tilde", "1", "losses per segment sent", None, "q_tilde", high=1.0),)
    return ()


def resolve_q(a: dict[str, Array], q_from: str, window: str) -> Array:
    """q by the chosen rule: as measured, by (30), self-consistently, or q = p."""
    if q_from == "measured":
        return a["q"]
    if q_from == "homogeneous":
        return a["p"]
    return (q_from_rates if q_from == "eq30" else q_self_consistent)(a["q_tilde"], a["p"], window)


def _coefficients(q: Array) -> tuple[Array, Array, Array]:
    return 3 / 8 + q / 2 - q**2 / 2, 7 / 4 - 5 * q / 2 + 3 * q**2 / 2, (1 - q) ** 2
