"""`tcpfit analyze`: captures in; flows, parameters, ranking and verdicts out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import options, pages
from .errors import check_spelling, spare_captures_in
from .printer import Printer, is_small
from .reading import SEGMENTS, Work, read, read_between, read_into, with_saved
from .streams import beside

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis


@click.command(short_help="Analyse captures: parameters, ranking and verdict of every flow.")
@options.captures
@options.form("table", "json", "jsonl", "csv")
@click.option(
    "--output",
    type=options.Place(file_okay=False),
    metavar="DIR",
    help="Also write every table as Parquet, a folder a capture.",
)
@click.option("--segments", is_flag=True, help="With --output: the table of segments too, written as they are read.")
@click.option(
    "--html",
    type=options.Place(),
    metavar="FILE",
    help="Also write the report with figures as one HTML file; of several captures a folder of them.",
)
@options.flow("Only this flow, in full. Repeatable.")
@options.top(10, "How many flows a capture the table lists.", least=0)
@options.min_segments
@options.ranking
@options.source
def analyze(
    captures: tuple[str, ...],
    form: str,
    output: Path | None,
    segments: bool,
    html: Path | None,
    flows: tuple[int, ...],
    top: int,
    min_segments: int,
    choices: dict[str, Any],
    source: options.Source,
) -> int:
    """Analyse captures: pcap or pcapng, plain, gzip or zstd; - is standard input.

    \b
    tcpfit analyze capture.pcap.gz
    tcpfit analyze capture.pcap --flow 3 --html flow-3.html
    tcpfit analyze *.pcapng --format csv > flows.csv
    tcpfit analyze big.pcap --from 1m30s --to 2m --output tables/ --segments
    tcpfit analyze receiver.pcap --vantage receiver --filter 'port 443'

    T counts from the first packet of each capture: 10, 2.5s, 250ms, 1m30s. Captures that cannot be read are named, the
    others are analysed all the same, and the exit status is 1.
    """
    if segments and output is None:
        raise click.UsageError("--segments writes into the folder of --output, which is missing")
    reports = [None] * len(captures) if html is None else pages.targets(captures, html, "--html")
    whole = output is None and html is None and not flows and not min_segments
    printing = nullcontext if output is None and html is None else beside
    printer = Printer(form, top=top, in_full=bool(flows))
    status = 0

    def selected(analysis: Analysis) -> Analysis:
        return analysis.select(flows or None, min_segments=min_segments) if flows or min_segments else analysis

    def drawn(analysis: Analysis) -> Sequence[int]:
        return flows or selected(analysis).largest()[: pages.FLOWS]

    for capture, folder, page in zip(captures, _folders(captures, output), reports, strict=True):
        run = None
        if not is_small(capture):
            status |= printer.flush()  # what waits need not wait for it
        with Work(capture) as work:
            if segments and folder is not None:
                analysis, run = read_into(folder / SEGMENTS, capture, source)
                if page is not None:
                    analysis = with_saved(folder, analysis, drawn(analysis))
            elif page is not None:
                analysis = read_between(capture, source, drawn)
            else:
                analysis = read(capture, source)
            analysis = selected(analysis).ranked_by(**choices)
            if folder is not None:
                analysis.write_parquet(folder, run=run)
            if page is not None:
                pages.write(analysis, page, drawn=len(flows) or pages.FLOWS)
            if whole and printer.waits_for(analysis):
                printer.later(analysis)
            else:
                status |= printer.flush()
                with printing():
                    printer.show(analysis)
        status |= work.status
        if printer.due:
            status |= printer.flush()
    status |= printer.flush()
    printer.close()
    return status


def _folders(captures: tuple[str, ...], output: Path | None) -> Sequence[Path | None]:
    """A folder a capture below `output`, named after it; no capture is among the files that are written."""
    if output is None:
        return [None] * len(captures)
    folders = [output / name for name in pages.stems(captures)]
    check_spelling(output)
    for folder in folders:
        spare_captures_in(folder, "*.parquet", captures)
    return folders
