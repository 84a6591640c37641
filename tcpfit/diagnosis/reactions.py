"""Stretches of time that explain themselves, whatever the rounds show.

In this order, where two claim an instant:

- *unanswered*: the last expiries of the timer, to the flow's end. From the third resend of a segment without an answer
  on a sender has to doubt that the other end is there (R1, RFC 1122, 4.2.3.5). Data from there would deny it.
- *the other end's turn*: a pause before whose end the other end sent data; until that had reached the sender and the
  sender could have answered, more was not asked for.
- *no window*, by the event.
- *an ACK lost*: a pause that ends with a resend of what was acknowledged, so that the sender did not know.
- *a timer*: its run. *Fast recovery*: its length. *A probe* of a lost tail: the wait for it (RFC 8985, 7.2).
  A fast recovery of a flow that is as fast in its recoveries and after them as before (`heed`) explains nothing.
- *an answer to marks*: the round trip after it, in which the window is reduced (RFC 3168, 6.1.2).
- *a pause inside a round*: data seems outstanding for longer than a timer allows, but one ACK alone came, and its round
  trip tells when its data was sent; before that nothing was outstanding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from tcpfit.diagnosis.causes import Reason
from tcpfit.diagnosis.heed import Heed, heed
from tcpfit.diagnosis.rounds import PAUSE, Flags, Rounds, rounds_of
from tcpfit.parameters.evidence import Evidence, Rows, once
from tcpfit.parameters.intervals import Ints
from tcpfit.parameters.nearest import latest

DOUBT = 3
"""Resends of a segment without an answer: R1 of RFC 1122, 4.2.3.5."""


HOST_NS = 1_000_000
"""Time that a host may take: an ACK so shortly before data went with them."""

FULL, LONG = 0.6, 0.9
"""Of a queue's length when the flow lost something, of which this quantile counts: one so long is full. Of 136 losses
of flows whose losses all were those of drop-tail queues 135 found it so long, of 25 of a flow that lost half by chance
seven."""

NEARLY, HALF, TELLS = 0.85, 0.4, 8
"""Of that length: of so many losses or more, fewer that found the queue nearly as long than found it about half as long
come by chance, all of them. Under a full queue the first are most."""


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


@once
def reactions(evidence: Evidence) -> Stretches:
    """What explains itself, in the order in which it wins, and of one kind in order of time."""
    rounds = rounds_of(evidence)
    kinds = ("zero_window", "timeout", "recovery", "tail_loss_probe")
    closed, timers, recoveries, probes = (evidence.of(kind) for kind in kinds)
    needless = _Needless(evidence)
    expired = _time(timers)
    ran_from = expired - _length(timers)
    waited_from, probed = _time(probes) - _length(probes), _time(probes)
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
        np.where(queue_full(rounds, recoveries.owner, resent_from), Reason.QUEUE_RECOVERY, Reason.RECOVERY),
    )
    return _all(
        _unanswered(evidence, rounds),
        _other_end(evidence, rounds),
        _of(closed, _time(closed), _time(closed) + _length(closed), Reason.NO_WINDOW),
        _ack_lost(evidence, rounds),
        _of(timers, ran_from, expired, timer),
        _of(probes, waited_from, probed, Reason.PROBE).where(needless.lost_near(probes, waited_from, probed)),
        _of(recoveries, resent_from, resent_until, recovery).where(
            (recovery != Reason.RECOVERY) | ~heed_of(evidence).unbroken[recoveries.owner]
        ),
        _answers_to_marks(evidence),
        _pause_inside(rounds),
    )


@once
def heed_of(evidence: Evidence) -> Heed:
    """How the flows take losses."""
    recoveries = evidence.of("recovery")
    start, end = _time(recoveries), _time(recoveries) + _length(recoveries)
    real = ~_Needless(evidence).of(recoveries, start, end)
    return heed(rounds_of(evidence), recoveries.owner[real], start[real], end[real])


def _of(rows: Rows, start: Ints, end: Ints, reason: Ints | Reason) -> Stretches:
    """Stretches of events."""
    return Stretches(rows.owner, start, end, np.broadcast_to(reason, start.shape), _frames(rows))


def _all(*kinds: Stretches) -> Stretches:
    columns = ("owner", "start", "end", "reason", "frame")
    return Stretches(*(np.concatenate([getattr(kind, column) for kind in kinds]) for column in columns))


def _unanswered(evidence: Evidence, rounds: Rounds) -> Stretches:
    """From the first transmission on that nothing answered, up to the flow's end."""
    timers = evidence.of("timeout")
    backoff, left = timers.floats("segments"), timers.floats("left")
    closing = np.flatnonzero(np.append(timers.owner[1:] != timers.owner[:-1], True)[: len(timers)])
    owner = timers.owner[closing]
    acked = evidence.column("acked_bytes")[owner]
    kept = (backoff[closing] >= DOUBT) & (acked < left[closing]) & (acked < evidence.column("unique_bytes")[owner])
    closing, owner = closing[kept], owner[kept]
    opening = closing - backoff[closing].astype(np.int64)  # the series: back-offs 0, 1, ... of the same data
    whole = opening >= 0
    whole &= timers.owner[np.maximum(opening, 0)] == owner
    whole &= left[np.maximum(opening, 0)] == left[closing]
    closing, owner, opening = closing[whole], owner[whole], opening[whole]
    start = _time(timers)[opening] - _length(timers)[opening]
    other = rounds.flow_opposite[owner]
    spoke = np.zeros(len(owner), np.bool_)
    for n, position in enumerate(other.tolist()):
        if position >= 0 and rounds.flow_count[position]:
            last = rounds.flow_begin[position] + rounds.flow_count[position] - 1
            spoke[n] = rounds.start[last] > start[n]
    return Stretches(
        owner, start, rounds.flow_last[owner], np.full(len(owner), Reason.UNANSWERED), _frames(timers)[opening]
    ).where(~spoke)


