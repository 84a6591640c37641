"""`tcpfit report`: captures in, a page a capture out that can be mailed and opened anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from . import corpus_report, options, pages
from .errors import check_spelling, spare_captures_in, tell_path
from .reading import SEGMENTS, Work, read_between, read_into, under, with_saved
from .streams import beside

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

OF_BOTH = {"captures", "output", "anonymize", "anonymize_key"}
OF_CORPORA = {"form", "by", "worst", "linked"}
"""Parameters of the command that are of captures and corpora, and of corpora only; all others are of captures."""


@click.command(short_help="Write a report with figures as one HTML file.")
@options.captures_called("CAPTURE|DIR|CORPUS...")
@click.option(
    "-o",
    "--output",
    type=options.Place(),
    metavar="PATH",
    help="The HTML file; of several captures the folder for NAME.html. By default NAME.html here.",
)
@pages.DRAWN
@pages.DATA
@options.form("html", "table", "json", help="Of a corpus: a page, or on standard output a table or JSON.")
@click.option("--by", metavar="LABEL", help="Of a corpus: compare the captures with each value of this label.")
@click.option(
    "--worst",
    type=options.Whole(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="Of a corpus: how many of the dearest flows are listed.",
)
@click.option("--pages", "linked", is_flag=True, help="Of a corpus: also write a report of each of these flows.")
@options.flow("Only this flow. Repeatable.")
@options.ranking
@options.source
def report(
    captures: tuple[str, ...],
    output: Path | None,
    drawn: int,
    data: bool,
    form: str,
    by: str | None,
    worst: int,
    linked: bool,
    flows: tuple[int, ...],
    choices: dict[str, Any],
    source: options.Source,
) -> int:
    """Write a report of each capture: verdict, how sure, what it looks like, and the evidence.

    \b
    tcpfit report capture.pcap.gz
    tcpfit report capture.pcap --flow 3 -o flow-3.html
    tcpfit report *.pcapng -o reports/ --data
    tcpfit analyze big.pcap --output tables/ && tcpfit report tables/big
    tcpfit batch captures/ -o OUT && tcpfit report OUT -o corpus.html --pages
    tcpfit report OUT --by site --format table
    tcpfit report BEFORE AFTER -o changes.html

    The file holds all that it shows and loads nothing: it can be mailed, and opened without a network. DIR is a folder
    of tables that tcpfit saved; without segments in it the figures of packets are missing, and the report says so.
    A CORPUS is what tcpfit batch wrote: the report is of all its captures together, and of several it compares them
    with the first.
    """
    corpora = [capture for capture in captures if _is_corpus(capture)]
    if corpora:
        if len(corpora) < len(captures):
            raise click.UsageError("a corpus and a capture do not go into one report")
        _refuse(
            _given() - OF_BOTH - OF_CORPORA, "for captures; a data set has the settings that tcpfit batch was given"
        )
        return corpus_report.write(corpora, output, form=form, by=by, worst=worst, pages=linked, key=source.key)
    _refuse(
        _given() & OF_CORPORA - ({"form"} if form == "html" else set()), "for a corpus; tcpfit analyze prints captures"
    )
    captures = tuple(each for capture in captures for each in _inside(capture))
    status = 0

    def shown(analysis: Analysis) -> Sequence[int]:
        return flows or analysis.largest()[: max(drawn, 1)]  # packets of none would be a page that lacks them

    paths = pages.targets(captures, output, "--output")
    for path in paths if data else ():
        check_spelling(path)
        spare_captures_in(pages.tables_beside(path), "*.parquet", captures)
    for capture, path in zip(captures, paths, strict=True):
        run = None
        with Work(capture) as work:
            if _is_folder(capture):
                analysis = under(source.key, _load(capture))
            elif data:
                folder = pages.tables_beside(path)
                analysis, run = read_into(folder / SEGMENTS, capture, source)
                analysis = with_saved(folder, analysis, shown(analysis))
            else:
                analysis = read_between(capture, source, shown)
            analysis = analysis.select(flows) if flows else analysis
            pages.write(analysis.ranked_by(**choices), path, drawn=len(flows) or drawn, data=data, run=run)
            with beside():
                tell_path(path)
        status |= work.status
    return status


def _given() -> set[str]:
    """Names of the parameters that are on the command line."""
    context = click.get_current_context()
    names = {param.name for param in context.command.params if param.name is not None}
    return {name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def _refuse(names: set[str], said: str) -> None:
    """End the command where one of these parameters was given: what it asks for would not be done."""
    params = click.get_current_context().command.params
    options = [max(param.opts, key=len) for param in params if param.name in names]
    if options:
        raise click.UsageError(f"{', '.join(options)}: {said}")


def _is_corpus(capture: str) -> bool:
    return capture != "-" and (Path(capture) / "manifest.json").is_file()


def _is_folder(capture: str) -> bool:
    return capture != "-" and Path(capture).is_dir()


def _inside(capture: str) -> list[str]:
    """The capture, or of a folder the folders of saved tables: itself, or those in it."""
    if not _is_folder(capture):
        return [capture]
    from tcpfit.readers.saved import is_saved

    folder = Path(capture)
    inside = sorted(str(each) for each in folder.iterdir() if each.is_dir() and is_saved(each))
    return [capture] if is_saved(folder) or not inside else inside


def _load(folder: str) -> Analysis:
    from tcpfit.analysis import load

    return load(folder)
