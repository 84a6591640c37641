"""Wireshark display filters that show what a report talks about."""

from __future__ import annotations

from collections.abc import Iterable

from tcpfit.diagnosis.findings.view import in_frames
from tcpfit.diagnosis.findings.view import of_flow as of_flow


def of_frames(frames: Iterable[int | None]) -> str:
    """These frames, without those that are not in the capture; '' where none is left."""
    there = sorted({frame for frame in frames if frame is not None})
    return in_frames(there) if there else ""


def between_frames(first: int | None, last: int | None) -> str:
    """The frames from the first to the last, of whatever flow; one alone where the other is not in the capture."""
    if first is None or last is None:
        return of_frames((first, last))
    return f"frame.number >= {first} && frame.number <= {last}"
