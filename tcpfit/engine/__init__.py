"""The native engine's typed door; `_engine.pyi` says what it gives."""

from __future__ import annotations

import polars as pl

from tcpfit.engine._engine import Result, Tracker, analyze
from tcpfit.schema import polars_schema

__all__ = ["Result", "Tracker", "analyze", "frames"]


def frames(result: Result) -> dict[str, pl.DataFrame]:
    """Tables of a result by name, with exactly the dtypes of `tcpfit.schema`; `segments` only if it was asked for."""
    # the engine gives Enums in the form of polars 2; the cast keeps the promise for other versions
    streams = {name: getattr(result, name) for name in ("flows", "events", "rounds", "segments")}
    return {
        name: pl.DataFrame(stream).cast(polars_schema(name)) for name, stream in streams.items() if stream is not None
    }
