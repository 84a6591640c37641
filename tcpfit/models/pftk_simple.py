"""PFTK without timeouts: B = sqrt(3 / (2 b p)) / RTT, the leading term of the triple-duplicate-only model.

**Symbols** p: loss indications per segment (1, column `p_indication`); RTT: round-trip time (s, `rtt`); b: rounds per
segment of window growth (1, `b`); W: mean window when a loss indication comes (segments).

**Domain** 0 <= p <= 1, RTT > 0, b > 0; nan outside. p = 0 gives inf. `variant="exact"` keeps the terms that the leading
one drops and reaches its own limit at p = 1, W/(RTT (b W/2 + 1)).

**Departures** `b = 2.0 (Parvez et al. print this law with b = 1 in their Table I)`. The law equals mathis's for the
same b; what differs is p, which here counts loss indications, and the default b.

**Validation** `tests/models/test_model_derivations.py` (leading term of the exact form; equality with mathis).

**Reference** Padhye, Firoiu, Towsley, Kurose: Modeling TCP Throughput, SIGCOMM 1998, doi:10.1145/285237.285291; the
form is in Parvez et al., IEEE/ACM ToN 18(2), 2010, Table I, doi:10.1109/TNET.2009.2030889.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tcpfit.models.base import LONGEST, SHORTEST, Array, Assumption, Model, Parameter


def window(p: Array, b: Array) -> Array:
    # E[W] = (2+b)/(3b) + sqrt(8 (1-p)/(3 b p) + ((2+b)/(3b))^2)
    c = (2 + b) / (3 * b)
    return np.asarray(c + np.sqrt(8 * (1 - p) / (3 * b * p) + c**2))


def leading_term(p: Array, RTT: Array, b: Array) -> Array:
    # B = sqrt(3 / (2 b p)) / RTT
    return np.asarray(np.sqrt(3 / (2 * b * p)) / RTT)


def triple_duplicate_rate(p: Array, RTT: Array, b: Array) -> Array:
    # B = ((1-p)/p + E[W]) / (RTT (b E[W]/2 + 1)), multiplied through by p so that p -> 0 does not overflow
    W = window(p, b)
    return np.asarray(((1 - p) + p * W) / (p * RTT * (b * W / 2 + 1)))


class PFTKSimple(Model):
    """B = sqrt(3/(2bp))/RTT.

    b: fixes the rounds per segment; None takes the measured column or 2. variant: "leading" (the law) or "exact"
    (before small terms are dropped). free: names of the parameters that `fit` fits, by default b.
    """

    name = "pftk-simple"
    title = "PFTK without timeouts (Padhye et al.)"
    paper = "Padhye, Firoiu, Towsley, Kurose 1998, SIGCOMM, doi:10.1145/285237.285291"
    p_definition = "loss_indication"
    parameters = (
        Parameter("p", "1", "loss indications per segment sent", None, "p_indication", high=1.0),
        Parameter("rtt", "s", "mean round-trip time", None, "rtt", low=SHORTEST, high=LONGEST),
        Parameter("b", "1", "rounds per segment of window growth", 2.0, "b", low=1e-3, high=1e3),
    )
    assumptions = (
        Assumption("reno-growth", "The window grows by one segment every b round trips and halves at each indication."),
        Assumption("loss-limited", "Losses, and nothing else, bound the rate."),
        Assumption("not-window-limited", "The receiver's window never stops the growth."),
        Assumption("bulk", "There is always data to send, and slow start is over."),
        Assumption("no-timeouts", "Every loss indication is a triple duplicate ACK.", required=False),
        Assumption("no-reordering", "Duplicate ACKs mean loss.", required=False),
    )
    fittable = {"b": (0.1, 10.0, 2.0)}
    choices = {"variant": ("leading", "exact")}

    def __init__(self, *, b: float | None = None, variant: str = "leading", free: Sequence[str] | None = None) -> None:
        self.b = b
        self.variant = variant
        self.free = free

    @property
    def quantity(self) -> Literal["send-rate", "throughput", "goodput"]:
        return "send-rate"

    def _rate(self, **a: Array) -> Array:
        if self.variant == "leading":
            return leading_term(a["p"], a["rtt"], a["b"])
        return np.where(a["p"] > 0, triple_duplicate_rate(a["p"], a["rtt"], a["b"]), np.inf)
