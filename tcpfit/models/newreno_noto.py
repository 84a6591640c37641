"""NewReno without timeouts (Parvez et al., eq 19): T = (1/p + W^2 q/(1+Wq)) / ((W/2 + Wq + 5/2) R).

**Symbols** p: loss events per segment (1, column `p`); q: loss probability of the other segments of a loss event (1,
`q`); R: round-trip time (s, `rtt`); W: peak window by equation 14 (segments).

**Domain** 0 <= p <= 1, 0 <= q <= 1, R > 0; nan outside. p = 0 gives inf.

**Departures** `window = "eq14"`; "exact" takes the root of 7 = 13, see newreno_window. `q_from = "measured"`; "eq30"
and "self" take q from q_tilde, "homogeneous" is the paper's q = p.

**Validation** `tests/models/test_model_values.py::test_grid[parvez_noto]`.

**Reference** Parvez, Mahanti, Williamson: An Analytic Throughput Model for TCP NewReno, IEEE/ACM ToN 18(2), 2010,
doi:10.1109/TNET.2009.2030889.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tcpfit.models.base import LONGEST, SHORTEST, Array, Assumption, Model, Parameter
from tcpfit.models.newreno_window import (
    Q_RULES,
    WINDOWS,
    burst_segments,
    losses_per_event,
    period_segments,
    q_parameters,
    resolve_q,
)


def increase_duration(W: Array, R: Array) -> Array:
    # (16) D_LI = (W/2 + 1) R
    return (W / 2 + 1) * R


def recovery_duration(W: Array, q: Array, R: Array) -> Array:
    # (17) D_FR = (1 + W q) R
    return losses_per_event(W, q) * R


def period_duration(W: Array, q: Array, R: Array) -> Array:
    # (18) D_CAFR = D_LI + R/2 + D_FR = (W/2 + W q + 5/2) R
    return increase_duration(W, R) + R / 2 + recovery_duration(W, q, R)


def throughput(p: Array, q: Array, R: Array, W: Array) -> Array:
    # (19) T = (1/p + W^2 q/(1+Wq)) / ((W/2 + Wq + 5/2) R)
    return period_segments(p, W, q) / period_duration(W, q, R)


class NewRenoNoTO(Model):
    """Equation 19.

    window: "eq14" or "exact". q_from: "measured", "eq30", "self" or "homogeneous". free: names of the parameters that
    `fit` fits, by default q.
    """

    name = "newreno-noto"
    title = "NewReno without timeouts (Parvez et al.)"
    paper = "Parvez, Mahanti, Williamson 2010, IEEE/ACM ToN 18(2):448-461, doi:10.1109/TNET.2009.2030889"
    p_definition = "loss_event"
    assumptions = (
        Assumption("reno-growth", "The window grows by one segment a round trip and halves at a loss event."),
        Assumption("loss-limited", "Losses, and nothing else, bound the rate."),
        Assumption("not-window-limited", "The receiver's window never stops the growth."),
        Assumption("bulk", "There is always data to send, and slow start is over."),
        Assumption("no-timeouts", "Every loss event is repaired by fast recovery.", required=False),
        Assumption("no-sack", "Fast recovery repairs one loss a round trip.", required=False),
        Assumption("bernoulli-loss", "Loss events, and losses within one, are independent.", required=False),
        Assumption("no-reordering", "Duplicate ACKs mean loss.", required=False),
    )
    fittable = {"q": (1e-9, 1.0, 0.05)}
    choices = {"window": tuple(WINDOWS), "q_from": Q_RULES}

    def __init__(self, *, window: str = "eq14", q_from: str = "measured", free: Sequence[str] | None = None) -> None:
        self.window = window
        self.q_from = q_from
        self.free = free

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # type: ignore[override]
        return (
            Parameter("p", "1", "loss events per segment sent", None, "p", high=1.0),
            Parameter("rtt", "s", "mean round-trip time", None, "rtt", low=SHORTEST, high=LONGEST),
            *q_parameters(self.q_from),
        )

    @property
    def quantity(self) -> Literal["send-rate", "throughput", "goodput"]:
        return "throughput"

    def _rate(self, **a: Array) -> Array:
        q = resolve_q(a, self.q_from, self.window)
        W = WINDOWS[self.window](a["p"], q)
        return np.where(a["p"] > 0, throughput(a["p"], q, a["rtt"], W), np.inf)


__all__ = ["NewRenoNoTO", "burst_segments", "increase_duration", "period_duration", "recovery_duration", "throughput"]
