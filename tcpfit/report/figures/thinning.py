"""Points left out that hardly show: of clouds each column keeps the first, the last and the extremes (the min-max rule;
Jugel et al. 2014, M4), of lines those points stay without which the line would be farthest off (Douglas and Peucker
1973). Events are never thinned out.
"""

from __future__ import annotations

import heapq

import numpy as np
import polars as pl


def bars(table: pl.DataFrame, most: int) -> pl.DataFrame:
    """Rows `t`, `left`, `right`, `frame`, in order of t: at most `most` of them, one a column of time.

    A row stands for `segments` rows: it begins with the first of them and covers all their bytes.
    """
    if table.height <= most:
        return table.with_columns(segments=pl.lit(1, pl.UInt32))
    return (
        table.group_by(_column(table, "t", most).alias("_column"), maintain_order=True)
        .agg(
            pl.col("t").first(),
            pl.col("left").min(),
            pl.col("right").max(),
            pl.col("frame").first(),
            pl.len().alias("segments"),
        )
        .drop("_column")
    )


def line(table: pl.DataFrame, x: str, y: str, most: int) -> pl.DataFrame:
    """Rows of a line over `x`, in its order, `most` at most; straight between them it is as near as so many can be.

    Point after point the one is kept that lies farthest above or below the line through those kept before.
    """
    if table.height <= most:
        return table
    at, value = (table[name].cast(pl.Float64).to_numpy() for name in (x, y))
    farthest: list[tuple[float, int, int, int]] = []

    def look(first: int, last: int) -> None:
        """What lies farthest from the line between two rows."""
        if last - first > 1:
            between = slice(first + 1, last)
            straight = np.interp(at[between], at[[first, last]], value[[first, last]])
            off = np.abs(value[between] - straight)
            row = int(np.argmax(off))
            heapq.heappush(farthest, (-float(off[row]), first, first + 1 + row, last))

    kept = [0, table.height - 1]
    look(*kept)
    while len(kept) < most and farthest:
        _, first, row, last = heapq.heappop(farthest)
        kept.append(row)
        look(first, row)
        look(row, last)
    return table[sorted(kept)]


def interpolation(table: pl.DataFrame, most: int) -> str:
    """How a line of steps is drawn: straight from point to point where steps were left out."""
    return "step-after" if table.height < most else "linear"


def cloud(table: pl.DataFrame, x: str, y: str, most: int) -> pl.DataFrame:
    """Rows of points, in their order: of each column of `x` the first, the last, the least and most of `y`."""
    if table.height <= most:
        return table
    numbered = table.with_row_index("_row").with_columns(_column=_column(table, x, max(most // 4, 1)))
    kept = numbered.group_by("_column").agg(
        pl.col("_row").first().alias("first"),
        pl.col("_row").last().alias("last"),
        pl.col("_row").get(pl.col(y).arg_min()).alias("least"),
        pl.col("_row").get(pl.col(y).arg_max()).alias("most"),
    )
    rows = pl.concat([kept[name] for name in ("first", "last", "least", "most")]).unique().sort()
    return table[rows]


def steps(table: pl.DataFrame, y: str) -> pl.DataFrame:
    """A step line's rows where `y` changes, and its last."""
    if table.height < 2:
        return table
    changes = (table[y] != table[y].shift()).fill_null(True)
    return table.filter(changes | (pl.int_range(table.height, eager=True) == table.height - 1))


def _column(table: pl.DataFrame, x: str, columns: int) -> pl.Series:
    first, last = table[x].min(), table[x].max()
    width = (last - first) / columns if last > first else 1  # type: ignore[operator]
    return ((table[x] - first) / width).floor().clip(0, columns - 1).cast(pl.Int64)
