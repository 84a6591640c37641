"""Where the time of a flow went: every instant of it is given to one cause.

**Time**: from a flow's first data segment to the ACK that covers its last one. A round lasts until the next starts.
All is *unknown* where one direction is missing, and where ACKs come before their data (`clocks`). The first of these
rules that holds gives the cause:

1. *receiver-stalled*: no window was advertised (RFC 9293, 3.8.6.1).
2. *timeout-limited*: the silence of a retransmission timer that expired, and what follows until the flight is half of
   what it was. Where the resend was needless and the flow has late segments, *reordering-limited*. `reactions` has this
   in detail, and what is *unknown* because nothing came back any more.
3. *loss-limited*: fast recovery from losses; *bottleneck-limited* if the flow itself had filled the queue, and
   it was full. A needless one is *reordering-limited*: only late segments, or copies, make duplicate ACKs without a
   loss.
4. *application-limited*: nothing was outstanding, and the round before such a pause, which left the window unfilled;
   and five rounds in a row and more, each sent after the other end's data, when all before was acknowledged.
5. *bottleneck-limited*: the rate was the path's, that is, within a tenth of the flow's highest sustained one, and most
   rounds at that rate had a round trip at least a quarter above the least: a queue grows while the rate does not. But
   not where the flight follows that round trip down as well as up, as a clock's does beside a queue of others. Or the
   same rate came again and again while the flight grew, or more was asked for in vain: the queue may be short. Or the
   flight grew by a quarter and the rate did not, before most losses: a share of the path that is not always the same.
6. *receiver-window-limited*: the advertised window had no room for another segment.
7. Below every limit the window is what the last reaction left of it: *loss-limited*, *timeout-limited*,
   *reordering-limited* or *bottleneck-limited* until a limit is reached again, or it is not the window that holds
   the flow: the flight is what it was before in fewer round trips than a window takes to grow so, or does not grow;
   the round begins by the sender's own clock; its segments are small, which a window that holds them fills; or the
   data keep to a straight line though the flight falls without a loss. Losses leave nothing to a flow that is as fast
   after them as before (`heed`): BBR, or one that something slower holds.
8. Before any reaction: *slow-start-limited* while the flight reaches new maxima, *send-buffer-limited* in a flight that
   does not grow for 30 rounds though the sender sends all of it in each when ACKs let it, *unknown* otherwise, and
   where half of the rounds and more, seen at the sender, begin without an ACK: by an application's clock, or a pacer's.
   And *unknown* where data came as fast as the path sends them, and nothing tells how long ACKs were under way.

**Departures**: T-RAT (Zhang et al. 2002) gives a limit to a whole flow and RCA (Siekkinen et al.) to its bulk periods;
here a round may be shared by two causes, with the window's part of it as long as the window was full.
**Validation**: tests/diagnosis/test_accounting.py; docs/diagnosis.md has the figures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from tcpfit.diagnosis.causes import CAUSE_OF, RULE_OF, Reason
from tcpfit.diagnosis.clocks import acks_ahead
from tcpfit.diagnosis.held_flight import FLAT_ROUNDS
from tcpfit.diagnosis.reactions import Stretches, apart, heed_of, reactions
from tcpfit.diagnosis.rounds import Flags, Rounds, rounds_of
from tcpfit.diagnosis.send_clock import FILLED
from tcpfit.parameters import so_far
from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.intervals import Floats, Ints, summed
from tcpfit.schema import I64, STR, U32, U64, Column, check_tables

SPANS = (
    Column("flow", U32, "", "number of the flow"),
    Column("start_ns", I64, "ns", "when the span begins"),
    Column("end_ns", I64, "ns", "when it ends; the next span begins there"),
    Column("cause", STR, "", "what held the flow in that time"),
    Column("rule", STR, "", "the rule of the accounting that says so"),
    Column("frame", U64, "", "frame of the event that the span rests on; null where it rests on rounds"),
    Column(
        "bytes", pl.Float64(), "bytes", "what the cumulative ACK advanced in it, a round's advance spread over its time"
    ),
    Column(
        "window_full", pl.Boolean(), "", "the advertised window had no room for another segment, whatever the cause"
    ),
    Column("waited", pl.Boolean(), "", "the retransmission timer ran: nothing was sent, whatever the window"),
)

WAITS = (Reason.TIMER, Reason.NEEDLESS_TIMER, Reason.NEEDLESS_TIMER_LATE, Reason.ACK_LOST)
"""Reasons of stretches in which the timer ran."""

UNEXPLAINED = (Reason.GROWING, Reason.OWN_CLOCK, Reason.NO_LIMIT, Reason.PERHAPS_FULL)
"""Reasons that a window full before and after takes the place of."""

AFTERMATH = {
    CAUSE_OF[after]: after
    for after in (Reason.AFTER_LOSS, Reason.AFTER_TIMEOUT, Reason.AFTER_REORDERING, Reason.AFTER_QUEUE_LOSS)
}
"""What the rounds after a reaction are held by, by the reaction's cause."""

