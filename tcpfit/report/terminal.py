"""The analysis of a capture for a terminal of 80 columns, from the same document as the JSON."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Sequence
from typing import IO, Any

import polars as pl
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from tcpfit.report import sentences, sparklines, words
from tcpfit.report.plain import plain

IN_FULL = 3
"""How many of the largest flows are shown in full where none was asked for."""

WORTH_SHOWING = 20
"""A flow with fewer data segments is shown in full only when asked for."""

NARROWEST = 20
"""Columns that lines have at least; in fewer nothing can be read."""

LABEL, CAPTION = 9, 20
"""Columns of what a sparkline is called; with fewer beside it than the second, what it ranges over stands below it."""

UNBOUNDED = 10_000
"""Columns that no cell needs."""

STATES = {
    "explained": ("explained by", "green"),
    "undecided": ("undecided between", "yellow"),
    "insufficient": ("too little to tell", "dim"),
    "none_applies": ("no model applies", "magenta"),
}


class Terminal(Console):
    """A console whose tables lose nothing in narrow lines: they run over, where rich cuts words and drops columns.

    No line ends in blanks, with which rich fills a table up.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, a table as wide as it has to be."""
        room = self.width
        self.width = max([room, *(_laid_out(each, self, room) for each in objects)])
        try:
            super().print(
                *(_Trimmed(each) if isinstance(each, (Table, Padding)) else each for each in objects), **options
            )
        finally:
            self.width = room


class _Trimmed:
    """A table or a paragraph without the blanks at the ends of its lines."""

    def __init__(self, printed: Table | Padding) -> None:
        self._printed = printed

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in Segment.split_lines(console.render(self._printed, options)):
            while line and not line[-1].text.strip(" "):
                line.pop()
            if line:
                text, style, control = line[-1]
                line[-1] = Segment(text.rstrip(" "), style, control)
            yield from line
            yield Segment.line()


def _laid_out(printed: object, out: Console, room: int) -> int:
    """How many columns a table takes, 0 for what is no table. Where it has less `room`, its widest columns become
    narrower, none than it has to be so that no word is cut."""
    if isinstance(printed, Padding):
        aside = printed.left + printed.right
        return aside + _laid_out(printed.renderable, out, room - aside)
    if not isinstance(printed, Table):
        return 0
    _, right, _, left = printed.padding
    padding = [left + right] * len(printed.columns)
    if not printed.pad_edge:
        padding[0] -= left
        padding[-1] -= right
    around = sum(padding) + (len(padding) - 1 + 2 * printed.show_edge if printed.box else 0)
    wide = out.options.update(width=UNBOUNDED)
    least, most = [], []
    for column in printed.columns:
        cells = [Measurement.get(out, wide, cell) for cell in (column.header, *column.cells)]
        whole = max(*(cell.maximum for cell in cells), column.min_width or 0)
        words_of_it = max(*(cell.minimum for cell in cells), column.min_width or 0)
        most.append(column.width or min(whole, column.max_width or whole))
        least.append(most[-1] if column.width or column.no_wrap else min(words_of_it, most[-1]))
    if around + sum(most) > room:
        while around + sum(most) > room and least != most:
            _, widest = max((width, at) for at, width in enumerate(most) if width > least[at])
            most[widest] -= 1
        for column, width in zip(printed.columns, most, strict=True):
            column.width = width
    return around + sum(most)


def console(file: IO[str] | None = None) -> Console:
    """A console that is plain when piped and honours NO_COLOR and COLUMNS."""
    return Terminal(file=file, width=_width(), highlight=False, markup=False, emoji=False)


def _width() -> int | None:
    """COLUMNS, or what the terminal has where that is 0 or no number; None where it is not set."""
    return max(shutil.get_terminal_size().columns, NARROWEST) if "COLUMNS" in os.environ else None


def of_file(path: object, text: str, width: int) -> str:
    """What is said of a file that was written, in lines of that width; its name is never broken."""
    head = f"{plain(str(path))}: "
    filled = textwrap.fill(
        text,
        width,
        initial_indent="-" * len(head),
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return head + filled[len(head) :]


def show(
    capture: dict[str, Any], out: Console, rounds: pl.DataFrame, *, flows: int, top: int = 10, in_full: bool = False
) -> None:
    """Print one capture of the document: header, the `top` largest flows, and the largest (or all) of those in full.

    `flows` is how many the capture has; the smallest may be left out of `capture`. `rounds` is the analysis's table.
    """
    header(capture, flows, out)
    shown = capture["flows"]
    if not shown:
        out.print(Text("  no TCP flow carried data in what was analysed", style="yellow"))
        return
    if not in_full and top > 0:
        out.print()
        out.print(_overview(shown[:top]))
        if any(sentences.loss_rate(flow).endswith("?") for flow in shown[:top]):
            out.print(Padding(Text(sentences.DOUBTFUL, "dim"), (0, 0, 0, 2)))
        if flows > top:
            out.print(Text(f"  {words.plural(flows - top, 'smaller flow')} not shown; --top shows more", "dim"))
    worth = shown if in_full else [flow for flow in shown[:top] if flow["counts"]["data_segments"] >= WORTH_SHOWING]
    for flow in worth if in_full else worth[:IN_FULL]:
        out.print()
        _flow(flow, out, rounds)


def header(capture: dict[str, Any], flows: int, out: Console) -> None:
    """Print what is known of the capture: its path, what it holds, and a line for each thing that is wrong with it."""
    links = ", ".join(capture["link_types"])
    facts = [
        " ".join(part for part in (capture["format"], links and f"({links})") if part),
        words.plural(capture["packets"] or 0, "packet"),
        words.plural(flows, "flow"),
        words.seconds(capture["duration_s"]),
    ]
    out.print(Text(plain(capture["path"]), style="bold"), soft_wrap=True)
    out.print(Text("  " + ", ".join(fact for fact in facts if fact)))
    if capture["skipped"]:
        reasons = ", ".join(f"{count} {reason}" for reason, count in capture["skipped"].items())
        out.print(Padding(Text(f"not analysed: {reasons}"), (0, 0, 0, 2)))
    if dataless := words.without_data(capture["without_data"]):
        out.print(Padding(Text(f"connections without data: {dataless}"), (0, 0, 0, 2)))
    if drops := words.dropped(capture["interface_drops"]):
        out.print(Padding(Text(drops, style="yellow"), (0, 0, 0, 2)))
    loss = capture["capture_loss"]
    if loss["rate"]:
        interval = f"{loss['low']:.2%} to {loss['high']:.2%}"
        sentence = f"the capture itself missed {loss['rate']:.2%} of the data segments ({interval})"
        out.print(Padding(Text(sentence, style="yellow"), (0, 0, 0, 2)))
    for warning in capture["warnings"]:
        out.print(Padding(Text(f"warning: {plain(warning)}", style="yellow"), (0, 0, 0, 2)))


def _overview(flows: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False)
    table.add_column("flow", justify="right", no_wrap=True)
    table.add_column("from\nto", no_wrap=True, min_width=22)
    for heading in ("duration\ngoodput", "segments\nlost", "p\nRTT"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", max_width=28)
    for flow in flows:
        counts, parameters = flow["counts"], flow["parameters"]
        table.add_row(
            str(flow["id"]),
            "\n".join(words.short_endpoint(flow[end], flow[f"{end}_port"]) for end in ("src", "dst")),
            f"{words.seconds(flow['duration_s'])}\n{sentences.goodput(flow)}",
            f"{counts['sent_segments']}\n{sentences.lost(flow)}",
            f"{sentences.loss_rate(flow)}\n{words.seconds(parameters['rtt']['value'])}",
            _verdict(flow["verdict"]),
        )
    return table


def _verdict(verdict: dict[str, Any]) -> Text:
    words_of_state, style = STATES.get(verdict["state"], (verdict["state"], ""))
    text = Text(words_of_state, style=style)
    if verdict["models"]:
        first, *others = verdict["models"]
        more = f", {others[0]}" if len(others) == 1 else f" + {len(others)} more" if others else ""
        text.append(f"\n{first}{more}")
    return text


def course(out: Console, flow: dict[str, Any], rounds: pl.DataFrame, causes: Sequence[tuple[str, float]]) -> None:
    """Print a flow over time, `flow` being a row of `flows`, and the shares of the causes: sparklines after a blank."""
    room = out.width - 2 - LABEL - 1
    places = max(min(sparklines.PLACES, room), 1)
    plain = out.options.ascii_only
    found = [*sparklines.course(flow, rounds, places=places, ascii_only=plain)]
    found += [line for line in [sparklines.shares(causes, places=places, ascii_only=plain)] if line]
    beside = room - places - 1 >= CAPTION
    grid = Table.grid(padding=(0, 1, 0, 0))
    for width in (LABEL, places, *([None] if beside else [])):
        grid.add_column(width=width, overflow="fold")
    for line in found:
        caption, drawing = Text(line.caption), Text(line.drawing, style="cyan", no_wrap=True)
        grid.add_row(Text(line.label, style="dim"), drawing, *([caption] if beside else []))
        if not beside:
            grid.add_row("", caption)
    if grid.row_count:
        out.print()
        out.print(Padding(grid, (0, 0, 0, 2)))


def _flow(flow: dict[str, Any], out: Console, rounds: pl.DataFrame) -> None:
    title = f"flow {flow['id']}  {words.endpoint(flow['src'], flow['src_port'])} > "
    out.print(Text(title + words.endpoint(flow["dst"], flow["dst_port"]), style="bold"))
    for sentence in (sentences.how_seen(flow), sentences.what_happened(flow)):
        out.print(Padding(Text(sentence), (0, 0, 0, 2)))
    if distrusted := sentences.distrusted(flow):
        out.print(Padding(Text(distrusted, style="yellow"), (0, 0, 0, 2)))
    first_ns = round(flow["start_time"] * 1e9)
    times = {"flow": flow["id"], "first_ns": first_ns, "last_ns": first_ns + round(flow["duration_s"] * 1e9)}
    course(out, times, rounds, [(cause["cause"], cause["time_share"]) for cause in flow["diagnosis"]["causes"]])
    out.print()
    out.print(_parameters(flow))
    if any(model["log_ratio"] is not None for model in flow["models"]):
        out.print()
        out.print(_models(flow))
    for sentence in sentences.doubts(flow["models"]):
        out.print(Padding(Text(sentence, style="dim"), (0, 0, 0, 2)))
    out.print()
    style = STATES.get(flow["verdict"]["state"], ("", ""))[1]
    text = Text("verdict: ", style=f"bold {style}").append(flow["verdict"]["text"], style="not bold default")
    out.print(Padding(text, (0, 0, 0, 2)))


def _parameters(flow: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    table.add_column("  parameter", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("meaning", style="dim", overflow="fold")
    for name, estimate in flow["parameters"].items():
        if estimate["value"] is None:
            continue
        observations = words.NONE if estimate["n"] is None else str(estimate["n"])
        value = words.quantity(name, estimate["value"])
        interval = words.interval(name, estimate)
        table.add_row(f"  {name}", value, interval, observations, words.meaning(name, estimate["n"]))
    return table


def _models(flow: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    table.add_column("  rank", justify="right", no_wrap=True)
    table.add_column("model", no_wrap=True)
    table.add_column("predicted", justify="right", no_wrap=True)
    table.add_column("ln(predicted/observed)", justify="right", no_wrap=True)
    table.add_column("best", justify="right", no_wrap=True)
    for model in [*flow["models"], *flow["baselines"]]:
        if model["log_ratio"] is None:
            continue
        predicted = words.rate(model["predicted_bps"])
        if model["predicted_bps"] is None:
            predicted = words.seconds(model["predicted_time_s"])
        ratio = f"{model['log_ratio']:+.2f}"
        if model["log_ratio_low"] is not None and model["log_ratio_high"] is not None:
            ratio += f" ({model['log_ratio_low']:+.2f} to {model['log_ratio_high']:+.2f})"
        best = words.NONE if model["probability_best"] is None else f"{model['probability_best']:.0%}"
        rank = words.NONE if model["rank"] is None else str(model["rank"])
        table.add_row(rank, model["name"], predicted, ratio, best, style="" if model["applicable"] else "dim")
    return table
