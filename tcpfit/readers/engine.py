"""The native reader: the engine decodes and tracks in one pass."""

from __future__ import annotations

from tcpfit import engine
from tcpfit.readers import Reading, Settings


def read(path: str, settings: Settings) -> Reading:
    """Read a capture with the engine; see `tcpfit.readers.read`."""
    pieces = settings.segments if callable(settings.segments) else None
    result = engine.analyze(
        path,
        vantage=settings.vantage,
        filter=settings.filter,
        from_s=settings.from_s,
        to_s=settings.to_s,
        segments=bool(settings.segments),
        progress=settings.progress,
        max_flows=settings.max_flows,
        max_memory=settings.max_memory,
        pieces=None if pieces is None else lambda stream: pieces(engine.frame(stream, "segments")),
    )
    tables = engine.frames(result)
    if pieces is not None:
        pieces(tables.pop("segments"))
    return Reading(dict(result.capture), tables)
