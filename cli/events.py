"""`tcpfit events`: the events of a capture one by one, or its segments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import listing, options
from .reading import Work, read, read_between, read_into, read_out, tell_warnings

if TYPE_CHECKING:
    import polars as pl

    from tcpfit.analysis import Analysis


@click.command(short_help="List the events of a capture, or its segments.")
@click.argument("capture")
@options.flow("Only this flow. Repeatable.")
@click.option(
    "--kind",
    "kinds",
    type=options.Kind(),
    metavar="KIND",
    multiple=True,
    help="Only events of this kind, e.g. loss or timeout. Repeatable.",
)
@click.option("--segments", is_flag=True, help="List the TCP segments instead of the events.")
@listing.form
@options.source
def events(
    capture: str,
    flows: tuple[int, ...],
    kinds: tuple[str, ...],
    segments: bool,
    form: str,
    output: Path | None,
    source: options.Source,
) -> int:
    """List the events of a capture in order of time: losses, recoveries, timeouts, reordering and the rest.

    \b
    tcpfit events capture.pcap.gz
    tcpfit events capture.pcap --flow 3 --kind loss --kind timeout
    tcpfit events capture.pcap --from 10s --to 12s --segments
    tcpfit events capture.pcap --format parquet --output events.parquet

    An event has a time since the start of the capture, a kind, the rule that gave it, the frame it is about, the frame
    that proves it, a confidence, its bytes counted from the initial sequence number, and a value with its meaning.
    tcpfit explain CAPTURE FRAME says what stands behind it. --from and --to choose events; the whole capture is
    analysed. - is standard input.
    """
    if segments and kinds:
        raise click.UsageError("--kind chooses events; it does not go with --segments")
    listing.check_form(form, output, capture)
    with Work(capture) as work:
        from tcpfit import readers

        span = readers.checked(source.reader, readers.Settings(from_s=source.from_s, to_s=source.to_s))
        streamed = segments and not flows and form != "table"
        if streamed:
            analysis = _stream(capture, source, form, output)
        elif segments and flows:
            analysis = read_between(capture, _whole(source), lambda _: flows)
        elif segments:
            analysis = read(capture, source, segments=True)
        else:
            analysis = read(capture, _whole(source))
        if form != "table":
            tell_warnings(analysis)
        if not streamed:
            from tcpfit.report import listing as listed

            table = listed.segments(analysis, flows) if segments else listed.events(analysis, flows, kinds)
            table = listed.within(analysis, table, span.from_s, span.to_s)
            lines = listed.segment_lines if segments else listed.event_lines
            listing.write(analysis, table, lines, form, output)
    return work.status


def _whole(source: options.Source) -> options.Source:
    """The same without a span, for what came before tells why something was sent again; a live capture ends with it."""
    return source if source.reader == "pyshark" else replace(source, from_s=None, to_s=None)


def _stream(capture: str, source: options.Source, form: str, output: Path | None) -> Analysis:
    """Write all segments while they are read; memory does not grow with them."""
    from tcpfit.report import csv
    from tcpfit.report import listing as listed

    if output is not None:
        return read_into(output, capture, source)[0]
    if form == "jsonl":
        return read_out(capture, source, lambda piece: listing.echo(listed.json_lines(piece, capture)))
    header = True

    def write(piece: pl.DataFrame) -> None:
        nonlocal header
        for text in csv.texts(piece, capture, header=header):
            click.echo(text, nl=False)
        header = False

    return read_out(capture, source, write)
