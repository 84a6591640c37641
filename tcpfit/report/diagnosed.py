"""What `tcpfit diagnose` prints: three lines first, then shares, stalls and evidence; and a table of many flows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tcpfit.diagnosis.cost import Cost, Together
from tcpfit.diagnosis.stalls import Stall
from tcpfit.diagnosis.table import Report
from tcpfit.diagnosis.verdict import Cause
from tcpfit.report import filters, terminal, words
from tcpfit.report.plain import plain

STALLS = 10
"""Stalls shown; JSON has all."""

MORE = 1.02
"""Of the acknowledged rate: what arrived is worth saying from here on."""

NO_COST = "the capture does not show what the rate would have been without it"


def show(report: Report, start_ns: int, rounds: pl.DataFrame, out: Console) -> None:
    """One flow: verdict, cost, remedy; its course and the shares of the time; stalls; evidence. Times count from
    `start_ns`; `rounds` is the analysis's table."""
    flow, diagnosis = report.flow, report.diagnosis
    ends = [words.endpoint(flow[end], flow[f"{end}_port"]) for end in ("src", "dst")]
    out.print(Text(f"flow {flow['flow']}  {ends[0]} > {ends[1]}", style="bold"))
    _line(out, "verdict", f"{diagnosis.primary}. {diagnosis.text}", "bold")
    _line(out, "cost", cost_sentence(report))
    _line(out, "remedy", diagnosis.remedy)
    if report.span_ns is not None:
        begin, end = ((ns - start_ns) / 1e9 for ns in report.span_ns)
        _line(out, "span", f"{begin:g} s to {end:g} s; rate, flight, RTT and losses below are of the whole flow")
    terminal.course(out, flow, rounds, [(cause.cause, cause.time_share) for cause in diagnosis.causes])
    if diagnosis.causes:
        out.print()
        out.print(Padding(_shares(diagnosis.causes), (0, 0, 0, 2)))
    for two in report.together:
        if two.joint:
            _line(out, "joint", joint_sentence(two))
    for change in report.what_if:
        _line(
            out,
            "if",
            f"{change.change}: {_rates(change.rate_bps, change.low_bps, change.high_bps)} "
            f"by {', '.join(change.models)}",
        )
    if report.stalls:
        out.print()
        out.print(Padding(_stalls(report, start_ns), (0, 0, 0, 2)))
        if len(report.stalls) > STALLS:
            out.print(Text(f"  the {STALLS} longest of {len(report.stalls)}; --format json has all", "dim"))
    if report.findings:
        where = "" if report.span_ns is None else " in the whole flow"
        out.print(Text(f"\n  found besides{where}", "bold"))
        for finding in report.findings:
            _line(out, "", f"{finding.name}: {finding.claim} {finding.remedy}".strip())
            _line(out, "", f"frames {', '.join(map(str, finding.frames[:5]))}; {finding.display_filter}", "dim")
    out.print()
    for cause in diagnosis.causes:
        _line(out, "", f"{cause.cause}: {'; '.join(cause.evidence)}")
        _line(out, "", display_filter(flow, cause), "dim")


def display_filter(flow: dict[str, Any], cause: Cause) -> str:
    """A Wireshark display filter: the frames named, or the flow in the longest stretch of the cause."""
    if cause.frames:
        return filters.of_frames(cause.frames)
    first, last = (f"{ns // 10**9}.{ns % 10**9:09d}" for ns in cause.longest_ns)
    return f"{filters.of_flow(flow)} && frame.time_epoch >= {first} && frame.time_epoch <= {last}"


def joint_sentence(two: Together) -> str:
    """What two causes or changes bring together, where that is not what they bring one by one."""
    together, apart = words.seconds(two.seconds), words.seconds(two.apart_s)
    return f"{two.of[0]} and {two.of[1]} cannot be split: {together} less without both, {apart} one by one, {two.basis}"


def cost_sentence(report: Report) -> str:
    """What the verdict's cause cost, in one sentence."""
    cause = report.diagnosis.main
    if cause is not None and cause.cost is not None:
        saved, whole = words.seconds(cause.cost.seconds), words.seconds(report.accounted_s)
        return f"{saved} of {whole}: {_instead(cause.cost, report)}"
    halved = next((change for change in report.what_if if change.change == "half the losses"), None)
    if halved is not None:
        rates = _rates(halved.rate_bps, halved.low_bps, halved.high_bps)
        return f"with half the losses {rates} instead of {_observed(report)}, by {', '.join(halved.models)}"
    return NO_COST


