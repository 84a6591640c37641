"""TFRC's throughput equation (RFC 5348, section 3.1), here in segments/s, X/s:
X = s / (R sqrt(2bp/3) + t_RTO 3 sqrt(3bp/8) p (1 + 32 p^2)).

It is the rate that TFRC holds a flow to, so that it sends what a TCP would under the same loss event rate: PFTK's
approximation without min(1, .) around the chance of a timeout and without a window limit.

**Symbols** s: segment size (bytes); R: round-trip time (s, `rtt`); p: loss event rate (1, column `p`); t_RTO: TCP's
timeout (s, `rto`); b: packets acknowledged by one ACK (1, `b`).

**Domain** 0 <= p <= 1, R > 0, b > 0, t_RTO > 0; nan outside. p = 0 gives inf. Where 3 sqrt(3bp/8) > 1 (p above 0.3
with b = 1) the equation charges more than one timeout an event, and the rate is below pftk-approx's.

**Departures** None: t_RTO = 4 R unless `rto=` is given, b = 1, both as the RFC recommends. RFC 3448 has the same
equation. A measured `rto` column of a table is not taken up, for TFRC does not.

**Validation** `tests/models/test_model_values.py::test_grid[tfrc]`; against pftk-approx in `test_model_derivations.py`.

**Reference** Floyd, Handley, Padhye, Widmer: TCP Friendly Rate Control (TFRC): Protocol Specification, RFC 5348, 2008,
doi:10.17487/RFC5348.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tcpfit.models.base import LONGEST, SHORTEST, Array, Assumption, Model, Parameter


def timeout(R: Array) -> Array:
    # section 3.1: t_RTO = 4 R
    return 4 * R


def bytes_per_second(s: Array, R: Array, p: Array, t_RTO: Array, b: Array) -> Array:
    # section 3.1: X_Bps = s / (R sqrt(2bp/3) + t_RTO (3 sqrt(3bp/8) p (1 + 32 p^2)))
    return np.asarray(s / (R * np.sqrt(2 * b * p / 3) + t_RTO * (3 * np.sqrt(3 * b * p / 8)) * p * (1 + 32 * p**2)))


class TFRC(Model):
    """The RFC's equation, in segments/s.

    b: fixes the packets per ACK; None takes the measured column or 1. free: names of the parameters that `fit` fits, by
    default b.
    """

    name = "tfrc"
    title = "TFRC's throughput equation (RFC 5348)"
    paper = "Floyd, Handley, Padhye, Widmer 2008, RFC 5348, doi:10.17487/RFC5348"
    p_definition = "loss_event"
    parameters = (
        Parameter("p", "1", "loss events per segment sent", None, "p", high=1.0),
        Parameter("rtt", "s", "mean round-trip time", None, "rtt", low=SHORTEST, high=LONGEST),
        Parameter("b", "1", "packets acknowledged by one ACK", 1.0, "b", low=1e-3, high=1e3),
    )
    extensions = (
        Parameter("rto", "s", "TCP's timeout, in the place of 4 RTT", None, "rto", low=SHORTEST, high=LONGEST),
    )
    assumptions = (
        Assumption("reno-growth", "The window grows by one segment every b round trips and halves at a loss event."),
        Assumption("loss-limited", "Losses, and nothing else, bound the rate."),
        Assumption("not-window-limited", "The receiver's window never stops the growth."),
        Assumption("bulk", "There is always data to send, and slow start is over."),
        Assumption("no-sack", "Reno's recovery: one loss per fast retransmit.", required=False),
        Assumption("no-reordering", "Duplicate ACKs mean loss.", required=False),
    )
    fittable = {"b": (0.1, 10.0, 1.0)}

    def __init__(self, *, b: float | None = None, free: Sequence[str] | None = None) -> None:
        self.b = b
        self.free = free

    @property
    def quantity(self) -> Literal["send-rate", "throughput", "goodput"]:
        return "send-rate"

    def _rate(self, **a: Array) -> Array:
        t_RTO = a["rto"] if "rto" in a else timeout(a["rtt"])
        return bytes_per_second(np.ones_like(a["p"]), a["rtt"], a["p"], t_RTO, a["b"])
