"""What models of the transfer time share: a regressor that predicts seconds, its parameters, and slow start as a
geometric series (Cardwell et al., eqs 4 to 15; Li and Williamson print the same as 3 to 7).

**Symbols** d: segments left to send; p: loss probability of a segment (1); gamma: growth of the window a round, 1 + 1/b
(1); w1: window that slow start begins with (segments); Wmax: window limit (segments); RTT (s).

**Departures** Powers of 1 - p are taken through log1p and expm1; at p = 0 the limits stand: all d segments are sent in
slow start. gamma - 1 = 1/b keeps its digits where b is large. `whole_rounds=True`, an extension, rounds a slow start up
to whole round trips: the papers begin with a window of one segment, where (4) is never below a round; with the ten of
RFC 6928 it would send two segments in 0.26 RTT.

**Validation** `tests/models/test_transfer_time.py` (the sum of 3; 4 and 5 against the geometric series; 6 where its
branches meet).

**Reference** Cardwell, Savage, Anderson: Modeling TCP Latency, INFOCOM 2000, doi:10.1109/INFCOM.2000.832574.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from tcpfit.models.base import LONGEST, SHORTEST, Array, Model, Parameter

SEGMENTS = Parameter("segments", "segments", "size of the transfer", None, "segments", low=1.0, high=1e7)
RTT = Parameter("rtt", "s", "mean round-trip time", None, "rtt", low=SHORTEST, high=LONGEST)
RTO = Parameter("rto", "s", "mean first timeout of a series", None, "rto", low=SHORTEST, high=LONGEST)
B = Parameter("b", "1", "rounds per segment of window growth", 2.0, "b", low=1e-3, high=1e3)
W_MAX = Parameter("w_max", "segments", "window limit", float(np.inf), "w_max", low=1.0)
W_1 = Parameter("w_1", "segments", "window at the start", 1.0, low=1.0, high=1e6)
DELAYED_ACK = Parameter("delayed_ack", "s", "mean wait for the ACK of a lone segment", 0.1, high=LONGEST)
SYN_RTO = Parameter("syn_rto", "s", "first timeout of a SYN", 3.0, high=LONGEST)


class TransferTime(Model):
    """A model that predicts how long a transfer takes; a subclass defines `_time` in the place of `_rate`.

    `predict` gives seconds; `fit` and `score` take observed seconds.
    """

    predicts = "transfer-time"

    @property
    def quantity(self) -> Literal["send-rate", "throughput", "goodput"]:
        return "goodput"

    def _time(self, **arrays: Array) -> Array:
        """The law in seconds, for 1-d arrays of one length, all inside the domain."""
        raise NotImplementedError

    def _rate(self, **arrays: Array) -> Array:
        return self._time(**arrays)


def loss_probability(p: Array, d: Array) -> Array:
    # (7), Cardwell's l_ss: p_ss = 1 - (1-p)^d, some segment of d is lost
    return np.where(p < 1, -np.expm1(d * np.log1p(-np.minimum(p, 1 - 2.0**-53))), 1.0)


def segments_before_loss(p: Array, d: Array) -> Array:
    # (3) E[d_ss] = (1 - (1-p)^d) (1-p)/p, the mean of min(d, segments before the first loss); d at p = 0
    return np.where(p > 0, loss_probability(p, d) * (1 - p) / np.where(p > 0, p, 1.0), d)


def rounds_of_slow_start(E_d: Array, w1: Array, gamma: Array) -> Array:
    # (4) i = log_gamma(E[d_ss] (gamma-1)/w1 + 1)
    return np.asarray(np.log1p(E_d * (gamma - 1) / w1) / np.log(gamma))


def window_after_slow_start(E_d: Array, w1: Array, gamma: Array) -> Array:
    # (5) E[W_ss] = E[d_ss] (gamma-1)/gamma + w1/gamma
    return np.asarray(E_d * (gamma - 1) / gamma + w1 / gamma)


def slow_start_time(E_d: Array, w1: Array, gamma: Array, Wmax: Array, RTT: Array, whole: bool = False) -> Array:
    # whole: rounded up to round trips, the last of which brings the ACK of the last segment. (4) takes a fraction of a
    # round where w1 > d: 0.26 RTT for two segments of a window of 10
    # (6) RTT (log_gamma(Wmax/w1) + 1 + (E[d_ss] - (gamma Wmax - w1)/(gamma-1))/Wmax) where E[W_ss] > Wmax, else RTT (4)
    limited = window_after_slow_start(E_d, w1, gamma) > Wmax
    top = np.where(limited, Wmax, 1.0)
    ratio = np.where(limited, top / w1, 1 + E_d * (gamma - 1) / w1)
    steady = np.where(limited, 1 + (E_d - (gamma * top - w1) / (gamma - 1)) / top, 0.0)
    rounds = np.log(ratio) / np.log(gamma) + steady
    return np.asarray(RTT * (np.ceil(rounds - 1e-9) if whole else rounds))
