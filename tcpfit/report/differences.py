"""What `tcpfit compare` prints: a table for people, a JSON document, a CSV row a packet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import tcpfit
from tcpfit.report import contract, terminal, words
from tcpfit.schema import ENDS, SCHEMA_VERSION

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis
    from tcpfit.comparison import Comparison

LARGEST = 3
"""Flows whose differing packets are shown where not all are asked for."""

PACKETS = 10
"""Differing packets of a flow that are shown then."""

ROWS_AT_A_TIME = 4096


def show(comparison: Comparison, classes: dict[str, str], analysis: Analysis, out: Console, *, every: bool) -> None:
    """Print a comparison: per flow how many packets are labelled alike and otherwise, by class, and which those are.

    `classes` is the sentence of each class; `every` shows all flows and packets, not only the largest.
    """
    packets = comparison.packets
    alike = int(packets["agrees"].sum())
    terminal.header(contract.capture_facts(analysis), analysis.flows.height, out)
    out.print(f"  beside TShark {comparison.tshark}: {_alike(alike, packets.height - alike)}")
    if comparison.warning:
        out.print(Padding(Text(f"warning: {comparison.warning}", style="yellow"), (0, 0, 0, 2)))
    flows: list[int | None] = [*analysis.largest(), None]
    parts = packets.partition_by("flow", as_dict=True, maintain_order=True)
    differing = [flow for flow in flows if (flow,) in parts and not parts[flow,]["agrees"].all()]
    shown = differing if every else differing[:LARGEST]
    ends = {row["flow"]: row for row in analysis.flows.select("flow", *ENDS).iter_rows(named=True)}
    for flow in shown:
        out.print()
        out.print(Text(_title(flow, ends), style="bold"))
        _flow(parts[flow,], classes, out, None if every else PACKETS)
    if len(differing) > len(shown):
        more = words.plural(len(differing) - len(shown), "smaller flow")
        out.print()
        out.print(Text(f"  {more} with differences not shown; --all shows every one", "dim"))


def _alike(alike: int, otherwise: int) -> str:
    return f"{words.plural(alike, 'packet')} labelled alike, {otherwise} otherwise"


def _title(flow: int | None, ends: dict[int, dict[str, Any]]) -> str:
    if flow is None:
        return "packets of directions that carried no data"
    row = ends[flow]
    source, target = (words.endpoint(row[end], row[f"{end}_port"]) for end in ("src", "dst"))
    return f"flow {flow}  {source} > {target}"


def _flow(packets: pl.DataFrame, classes: dict[str, str], out: Console, most: int | None) -> None:
    differ = packets.filter(~pl.col("agrees"))
    out.print(f"  {_alike(packets.height - differ.height, differ.height)}")
    out.print()
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    table.add_column("  packets", justify="right", no_wrap=True)
    table.add_column("difference", no_wrap=True)
    table.add_column("why", style="dim", overflow="fold")
    counts = differ.group_by("class").len().sort("len", "class", descending=[True, False])
    for name, count in counts.iter_rows():
        table.add_row(str(count), name, classes[name])
    out.print(table)
    out.print()
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    table.add_column("  frame", justify="right", no_wrap=True)
    table.add_column("tcpfit", overflow="fold")
    table.add_column("tshark", overflow="fold", max_width=24)
    table.add_column("difference", overflow="fold")
    for row in (differ if most is None else differ.head(most)).iter_rows(named=True):
        label = row["label"].replace(", ", "\n") or words.NONE
        why = f"{row['class']}: {row['why']}" if row["why"] else row["class"]
        table.add_row(str(row["frame"]), label, row["tshark"].replace(", ", "\n") or words.NONE, why)
    out.print(table)
    if most is not None and differ.height > most:
        out.print(Text(f"  {differ.height - most} more; --all shows every one", "dim"))


def document(comparison: Comparison, analysis: Analysis) -> dict[str, Any]:
    """The JSON document: every flow with its counts, every packet that either labels, what was not analysed and why."""
    ends = {row["flow"]: row for row in analysis.flows.select("flow", *ENDS).iter_rows(named=True)}
    facts, flows = contract.capture_facts(analysis), []
    for (flow,), packets in comparison.packets.group_by("flow", maintain_order=True):
        counts = packets["class"].drop_nulls().cast(pl.String).value_counts(sort=True)
        names = ends.get(flow, dict.fromkeys(ENDS))
        flows.append(
            {"flow": flow}
            | {name: names[name] for name in ENDS}
            | {
                "agree": int(packets["agrees"].sum()),
                "differ": dict(counts.iter_rows()),
                "packets": packets.drop("flow").to_dicts(),
            }
        )
    return {
        "tcpfit": tcpfit.__version__,
        "schema": SCHEMA_VERSION,
        "path": facts["path"],
        "against": "tshark",
        "version": comparison.tshark,
        "packets": facts["packets"],
        "skipped": facts["skipped"],
        "warnings": [*facts["warnings"], *([comparison.warning] if comparison.warning else [])],
        "flows": flows,
    }


def csv(comparison: Comparison) -> Iterator[str]:
    """CSV, a row per packet that either labels; pieces of text, the first with the header."""
    packets = comparison.packets
    yield packets.clear().write_csv()
    for part in packets.iter_slices(ROWS_AT_A_TIME):
        yield part.write_csv(include_header=False)
