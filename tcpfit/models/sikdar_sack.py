"""Steady-state throughput of TCP SACK under correlated losses (Sikdar et al., eqs 43 to 45), segments per second.

1/p packets pass between loss indications. The window at an indication is uniform on 1..c_wm, the first lost packet
uniform on the round, and every packet behind it in the round is lost. For each pair (h, j) equations 30 to 40 give the
time until 1/p packets are through: SACK recovery, or a timeout with slow start, then linear growth.

**Symbols** p: loss indications per packet (1, column `p_indication`); RTT (s, `rtt`); To: first timeout of a series
(s, `rto`); Wmax: window limit (segments, `w_max`); h: window at the indication; j: position of the first loss; nloss
= h-j+1.

**Domain** 0 <= p <= 1, RTT > 0, To > 0, Wmax >= 1 (rounded down); nan outside. p = 0 gives Wmax/RTT, p = 1 gives 0.
Up to c_wm = 1024 the double sum is taken term by term; above (p below about 4e-6 with a large Wmax) over 512 x 512
midpoints.

**Departures** 38, 40: E[TO] is in seconds and stands outside the rounds. 33: r(n) is in the sum, as in 38. ssthresh
is max{2, ceil(c1/2)} (printed min, which would always give 2 or less). The second extra round, and its nrnd2 packets,
exist if nrnd1 >= 3 (the text; printed > 3, and nrnd2 always taken off). 43 rounds up (printed bare brackets). r(n) is
eq 6 with Wmax := n. 39: rl and r(n) are not below 0. 4 has 16 p^5 (printed 18). b does not appear: delayed ACKs (b =
2) are built into the growth of one packet every second round.

**Validation** `tests/models/test_model_values.py::test_grid[sikdar_steady.sack]`; figures of the paper: not validated
(no numbers printed). Its remark that values nearly equal PFTK's does not hold here:
they are 0.59 to 0.86 of pftk-full's for p of 0.001 to 0.3 (b = 2, To = 10 RTT), and 0.40 at p = 0.5.

**Reference** Sikdar, Kalyanaraman, Vastola: Analytic Models for the Latency and Steady-State Throughput of TCP Tahoe,
Reno, and SACK, IEEE/ACM ToN 11(6), 2003, doi:10.1109/TNET.2003.820427.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tcpfit.models.base import Array, Assumption, Model, Parameter
from tcpfit.models.sikdar_rounds import linear_rounds, rounds_to_window, slow_start_packets
from tcpfit.models.timeouts import timeout_duration

EXACT = 1024  # c_wm up to which every (h, j) is summed
STRATA = 512  # midpoints of h, and of j, above it


class Indication(NamedTuple):
    """What follows one loss indication, for arrays of h and j: nothing here depends on p, RTT or To."""

    times_out: NDArray[np.bool_]
    rounds: Array  # before the linear growth, E[TO] not counted
    packets: Array  # sent in them
    ssthresh: Array

    def first(self, n: int) -> Indication:
        """The first n of the pairs."""
        return Indication(self.times_out[:n], self.rounds[:n], self.packets[:n], self.ssthresh[:n])


def indication(h: Array, j: Array) -> Indication:
    # (15) c1 = h, nloss = h - j + 1, nrnd1 = j - 1; (12) ssthresh n = max(2, ceil(c1/2))
    nloss, nrnd1 = h - j + 1, j - 1
    half = np.ceil(h / 2)
    n = np.maximum(2.0, half)
    # (31) and fewer than three duplicate ACKs: a timeout
    times_out = (nrnd1 < 3) | (nloss - 2 >= half)
    # (37) nrnd2 = 1 + max(0, c2 - pipe), c2 = ceil(c1/2), (30) pipe = nloss
    nrnd2 = 1 + np.maximum(0.0, half - nloss)
    # (38) rounds: r(n) + I(nrnd1 > 0) + I(nrnd1 >= 3); packets: nrnd1 + nrnd2 (if sent) + k'
    slow = rounds_to_window(n)
    fast = nrnd1 >= 3
    to_rounds = slow + (nrnd1 > 0) + fast
    to_packets = nrnd1 + np.where(fast, nrnd2, 0.0) + slow_start_packets(slow)
    # (39) r = ceil(log2(rl/nrnd2 + 1)), rl = nloss - nrnd2; (40) rounds: 2 + r; packets: nrnd1 + nrnd2 2^r
    r = np.ceil(np.log2(np.maximum(0.0, nloss - nrnd2) / nrnd2 + 1))
    return Indication(
        times_out,
        np.where(times_out, to_rounds, 2 + r),
        np.where(times_out, to_packets, nrnd1 + nrnd2 * 2**r),
        n,
    )


@cache  # sizes are powers of two up to EXACT
def all_indications(size: int) -> Indication:
    """Every pair j <= h <= size, by h, so that a smaller window's pairs come first."""
    rows, columns = np.tril_indices(size)
    return indication(rows.astype(np.float64) + 1, columns.astype(np.float64) + 1)


