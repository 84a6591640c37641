"""Flows that only count losses: the loss events of senders whose window halves at each and then grows by one a round.

A flow sends a number of segments. A loss event begins at a segment that the process picks; the segments of the round
trip after it, as many as the window, belong to the event, and the process says how many of them are lost. Thousands of
flows are made at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcpfit.parameters.evidence import Evidence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Random = np.random.Generator

SMSS = 1000


@dataclass(frozen=True)
class Process:
    """How losses come: `gap` draws the segments until the next event begins, `size` the losses of one with a window."""

    name: str
    gap: Callable[[Random, float, Floats, NDArray[np.bool_]], Floats]
    size: Callable[[Random, float, Floats], Floats]


def independent(random: Random, p: float, dead: Floats, _: NDArray[np.bool_]) -> Floats:
    """Every segment that is not in an event begins one with probability p."""
    return random.geometric(p, len(dead)).astype(np.float64)


def regular(random: Random, p: float, dead: Floats, _: NDArray[np.bool_]) -> Floats:
    """A queue that overflows at nearly the same window: 1/p from event to event, within a third of the free part."""
    return np.maximum(1 / p - dead, 1.0) * random.gamma(10.0, 0.1, len(dead))


def changing(random: Random, p: float, dead: Floats, bad: NDArray[np.bool_]) -> Floats:
    """A path that is now five times as lossy, now better, for five events on average."""
    bad ^= random.random(len(dead)) < 0.2
    return random.geometric(np.where(bad, min(2.5 * p, 1.0), 0.5 * p)).astype(np.float64)


def each_with(share: Callable[[float], float]) -> Callable[[Random, float, Floats], Floats]:
    """Each other segment of the event's round trip is lost with a probability."""

    def size(random: Random, p: float, window: Floats) -> Floats:
        return 1.0 + random.binomial((window - 1).astype(np.int64), share(p))

    return size


PROCESSES = {
    process.name: process
    for process in (
        Process("independent losses", independent, each_with(lambda p: p)),
        Process("bursts of four", independent, lambda random, p, window: np.full(len(window), 4.0)),
        Process("30 % of the round lost", independent, each_with(lambda p: 0.3)),
        Process(
            "geometric bursts", independent, lambda random, p, window: random.geometric(0.4, len(window)).astype(float)
        ),
        Process("overflowing queue", regular, each_with(lambda p: 0.1)),
        Process("path that changes", changing, each_with(lambda p: p)),
    )
}


@dataclass(frozen=True)
class Flows:
    """Loss events of simulated flows: owner, place (segments sent before), size (losses), window; each flow sent
    `sent` segments."""

    flows: int
    sent: float
    owner: Ints
    place: Floats
    size: Floats
    window: Floats

    @property
    def p(self) -> float:
        """Loss events per segment sent, of all flows together."""
        return len(self.owner) / (self.flows * self.sent)

    @property
    def q_tilde(self) -> float:
        """Losses per segment sent, of all flows together."""
        return float(self.size.sum()) / (self.flows * self.sent)

    def evidence(self) -> Evidence:
        """The columns of the tables of `tcpfit.schema` that loss rates are made of."""
        lost = np.bincount(self.owner, self.size, self.flows)
        sent = np.full(self.flows, self.sent)
        zero = np.zeros(self.flows)
        flows = pl.DataFrame(
            {
                "flow": np.arange(self.flows),
                "sent_segments": sent,
                "data_segments": sent,
                "unique_bytes": sent * SMSS,
                "missing_segments": zero,
                "loss_events": np.bincount(self.owner, minlength=self.flows),
                **dict.fromkeys(("lost_segments", "lost_low", "lost_high"), lost),
            }
        )
        left = self.place * SMSS
        events = pl.DataFrame(
            {
                "flow": self.owner,
                "time_ns": np.arange(len(self.owner)),
                "left": left,
                "right": left + SMSS,
                "segments": self.size,
                "flight": self.window,
            }
        ).with_columns(pl.lit("loss_event").alias("kind"))
        return Evidence(flows, events, pl.DataFrame())


def simulate(process: Process, p: float, sent: float, flows: int, random: Random) -> Flows:
    """Flows that send `sent` segments each, whose events begin with the rate p of a segment outside events."""
    at, dead, threshold = np.zeros(flows), np.zeros(flows), np.full(flows, 2.0)
    bad = random.random(flows) < 0.5
    parts: list[tuple[Ints, Floats, Floats, Floats]] = []
    while (at < sent).any():
        gap = process.gap(random, p, dead, bad)
        if not parts:
            gap *= random.random(flows) if process.gap is regular else 1.0
        # k rounds from a window of h send h k + k^2/2 segments
        window = np.sqrt(threshold**2 + 2 * gap)
        at = at + dead + gap
        size = np.minimum(process.size(random, p, window), np.maximum(window, 4.0))
        alive = np.flatnonzero(at < sent)
        parts.append((alive, at[alive], size[alive], window[alive]))
        dead, threshold = np.maximum(window, size), window / 2
    owner, place, sizes, windows = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(owner, kind="stable")
    return Flows(flows, sent, owner[order], place[order], sizes[order], windows[order])
