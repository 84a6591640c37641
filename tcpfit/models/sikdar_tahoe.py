"""Steady-state throughput of TCP Tahoe under correlated losses (Sikdar et al., eqs 16 and 43 to 45), segments/s.

After an indication Tahoe starts again from a window of one and resends everything behind the first lost packet. With
three duplicate ACKs (j - 1 >= 3) it does so at once, else after a timeout.

**Symbols, domain, method** see `sikdar_steady`; h: window at the indication; j: position of the first loss; n:
slow-start threshold; r(n), k': rounds and packets of slow start up to it.

**Departures** Those of `sikdar_steady`. r(n) is equation 6 with Wmax := n, which the single-loss case names; the text
before 16 names 9, which counts rounds to send n packets (`as_printed=True`).

**Validation** `tests/models/test_model_values.py::test_grid[sikdar_steady.tahoe]`. round by
round in `tests/models/test_sikdar_steady.py`. No steady-state number is printed.

**Reference** Sikdar, Kalyanaraman, Vastola: Analytic Models for the Latency and Steady-State Throughput of TCP Tahoe,
Reno, and SACK, IEEE/ACM ToN 11(6), 2003, doi:10.1109/TNET.2003.820427.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tcpfit.models.base import Array, Assumption
from tcpfit.models.sikdar_rounds import rounds_to_packet, rounds_to_window, slow_start_packets
from tcpfit.models.sikdar_steady import Indication, Run, SikdarSteady, assumptions


def threshold(h: Array) -> Array:
    # (12) n = max(2, ceil(cwnd1/2)), cwnd1 = h by (15)
    return np.maximum(2.0, np.ceil(h / 2))


def indication(h: Array, j: Array, Wmax: Array | float = np.inf, as_printed: bool = False) -> Indication:
    # (15) nrnd1 = j - 1; (16) rounds: r(n) + 1 if nrnd1 >= 3, else r(n) + I(nrnd1 > 0), E[TO]; packets: nrnd1 + k'
    nrnd1, n = j - 1, threshold(h)
    slow = rounds_to_packet(n) if as_printed else rounds_to_window(n)
    return Indication(nrnd1 < 3, slow + (nrnd1 > 0), nrnd1 + slow_start_packets(slow), n)


def runs(h: Array, Wmax: Array) -> Iterator[Run]:
    """The pairs of each h: a timeout without duplicate ACKs, one with too few, and fast retransmits."""
    n = threshold(h)
    slow = rounds_to_window(n)
    k = slow_start_packets(slow)
    yield Run(np.ones_like(h), k, 1.0, slow, n, True)
    yield Run(np.minimum(h, 3.0) - 1, k + 1, 1.0, slow + 1, n, True)
    yield Run(h - 3, k + 3, 1.0, slow + 1, n, False)


class SikdarTahoe(SikdarSteady):
    """Equations 16 and 43 to 45. as_printed: the paper's own equations. free: parameters that `fit` fits, by default
    rto."""

    name = "sikdar-tahoe"
    title = "Tahoe, steady state (Sikdar et al.)"
    assumptions = assumptions(
        "Slow start, then one segment every second round.",
        Assumption("no-fast-recovery", "Every loss indication is followed by slow start from a window of one."),
    )

    def _indication(self, h: Array, j: Array, Wmax: Array, as_printed: bool) -> Indication:
        return indication(h, j, Wmax, as_printed)

    def _runs(self, h: Array, Wmax: Array) -> Iterator[Run]:
        return runs(h, Wmax)
