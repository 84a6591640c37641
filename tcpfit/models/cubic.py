"""CUBIC's mean window under a steady loss rate (RFC 9438), over the round-trip time: segments/s.

Every 1/p segments the window falls from Wmax to beta Wmax and grows back along a cubic in time, in K seconds (concave
region). Where that is slower than a Reno-like sender that keeps beta would be, the window follows the Reno-friendly
estimate instead: the larger of the two means is the model.

**Symbols** p: loss events per segment (1, column `p`); RTT (s, `rtt`); C: aggressiveness of the cubic (segments/s^3);
beta: share of the window that is kept at a loss event (1); alpha: growth of the Reno-friendly window (segments a round
trip); Wmax: window before the reduction (segments); t: time since (s).

**Domain** 0 <= p <= 1, 0 < RTT, C > 0, 0 < beta < 1; nan outside. p = 0 gives inf. No timeouts, no window limit, no
fast convergence, no convex region: losses come at even distances, so every epoch ends where it began.

**Departures** `region = "both"`; "cubic" or "reno" takes one of the two. The Reno-friendly mean is sqrt(1.5/p), as
section 4.3 derives it; the tables of section 5.1 were computed with the 1.2/sqrt(p) of RFC 3649 (`as_printed=True`).
beta is what is kept (0.7); old drafts give that name to what is taken off. RFC 9438 sets alpha to 1 once the estimate
has reached Wmax, which is where an epoch ends here.

**Validation** `tests/models/test_model_values.py` (42 printed cells of tables 1 and 2 of RFC 8312, 3 of its table 3;
rows `cubic_response`, `cubic_W`, `cubic_West`, `cubic_friendly`); the mean against the integral of the epoch, and both
against windows counted round by round, in `tests/models/test_cubic.py`.

**Reference** Xu, Ha, Rhee, Goel, Eggert: CUBIC for Fast and Long-Distance Networks, RFC 9438, 2023,
doi:10.17487/RFC9438; the equations' numbers are those of RFC 8312, doi:10.17487/RFC8312.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tcpfit.models.base import LONGEST, SHORTEST, Array, Assumption, Model, Parameter


def epoch(Wmax: Array, C: Array | float = 0.4, beta: Array | float = 0.7) -> Array:
    # (2) K = cbrt(Wmax (1 - beta)/C), the time to grow back to Wmax; RFC 9438: cbrt((Wmax - cwnd_epoch)/C)
    return np.cbrt(Wmax * (1 - beta) / C)


def cubic_window(t: Array, Wmax: Array, C: Array | float = 0.4, beta: Array | float = 0.7) -> Array:
    # (1) W_cubic(t) = C (t - K)^3 + Wmax
    return C * (t - epoch(Wmax, C, beta)) ** 3 + Wmax


def friendly_growth(beta: Array | float) -> Array:
    # section 4.3: alpha = 3 (1 - beta)/(1 + beta), with which (3) gives Reno's mean window
    return np.asarray(3 * (1 - beta) / (1 + beta))


def friendly_window(t: Array, Wmax: Array, RTT: Array, beta: Array | float = 0.7) -> Array:
    # (4) W_est(t) = beta Wmax + alpha t/RTT
    return beta * Wmax + friendly_growth(beta) * t / RTT


def is_friendly(
    t: Array, Wmax: Array, RTT: Array, C: Array | float = 0.4, beta: Array | float = 0.7
) -> NDArray[np.bool_]:
    # section 4.3: the window is W_est where W_cubic(t) is below it
    return np.asarray(cubic_window(t, Wmax, C, beta) < friendly_window(t, Wmax, RTT, beta))


def mean_aimd_window(p: Array, alpha: Array | float, beta: Array | float) -> Array:
    # (3) AVG_AIMD(alpha, beta) = sqrt(alpha (1 + beta) / (2 (1 - beta) p))
    return np.sqrt(alpha * (1 + beta) / (2 * (1 - beta) * p))


def mean_cubic_window(p: Array, RTT: Array, C: Array | float = 0.4, beta: Array | float = 0.7) -> Array:
    # (5) AVG_W_cubic = (C (3 + beta)/(4 (1 - beta)))^(1/4) (RTT/p)^(3/4)
    return np.asarray((C * (3 + beta) / (4 * (1 - beta))) ** 0.25 * (RTT / p) ** 0.75)


def loss_rate_for(W: Array, RTT: Array, C: Array | float = 0.4, beta: Array | float = 0.7) -> Array:
    # (5) solved for p: the loss rate that a mean window of W can bear (section 5.2)
    return np.asarray((C * (3 + beta) / (4 * (1 - beta))) ** (1 / 3) * RTT / W ** (4 / 3))


def mean_friendly_window(p: Array, beta: Array | float = 0.7, as_printed: bool = False) -> Array:
    # (3) with alpha of section 4.3, which is sqrt(3/(2p)); the tables print RFC 3649's 1.2/sqrt(p)
    return 1.2 / np.sqrt(p) if as_printed else mean_aimd_window(p, friendly_growth(beta), beta)


def mean_window(
    p: Array,
    RTT: Array,
    C: Array | float = 0.4,
    beta: Array | float = 0.7,
    region: str = "both",
    as_printed: bool = False,
) -> Array:
    # sections 4.3 and 5.1: the larger of the two
    if region == "cubic":
        return mean_cubic_window(p, RTT, C, beta)
    friendly = mean_friendly_window(p, beta, as_printed)
    return friendly if region == "reno" else np.maximum(mean_cubic_window(p, RTT, C, beta), friendly)


class Cubic(Model):
    """The larger of CUBIC's two mean windows, over the round-trip time.

    c, beta: fix CUBIC's constants; None takes 0.4 and 0.7. region: "both", "cubic" or "reno". as_printed: 1.2/sqrt(p)
    for the Reno-friendly mean, as in the tables. free: names of the parameters that `fit` fits (c, beta), by default c.
    """

    name = "cubic"
    title = "CUBIC's response function (RFC 9438)"
    paper = "Xu, Ha, Rhee, Goel, Eggert 2023, RFC 9438, doi:10.17487/RFC9438"
    p_definition = "loss_event"
    parameters = (
        Parameter("p", "1", "loss events per segment sent", None, "p", high=1.0),
        Parameter("rtt", "s", "mean round-trip time", None, "rtt", low=SHORTEST, high=LONGEST),
        Parameter("c", "segments/s^3", "CUBIC's constant C", 0.4, low=1e-9, high=1e9),
        Parameter("beta", "1", "share of the window kept at a loss event", 0.7, low=1e-3, high=0.999),
    )
    assumptions = (
        Assumption("cubic-growth", "The window keeps beta of its size at a loss event and grows back along a cubic."),
        Assumption("loss-limited", "Losses, and nothing else, bound the rate."),
        Assumption("not-window-limited", "The receiver's window never stops the growth."),
        Assumption("bulk", "There is always data to send, and slow start is over."),
        Assumption("no-timeouts", "Every loss event is repaired without a timeout.", required=False),
        Assumption("sack", "Several losses in a window cost one reduction.", required=False),
        Assumption("no-reordering", "Late segments are not taken for lost ones.", required=False),
    )
    fittable = {"c": (1e-3, 1e2, 0.4), "beta": (0.3, 0.95, 0.7)}
    choices = {"region": ("both", "cubic", "reno")}

    def __init__(
        self,
        *,
        c: float | None = None,
        beta: float | None = None,
        region: str = "both",
        as_printed: bool = False,
        free: Sequence[str] | None = None,
    ) -> None:
        self.c = c
        self.beta = beta
        self.region = region
        self.as_printed = as_printed
        self.free = free

    @property
    def quantity(self) -> Literal["send-rate", "throughput", "goodput"]:
        return "throughput"

    def _rate(self, **a: Array) -> Array:
        return mean_window(a["p"], a["rtt"], a["c"], a["beta"], self.region, self.as_printed) / a["rtt"]
