"""Rows of tables as JSON, made column by column: a tenth of the time that dictionaries and their encoder take.

The text is that of `dumps` to the byte: ', ' and ': ' between items, only ASCII, floats as Python writes them.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import polars as pl

PLAIN = 1e-4
"""Floats below it Python writes in another form than polars: 1e-05 is 0.00001 there, and 1e-07 is 1e-7."""


_ENCODER = json.JSONEncoder(allow_nan=False)


def dumps(value: Any) -> str:
    """JSON without NaN or infinity."""
    return _ENCODER.encode(value)


def objects(table: pl.DataFrame, encoded: Collection[str] = ()) -> pl.Series:
    """Each row as the text of a JSON object, its keys the names of the columns; NaN and infinity are null.

    Columns named in `encoded` are JSON already.
    """
    pieces: list[pl.Expr] = []
    for number, column in enumerate(table.iter_columns()):
        pieces += [
            pl.lit((", " if number else "{") + dumps(column.name) + ": "),
            pl.lit(column if column.name in encoded else _texts(column)),
        ]
    return table.select(pl.concat_str(*pieces, pl.lit("}")).alias("object")).to_series()


def _texts(column: pl.Series) -> pl.Series:
    """The values of a column as JSON."""
    if column.dtype.is_float():
        texts = _floats(column)
    elif column.dtype.is_integer() or column.dtype == pl.Boolean:
        texts = column.cast(pl.String)
    else:
        texts = _distinct(column)
    return texts.fill_null("null")


def _floats(column: pl.Series) -> pl.Series:
    finite = column.to_frame().select(pl.when(pl.all().is_finite()).then(pl.all())).to_series()
    size = finite.abs()
    tiny = ((size < PLAIN) & (size > 0)).fill_null(value=False).arg_true()
    texts = finite.cast(pl.String)
    return texts.scatter(tiny, [repr(value) for value in finite.gather(tiny).to_list()]) if len(tiny) else texts


def _distinct(column: pl.Series) -> pl.Series:
    """Text, and lists of it: few of them differ."""
    if isinstance(column.dtype, pl.List):
        keys = column.to_frame("value").select(pl.struct("value").struct.json_encode()).to_series()
        known = {key: dumps(json.loads(key)["value"]) for key in keys.unique().to_list()}
    else:
        keys = column.cast(pl.String)
        known = {text: dumps(text) for text in keys.drop_nulls().unique().to_list()}
    return keys.replace_strict([*known], [*known.values()], default=None, return_dtype=pl.String)
