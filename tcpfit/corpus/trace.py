"""One capture of a corpus, read: a file, a URL, or the parts of a rotated capture as one trace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from tcpfit import readers
from tcpfit.analysis import Analysis
from tcpfit.arguments import path_text
from tcpfit.corpus import joined
from tcpfit.corpus.files import is_url
from tcpfit.corpus.settings import Settings
from tcpfit.exceptions import CaptureError

STREAMING = ("engine", "dpkt")
"""Readers that take a stream: what has several files, or a URL, comes through a pipe."""


def analyse(paths: Sequence[str], settings: Settings, key: bytes | None = None) -> Analysis:
    """The analysis of the trace in these files, ranked as the settings say; with pseudonyms where there is a key.

    Raises CaptureError where it cannot be read.
    """
    found = _read(paths, settings)
    return found if key is None else found.anonymized(key)


def _read(paths: Sequence[str], settings: Settings) -> Analysis:
    asked = settings.asked()
    if len(paths) == 1 and not is_url(paths[0]):
        reading = readers.read(paths[0], settings.reader, asked)
    else:
        reading = through_a_pipe(paths, settings.reader, asked)
    return Analysis(path_text(paths[0]), reading, settings.choices())


def through_a_pipe(paths: Sequence[str], reader: str, asked: readers.Settings) -> readers.Reading:
    """The trace in these files, or behind a URL; warnings say what is wrong with a part.

    Raises CaptureError where it cannot be read.
    """
    if reader not in STREAMING:
        raise CaptureError(f"{paths[0]}: the reader {reader} reads single local files; take the engine")
    warnings: list[str] = []
    with joined.pipe(paths, warnings) as stream:
        try:
            reading = readers.read(stream, reader, asked)
        except CaptureError as error:
            raise CaptureError(str(error).replace(stream, paths[0])) from None
    return replace(reading, capture=reading.capture | {"warnings": [*warnings, *reading.capture["warnings"]]})


def without_path(sentence: str, paths: Sequence[str]) -> str:
    """A sentence on a capture without its name, which is not part of its content."""
    for path in paths:
        bare = path.partition("://")[2] or path
        for name in (path, path_text(path), os.fsencode(path).decode(errors="replace"), bare):
            sentence = sentence.removeprefix(f"{name}: ").replace(name, "the capture")
    return sentence
