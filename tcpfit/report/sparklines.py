"""A flow over time in a few lines of text: rate, flight, round trip and losses as sparklines, shares of time as a bar.

A flow's time is cut into as many bins as a line has places. What a round moved is spread evenly over the round, which
lasts until the next one starts; flight and round trip are the means of the rounds in a bin, weighted by time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tcpfit.parameters.intervals import Floats
from tcpfit.report import words

PLACES = 38

LEAST_ROUNDS = 8
"""A flow of fewer rounds has no course to show."""

LEVELS, FILLS = "▁▂▃▄▅▆▇█", "█▓▒░"
ASCII_LEVELS, ASCII_FILLS = "_.-~=+*#", "#=-."

LEAST_SHARE = 0.01
"""Causes with less of the time are not in the bar's legend."""


@dataclass(frozen=True)
class Line:
    """A line: what it shows, the drawing, and its range in words."""

    label: str
    drawing: str
    caption: str


def course(
    flow: Mapping[str, Any], rounds: pl.DataFrame, *, places: int = PLACES, ascii_only: bool = False
) -> list[Line]:
    """The lines of a flow, a row of `flows`; `rounds` may be those of all flows. None for a flow of few rounds."""
    own = rounds.filter(pl.col("flow") == flow["flow"]).sort("start_ns")
    first, last = flow["first_ns"], flow["last_ns"]
    if own.height < LEAST_ROUNDS or last <= first:
        return []
    start = (own["start_ns"].to_numpy() - first) / 1e9
    length = (last - first) / 1e9
    ended = (own["end_ns"].to_numpy() - first) / 1e9
    end = np.append(start[1:], max(length, start[-1], ended[-1]))
    edges = np.linspace(0.0, length, places + 1)
    inside = _overlap(start, end, edges)
    # a round trip is of the time until its ACK: in a pause after it none was measured
    answered = np.clip(ended, start, end)
    bits = 8.0 * own["acked_bytes"].to_numpy() / np.maximum(end - start, 1e-9)
    rate = bits @ inside / (edges[1] - edges[0])
    lost = np.histogram(np.clip(start, 0.0, length), edges, weights=own["lost_segments"].to_numpy())[0]
    flight = _mean(own["flight"].cast(pl.Float64).to_numpy(), inside)
    waited = answered - start
    per_second = np.where(waited > 0, own["acks"].to_numpy() / np.where(waited > 0, waited, 1.0), 0.0)
    samples = _overlap(start, answered, edges) * per_second[:, None]
    rtt = _mean(own["rtt_s"].cast(pl.Float64).to_numpy(), samples)
    levels = ASCII_LEVELS if ascii_only else LEVELS
    lines = [Line("rate", _drawn(rate, levels), f"0 to {words.rate(float(rate.max()))}")]
    if np.isfinite(flight).any():
        lines.append(Line("flight", _drawn(flight, levels), f"0 to {words.number(float(np.nanmax(flight)))} segments"))
    if np.isfinite(rtt).any():
        low, high = float(np.nanmin(rtt)), float(np.nanmax(rtt))
        lines.append(Line("RTT", _drawn(rtt, levels, low), f"{words.seconds(low)} to {words.seconds(high)}"))
    if lost.any():
        most = int(lost.max())
        lines.append(
            Line("lost", _drawn(np.where(lost > 0, lost, np.nan), levels), f"0 to {most} in {words.seconds(edges[1])}")
        )
    return lines


def _overlap(start: Floats, end: Floats, edges: Floats) -> Floats:
    """How much of each span lies in each place: rows are spans, columns places."""
    overlap: Floats = np.clip(np.minimum(end[:, None], edges[1:]) - np.maximum(start[:, None], edges[:-1]), 0.0, None)
    return overlap


def _mean(values: Floats, weights: Floats) -> Floats:
    known = np.isfinite(values)
    sums = weights[known].sum(axis=0)
    with np.errstate(invalid="ignore"):
        return np.asarray((values[known] @ weights[known]) / np.where(sums > 0, sums, np.nan))


def _drawn(values: Floats, levels: str, least: float = 0.0) -> str:
    """A level a value from `least` to the largest; a space for what is not known."""
    span = float(np.nanmax(values)) - least
    part = np.clip((values - least) / span if span > 0 else values * 0.0 + 1.0, 0.0, 1.0)
    return "".join(" " if not np.isfinite(p) else levels[min(int(p * len(levels)), len(levels) - 1)] for p in part)


def shares(causes: Sequence[tuple[str, float]], *, places: int = PLACES, ascii_only: bool = False) -> Line | None:
    """Shares of the time by cause, the largest first, as one bar with its legend."""
    fills = ASCII_FILLS if ascii_only else FILLS
    shown = [(cause, share) for cause, share in causes if share >= LEAST_SHARE][: len(fills)]
    if not shown:
        return None
    ends = np.round(np.cumsum([share for _, share in shown]) * places).astype(int)
    widths = np.diff(ends, prepend=0)
    bar = "".join(fill * int(width) for fill, width in zip(fills, widths, strict=False))
    legend = "\n".join(f"{fill} {cause} {share:.0%}" for fill, (cause, share) in zip(fills, shown, strict=False))
    return Line("time", bar.ljust(places), legend)
