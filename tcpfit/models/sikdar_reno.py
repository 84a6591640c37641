"""Steady-state throughput of TCP Reno under correlated losses (Sikdar et al., eqs 19 to 27 and 43 to 45), segments/s.

Reno resends one lost packet a round and halves its threshold for each. It times out where fewer than three duplicate
ACKs come, and where a window of 4 to 8 loses two packets or more, a larger one three or more; before that timeout a
first and perhaps a second fast retransmit may have gone out.

**Symbols, domain, method** see `sikdar_steady`; h: window at the indication (cwnd1); j: position of the first loss;
nloss = h-j+1; nrnd1, nrnd2: new packets in the first and second round after the loss; n: slow-start threshold.

**Departures** Those of `sikdar_steady`. 22: k'' is what the rounds before the timeout send, nrnd1 + nrnd2 and the one
or two packets resent, which is max(cwnd1, cwnd2) - nloss + 1 or + 2 (printed max(.) - nrnd1 - 1 or - 0). r(n) is
equation 6 with Wmax := n (the text: 9). `as_printed=True` keeps these. The rule for timeouts is the text's, not 20's,
which would ask for windows of 9 and more where two packets are lost.

**Validation** `tests/models/test_model_values.py::test_grid[sikdar_steady.reno]`. The paper shows one figure without
numbers and says that the values are almost PFTK's; here they are 0.55 to 0.72 of pftk-full's for p of 0.001 to 0.3
(b = 2, To = 10 RTT).

**Reference** Sikdar, Kalyanaraman, Vastola: Analytic Models for the Latency and Steady-State Throughput of TCP Tahoe,
Reno, and SACK, IEEE/ACM ToN 11(6), 2003, doi:10.1109/TNET.2003.820427.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tcpfit.models.base import Array, Assumption
from tcpfit.models.sikdar_rounds import rounds_to_packet, rounds_to_window, slow_start_packets
from tcpfit.models.sikdar_steady import Indication, Run, SikdarSteady, assumptions


def recoverable(h: Array) -> Array:
    # section III-F.1: losses that fast retransmits repair: none below a window of 4, one up to 8, two above
    return (h >= 4).astype(np.float64) + (h > 8)


def threshold(h: Array, halvings: Array | float) -> Array:
    # (24), (26) n = max(2, ceil(cwnd1/2^halvings))
    return np.maximum(2.0, np.ceil(h / 2.0**halvings))


def indication(h: Array, j: Array, Wmax: Array | float = np.inf, as_printed: bool = False) -> Indication:
    nloss, nrnd1 = h - j + 1, j - 1
    # (19) cwnd2 = min(Wmax, ceil(cwnd1/2) + nrnd1); (20) nrnd2 = cwnd2 - cwnd1, if that is more than none
    cwnd2 = np.minimum(Wmax, np.ceil(h / 2) + nrnd1)
    nrnd2 = np.maximum(0.0, cwnd2 - h)
    times_out = (nrnd1 < 3) | (nloss > recoverable(h))
    # (23) t_TO; (24) n; (22) k'' before a timeout
    few, second = nrnd1 < 3, nrnd2 >= 3
    t_TO = np.where(few, nrnd1 > 0, 2.0 + second)
    n = threshold(h, np.where(times_out, np.where(few, 1.0, 2.0 + second), nloss))
    resent = np.maximum(h, cwnd2) - (nrnd1 + 1 - second if as_printed else nloss - 1 - second)
    slow = rounds_to_packet(n) if as_printed else rounds_to_window(n)
    # (26) rounds nloss + 1, packets nloss + nrnd1 + nrnd2; (27) rounds t_TO + r(n), packets k' + k''
    return Indication(
        times_out,
        np.where(times_out, t_TO + slow, nloss + 1),
        np.where(times_out, np.where(few, nrnd1, resent) + slow_start_packets(slow), nloss + nrnd1 + nrnd2),
        n,
    )


def runs(h: Array, Wmax: Array) -> Iterator[Run]:
    """The pairs of each h, j rising: too few duplicate ACKs; nrnd2 = 0, 1, 2; more, by two packets a step; more, at the
    window limit, by one; and one or two losses that are repaired."""
    one, half, room = np.ones_like(h), np.ceil(h / 2), Wmax - h
    by_two, by_four, by_eight = (threshold(h, halvings) for halvings in (1, 2, 3))
    last = h - recoverable(h)  # the last j that times out though three duplicate ACKs came
    slow = rounds_to_window(by_two)
    k = slow_start_packets(slow)
    yield Run(one, k, 1.0, slow, by_two, True)
    yield Run(np.minimum(h, 3.0) - 1, k + 1, 1.0, slow + 1, by_two, True)
    # packets nrnd2 + j, and one more with the second fast retransmit; nrnd2 = clip(j - 1 - floor(h/2), 0, Wmax - h)
    zero = h - half + 1  # the last j with nrnd2 = 0
    slow = rounds_to_window(by_four)
    k = slow_start_packets(slow)
    yield Run(np.minimum(last, np.where(room < 1, h, zero)) - 3, k + 4, 1.0, slow + 2, by_four, True)
    for extra in (1.0, 2.0):  # one j with that nrnd2, or all from there on where the window limit stops at it
        first = np.maximum(zero + extra, 4.0)
        final = np.where(room == extra, last, np.minimum(zero + extra, last))
        yield Run(np.where(room >= extra, final - first + 1, 0.0), k + first + extra, 1.0, slow + 2, by_four, True)
    slow = rounds_to_window(by_eight)
    k = slow_start_packets(slow)
    first = np.maximum(zero + 3, 4.0)
    free = np.minimum(last, zero + np.minimum(room, h))  # the last j below the window limit
    second = np.where(room >= 3, slow + 3, 0.0)
    yield Run(np.where(room >= 3, free - first + 1, 0.0), k + 2 * first - zero + 1, 2.0, second, by_eight, True)
    first = np.maximum(first, free + 1)
    held = np.where(room >= 3, last - first + 1, 0.0)
    yield Run(held, k + np.minimum(room, h) + first + 1, 1.0, second, by_eight, True)
    for nloss in (1.0, 2.0):
        j = h - nloss + 1
        nrnd2 = np.clip(j - zero, 0.0, room)
        repaired = ((nloss <= recoverable(h)) & (j > 3)).astype(np.float64)
        yield Run(repaired, nloss + j - 1 + nrnd2, 1.0, nloss + 1, threshold(h, nloss), False)


class SikdarReno(SikdarSteady):
    """Equations 19 to 27 and 43 to 45. as_printed: the paper's own equations. free: parameters that `fit` fits, by
    default rto."""

    name = "sikdar-reno"
    title = "Reno, steady state (Sikdar et al.)"
    assumptions = assumptions(
        "Slow start, then one segment every second round, and halving at every fast retransmit.",
        Assumption("no-sack", "Reno's recovery: one packet a round, one halving each."),
    )

    def _indication(self, h: Array, j: Array, Wmax: Array, as_printed: bool) -> Indication:
        return indication(h, j, Wmax, as_printed)

    def _runs(self, h: Array, Wmax: Array) -> Iterator[Run]:
        return runs(h, Wmax)