def _instead(cost: Cost, report: Report) -> str:
    rates = _rates(cost.rate_bps, cost.low_bps, cost.high_bps)
    return f"{rates} instead of {_observed(report)}, {cost.basis}"


def _observed(report: Report) -> str:
    """The rate that costs are reckoned from, and what it is of where not all that arrived was acknowledged."""
    rate, arrived = words.rate(report.observed_bps), report.goodput_bps
    if arrived is None or report.observed_bps is None or arrived < MORE * report.observed_bps:
        return rate
    return f"{rate} acknowledged ({words.rate(arrived)} arrived)"


def _rates(rate: float, low: float | None, high: float | None) -> str:
    """A rate with its interval, where there is one."""
    return (
        words.rate(rate)
        if low is None or high is None
        else f"{words.rate(rate)} ({words.rate(low)} to {words.rate(high)})"
    )


def _line(out: Console, label: str, text: str, style: str = "") -> None:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=9, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(label, style="dim"), Text(text, style=style))
    out.print(Padding(grid, (0, 0, 0, 2)))


def _table(*headings: tuple[str, bool]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False)
    for heading, right in headings:
        table.add_column(heading, justify="right" if right else "left", no_wrap=right)
    return table


def saving(cost: Cost | None) -> tuple[str, str]:
    """What a flow would save without a cause, and the rate that it would have; marked where they are bounds."""
    if cost is None:
        return words.NONE, words.NONE
    bound = "<= " if cost.at_most else ""
    return bound + words.seconds(cost.seconds), bound + words.rate(cost.rate_bps)


def _shares(causes: Sequence[Cause]) -> Table:
    table = _table(
        ("share", True), ("time", True), ("cause", False), ("saves", True), ("rate without", True), ("sure", True)
    )
    for cause in causes:
        cost = cause.cost
        table.add_row(
            f"{cause.time_share:.1%}",
            words.seconds(cause.seconds),
            cause.cause,
            *saving(cost),
            f"{cause.confidence:.2f}",
        )
    return table


def _stalls(report: Report, start_ns: int) -> Table:
    table = _table(
        ("stall at", True), ("length", True), ("timer", True), ("cause", False), ("unacked", True), ("frames", True)
    )
    longest = sorted(report.stalls, key=lambda s: s.start_ns - s.end_ns)[:STALLS]
    for stall in sorted(longest, key=lambda s: s.start_ns):
        detail = f" ({stall.detail})" if stall.cause == "timeout" else ""
        table.add_row(
            f"{(stall.start_ns - start_ns) / 1e9:.3f}",
            words.seconds(stall.length_s),
            words.seconds(stall.timer_s),
            f"{stall.cause}{detail}",
            words.size(stall.outstanding_bytes),
            _frames(stall),
        )
    return table


def _frames(stall: Stall) -> str:
    """The last frame before a stall and the one that ended it; one that did not pass here is not known."""
    before, after = (words.NONE if frame is None else str(frame) for frame in (stall.frame_before, stall.frame_after))
    return words.NONE if before == after == words.NONE else f"{before} to {after}"


def overview(rows: Sequence[tuple[str, Report]], out: Console) -> None:
    """Many flows, each with its capture's name, sorted by the seconds that the verdict's cause cost."""
    table = _table(
        ("cost", True),
        ("of", True),
        ("capture", False),
        ("flow", True),
        ("verdict", False),
        ("share", True),
        ("rate", True),
    )
    for name, report in sorted(rows, key=lambda row: -cost_seconds(row[1])):
        cost, diagnosis = cost_seconds(report), report.diagnosis
        table.add_row(
            words.seconds(cost) if cost else words.NONE,
            words.seconds(report.accounted_s),
            plain(name),
            str(report.flow["flow"]),
            diagnosis.primary,
            words.NONE if diagnosis.main is None else f"{diagnosis.main.time_share:.0%}",
            words.rate(report.observed_bps),
        )
    out.print(table)


def cost_seconds(report: Report) -> float:
    """Seconds that the verdict's cause cost: by the accounting, or with half the losses; 0 where nothing is known."""
    cause = report.diagnosis.main
    if cause is not None and cause.cost is not None:
        return cause.cost.seconds
    halved = next((change for change in report.what_if if change.change == "half the losses"), None)
    if halved is not None and report.observed_bps:
        return max(report.accounted_s * (1 - report.observed_bps / halved.rate_bps), 0.0)
    return 0.0
