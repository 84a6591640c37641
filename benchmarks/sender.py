"""TCP senders round by round, thousands at once, as the tables of `tcpfit.schema`.

In every round trip a sender sends its window. A *loss event* begins at a segment with probability p; the segments of
the window from there on belong to it, some in the same round, the others in the next. How many of them are lost says
the loss process, how they are repaired the style of recovery. What is not modelled: the timing within a round, limited
transmit, needless resends (Tahoe, go-back-N after a timeout), the receiver's delayed ACKs other than by `b`.

**Losses** (`Path.losses`): `window`, each other segment of the event with probability q (Parvez et al., section II;
q = p is independent loss); `burst`, m in a row; `round`, all that follow in the round, and in the next from the first
one lost on (Padhye et al. 1998, section II-A); `periodic`, one loss every 1/p segments.

**Recovery** (`Sender.recovery`): all need three duplicate ACKs, that is W - losses >= 3, else the timer expires.
- `none`: the window halves, and that is all (Padhye et al. 1998); with `instant` without even the round in which the
  duplicate ACKs come, as fluid models have it (Mathis et al., Bohacek and Shah), whatever the recovery;
- `tahoe`: slow start from one segment after each event;
- `reno`: a halving and a round trip a loss; more than none, one (window from 4) or two (from 9) losses time out
  (Sikdar et al., section III-F);
- `newreno`: a round trip a loss (RFC 6582); a lost resend times out, and with `fragile` any loss in the recovery
  (Parvez et al., eq 23);
- `sack`: one round trip; a lost resend times out; with `pipe` also losses of over half of the window, which the first
  SACK senders could not repair (Sikdar et al., eq 31);
- `rack`: as sack, but a lost resend costs one more round trip (RFC 8985).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcpfit.schema import EVENTS, FLOWS, ROUNDS, Column, polars_schema

SMSS = 1000
MOST_BACKOFF = 6
C, BETA = 0.4, 0.7  # CUBIC (RFC 9438)
OPEN, DETECT, RECOVER, EXPIRE = range(4)

Tables = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Path:
    """Losses and times. Round trips have a standard deviation of `jitter` of their mean, timers of half of that; the
    ACK of a window of one segment comes `delayed_ack_s` late."""

    p: float
    losses: str = "window"
    q: float | None = None
    m: int = 1
    rtt_s: float = 0.1
    rto_s: float = 0.4
    jitter: float = 0.1
    delayed_ack_s: float = 0.0


@dataclass(frozen=True)
class Sender:
    """What the sender does: see the module. `restart`: slow start after a timeout; `timeouts` false: none ever;
    `loose`: the window grows by a segment in a round with probability 1/b."""

    recovery: str = "newreno"
    b: float = 1.0
    w_max: float = np.inf
    restart: bool = True
    timeouts: bool = True
    fragile: bool = False
    pipe: bool = False
    instant: bool = False
    loose: bool = False
    cubic: bool = False
    first_window: float = 2.0
    threshold: float = np.inf


class _Record:
    """Columns in parts, each part of one step."""

    def __init__(self) -> None:
        self.parts: dict[str, list[Any]] = {}

    def add(self, size: int, **columns: Any) -> None:
        for name, values in columns.items():
            self.parts.setdefault(name, []).append(values if np.ndim(values) else np.full(size, values))

    def frame(self, schema: tuple[Column, ...], table: str, defaults: dict[str, Any]) -> pl.DataFrame:
        known = {name: np.concatenate(parts) for name, parts in self.parts.items()}
        height = len(next(iter(known.values()))) if known else 0
        declared = polars_schema(table)
        series = {}
        for column in schema:
            if column.name in known:
                values = known[column.name]
                of = pl.Series(column.name, values)
                series[column.name] = of.fill_nan(None) if values.dtype.kind == "f" else of
            else:
                series[column.name] = pl.repeat(defaults.get(column.name, 0), height, eager=True)
        return pl.DataFrame(series).cast(dict(declared))


def simulate(path: Path, sender: Sender, segments: int, flows: int, seed: int = 0) -> Tables:
    """The tables of flows, events and rounds of `flows` flows that each send that many segments."""
    run = _Run(path, sender, flows, np.random.default_rng((seed, 1)))
    while (active := np.flatnonzero(run.sent < segments)).size:
        run.step(active)
    return run.tables()


def half_window(p: float, sender: Sender) -> float:
    """About half of the window at which loss events begin that come at a rate of p: where a long flow may start."""
    return max(0.75 * float(np.sqrt(1.5 / (sender.b * p))), 1.0)


def transfer_times(path: Path, sender: Sender, segments: int, flows: int, seed: int = 0) -> Floats:
    """Seconds until each of `flows` transfers of that many segments has arrived and is acknowledged."""
    run = _Run(path, sender, flows, np.random.default_rng((seed, 2)), float(segments))
    while (active := np.flatnonzero(run.delivered < segments)).size:
        run.step(active)
    return run.now


class _Run:
    def __init__(
        self, path: Path, sender: Sender, flows: int, random: np.random.Generator, goal: float = np.inf
    ) -> None:
        self.path, self.sender, self.random, self.flows, self.goal = path, sender, random, flows, goal
        self.rounds, self.events = _Record(), _Record()

        def full(value: float) -> Floats:
            return np.full(flows, value, np.float64)

        self.mode = np.zeros(flows, np.int64)
        self.now, self.sent, self.delivered, self.lost = full(0), full(0), full(0), full(0)
        self.threshold = full(sender.threshold)
        self.window, self.peak, self.epoch = full(sender.first_window), full(sender.first_window), full(0)
        self.until = self._gap(flows) if path.losses != "periodic" else np.ceil(random.random(flows) / path.p)
        # of the event being repaired: flight, losses, of these in the second round, segments of the second round,
        # rounds of recovery, those done, and the round in which the recovery fails
        self.flight, self.losses, self.late, self.second = full(0), full(0), full(0), full(0)
        self.repair, self.done, self.fails = full(0), full(0), full(np.inf)
        self.count = {name: full(0) for name in ("loss_events", "timeouts", "recoveries", "limited", "rounds")}
        self.flight_max, self.carry, self.debt = full(0), full(0), full(0)
        self.rtt_sum, self.rtt_least, self.rtt_n = full(0), full(np.inf), full(0)

    def step(self, active: NDArray[np.int64]) -> None:
        """One round, or one series of timeouts, of each of those flows."""
        mode = self.mode[active]
        for code, act in ((OPEN, self._open), (DETECT, self._detect), (RECOVER, self._recover), (EXPIRE, self._expire)):
            if (mode == code).any():
                act(active[mode == code])

    def _gap(self, size: int) -> Floats:
        if self.path.losses == "periodic":
            return np.full(size, round(1 / self.path.p), np.float64)
        return self.random.geometric(self.path.p, size).astype(np.float64)

    def _around(self, mean: float, spread: float, size: int) -> Floats:
        if not spread:
            return np.full(size, mean)
        return mean * self.random.gamma(1 / spread**2, spread**2, size)

    def _round(self, i: NDArray[np.int64], sent: Floats, lost: Floats, resent: Any, flight: Floats, phase: str) -> None:
        """Record a round trip and let it pass."""
        rtt = self._around(self.path.rtt_s, self.path.jitter, len(i))
        self.rtt_sum[i] += rtt
        self.rtt_n[i] += 1
        self.rtt_least[i] = np.minimum(self.rtt_least[i], rtt)
        limited = np.full(len(i), False) if np.isinf(self.sender.w_max) else flight >= self.sender.w_max - 3
        waits = np.where((flight == 1) & (sent > lost) & (self.window[i] < 2), self.path.delayed_ack_s, 0.0)
        self._passes(i, rtt + waits, sent, lost, resent, flight, phase, rtt, limited)

    def _passes(
        self,
        i: NDArray[np.int64],
        length: Floats,
        sent: Floats,
        lost: Floats,
        resent: Any,
        flight: Floats,
        phase: str,
        rtt: Any,
        limited: Any,
    ) -> None:
        start = np.rint(self.now[i] * 1e9).astype(np.int64)
        self.now[i] += length
        self.rounds.add(
            len(i),
            flow=i,
            round=self.count["rounds"][i].astype(np.int64),
            start_ns=start,
            end_ns=np.rint(self.now[i] * 1e9).astype(np.int64),
            sent_segments=sent,
            lost_segments=lost,
            resent_segments=resent,
            acked_bytes=(sent - lost) * SMSS,
            acks=sent - lost,
            flight=flight,
            phase=np.full(len(i), phase),
            rtt_s=np.asarray(rtt, dtype=np.float64),
            rwnd=np.full(len(i), self.sender.w_max if np.isfinite(self.sender.w_max) else np.nan),
            limited=limited,
        )
        self.sent[i] += sent
        self.lost[i] += lost
        self.delivered[i] += sent - lost
        self.count["rounds"][i] += 1
        self.count["limited"][i] += limited
        self.flight_max[i] = np.maximum(self.flight_max[i], flight)

    def _event(self, i: NDArray[np.int64], kind: str, **columns: Any) -> None:
        left = columns.pop("left", self.delivered[i])
        self.events.add(
            len(i),
            flow=i,
            kind=np.full(len(i), kind),
            time_ns=np.rint(columns.pop("time", self.now[i]) * 1e9).astype(np.int64),
            left=left * SMSS,
            right=(left + 1) * SMSS,
            order=columns.pop("order", self.sent[i]),
            segments=columns["segments"],
            flight=columns["flight"],
            phase=columns.get("phase", np.full(len(i), "open")),
            value=np.asarray(columns["value"], dtype=np.float64),
            timeout_follows=columns.get("follows", np.zeros(len(i), np.bool_)),
        )

    def _open(self, i: NDArray[np.int64]) -> None:
        size = np.minimum(self.window[i], self.sender.w_max)
        if self.sender.instant:
            size = size + self.carry[i]
            self.carry[i] = size - np.floor(size)
        size = np.minimum(np.maximum(np.floor(size), 1.0), self.goal - self.delivered[i])
        hit = self.until[i] <= size
        clean, w = i[~hit], size[~hit]
        self.until[clean] -= w
        again = np.minimum(self.debt[clean], w)
        self.debt[clean] -= again
        self._round(clean, w, np.zeros(len(w)), again, w, "open")
        self._grow(clean)
        if hit.any():
            self._lose(i[hit], size[hit])

    def _grow(self, i: NDArray[np.int64]) -> None:
        window, threshold, b = self.window[i], self.threshold[i], self.sender.b
        if self.sender.cubic:
            t = self.now[i] - self.epoch[i]
            k = np.cbrt(self.peak[i] * (1 - BETA) / C)
            friendly = self.peak[i] * BETA + 3 * (1 - BETA) / (1 + BETA) * t / self.path.rtt_s
            grown = np.maximum(C * (t - k) ** 3 + self.peak[i], friendly)
        else:
            grown = window + (self.random.random(len(i)) < 1 / b if self.sender.loose else 1 / b)
        slow = window < threshold  # a segment for each ACK, and those cover b segments
        acked = np.minimum(window + np.ceil(np.floor(window) / b), np.maximum(threshold, window + 1 / b))
        self.window[i] = np.minimum(np.where(slow, acked, grown), self.sender.w_max)

    def _lose(self, i: NDArray[np.int64], size: Floats) -> None:
        """A loss event begins: what is lost of it, and how it ends."""
        path, sender, random = self.path, self.sender, self.random
        first = self.until[i] - 1
        rest = size - first
        if path.losses == "round":
            now = rest
            alive = np.minimum(random.geometric(path.p, len(i)) - 1.0, first)
            late = first - alive
        elif path.losses == "burst":
            now = np.minimum(path.m, rest)
            late = np.minimum(path.m - now, first)
        elif path.losses == "periodic":
            now, late = np.ones(len(i)), np.zeros(len(i))
        else:
            q = path.p if path.q is None else path.q
            now = 1.0 + random.binomial((rest - 1).astype(np.int64), q)
            late = random.binomial(first.astype(np.int64), q).astype(np.float64)
        left = self.goal - self.delivered[i]
        late = np.minimum(late, np.maximum(left - size, 0.0))  # a transfer has no more to send in the next round
        # duplicate ACKs: of what follows the first loss in its round, and of what the next one sends
        second = np.minimum(first, np.maximum(left - size, 0.0))
        direct = (rest - now) * (path.losses != "round") + second - late < 3
        if sender.instant:
            now, late, second = np.minimum(now + late, size), np.zeros(len(i)), np.zeros(len(i))
        losses = now + late
        self.flight[i] = size
        # a fluid window grows up to the loss
        self.peak[i] = self.window[i] + (size - rest) / size / sender.b if sender.instant else size
        repair, fails = self._repair(size, losses)
        direct = direct & sender.timeouts
        fails = np.where(sender.timeouts, fails, np.inf)
        self.repair[i], self.done[i], self.fails[i] = repair, 0, np.where(direct, 0, fails)
        follows = direct | (fails <= repair)
        self._event(
            i,
            "loss_event",
            segments=losses,
            flight=size - 1,  # beside the first of them
            follows=follows,
            value=np.full(len(i), path.rtt_s),
            left=self.delivered[i] + size - rest,
            order=self.sent[i] + size - rest,
        )
        self.count["loss_events"][i] += 1
        again = np.minimum(self.debt[i], size)
        self.debt[i] -= again
        self.second[i], self.late[i], self.losses[i] = second, late, losses
        self._round(i, size, now, again, size, "open")
        gap = self._gap(len(i))
        self.until[i] = np.maximum(gap - rest + 1, 1.0) if path.losses == "periodic" else gap
        self.mode[i] = DETECT

    def _repair(self, size: Floats, losses: Floats) -> tuple[Floats, Floats]:
        """Rounds that the recovery takes, and the round in which it fails (infinite: in none)."""
        path, sender, random = self.path, self.sender, self.random
        never = np.full(len(size), np.inf)
        if path.losses == "periodic" or sender.recovery == "none":
            return np.full(len(size), float(sender.recovery != "none")), never
        if sender.recovery == "tahoe":
            return np.zeros(len(size)), never
        if sender.recovery == "reno":
            most = (size >= 4) * 1.0 + (size > 8)
            return losses, np.where(losses > most, np.minimum(most, losses) + 1.0, np.inf)
        resend_lost = random.geometric(path.p, len(size)).astype(np.float64)
        if sender.recovery == "newreno":
            if not sender.fragile:
                return losses, np.where(resend_lost <= losses, resend_lost, np.inf)
            # segments sent by the end of round j: j resends, and j (W/2 - m) + j (j - 1)/2 new ones (eq 10)
            fails = never.copy()
            total = np.zeros(len(size))
            for j in range(1, int(losses.max()) + 1):
                total += 1.0 + np.maximum(np.floor(size / 2) - losses + j - 1, 0.0)
                fails = np.where((j <= losses) & (resend_lost <= total) & np.isinf(fails), float(j), fails)
            return losses, fails
        rounds = np.ones(len(size)) + (losses > size / 2)
        if sender.recovery == "rack":
            return rounds + (resend_lost <= losses), never
        fails = np.where(resend_lost <= losses, 1.0, np.inf)
        if sender.pipe:
            fails = np.where(losses - 2 >= np.ceil(size / 2), 0.0, fails)
        return rounds, fails

    def _detect(self, i: NDArray[np.int64]) -> None:
        """The round after the first loss: the ACKs of what came before it let new segments out."""
        self.debt[i] += self.losses[i]
        direct = self.fails[i] <= 0
        for part, phase in ((i[direct], "open"), (i[~direct], "recovery")) if not self.sender.instant else ():
            some = part[self.second[part] > 0]
            self._round(some, self.second[some], self.late[some], 0, self.flight[some], phase)
        self.mode[i[direct]] = EXPIRE
        on = i[~direct]
        self._event(
            on,
            "recovery",
            segments=self.losses[on],
            flight=self.flight[on],
            value=np.minimum(self.repair[on], self.fails[on]) * self.path.rtt_s,
            follows=self.fails[on] <= self.repair[on],
        )
        self.count["recoveries"][on] += 1
        self.mode[on] = RECOVER
        self._finish(on[self.repair[on] < 1])

    def _recover(self, i: NDArray[np.int64]) -> None:
        """A round of the recovery: resends, and new segments as half the window lets them out."""
        self.done[i] += 1
        j, losses, half = self.done[i], self.losses[i], np.floor(self.flight[i] / 2)
        if self.sender.recovery in ("newreno", "reno"):
            resent, new = np.ones(len(i)), np.maximum(half - losses + j - 1, 0.0)
        else:
            resent = np.where(j == 1, np.minimum(losses, np.maximum(half, 1.0)), 0.0)
            resent = np.where(j == 2, np.maximum(losses - half, 0.0), resent)
            new = np.maximum(half - resent, 0.0) if self.sender.recovery != "none" else np.zeros(len(i))
        failed = j >= self.fails[i]
        resend_lost = failed * 1.0
        if self.sender.recovery == "reno":
            resend_lost, resent = np.zeros(len(i)), np.where(failed, 0.0, resent)
            new = np.where(failed, 0.0, new)
        new = np.minimum(new, np.maximum(self.goal - self.delivered[i] - self.debt[i], 0.0))
        self.debt[i] -= resent - resend_lost
        again = i[resend_lost > 0]  # sent a round trip after the first loss: an event of its own
        self._event(
            again,
            "loss_event",
            segments=np.ones(len(again)),
            flight=np.maximum(half[resend_lost > 0] - 1, 0.0),
            follows=np.ones(len(again), np.bool_),
            value=np.zeros(len(again)),
        )
        self.count["loss_events"][again] += 1
        self._round(i, resent + new, resend_lost, resent, half, "recovery")
        self.until[i] -= new
        self.mode[i[failed]] = EXPIRE
        self._finish(i[~failed & (j >= self.repair[i])])

    def _finish(self, i: NDArray[np.int64]) -> None:
        """The window after a recovery."""
        keep = BETA if self.sender.cubic else 0.5
        halvings = self.losses[i] if self.sender.recovery == "reno" else np.ones(len(i))
        self.threshold[i] = np.maximum(np.minimum(self.peak[i], self.sender.w_max) * keep**halvings, 2.0)
        self.epoch[i] = self.now[i]
        self.window[i] = 1.0 if self.sender.recovery == "tahoe" else self.threshold[i]
        # an event among the recovery's new segments is found when it is over
        self.until[i] = np.maximum(self.until[i], 1.0)
        self.mode[i] = OPEN

    def _expire(self, i: NDArray[np.int64]) -> None:
        """A series of timeouts, each twice as long as the one before, until a resend arrives."""
        series = self.random.geometric(1 - self.path.p, len(i)).astype(np.float64)
        if self.path.losses == "periodic":
            series = np.ones(len(i))
        first = self._around(self.path.rto_s, self.path.jitter / 2, len(i))
        waited, phase = np.zeros(len(i)), np.where(self.fails[i] > 0, "recovery", "open")
        for k in range(int(series.max())):
            on = series > k
            timer = first * 2.0 ** min(k, MOST_BACKOFF)
            waited = np.where(on, waited + timer, waited)
            at = i[on]
            common = {"segments": np.full(len(at), k), "flight": self.flight[at], "value": timer[on]}
            self._event(at, "timeout", time=self.now[at] + waited[on], phase=phase[on] if not k else "loss", **common)
            again = i[series > k + 1]  # the resend of this expiry was lost: an event of its own, after a round trip
            self._event(
                again,
                "loss_event",
                time=self.now[again] + waited[series > k + 1],
                segments=np.ones(len(again)),
                flight=np.zeros(len(again)),
                follows=np.ones(len(again), np.bool_),
                value=np.zeros(len(again)),
                left=self.delivered[again] + 0.5,
            )
            self.count["loss_events"][again] += 1
        self.count["timeouts"][i] += series
        none = np.zeros(len(i), np.bool_)
        self._passes(i, waited, series, series - 1, series, np.ones(len(i)), "loss", np.nan, none)
        self.debt[i] = np.maximum(self.debt[i] - 1, 0.0)
        self.threshold[i] = np.maximum(self.flight[i] / 2, 2.0)
        self.window[i] = 1.0 if self.sender.restart else np.maximum(self.flight[i] / 2, 1.0)
        self.peak[i], self.epoch[i] = self.flight[i], self.now[i]
        self.until[i] = np.maximum(self.until[i], 1.0)
        self.mode[i] = OPEN

    def tables(self) -> Tables:
        """What was recorded."""
        of, n = _Record(), self.flows
        of.add(
            n,
            flow=np.arange(n),
            connection=np.arange(n),
            last_ns=np.rint(self.now * 1e9).astype(np.int64),
            data_segments=self.sent,
            sent_segments=self.sent,
            data_bytes=self.sent * SMSS,
            unique_bytes=self.delivered * SMSS,
            acked_bytes=self.delivered * SMSS,
            lost_segments=self.lost,
            lost_low=self.lost,
            lost_high=self.lost,
            loss_events=self.count["loss_events"],
            fast_recoveries=self.count["recoveries"],
            timeouts=self.count["timeouts"],
            rtt_samples=self.rtt_n,
            rtt_mean_s=self.rtt_sum / np.maximum(self.rtt_n, 1),
            rtt_min_s=self.rtt_least,
            rtt_p95_s=self.rtt_sum / np.maximum(self.rtt_n, 1),
            rto_s=np.full(n, self.path.rto_s),
            flight_max=self.flight_max,
            limited_share=self.count["limited"] / np.maximum(self.count["rounds"], 1),
            busy_s=self.now,
            sack_permitted=np.full(n, self.sender.recovery in ("sack", "rack")),
            acks_seen=np.ones(n, np.bool_),
        )
        text = {c.name: "10.0.0.1" for c in FLOWS if c.dtype == pl.String}
        false = {c.name: False for c in FLOWS if c.dtype == pl.Boolean}
        unknown = dict.fromkeys(("rwnd_max", "rwnd_min", "mss_bytes", "ecn_feedback", "mark_events", "reset_frame"))
        given = {"vantage": "sender", "smss_bytes": SMSS, "ending": "open"}
        flows = of.frame(FLOWS, "flows", text | false | unknown | given)
        events = self.events.frame(EVENTS, "events", {"reason": "unknown", "confidence": 1.0, "arrival": None})
        rounds = self.rounds.frame(ROUNDS, "rounds", {"cwnd_low": None, "cwnd_high": None})
        return flows, events, rounds
