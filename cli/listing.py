"""How verbs print a table of rows: lines for people, JSON lines, CSV, or a Parquet file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import options
from .errors import check_spelling, spare_captures

if TYPE_CHECKING:
    import polars as pl

    from tcpfit.analysis import Analysis

LINES_AT_A_TIME = 512


def form(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--format` and `--output`, given to the command as `form` and `output`."""
    output = click.option(
        "--output",
        type=options.Place(dir_okay=False),
        metavar="FILE",
        help="The file that parquet writes.",
    )
    several = options.form("table", "jsonl", "csv", "parquet", help="What to print; parquet needs --output.")
    return several(output(command))


def check_form(form: str, output: Path | None, capture: str) -> None:
    """Raise UsageError where the options contradict each other, or the output is the capture itself."""
    if (form == "parquet") != (output is not None):
        rule = "--format parquet needs --output FILE" if output is None else "--output goes with --format parquet only"
        raise click.UsageError(rule)
    if output is not None:
        spare_captures([output], [capture])
        check_spelling(output)


def write(
    analysis: Analysis,
    table: pl.DataFrame,
    lines: Callable[[Analysis, pl.DataFrame, int], Iterator[str]],
    form: str,
    output: Path | None,
) -> None:
    """Print the table in that form; `lines` makes those for people, of a width."""
    from tcpfit.report import csv, listing

    if form == "table":
        from tcpfit.report import contract, terminal

        out = terminal.console()
        terminal.header(contract.capture_facts(analysis), analysis.flows.height, out)
        echo(lines(analysis, table, out.width))
    elif output is not None:
        from tcpfit.analysis import write_table

        output.parent.mkdir(parents=True, exist_ok=True)
        write_table(table, output)
    elif form == "jsonl":
        echo(listing.json_lines(table, analysis.path))
    else:
        for text in csv.texts(table, analysis.path):
            click.echo(text, nl=False)


def echo(lines: Iterator[str]) -> None:
    """Print lines, some hundred at a time."""
    while some := list(islice(lines, LINES_AT_A_TIME)):
        click.echo("\n".join(some))
