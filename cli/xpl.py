"""`tcpfit xpl`: graphs of flows as files that xplot shows."""

from __future__ import annotations

from pathlib import Path

import click

from tcpfit.exceptions import InvalidParameter

from . import options
from .errors import spare_captures_in, tell_path, unwritable
from .reading import Work, read, read_between, tell_warnings


@click.command(short_help="Write tcptrace-style graphs of flows for xplot.")
@click.argument("capture")
@click.option(
    "-o",
    "--output",
    type=options.Place(file_okay=False),
    metavar="DIR",
    default=Path("."),
    help="The folder for the files, made if need be; by default this one.",
)
@options.flow("Only this flow. Repeatable.")
@options.source
def xpl(capture: str, output: Path, flows: tuple[int, ...], source: options.Source) -> int:
    """Write the graphs that tcptrace -S -N -R -T writes, a file each and a set a flow, for xplot and jPlot.

    \b
    tcpfit xpl capture.pcap.gz -o graphs/
    xplot graphs/a2b_tsg.xpl

    The names are tcptrace's: a is the host that sent the first packet of the first connection, b its peer. _tsg has
    time and sequence numbers, _owin the outstanding data, _rtt the round-trip times, _tput the throughput.
    """
    spare_captures_in(output, "*.xpl", [capture])
    with Work(capture) as work:
        from tcpfit.analysis import AtomicFile
        from tcpfit.report import xplot

        analysis = read_between(capture, source, lambda _: flows) if flows else read(capture, source, segments=True)
        tell_warnings(analysis)
        chosen = analysis.select(flows) if flows else analysis
        if chosen.flows.is_empty():
            raise InvalidParameter(f"{capture} has no TCP flow that carried data in what was analysed")
        written = []
        try:
            output.mkdir(parents=True, exist_ok=True)
            for flow in chosen.flows["flow"]:
                for name, text in xplot.graphs(analysis, flow).items():
                    with AtomicFile(output / name) as partial:
                        partial.write_text(text, encoding="utf-8")
                    written.append(output / name)
        except OSError as error:
            raise unwritable(output, error) from error
        for path in written:
            tell_path(path)
    return work.status
