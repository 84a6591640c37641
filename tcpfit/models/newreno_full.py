"""NewReno with timeouts (Parvez et al., eq 29), segments per second:
T = (1/p + W^2 q/(1+Wq)) / (N R + p_TO ((1+2p+4p^2) RTO + (1 + log2(W/4)) R)), N = W/2 + 3/2 + (1-p_TO)(1+Wq).

**Symbols** p: loss events per segment (1, column `p`); q: loss probability of the other segments of a loss event (1,
`q`); R: round-trip time (s, `rtt`); RTO: mean first timeout of a series (s, `rto`); W: peak window, eq 14 (segments);
p_TO: probability that a loss event ends in a timeout, eq 24.

**Domain** 0 <= p <= 1, 0 <= q <= 1, R > 0, RTO > 0; nan outside. p = 0 gives inf. W < 4 gives p_TO = 1 (at q = p
from p = 0.1045 on); W < 2 makes the slow start of eq 28 negative, which is clamped at 0; near p = 1 eq 14 has lost
its meaning.

**Departures** `rounding = "floor"`: W of eq 24 (in A, in the sum's limit and in mW/2) is rounded down, for the paper
does not say how a real W enters a binomial; "ceil", "nearest", and "real" (gamma functions) are the alternatives;
"floor" and "ceil" are up to 12 % apart at W of 4 to 6 with RTO = 10 R (5 % with 3 R). `series = "printed"`: 1+2p+4p^2
of eq 29, not the f(p)/(1-p) of eq 26, which "exact" takes (-0.8 % at p = 0.1, -6 % at 0.2). `window = "eq14"`,
`q_from = "measured"`, see newreno_window. log is base 2. Extension, not in the paper: `p_to=` puts a measured share
of timeouts in the place of eq 24.

**Validation** `tests/models/test_model_values.py` (rows `parvez_full`, `parvez_pTO`); eq 24's closed form against its
sum in `test_model_derivations.py`. The paper's Table IV prints no RTO.
With 1.5 s for every row, a value chosen because it comes near these same rows, the largest difference is 4.8 %
(4.9 % with "ceil"): that checks the code, and is no evidence for the model.

**Reference** Parvez, Mahanti, Williamson: An Analytic Throughput Model for TCP NewReno, IEEE/ACM ToN 18(2), 2010,
doi:10.1109/TNET.2009.2030889.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tcpfit.models.base import LONGEST, SHORTEST, Array, Assumption, Model, Parameter
from tcpfit.models.newreno_noto import increase_duration, recovery_duration
from tcpfit.models.newreno_window import Q_RULES, WINDOWS, losses_probability, period_segments, q_parameters, resolve_q
from tcpfit.models.timeouts import backoff, backoff_second_order

ROUNDINGS = {"floor": np.floor, "ceil": np.ceil, "nearest": np.rint}
BLOCK = 1 << 13  # rows of one block of the sum over m for real W
REAL_LIMIT = 1e5  # above it the sum for real W is that of floor(W)


def timeout_probability(p: Array, q: Array, W: Array) -> Array:
    # (24) p_TO = 1 - sum_{m=1}^{W-3} A(W,m) s^m, s = (1-p)^(W/2), for whole W: the sum over all m is s (1-q+qs)^(W-1)
    # by the binomial theorem, and the terms m = W-2, W-1, W are taken off
    n = np.maximum(W, 4.0) - 1
    log_s = (n + 1) / 2 * np.log1p(-p)
    s = np.exp(log_s)
    missing = -np.expm1(log_s + n * np.log1p(-q * -np.expm1(log_s)))
    return np.where(W < 4, 1.0, np.clip(missing + s * last_terms(n, q, q * s), 0.0, 1.0))


def last_terms(n: Array, q: Array, q_s: Array) -> Array:
    """A(W, m) (q_s/q)^(m-1) over m = W-2, W-1, W, with n = W - 1."""
    return q_s ** (n - 2) * (n * (n - 1) / 2 * (1 - q) ** 2 + n * (1 - q) * q_s + q_s**2)


def direct_timeout_probability(q: Array, W: Array) -> Array:
    # (22) p_DTO = sum_{m=W-2}^{W} A(W,m), for whole W: too few duplicate ACKs
    return np.where(W < 4, 1.0, np.clip(last_terms(np.maximum(W, 4.0) - 1, q, q), 0.0, 1.0))


def failed_recovery_probability(p: Array, q: Array, W: Array) -> Array:
    # (23) p_IFR = sum_{m=1}^{W-3} A(W,m) (1 - (1-p)^(mW/2)), for whole W, by (21) p_TO = p_DTO + p_IFR
    return np.maximum(0.0, timeout_probability(p, q, W) - direct_timeout_probability(q, W))


def timeout_probability_real(p: Array, q: Array, W: Array) -> Array:
    # (24) with real W: A(W,m) by gamma functions, m up to floor(W - 3), s = (1-p)^(W/2); floor(W) above REAL_LIMIT
    shape = np.broadcast(p, q, W).shape
    p, q, W = (np.ravel(x) for x in np.broadcast_arrays(p, q, W))
    found = timeout_probability(p, q, np.floor(W))
    order = np.argsort(W)
    order = order[(W[order] >= 4) & (W[order] <= REAL_LIMIT)]
    for start in range(0, order.size, BLOCK):  # blocks of similar W
        some = order[start : start + BLOCK]
        found[some] = np.clip(1 - _sum_for_real(p[some], q[some], W[some]), 0.0, 1.0)
    return found.reshape(shape)


def _sum_for_real(p: Array, q: Array, W: Array) -> Array:
    """The sum of 24, from its largest term up and down by A(W,m+1)/A(W,m) = (W-m)/m q/(1-q)."""
    log_s, last = W / 2 * np.log1p(-p), np.floor(W - 3)
    with np.errstate(all="ignore"):
        ratio = q / (1 - q) * np.exp(log_s)
        largest = np.where(q < 1, np.floor(W * ratio / (1 + ratio)), last)
        largest = np.clip(np.nan_to_num(largest, nan=1.0), 1.0, last)
        start = losses_probability(W, largest, q) * np.exp(largest * log_s)
        total, term, m = start.copy(), start, largest
        while np.any((term > 1e-17 * total) & (m < last)):
            term, m = np.where(m < last, term * (W - m) / m * ratio, 0.0), m + 1
            total += term
        term, m = start, largest
        while np.any((term > 1e-17 * total) & (m > 1)):
            term, m = np.where(m > 1, term * (m - 1) / ((W - m + 1) * ratio), 0.0), m - 1
            total += term
    return np.asarray(total)


def slow_start_segments(W: Array) -> Array:
    # (27) S_SS = 1 + 2 + ... + W/4 = W/2 - 1, not below 0; (29) leaves it out, as it puts (7) for all segments
    return np.maximum(0.0, W / 2 - 1)


def slow_start_duration(W: Array, R: Array) -> Array:
    # (28) D_SS = (log2(W/4) + 1) R, not below 0
    return np.asarray(np.maximum(0.0, np.log2(W / 4) + 1) * R)


def throughput(p: Array, q: Array, R: Array, RTO: Array, W: Array, p_TO: Array, series: str = "printed") -> Array:
    # (29), or (20) with (7) for its numerator; (26) D_TO = RTO f(p)/(1-p) when the series is exact
    factor = backoff_second_order(p) if series == "printed" else backoff(p) / (1 - p)
    recovery = (1 - p_TO) * recovery_duration(W, q, R) + R / 2
    timeouts = np.where(p_TO > 0, p_TO * (factor * RTO + slow_start_duration(W, R)), 0.0)
    return period_segments(p, W, q) / (increase_duration(W, R) + recovery + timeouts)


class NewRenoFull(Model):
    """Equation 29.

    window: "eq14" or "exact". rounding: "floor", "ceil", "nearest" or "real" W in eq 24. series: "printed" or "exact"
    back-off. q_from: "measured", "eq30", "self" or "homogeneous". free: names of the parameters that `fit` fits (rto,
    q), by default rto.
    """

    name = "newreno-full"
    title = "NewReno with timeouts (Parvez et al.)"
    paper = "Parvez, Mahanti, Williamson 2010, IEEE/ACM ToN 18(2):448-461, doi:10.1109/TNET.2009.2030889"
    p_definition = "loss_event"
    assumptions = (
        Assumption("reno-growth", "The window grows by one segment a round trip and halves at a loss event."),
        Assumption("loss-limited", "Losses, and nothing else, bound the rate."),
        Assumption("not-window-limited", "The receiver's window never stops the growth."),
        Assumption("bulk", "There is always data to send, and slow start is over."),
        Assumption("no-sack", "Fast recovery repairs one loss a round trip.", required=False),
        Assumption("bernoulli-loss", "Loss events, and losses within one, are independent.", required=False),
        Assumption("no-reordering", "Duplicate ACKs mean loss.", required=False),
    )
    extensions = (
        Parameter("p_to", "1", "measured share of loss events that ended in a timeout", None, "p_to", high=1.0),
    )
    fittable = {"rto": (1e-3, 300.0, 1.0), "q": (1e-9, 1.0, 0.05)}
    choices = {
        "window": tuple(WINDOWS),
        "rounding": (*ROUNDINGS, "real"),
        "series": ("printed", "exact"),
        "q_from": Q_RULES,
    }

    def __init__(
        self,
        *,
        window: str = "eq14",
        rounding: str = "floor",
        series: str = "printed",
        q_from: str = "measured",
        free: Sequence[str] | None = None,
    ) -> None:
        self.window = window
        self.rounding = rounding
        self.series = series
        self.q_from = q_from
        self.free = free

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # type: ignore[override]
        return (
            Parameter("p", "1", "loss events per segment sent", None, "p", high=1.0),
            Parameter("rtt", "s", "mean round-trip time", None, "rtt", low=SHORTEST, high=LONGEST),
            Parameter("rto", "s", "mean first timeout of a series", None, "rto", low=SHORTEST, high=LONGEST),
            *q_parameters(self.q_from),
        )

    @property
    def quantity(self) -> Literal["send-rate", "throughput", "goodput"]:
        return "throughput"

    def timeout_share(self, p: Array, q: Array, W: Array) -> Array:
        """p_TO of equation 24 under the chosen rounding of W."""
        if self.rounding == "real":
            return timeout_probability_real(p, q, W)
        return timeout_probability(p, q, np.asarray(ROUNDINGS[self.rounding](W)))

    def _rate(self, **a: Array) -> Array:
        p, q = a["p"], resolve_q(a, self.q_from, self.window)
        W = WINDOWS[self.window](p, q)
        p_TO = a["p_to"] if "p_to" in a else self.timeout_share(p, q, W)
        return np.where(p > 0, throughput(p, q, a["rtt"], a["rto"], W, p_TO, self.series), np.inf)
