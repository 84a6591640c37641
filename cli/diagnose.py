"""`tcpfit diagnose`: why a flow was not faster, and what each cause cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpfit.exceptions import InvalidParameter

from . import options
from .errors import complain
from .reading import Work, read_between

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis
    from tcpfit.diagnosis.table import Report


@click.command(short_help="Say why a flow was not faster, and what each cause cost.")
@options.captures
@options.form("text", "json")
@options.flow("Only this flow. Repeatable.")
@options.top(3, "How many flows of a capture, the largest first; of several captures 1 each.")
@click.option(
    "--between",
    type=options.Duration(),
    nargs=2,
    metavar="T1 T2",
    help="Account only for the time from T1 to T2; the rest is still read.",
)
@options.source
def diagnose(
    captures: tuple[str, ...],
    form: str,
    flows: tuple[int, ...],
    top: int,
    between: tuple[float, float] | None,
    source: options.Source,
) -> int:
    """Say what held a flow back: the sender, the network or the receiver, since when, and what it cost.

    \b
    tcpfit diagnose capture.pcap.gz
    tcpfit diagnose capture.pcap --flow 3 --between 10s 20s
    tcpfit diagnose *.pcapng

    Three lines first: verdict, cost, remedy. Then the shares of the time, the stalls, and the evidence with frame
    numbers and display filters for Wireshark. Several captures give a table, sorted by what the verdict's cause cost.
    T counts from the first packet of each capture.
    """
    if between is not None and between[1] <= between[0]:
        raise click.UsageError("--between needs a T2 that is later than T1")
    status = 0
    many = len(captures) > 1
    table: list[tuple[str, Report]] = []
    documents: list[dict[str, Any]] = []

    def shown(analysis: Analysis) -> Sequence[int]:
        return flows or analysis.largest()[: 1 if many else top]

    for capture in captures:
        with Work(capture) as work:
            from tcpfit.diagnosis.table import report, report_facts
            from tcpfit.report import contract, diagnosed, terminal

            whole = read_between(capture, source, shown)
            if beyond := _beyond(whole, between):
                if not many:
                    raise InvalidParameter(beyond)
                complain(beyond)
            analysis = whole.select(shown(whole))
            found = report(analysis, _span(whole, between))
            if form == "json":
                documents.append(contract.capture_facts(whole) | {"flows": [report_facts(each) for each in found]})
            elif many:
                table += [(Path(capture).name, each) for each in found]
            else:
                out = terminal.console()
                terminal.header(contract.capture_facts(whole), whole.flows.height, out)
                if not found:
                    click.echo("  no TCP flow carried data in what was analysed")
                for each in found:
                    out.print()
                    diagnosed.show(each, whole.capture.get("start_ns") or 0, whole.rounds, out)
        status |= work.status
    if form == "json":
        from tcpfit.report import contract

        click.echo(contract.dumps(contract.finite(contract.envelope(documents))))
    elif table:
        from tcpfit.report import diagnosed, terminal

        diagnosed.overview(table, terminal.console())
    return status


def _beyond(analysis: Analysis, between: tuple[float, float] | None) -> str | None:
    """What is wrong where the capture ends before the time that is to be accounted for."""
    start, end = analysis.capture.get("start_ns"), analysis.capture.get("end_ns")
    if between is None or start is None or end is None or start + round(1e9 * between[0]) <= end:
        return None
    lasts = (end - start) / 1e9
    return f"{analysis.path}: --between begins {between[0]:g} s after its first packet, but it lasts {lasts:.3g} s"


def _span(analysis: Analysis, between: tuple[float, float] | None) -> tuple[int, int] | None:
    """Seconds after the first packet as nanoseconds since the epoch."""
    start = analysis.capture.get("start_ns")
    if between is None or start is None:
        return None
    return start + round(1e9 * between[0]), start + round(1e9 * between[1])
