"""Bufferbloat: the flow's own data fills a queue that holds more than the path needs.

**Claim**: the round trip at rest and under load, and what the queue adds.
**Rule**: the rounds' mean round trip rises by 100 ms at least and to twice the smallest at least (at the 90th
percentile); the rise is the flow's own: over rounds outside recovery with four segments or more outstanding, the
round trip follows the flight (rank correlation 0.6 at least; where the flight stays put, three rounds in four have
the delay and one with too little outstanding to fill the path had a quarter of it at most), and in the rounds of the
upper half of the delay, delay times rate explains the flight (Little's law: the middle half of flight / round trip
spans less than a quarter of its median), as at one bottleneck that is always busy. A radio's delay or other people's
queue does neither. Silent where ACKs queue on the way back (`slow_ack_path`), which looks the same.
**Evidence**: frames sent at the highest and at the lowest round trip. The same from every vantage that sees both
directions.
**Remedy**: at the bottleneck, a queue that keeps delay short (CoDel, RFC 8289; FQ-CoDel, RFC 8290; PIE, RFC 8033) or
a smaller one; a window or pacing limit at the sender. The flow itself is no slower for it, everything that shares the
queue is.
**Validation**: docs/diagnosis/bufferbloat.md; tests/test_findings.py.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings import slow_ack_path
from tcpfit.diagnosis.findings.view import View, duration, rate

NAME = "bufferbloat"
RISE_S, TIMES, ROUNDS, FLIGHT = 0.1, 2.0, 12, 4
CORRELATION, SPREAD, STEADY = 0.6, 0.25, 0.75


def find(view: View) -> Finding | None:
    low = view["rtt_min_s"]
    rounds = view.rounds.filter(
        pl.col("rtt_s").is_not_null() & (pl.col("flight") >= FLIGHT) & (pl.col("phase") == "open")
    )
    if not low or rounds.height < ROUNDS:
        return None
    rtt, flight = rounds["rtt_s"].to_numpy(), rounds["flight"].to_numpy()
    # a round is as long as its round trip: time, not rounds, counts
    high = _weighted_quantile(rtt, rtt, 0.9)
    if high - low < RISE_S or high < TIMES * low:
        return None
    loaded = rtt >= (high + low) / 2
    speed = flight[loaded] / rtt[loaded]
    quarter, usual, rest = np.quantile(speed, (0.25, 0.5, 0.75))
    if loaded.sum() < ROUNDS / 3 or rest - quarter > SPREAD * usual:
        return None
    if not _own(flight, rtt, low, high, float(usual)) or slow_ack_path.find(view) is not None:
        return None
    bits = float(usual) * view["smss_bytes"] * 8
    worst = rounds.row(int(np.argmax(rtt)), named=True)
    return Finding(
        name=NAME,
        claim=f"The flow's own queue raises the round trip from {duration(low)} to {duration(float(high))} "
        "(90th percentile): "
        f"{float(np.max(flight)):.0f} segments outstanding at a bottleneck of {rate(bits)} that "
        f"{bits * low / 8 / view['smss_bytes']:.0f} would fill.",
        frames=_frames(view, worst),
        display_filter=view.ahead(f"tcp.analysis.bytes_in_flight > {2 * bits * low / 8:.0f}"),
        remedy="At the bottleneck, use a queue that keeps its delay short (FQ-CoDel, PIE) or a smaller one; "
        "else limit the "
        "sender's window or pace it.",
        confidence=0.85,
        seconds=None,
    )


def _own(flight: np.ndarray, rtt: np.ndarray, low: float, high: float, speed: float) -> bool:
    """The round trip follows the flight; where the flight stays put, it was short while less was outstanding."""
    if np.subtract(*np.quantile(flight, (0.75, 0.25))) > 2:
        return _rank_correlation(flight, rtt) >= CORRELATION
    light, loaded = rtt[flight <= speed * low], rtt >= (high + low) / 2
    return bool(np.mean(loaded) >= STEADY and len(light) and light.min() <= low + (high - low) / 4)


def _frames(view: View, worst: dict[str, int]) -> tuple[int, ...]:
    """The first data frame of the round with the longest round trip; none without segments."""
    if view.data is None:
        return ()
    inside = view.data.filter(pl.col("time_ns") >= worst["start_ns"])
    return tuple(int(frame) for frame in inside["frame"].head(1))


def _weighted_quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    order = np.argsort(values)
    cumulated = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulated, share * cumulated[-1])])


def _rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's, ties by their mean rank."""
    ranks = [pl.Series(values).rank("average").to_numpy() for values in (x, y)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
