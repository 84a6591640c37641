#!/usr/bin/env python3
"""Bring docs/diagnosis/causes up to date: `python docs/make_causes.py`; `--check` says whether it is.

The pages are written by hand but for what stands between a line of these and the next `<!-- end -->`:

    <!-- sample: NAME -->         what `tcpfit diagnose` says of a sample, what path and kernel recorded, its picture
    <!-- validation: CAUSE -->    counts of verdicts, from causes/validation.json, which benchmarks/verdicts.py writes
    <!-- pairs: KIND -->          predicted and measured changes, from counterfactuals.csv
    <!-- causes: all -->          all pages

Pictures need the extra `plot`; each carries the digest of what it shows.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import io
import json
import re
import statistics
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console

import tcpfit
from tcpfit.diagnosis import causes as names
from tcpfit.diagnosis.table import Report, accounted, report
from tcpfit.diagnosis.verdict import WHO
from tcpfit.report import diagnosed

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/diagnosis/causes"
FIGURES = FOLDER / "figures"
COUNTS = FOLDER / "validation.json"
SAMPLES = ROOT / "sample-traces"

BLOCK = re.compile(r"^<!-- (sample|validation|pairs|causes): ([^>]*?) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)

COLUMNS = 100

COLOURS = {
    names.APPLICATION: "#1f6fb4",
    names.SEND_BUFFER: "#1aa3b5",
    names.SLOW_START: "#7a5bb0",
    names.WINDOW: "#2b8c3e",
    names.STALLED: "#a3a11f",
    names.LOSS: "#c2332f",
    names.TIMEOUT: "#7d5446",
    names.REORDERING: "#cf62ae",
    names.BOTTLENECK: "#d4721c",
    names.UNKNOWN: "#8a8a8a",
}

EVENTS = {"loss": "lost", "timeout": "timer ran out", "spurious": "needless resend"}
"""Events in a picture, and what its legend calls them."""

MARKS = {"lost": "M-1,-1L1,1M1,-1L-1,1", "timer ran out": "triangle-up", "needless resend": "circle"}
"""Their shapes, from the lowest row on."""

ENDS = ("sender", "receiver")

ABOUT = (
    "{} transfers between Linux hosts over an emulated path, each made with one cause, at both ends "
    "(`benchmarks/verdicts.py`). Elsewhere a verdict is right where it comes with the cause that was made: a window "
    "that is full between late segments, timeouts among losses."
)

KERNEL = {
    names.APPLICATION: ("busy", "The time in which the sender had something to send"),
    names.WINDOW: ("rwnd_limited", "The time in which the receiver's window held the flow, a stall included"),
    names.SEND_BUFFER: ("sndbuf_limited", "The time in which the send buffer held the flow"),
}
"""What TCP_INFO counts of a cause, and in words."""


@cache
def analysed(name: str) -> tuple[tcpfit.Analysis, Report]:
    """The analysis of a sample, and the report on its largest flow."""
    analysis = tcpfit.analyze(SAMPLES / f"{name}.pcap.gz", segments=True)
    return analysis, report(analysis.select(analysis.largest()[:1]))[0]


def printed(name: str) -> str:
    """What `tcpfit diagnose` prints of a sample's flow, below the line of the capture."""
    analysis, found = analysed(name)
    out = Console(file=io.StringIO(), width=COLUMNS, color_system=None)
    diagnosed.show(found, analysis.capture["start_ns"], analysis.rounds, out)
    text = out.file.getvalue()  # type: ignore[attr-defined]
    return "".join(f"    {line}".rstrip() + "\n" for line in text.rstrip().splitlines())


def truth(name: str) -> dict[str, Any]:
    """What is known of a sample."""
    folder, _, own = name.rpartition("/")
    facts = json.loads((SAMPLES / folder / "truth.json").read_text())
    found: dict[str, Any] = facts.get(own, facts.get(f"{own}.pcap.gz"))
    return found


def recorded(facts: dict[str, Any], total_s: float) -> str:
    """What path and kernel recorded, in a sentence; total_s is the flow's duration."""
    if "busy_s" not in facts:
        return ""
    parts = [f"{facts['lost_segments']:,} of {facts['data_segments']:,} data segments lost"]
    if facts["segments_overtaken"]:
        parts.append(f"{facts['segments_overtaken']} overtaken")
    counts = (("fast_recoveries", "fast recovery", "fast recoveries"), ("timeouts", "timeout", "timeouts"))
    parts += [f"{facts[key] or 'no'} {one if facts[key] == 1 else many}" for key, one, many in counts]
    parts.append(f"at most {facts['longest_queue_packets']} packets in the queue")
    names = (("busy_s", "busy"), ("rwnd_limited_s", "rwnd_limited"), ("sndbuf_limited_s", "sndbuf_limited"))
    times = ", ".join(f"{name} {min(facts[key] / total_s, 1):.0%}" for key, name in names)
    return f"The path recorded: {', '.join(parts)}. TCP_INFO, as shares of the time: {times}."


