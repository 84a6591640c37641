"""Stretches of time that an event explains by itself: no window, a retransmission timer, fast recovery."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from tcpfit.diagnosis.causes import Reason
from tcpfit.diagnosis.rounds import Flags, Rounds
from tcpfit.parameters.evidence import Evidence, Rows
from tcpfit.parameters.intervals import Ints


@dataclass(frozen=True)
class Stretches:
    """Stretches from `start` to `end`, each with the flow's position, its reason and the frame of its event (or -1)."""

    owner: Ints
    start: Ints
    end: Ints
    reason: Ints
    frame: Ints

    def __len__(self) -> int:
        return len(self.owner)

    def where(self, which: np.ndarray) -> Stretches:
        """Those that the mask or the positions name."""
        return Stretches(self.owner[which], self.start[which], self.end[which], self.reason[which], self.frame[which])


def reactions(evidence: Evidence, rounds: Rounds) -> Stretches:
    """What events explain, the kinds that win where two claim an instant before the others, each in order of time."""
    closed, timers, recoveries = (evidence.of(kind) for kind in ("zero_window", "timeout", "recovery"))
    needless = _Needless(evidence)
    shut_from, shut_until = _time(closed), _time(closed) + _length(closed)
    expired = _time(timers)
    ran_from = expired - _length(timers)
    resent_from, resent_until = _time(recoveries), _time(recoveries) + _length(recoveries)
    in_vain = needless.of(recoveries, resent_from, resent_until)
    late = np.zeros(len(evidence), np.bool_)
    for kind in ("reordering", "reorder_event"):
        late[evidence.of(kind).owner] = True
    late[recoveries.owner[in_vain]] = True
    timer = np.where(
        needless.of(timers, ran_from, expired),
        np.where(late[timers.owner], Reason.NEEDLESS_TIMER_LATE, Reason.NEEDLESS_TIMER),
        Reason.TIMER,
    )
    recovery = np.where(
        in_vain,
        Reason.NEEDLESS_RECOVERY,
        np.where(_queue_stood(rounds, recoveries.owner, resent_from), Reason.QUEUE_RECOVERY, Reason.RECOVERY),
    )
    return Stretches(
        np.concatenate((closed.owner, timers.owner, recoveries.owner)),
        np.concatenate((shut_from, ran_from, resent_from)),
        np.concatenate((shut_until, expired, resent_until)),
        np.concatenate((np.full(len(closed), Reason.NO_WINDOW), timer, recovery)),
        np.concatenate([_frames(rows) for rows in (closed, timers, recoveries)]),
    )


def apart(found: Stretches) -> Stretches:
    """Stretches in order of time without overlaps; where two claim an instant, the earlier of `found` has it.

    Their times are on one axis for all flows: those of two flows do not overlap.
    """
    edges = np.unique(np.concatenate((found.start, found.end)))
    low, high = np.searchsorted(edges, found.start).tolist(), np.searchsorted(edges, found.end).tolist()
    holder = np.full(len(edges), -1)
    for n in range(len(found) - 1, -1, -1):
        holder[low[n] : high[n]] = n
    held = np.flatnonzero(holder >= 0)
    who = holder[held]
    return Stretches(found.owner[who], edges[held], edges[held + 1], found.reason[who], found.frame[who])


class _Needless:
    """Which reactions were needless: the resend that they began with was, and no loss was near."""

    def __init__(self, evidence: Evidence) -> None:
        spurious = evidence.of("spurious")
        self._resends = set(zip(spurious.owner.tolist(), _frames(spurious).tolist(), strict=True))
        losses = evidence.of("loss")
        self._times = _time(losses)
        number = np.bincount(losses.owner, minlength=len(evidence))
        self._ends = np.cumsum(number)
        self._begins = self._ends - number
        rtt = evidence.column("rtt_mean_s")
        self._slack_ns = (1.5e9 * np.where(np.isfinite(rtt), rtt, 0.0)).astype(np.int64)

    def of(self, rows: Rows, start: Ints, end: Ints) -> Flags:
        """The events between whose start, a round trip and a half before, and end nothing was lost."""
        found = np.zeros(len(rows), np.bool_)
        for n, key in enumerate(zip(rows.owner.tolist(), _frames(rows).tolist(), strict=True)):
            if key[1] < 0 or key not in self._resends:
                continue
            flow = key[0]
            lost = self._times[self._begins[flow] : self._ends[flow]]
            found[n] = np.searchsorted(lost, end[n], "right") == np.searchsorted(
                lost, start[n] - self._slack_ns[flow], "left"
            )
        return found


def _queue_stood(rounds: Rounds, owner: Ints, time: Ints) -> Flags:
    """The queue stood in the round under way, or in the one before, in which the lost data were sent."""
    stood = np.zeros(len(owner), np.bool_)
    if not rounds.queued.any():
        return stood
    for n, flow in enumerate(owner.tolist()):
        begin = int(rounds.flow_begin[flow])
        end = begin + int(rounds.flow_count[flow])
        k = begin + int(np.searchsorted(rounds.start[begin:end], time[n], "right")) - 1
        stood[n] = rounds.queued[max(k - 1, begin) : max(k, begin) + 1].any()
    return stood


def _time(rows: Rows) -> Ints:
    return np.asarray(rows.frame["time_ns"].to_numpy())


def _length(rows: Rows) -> Ints:
    return (1e9 * np.nan_to_num(rows.floats("value"))).astype(np.int64)


def _frames(rows: Rows) -> Ints:
    return np.asarray(rows.frame["frame"].cast(pl.Int64).fill_null(-1).to_numpy())
