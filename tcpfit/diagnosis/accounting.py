"""Where the time of a flow went: every instant of it is given to one cause.

**Time**: from a flow's first data segment to the ACK that covers its last one. A round lasts until the next starts.
The first of these rules that holds gives the cause:

1. *receiver-stalled*: no window was advertised (RFC 9293, 3.8.6.1).
2. *timeout-limited*: the silence of a retransmission timer that expired, and what follows until the flight is half of
   what it was. Where the resend was needless and the flow has late segments, *reordering-limited*.
3. *loss-limited*: fast recovery from losses; *bottleneck-limited* if the flow itself had filled the queue. A needless
   one is *reordering-limited*: only late segments, or copies, make duplicate ACKs without a loss.
4. *application-limited*: nothing was outstanding, and the round before such a pause, which left the window unfilled.
5. *bottleneck-limited*: the rate was the path's, that is, within a tenth of the flow's highest sustained one, and most
   rounds at that rate had a round trip at least a quarter above the least: a queue grows while the rate does not.
6. *receiver-window-limited*: the advertised window had no room for another segment.
7. Below every limit the window is what the last reaction left of it: *loss-limited*, *timeout-limited*,
   *reordering-limited* or *bottleneck-limited* until a limit is reached again.
8. Before any reaction: *slow-start-limited* while the flight reaches new maxima, *send-buffer-limited* in a flight that
   does not grow for 30 rounds, *unknown* otherwise.

**Departures**: T-RAT (Zhang et al. 2002) gives a limit to a whole flow and RCA (Siekkinen et al.) to its bulk periods;
here a round may be shared by two causes, with the window's part of it as long as the window was full.
**Validation**: tests/diagnosis/test_accounting.py; docs/diagnosis.md has the figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcpfit.parameters.intervals import Floats, Ints
from tcpfit.schema import I64, STR, U32, U64, Column

APPLICATION = "application-limited"
WINDOW = "receiver-window-limited"
STALLED = "receiver-stalled"
SEND_BUFFER = "send-buffer-limited"
LOSS = "loss-limited"
TIMEOUT = "timeout-limited"
REORDERING = "reordering-limited"
BOTTLENECK = "bottleneck-limited"
SLOW_START = "slow-start-limited"
UNKNOWN = "unknown"

CAUSES = (
    APPLICATION,
    WINDOW,
    STALLED,
    SEND_BUFFER,
    LOSS,
    TIMEOUT,
    REORDERING,
    BOTTLENECK,
    SLOW_START,
    UNKNOWN,
)

IDLE = "nothing was outstanding"

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

QUEUE = 0.25
"""A queue stands where the round trip is so much above the least, relative to it."""

SUSTAINED = 0.9
"""Of the highest sustained rate: a round that reaches it was served at the path's rate."""

ENOUGH_ACKED = 4.0
"""Segments acknowledged in a round from which its rate means something."""

PLATEAU = 5
"""Rounds at the highest rate from which it is taken to be the path's."""

MOST = 0.5
"""Of the rounds at the highest rate: a queue stands in so many, or it is not the queue that bounds the rate."""

FLAT_ROUNDS = 30
"""Rounds without growth that show a send buffer (T-RAT: 30 flights)."""

PAUSE = 0.1
"""Of a round trip: a longer time with nothing outstanding is no delay of the host's, where it comes again and again."""

OFTEN = 1 / 3
"""Of the rounds: pauses after so many are the application's; rarer ones only if they last a round trip (T-RAT)."""

TIMERS = 8.0
"""Retransmission timers: data outstanding for so long without one that expired was not outstanding."""

WHOLE = 0.95
"""Of a round: a window that was full for longer was full for all of it, but for the host's own delays."""

ONE_DELAYED_ACK = 0.05
"""Seconds that a delayed ACK adds to one sample of a round (Linux: 40 ms)."""

MANY_SENT = 16.0
"""Segments of a round in which one delayed ACK does not matter."""


@dataclass(frozen=True)
class Path:
    """What of a flow's rounds shows of the path; arrays with a value a round."""

    rate: Floats
    queued: NDArray[np.bool_]
    capacity: float


