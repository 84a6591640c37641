"""`tcpfit plot`: one figure of one flow, as a file."""

from __future__ import annotations

from pathlib import Path

import click

from tcpfit.exceptions import InvalidParameter

from . import options
from .errors import spare_captures, unwritable
from .reading import Work, read, read_between, tell_warnings


def _list(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the kinds of figures and leave."""
    if wanted and not ctx.resilient_parsing:
        from tcpfit.report.figures import KINDS

        width = max(map(len, KINDS))
        for kind in KINDS.values():
            click.echo(f"{kind.name:<{width}}  {kind.title}")
        ctx.exit()


@click.command(short_help="Draw a figure of a flow: SVG, PNG, PDF, HTML or Vega-Lite.")
@click.argument("kind", type=click.Choice(options.FIGURES), metavar="KIND")
@click.argument("capture")
@click.option("--flow", type=options.Whole(min=0), metavar="ID", help="Of this flow; by default of the largest.")
@click.option(
    "-o",
    "--output",
    type=options.Place(dir_okay=False),
    metavar="FILE",
    required=True,
    help="Where to: .svg, .png, .pdf, .html (needs no network) or .json (Vega-Lite).",
)
@click.option("--theme", type=click.Choice(["light", "dark"]), default="light", show_default=True, help="The look.")
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="Name the kinds and exit."
)
@options.source
def plot(
    kind: str,
    capture: str,
    flow: int | None,
    output: Path,
    theme: str,
    source: options.Source,
) -> int:
    """Draw one figure of one flow into a file, and say in words what it shows.

    \b
    time-sequence  data, ACKs, SACK, window; each loss and resend by its cause
    window         flight, inferred congestion window, receiver's window
    rtt            round-trip times, delayed ACKs marked
    rate           observed rate beside every model's prediction
    ranking        predicted over observed rate of every model, with caveats
    losses         every event over time: bursts, recoveries, timeouts
    intervals      segments between loss events against the geometric law
    shares         where the time went, by cause
    stalls         silences of the sender, by cause
    residuals      every model's error block by block

    \b
    tcpfit plot time-sequence capture.pcap.gz -o tsg.html
    tcpfit plot ranking capture.pcap --flow 3 -o ranking.svg
    tcpfit plot rtt capture.pcap --from 10s --to 20s -o rtt.png --theme dark
    """
    spare_captures([output], [capture])
    with Work(capture) as work:
        from tcpfit.analysis import AtomicFile
        from tcpfit.report import figures, terminal

        suffix = output.suffix.lower()
        if suffix not in figures.SUFFIXES:
            raise InvalidParameter(f"--output {output}: the name has to end in {', '.join(figures.SUFFIXES)}")
        if figures.KINDS[kind].needs_segments:
            own = None if flow is None else [flow]
            analysis = read_between(capture, source, lambda analysis: own or analysis.largest()[:1])
        else:
            analysis = read(capture, source)
        tell_warnings(analysis)
        chart = figures.draw(analysis, kind, flow, theme=theme)
        content = figures.render(chart, suffix)
        try:
            with AtomicFile(output) as partial:
                partial.write_bytes(content)
        except OSError as error:
            raise unwritable(output, error) from error
        click.echo(terminal.of_file(output, chart.description, terminal.console().width))
    return work.status
