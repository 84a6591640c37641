"""Goodput of NewReno when every A_h seconds d packets arrive late (Sharma et al., eqs 1 to 15), segments per second.

A recovery period is the time between two reorder events, x = A_h/RTT - r round trips of which follow fast recovery.
If x >= b W/2 the window is back at W before the next event (recovered): G = D(W)/A_h, the area of figure 9(a). Else
it shrinks by W_n = W_{n-1}/2 + x/b to the fixed point F = 2 x/b. If F < d + 2 the sender times out in period m, and G
is the mean over periods 1..m; if F >= d + 2 it never does (no-timeout), and G = D(F)/A_h.

**Symbols** W: limit of the congestion window (segments, column `w_max`); RTT (s, `rtt`); A_h: time between reorder
events (s, `a_h`); d: packets late (segments, `d`); r: round trip in which their ACKs come (1, `r`); b: received
packets per ACK (1, `b`). Case 1 (they count as lost) is r >= d, the default.

**Domain** RTT > 0, A_h > 0, W >= 1, 1 <= d <= W, r >= 1, b > 0, and A_h/RTT >= min(r, d), else recovery is not over
when the next event comes; nan outside.

**Departures** 5, 13: 1 - 2^-n (printed 2^-(n-1); 5 then contradicts 4). 6, 11: W - F over d + 2 - F with F = 2 x/b
and the threshold d + 2 of the text (printed 4/b in the numerator, r + 2 in 11). 6, 8: n is rounded up, and at least
1. 10: r is min(r, d), so that it reduces to 2. 7, 12: where d > W/2 nothing is sent until the line leaves 0 (printed:
a negative area). `as_printed=True` keeps all of these as printed; n is rounded up also there, and the rate is nan
where its logarithm has no value. `start = "limit"`; "restart" takes eq 9 for W_0, with ssthresh (d+2)/2 of RFC 5681
for d/2. The timeout itself and the slow start behind it cost no time, as in the paper, so the regimes do not join
continuously.

**Validation** `tests/models/test_model_values.py` (rows `sharma.*`); areas against numerical integration and eq 5
against 4 in `test_model_derivations.py`.

**Reference** Sharma, Gillies, Feng: On the Goodput of TCP NewReno in Mobile Networks, ICCCN 2010,
doi:10.1109/ICCCN.2010.5560138.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tcpfit.models.base import LONGEST, SHORTEST, Array, Assumption, Model, Parameter


def recovered_segments(W: Array, rounds: Array, d: Array, r: Array, b: Array) -> Array:
    # (1), (10) D = W A_h/RTT - (b W^2/8 + r (W/2 + max(0, d-r)) + r^2/2)
    return W * rounds - (b * W**2 / 8 + r * (W / 2 + np.maximum(0.0, d - r)) + r**2 / 2)


def is_recovered(W: Array, rounds: Array, r: Array, b: Array) -> NDArray[np.bool_]:
    # (3), (15) the window gets back to W unless A_h/RTT < r + b W/2
    return np.asarray(rounds >= r + b * W / 2)


def window_after(W0: Array, n: Array, x: Array, b: Array, as_printed: bool = False) -> Array:
    # (5), (13) W_n = W_0/2^n + (2/b)(A_h/RTT - r)(1 - 2^-n), the solution of (4) W_n = W_{n-1}/2 + x/b
    if as_printed:  # 1 - 2^-(n-1), for n > 1; W_1 by (4)
        return np.where(n > 1, W0 / 2**n + 2 / b * x * (1 - 2.0 ** (1 - n)), W0 / 2 + x / b)
    return W0 / 2**n + 2 / b * x * (1 - 2.0**-n)


def periods(W0: Array, x: Array, d: Array, r: Array, b: Array, as_printed: bool = False) -> Array:
    # (6), (11) m = log2((W_0 - F)/(d + 2 - F)), F = (2/b)(A_h/RTT - r), rounded up and at least 1
    F = 2 / b * x
    m = np.log2((W0 - 2 * F) / (r + 2 - F)) if as_printed else np.log2((W0 - F) / np.maximum(d + 2 - F, 0.0))
    return np.where(np.isfinite(m), np.maximum(1.0, np.ceil(m)), np.nan)


def shrinking_segments(W: Array, x: Array, d: Array, r: Array, b: Array, clamp: bool = True) -> Array:
    # (7), (12) D = r^2/2 + r (W/2 - d) + x^2 ((W/2)/x + 1/(2b)); W is the window before the event, x = A_h/RTT - r
    line = r**2 / 2 + r * (W / 2 - d)
    if clamp:
        line = np.where(d > W / 2, np.maximum(0.0, r + W / 2 - d) ** 2 / 2, line)
    return line + x * W / 2 + x**2 / (2 * b)


def restart_window(rounds: Array, d: Array, b: Array) -> Array:
    # (9) W_0 = s + (A_h/RTT - log2 s)/b, s = ssthresh after the timeout, (d + 2)/2 and at least 2
    s = np.maximum(2.0, (d + 2) / 2)
    return s + np.maximum(0.0, rounds - np.log2(s)) / b


def chain_segments(
    W0: Array, x: Array, d: Array, r: Array, b: Array, clamp: bool = True, as_printed: bool = False
) -> Array:
    # (8), (14) the mean of D_1..D_m, or D(F), the limit of many periods, where F >= d + 2
    F = 2 / b * x
    m = periods(W0, x, d, r, b, as_printed)
    never = (F >= d + 2) & (not as_printed)
    m = np.where(never, 0.0, m)
    total = np.zeros(np.shape(m))
    for i in range(int(np.nanmax(np.where(np.isfinite(m), m, 0.0), initial=0.0))):
        W = W0 if i == 0 else window_after(W0, np.asarray(float(i)), x, b, as_printed)
        total = total + np.where(i < m, shrinking_segments(W, x, d, r, b, clamp), 0.0)
    return np.where(never, shrinking_segments(F, x, d, r, b, clamp), total / m)


def goodput(
    W: Array,
    RTT: Array,
    Ah: Array,
    d: Array,
    r: Array,
    b: Array,
    start: str = "limit",
    clamp: bool = True,
    as_printed: bool = False,
) -> Array:
    # (2), (8), (10), (14) G = D/A_h, by regime
    r, rounds = np.minimum(r, d), Ah / RTT
    W0 = W if start == "limit" else np.minimum(W, restart_window(rounds, d, b))
    x = rounds - r
    whole = is_recovered(W, rounds, r, b)
    D = np.where(
        whole,
        recovered_segments(W, rounds, d, r, b),
        chain_segments(W0, x, d, r, b, clamp and not as_printed, as_printed),
    )
    return D / Ah


class ReorderingGoodput(Model):
    """Equations 2, 8, 10 and 14, whichever regime holds.

    b: fixes the packets per ACK; None takes the measured column or 1. start: "limit" (W_0 = W) or "restart" (eq 9).
    clamp: False keeps the negative areas of 7 and 12. as_printed: the paper's own eqs 5 to 7 and 11 to 13.
    free: names of the parameters that `fit` fits, by default b.
    """

    name = "reordering-goodput"
    title = "NewReno under periodic reordering (Sharma et al.)"
    paper = "Sharma, Gillies, Feng 2010, ICCCN, doi:10.1109/ICCCN.2010.5560138"
    p_definition = None
    parameters = (
        Parameter("w_max", "segments", "limit of the congestion window", None, "w_max", low=1.0, high=1e12),
        Parameter("rtt", "s", "mean round-trip time", None, "rtt", low=SHORTEST, high=LONGEST),
        Parameter("a_h", "s", "mean time between reorder events", None, "a_h", low=SHORTEST, high=LONGEST),
        Parameter("d", "segments", "segments late in an event", None, "d", low=1.0),
        Parameter("r", "1", "round trip in which the late segments' ACKs come", float(np.inf), "r", low=1.0),
        Parameter("b", "1", "received packets per ACK", 1.0, "b", low=1e-3, high=1e3),
    )
    assumptions = (
        Assumption("reordering", "Late segments come regularly, and more often than losses."),
        Assumption("reordering-felt", "Each reordering event sets off fast recovery."),
        Assumption("window-limited", "Between reorder events the window limit bounds the rate.", required=False),
        Assumption("reno-growth", "The window halves at an event and grows by 1/b segments a round trip."),
        Assumption("bulk", "There is always data to send, and slow start is over."),
        Assumption("no-sack", "Fast recovery repairs one segment a round trip.", required=False),
        Assumption("no-timeouts", "Timeouts, where they come, cost no time.", required=False),
    )
    fittable = {"b": (0.1, 10.0, 1.0)}
    choices = {"start": ("limit", "restart")}

    def __init__(
        self,
        *,
        b: float | None = None,
        start: str = "limit",
        clamp: bool = True,
        as_printed: bool = False,
        free: Sequence[str] | None = None,
    ) -> None:
        self.b = b
        self.start = start
        self.clamp = clamp
        self.as_printed = as_printed
        self.free = free

    @property
    def quantity(self) -> Literal["send-rate", "throughput", "goodput"]:
        return "goodput"

    def _inside(self, **a: Array) -> NDArray[np.bool_]:
        return np.asarray((a["d"] <= a["w_max"]) & (a["a_h"] / a["rtt"] >= np.minimum(a["r"], a["d"])))

    def _rate(self, **a: Array) -> Array:
        return goodput(a["w_max"], a["rtt"], a["a_h"], a["d"], a["r"], a["b"], self.start, self.clamp, self.as_printed)
