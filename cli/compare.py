"""`tcpfit compare`: the labels of a capture beside those of tshark, and why they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import options
from .errors import complain
from .reading import Work, read, under

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis
    from tcpfit.comparison import Comparison


@click.command(short_help="Compare the labels of a capture with tshark's, packet by packet.")
@click.argument("capture")
@click.option(
    "--against", type=click.Choice(["tshark"]), default="tshark", show_default=True, help="What to compare with."
)
@options.flow("Only this flow. Repeatable.")
@options.form("table", "json", "csv")
@click.option("--all", "every", is_flag=True, help="Show every differing packet of every flow in the table.")
@options.vantage
@options.anonymity
def compare(
    capture: str,
    against: str,
    flows: tuple[int, ...],
    form: str,
    every: bool,
    vantage: str | None,
    key: bytes | None,
) -> int:
    """Compare the labels of a capture with tshark's (tcp.analysis), packet by packet, and say why they differ.

    \b
    tcpfit compare capture.pcap.gz
    tcpfit compare capture.pcap --flow 3 --all
    tcpfit compare capture.pcap --format csv > packets.csv

    The table has what differs; json and csv have every packet that either of the two labels. A difference that no rule
    explains is called unexplained.
    """
    with Work(capture) as work:
        from tcpfit.comparison import check
        from tcpfit.comparison import compare as run

        check(capture)  # say so before the analysis, not after it
        analysis = read(capture, options.Source(vantage=vantage))
        chosen = analysis.select(flows or None)
        comparison = run(analysis, capture, flows=flows or None)  # by addresses, which tshark's output has too
        _print(comparison, under(key, chosen), form, every)
    return work.status


def _print(comparison: Comparison, analysis: Analysis, form: str, every: bool) -> None:
    from tcpfit.comparison import CLASSES
    from tcpfit.report import contract, differences, terminal

    if form == "table":
        differences.show(comparison, CLASSES, analysis, terminal.console(), every=every)
        return
    for warning in [*analysis.warnings, *([comparison.warning] if comparison.warning else [])]:
        if form == "csv":
            complain(f"{analysis.path}: {warning}")
    if form == "json":
        click.echo(contract.dumps(differences.document(comparison, analysis)))
    else:
        for text in differences.csv(comparison):
            click.echo(text, nl=False)