def account(flows: pl.DataFrame, events: pl.DataFrame, rounds: pl.DataFrame) -> pl.DataFrame:
    """The spans of every flow, columns as in `SPANS`, in order of flow and time, without gaps or overlaps."""
    event_rows = Slices(events.sort("flow", "time_ns", maintain_order=True), EVENT_COLUMNS)
    round_rows = Slices(rounds.sort("flow", "round"), ROUND_COLUMNS)
    rows = [
        span
        for row in flows.sort("flow").to_dicts()
        for span in Flow(row, event_rows.of(row["flow"]), round_rows.of(row["flow"])).spans()
    ]
    return pl.DataFrame(rows, schema={c.name: c.dtype for c in SPANS}, orient="row")


EVENT_COLUMNS = ("time_ns", "kind", "value", "frame")

ROUND_COLUMNS = (
    "start_ns",
    "end_ns",
    "flight",
    "rtt_s",
    "idle_s",
    "window_full_s",
    "acked_bytes",
    "acks",
    "sent_segments",
    "lost_segments",
    "resent_segments",
    "phase",
)

Columns = dict[str, np.ndarray]


class Slices:
    """Columns of a table that is sorted by flow, as arrays: integers as they are, floats with NaN, names as strings."""

    def __init__(self, table: pl.DataFrame, columns: tuple[str, ...]) -> None:
        self._flow = table["flow"].to_numpy()
        self._columns = {name: _array(table[name]) for name in columns}

    def of(self, flow: int) -> Columns:
        """The rows of a flow."""
        first, last = np.searchsorted(self._flow, (flow, flow + 1))
        return {name: column[first:last] for name, column in self._columns.items()}


def _array(column: pl.Series) -> np.ndarray:
    if column.name == "frame":
        return column.cast(pl.Int64).fill_null(-1).to_numpy()
    if column.name.endswith("_ns"):
        return column.to_numpy()
    if column.dtype == pl.Boolean:
        return column.to_numpy()
    if column.dtype in (pl.Enum, pl.Categorical, pl.String):
        return np.array(column.cast(pl.String).to_list(), dtype=object)
    return column.cast(pl.Float64).fill_null(np.nan).to_numpy()


Span = tuple[int, int, int, str, str, int | None, float, bool, bool]


@dataclass(frozen=True)
class Cover:
    """A stretch of time that an event explains by itself."""

    start_ns: int
    end_ns: int
    cause: str
    rule: str
    frame: int | None
    waited: bool = False


