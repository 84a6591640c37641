"""One capture of a corpus, read: a file, a URL, or the parts of a rotated capture as one trace."""

from __future__ import annotations

from collections.abc import Sequence

from tcpfit import readers
from tcpfit.analysis import Analysis
from tcpfit.corpus.files import text
from tcpfit.corpus.settings import Settings


def analyse(paths: Sequence[str], settings: Settings) -> Analysis:
    """The analysis of the trace in these files, ranked as the settings say.

    Raises CaptureError where it cannot be read.
    """
    asked = readers.Settings(
        settings.vantage,
        settings.filter,
        settings.from_s,
        settings.to_s,
        max_flows=settings.max_flows,
        max_memory=settings.max_memory,
    )
    return Analysis(text(paths[0]), readers.read(paths[0], settings.reader, asked), settings.choices())


def without_path(sentence: str, paths: Sequence[str]) -> str:
    """A sentence on a capture without its name, which is not part of its content."""
    for path in paths:
        for name in (path, text(path)):
            sentence = sentence.removeprefix(f"{name}: ").replace(name, "the capture")
    return sentence