def _other_end(evidence: Evidence, rounds: Rounds) -> Stretches:
    """The pauses of a flow up to when the other end's last data in them could have been answered."""
    # data that never passed here, of which the next round begins, may seem to have been sent before the pause
    whole = (1e9 * rounds.idle).astype(np.int64)
    hidden = whole > rounds.until - rounds.start
    paused = np.flatnonzero((rounds.idle_ns > 0) | hidden)
    owner = rounds.owner[paused]
    begin = np.where(hidden, rounds.end, rounds.until - rounds.idle_ns)[paused]
    end = np.where(hidden, rounds.end + whole, rounds.until)[paused]
    said = latest(rounds.flow_opposite[owner], end, rounds.owner, rounds.start)
    share, least = np.nan_to_num(evidence.column("vantage_fraction")), np.nan_to_num(rounds.flow_least_s)
    # its last data passed a round trip before all of it was acknowledged, if that was not with the next data, late
    ahead = (1e9 * least).astype(np.int64)[rounds.owner]
    all_acked = np.append(np.where(rounds.idle > 0, rounds.until - (1e9 * rounds.idle).astype(np.int64), 0), 0)[said]
    by_then = np.where(all_acked < end - HOST_NS, all_acked - np.append(ahead, 0)[said], 0)
    spoke = np.where(said >= 0, np.maximum(np.append(rounds.start, 0)[said], by_then), 0)
    heard = np.minimum(spoke + (1e9 * share * least).astype(np.int64)[owner], end)
    return Stretches(owner, begin, heard, np.full(len(owner), Reason.OTHER_END), np.full(len(owner), -1)).where(
        spoke > begin
    )


def _ack_lost(evidence: Evidence, rounds: Rounds) -> Stretches:
    """Pauses that a resend of acknowledged data ends."""
    spurious = evidence.of("spurious")
    unneeded = spurious.where((spurious.frame["reason"] == "unneeded").fill_null(False).to_numpy())
    found = []
    for n, (owner, time) in enumerate(zip(unneeded.owner.tolist(), _time(unneeded).tolist(), strict=True)):
        begin = int(rounds.flow_begin[owner])
        k = begin + int(np.searchsorted(rounds.start[begin : begin + int(rounds.flow_count[owner])], time))
        if begin < k < begin + int(rounds.flow_count[owner]) and rounds.start[k] == time and rounds.idle[k - 1] > 0:
            found.append((n, time - int(1e9 * rounds.idle[k - 1])))
    which = np.array([n for n, _ in found], np.int64)
    start = np.array([time for _, time in found], np.int64)
    return Stretches(
        unneeded.owner[which],
        start,
        _time(unneeded)[which],
        np.full(len(which), Reason.ACK_LOST),
        _frames(unneeded)[which],
    )


