"""Does a token bucket say which packets were lost? It is a policer or, turned over, the room of a drop-tail queue.

Tokens come at rate r up to depth B; a packet that finds fewer tokens than its length is lost, another takes its
length (RFC 2697, 3 with one colour). A queue of B bytes in front of a link of rate r loses the same packets: tokens
are its free room. The two differ only in what passes: a queue delays it by up to B / r, a policer does not (Flach et
al., "An Internet-wide analysis of traffic policing", SIGCOMM 2016, section 4.1).

`fit` searches r and B that separate the flow's own lost transmissions from those that passed. Losses at random are
separated by no bucket; so are losses at a bottleneck that other flows fill. The tokens follow from the largest
surplus so far: with F(t) = r t - bytes passed, tokens are B + F(t) - max(0, max over s <= t of F(s)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl

from tcpfit.diagnosis.findings.view import View

EVENTS, LOST = 5, 8
BETWEEN, WINDOWS = 20, (6, 64)
"""Packets between losses, and ACKs, over which a rate is taken."""
MOST, THINNED = 10_000, 4
"""Transmissions that are looked at, and one in so many of those that passed at first: the search is bounded."""
LOSSES, TOGETHER = 0.85, 0.8
"""Share of the losses, and of loss events, that it must be right about; that of losses and of passed, less one."""


@dataclass(frozen=True)
class Bucket:
    """A token bucket that explains the losses: rate in bytes/s, depth in bytes, shares of the losses and of the packets
    that passed that it is right about, the frames that were lost, and by how much the round trip of the packets just
    before the losses was above the smallest."""

    rate: float
    depth: float
    losses: float
    passed: float
    lost: int
    frames: tuple[int, ...]
    rise_s: float | None

    @property
    def delay_s(self) -> float:
        """What a queue of that depth would add to the round trip when it is full."""
        return self.depth / self.rate


@lru_cache(maxsize=2)
def fit(view: View) -> Bucket | None:
    """The bucket of a flow seen from before the losses; None if none explains them or there are too few."""
    losses = view.of("loss").filter(pl.col("frame").is_not_null())
    if view.data is None or view.of("loss_event").height < EVENTS or losses.height < LOST or view["offload"]:
        return None
    data = view.data.head(MOST)
    lost = data["frame"].is_in(losses["frame"].implode()).to_numpy()
    if lost.sum() < LOST:
        return None
    time = (data["time_ns"].to_numpy() - data["time_ns"][0]) / 1e9
    size = data["wire_bytes"].to_numpy().astype(float)
    taken = np.concatenate(([0.0], np.cumsum(np.where(lost, 0.0, size))[:-1]))
    seeds = _seeds(view, time, taken, lost, float(size.sum() / data["payload"].sum()))
    if len(seeds) == 0:
        return None
    rates = np.unique(np.outer(seeds, np.geomspace(0.98, 1.02, 25)))
    # every loss and some of what passed are enough to come near
    some = lost | (np.arange(len(lost)) % THINNED == 0)
    best = max(_separate(time, size, taken, lost, rate, some) for rate in rates)
    best = _separate(time, size, taken, lost, best[1])
    for width in (1.0016, 1.0003):
        near = best[1] * np.geomspace(1 / width, width, 15)
        best = max(best, *(_separate(time, size, taken, lost, rate) for rate in near))
    _, rate, depth, caught, through = best
    if caught < LOSSES or caught + through - 1 < TOGETHER:
        return None
    # one overshoot can hold most of the losses: each event counts as much as it
    opens = data["frame"].is_in(view.of("loss_event")["frame"].drop_nulls().implode()).to_numpy()
    events = float(np.mean((_room(time, taken, rate) + depth < size)[opens]))
    if opens.sum() < EVENTS or events < LOSSES:
        return None
    frames = tuple(int(frame) for frame in data["frame"].to_numpy()[lost][:20])
    return Bucket(rate, depth, caught, through, int(lost.sum()), frames, _rise(view, data, lost, opens))


def _seeds(view: View, time: np.ndarray, taken: np.ndarray, lost: np.ndarray, framing: float) -> np.ndarray:
    """Rates near which to search, in bytes of frames a second: tokens drift with any error of the rate.

    A full bottleneck passes data at its rate: so far apart are the losses of one overflow, and ACKs of a busy queue.
    """
    at = np.flatnonzero(lost)
    found = []
    for apart in (1, 16):
        passed, wait = taken[at[apart:]] - taken[at[:-apart]], time[at[apart:]] - time[at[:-apart]]
        enough = (wait > 0) & (at[apart:] - at[:-apart] >= BETWEEN + apart)
        if enough.any():
            found += list(np.quantile(passed[enough] / wait[enough], (0.25, 0.5, 0.75)))
    span = time[at[-1]] - time[at[0]]
    if span > 0:
        found.append((taken[at[-1]] - taken[at[0]]) / span)
    acks = view.received
    if acks is None or acks.is_empty():
        return np.array(found)
    edge, when = np.maximum.accumulate(acks["edge"].to_numpy()), acks["time_ns"].to_numpy() / 1e9
    for window in WINDOWS:
        acked, wait = edge[window:] - edge[:-window], when[window:] - when[:-window]
        busy = (wait > 0) & (acked > 0)
        if busy.any():
            found += list(framing * np.quantile(acked[busy] / wait[busy], (0.5, 0.75, 0.9, 0.98)))
    return np.array(found)


def _rise(view: View, data: pl.DataFrame, lost: np.ndarray, opens: np.ndarray) -> float | None:
    """Round trip of the last packet that passed before each loss event, less the smallest: the median, in s.

    Nothing before it may be missing, or a hole holds up its ACK. Packets sent again are left out (Karn's rule).
    """
    if view.received is None or view.received.is_empty():
        return None
    at, edge = view.received["time_ns"].to_numpy(), np.maximum.accumulate(view.received["edge"].to_numpy())
    right = data["right"].to_numpy()
    once = ~(data["right"].is_duplicated().to_numpy()) & ~lost
    answer = np.searchsorted(edge, right)
    known = once & (answer < len(at))
    wait = (at[np.minimum(answer, len(at) - 1)] - data["time_ns"].to_numpy()) / 1e9
    before = np.append(opens[1:], False) & known & ~_behind_a_hole(data, lost, at, edge)
    if not before.any():
        return None
    return float(np.median(wait[before]) - np.min(wait[known]))


def _behind_a_hole(data: pl.DataFrame, lost: np.ndarray, at: np.ndarray, edge: np.ndarray) -> np.ndarray:
    """Packets that were sent while something lost before was not yet acknowledged: a recovery that loses as well is
    another loss event to a sender that goes on."""
    right = np.where(lost, data["right"].to_numpy(), 0)
    missing = np.append(0, np.maximum.accumulate(right))[:-1]
    seen = np.append(0, edge)[np.searchsorted(at, data["time_ns"].to_numpy(), "right")]
    behind: np.ndarray = missing > seen
    return behind


def _separate(
    time: np.ndarray,
    size: np.ndarray,
    taken: np.ndarray,
    lost: np.ndarray,
    rate: float,
    some: np.ndarray | slice = slice(None),
) -> tuple[float, float, float, float, float]:
    """Score, rate, best depth, share of losses and of passed packets that are right at a rate, of some of the packets.

    The depth only shifts the tokens, so the best one is the best threshold between those that the two kinds found.
    """
    found, lost = (_room(time, taken, rate) - size)[some], lost[some]
    order = np.argsort(found, kind="stable")
    caught, wrong = np.cumsum(lost[order]) / lost.sum(), np.cumsum(~lost[order]) / (~lost).sum()
    at = int(np.argmax((caught - wrong)[:-1]))
    depth = -float(found[order[at]] + found[order[at + 1]]) / 2
    return float(caught[at] - wrong[at]), float(rate), depth, float(caught[at]), float(1 - wrong[at])


def _room(time: np.ndarray, taken: np.ndarray, rate: float) -> np.ndarray:
    """Tokens less the depth, which is 0 for a full bucket; it is full when the flow begins."""
    free = rate * time - taken
    room: np.ndarray = free - np.maximum(np.maximum.accumulate(free), 0.0)
    return room
