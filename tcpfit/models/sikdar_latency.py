"""Transfer times of Tahoe, Reno and SACK under correlated losses (Sikdar et al., eqs 1 to 42).

T = t_setup + t_dack + (1-p)^N t_nl(N) + N p (1-p)^(N-1) E{t_sl(N)} + t_ml(N)        (18, 29, 42)

No packet, one, or several of N start a loss indication. t_nl: slow start and Wmax packets a round (8). t_sl: the first
lost packet i is any of the N; the rest of its round is lost too; what follows is the version's (13; 21, 25; 33, 36).
t_ml: of M indications the second comes at packet m; up to there the flow is one with a single indication; the rest are
M - 1 chunks of D = (N-m+1)/(M-1) packets, each after an indication whose window and position are uniform (16; 26, 27;
38, 40).

**Symbols** N: packets of the transfer (`segments`, rounded up); p: loss probability of a packet whose predecessor in
the round arrived, which is that of an indication (1, `p_indication`); RTT (s, `rtt`); To: first timeout of a series (s,
`rto`); Wmax: window limit (segments, `w_max`, rounded down); t_dack: wait for the first ACK (s); Ts: first timeout of a
SYN (s).

**Domain** 1 <= N <= 1024, 0 <= p <= 1, times within 1e-9 and 1e9 s, Wmax >= 1; t_dack and Ts may be 0; nan outside.
Every i, m and M is summed, N^2/2 cases, which bounds N; a longer transfer is one for the steady state. From p = 1/2 on
the handshake takes infinitely long (eq 1). Rounds are whole, so T has small jumps in N and Wmax; in p, RTT and To it is
smooth.

**Departures** `delayed_ack = 0.1 s, syn_rto = 3 s`. 18, 29, 42: the factor N, without which the probabilities do not
add up (0.655 at N = 12, p = 0.1). 17, 28, 41: M - 1 chunks, as D is defined (printed M - 2: a second indication would
cost nothing). 13, 16, 25, 27, 33, 38: E[TO] is in seconds, not in rounds; t_nl is in rounds. 33: r(n) is in it, as in
38. `as_printed=True` keeps these, and those of `sikdar_steady`, `sikdar_rounds` and the versions' files. M is binomial,
m the second of M positions at random (the paper does not say). n_max (11) may exceed N: packets are lost that do not
exist; `cap=True` limits it. `handshake=False` counts from the first data segment.

**Validation** `tests/models/test_model_values.py`: `test_grid[sikdar_latency...]`, `[sikdar_tsl_rounds...]`; Tables I
to III within 27 %, 7 % on average, with To, Ts and t_dack that the paper does not print (`test_printed_value`), which
is no evidence for these three.

**Reference** Sikdar, Kalyanaraman, Vastola: Analytic Models for the Latency and Steady-State Throughput of TCP Tahoe,
Reno, and SACK, IEEE/ACM ToN 11(6), 2003, doi:10.1109/TNET.2003.820427.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tcpfit.models import sikdar_reno, sikdar_sack, sikdar_tahoe
from tcpfit.models.base import Array, Assumption, Parameter
from tcpfit.models.sikdar_rounds import (
    linear_rounds,
    loss_free_rounds,
    packets_to_window,
    rounds_to_packet,
    rounds_to_window,
    setup_time,
    slow_start_packets,
    slow_start_window,
)
from tcpfit.models.sikdar_steady import Indication
from tcpfit.models.timeouts import timeout_duration
from tcpfit.models.transfer_time import DELAYED_ACK, RTO, RTT, SEGMENTS, SYN_RTO, W_MAX, TransferTime

EXACT = 1024  # N up to which every case is summed
BLOCK = 1 << 15  # pairs summed at once: arrays that stay in the cache

Indications: TypeAlias = Callable[..., Indication]  # cwnd1, nrnd1 + 1, Wmax, as_printed


class Reading(NamedTuple):
    """Which model, read how: the key of the tables of rounds."""

    indication: Indications
    Wmax: float
    as_printed: bool
    cap: bool


def window_of_packet(i: Array, Wmax: Array) -> Array:
    # (10) cwnd0: Wmax from round n_wm + 1 on, w(r(i)) before
    r = rounds_to_packet(i)
    return np.where(r > rounds_to_window(Wmax), Wmax, slow_start_window(r))


def last_of_round(i: Array, Wmax: Array) -> Array:
    # (11) n_max(i) = N_exp + ceil(max(0, i - N_exp)/Wmax) Wmax from round n_wm + 1 on, pkt(r(i)) before
    r, N_exp = rounds_to_packet(i), packets_to_window(Wmax)
    with np.errstate(invalid="ignore"):
        limited = N_exp + np.ceil(np.maximum(0.0, i - N_exp) / Wmax) * Wmax
    return np.where(r > rounds_to_window(Wmax), limited, slow_start_packets(r))


def round_after_loss(i: Array, Wmax: Array, last: Array) -> tuple[Array, Array]:
    # (12) nloss = n_max - i + 1, cwnd1 = min(Wmax, cwnd0 + ceil((cwnd0 - nloss)/2)), nrnd1 = cwnd1 - nloss, not below 0
    cwnd0, nloss = window_of_packet(i, Wmax), last - i + 1
    cwnd1 = np.minimum(Wmax, cwnd0 + np.ceil((cwnd0 - nloss) / 2))
    return cwnd1, np.maximum(0.0, cwnd1 - nloss)


def first_indication(how: Reading, i: Array, N: Array | float = np.inf) -> Indication:
    """What follows where packet i is the first lost: rounds, and packets, counted from the start of the transfer."""
    Wmax = np.asarray(how.Wmax)
    last = last_of_round(i, Wmax)
    cwnd1, nrnd1 = round_after_loss(i, Wmax, np.minimum(last, N) if how.cap else last)
    after = how.indication(cwnd1, nrnd1 + 1, Wmax, how.as_printed)
    rounds = after.rounds
    if how.as_printed and how.indication is sikdar_sack.indication:  # (33) leaves r(n) out
        rounds = rounds - np.where(after.times_out, np.maximum(0.0, rounds_to_window(after.ssthresh)), 0.0)
    with np.errstate(invalid="ignore"):
        loss_free = loss_free_rounds(i, Wmax, how.as_printed)
    return Indication(after.times_out, loss_free + rounds, i - 1 + after.packets, after.ssthresh)


def single_loss_rounds(how: Reading, N: Array, i: Array) -> tuple[Array, NDArray[np.bool_]]:
    # (13; 21, 25; 33, 36) t_sl/RTT without E[TO], and whether it is in it:
    # t_nl(i) + the indication's rounds + t_lin(N - i + 1 - its packets, n)
    after = first_indication(how, i, N)
    return after.rounds + linear_rounds(N - after.packets, after.ssthresh, np.asarray(how.Wmax)), after.times_out


def window_range(D: Array, Wmax: Array) -> Array:
    # section III-E.2: windows 1 .. min(Wmax, ceil((-1 + sqrt(1 + 16 D))/2))
    return np.minimum(Wmax, np.ceil((-1 + np.sqrt(1 + 16 * D)) / 2))


def chunk_rounds(how: Reading, D: Array) -> tuple[Array, Array]:
    # (16; 26, 27; 38, 40) averaged over h = 1..c, j = 1..h: t_M_Loss/RTT without E[TO], and the share that has it
    Wmax = np.asarray(how.Wmax)
    c = window_range(D, Wmax).astype(np.int64)
    pairs = c * (c + 1) // 2
    after = _pairs(how, 1 << (int(c.max()) - 1).bit_length())
    total, timeouts = np.empty(D.size), np.cumsum(after.times_out)[pairs - 1]
    ends = np.cumsum(pairs)
    at = 0
    while at < D.size:  # as many chunks as fill a block
        to = max(at + 1, int(np.searchsorted(ends, (ends[at - 1] if at else 0) + BLOCK, side="right")))
        size = pairs[at:to]
        first = np.cumsum(size) - size
        pair = np.arange(size.sum()) - np.repeat(first, size)
        growth = linear_rounds(np.repeat(D[at:to], size) - after.packets[pair], after.ssthresh[pair], Wmax)
        total[at:to] = np.add.reduceat(after.rounds[pair] + growth, first)
        at = to
    return total / pairs, timeouts / pairs


@lru_cache(maxsize=64)
def _pairs(how: Reading, size: int) -> Indication:
    """Every pair j <= h <= size, by h, so that a smaller window's pairs come first."""
    rows, columns = np.tril_indices(size)
    return how.indication(rows + 1.0, columns + 1.0, np.asarray(how.Wmax), how.as_printed)


