"""PFTK's full model: triple-duplicate periods and timeouts, with or without a window limit.

With W = E[W] (not limited), Q = P(TO) at W, f(p) the back-off polynomial:
    B = ((1-p)/p + W + Q/(1-p)) / (RTT (b W/2 + 1) + Q T0 f(p)/(1-p))                       E[W] < Wmax
    B = ((1-p)/p + Wmax + Q/(1-p)) / (RTT (b Wmax/8 + (1-p)/(p Wmax) + 2) + Q T0 f(p)/(1-p))    else, Q at Wmax
That is what is sent. What is received has the numerator (1-p)/p + W/2 + Q over the same time.

**Symbols** p: loss indications per segment (1, column `p_indication`); RTT (s, `rtt`); T0: mean first timeout of a
series (s, `rto`); b: rounds per segment of window growth (1, `b`); Wmax: window limit (segments, `w_max`).

**Domain** 0 <= p <= 1, RTT > 0, T0 > 0, b > 0, Wmax >= 1; nan outside. p = 0 gives Wmax/RTT; p = 1 gives
1/(64 T0) sent and nothing received. Both numerators are multiplied by p (1-p), so the limits need no special case.

**Departures** `b = 2.0, w_max = inf`; `variant = "send" (the paper has both numerators; Cardwell et al. use
"throughput")`. Give the measured b where there is one: a sender that grows by acknowledged segments has b near 1,
however the receiver delays. How near the model comes on real flows is not tested here. Extension, not in the paper:
`p_to=` puts a measured share of timeouts in the place of Q.

**Validation** `tests/models/test_model_values.py::test_grid[pftk_full.send]`, `[pftk_full.thr]`; Q against the
paper's sum in `test_model_derivations.py`.

**Reference** Padhye, Firoiu, Towsley, Kurose: Modeling TCP Throughput, SIGCOMM 1998, doi:10.1145/285237.285291; and
Modeling TCP Reno Performance, IEEE/ACM ToN 8(2), 2000, doi:10.1109/90.842137.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tcpfit.models.base import LONGEST, SHORTEST, TINY, Array, Assumption, Model, Parameter
from tcpfit.models.pftk_simple import window
from tcpfit.models.timeouts import backoff, timeout_probability


def period_duration(p: Array, RTT: Array, b: Array, W: Array, limited: NDArray[np.bool_]) -> Array:
    # p E[A] = p RTT (b W/2 + 1), or p RTT (b Wmax/8 + (1-p)/(p Wmax) + 2) when the window is limited
    return RTT * np.where(limited, p * (b * W / 8 + 2) + (1 - p) / W, p * (b * W / 2 + 1))


def rate(p: Array, RTT: Array, T0: Array, b: Array, Wmax: Array, Q: Array | None, variant: str) -> Array:
    # see the module's head; numerator and denominator carry the factor p (1-p)
    free = window(p, b)
    limited = free >= Wmax
    W = np.where(limited, Wmax, free)
    Q = timeout_probability(p, W) if Q is None else Q
    p = np.where(Q > TINY, p, np.minimum(p, 1 - 2.0**-53))  # measured Q = 0 at p = 1 would leave 0/0
    if variant == "send":
        segments = (1 - p) ** 2 + p * (1 - p) * W + p * Q
    else:
        segments = (1 - p) * ((1 - p) + p * W / 2 + p * Q)
    seconds = (1 - p) * period_duration(p, RTT, b, W, limited) + p * Q * T0 * backoff(p)
    return np.where((p > 0) | (Wmax < np.inf), segments / seconds, np.inf)


def time_in_timeout(p: Array, RTT: Array, T0: Array, b: Array | float = 1.0, as_printed: bool = False) -> Array:
    """The share of time that PFTK's sender waits for timers: Q E[TO] over Q E[TO] and a triple-duplicate period.

    Bohacek and Shah's equation 10 (doi:10.1109/GLOCOM.2004.1378225), for b = 1. They print R/8 (W+1) for the period, of
    which R (b W/2 + 1) gives their 43 % at p = 0.01 (R = 30 ms, T0 = 1 s; printed form: 76 %).
    """
    p, b = np.asarray(p, dtype=np.float64), np.asarray(b, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        W = window(p, b)
        period = RTT / 8 * (W + 1) if as_printed else RTT * (b * W / 2 + 1)
        waiting = timeout_probability(p, W) * T0 * backoff(p)
        return np.where(p > 0, waiting / (waiting + (1 - p) * period), 0.0)


class PFTKFull(Model):
    """The full PFTK model.

    b: fixes the rounds per segment; None takes the measured column or 2. variant: "send" (segments sent) or
    "throughput" (segments received). free: names of the parameters that `fit` fits (b, rto, w_max), by default b.
    """

    name = "pftk-full"
    title = "PFTK, full model (Padhye et al.)"
    paper = (
        "Padhye, Firoiu, Towsley, Kurose 1998, SIGCOMM, doi:10.1145/285237.285291; "
        "2000, IEEE/ACM ToN 8(2):133-145, doi:10.1109/90.842137"
    )
    p_definition = "loss_indication"
    parameters = (
        Parameter("p", "1", "loss indications per segment sent", None, "p_indication", high=1.0),
        Parameter("rtt", "s", "mean round-trip time", None, "rtt", low=SHORTEST, high=LONGEST),
        Parameter("rto", "s", "mean first timeout of a series", None, "rto", low=SHORTEST, high=LONGEST),
        Parameter("b", "1", "rounds per segment of window growth", 2.0, "b", low=1e-3, high=1e3),
        Parameter("w_max", "segments", "window limit", float(np.inf), "w_max", low=1.0),
    )
    assumptions = (
        Assumption("reno-growth", "The window grows by one segment every b round trips and halves at each indication."),
        Assumption("loss-limited", "Losses or the window limit bound the rate, not the application or the link."),
        Assumption("bulk", "There is always data to send, and slow start is over."),
        Assumption("correlated-loss-in-round", "After the first loss of a round the rest is lost.", required=False),
        Assumption("no-sack", "Reno's recovery: one loss per fast retransmit.", required=False),
        Assumption("no-reordering", "Duplicate ACKs mean loss.", required=False),
    )
    extensions = (Parameter("p_to", "1", "measured share of timeouts among loss indications", None, "p_to", high=1.0),)
    fittable = {"b": (0.1, 10.0, 2.0), "rto": (1e-3, 300.0, 1.0), "w_max": (1.0, 1e5, 32.0)}
    choices = {"variant": ("send", "throughput")}

    def __init__(self, *, b: float | None = None, variant: str = "send", free: Sequence[str] | None = None) -> None:
        self.b = b
        self.variant = variant
        self.free = free

    @property
    def quantity(self) -> Literal["send-rate", "throughput", "goodput"]:
        return "send-rate" if self.variant == "send" else "throughput"

    def _rate(self, **a: Array) -> Array:
        return rate(a["p"], a["rtt"], a["rto"], a["b"], a["w_max"], a.get("p_to"), self.variant)
