"""`tcpfit explain`: why a frame has the labels it has."""

from __future__ import annotations

import click

from . import options
from .reading import Work, read_connection


@click.command(short_help="Explain a frame: its events, their rules and their evidence.")
@click.argument("capture")
@click.argument("frame", type=options.Whole(min=1))
@options.form("text", "json")
@options.reader
@options.vantage
@options.anonymity
def explain(capture: str, frame: int, form: str, reader: str, vantage: str | None, key: bytes | None) -> int:
    """Say what a frame is, and what stands behind every event that names it.

    \b
    tcpfit explain capture.pcap.gz 4711

    FRAME is Wireshark's number. Each event comes with the rule that gave it and its source, the frames that prove it
    and how far away they are, the state of the sender, the confidence, and what else it could have been.
    """
    with Work(capture) as work:
        from tcpfit.report import contract, explained, explanation, terminal

        analysis = read_connection(capture, options.Source(reader, vantage, key=key), frame)
        facts = explanation.explain(analysis, frame)
        if form == "json":
            click.echo(contract.dumps(facts))
        else:
            explained.show(facts, terminal.console())
    return work.status
