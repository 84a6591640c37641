"""How parameters are distributed over flows, and how many flows see losses, timeouts and reordering."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from tcpfit.corpus.summary.shares import share
from tcpfit.parameters import NAMES

SHOWN = ("p", "q_tilde", "m", "p_to", "rtt", "rtt_min", "rto", "w", "w_max", "b", "d", "a_h")
"""Parameters whose distribution is given."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
PER_DECADE = 8
LINEAR = ("p_to",)
BINS = 20

SEEN = {
    "losses": ("lost_segments", "at least one lost segment"),
    "timeouts": ("timeouts", "at least one expiry of the retransmission timer"),
    "fast recoveries": ("fast_recoveries", "at least one fast recovery"),
    "needless retransmissions": ("spurious_retransmissions", "data sent again that had not been lost"),
    "reordering": ("reordered_segments", "at least one segment that arrived after a later one"),
    "copies by the network": ("duplicated_segments", "at least one segment that arrived twice"),
    "zero windows": ("zero_window_episodes", "the receiver closed its window"),
    "congestion marks": ("mark_events", "ECN marks that the sender was told of"),
}


def prevalence(flows: pl.DataFrame) -> list[dict[str, Any]]:
    """For each thing that a flow may see: share of `flows` and of their `bytes`."""
    rows = []
    for name, (column, meaning) in SEEN.items():
        known = flows.filter(pl.col(column).is_not_null())
        seen = (pl.col(column) > 0) * pl.col("weight")
        size = pl.col("data_bytes")
        rows.append(
            {
                "what": name,
                "meaning": meaning,
                "flows": share(seen, "weight", known),
                "bytes": share(seen * size, pl.col("weight") * size, known),
            }
        )
    return rows


def parameters(flows: pl.DataFrame) -> list[dict[str, Any]]:
    """Every parameter of `SHOWN` that some flow has: flows, quantiles over flows, and a histogram.

    `edges` has one more than `counts`; edges are logarithmic but for shares. Values of 0, which a logarithm has no
    place for, are counted in `zero`.
    """
    rows = []
    for name in SHOWN:
        some = flows.filter(pl.col(name).is_finite()).sort(name, maintain_order=True)
        if not some.height:
            continue
        value, weight = some[name].to_numpy(), some["weight"].to_numpy()
        unit, meaning = NAMES[name]
        edges = _edges(value[value > 0], name in LINEAR) if (value > 0).any() else np.array([0.0, 1.0])
        positive = value > 0 if name not in LINEAR else np.ones(len(value), bool)
        counts, _ = np.histogram(value[positive], bins=edges, weights=weight[positive])
        rows.append(
            {
                "name": name,
                "unit": unit,
                "meaning": meaning,
                "flows": float(weight.sum()),
                "zero": float(weight[~positive].sum()),
                "quantiles": dict(zip(map(str, QUANTILES), weighted_quantiles(value, weight, QUANTILES), strict=True)),
                "edges": [float(edge) for edge in edges],
                "counts": [float(count) for count in counts],
            }
        )
    return rows


def weighted_quantiles(value: Any, weight: Any, at: tuple[float, ...]) -> list[float]:
    """Smallest of the sorted values up to which a share `at` of the weight lies."""
    reached = np.cumsum(weight)
    places = np.searchsorted(reached, np.asarray(at) * reached[-1] * (1 - 1e-12))
    return [float(value[min(place, len(value) - 1)]) for place in places]


def _edges(value: Any, linear: bool) -> Any:
    if linear:
        return np.linspace(0.0, 1.0, BINS + 1)
    low = np.floor(np.log10(value.min()) * PER_DECADE)
    high = np.floor(np.log10(value.max()) * PER_DECADE) + 1
    edges = 10.0 ** (np.arange(low, high + 1) / PER_DECADE)
    edges[0], edges[-1] = min(edges[0], value.min()), max(edges[-1], value.max())
    return edges