RESTORED: dict[int, int] = {Reason.AFTER_TIMEOUT: Reason.AFTER_LOSS, Reason.AFTER_REORDERING: -1}
"""What is left of a reaction when the flight is back to what it left, or took."""

BACK = 0.9
"""Of the flight before a reaction: one that is back so far."""

AT_ONCE = 3
"""Round trips, of a small flight fewer: a window takes half as many as it has segments to grow back (RFC 5681), or two
seconds and more (RFC 9438: the cube root of 0.3 W / 0.4)."""

CUBIC_NS = 1_000_000_000
"""Time within which no cubic window grows back, but from one round trip to the next."""

GROWTH = 1.2
"""A flight so much larger than the last one still grows."""


def account(flows: pl.DataFrame, events: pl.DataFrame, rounds: pl.DataFrame) -> pl.DataFrame:
    """The spans of every flow, columns as in `SPANS`, in order of flow and time, without gaps or overlaps.

    Raises InvalidParameter for a table that is none of `tcpfit.schema`.
    """
    check_tables(flows=flows, events=events, rounds=rounds)
    return account_of(Evidence(flows, events, rounds))


def account_of(evidence: Evidence) -> pl.DataFrame:
    """The same of an evidence."""
    course = rounds_of(evidence)
    lasted = np.maximum(course.flow_last - course.flow_first, 0)
    ahead = acks_ahead(evidence)
    shown = (course.flow_count > 0) & evidence.two_way & ~ahead & (lasted > 0)
    axis = _Axis(course.flow_first, np.where(shown, lasted, 0))
    painted = _painted(evidence, course, axis, shown)
    blind = np.flatnonzero(~shown & (lasted > 0))
    acked = np.nan_to_num(evidence.column("acked_bytes"))
    reason = np.concatenate((painted.reason, np.where(ahead[blind], Reason.AHEAD, Reason.ONE_WAY)))
    frame = np.concatenate((painted.frame, np.full(len(blind), -1)))
    owner = np.concatenate((painted.owner, blind))
    spans = pl.DataFrame(
        {
            "flow": evidence.flow[owner],
            "start_ns": np.concatenate((painted.start, course.flow_first[blind])),
            "end_ns": np.concatenate((painted.end, course.flow_last[blind])),
            "cause": _words(CAUSE_OF, reason),
            "rule": _words(RULE_OF, reason),
            "frame": pl.Series(frame).replace(-1, None),
            "bytes": np.concatenate((painted.bytes, acked[blind])),
            "window_full": np.concatenate((painted.full, np.zeros(len(blind), np.bool_))),
            "waited": np.isin(reason, WAITS),
        },
        schema_overrides={column.name: column.dtype for column in SPANS},
    )
    return spans.sort("flow", "start_ns") if len(blind) else spans


def _words(of: np.ndarray, reason: Ints) -> pl.Series:
    return pl.Series(of.tolist(), dtype=pl.String).gather(reason)