def sample(name: str) -> str:
    """The block of a sample."""
    _, found = analysed(name)
    facts = truth(name)
    total_s = sum(cause.seconds for cause in found.diagnosis.causes)
    words = f"`sample-traces/{name}.pcap.gz`: {facts['path']}. `tcpfit diagnose` says:"
    parts = [textwrap.fill(words, 118), printed(name).rstrip("\n")]
    if record := recorded(facts, total_s):
        parts.append(textwrap.fill(record, 118))
    parts.append(f"![{found.diagnosis.primary}: flight and round trip, shaded by cause](figures/{picture(name)}.svg)")
    return "\n\n".join(parts)


def picture(name: str) -> str:
    """Name of a sample's picture."""
    return name.rsplit("/", 1)[-1]


def validation(cause: str) -> str:
    """The block of a cause's counts."""
    data = json.loads(COUNTS.read_text())
    parts = []
    if own := data["causes"].get(cause):
        head = ("capture", "made with it", "of these named", "named elsewhere", "of these right")
        rows = [head, ("---",) * len(head), *((end, *map(str, own[end])) for end in ENDS)]
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
        parts.append(textwrap.fill(ABOUT.format(data["transfers"]), 118))
    wrong = [miss.split(": ")[0] for miss in data["wrong"] if miss.endswith(f": {cause}")]
    if wrong:
        what = "A cause was made, but is not named" if cause == names.UNKNOWN else "Wrong"
        parts.append(textwrap.fill(f"{what}: {', '.join(wrong)}.", 118))
    if cause in KERNEL:
        share, what = KERNEL[cause]
        good, every = data["kernel"][share]
        text = f"{what}, as the kernel counts it (TCP_INFO's `{share}`): within 5 points of it on {good} of {every} "
        parts.append(textwrap.fill(f"{text}single flows at the sender.", 118))
    return "\n\n".join(parts)


