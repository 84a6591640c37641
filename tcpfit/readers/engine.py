"""The native reader: the engine decodes and tracks in one pass."""

from __future__ import annotations

from tcpfit import engine
from tcpfit.readers import Reading, Settings


def read(path: str, settings: Settings) -> Reading:
    """Read a capture with the engine; see `tcpfit.readers.read`."""
    result = engine.analyze(
        path,
        vantage=settings.vantage,
        filter=settings.filter,
        from_s=settings.from_s,
        to_s=settings.to_s,
        segments=settings.segments,
        progress=settings.progress,
        max_flows=settings.max_flows,
        max_memory=settings.max_memory,
    )
    return Reading(dict(result.capture), engine.frames(result))
