"""`tcpfit batch`: a corpus of captures in; a data set out."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import options
from .errors import complain, debugging, unexpected
from .options import Size

if TYPE_CHECKING:
    from tcpfit.corpus import Progress, Summary

EVERY_S = 10.0
"""Time between lines of progress where standard error is no terminal."""

SHOWN = 20
"""Failures that are listed; the data set has them all."""


@click.command(short_help="Analyse a corpus of captures into a data set.")
@click.argument("corpus", metavar="CORPUS...", nargs=-1)
@click.option("-o", "--output", type=options.Place(file_okay=False), metavar="OUT", help="The data set.")
@click.option(
    "--status",
    type=options.Place(file_okay=False),
    metavar="OUT",
    help="Say what a data set holds and whether a run is writing it.",
)
@click.option("--include", metavar="PATTERN", multiple=True, help="In directories only these files. Repeatable.")
@click.option("--exclude", metavar="PATTERN", multiple=True, help="In directories not these files. Repeatable.")
@click.option("--label", "labels", metavar="NAME=VALUE", multiple=True, help="A label for all captures. Repeatable.")
@click.option("--no-join", is_flag=True, help="Take every part of a rotated capture for a capture of its own.")
@click.option("--workers", type=options.Whole(min=1), metavar="N", help="Worker processes; one a processor.")
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="A dask scheduler, e.g. tcp://host:8786, or `local` for one on this machine. Needs tcpfit[cluster].",
)
@click.option(
    "--time-limit", type=options.Duration(), default="1h", show_default=True, metavar="T", help="Of one capture."
)
@click.option("--memory-limit", type=Size(), metavar="SIZE", help="Of one worker; a share of 80 % of all memory.")
@click.option("--shard-over", type=Size(), metavar="SIZE", help="Split the flows of larger captures between workers.")
@click.option("--force", is_flag=True, help="Analyse everything again.")
@click.option("--prune", is_flag=True, help="Drop captures from the data set that are not in the corpus any more.")
@options.ranking
@options.lasting_source
def batch(
    corpus: tuple[str, ...],
    output: Path | None,
    status: Path | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    labels: tuple[str, ...],
    no_join: bool,
    workers: int | None,
    scheduler: str | None,
    time_limit: float,
    memory_limit: int | None,
    shard_over: int | None,
    force: bool,
    prune: bool,
    choices: dict[str, Any],
    source: options.Source,
) -> int:
    """Analyse a corpus of captures into a data set: Parquet files that polars and DuckDB read.

    \b
    tcpfit batch captures/ -o OUT
    tcpfit batch 'site-*/**/*.pcap.gz' list.csv -o OUT --workers 8
    tcpfit batch s3://bucket/captures/ -o OUT --scheduler tcp://host:8786
    tcpfit batch --status OUT

    A CORPUS is a directory, a capture, a pattern, a URL, or a list of them (.txt, .csv, .jsonl; columns other than
    `path` are labels). Running again does only what is missing or has changed, wherever the last run ended. Exit status
    0: every capture was analysed, 1: some could not be, 130: interrupted, and what was done is in the data set, unless
    it would take the place of results under other settings.
    """
    from tcpfit.exceptions import InvalidParameter, TcpfitError

    try:
        if status is not None:
            if corpus or output:
                raise click.UsageError("--status takes the data set and nothing else")
            return _status(status)
        if not corpus or output is None:
            raise click.UsageError("give the captures and, with -o, the data set")
        from tcpfit.corpus import Settings, run

        choices["models"] = None if choices["models"] is None else tuple(choices["models"])
        with _shown() as progress:
            summary = run(
                corpus,
                output,
                settings=Settings(**_of_readers(source), **choices),
                workers=workers,
                scheduler=scheduler,
                time_limit_s=time_limit,
                memory_limit_bytes=memory_limit,
                shard_over_bytes=shard_over,
                include=include,
                exclude=exclude,
                labels=tuple(map(_label, labels)),
                join=not no_join,
                force=force,
                prune=prune,
                key=source.key,
                progress=progress,
            )
    except InvalidParameter as error:
        raise click.UsageError(str(error)) from error
    except TcpfitError as error:
        complain(str(error))
        return 1
    except OSError as error:
        if debugging() or isinstance(error, BrokenPipeError):
            raise
        complain(f"{error.strerror and unexpected(error) or error}; the data set is as it was, run again to go on")
        return 1
    return _summary(summary, output)


def _of_readers(source: options.Source) -> dict[str, Any]:
    """How captures are read, without the key, which goes into no file."""
    return {name: value for name, value in asdict(source).items() if name != "key"}


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise click.UsageError(f"{text!r} is no label; write NAME=VALUE")
    return name, value


def _summary(summary: Summary, output: Path) -> int:
    """Say what was done; give back the exit status."""
    from tcpfit.report.plain import plain
    from tcpfit.report.words import plural

    known = summary.unchanged - summary.failed_before  # those are among the failures
    said = [f"{summary.analysed} analysed", f"{known} known already"]
    said += ["1 copy" if summary.copies == 1 else f"{summary.copies} copies"] if summary.copies else []
    said += [f"{summary.dropped} dropped"] if summary.dropped else []
    kinds = Counter(failure.status for failure in summary.failures)
    said += [f"{count} {status}" for status, count in sorted(kinds.items())]
    click.echo(
        f"{plain(str(output))}: {plural(summary.captures, 'capture')}: {', '.join(said)}; {summary.seconds:.1f} s"
    )
    for failure in summary.failures[:SHOWN]:
        complain(f"{failure.path}: {failure.status}: {failure.reason}")
    if len(summary.failures) > SHOWN:
        complain(f"and {len(summary.failures) - SHOWN} more; the table `captures` has them all")
    if summary.interrupted:
        if summary.kept_old:
            complain("interrupted; the data set keeps its results of other settings, run again to go on")
        else:
            complain("interrupted; what was done is in the data set, run again to go on")
        return 130
    return 1 if summary.failures else 0


def _status(folder: Path) -> int:
    from tcpfit.corpus import dataset
    from tcpfit.report.plain import plain
    from tcpfit.report.words import plural

    writing = dataset.holder(folder)
    results = sum(1 for path in (folder / ".state").glob("results/*/*") if path.suffix != ".partial")
    if not (folder / "manifest.json").exists() and (writing is not None or results):
        doing = f"being made by {writing}" if writing is not None else "its first run ended early, the next goes on"
        click.echo(f"{plain(str(folder))}: {doing}; {plural(results, 'result')} so far")
        return 0
    manifest = dataset.Corpus(folder).manifest
    rows = manifest.rows()
    kinds = ", ".join(f"{count} {status}" for status, count in manifest.statuses.items()) or "none"
    click.echo(
        f"{plain(str(folder))}: {plural(rows['captures'], 'capture')} ({kinds}) "
        f"in {plural(len(manifest.parts), 'part')}"
    )
    for name, count in rows.items():
        click.echo(f"  {name:<10} {count:>12} {'row' if count == 1 else 'rows'}")
    settings = ", ".join(f"{name}={value}" for name, value in manifest.settings.given().items())
    click.echo(f"  settings   {settings or 'the defaults'}")
    if writing is not None:
        click.echo(f"  being written by {writing}; {results} results wait for its end")
    elif results:
        click.echo(f"  a run ended early; {results} results wait for the next")
    return 0


@contextmanager
def _shown() -> Iterator[Callable[[Progress], None]]:
    """Progress on standard error: a bar on a terminal, a line now and then elsewhere."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    with Bars(TextColumn("{task.description}"), BarColumn(), console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("", total=None)

        def show(progress: Progress) -> None:
            bars.update(bar, description=_said(progress), completed=progress.work_done, total=progress.work or None)

        yield show


class _Lines:
    """A line of progress every few seconds."""

    def __init__(self) -> None:
        self._next = time.monotonic() + EVERY_S

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY_S
            complain(_said(progress))


def _said(progress: Progress) -> str:
    if progress.phase == "commit":
        return f"{progress.done} captures done; writing the data set"
    left = progress.left_s
    parts = [f"{progress.done}/{progress.captures} captures", f"{progress.rate_per_s:.1f}/s"]
    parts += [f"{_length(left)} left"] if left is not None else []
    parts += [f"{progress.failed} failed"] if progress.failed else []
    return ", ".join(parts)


def _length(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{seconds:02}s" if minutes else f"{seconds}s"