def pairs(kind: str) -> str:
    """The block of the pairs of a kind."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    counterfactuals = importlib.import_module("counterfactuals")
    rows = counterfactuals.load()
    table: str = counterfactuals.table(rows, [pair for pair in counterfactuals.EVERY if pair.kind == kind])
    return f"Predicted and measured changes of the rate ([counterfactuals](../counterfactuals.md)):\n\n{table}"


def causes(_: str) -> str:
    """The block that lists the pages."""
    lines = ["| cause | who | claim |", "| --- | --- | --- |"]
    for cause in names.CAUSES:
        claim = re.search(r"\*\*Claim\.\*\* (.*?)[.:](?:\s)", (FOLDER / f"{cause}.md").read_text(), re.DOTALL)
        assert claim is not None, cause
        lines.append(f"| [`{cause}`]({cause}.md) | {WHO[cause]} | {' '.join(claim[1].split())} |")
    return "\n".join(lines)


MAKERS = {"sample": sample, "validation": validation, "pairs": pairs, "causes": causes}


def pages() -> Iterator[tuple[Path, str]]:
    """Every page as it should be."""
    for path in sorted(FOLDER.glob("*.md")):
        yield path, BLOCK.sub(_made, path.read_text())


def _made(block: re.Match[str]) -> str:
    return f"<!-- {block[1]}: {block[2]} -->\n\n{MAKERS[block[1]](block[2])}\n\n<!-- end -->"


def shown() -> list[str]:
    """The samples that the pages show."""
    text = "".join(path.read_text() for path in sorted(FOLDER.glob("*.md")))
    return [name for kind, name in BLOCK.findall(text) if kind == "sample"]


def drawn(name: str) -> dict[str, Any]:
    """The data of a sample's picture: spans by cause, rounds, marks; seconds from the flow's first data segment."""
    analysis, found = analysed(name)
    flow = found.flow["flow"]
    analysis = analysis.select([flow])
    first = found.flow["first_ns"]

    def at(column: str) -> pl.Expr:
        seconds: pl.Expr = (pl.col(column) - first) / 1e9
        return seconds.round(4)

    spans = accounted(analysis.conversations).filter(flow=flow).sort("start_ns")
    joined = spans.with_columns(run=(pl.col("cause") != pl.col("cause").shift()).fill_null(True).cum_sum())
    shades = joined.group_by("run", maintain_order=True).agg(
        at("start_ns").first().alias("from"), at("end_ns").last().alias("to"), pl.col("cause").first()
    )
    columns = {"flight": pl.col("flight").round(1), "window": pl.col("rwnd").round(1)}
    trip = (1e3 * pl.col("rtt_s")).round(2).alias("rtt")
    rounds = analysis.rounds.select(at("start_ns").alias("t"), *(e.alias(n) for n, e in columns.items()), trip)
    until = pl.col("start_ns").shift(-1).fill_null(pl.col("end_ns"))
    idle = analysis.rounds.with_columns(start_ns=(until - 1e9 * pl.col("idle_s")).cast(pl.Int64))[:-1].filter(
        pl.col("idle_s") > 0.002
    )
    pauses = idle.select(at("start_ns").alias("t"), flight=pl.lit(0.0), window=columns["window"], rtt=trip)
    rounds = pl.concat([rounds, pauses]).sort("t", maintain_order=True)
    marks = analysis.events.filter(pl.col("kind").cast(pl.String).is_in(list(EVENTS))).select(
        at("time_ns").alias("t"), pl.col("kind").cast(pl.String).replace(EVENTS)
    )
    return {
        "shades": shades.drop("run").to_dicts(),
        "rounds": rounds.to_dicts(),
        "marks": marks.to_dicts(),
        "causes": [cause.cause for cause in found.diagnosis.causes],
    }


def digest(data: Any) -> str:
    """What stands in a picture's last line."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def chart(data: dict[str, Any]) -> Any:
    """Flight, advertised window and marks over the round trip, shaded by cause; an Altair chart."""
    import altair as alt

    end = data["shades"][-1]["to"]
    time = alt.Scale(domain=[0, end], nice=False)
    present = list(dict.fromkeys(shade["cause"] for shade in data["shades"]))
    colour = alt.Color(
        "cause:N",
        scale=alt.Scale(domain=present, range=[COLOURS[cause] for cause in present]),
        legend=alt.Legend(title=None, orient="bottom", columns=4, symbolOpacity=0.6, symbolType="square"),
    )
    last = data["rounds"][-1:]
    rounds = alt.Chart(alt.InlineData(values=[*data["rounds"], *({**row, "t": end} for row in last)]))

    def panel(height: int, axis: Any, *layers: Any) -> Any:
        shades = alt.Chart(alt.InlineData(values=data["shades"])).mark_rect(opacity=0.28, aria=False)
        over = shades.encode(x=alt.X("from:Q", scale=time, axis=axis), x2="to:Q", color=colour)
        return alt.layer(over, *layers).properties(width=640, height=height)

    def line(column: str, title: str | None, scale: Any, axis: Any, **look: Any) -> Any:
        y = alt.Y(f"{column}:Q", scale=scale, title=title)
        return rounds.mark_line(interpolate="step-after", clip=True, **look).encode(
            x=alt.X("t:Q", scale=time, axis=axis), y=y
        )

    flights, windows, trips = (
        [row[column] for row in data["rounds"] if row[column] is not None] for column in ("flight", "window", "rtt")
    )
    top = 1.15 * max(flights, default=1.0)
    near = bool(windows) and statistics.median(windows) <= 1.5 * top
    if near:
        top = max(top, 1.1 * min(max(windows), 2 * top))
    scale, axis = alt.Scale(domain=[0, top], nice=False), alt.Axis(labels=False, title=None)
    title = "flight; window dashed (segments)" if near else "flight (segments)"
    layers = [line("window", title, scale, axis, strokeDash=[4, 2], color="#444", strokeWidth=1)] if near else []
    layers.append(line("flight", title, scale, axis, color="#111", strokeWidth=1.3))
    kinds = [kind for kind in MARKS if any(mark["kind"] == kind for mark in data["marks"])]
    if kinds:
        at = {kind: (0.04 + 0.07 * place) * top for place, kind in enumerate(kinds)}
        marks = alt.Chart(alt.InlineData(values=[mark | {"y": at[mark["kind"]]} for mark in data["marks"]]))
        shape = alt.Shape(
            "kind:N",
            scale=alt.Scale(domain=kinds, range=[MARKS[kind] for kind in kinds]),
            legend=alt.Legend(title=None, orient="bottom"),
        )
        x, y = alt.X("t:Q", scale=time, axis=axis), alt.Y("y:Q", scale=scale, title=title)
        points = marks.mark_point(size=24, strokeWidth=1.2, color="#111", aria=False)
        layers.append(points.encode(x=x, y=y, shape=shape))
    axis = alt.Axis(title="seconds since the first data segment")
    scale = alt.Scale(domain=[0, 1.1 * max(trips, default=1.0)], nice=False)
    lower = panel(80, axis, line("rtt", "round trip (ms)", scale, axis, color="#111", strokeWidth=1.2))
    upper = panel(170, alt.Axis(labels=False, title=None), *layers)
    both = alt.vconcat(upper, lower, spacing=8).resolve_scale(color="shared", shape="shared")
    return both.configure_axis(grid=False, titleFontWeight="normal").configure_view(stroke="#bbb")


def drawings() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Name, data and digest of every picture."""
    for name in shown():
        data = drawn(name)
        yield picture(name), data, digest(data)


def main() -> int:
    """Write pages and pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    stale = [path for path, text in pages() if path.read_text() != text]
    pictures = {name: (data, mark) for name, data, mark in drawings()}
    stale += [
        FIGURES / f"{name}.svg"
        for name, (_, mark) in pictures.items()
        if not (FIGURES / f"{name}.svg").exists() or f"<!-- {mark} -->" not in (FIGURES / f"{name}.svg").read_text()
    ]
    if arguments.check:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not current; run docs/make_causes.py", file=sys.stderr)
        return 1 if stale else 0
    FIGURES.mkdir(exist_ok=True)
    for path, text in pages():
        path.write_text(text)
    from tcpfit.report import figures

    for name, (data, mark) in pictures.items():
        svg = figures.render(chart(data), ".svg").decode().rstrip("\n")
        (FIGURES / f"{name}.svg").write_text(f"{svg}\n<!-- {mark} -->\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
