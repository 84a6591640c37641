"""Steady-state throughput in the manner of Sikdar et al. (eqs 43 to 45), shared by their Tahoe, Reno and SACK.

1/p packets pass between loss indications. The window h at an indication is uniform on 1..c_wm, the first lost packet j
uniform on the round, and every packet behind it in the round is lost. For each pair (h, j) the version's equations say
what follows: rounds and packets until linear growth begins, the slow-start threshold, and whether a timeout comes.

**Symbols** p: loss events per packet (1, column `p`); RTT (s, `rtt`); To: first timeout of a series (s, `rto`); Wmax:
window limit (segments, `w_max`). Section II has p as the chance of a packet that follows no loss of its round, and as
the frequency of indications, of which each round with losses makes one: a loss event. A fast recovery and the timeout
that it ends in are one, where `p_indication` counts two.

**Domain** 0 <= p <= 1, RTT > 0, To > 0, Wmax >= 1 (rounded down); nan outside. p = 0 gives Wmax/RTT, p = 1 gives
0. The double sum is exact up to c_wm = 16384 (p from about 1.5e-8 with Wmax = inf); beyond it, and where 1/p is above
2^40, h and j are taken at 512 x 512 midpoints (within 4e-4 of the sum). c_wm is whole, and so are the rounds: the rate
has steps in p and Wmax, of which those against the trend are below 3 % (p of 1e-4 to 0.3).

**Departures** 43 rounds up (printed bare brackets; III-E.2 has the ceiling). E[TO] is in seconds and stands outside
the rounds (printed inside the bracket that RTT multiplies). 4 has 16 p^5 (printed 18). `as_printed=True` keeps the
last two, and those that each version's file names; it is summed pair by pair up to c_wm = 1024. b does not appear:
delayed ACKs (b = 2) are built into the growth of one packet every second round.

**Method** For one h the packets of the pairs fall into a few arithmetic progressions in j (`Run`), over each of which
equation 5 is summed by counting how many terms need one more round: c_wm steps a row instead of c_wm^2/2.

**Validation** `tests/models/test_model_values.py::test_grid` (rows `sikdar_steady`); the runs against the sum over all
pairs, and the midpoints against both, in `tests/models/test_sikdar_steady.py`.

**Reference** Sikdar, Kalyanaraman, Vastola: Analytic Models for the Latency and Steady-State Throughput of TCP Tahoe,
Reno, and SACK, IEEE/ACM ToN 11(6), 2003, doi:10.1109/TNET.2003.820427.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tcpfit.models.base import LONGEST, SHORTEST, Array, Assumption, Model, Parameter
from tcpfit.models.sikdar_rounds import linear_rounds, linear_rounds_of_run
from tcpfit.models.timeouts import timeout_duration

EXACT = 16384  # c_wm up to which the double sum is exact
RAREST = 2.0**40  # 1/p up to which it is: packets and rounds are whole numbers below 2^53
PAIRS = 1024  # c_wm up to which pairs are summed one by one, where that is asked for
STRATA = 512  # midpoints of h, and of j, above these
BLOCK = 1 << 14  # values of h at once: arrays that stay in the cache


class Indication(NamedTuple):
    """What follows one loss indication, for arrays of h and j: nothing here depends on p, RTT or To."""

    times_out: NDArray[np.bool_]
    rounds: Array  # before the linear growth, E[TO] not counted
    packets: Array  # sent in them
    ssthresh: Array


class Run(NamedTuple):
    """Pairs of one h whose packets are `packets`, `packets + stride`, ...: `size` of them, arrays over h."""

    size: Array
    packets: Array
    stride: Array | float
    rounds: Array | float
    ssthresh: Array
    times_out: bool


Pairs = Callable[[Array, Array, Array, bool], Indication]  # h, j, Wmax, as_printed
Runs = Callable[[Array, Array], Iterator[Run]]  # h, Wmax


def largest_window(p: Array, Wmax: Array) -> Array:
    # (43) c_wm = min(ceil((-1 + sqrt(1 + 16/p))/2), Wmax)
    return np.minimum(np.ceil((-1 + np.sqrt(1 + 16 / p)) / 2), Wmax)


def mean_over_runs(p: Array, Wmax: Array, runs: Runs) -> tuple[Array, Array]:
    # (44) without its two time scales: mean rounds, and share of indications that time out, over h = 1..c_wm, j = 1..h
    c_wm = largest_window(p, Wmax)
    pairs = c_wm * (c_wm + 1) / 2
    rounds, timeouts = np.zeros(p.size), np.zeros(p.size)
    ends = np.cumsum(c_wm)
    start = 0
    while start < p.size:  # rows until their windows fill a block
        before = ends[start - 1] if start else 0.0
        stop = max(start + 1, int(np.searchsorted(ends, before + BLOCK, side="right")))
        sizes = c_wm[start:stop].astype(np.int64)
        row = np.repeat(np.arange(sizes.size), sizes)
        h = np.arange(1.0, row.size + 1) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        between, limit = (1 / p[start:stop])[row], Wmax[start:stop][row]
        of_h, lost = np.zeros(h.size), np.zeros(h.size)
        for run in runs(h, limit):
            count = np.maximum(run.size, 0.0)
            of_h += count * run.rounds
            of_h += linear_rounds_of_run(between - run.packets, count, run.stride, run.ssthresh, limit)
            if run.times_out:
                lost += count
        rounds[start:stop] = np.bincount(row, of_h, sizes.size)
        timeouts[start:stop] = np.bincount(row, lost, sizes.size)
        start = stop
    return rounds / pairs, timeouts / pairs


def mean_over_pairs(p: float, Wmax: float, pairs: Pairs, as_printed: bool = False) -> tuple[float, float]:
    # (44) as above, pair by pair, or over midpoints of h and j where there are too many pairs
    c_wm = float(largest_window(np.asarray(p), np.asarray(Wmax)))
    if c_wm <= PAIRS:
        row, column = np.tril_indices(int(c_wm))
        h, j = row.astype(np.float64) + 1, column.astype(np.float64) + 1
        weight = np.full(h.size, 1 / h.size)
    else:
        middle = (np.arange(STRATA, dtype=np.float64) + 0.5) / STRATA
        h = np.asarray(np.repeat(np.ceil(middle * c_wm), STRATA), dtype=np.float64)
        j = np.asarray(np.ceil(np.tile(middle, STRATA) * h), dtype=np.float64)
        weight = h / h.sum()
    after = pairs(h, j, np.asarray(Wmax), as_printed)
    rounds = after.rounds + linear_rounds(1 / p - after.packets, after.ssthresh, np.asarray(Wmax))
    return float(weight @ rounds), float(weight @ after.times_out)


def throughput(
    p: Array, RTT: Array, To: Array, Wmax: Array, pairs: Pairs, runs: Runs, as_printed: bool = False
) -> Array:
    # (45) R = 1/(p t_ss), t_ss = RTT mean_rounds + E[TO] share
    both = np.stack([p, np.floor(Wmax)], axis=-1).view(np.complex128)[:, 0]  # pairs, as numbers that sort
    distinct, back = np.unique(both, return_inverse=True)
    p_, Wmax_ = distinct.real.copy(), distinct.imag.copy()
    rounds, share = np.full(p_.size, np.nan), np.full(p_.size, np.nan)
    exact = (largest_window(p_, Wmax_) <= EXACT) & (1 / p_ <= RAREST) & (not as_printed)
    if exact.any():
        rounds[exact], share[exact] = mean_over_runs(p_[exact], Wmax_[exact], runs)
    for i in np.flatnonzero((p_ > 0) & ~exact):
        rounds[i], share[i] = mean_over_pairs(float(p_[i]), float(Wmax_[i]), pairs, as_printed)
    rounds, share = rounds[back], share[back]
    timeouts = np.where(share > 0, share * timeout_duration(p, To, as_printed), 0.0)
    t_ss = RTT * (rounds + timeouts) if as_printed else RTT * rounds + timeouts
    return np.where(p > 0, np.minimum(1 / (p * t_ss), np.inf), Wmax / RTT)


class SikdarSteady(Model):
    """What the three models have in common; a version gives its name, its equations and its assumptions.

    as_printed: the paper's own equations. free: names of the parameters that `fit` fits, by default rto.
    """

    paper = "Sikdar, Kalyanaraman, Vastola 2003, IEEE/ACM ToN 11(6):959-971, doi:10.1109/TNET.2003.820427"
    p_definition = "loss_event"
    parameters = (
        Parameter("p", "1", "loss events per segment sent", None, "p", high=1.0),
        Parameter("rtt", "s", "mean round-trip time", None, "rtt", low=SHORTEST, high=LONGEST),
        Parameter("rto", "s", "mean first timeout of a series", None, "rto", low=SHORTEST, high=LONGEST),
        Parameter("w_max", "segments", "window limit", float(np.inf), "w_max", low=1.0),
    )
    fittable = {"rto": (1e-3, 300.0, 1.0)}

    def __init__(self, *, as_printed: bool = False, free: Sequence[str] | None = None) -> None:
        self.as_printed = as_printed
        self.free = free

    @property
    def quantity(self) -> Literal["send-rate", "throughput", "goodput"]:
        return "throughput"

    def _indication(self, h: Array, j: Array, Wmax: Array, as_printed: bool) -> Indication:
        """The version's equations for pairs."""
        raise NotImplementedError

    def _runs(self, h: Array, Wmax: Array) -> Iterator[Run]:
        """The same as progressions in j."""
        raise NotImplementedError

    def _rate(self, **a: Array) -> Array:
        return throughput(a["p"], a["rtt"], a["rto"], a["w_max"], self._indication, self._runs, self.as_printed)


def assumptions(growth: str, *own: Assumption) -> tuple[Assumption, ...]:
    """The assumptions that the three share, with a version's own."""
    return (
        Assumption("reno-growth", growth),
        Assumption("loss-limited", "Losses or the window limit bound the rate, not the application or the link."),
        Assumption("bulk", "There is always data to send, and slow start is over."),
        *own,
        Assumption("correlated-loss-in-round", "After the first loss of a round the rest is lost.", required=False),
        Assumption("no-reordering", "Duplicate ACKs mean loss.", required=False),
    )
