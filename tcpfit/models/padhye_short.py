"""A transfer at PFTK's send rate from its first segment on: T = t_setup + d/B(p) + T_delack.

The first of the short-flow models that Li and Williamson compare theirs with: the steady-state rate, the cost of the
handshake and one delayed ACK, no slow start.

**Symbols** d: segments of the transfer (`segments`); p: loss indications per segment (1, `p_indication`); RTT (s,
`rtt`); T0: mean first timeout of a series (s, `rto`); b: rounds per segment of window growth (1, `b`); Wmax: window
limit (segments, `w_max`); T_delack: wait for the ACK of the first segment (s); Ts: first timeout of a SYN (s).

**Domain** d >= 1, 0 <= p <= 1, times within 1e-9 and 1e9 s, 1e-3 <= b <= 1e3, Wmax >= 1; T_delack and Ts may be 0; nan
outside. From p = 1/2 on the handshake takes infinitely long. p = 0 without a window limit leaves RTT + T_delack.

**Departures** `handshake = True (measured from the SYN on; False: from the first data segment)`; `variant = "send"`.

**Validation** `tests/models/test_model_values.py::test_grid[padhye_short]`; figures of the paper: not validated
(drawn, not printed).

**Reference** Cardwell, Savage, Anderson: Modeling the Performance of Short TCP Connections, University of Washington,
1998 (no DOI); the rate: Padhye, Firoiu, Towsley, Kurose, SIGCOMM 1998, doi:10.1145/285237.285291.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcpfit.models import pftk_full
from tcpfit.models.base import Array, Assumption, Parameter
from tcpfit.models.sikdar_rounds import setup_time
from tcpfit.models.transfer_time import DELAYED_ACK, RTO, RTT, SEGMENTS, SYN_RTO, W_MAX, B, TransferTime


def time_at_rate(d: Array, rate: Array) -> Array:
    # d/B; nothing left takes no time, whatever the rate
    return np.where(d > 0, d / np.where(d > 0, rate, 1.0), 0.0)


class PadhyeShort(TransferTime):
    """T = t_setup + d/B + T_delack.

    b: fixes the rounds per segment; None takes the measured column or 2. variant: B counts what is sent ("send") or
    received ("throughput"). handshake: count from the SYN on. free: names of the parameters that `fit` fits, by default
    b.
    """

    name = "padhye-short"
    title = "transfer at PFTK's rate (after Padhye et al.)"
    paper = "Padhye, Firoiu, Towsley, Kurose 1998, SIGCOMM (as in Li, Williamson 2004), doi:10.1145/285237.285291"
    p_definition = "loss_indication"
    parameters = (
        SEGMENTS,
        Parameter("p", "1", "loss indications per segment sent", None, "p_indication", high=1.0),
        RTT,
        RTO,
        B,
        W_MAX,
        DELAYED_ACK,
        SYN_RTO,
    )
    assumptions = (
        Assumption("reno-growth", "The window grows by one segment every b round trips and halves at each indication."),
        Assumption("bulk", "There is always data to send, and slow start does not matter."),
        Assumption("correlated-loss-in-round", "After the first loss of a round the rest is lost.", required=False),
        Assumption("no-reordering", "Duplicate ACKs mean loss.", required=False),
    )
    fittable = {"b": (0.1, 10.0, 2.0), "rto": (1e-3, 300.0, 1.0)}
    choices = {"variant": ("send", "throughput"), "handshake": (True, False)}

    def __init__(
        self,
        *,
        b: float | None = None,
        variant: str = "send",
        handshake: bool = True,
        free: Sequence[str] | None = None,
    ) -> None:
        self.b = b
        self.variant = variant
        self.handshake = handshake
        self.free = free

    def _time(self, **a: Array) -> Array:
        rate = pftk_full.rate(a["p"], a["rtt"], a["rto"], a["b"], a["w_max"], None, self.variant)
        start = setup_time(a["rtt"], a["syn_rto"], a["p"]) if self.handshake else 0.0
        return start + time_at_rate(a["segments"], rate) + a["delayed_ack"]