class _Axis:
    """The times of all flows one after the other on one axis, so that all are cut and ordered at once."""

    def __init__(self, first: Ints, length: Ints) -> None:
        self._first, self._last = first, first + length
        self._offset: Ints = np.cumsum(length) - length
        self.length = int(length.sum())

    def place(self, time: Ints, owner: Ints) -> Ints:
        """Where a time of a flow lies; times outside of the flow at its nearer end."""
        within: Ints = np.clip(time, self._first[owner], self._last[owner]) - self._first[owner] + self._offset[owner]
        return within

    def time(self, place: Ints, owner: Ints) -> Ints:
        """The time of a place."""
        time: Ints = place - self._offset[owner] + self._first[owner]
        return time


@dataclass(frozen=True)
class _Painted:
    """Spans with times in ns; arrays with a value a span."""

    owner: Ints
    start: Ints
    end: Ints
    reason: Ints
    frame: Ints
    bytes: Floats
    full: Flags


def _painted(evidence: Evidence, course: Rounds, axis: _Axis, shown: Flags) -> _Painted:
    """The rounds' pieces with what events explain painted over them."""
    found = reactions(evidence)
    covers = Stretches(
        found.owner, axis.place(found.start, found.owner), axis.place(found.end, found.owner), found.reason, found.frame
    )
    covers = apart(covers.where(shown[found.owner] & (covers.end > covers.start)))
    round_, start, reason, full = _pieces(
        course, axis, shown, _held_by(course, axis, covers, heed_of(evidence).heedless)
    )
    edges = np.unique(np.concatenate((start, covers.start, covers.end)))
    edges = edges[edges < axis.length]
    if not len(edges):
        none = np.zeros(0, np.int64)
        return _Painted(none, none, none, none, none, np.zeros(0), np.zeros(0, np.bool_))
    piece = np.searchsorted(start, edges, "right") - 1
    round_, reason, full = round_[piece], reason[piece], full[piece]
    owner = course.owner[round_]
    end = np.append(edges[1:], axis.length)
    frame = np.full(len(edges), -1)
    if len(covers):
        cover = np.maximum(np.searchsorted(covers.start, edges, "right") - 1, 0)
        under = (covers.start[cover] <= edges) & (edges < covers.end[cover])
        reason = np.where(under, covers.reason[cover], reason)
        frame = np.where(under, covers.frame[cover], frame)
    # what was acknowledged between two rounds goes to all of them
    by_rounds = summed(course.acked, course.owner, len(shown))
    acked = evidence.column("acked_bytes")
    scale = np.where(by_rounds > 0, np.where(np.isfinite(acked), acked, by_rounds) / np.maximum(by_rounds, 1.0), 1.0)
    density = scale[course.owner] * course.acked / np.maximum(course.until - course.start, 1)
    return _joined(axis, owner, edges, end, reason, frame, density[round_] * (end - edges), full)


def _joined(
    axis: _Axis, owner: Ints, start: Ints, end: Ints, reason: Ints, frame: Ints, moved: Floats, full: Flags
) -> _Painted:
    """Neighbours of one flow, reason and frame as one span."""
    new = np.ones(len(start), np.bool_)
    same = (owner[1:] == owner[:-1]) & (reason[1:] == reason[:-1])
    new[1:] = ~(same & (frame[1:] == frame[:-1]) & (full[1:] == full[:-1]))
    opening = np.flatnonzero(new)
    closing = np.append(opening[1:], len(start)) - 1
    owner = owner[opening]
    return _Painted(
        owner,
        axis.time(start[opening], owner),
        axis.time(end[closing], owner),
        reason[opening],
        frame[opening],
        summed(moved, np.cumsum(new) - 1, len(opening)),
        full[opening],
    )


