"""Transfer time of a short flow (Cardwell et al.): slow start up to the first loss, that loss, the rest at PFTK's rate.

T = t_setup + E[T_ss] + E[T_loss] + E[T_ca] + T_delack (20), with E[d_ss] segments before the first loss (5), slow start
in E[T_ss] = (15), E[T_loss] = l_ss (Q E[Z^TO] + (1-Q) RTT) (20), and d - E[d_ss] segments at PFTK's rate (22, 23).

**Symbols** d: segments of the transfer (`segments`); p: loss indications per segment (1, `p_indication`); RTT (s,
`rtt`); T0: mean first timeout of a series (s, `rto`); b: rounds per segment of window growth (1, `b`), gamma = 1 + 1/b;
Wmax: window limit (segments, `w_max`); w1: first window (segments); T_delack: wait for the ACK of the first segment
(s); Ts: first timeout of a SYN (s).

**Domain** d >= 1, 0 <= p <= 1, times within 1e-9 and 1e9 s, 1e-3 <= b <= 1e3, Wmax >= 1, 1 <= w1 <= Wmax (cut there);
T_delack and Ts may be 0; nan outside. From p = 1/2 on the handshake takes infinitely long, at p = 1 everything.

**Departures** `b = 2, w1 = 1, delayed_ack = 0.1 s, syn_rto = 3 s`. The paper's b is segments per ACK, which makes gamma
the factor of a round of slow start; of a flow the growth in congestion avoidance is measured, and stands for it. (5)
has "+1", the lost segment itself; the sum is then at most d (as printed it is d + 1 at p = 0): `as_printed=True` leaves
it. `count_lost=False` drops the +1, as equation 3 of Li and Williamson does, who print the exact identity. Q is taken
at min(E[W_ss], Wmax). The rate is PFTK's *received* one, as in (22). `handshake=False` counts from the first data
segment.

**Validation** `tests/models/test_model_values.py::test_grid[cardwell2000]`, `[cardwell2000.plus0]`; figures of the
paper: not validated (drawn, not printed).

**Reference** Cardwell, Savage, Anderson: Modeling TCP Latency, INFOCOM 2000, doi:10.1109/INFCOM.2000.832574.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcpfit.models import pftk_full
from tcpfit.models.base import Array, Assumption, Parameter
from tcpfit.models.padhye_short import time_at_rate
from tcpfit.models.sikdar_rounds import setup_time
from tcpfit.models.timeouts import timeout_duration, timeout_probability
from tcpfit.models.transfer_time import (
    DELAYED_ACK,
    RTO,
    RTT,
    SEGMENTS,
    SYN_RTO,
    W_1,
    W_MAX,
    B,
    TransferTime,
    loss_probability,
    segments_before_loss,
    slow_start_time,
    window_after_slow_start,
)


def first_phase_segments(p: Array, d: Array, count_lost: bool = True, as_printed: bool = False) -> Array:
    # (5) E[d_ss] = (1 - (1-p)^d) (1-p)/p + 1
    E_d = segments_before_loss(p, d) + count_lost
    return E_d if as_printed else np.minimum(E_d, d)


def loss_time(p: Array, d: Array, w: Array, RTT: Array, T0: Array) -> Array:
    # (20) E[T_loss] = l_ss (Q E[Z^TO] + (1-Q) RTT)
    Q = timeout_probability(p, w)
    return loss_probability(p, d) * (Q * timeout_duration(p, T0) + (1 - Q) * RTT)


class Cardwell2000(TransferTime):
    """T = t_setup + E[T_ss] + E[T_loss] + E[T_ca] + T_delack.

    b: fixes the rounds per segment; None takes the measured column or 2. count_lost: E[d_ss] counts the lost segment.
    as_printed: it may then exceed d. whole_rounds: slow start lasts whole round trips. handshake: count from the SYN
    on. free: names of the parameters that `fit` fits, by default b.
    """

    name = "cardwell-2000"
    title = "short flows (Cardwell et al.)"
    paper = "Cardwell, Savage, Anderson 2000, IEEE INFOCOM, 1742-1751, doi:10.1109/INFCOM.2000.832574"
    p_definition = "loss_indication"
    parameters = (
        SEGMENTS,
        Parameter("p", "1", "loss indications per segment sent", None, "p_indication", high=1.0),
        RTT,
        RTO,
        B,
        W_MAX,
        W_1,
        DELAYED_ACK,
        SYN_RTO,
    )
    assumptions = (
        Assumption("reno-growth", "Slow start up to the first loss; after it, on average, PFTK's steady state."),
        Assumption("correlated-loss-in-round", "After the first loss of a round the rest is lost.", required=False),
        Assumption("no-sack", "Reno's recovery: one loss per fast retransmit.", required=False),
        Assumption("no-reordering", "Duplicate ACKs mean loss.", required=False),
    )
    fittable = {"b": (0.1, 10.0, 2.0), "rto": (1e-3, 300.0, 1.0)}
    choices = {
        "count_lost": (True, False),
        "as_printed": (True, False),
        "whole_rounds": (True, False),
        "handshake": (True, False),
    }

    def __init__(
        self,
        *,
        b: float | None = None,
        count_lost: bool = True,
        as_printed: bool = False,
        whole_rounds: bool = False,
        handshake: bool = True,
        free: Sequence[str] | None = None,
    ) -> None:
        self.b = b
        self.count_lost = count_lost
        self.as_printed = as_printed
        self.whole_rounds = whole_rounds
        self.handshake = handshake
        self.free = free

    def _time(self, **a: Array) -> Array:
        d, p, RTT, T0, b, Wmax = (a[name] for name in ("segments", "p", "rtt", "rto", "b", "w_max"))
        w1, gamma = np.minimum(a["w_1"], Wmax), 1 + 1 / b
        E_d = first_phase_segments(p, d, self.count_lost, self.as_printed)
        window = np.minimum(window_after_slow_start(E_d, w1, gamma), Wmax)
        rest = time_at_rate(np.maximum(d - E_d, 0.0), pftk_full.rate(p, RTT, T0, b, Wmax, None, "throughput"))
        start = setup_time(RTT, a["syn_rto"], p) if self.handshake else 0.0
        slow = slow_start_time(E_d, w1, gamma, Wmax, RTT, self.whole_rounds)
        return start + slow + loss_time(p, d, window, RTT, T0) + rest + a["delayed_ack"]
