"""Steady-state throughput of TCP SACK under correlated losses (Sikdar et al., eqs 30 to 40 and 43 to 45), segments/s.

After three duplicate ACKs SACK resends as `pipe` allows; every partial ACK takes two off it, so the number resent
doubles each round. Where so many packets are lost that `pipe` stays at the window or above, the sender times out.

**Symbols, domain, method** see `sikdar_steady`; h: window at the indication (cwnd1); j: position of the first loss;
nloss = h-j+1; nrnd1, nrnd2: packets in the first and second round after the loss; rl: losses left to resend after
them; n: slow-start threshold.

**Departures** Those of `sikdar_steady`. n is max(2, ceil(cwnd1/2)) (printed min, which would always give 2 or less).
The second extra round of 38, and its nrnd2 packets, exist if nrnd1 >= 3 (the text; printed > 3, and nrnd2 always taken
off). 39: rl and r(n) are not below 0. `as_printed=True` keeps these. k' of 39 counts nrnd2 (2^r - 1) packets, as
printed, though two for each partial ACK would make nrnd2 (2^(r+1) - 2).

**Validation** `tests/models/test_model_values.py::test_grid[sikdar_steady.sack]`; figures of the paper: not validated
(no numbers printed). Its remark that values nearly equal PFTK's does not hold here:
they are 0.59 to 0.86 of pftk-full's for p of 0.001 to 0.3 (b = 2, To = 10 RTT), and 0.40 at p = 0.5.

**Reference** Sikdar, Kalyanaraman, Vastola: Analytic Models for the Latency and Steady-State Throughput of TCP Tahoe,
Reno, and SACK, IEEE/ACM ToN 11(6), 2003, doi:10.1109/TNET.2003.820427.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tcpfit.models.base import Array, Assumption
from tcpfit.models.sikdar_rounds import rounds_to_window, slow_start_packets
from tcpfit.models.sikdar_steady import Indication, Run, SikdarSteady, assumptions


def indication(h: Array, j: Array, Wmax: Array | float = np.inf, as_printed: bool = False) -> Indication:
    # (15) c1 = h, nloss = h - j + 1, nrnd1 = j - 1; ssthresh n = max(2, ceil(c1/2))
    nloss, nrnd1 = h - j + 1, j - 1
    half = np.ceil(h / 2)
    n = np.minimum(2.0, half) if as_printed else np.maximum(2.0, half)
    # (31) and fewer than three duplicate ACKs: a timeout
    times_out = (nrnd1 < 3) | (nloss - 2 >= half)
    # (37) nrnd2 = 1 + max(0, c2 - pipe), c2 = ceil(c1/2), (30) pipe = nloss
    nrnd2 = 1 + np.maximum(0.0, half - nloss)
    # (38) rounds: r(n) + I(nrnd1 > 0) + I(nrnd1 >= 3); packets: nrnd1 + nrnd2 (if sent) + k'
    slow = np.maximum(0.0, rounds_to_window(n))
    to_rounds = slow + (nrnd1 > 0) + (nrnd1 > 3 if as_printed else nrnd1 >= 3)
    to_packets = nrnd1 + np.where((nrnd1 >= 3) | as_printed, nrnd2, 0.0) + np.maximum(0.0, slow_start_packets(slow))
    # (39) r = ceil(log2(rl/nrnd2 + 1)), rl = nloss - nrnd2; (40) rounds: 2 + r; packets: nrnd1 + nrnd2 2^r
    rl = nloss - nrnd2 if as_printed else np.maximum(0.0, nloss - nrnd2)
    r = np.ceil(np.log2(rl / nrnd2 + 1))
    return Indication(
        times_out,
        np.where(times_out, to_rounds, 2 + r),
        np.where(times_out, to_packets, nrnd1 + nrnd2 * 2**r),
        n,
    )


def runs(h: Array, Wmax: Array) -> Iterator[Run]:
    """The pairs of each h: timeouts with no, too few, and three duplicate ACKs; recoveries with nloss = half + 1; and,
    with u = half - nloss, those with r rounds of doubling, u >= (half - 2^r)/(1 + 2^r)."""
    one, half = np.ones_like(h), np.ceil(h / 2)
    n = np.maximum(2.0, half)
    slow = rounds_to_window(n)
    k = slow_start_packets(slow)
    yield Run(one, k, 1.0, slow, n, True)
    yield Run(np.minimum(h, 3.0) - 1, k + 1, 1.0, slow + 1, n, True)
    yield Run(h - half - 4, k + 4, 1.0, slow + 2, n, True)
    r = np.ceil(np.log2(half + 1))
    yield Run((h - half >= 4).astype(np.float64), h - half - 1 + 2**r, 1.0, 2 + r, n, False)
    low, power = np.maximum(0.0, 3 - (h - half)), 1.0  # u from which j > 3
    above, rounds = half, 2.0
    while above.any():
        first = np.maximum(0.0, np.ceil((half - power) / (1 + power)))
        u = np.maximum(first, low)
        yield Run(above - u, h - half + u + (1 + u) * power, 1 + power, rounds, n, False)
        above, power, rounds = first, 2 * power, rounds + 1


class SikdarSack(SikdarSteady):
    """Equations 30 to 40 and 43 to 45. as_printed: the paper's own equations. free: parameters that `fit` fits, by
    default rto."""

    name = "sikdar-sack"
    title = "SACK, steady state (Sikdar et al.)"
    assumptions = assumptions(
        "Slow start, then one segment every second round, and halving at an indication.",
        Assumption("sack", "The receiver reports what arrived; the sender repairs by it."),
    )

    def _indication(self, h: Array, j: Array, Wmax: Array, as_printed: bool) -> Indication:
        return indication(h, j, Wmax, as_printed)

    def _runs(self, h: Array, Wmax: Array) -> Iterator[Run]:
        return runs(h, Wmax)