def _held_by(course: Rounds, axis: _Axis, covers: Stretches, heedless: Flags) -> Ints:
    """The reason of every round by rules 4 to 8, without its pauses and the time of a full window."""
    lasted = course.until - course.start
    full_share = course.full_ns / np.maximum(lasted, 1)
    flight = np.nan_to_num(course.flight)
    in_line = course.in_line
    before = so_far.before(course.owner, flight)
    top = so_far.highest(course.owner, before)
    # in a recovery, and in the round after it, what ACKs cover says nothing of what was sent
    short = (course.acked < 0.5 * course.smss * course.sent) & course.calm | course.runs_out
    # who has more to send than the window lets go fills the segments
    unfilled = short & (course.flow_full_size < FILLED)[course.owner]
    growing = (flight > top) | (flight >= GROWTH * before)
    growing |= course.flow_count[course.owner] - course.position <= 1
    growing &= ~(heedless[course.owner] & course.lost_before) & ~in_line
    after = _aftermath(covers, heedless)
    memory = _memories(course, axis, covers, after.tolist(), (full_share >= 0.5) & course.open & (course.resent == 0))
    remembered = memory >= 0
    waiting = np.isin(axis.place(course.until, course.owner), covers.end[covers.reason == Reason.ACK_LOST])
    held = np.asarray(
        np.select(
            [
                course.queued,
                course.overdue,
                course.after_timeout & remembered,
                course.after_timeout,
                course.turns & (full_share < 0.5) & ~waiting,
                course.small_waits & (full_share < 0.5) & ~waiting,
                course.pauses & (full_share < 0.5) & ~waiting,
                remembered & ~course.flat & ~course.unprompted & ~unfilled & ~in_line,
                course.flat,
                short & (flight <= top),
                (course.flow_count[course.owner] == 1) & (course.resent == 0),
                course.estimated,
                growing & ~course.own_clock,
                course.own_clock,
            ],
            [
                Reason.PATH_FULL,
                Reason.NO_TIMER,
                memory,
                Reason.SLOW_START_AFTER_TIMEOUT,
                Reason.TURN,
                Reason.SMALL_WAITS,
                Reason.BEFORE_PAUSE,
                memory,
                Reason.FLAT,
                Reason.SHORT,
                Reason.ONE_FLIGHT,
                Reason.PERHAPS_FULL,
                Reason.GROWING,
                Reason.OWN_CLOCK,
            ],
            Reason.NO_LIMIT,
        )
    )
    reacted = _reacted(course, covers.where(after >= 0), axis)
    return np.where(course.window_used & np.isin(held, UNEXPLAINED) & ~reacted, Reason.WINDOW_USED, held)


def _reacted(course: Rounds, reacted: Stretches, axis: _Axis) -> Flags:
    """Rounds by whose end the flow had reacted to a loss or to what it took for one: the window it kept is its own."""
    first = np.full(len(course.flow_count), axis.length)
    np.minimum.at(first, reacted.owner, reacted.start)
    return axis.place(course.until, course.owner) > first[course.owner]


