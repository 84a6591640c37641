"""How verbs read a capture: with a bar of progress, and with a sentence for what goes wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import click

from tcpfit.exceptions import CaptureError, InvalidParameter, TcpfitError

from .errors import UNWRITTEN, complain, debugging, unexpected
from .options import Joined

if TYPE_CHECKING:
    import polars as pl

    from tcpfit.analysis import Analysis
    from tcpfit.readers import Pieces, Progress

    from .options import Source


SEGMENTS = "segments.parquet"
"""The table of segments in a folder of tables."""


def read(capture: str, source: Source, *, segments: bool | Pieces = False) -> Analysis:
    """Analyse a capture, with progress on standard error where that is a terminal."""
    from tcpfit import readers
    from tcpfit.analysis import Analysis

    which = (source.vantage, source.filter, source.from_s, source.to_s)
    with _progress(capture) as progress:
        asked = readers.Settings(*which, progress, segments, source.max_flows, source.max_memory)
        if isinstance(capture, Joined):
            from tcpfit.corpus.trace import through_a_pipe

            reading = through_a_pipe(_there(capture.parts), source.reader, asked)
        else:
            reading = readers.read(capture, source.reader, asked)
    return under(source.key, Analysis(str(capture), reading))


def _there(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The parts of a capture, each a file that can be opened: one that is not there is a mistake, and no damage."""
    for part in parts:
        try:
            open(part, "rb").close()
        except OSError as error:
            raise CaptureError(f"{part}: {error.strerror or error}; the parts are not joined without it") from None
    return parts


def read_between(capture: str, source: Source, choose: Callable[[Analysis], Sequence[int]]) -> Analysis:
    """Analyse a capture, with the segments between the ends of the flows that `choose` names.

    A file is read twice, so that memory does not grow with its packets. What comes through a pipe, or is dissected by
    another program, is read once and kept whole; so is a file that grew, if other flows are chosen the second time. The
    tables and warnings are those of the reading that the segments are from: a bound may end it elsewhere.
    """
    if not can_be_read_again(capture, source):
        return read(capture, source, segments=True)
    plain = replace(source, key=None)
    ends = _chosen(read(capture, plain), choose)
    analysis = _read_those(capture, plain, ends)
    if not _chosen(analysis, choose).equals(ends):
        return read(capture, source, segments=True)
    return under(source.key, analysis)


def read_connection(capture: str, source: Source, frame: int) -> Analysis:
    """Analyse a capture, with the segments of the frame's connection; with none where it is no TCP segment.

    A file is read twice, as by `read_between`; one that has another frame there the second time is kept whole.
    """
    if not can_be_read_again(capture, source):
        return read(capture, source, segments=True)
    plain = replace(source, key=None)
    found: list[pl.DataFrame] = []
    analysis = read(capture, plain, segments=lambda piece: found.append(_framed(piece, frame)))
    analysis = analysis.with_segments(found)
    named = analysis.segments
    if not named.is_empty():
        from tcpfit.analysis import both_ways

        analysis = _read_those(capture, plain, both_ways(named))
        if not _framed(analysis.segments, frame).equals(named):
            return read(capture, source, segments=True)
    return under(source.key, analysis)


def read_out(capture: str, source: Source, take: Pieces) -> Analysis:
    """Analyse a capture while its segments are handed to `take`; memory does not grow with them."""
    if source.key is None:
        return read(capture, source, segments=take)
    from tcpfit.anonymity import Pseudonyms

    names = Pseudonyms(source.key)
    return read(capture, source, segments=lambda piece: take(names.in_table(piece)))


def read_into(target: Path, capture: str, source: Source) -> tuple[Analysis, str]:
    """Analyse a capture while its segments go into a Parquet file; give back the run that this has, too."""
    from tcpfit.segment_file import SegmentFile

    with SegmentFile(target) as file:
        return read_out(capture, source, file.add), file.run


def with_saved(folder: Path, analysis: Analysis, flows: Sequence[int]) -> Analysis:
    """The analysis with the segments between the ends of these flows, out of the file that it wrote in the folder."""
    import polars as pl

    ends = analysis.ends(flows)
    those = pl.scan_parquet(folder / SEGMENTS).join(ends.lazy(), on=ends.columns, how="semi", maintain_order="left")
    return analysis.with_segments([those.collect(engine="streaming")])


def can_be_read_again(capture: str, source: Source) -> bool:
    """It is a file, and reading it costs little."""
    return source.reader == "engine" and Path(capture).is_file()


def _read_those(capture: str, source: Source, ends: pl.DataFrame) -> Analysis:
    """Analyse a capture, with the segments between those ends."""
    pieces: list[pl.DataFrame] = []

    def keep(piece: pl.DataFrame) -> None:
        pieces.append(piece.join(ends, on=ends.columns, how="semi", maintain_order="left"))

    return read(capture, source, segments=keep).with_segments(pieces)


def _framed(segments: pl.DataFrame, frame: int) -> pl.DataFrame:
    import polars as pl

    return segments.filter(pl.col("frame") == frame)


def _chosen(analysis: Analysis, choose: Callable[[Analysis], Sequence[int]]) -> pl.DataFrame:
    return analysis.ends(choose(analysis))


def tell_warnings(analysis: Analysis) -> None:
    """Say on standard error what is odd about the capture, where the output has no room for it."""
    for warning in analysis.warnings:
        complain(f"{analysis.path}: {warning}")


def under(key: bytes | None, analysis: Analysis) -> Analysis:
    """The analysis with its addresses under a key, where there is one."""
    return analysis if key is None else analysis.anonymized(key)


class Work:
    """Work on one capture: what goes wrong in the block is said in a sentence, and `status` is 1 after it.

    An argument that makes no sense ends the command instead, and so do a reader of the output that went away and a disk
    that has no room for it.
    """

    def __init__(self, capture: str) -> None:
        self._capture = capture
        self.status = 0

    def __enter__(self) -> Work:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        if not isinstance(error, Exception) or isinstance(error, (BrokenPipeError, click.ClickException)):
            return False
        if isinstance(error, OSError) and error.errno in UNWRITTEN and error.filename is None:
            return False
        if isinstance(error, InvalidParameter):
            raise click.UsageError(str(error)) from error
        if isinstance(error, TcpfitError):
            complain(str(error))
        elif debugging():
            return False
        else:
            complain(f"{self._capture}: {unexpected(error)}")
        self.status = 1
        return True


@contextmanager
def _progress(capture: str) -> Iterator[Progress | None]:
    """A bar on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("standard input" if capture == "-" else Path(capture).name, total=None)
        yield lambda read, total: bars.update(task, completed=read, total=total or None)
