"""`tcpfit rank`: every model on every flow, each caveat in a column of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import options
from .errors import complain
from .reading import Work, read

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis


@click.command(short_help="Rank the models on every flow of captures, with every caveat.")
@click.argument("captures", metavar="CAPTURE...", nargs=-1, required=True)
@options.ranking
@options.flow("Only this flow. Repeatable.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="How many flows a capture the table shows.",
)
@click.option(
    "--min-segments",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Only flows with at least N data segments.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="What to print.",
)
@options.reader
@options.vantage
@options.selection
def rank(
    captures: tuple[str, ...],
    models: str | None,
    rule: str,
    block: int | None,
    fits: tuple[str, ...],
    flows: tuple[int, ...],
    top: int,
    min_segments: int,
    form: str,
    reader: str,
    vantage: str | None,
    filter_: str | None,
    from_s: float | None,
    to_s: float | None,
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
    if captures.count("-") > 1:
        raise click.UsageError("standard input ('-') can be given once")
    choices = options.ranking_choices(models, rule, block, fits)
    analyses: list[Analysis] = []
    status, first = 0, True
    for capture in captures:
        with Work(capture) as work:
            analysis = read(capture, reader=reader, vantage=vantage, filter_=filter_, from_s=from_s, to_s=to_s)
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
        for warning in analysis.warnings:
            complain(f"{analysis.path}: {warning}")
        for line in ranked.csv(analysis, header=first):
            click.echo(line, nl=False)
        return
    if not first:
        click.echo()
    ranked.show(analysis, terminal.console(), top=top)
