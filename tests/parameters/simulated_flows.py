"""A round-based Reno sender that fills the tables of the schema: the flows whose parameters the tests know.

The sender follows the assumptions of Padhye et al. (1998): rounds of one RTT; the window grows by 1/b a round; each
segment that follows no loss of its round is lost with probability p and takes `burst` or all of the rest of its round
with it; fewer than three duplicate ACKs (of the losing round's survivors) mean a timeout, which doubles while it
fails; window limit w_max. With `slow_start` false the window goes on from half after a timeout, as the paper has it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from tcpfit.schema import EVENTS, FLOWS, ROUNDS, polars_schema

SMSS = 1000
Tables = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]


def flow_row(flow: int = 0, **columns: Any) -> dict[str, Any]:
    """A row of the flows table: everything zero, false or null but for what is given."""
    row: dict[str, Any] = {c.name: 0 for c in FLOWS}
    row |= {c.name: False for c in FLOWS if c.dtype == pl.Boolean}
    row |= {c.name: "10.0.0.1" for c in FLOWS if c.dtype == pl.String}
    row |= {
        "vantage": "sender",
        "smss_bytes": SMSS,
        "rwnd_max": None,
        "rwnd_min": None,
        "mss_bytes": None,
        "ecn_feedback": None,
        "ending": "open",
        "reset_frame": None,
    }
    return row | {"flow": flow, "connection": flow} | columns


def event_row(kind: str, time_s: float, flow: int = 0, **columns: Any) -> dict[str, Any]:
    """A row of the events table."""
    row: dict[str, Any] = {c.name: 0 for c in EVENTS}
    row |= {
        "reason": "unknown",
        "phase": "open",
        "confidence": 1.0,
        "timeout_follows": None,
        "value": None,
        "arrival": None,
    }
    return row | {"flow": flow, "kind": kind, "time_ns": round(time_s * 1e9)} | columns


def round_row(number: int, start_s: float, length_s: float, flow: int = 0, **columns: Any) -> dict[str, Any]:
    """A row of the rounds table."""
    row: dict[str, Any] = {c.name: 0 for c in ROUNDS}
    start = round(start_s * 1e9)
    row |= {"round": number, "start_ns": start, "end_ns": start + round(length_s * 1e9), "rtt_s": length_s}
    return row | {"flow": flow, "rwnd": None, "phase": "open", "limited": False} | columns


def tables(flows: list[dict[str, Any]], events: list[dict[str, Any]], rounds: list[dict[str, Any]]) -> Tables:
    """The three tables from rows."""
    return (
        pl.DataFrame(flows, schema=polars_schema("flows")),
        pl.DataFrame(events, schema=polars_schema("events")),
        pl.DataFrame(rounds, schema=polars_schema("rounds")),
    )


@dataclass
class Sender:
    """State and record of one simulated flow."""

    p: float
    rtt_s: float = 0.1
    rto_s: float = 0.4
    b: float = 1.0
    w_max: float = np.inf
    flow: int = 0
    decrease: float = 0.5
    burst: int | None = None
    limit_shown: bool = True
    slow_start: bool = True
    events: list[dict[str, Any]] = field(default_factory=list)
    rounds: list[dict[str, Any]] = field(default_factory=list)

    def run(self, rounds: int, seed: int = 0) -> Tables:
        """Send for that many rounds."""
        random = np.random.default_rng((seed, self.flow))
        now, window, threshold, sent, lost_all, timeouts = 0.0, 2.0, np.inf, 0, 0, 0
        acked, reactions = 0, 0
        while len(self.rounds) < rounds:
            size = int(min(window, self.w_max))
            first = int(random.geometric(self.p)) - 1 if self.p > 0 else size
            lost = 0 if first >= size else size - first if self.burst is None else min(self.burst, size - first)
            self._round(now, size, lost, 0, "open", acked=size - lost)
            sent, acked, lost_all = sent + size, acked + size - lost, lost_all + lost
            start, now = now, now + self.rtt_s
            if not lost:
                grown = 2 * window if window < threshold else window + 1 / self.b
                window = min(grown, self.w_max, max(threshold, window + 1 / self.b))
                continue
            alive = size - lost
            flight, reactions = float(size), reactions + 1
            late = alive < 3 or bool(random.random() < self.p * lost)
            left = (acked - alive + first) * SMSS
            common = {"flow": self.flow, "segments": lost, "flight": flight, "left": left, "right": left + lost * SMSS}
            cause = common | {"flight": flight - 1}  # outstanding when the first lost one was sent
            self.events.append(event_row("loss_event", start, timeout_follows=late, value=self.rtt_s, **cause))
            if late:
                series = int(random.geometric(1 - self.p))
                waited = 0.0
                for k in range(series):
                    timer = self.rto_s * 2**k
                    waited += timer
                    self.events.append(event_row("timeout", now + waited, value=timer, **common | {"segments": k}))
                timeouts, sent = timeouts + series, sent + series
                self._round(now, series, 0, series, "loss", length_s=waited + self.rtt_s)
                now += waited
                threshold = max(size * self.decrease, 2.0)
                window = 1.0 if self.slow_start else threshold
            else:
                self.events.append(event_row("recovery", now, value=self.rtt_s, timeout_follows=False, **common))
                self._round(now, alive, 0, 0, "recovery", acked=size)
                sent, acked, now = sent + alive, acked + size, now + self.rtt_s
                window = max(size * self.decrease, 2.0)
                threshold = window
        limited = float(np.mean([row["limited"] for row in self.rounds]))
        flows = [
            flow_row(
                self.flow,
                last_ns=round(now * 1e9),
                data_segments=sent,
                sent_segments=sent,
                data_bytes=sent * SMSS,
                unique_bytes=acked * SMSS,
                acked_bytes=acked * SMSS,
                lost_segments=lost_all,
                lost_low=lost_all,
                lost_high=lost_all,
                loss_events=reactions,
                timeouts=timeouts,
                rtt_mean_s=self.rtt_s,
                rtt_min_s=self.rtt_s,
                rtt_p95_s=self.rtt_s,
                rtt_samples=len(self.rounds),
                rto_s=self.rto_s,
                flight_max=max(row["flight"] for row in self.rounds),
                limited_share=limited,
                busy_s=now,
                sack_permitted=False,
                acks_seen=True,
            )
        ]
        return tables(flows, self.events, self.rounds)

    def _round(
        self, now: float, sent: int, lost: int, resent: int, phase: str, acked: int = 0, length_s: float | None = None
    ) -> None:
        limit = self.w_max if np.isfinite(self.w_max) and self.limit_shown else None
        self.rounds.append(
            round_row(
                len(self.rounds),
                now,
                length_s or self.rtt_s,
                flow=self.flow,
                sent_segments=sent,
                lost_segments=lost,
                resent_segments=resent,
                acked_bytes=acked * SMSS,
                flight=float(sent),
                phase=phase,
                rtt_s=self.rtt_s if phase == "open" else None,
                rwnd=limit,
                limited=limit is not None and sent >= limit - 3,
            )
        )


def together(parts: list[Tables]) -> Tables:
    """Several flows in one set of tables."""
    flows, events, rounds = (pl.concat([part[i] for part in parts]) for i in range(3))
    return flows, events, rounds
