"""Rounds and packets of slow start and congestion avoidance with delayed ACKs (Sikdar et al., eqs 1 to 9).

Shared by the models of that paper. A round is a window's worth of packets and lasts one round-trip time.

**Symbols** n, k: rounds; N, i, a: packets; Wmax: window limit (packets, column `w_max`); p: loss probability of a
packet whose predecessor in the round arrived (1, `p_indication`); Ts: first SYN timeout (s).

**Departures** Equation 3's closed form is an empirical fit of the sum of 2 (equal up to k = 7, then low by up to 9.5
%); it is kept, for 8 and 9 are its inverse. 3 and 6 are at least 0: printed, no round of slow start sends -1 packets,
and a window limit below two packets costs a round more. In 8 the second branch adds n_wm + 1 rounds, for N_exp holds
the first round at Wmax already, and the first branch stops there too (printed: n_wm; another number of rounds in 56 %
of N < 400, Wmax < 100). In 5 packets a <= 0 take 0 rounds, and b is at most Wmax. Equation 1 is inf from p = 1/2 on.

**Validation** `tests/models/test_model_values.py` (rows `sikdar_w`, `sikdar_pkt_closed`, `sikdar_setup`, `sikdar_tlin`,
`sikdar_nwm`, `sikdar_tnl_rounds`, `sikdar_r`); eq 5 against its own sum in `test_model_derivations.py`.

**Reference** Sikdar, Kalyanaraman, Vastola: Analytic Models for the Latency and Steady-State Throughput of TCP Tahoe,
Reno, and SACK, IEEE/ACM ToN 11(6), 2003, doi:10.1109/TNET.2003.820427.
"""

from __future__ import annotations

import numpy as np

from tcpfit.models.base import Array

_FIT = 2 + 3 * np.sqrt(2) / 2  # the constant of eq 3


def setup_time(RTT: Array, Ts: Array, p: Array) -> Array:
    # (1) t_setup = RTT + 2 Ts ((1-p)/(1-2p) - 1)
    return np.where(p < 0.5, RTT + 2 * Ts * ((1 - p) / np.where(p < 0.5, 1 - 2 * p, 1.0) - 1), np.inf)


def slow_start_window(n: Array) -> Array:
    # (2) w(n) = floor(2^((n-1)/2) + 2^((n-2)/2))
    return np.asarray(np.floor(2 ** ((n - 1) / 2) + 2 ** ((n - 2) / 2)))


def slow_start_packets(k: Array) -> Array:
    # (3) pkt(k) = floor(2^((k+1)/2) + 3 2^((4k-3)/8) - 2 - 3 sqrt(2)/2)
    return np.asarray(np.maximum(0.0, np.floor(2 ** ((k + 1) / 2) + 3 * 2 ** ((4 * k - 3) / 8) - _FIT)))


def linear_rounds(a: Array, b: Array, Wmax: Array) -> Array:
    # (5) rounds to send a packets when the window starts at b, grows by one every second round and stops at Wmax
    b = np.minimum(b, Wmax)
    x = np.floor((-1 + np.sqrt(1 + 4 * (np.maximum(a, 0.0) + b * (b - 1)))) / 2)
    growing = np.ceil((a - x * (x + 1) + b * (b - 1)) / (x + 1)) + 2 * x - 2 * (b - 1)
    top = np.where(np.isfinite(Wmax), Wmax, 1.0)
    limited = np.ceil((a - top * (top + 1) + b * (b - 1)) / top) + 2 * top - 2 * (b - 1)
    rounds = np.where(a <= Wmax * (Wmax + 1) - b * (b - 1), growing, limited)
    return np.where(a > 0, rounds, 0.0)


def linear_rounds_of_run(a: Array, count: Array, stride: Array | float, b: Array, Wmax: Array) -> Array:
    # sum of (5) over a, a - stride, a - 2 stride, ...: count terms. The last term's rounds, which every term takes, and
    # then, round by round, how many of the terms take another: those above the packets sent so far.
    b, top = np.minimum(b, Wmax), np.minimum(Wmax, 2.0**60)
    k = linear_rounds(a - stride * (count - 1), b, top)
    total = count * k
    growing = np.minimum(k, 2 * (top - b))
    m = np.floor(growing / 2)
    left = a - (m * (2 * b + m - 1) + (growing - 2 * m) * (b + m) + (k - growing) * top)  # a, less k rounds' packets
    active = np.flatnonzero((left > 0) & (count > 0))
    stride = np.broadcast_to(stride, np.shape(a))
    while active.size:
        left_, window = left[active], np.minimum(b[active] + np.floor(k[active] / 2), top[active])
        total[active] += np.minimum(np.ceil(left_ / stride[active]), count[active])
        left[active], k[active] = left_ - window, k[active] + 1
        active = active[left_ > window]
    return total


def rounds_to_window(Wmax: Array) -> Array:
    # (6) n_wm = floor(2 log2(2 Wmax / (1 + sqrt(2)))), the last round of slow start below Wmax
    return np.asarray(np.maximum(0.0, np.floor(2 * np.log2(2 * Wmax / (1 + np.sqrt(2))))))


def packets_to_window(Wmax: Array) -> Array:
    # (7) N_exp = pkt(n_wm) + Wmax
    return slow_start_packets(rounds_to_window(Wmax)) + Wmax


def loss_free_rounds(N: Array, Wmax: Array, as_printed: bool = False) -> Array:
    # (8) t_nl(N)/RTT: slow start, then Wmax packets a round
    n_wm, N_exp = rounds_to_window(Wmax), packets_to_window(Wmax)
    starting = np.ceil(2 * np.log2((2 * N + 2 * _FIT) / (2 * np.sqrt(2) + 3 * 2 ** (5 / 8))))
    over = np.ceil((N - N_exp) / Wmax)
    if as_printed:
        return np.where(N <= N_exp, starting, n_wm + over)
    return np.where(N <= N_exp, np.minimum(starting, n_wm + 1), n_wm + 1 + over)


def rounds_to_packet(i: Array) -> Array:
    # (9) r(i) = ceil(2 log2((2i + 8.243)/7.455))
    return np.asarray(np.ceil(2 * np.log2((2 * i + 8.243) / 7.455)))