def _answers_to_marks(evidence: Evidence) -> Stretches:
    """The round trip after each reduction of the window for congestion marks."""
    responses, trip = evidence.mark_responses, evidence.column("rtt_mean_s")
    lasted = (1e9 * np.where(np.isfinite(trip), trip, 0.0)).astype(np.int64)[responses.owner]
    return _of(responses, _time(responses), _time(responses) + lasted, Reason.MARKED)


def _pause_inside(rounds: Rounds) -> Stretches:
    """What comes before the data of a round's only ACK, where no timer ran in all that time, and the pause of a flow's
    last round."""
    lone = rounds.overdue & (rounds.acks == 1) & np.isfinite(rounds.rtt)
    paused = (rounds.idle_before > 0) & (rounds.idle_before >= PAUSE * rounds.trip)
    which = np.flatnonzero(lone | paused)
    before = rounds.end - (1e9 * np.nan_to_num(rounds.rtt)).astype(np.int64)
    within = rounds.start + (1e9 * rounds.idle_before).astype(np.int64)
    return Stretches(
        rounds.owner[which],
        rounds.start[which],
        np.where(paused, within, before)[which],
        np.full(len(which), Reason.PAUSE),
        np.full(len(which), -1),
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
        """The events that began with a needless resend, and near which nothing was lost."""
        keys = zip(rows.owner.tolist(), _frames(rows).tolist(), strict=True)
        began = np.fromiter((frame >= 0 and (flow, frame) in self._resends for flow, frame in keys), np.bool_)
        return began & ~self.lost_near(rows, start, end)

    def lost_near(self, rows: Rows, start: Ints, end: Ints) -> Flags:
        """The events between whose start, a round trip and a half before, and end something was lost."""
        found = np.zeros(len(rows), np.bool_)
        for n, flow in enumerate(rows.owner.tolist()):
            lost = self._times[self._begins[flow] : self._ends[flow]]
            first = np.searchsorted(lost, start[n] - self._slack_ns[flow], "left")
            found[n] = np.searchsorted(lost, end[n], "right") > first
        return found


def queue_full(rounds: Rounds, owner: Ints, time: Ints) -> Flags:
    """Whether what these flows lost, and resent from these times on, was dropped by the queue that they had filled.

    It stood in the round under way or in the one before, in which the lost data were sent, and was as long as when
    losses found it longest, but for the flow's first: slow start fills a queue within a round trip. A queue that drops
    what finds no room makes all wait equally long then, whoever shares it; losses by chance find it at any length.
    Where the longest are no more than the others, all come by chance.
    """
    stood = np.zeros(len(owner), np.bool_)
    if not rounds.queued.any():
        return stood
    length = np.zeros(len(owner))
    for n, flow in enumerate(owner.tolist()):
        begin = int(rounds.flow_begin[flow])
        end = begin + int(rounds.flow_count[flow])
        k = begin + int(np.searchsorted(rounds.start[begin:end], time[n], "right")) - 1
        last = slice(max(k - 1, begin), max(k, begin) + 1)
        stood[n] = rounds.queued[last].any()
        length[n] = np.fmax.reduce(rounds.rtt[last]) - rounds.flow_least_s[flow]
    counted = stood & np.isfinite(length) & (owner == np.append(-1, owner[:-1])[: len(owner)])
    known = np.flatnonzero(counted)
    for own in np.split(known, np.flatnonzero(np.diff(owner[known])) + 1) if len(known) else ():
        longest = np.quantile(length[own], LONG)
        stood[own] = length[own] >= FULL * longest
        nearly, half = (int((length[own] >= share * longest).sum()) for share in (NEARLY, HALF))
        if len(own) >= TELLS and nearly < half - nearly:
            stood[own] = False
    return stood


def _time(rows: Rows) -> Ints:
    return np.asarray(rows.frame["time_ns"].to_numpy())


def _length(rows: Rows) -> Ints:
    return (1e9 * np.nan_to_num(rows.floats("value"))).astype(np.int64)


def _frames(rows: Rows) -> Ints:
    return np.asarray(rows.frame["frame"].cast(pl.Int64).fill_null(-1).to_numpy())