def largest_window(p: Array, Wmax: Array) -> Array:
    # (43) c_wm = min(ceil((-1 + sqrt(1 + 16/p))/2), Wmax)
    return np.minimum(np.ceil((-1 + np.sqrt(1 + 16 / p)) / 2), Wmax)


def mean_rounds(p: float, Wmax: float) -> tuple[float, float]:
    # (44) without its two time scales: mean rounds, and share of indications that time out, over h = 1..c_wm, j = 1..h
    c_wm = float(largest_window(np.asarray(p), np.asarray(Wmax)))
    if c_wm <= EXACT:
        pairs = int(c_wm * (c_wm + 1) / 2)
        after = all_indications(1 << (int(c_wm) - 1).bit_length()).first(pairs)
        weight = np.full(pairs, 1 / pairs)
    else:
        middle = (np.arange(STRATA, dtype=np.float64) + 0.5) / STRATA
        h = np.asarray(np.repeat(np.ceil(middle * c_wm), STRATA), dtype=np.float64)
        j = np.asarray(np.ceil(np.tile(middle, STRATA) * h), dtype=np.float64)
        weight = h / h.sum()
        after = indication(h, j)
    rounds = after.rounds + linear_rounds(1 / p - after.packets, after.ssthresh, np.asarray(Wmax))
    return float(weight @ rounds), float(weight @ after.times_out)


def throughput(p: Array, RTT: Array, To: Array, Wmax: Array) -> Array:
    # (45) R = 1/(p t_ss), t_ss = RTT mean_rounds + E[TO] share
    pairs, back = np.unique(np.stack([p.ravel(), np.floor(Wmax).ravel()]), axis=1, return_inverse=True)
    found = np.array([mean_rounds(*pair) if pair[0] > 0 else (np.nan, np.nan) for pair in pairs.T]).reshape(-1, 2)
    rounds, share = (found[:, side][np.ravel(back)].reshape(p.shape) for side in (0, 1))
    t_ss = RTT * rounds + np.where(share > 0, share * timeout_duration(p, To), 0.0)
    return np.where(p > 0, np.minimum(1 / (p * t_ss), np.inf), Wmax / RTT)


class SikdarSack(Model):
    """Equations 43 to 45 for SACK. free: names of the parameters that `fit` fits, by default rto."""

    name = "sikdar-sack"
    title = "SACK, steady state (Sikdar et al.)"
    paper = "Sikdar, Kalyanaraman, Vastola 2003, IEEE/ACM ToN 11(6):959-971, doi:10.1109/TNET.2003.820427"
    p_definition = "loss_indication"
    parameters = (
        Parameter("p", "1", "loss indications per segment sent", None, "p_indication", high=1.0),
        Parameter("rtt", "s", "mean round-trip time", None, "rtt", positive=True),
        Parameter("rto", "s", "mean first timeout of a series", None, "rto", positive=True),
        Parameter("w_max", "segments", "window limit", float(np.inf), "w_max", low=1.0),
    )
    assumptions = (
        Assumption("reno-growth", "Slow start, then one segment every second round, and halving at an indication."),
        Assumption("loss-limited", "Losses or the window limit bound the rate, not the application or the link."),
        Assumption("bulk", "There is always data to send, and slow start is over."),
        Assumption("sack", "The receiver reports what arrived; the sender repairs by it."),
        Assumption("correlated-loss-in-round", "After the first loss of a round the rest is lost.", required=False),
        Assumption("no-reordering", "Duplicate ACKs mean loss.", required=False),
    )
    fittable = {"rto": (1e-3, 300.0, 1.0)}

    def __init__(self, *, free: Sequence[str] | None = None) -> None:
        self.free = free

    @property
    def quantity(self) -> Literal["send-rate", "throughput", "goodput"]:
        return "throughput"

    def _inside(self, **a: Array) -> NDArray[np.bool_]:
        return np.asarray(a["rtt"] < np.inf)

    def _rate(self, **a: Array) -> Array:
        return throughput(a["p"], a["rtt"], a["rto"], a["w_max"])
