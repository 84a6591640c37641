"""`tcpfit rank`: every model on every flow, each caveat in a column of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import options
from .reading import Work, read, tell_warnings

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis


@click.command(short_help="Rank the models on every flow of captures, with every caveat.")
@options.captures
@options.ranking
@options.flow("Only this flow. Repeatable.")
@options.top(10, "How many flows a capture the table shows.")
@options.min_segments
@options.form("table", "json", "csv")
@options.source
def rank(
    captures: tuple[str, ...],
    choices: dict[str, Any],
    flows: tuple[int, ...],
    top: int,
    min_segments: int,
    form: str,
    source: options.Source,
) -> int:
    """Rank the models on every flow: how far each is off, how sure the order is, and which assumptions fail.

    \b
    tcpfit rank capture.pcap.gz
    tcpfit rank capture.pcap --models mathis,pftk-full,newreno-full+p_to
    tcpfit rank capture.pcap --fit pftk-full.b --block 8
    tcpfit rank *.pcap --rule recovery-point --format csv > ranking.csv

    off: predicted against observed rate of the steady part. block: error of a block that is predicted from the others.
    best: share of the block samples in which the model is best. Models that do not apply come last.
    """
    analyses: list[Analysis] = []
    status, first = 0, True
    for capture in captures:
        with Work(capture) as work:
            analysis = read(capture, source)
            analysis = analysis.select(flows or None, min_segments=min_segments).ranked_by(**choices)
            if form == "json":
                analyses.append(analysis)
            else:
                _print(analysis, form, top, first)
            first = False
        status |= work.status
    if form == "json":
        from tcpfit.report import contract, ranked

        click.echo(contract.dumps(ranked.document(analyses)))
    return status


def _print(analysis: Analysis, form: str, top: int, first: bool) -> None:
    from tcpfit.report import ranked, terminal

    if form == "csv":
        tell_warnings(analysis)
        for text in ranked.csv_texts(analysis, header=first):
            click.echo(text, nl=False)
        return
    if not first:
        click.echo()
    ranked.show(analysis, terminal.console(), top=top)