class Rounds(NamedTuple):
    """Mean rounds, and share of cases with a timeout, by packets (`single`: n - 1) or half packets (`chunk`: 2 D -
    1)."""

    single: Array
    single_timeouts: Array
    chunk: Array
    chunk_timeouts: Array


@lru_cache(maxsize=1024)
def tables(how: Reading, size: int) -> Rounds:
    """E{t_sl(n)} for n up to size, over i = 1..n; E{t_M_Loss(D)} for D = 1/2, 1, ... size.

    Rounds of linear growth change where D passes a whole number, the range of windows where it passes c(c+1)/4: half
    numbers are enough.
    """
    n, i = np.tril_indices(size)
    count = np.arange(1, size + 1, dtype=np.float64)
    if how.cap:  # what is lost depends on n
        rounds, times_out = single_loss_rounds(how, count[n], count[i])
    else:
        after = first_indication(how, count)
        rounds = after.rounds[i] + linear_rounds(n + 1 - after.packets[i], after.ssthresh[i], np.asarray(how.Wmax))
        times_out = after.times_out[i]
    first = np.arange(size) * (np.arange(size) + 1) // 2
    chunk, chunk_timeouts = chunk_rounds(how, np.arange(1.0, 2 * size + 1) / 2)
    return Rounds(
        np.add.reduceat(rounds, first) / count,
        np.add.reduceat(times_out.astype(np.float64), first) / count,
        chunk,
        chunk_timeouts,
    )