def _memories(course: Rounds, axis: _Axis, covers: Stretches, after: list[int], full: Flags) -> Ints:
    """The reason that the last reaction leaves to every round, -1 where there was none or a limit was reached since."""
    memory = np.full(len(course), -1)
    reacted = np.zeros(len(course.flow_count), np.bool_)
    reacted[covers.owner] = True
    reacted[course.owner[course.queued]] = True
    until = axis.place(course.until, course.owner)
    calm = course.open & (course.resent == 0)
    flight = np.nan_to_num(course.flight)
    needless = (covers.reason == Reason.NEEDLESS_TIMER).tolist()
    begins = covers.start.tolist()
    for flow in np.flatnonzero(reacted & (course.flow_count > 0)).tolist():
        rows = slice(course.flow_begin[flow], course.flow_begin[flow] + course.flow_count[flow])
        next_, stop = np.searchsorted(covers.owner, (flow, flow + 1)).tolist()
        left, in_vain = -1, False
        restored = np.inf  # flight at which the window is back to what the reaction left of it, or took from it
        last = calm_flight = 0.0
        level, usual = np.inf, np.inf  # flight that does not grow, and that before the reaction
        trips, since = AT_ONCE + 1, 0  # calm rounds after a reaction, and when the first of them ended
        flat, least, most = 0, 0.0, 0.0  # calm rounds of a flight within a segment
        of_flow = []
        for ends, is_calm, is_full, queued, now in zip(
            *(column[rows].tolist() for column in (until, calm, full, course.queued, flight)), strict=True
        ):
            disturbed = False
            while next_ < stop and begins[next_] < ends:
                if after[next_] >= 0:
                    again = left == after[next_] == Reason.AFTER_REORDERING
                    left, in_vain, disturbed = after[next_], needless[next_], True
                    before = max(last, now, restored if again else 0.0)  # a second one does not lower the aim
                    restored = before / 2 if left == Reason.AFTER_TIMEOUT else before
                    # what a reaction took does not become usual while it is watched
                    usual = level if trips > AT_ONCE else max(usual, level)
                    trips = 0
                next_ += 1
            # what a recovery fills up again is acknowledged at once, which looks as fast as the path
            if queued and (is_calm or left != Reason.AFTER_LOSS):
                left = Reason.PATH_FILLED
            of_flow.append(left)
            last = now
            if not is_calm or disturbed:
                continue
            if is_full and not queued:
                left = -1
            trips, since = trips + 1, since if trips else ends
            at_once = trips <= min(AT_ONCE, usual / 4) and ends - since < CUBIC_NS
            if now >= BACK * usual and (trips == 1 or at_once):
                left = -1
            least, most = min(least, now), max(most, now)
            flat, least, most = (flat + 1, least, most) if most - least <= 1 else (1, now, now)
            if flat >= max(FLAT_ROUNDS, now / 2):
                left = -1
            level, calm_flight = now if now < GROWTH * calm_flight else np.inf, now
            # of a timer that ran out for nothing no loss is left
            if left >= 0 and now >= restored and not in_vain:
                left = RESTORED.get(left, left)
        memory[rows] = of_flow
    return memory


def _aftermath(covers: Stretches, heedless: Flags) -> Ints:
    """What each reaction leaves to the rounds after it, -1 for what is none, and for losses of a flow that is as fast
    after them."""
    after: Ints = np.array([AFTERMATH.get(cause, -1) for cause in CAUSE_OF[covers.reason]], np.int64)
    after[covers.reason == Reason.MARKED] = Reason.AFTER_MARKS
    after[heedless[covers.owner] & (after == Reason.AFTER_LOSS)] = -1
    return after


def _pieces(course: Rounds, axis: _Axis, shown: Flags, held_by: Ints) -> tuple[Ints, Ints, Ints, Flags]:
    """The rounds in pieces, in order of time on the axis: round, start, reason, whether the window was full.

    A round is under its reason, then with the window full, then idle. Only how long the window was full is known, not
    when; it is put last. Full and idle at once is a window below a segment: the receiver's.
    """
    idle_ns, full_ns = course.idle_ns, course.full_ns
    closed = full_ns > idle_ns  # the pause, too, has no room
    busy_end = course.until - idle_ns
    room_end = np.minimum(np.maximum(np.where(closed, course.until, busy_end) - full_ns, course.start), busy_end)
    full_end = np.where(closed, course.until, busy_end)
    window = np.where(course.queued, held_by, Reason.WINDOW_FULL)
    every = np.arange(len(course))
    number = np.concatenate((every, every, every))
    start = axis.place(np.concatenate((course.start, room_end, full_end)), course.owner[number])
    end = axis.place(np.concatenate((room_end, full_end, course.until)), course.owner[number])
    reason = np.concatenate((held_by, window, np.full(len(course), Reason.PAUSE)))
    full = np.zeros(len(number), np.bool_)
    full[len(course) : 2 * len(course)] = True
    kept = np.flatnonzero((end > start) & shown[course.owner[number]])
    kept = kept[np.argsort(start[kept], kind="stable")]
    return number[kept], start[kept], reason[kept], full[kept]
