"""The square-root law of Mathis et al.: B = C / (RTT sqrt(p)), C = sqrt(3 / (2 b)) for periodic losses.

**Symbols** p: loss events per segment (1, column `p`); RTT: round-trip time (s, `rtt`); b: rounds per segment of
window growth (1, `b`); C: constant of the law (1).

**Domain** 0 <= p <= 1, RTT > 0, b > 0; nan outside. p = 0 gives inf: nothing limits the rate. The law knows no timeouts
and no window limit; above p of about 0.02 it is an upper bound more than a prediction.

**Departures** `b = 1.0 (the paper prints C for every-segment and for delayed ACKs; both follow from b = 1 and b = 2)`.
`losses="random"` takes C = 1.31/sqrt(b) instead, the constant for independent losses (0.93 with b = 2).

**Validation** `tests/models/test_model_values.py::test_grid[mathis]`; C = 1.22 and 0.87 in `test_model_limits.py`.

**Reference** Mathis, Semke, Mahdavi, Ott: The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, ACM CCR
27(3), 1997, doi:10.1145/263932.264023.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tcpfit.models.base import LONGEST, SHORTEST, Array, Assumption, Model, Parameter


def constant(b: Array, losses: str = "periodic") -> Array:
    # C = sqrt(3 / (2 b)): a saw-tooth between W/2 and W delivers 3/8 b W^2 = 1/p segments in b W/2 round trips
    return np.asarray((1.31 if losses == "random" else np.sqrt(1.5)) / np.sqrt(b))


def rate(p: Array, RTT: Array, C: Array) -> Array:
    # B = C / (RTT sqrt(p))
    return np.asarray(C / (RTT * np.sqrt(p)))


class Mathis(Model):
    """B = C/(RTT sqrt(p)).

    b: fixes the rounds per segment; None takes the measured column or 1. losses: "periodic" or "random", chooses C.
    free: names of the parameters that `fit` fits, by default b.
    """

    name = "mathis"
    title = "square-root law (Mathis et al.)"
    paper = "Mathis, Semke, Mahdavi, Ott 1997, ACM CCR 27(3):67-82, doi:10.1145/263932.264023"
    p_definition = "loss_event"
    parameters = (
        Parameter("p", "1", "loss events per segment sent", None, "p", high=1.0),
        Parameter("rtt", "s", "mean round-trip time", None, "rtt", low=SHORTEST, high=LONGEST),
        Parameter("b", "1", "rounds per segment of window growth", 1.0, "b", low=1e-3, high=1e3),
    )
    assumptions = (
        Assumption("reno-growth", "The window grows by one segment every b round trips and halves at a loss event."),
        Assumption("loss-limited", "Losses, and nothing else, bound the rate."),
        Assumption("not-window-limited", "The receiver's window never stops the growth."),
        Assumption("bulk", "There is always data to send, and slow start is over."),
        Assumption("no-timeouts", "Every loss event is repaired without a timeout.", required=False),
        Assumption("sack", "Several losses in a window cost one reduction.", required=False),
        Assumption("no-reordering", "Late segments are not taken for lost ones.", required=False),
    )
    fittable = {"b": (0.1, 10.0, 1.0)}
    choices = {"losses": ("periodic", "random")}

    def __init__(self, *, b: float | None = None, losses: str = "periodic", free: Sequence[str] | None = None) -> None:
        self.b = b
        self.losses = losses
        self.free = free

    @property
    def quantity(self) -> Literal["send-rate", "throughput", "goodput"]:
        return "throughput"

    def _rate(self, **a: Array) -> Array:
        return rate(a["p"], a["rtt"], constant(a["b"], self.losses))
