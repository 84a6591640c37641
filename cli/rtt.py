"""`tcpfit rtt`: the round-trip times of flows, without delayed ACKs."""

from __future__ import annotations

from pathlib import Path

import click

from . import listing, options
from .reading import Work, read, read_between, tell_warnings


@click.command(short_help="List round-trip times, without delayed ACKs.")
@click.argument("capture")
@options.flow("Only this flow. Repeatable.")
@click.option("--samples", is_flag=True, help="List every sample instead of a line a flow.")
@listing.form
@options.source
def rtt(
    capture: str, flows: tuple[int, ...], samples: bool, form: str, output: Path | None, source: options.Source
) -> int:
    """List the round-trip times of every flow: the least, percentiles and drift of those without a delayed ACK.

    \b
    tcpfit rtt capture.pcap.gz
    tcpfit rtt capture.pcap --flow 3 --samples
    tcpfit rtt capture.pcap --samples --format parquet --output rtt.parquet

    A sample goes from a data segment to the ACK of its last byte, none where something was sent again. Away from the
    sender it is the receiver's side of the round trip only. - is standard input.
    """
    listing.check_form(form, output, capture)
    with Work(capture) as work:
        if flows:
            analysis = read_between(capture, source, lambda _: flows)
        else:
            analysis = read(capture, source, segments=True)
        if form != "table":
            tell_warnings(analysis)
        from tcpfit.report import listing as listed
        from tcpfit.report.round_trips import by_flow, round_trips

        table = round_trips(analysis, flows or None)
        lines = listed.round_trip_lines if samples else listed.round_trip_summaries
        listing.write(analysis, table if samples else by_flow(table), lines, form, output)
    return work.status
