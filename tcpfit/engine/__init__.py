"""The native engine's typed door; `_engine.pyi` says what it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcpfit.engine._engine import Result, Tracker, analyze
from tcpfit.schema import polars_schema

if TYPE_CHECKING:
    from tcpfit.engine._engine import ArrowStream

__all__ = ["Result", "Tracker", "analyze", "frame", "frames"]


def frames(result: Result) -> dict[str, pl.DataFrame]:
    """Tables of a result by name, with exactly the dtypes of `tcpfit.schema`; `segments` only if it was asked for."""
    streams = {name: getattr(result, name) for name in ("flows", "events", "rounds", "segments")}
    return {name: frame(stream, name) for name, stream in streams.items() if stream is not None}


def frame(stream: ArrowStream, name: str) -> pl.DataFrame:
    """The table of that name, or a piece of it, with exactly the dtypes of `tcpfit.schema`."""
    frame, schema = pl.DataFrame(stream), polars_schema(name)
    # the engine gives Enums in the form of polars 2; the cast keeps the promise for other versions
    if name not in _AS_DECLARED:
        _AS_DECLARED[name] = frame.schema == schema
    return frame if _AS_DECLARED[name] else frame.cast(schema)


_AS_DECLARED: dict[str, bool] = {}
"""Whether this polars reads the engine's table with the declared dtypes, once it has read one."""
