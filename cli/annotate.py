"""`tcpfit annotate`: a capture with its labels as comments of the packets."""

from __future__ import annotations

import click

from . import options
from .errors import complain
from .reading import Work, read


@click.command(short_help="Write a capture with its labels as packet comments, for Wireshark.")
@click.argument("capture")
@click.argument("out", metavar="OUT.pcapng")
@options.flow("Only this flow's events; all packets are written. Repeatable.")
@options.vantage
@click.option("--force", is_flag=True, help="Replace OUT.pcapng if it exists.")
def annotate(capture: str, out: str, flows: tuple[int, ...], vantage: str | None, force: bool) -> int:
    """Write a capture as pcapng with the events of its flows as comments of the packets, for Wireshark.

    \b
    tcpfit annotate capture.pcap.gz labelled.pcapng
    tcpfit annotate capture.pcap flow3.pcapng --flow 3
    wireshark labelled.pcapng        then filter: frame.comment contains "timeout"

    Each comment says what happened, by which rule, and which frame proves it. Packets, their times, lengths and
    interfaces are those of the capture. A damaged capture is written as far as it can be read.
    """
    with Work(capture) as work:
        from tcpfit import annotation
        from tcpfit.report import words
        from tcpfit.report.plain import plain

        annotation.writable(capture, out, force=force)  # refuse before the analysis, not after it
        analysis = read(capture, options.Source(vantage=vantage))
        if flows:
            analysis = analysis.select(flows)
        done = annotation.annotate(analysis, capture, out, force=force)
        for warning in done.warnings:
            complain(f"{capture}: {warning}")
        click.echo(
            f"{plain(done.path)}: {words.plural(done.packets, 'packet')}, "
            f"{words.plural(done.comments, 'comment')} on {done.commented} of them"
        )
        if done.without_frame:
            click.echo(f"  {words.plural(done.without_frame, 'event')} left out: no packet of the capture shows it")
    return work.status
