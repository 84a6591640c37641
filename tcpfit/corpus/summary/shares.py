"""Shares with 95 % intervals over flows that come in clusters: those of one capture are more alike than others.

The variance of a ratio of sums over clusters is that of its residuals (Cochran 1977, Sampling Techniques, 3rd ed.,
6.11), on the scale of the logit, with Student's law for the number of clusters. Where that is 0 since all clusters
agree, and where there is one cluster only, the ends are Wilson's over the flows (Wilson 1927,
doi:10.1080/01621459.1927.10502953), and for one cluster `clusters` says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

Z95 = 1.959963984540054


@dataclass(frozen=True)
class Share:
    """A part of a whole: the share, its 95 % interval, the size of the whole and the clusters behind it."""

    share: float | None
    low: float | None
    high: float | None
    n: float
    clusters: int


def share(part: str | pl.Expr, whole: str | pl.Expr, table: pl.DataFrame) -> Share:
    """Sum of `part` over sum of `whole`, columns or expressions that are not negative; rows have a `cluster`."""
    one = pl.col(part) if isinstance(part, str) else part
    all_ = pl.col(whole) if isinstance(whole, str) else whole
    sums = (
        table.select("cluster", part=one.cast(pl.Float64).fill_null(0.0), whole=all_.cast(pl.Float64).fill_null(0.0))
        .group_by("cluster", maintain_order=True)
        .sum()
        .filter(pl.col("whole") > 0)
    )
    return of_sums(sums["part"].to_numpy(), sums["whole"].to_numpy(), float(table.height))


def of_sums(part: Floats, whole: Floats, flows: float) -> Share:
    """The same from the clusters' sums."""
    total, clusters = float(whole.sum()), len(whole)
    if total <= 0:
        return Share(None, None, None, 0.0, 0)
    ratio = min(1.0, float(part.sum()) / total)
    low, high = wilson(ratio, flows)
    if clusters > 1 and 0 < ratio < 1:
        off = part - ratio * whole
        variance = clusters / (clusters - 1) * float(np.sum(off**2)) / total**2
        if variance > 0:
            width = float(special.stdtrit(clusters - 1, 0.975)) * np.sqrt(variance) / (ratio * (1 - ratio))
            middle = special.logit(ratio)
            low, high = float(special.expit(middle - width)), float(special.expit(middle + width))
    return Share(ratio, low, high, total, clusters)


def wilson(ratio: float, n: float) -> tuple[float, float]:
    """Wilson's interval of a share of n."""
    if n <= 0:
        return 0.0, 1.0
    middle = (ratio + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 * np.sqrt(ratio * (1 - ratio) / n + Z95**2 / (4 * n**2)) / (1 + Z95**2 / n)
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))
