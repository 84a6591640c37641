"""Corpora or labels side by side: medians and shares of each, and how they differ from those of the first.

Flows of one capture are alike, so captures are what is drawn again: the interval of a difference is that of bootstraps
over the clusters of each side (Davison and Hinkley 1997, Bootstrap Methods and their Application, 3.8). A side with
fewer than `FEWEST` clusters has no interval: what one capture shows of a site is not known from that capture.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DRAWS = 400
SEED = 1997
FEWEST = 4

MEDIANS = {
    "goodput_bps": ("median goodput", "bit/s"),
    "transfer_time_s": ("median transfer time", "s"),
    "rtt": ("median RTT", "s"),
    "p": ("median p of flows with losses", ""),
}
"""Compared as a ratio."""

SHARES = {
    "losses": pl.col("lost_segments") > 0,
    "timeouts": pl.col("timeouts") > 0,
    "reordering": pl.col("reordered_segments") > 0,
}
"""Compared as a difference: shares of flows that see it, beside those of every cause that a verdict names."""


SIDE = "value of the label"
"""The column that says on which side a flow is; a name that no column of the flows has."""


def contrast(flows: pl.DataFrame, by: str) -> dict[str, Any]:
    """`flows` of every value of the column `SIDE`, against those of the first value: a row a quantity and value.

    `by` is what the values are of. Of medians `change` is the ratio, of shares the difference; `clear` where its 95 %
    interval excludes no change. Some flow has a value.
    """
    sides = flows[SIDE].drop_nulls().unique().sort().to_list()
    tables = {side: flows.filter(pl.col(SIDE) == side) for side in sides}
    rows = []
    for name, (what, unit) in MEDIANS.items():
        drawn = {
            side: _medians(table.filter(pl.col(name) > 0), name, number)
            for number, (side, table) in enumerate(tables.items())
        }
        rows += _rows(what, unit, drawn, ratio=True)
    causes = flows["primary"].drop_nulls().unique().sort().to_list()
    shares = SHARES | {f"verdict {cause}": pl.col("primary") == cause for cause in causes}
    for what, seen in shares.items():
        drawn = {side: _shares(table, seen, number) for number, (side, table) in enumerate(tables.items())}
        rows += _rows(f"share of flows: {what}", "", drawn, ratio=False)
    return {
        "by": by,
        "sides": [
            {
                "value": side,
                "flows": float(table["weight"].sum()),
                "captures": table["capture"].n_unique(),
                "clusters": table["cluster"].n_unique(),
            }
            for side, table in tables.items()
        ],
        "rows": rows,
    }


Drawn = tuple[float | None, Floats | None]
"""A value, and what it is in every bootstrap; None without enough clusters."""


def _rows(what: str, unit: str, drawn: dict[str, Drawn], *, ratio: bool) -> list[dict[str, Any]]:
    (base, (first, bootstraps)), *others = drawn.items()
    rows: list[dict[str, Any]] = [{"what": what, "unit": unit, "side": base, "value": first}]
    for side, (value, drawings) in others:
        row: dict[str, Any] = {"what": what, "unit": unit, "side": side, "value": value, "against": base}
        if value is not None and first is not None and (first > 0 or not ratio):
            row["change"] = value / first if ratio else value - first
            if bootstraps is not None and drawings is not None:
                with np.errstate(divide="ignore", invalid="ignore"):
                    changes = drawings / bootstraps if ratio else drawings - bootstraps
                changes = changes[np.isfinite(changes)]
                if len(changes) > DRAWS // 2:
                    low, high = (float(end) for end in np.percentile(changes, [2.5, 97.5]))
                    none = 1.0 if ratio else 0.0
                    row |= {"low": low, "high": high, "clear": not low <= none <= high}
        rows.append(row)
    return rows


def _picks(clusters: int, side: int) -> Floats:
    # how often each cluster is drawn, a row a bootstrap; sides of as many clusters are not drawn alike
    rng = np.random.default_rng((SEED, side))
    return rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=DRAWS).astype(np.float64)


def _medians(table: pl.DataFrame, name: str, side: int) -> Drawn:
    if not table.height:
        return None, None
    some = table.sort(name, maintain_order=True)
    value, weight = some[name].to_numpy(), some["weight"].to_numpy()
    cluster = some["cluster"].rank("dense").to_numpy().astype(np.int64) - 1
    median = _median(value, np.cumsum(weight))
    clusters = int(cluster.max()) + 1
    if clusters < FEWEST:
        return median, None
    drawn = [_median(value, np.cumsum(weight * pick[cluster])) for pick in _picks(clusters, side)]
    return median, np.array(drawn)


def _median(value: Floats, reached: Floats) -> float:
    return float(value[min(np.searchsorted(reached, reached[-1] / 2), len(value) - 1)]) if reached[-1] > 0 else np.nan


def _shares(table: pl.DataFrame, seen: pl.Expr, side: int) -> Drawn:
    if not table.height:
        return None, None
    sums = (
        table.select("cluster", part=seen.fill_null(False) * pl.col("weight"), whole="weight")
        .group_by("cluster", maintain_order=True)
        .sum()
    )
    part, whole = sums["part"].to_numpy(), sums["whole"].to_numpy()
    value = float(part.sum() / whole.sum())
    if len(part) < FEWEST:
        return value, None
    picks = _picks(len(part), side)
    return value, (picks @ part) / (picks @ whole)