class Flow:
    """One flow's rows, and the spans made of them."""

    def __init__(self, row: dict[str, object], events: Columns, rounds: Columns) -> None:
        self._row = row
        self._events = events
        self.number = _int(row["flow"])
        self.first_ns, self.last_ns = _int(row["first_ns"]), _int(row["last_ns"])
        # the first round begins the flow's time, whatever the capture missed; none begins before the one before it
        self._start: Ints = np.maximum.accumulate(np.append(self.first_ns, rounds["start_ns"][1:]))
        self._n = len(rounds["start_ns"])
        self._start = self._start[: self._n]
        if self._n and rounds["idle_s"][-1] > 0:  # all was acknowledged: closing the connection is none of its time
            self.last_ns = min(self.last_ns, max(int(rounds["end_ns"][-1]), int(self._start[-1]) + 1))
        self._until: Ints = np.append(self._start[1:], self.last_ns) if self._n else self._start
        self._flight = rounds["flight"]
        self._rtt = rounds["rtt_s"]
        self._idle = np.nan_to_num(rounds["idle_s"])
        self._idle[-1:] = 0.0
        self._full = np.nan_to_num(rounds["window_full_s"])
        self._full[-1:] = 0.0  # nothing was left to send
        self._acked = rounds["acked_bytes"]
        self._acks = rounds["acks"]
        self._sent = rounds["sent_segments"]
        self._lost = rounds["lost_segments"]
        self._resent = rounds["resent_segments"]
        self._phase = rounds["phase"]
        self.least_s = _float(row["rtt_min_s"])
        self.smss = max(_float(row["smss_bytes"], 1.0), 1.0)

    def spans(self) -> Iterator[Span]:
        """Spans in order of time."""
        if self.last_ns <= self.first_ns:
            return
        if not self._n or self._row["flight_max"] is None:
            why = "one direction is missing: no flight, no round trip"
            yield (
                self.number,
                self.first_ns,
                self.last_ns,
                UNKNOWN,
                why,
                None,
                _float(self._row["acked_bytes"], 0.0),
                False,
                False,
            )
            return
        yield from self._join(self._painted())

    def _join(self, pieces: Iterator[Span]) -> Iterator[Span]:
        """Neighbours of one cause, rule and frame as one span."""
        last: Span | None = None
        for piece in pieces:
            if last is not None and last[3:6] == piece[3:6] and last[7:] == piece[7:]:
                last = (*last[:2], piece[2], *last[3:6], last[6] + piece[6], *piece[7:])
                continue
            if last is not None:
                yield last
            last = piece
        if last is not None:
            yield last

    def _painted(self) -> Iterator[Span]:
        """The rounds' pieces with what events explain painted over them."""
        path = self.path()
        covers = self._covers(path)
        causes = self._rounds(path, covers)
        # what was acknowledged between two rounds goes to all of them
        acked = float(self._acked.sum())
        scale = _float(self._row["acked_bytes"], acked) / acked if acked > 0 else 1.0
        at = 0
        for k in range(self._n):
            lasted = max(int(self._until[k] - self._start[k]), 1)
            density = scale * self._acked[k] / lasted
            for start, end, cause, rule, full in causes[k]:
                clock = max(start, self.first_ns)
                end = min(end, self.last_ns)
                while clock < end:
                    while at < len(covers) and covers[at].end_ns <= clock:
                        at += 1
                    if at < len(covers) and covers[at].start_ns <= clock:
                        cover = covers[at]
                        stop = min(end, cover.end_ns)
                        yield (
                            self.number,
                            clock,
                            stop,
                            cover.cause,
                            cover.rule,
                            cover.frame,
                            density * (stop - clock),
                            full,
                            cover.waited,
                        )
                    else:
                        stop = min(end, covers[at].start_ns) if at < len(covers) else end
                        yield (self.number, clock, stop, cause, rule, None, density * (stop - clock), full, False)
                    clock = stop

    def path(self) -> Path:
        """The rates of the rounds, and those in which the flow was served at the path's rate, a queue standing."""
        active = np.maximum((self._until - self._start) / 1e9 - self._idle, 1e-9)
        rate = 8 * self._acked / active
        told = self._acked >= ENOUGH_ACKED * self.smss
        with np.errstate(invalid="ignore"):
            excess = self._rtt - self.least_s
            inflated = (excess >= QUEUE * self.least_s) & (self._acks >= ENOUGH_ACKED)
            inflated &= (excess * self._acks > ONE_DELAYED_ACK) | (self._sent >= MANY_SENT)
        none = np.zeros(self._n, np.bool_)
        if not told.any() or not np.isfinite(self.least_s):
            return Path(rate, none, np.nan)
        # a round whose ACKs come in a burst has too high a rate: the highest that some rounds sustain
        highest = np.sort(rate[told])
        capacity = float(highest[-min(max(PLATEAU, len(highest) // 20), len(highest))])
        fast = told & (rate >= SUSTAINED * capacity)
        if fast.sum() < PLATEAU or (fast & inflated).sum() < MOST * fast.sum():
            return Path(rate, none, np.nan)
        return Path(rate, fast, capacity)

    def _covers(self, path: Path) -> list[Cover]:
        """Stretches that events explain, without overlaps: the earlier kinds of the list win."""
        events = self._events
        kind, time, value, frame = events["kind"], events["time_ns"], events["value"], events["frame"]
        frames: list[int | None] = [n if n >= 0 else None for n in frame.tolist()]
        losses: Ints = np.sort(time[kind == "loss"])
        needless = {frames[i] for i in np.flatnonzero(kind == "spurious")} - {None}
        late = bool(np.isin(kind, ("reordering", "reorder_event")).any())
        slack = int(1.5e9 * (_float(self._row["rtt_mean_s"], 0.0)))

        def spurious(i: int, start_ns: int, end_ns: int) -> bool:
            lost = np.searchsorted(losses, end_ns, "right") - np.searchsorted(losses, start_ns - slack, "left")
            return frames[i] in needless and lost == 0

        ends: list[int] = (time + (1e9 * np.nan_to_num(value)).astype(np.int64)).tolist()
        starts: list[int] = time.tolist()
        of_kind: dict[str, list[int]] = {
            k: np.flatnonzero(kind == k).tolist() for k in ("zero_window", "timeout", "recovery")
        }
        late |= any(spurious(i, starts[i], ends[i]) for i in of_kind["recovery"])
        found = [
            Cover(starts[i], ends[i], STALLED, "no window was advertised", frames[i]) for i in of_kind["zero_window"]
        ]
        for i in of_kind["timeout"]:
            began, cause, rule = 2 * starts[i] - ends[i], TIMEOUT, "the retransmission timer ran"
            if spurious(i, began, starts[i]):
                cause, rule = (
                    REORDERING if late else TIMEOUT,
                    "the retransmission timer ran out though nothing was lost",
                )
            found.append(Cover(began, starts[i], cause, rule, frames[i], waited=True))
        for i in of_kind["recovery"]:
            cause, rule = LOSS, "fast recovery"
            if spurious(i, starts[i], ends[i]):
                cause, rule = REORDERING, "fast recovery though nothing was lost"
            elif self._queued_at(path, starts[i]):
                cause, rule = BOTTLENECK, "fast recovery from losses of a queue that the flow had filled"
            found.append(Cover(starts[i], ends[i], cause, rule, frames[i]))
        return _apart(found)

    def _queued_at(self, path: Path, time_ns: int) -> bool:
        """The queue stood in the round under way, or in the one before, in which the lost data were sent."""
        k = int(np.searchsorted(self._start, time_ns, "right")) - 1
        return bool(path.queued[max(k - 1, 0) : max(k, 0) + 1].any())

    def _rounds(self, path: Path, covers: list[Cover]) -> list[list[tuple[int, int, str, str, bool]]]:
        """Every round's pieces (start, end, cause, rule, window full) by rules 4 to 8."""
        short = self._acked < 0.5 * self.smss * self._sent
        rtt = np.where(np.isfinite(self._rtt), self._rtt, _float(self._row["rtt_mean_s"], 1.0))
        rto = max(_float(self._row["rto_s"], np.inf), 1.0)
        flat, pauses = self._flat(), self._pauses(rtt)
        reacted = 0
        memory: tuple[str, str] | None = None
        restored = np.inf  # flight at which the window is back to what the reaction left of it, or took from it
        last_flight, top = 0.0, 0.0
        pieces = []
        for k in range(self._n):
            start, until = int(self._start[k]), int(self._until[k])
            disturbed = False
            while reacted < len(covers) and covers[reacted].start_ns < until:
                cover = covers[reacted]
                if cover.cause != STALLED:
                    memory = (cover.cause, "the window had not yet grown to a limit again")
                    before = float(np.nan_to_num(self._flight[max(k - 1, 0) : k + 1]).max())
                    restored = before / 2 if cover.cause == TIMEOUT else before
                    disturbed = True
                reacted += 1
            idle_ns = min(int(1e9 * self._idle[k]), until - start)
            full_ns = min(int(1e9 * self._full[k]), until - start)
            if idle_ns < PAUSE * 1e9 * rtt[k]:
                idle_ns = 0
            if full_ns > WHOLE * (until - start):
                full_ns = until - start
            busy_end = until - idle_ns
            full_share = full_ns / max(until - start, 1)
            flight = float(np.nan_to_num(self._flight[k]))
            if path.queued[k]:
                cause, rule = BOTTLENECK, "a queue stood, and the rate was the path's"
                memory = (BOTTLENECK, "the flow had filled the path's queue")
            elif busy_end - start > TIMERS * 1e9 * rto > full_ns:
                cause, rule = (
                    UNKNOWN,
                    "data was outstanding for longer than a timer allows: the capture misses something",
                )
            elif self._phase[k] == "loss":
                cause, rule = memory or (TIMEOUT, "slow start after a timeout")
            elif pauses[k] and full_share < 0.5:
                cause, rule = APPLICATION, "all that the application had written was sent, and a pause followed"
            elif memory is not None and not flat[k]:
                cause, rule = memory
            elif flat[k]:
                cause, rule = SEND_BUFFER, "the flight does not grow, though the window has room"
            elif short[k] and flight <= top:
                cause, rule = APPLICATION, "short segments, though the window has room"
            elif flight > top or flight >= 1.2 * last_flight or self._n - k <= 1:
                cause, rule = SLOW_START, "the window was still growing"
            else:
                cause, rule = UNKNOWN, "no limit shows"
            calm = not disturbed and self._phase[k] == "open" and self._resent[k] == 0
            if calm and full_share >= 0.5 and not path.queued[k]:
                memory = None
            if calm and memory and flight >= restored:
                memory = {TIMEOUT: (LOSS, memory[1]), REORDERING: None}.get(memory[0], memory)
            last_flight, top = flight, max(top, flight)
            pieces.append(self._split(start, until, busy_end, full_ns, cause, rule, bool(path.queued[k])))
        return pieces

    def _split(
        self, start: int, until: int, busy_end: int, full_ns: int, cause: str, rule: str, queued: bool
    ) -> list[tuple[int, int, str, str, bool]]:
        """A round in pieces: under its cause, then with the window full, then idle.

        Only how long the window was full is known, not when; it is put last. Full and idle at once is a window below a
        segment: the receiver's.
        """
        out = []
        full_from = max(until - full_ns, start) if full_ns > until - busy_end else max(busy_end - full_ns, start)
        room_end = min(full_from, busy_end)
        if room_end > start:
            out.append((start, room_end, cause, rule, False))
        window = (cause, rule) if queued else (WINDOW, "the advertised window was full")
        if full_ns > until - busy_end:  # the pause, too, has no room
            out.append((room_end, until, *window, True))
            return out
        if busy_end > room_end:
            out.append((room_end, busy_end, *window, True))
        if until > busy_end:
            out.append((busy_end, until, APPLICATION, IDLE, False))
        return out

    def _pauses(self, rtt: Floats) -> NDArray[np.bool_]:
        """Rounds that a pause of the application follows."""
        paused: NDArray[np.bool_] = self._idle > PAUSE * rtt
        rare: NDArray[np.bool_] = self._idle > rtt
        return paused if paused.mean() >= OFTEN else rare

    def _flat(self) -> NDArray[np.bool_]:
        """Rounds of a flight that does not grow, without a loss: runs of 30 and more within a segment of each other; or
        those at the largest flight, if they are 30 and a third of all, since a free window does not stay there."""
        with np.errstate(invalid="ignore"):
            quiet = (self._lost == 0) & (self._resent == 0) & (self._flight > 2) & (self._full == 0)
            quiet &= self._acked > 0.8 * self.smss * self._sent
        flat = np.zeros(self._n, np.bool_)
        first = 0
        low = high = 0.0
        for k in range(self._n + 1):
            flight = float(self._flight[k]) if k < self._n and quiet[k] else np.nan
            if k > first and max(high, flight) - min(low, flight) <= 1 and np.isfinite(flight):
                low, high = min(low, flight), max(high, flight)
                continue
            if k - first >= FLAT_ROUNDS:
                flat[first:k] = True
            first = k
            low = high = flight
        at_top = quiet & (self._flight >= self._flight[quiet].max(initial=0.0) - 1)
        if at_top.sum() >= max(FLAT_ROUNDS, OFTEN * self._n):
            flat |= at_top
        held: NDArray[np.bool_] = flat & quiet
        return held


def _apart(covers: list[Cover]) -> list[Cover]:
    """Covers in order of time without overlaps; where two claim an instant, the earlier in the list has it."""
    if not covers:
        return []
    edges = sorted({c.start_ns for c in covers} | {c.end_ns for c in covers})
    position = {edge: n for n, edge in enumerate(edges)}
    owner = np.full(len(edges), -1)
    for n in range(len(covers) - 1, -1, -1):
        owner[position[covers[n].start_ns] : position[covers[n].end_ns]] = n
    out: list[Cover] = []
    for n, (start, end) in enumerate(zip(edges, edges[1:], strict=False)):
        if owner[n] < 0:
            continue
        whole = covers[owner[n]]
        out.append(Cover(start, end, whole.cause, whole.rule, whole.frame, whole.waited))
    return out


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value


def _float(value: object, otherwise: float = np.nan) -> float:
    return float(value) if isinstance(value, (int, float)) else otherwise
