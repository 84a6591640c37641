"""Points that cannot be told apart on a screen left out: of each column of pixels the first, the last and the extremes.

What is drawn of what is left covers the same pixels as the whole (the min-max rule; Jugel et al. 2014, M4). Events are
never thinned out.
"""

from __future__ import annotations

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
    """Rows of a line over `x`, in its order: of each column of `x` the first, the last, the least and most of `y`."""
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
