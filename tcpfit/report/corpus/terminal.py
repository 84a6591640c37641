"""A corpus as a whole for a terminal of 80 columns, from the same document as the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from rich import box
from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tcpfit.report import words
from tcpfit.report.plain import plain

WORST = 10
FAILURES = 10
BAR = 10


def show(document: dict[str, Any], out: Console) -> None:
    """Print `Overview.to_dict()`: captures, what limits flows, what they see, models, the dearest flows, contrast."""
    _captures(document, out)
    if not document["flows"]["flows"]:
        out.print(Text("  no flow carried data", style="yellow"))
        return
    _limits(document, out)
    _prevalence(document, out)
    _parameters(document, out)
    _models(document, out)
    _worst(document, out)
    if document["contrast"] is not None:
        _contrast(document["contrast"], out)


def interval(found: dict[str, Any]) -> str:
    """A share with its interval: 12 % (8 to 17)."""
    if found["share"] is None:
        return words.NONE
    low, high = (f"{100 * found[end]:.0f}" for end in ("low", "high"))
    return f"{found['share']:.0%} ({low} to {high})"


def facts(document: dict[str, Any]) -> list[str]:
    """What the corpus holds, a sentence each."""
    captures, flows = document["captures"], document["flows"]
    sentences = [
        f"{words.plural(captures['captures'], 'capture')} ({words.size(captures['file_bytes'])}), "
        f"{words.plural(captures['packets'], 'packet')}, {words.plural(flows['flows'], 'flow')}"
        + (
            f" ({round(flows['different'])} different, of {words.plural(flows['connections'], 'connection')})"
            if flows["flows"]
            else ""
        )
        + f", {words.size(flows['data_bytes'])} of data"
    ]
    if captures["start_time"] is not None and captures["end_time"] is not None:
        begin, end = (_day(captures[f"{which}_time"]) for which in ("start", "end"))
        sentences.append(f"from {begin} to {end} (UTC)" if begin != end else f"of {begin} (UTC)")
    if captures["copies"]:
        sentences.append(f"{words.plural(captures['copies'], 'file')} beside these with the same content, left out")
    return sentences


def warned(captures: int) -> str:
    """How many captures have something wrong with them, and where it is said."""
    return f"{words.plural(captures, 'capture')} with warnings: see the column `warnings` of captures"


def _day(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
    except (OverflowError, OSError, ValueError):
        return f"{seconds:.0f} s after 1970"


def _heading(text: str, out: Console) -> None:
    out.print()
    out.print(Text(text, style="bold"))


def _captures(document: dict[str, Any], out: Console) -> None:
    captures = document["captures"]
    out.print(Text(plain(document["folder"]), style="bold"), soft_wrap=True)
    for sentence in facts(document):
        out.print(Padding(Text(sentence), (0, 0, 0, 2)))
    if captures["skipped"]:
        skipped = ", ".join(f"{row['packets']} {row['reason']}" for row in captures["skipped"])
        out.print(Padding(Text(f"packets not analysed: {skipped}"), (0, 0, 0, 2)))
    if captures["warned"]:
        out.print(Padding(Text(warned(captures["warned"]), "yellow"), (0, 0, 0, 2)))
    failures = captures["failures"]
    if failures:
        number = len(failures) + captures["failures_left_out"]
        out.print(Padding(Text(f"{words.plural(number, 'capture')} not analysed:", "yellow"), (0, 0, 0, 2)))
    for row in failures[:FAILURES]:
        out.print(Padding(Text(plain(f"{row['path']}: {row['status']}: {row['reason']}"), "yellow"), (0, 0, 0, 4)))
    if len(failures) > FAILURES:
        out.print(Padding(Text(f"and {number - FAILURES} more", "yellow"), (0, 0, 0, 4)))


def _limits(document: dict[str, Any], out: Console) -> None:
    _heading("what limits them", out)
    table = _table("limited by", "flows", "bytes", "time", "", left=("limited by", ""))
    for row in document["limits"]:
        share = row["time"]["share"] or 0.0
        table.add_row(
            row["cause"].removesuffix("-limited"),
            *(interval(row[name]) for name in ("flows", "bytes", "time")),
            _bar(share),
        )
    out.print(table)
    clusters = document["flows"]["clusters"]
    note = "per cent with 95 % intervals; flows and bytes by the verdict, time by the accounting"
    out.print(Padding(Text(note + ("" if clusters > 1 else "; one capture: of its flows only"), "dim"), (0, 0, 0, 2)))


def _prevalence(document: dict[str, Any], out: Console) -> None:
    _heading("what they see", out)
    table = _table("", "flows", "bytes", left=("",))
    for row in document["prevalence"]:
        if row["flows"]["share"]:
            table.add_row(row["what"], interval(row["flows"]), interval(row["bytes"]))
    out.print(table)


def _parameters(document: dict[str, Any], out: Console) -> None:
    _heading("parameters", out)
    table = _table("", "flows", "5 %", "25 %", "median", "75 %", "95 %", left=("",))
    for row in document["parameters"]:
        quantiles = (words.quantity(row["name"], value) for value in row["quantiles"].values())
        table.add_row(row["name"], f"{row['flows']:.0f}", *quantiles)
    out.print(table)


def _models(document: dict[str, Any], out: Console) -> None:
    verdicts = ", ".join(f"{count:.0f} {state.replace('_', ' ')}" for state, count in document["verdicts"].items())
    _heading("models", out)
    out.print(Padding(Text(f"verdicts: {verdicts}"), (0, 0, 0, 2)))
    shown = [row for row in document["models"] if row["flows"]]
    if shown:
        table = _table("model", "applies", "1st", "named", "ln ratio", "5 to 95 %", "near")
        for row in shown:
            at = row["quantiles"]
            counts = (f"{row[name]:.0f}" for name in ("flows", "first", "named"))
            ends = f"{at['0.05']:+.2f} to {at['0.95']:+.2f}"
            table.add_row(row["model"], *counts, f"{at['0.5']:+.2f}", ends, f"{row['near']:.0%}")
        out.print(table)
        note = "flows; ln ratio: of predicted to observed, the median; near: within 0.15"
        out.print(Padding(Text(note, "dim"), (0, 0, 0, 2)))
    winners = document["winners"]
    if "rules" in winners:
        out.print()
        out.print(Text("which model ranks first", style="bold"))
        out.print(Padding(Text(winners["rules"].rstrip()), (0, 0, 0, 2)))
    out.print(Padding(Text(winners.get("text") or f"no tree: {winners['reason']}"), (0, 0, 0, 2)))


def _worst(document: dict[str, Any], out: Console) -> None:
    rows = document["worst"][:WORST]
    if not rows:
        return
    _heading("dearest flows", out)
    table = _table("capture", "flow", "cause", "goodput", "without it", "cost", left=("capture", "cause"))
    for row in rows:
        without = words.rate(row["rate_bps"])
        name = plain(short(row["path"]))
        name = name if len(name) <= 24 else f"..{name[-22:]}"
        cause = row["primary"].removesuffix("-limited")
        table.add_row(
            name, str(row["flow"]), cause, words.rate(row["goodput_bps"]), without, words.seconds(row["gain_s"])
        )
    out.print(table)
    if document["cost_unknown"]:
        out.print(Padding(Text(cost_unknown(document["cost_unknown"]), "dim"), (0, 0, 0, 2)))


def cost_unknown(flows: Mapping[str, float]) -> str:
    """Which flows are not among the dearest, whatever they lost."""
    named = ", ".join(f"{round(number, 1):g} {cause}" for cause, number in flows.items())
    return f"Of other flows the accounting has no cost ({named}); tcpfit diagnose asks models what they lost."


def short(path: str) -> str:
    """The name of a capture with that of its folder."""
    return "/".join(PurePath(path).parts[-2:])


def _contrast(contrast: dict[str, Any], out: Console) -> None:
    sides = contrast["sides"]
    by = plain(contrast["by"])
    _heading(f"by {by}", out)
    for side in sides:
        said = f"{plain(side['value'])}: {words.plural(round(side['flows']), 'flow')} in "
        out.print(Padding(Text(said + words.plural(side["captures"], "capture")), (0, 0, 0, 2)))
    table = _table("", by, "value", "change", "95 %", "", left=("", by), wrap=("", by))
    for row in contrast["rows"]:
        what = "" if "against" in row else row["what"].removeprefix("share of flows: ").removesuffix("-limited")
        table.add_row(what, plain(row["side"]), *change(row))
    out.print(table)
    out.print(Padding(Text(CHANGES, "dim"), (0, 0, 0, 2)))


CHANGES = "x: ratio of medians; of shares the difference, in percentage points; clear: 95 % exclude no change"


def change(row: dict[str, Any]) -> list[str]:
    """A row of a contrast: value, change, its interval, and whether it is clear."""
    ratio = row["what"].startswith("median")
    value = words.NONE if row["value"] is None else _value(row["value"], row["unit"], ratio)
    if "change" not in row:
        return [value, "", "", ""]
    changed = f"x {words.number(row['change'])}" if ratio else f"{100 * row['change']:+.1f}"
    if "low" not in row:
        return [value, changed, "too few captures", ""]
    ends = " to ".join(words.number(row[end]) if ratio else f"{100 * row[end]:+.1f}" for end in ("low", "high"))
    return [value, changed, ends, "clear" if row["clear"] else ""]


def _value(value: float, unit: str, median: bool) -> str:
    if not median:
        return f"{value:.1%}"
    return words.rate(value) if unit == "bit/s" else words.seconds(value) if unit == "s" else words.number(value)


def _bar(share: float) -> str:
    return "=" * round(BAR * share)


def _table(*headings: str, left: tuple[str, ...] = ("model",), wrap: tuple[str, ...] = ()) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False)
    for heading in headings:
        justify: JustifyMethod = "left" if heading in left else "right"
        table.add_column(heading, justify=justify, no_wrap=heading not in wrap, overflow="fold")
    return table
