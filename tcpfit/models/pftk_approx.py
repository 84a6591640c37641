"""PFTK's closed approximation with timeouts and a window limit:
B = min(Wmax/RTT, 1 / (RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2))).

**Symbols** p: loss indications per segment (1, column `p_indication`); RTT: round-trip time (s, `rtt`); T0: mean first
timeout of a series (s, `rto`); b: rounds per segment of window growth (1, `b`); Wmax: window limit (segments, `w_max`).

**Domain** 0 <= p <= 1, RTT > 0, T0 > 0, b > 0, Wmax >= 1; nan outside. p = 0 gives Wmax/RTT.

**Departures** `b = 2.0, w_max = inf (Parvez et al. print it as "Full" in Table I with b = 1 and no Wmax)`. RFC 3448's
equation is this one without min(1, .), with T0 = 4 RTT and b = 1.

**Validation** `tests/models/test_model_values.py::test_grid[pftk_approx]`.

**Reference** Padhye, Firoiu, Towsley, Kurose: Modeling TCP Throughput, SIGCOMM 1998, doi:10.1145/285237.285291.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tcpfit.models.base import LONGEST, SHORTEST, Array, Assumption, Model, Parameter


def timeout_share(p: Array, b: Array) -> Array:
    # min(1, 3 sqrt(3 b p / 8)), the small-p form of Q(p, E[W])
    return np.asarray(np.minimum(1.0, 3 * np.sqrt(3 * b * p / 8)))


def send_rate(p: Array, RTT: Array, T0: Array, b: Array, Wmax: Array) -> Array:
    # B = min(Wmax/RTT, 1 / (RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2)))
    per_segment = RTT * np.sqrt(2 * b * p / 3) + T0 * timeout_share(p, b) * p * (1 + 32 * p**2)
    return np.asarray(np.minimum(Wmax / RTT, 1 / per_segment))


class PFTKApprox(Model):
    """The approximate PFTK send rate.

    b: fixes the rounds per segment; None takes the measured column or 2. free: names of the parameters that `fit` fits
    (b, rto, w_max), by default b.
    """

    name = "pftk-approx"
    title = "PFTK, closed approximation (Padhye et al.)"
    paper = "Padhye, Firoiu, Towsley, Kurose 1998, SIGCOMM, doi:10.1145/285237.285291"
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
    fittable = {"b": (0.1, 10.0, 2.0), "rto": (1e-3, 300.0, 1.0), "w_max": (1.0, 1e5, 32.0)}

    def __init__(self, *, b: float | None = None, free: Sequence[str] | None = None) -> None:
        self.b = b
        self.free = free

    @property
    def quantity(self) -> Literal["send-rate", "throughput", "goodput"]:
        return "send-rate"

    def _rate(self, **a: Array) -> Array:
        return send_rate(a["p"], a["rtt"], a["rto"], a["b"], a["w_max"])
