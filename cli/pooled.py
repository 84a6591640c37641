"""`tcpfit pool`: many flows together. `tcpfit dynamics`: one flow over time."""

from __future__ import annotations

import click

from . import options
from .reading import Work, read, tell_warnings


@click.command(short_help="Pool flows: short ones by size, and models over all others.")
@options.captures
@click.option(
    "--most",
    type=options.Whole(min=1),
    default=200,
    show_default=True,
    metavar="N",
    help="Segments of the largest short flow.",
)
@options.form("table", "json")
@options.source
def pool(captures: tuple[str, ...], most: int, form: str, source: options.Source) -> int:
    """Rank models over many flows of one or more captures.

    \b
    tcpfit pool web.pcap.gz
    tcpfit pool *.pcap.gz --format json

    Short flows are compared with models of the transfer time, by size. The larger ones are put together: how far each
    model is off over the flows on which it applies, the constants of c/p^k, and which model ranks first under which
    conditions. Both ends of a connection count as one flow.
    """
    analyses, status = [], 0
    for capture in captures:
        with Work(capture) as work:
            analysis = read(capture, source)
            tell_warnings(analysis)
            analyses.append(analysis)
        status = max(status, work.status)
    if not analyses:
        return status
    with Work(captures[0] if len(captures) == 1 else "captures") as work:
        from tcpfit.ranking.across import rank
        from tcpfit.ranking.short import rank_short, transfers
        from tcpfit.report import contract, pooled, terminal

        sizes = pooled.short(*rank_short(transfers(analyses, most)))
        flows = pooled.across(rank([analysis.select(min_segments=most + 1) for analysis in analyses]))
        if form == "json":
            click.echo(contract.dumps({"short": sizes, "across": flows}))
        else:
            pooled.show_pool(sizes, flows, terminal.console())
    return max(status, work.status)


@click.command(short_help="Show a flow's bit rate over time beside what its losses predict.")
@click.argument("capture")
@click.option("--flow", type=options.Whole(min=0), metavar="ID", help="Which flow; the largest if not given.")
@click.option("--bin", "bin_s", type=options.Duration(), metavar="TIME", help="Length of a bin of time.")
@click.option(
    "--losses",
    type=click.Choice(["segments", "events"]),
    default="segments",
    show_default=True,
    help="What drives bohacek-dynamics: lost segments, as in the paper, or loss events.",
)
@options.form("table", "json")
@options.source
def dynamics(
    capture: str, flow: int | None, bin_s: float | None, losses: str, form: str, source: options.Source
) -> int:
    """Drive bohacek-dynamics with a flow's losses and compare its bit rate over time with the observed one.

    \b
    tcpfit dynamics capture.pcap.gz
    tcpfit dynamics capture.pcap.gz --flow 3 --bin 500ms --format json

    Static models with the parameters of each block of losses, and the flow's own mean rate, are scored beside it.
    """
    with Work(capture) as work:
        from tcpfit.exceptions import InvalidParameter
        from tcpfit.ranking.dynamics import course
        from tcpfit.report import contract, pooled, terminal

        analysis = read(capture, source)
        tell_warnings(analysis)
        largest = analysis.largest()
        if not largest:
            raise InvalidParameter(f"{capture} has no flow that carried data in what was analysed")
        found = course(analysis, largest[0] if flow is None else flow, bin_s=bin_s, losses=losses)
        if form == "json":
            click.echo(contract.dumps(pooled.course(found)))
        else:
            pooled.show_course(found, capture, terminal.console())
    return work.status