@lru_cache(maxsize=1)
def _log_factorials() -> Array:
    from scipy.special import gammaln

    return np.asarray(gammaln(np.arange(EXACT + 1) + 1.0))


def second_of(N: int, M: NDArray[np.int64], m: NDArray[np.int64]) -> Array:
    # P(m | M): the second of M positions in N at random is m, (m-1) C(N-m, M-2)/C(N, M)
    log = _log_factorials()
    behind = log[N - m] - log[M - 2] - log[N - m - M + 2]
    return np.asarray((m - 1) * np.exp(behind - (log[N] - log[M] - log[N - M])))


@lru_cache(maxsize=4096)
def multiple_loss_rounds(how: Reading, N: int) -> tuple[Array, Array]:
    # (17, 28, 41) for M = 2..N, averaged over m: mean rounds and mean number of timeouts of
    # t_sl(m-1) + (M-1) t_M_Loss(D_ave)
    known = tables(how, max(32, 1 << (N - 1).bit_length()))
    if N < 2:
        return np.zeros(0), np.zeros(0)
    row, column = np.tril_indices(N - 1)
    M, m = N - row, column + 2  # m <= N - M + 2
    weight = second_of(N, M, m)
    half = -(-2 * (N - m + 1) // (M - 1)) - 1  # (14), in half packets, rounded up
    chunks = weight * (M - (2 if how.as_printed else 1))
    of_rounds = weight * known.single[column] + chunks * known.chunk[half]
    of_timeouts = weight * known.single_timeouts[column] + chunks * known.chunk_timeouts[half]
    rounds, timeouts = (np.bincount(M - 2, of, N - 1) for of in (of_rounds, of_timeouts))
    return np.asarray(rounds, np.float64), np.asarray(timeouts, np.float64)


def mean_rounds(how: Reading, N: int, p: Array) -> tuple[Array, Array]:
    # (18, 29, 42) without t_setup and t_dack: mean rounds and mean number of timeouts, for flows of N packets
    from scipy.special import xlog1py, xlogy

    known = tables(how, max(32, 1 << (N - 1).bit_length()))
    rounds, timeouts = multiple_loss_rounds(how, N)
    M, log = np.arange(2, N + 1), _log_factorials()
    ways = log[N] - log[M] - log[N - M]
    several = np.exp(ways + xlogy(M, p[:, None]) + xlog1py(N - M, -p[:, None]))
    none, one = np.exp(xlog1py(N, -p)), p * np.exp(xlog1py(N - 1, -p)) * (1 if how.as_printed else N)
    with np.errstate(invalid="ignore"):
        loss_free = loss_free_rounds(np.asarray(float(N)), np.asarray(how.Wmax), how.as_printed)
    # row by row: the last digit of a matrix product depends on how many flows there are
    more, more_timeouts = ((several * of).sum(axis=1) for of in (rounds, timeouts))
    return (
        none * loss_free + one * known.single[N - 1] + more,
        one * known.single_timeouts[N - 1] + more_timeouts,
    )


def transfer_time(
    indication: Indications,
    N: Array,
    p: Array,
    RTT: Array,
    To: Array,
    Wmax: Array,
    as_printed: bool = False,
    cap: bool = False,
) -> Array:
    # (18, 29, 42) without t_setup and t_dack, in seconds
    N, Wmax = np.ceil(N), np.floor(Wmax)
    Wmax = np.where(Wmax >= 0.75 * N + 16, np.inf, Wmax)  # such a window is never reached: one table for all of them
    groups, back = np.unique(np.stack([Wmax, N]), axis=1, return_inverse=True)
    members = np.split(np.argsort(back.ravel(), kind="stable"), np.cumsum(np.bincount(back.ravel()))[:-1])
    rounds, timeouts = np.empty(N.shape), np.empty(N.shape)
    for (limit, packets), rows in zip(groups.T.tolist(), members, strict=True):
        rounds[rows], timeouts[rows] = mean_rounds(Reading(indication, limit, as_printed, cap), int(packets), p[rows])
    seconds = timeout_duration(p, To, as_printed)
    waiting = np.where(timeouts > 0, timeouts * np.where(timeouts > 0, seconds, 0.0), 0.0)
    return RTT * rounds + (RTT * waiting if as_printed else waiting)


class SikdarLatency(TransferTime):
    """What the three versions have in common; a subclass names its equations.

    as_printed: the paper's own equations. cap: no packet beyond the last is lost. handshake: count from the SYN on.
    free: names of the parameters that `fit` fits, by default rto.
    """

    paper = "Sikdar, Kalyanaraman, Vastola 2003, IEEE/ACM ToN 11(6):959-971, doi:10.1109/TNET.2003.820427"
    p_definition = "loss_indication"
    parameters = (
        replace(SEGMENTS, high=float(EXACT)),
        Parameter("p", "1", "loss indications per segment sent", None, "p_indication", high=1.0),
        RTT,
        RTO,
        W_MAX,
        DELAYED_ACK,
        SYN_RTO,
    )
    fittable = {"rto": (1e-3, 300.0, 1.0)}
    choices = {"as_printed": (True, False), "cap": (True, False), "handshake": (True, False)}

    def __init__(
        self,
        *,
        as_printed: bool = False,
        cap: bool = False,
        handshake: bool = True,
        free: Sequence[str] | None = None,
    ) -> None:
        self.as_printed = as_printed
        self.cap = cap
        self.handshake = handshake
        self.free = free

    def _time(self, **a: Array) -> Array:
        N, p, RTT, To, Wmax = (a[name] for name in ("segments", "p", "rtt", "rto", "w_max"))
        start = setup_time(RTT, a["syn_rto"], p) if self.handshake else np.zeros(p.shape)
        transfer = transfer_time(self._indication, N, p, RTT, To, Wmax, self.as_printed, self.cap)
        return np.asarray(start + a["delayed_ack"] + transfer)

    @staticmethod
    def _indication(h: Array, j: Array, Wmax: Array, as_printed: bool) -> Indication:
        """What follows a loss in a window of h that j - 1 packets of the round survive."""
        raise NotImplementedError


def _assumptions(growth: str, *own: Assumption) -> tuple[Assumption, ...]:
    """The assumptions that the three share, with a version's own."""
    return (
        Assumption("reno-growth", growth),
        *own,
        Assumption("correlated-loss-in-round", "After the first loss of a round the rest is lost.", required=False),
        Assumption("no-reordering", "Duplicate ACKs mean loss.", required=False),
    )


class SikdarTahoeLatency(SikdarLatency):
    """Equation 18. as_printed, cap, handshake, free: see SikdarLatency."""

    name = "sikdar-tahoe-latency"
    title = "Tahoe, transfer time (Sikdar et al.)"
    assumptions = _assumptions(
        "Slow start, then one segment every second round.",
        Assumption("no-fast-recovery", "Every loss indication is followed by slow start from a window of one."),
    )
    _indication = staticmethod(sikdar_tahoe.indication)


class SikdarRenoLatency(SikdarLatency):
    """Equation 29. as_printed, cap, handshake, free: see SikdarLatency."""

    name = "sikdar-reno-latency"
    title = "Reno, transfer time (Sikdar et al.)"
    assumptions = _assumptions(
        "Slow start, then one segment every second round, and halving at every fast retransmit.",
        Assumption("no-sack", "Reno's recovery: one packet a round, one halving each.", required=False),
    )
    _indication = staticmethod(sikdar_reno.indication)


class SikdarSackLatency(SikdarLatency):
    """Equation 42. as_printed, cap, handshake, free: see SikdarLatency."""

    name = "sikdar-sack-latency"
    title = "SACK, transfer time (Sikdar et al.)"
    assumptions = _assumptions(
        "Slow start, then one segment every second round, and halving at an indication.",
        Assumption("sack", "The receiver reports what arrived; the sender repairs by it."),
    )
    _indication = staticmethod(sikdar_sack.indication)
