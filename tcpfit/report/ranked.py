"""Flows by models as `tcpfit rank` prints them: a table with a column a caveat, one JSON document, or CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tcpfit.report import contract, csv, terminal, words

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

CAVEATS = {
    "C": ("reno-growth", "cubic-growth", "no-fast-recovery"),
    "L": ("loss-limited",),
    "W": ("not-window-limited", "window-limited"),
    "B": ("bulk",),
    "S": ("sack", "no-sack"),
    "R": ("no-reordering", "reordering", "reordering-felt"),
    "T": ("no-timeouts",),
    "M": ("bernoulli-loss", "correlated-loss-in-round"),
}
"""Columns of the table, and the assumptions that each stands for."""

NO, WEAK, FITTED, MISSING = "x", "~", "f", "!"

LEGEND = (
    "What fails, x where the model requires it, ~ where not: C congestion control; L loss bounds the rate, not the "
    "application or capacity; W window limit; B bulk transfer; S SACK; R reordering; T timeouts; M losses per event. "
    "P: f a parameter is fitted on the flow, ! one is missing or out of range. --format csv has the reasons."
)

FLOW = ("flow", "src", "src_port", "dst", "dst_port")


def show(analysis: Analysis, out: Console, *, top: int) -> None:
    """Print the `top` largest flows of a capture, each with its verdict and a row a model."""
    numbers = analysis.largest()
    terminal.header(contract.capture_facts(analysis), len(numbers), out)
    if not numbers:
        out.print(Text("  no TCP flow carried data in what was analysed", style="yellow"))
        return
    shown = analysis.select(numbers[:top])
    by_flow = {row["flow"]: row for row in contract.rows(shown.flows.select(*FLOW))}
    verdicts = {row["flow"]: row for row in contract.rows(shown.verdicts)}
    models = shown.ranking.partition_by("flow", as_dict=True)
    for number in numbers[:top]:
        flow, verdict = by_flow[number], verdicts[number]
        title = f"flow {number}  {words.endpoint(flow['src'], flow['src_port'])} > "
        out.print()
        out.print(Text(title + words.endpoint(flow["dst"], flow["dst_port"]), style="bold"))
        state, style = terminal.STATES[verdict["state"]]
        out.print(Padding(Text.assemble((f"{state}: ", style), verdict["text"]), (0, 0, 0, 2)))
        out.print(_table(contract.rows(models[(number,)])))
    out.print(Padding(Text(LEGEND, style="dim"), (0, 0, 0, 2)))
    if len(numbers) > top:
        out.print(Text(f"  {words.plural(len(numbers) - top, 'smaller flow')} not shown; --top shows more", "dim"))


def _table(models: Sequence[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("model", overflow="fold", min_width=20)
    for heading in ("off", "block", "best"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in (*CAVEATS, "P"):
        table.add_column(heading, no_wrap=True)
    for model in models:
        table.add_row(
            words.NONE if model["rank"] is None else str(model["rank"]),
            _named(model),
            words.off(model["log_ratio"]),
            _error(model["score"]),
            words.NONE if model["probability_best"] is None else f"{model['probability_best']:.0%}",
            *(caveat(model, column) for column in CAVEATS),
            _of_parameters(model),
            style="" if model["applicable"] else "dim",
        )
    return table


def _named(model: dict[str, Any]) -> str:
    """The model, and the value of the parameter that was fitted on the flow."""
    return model["model"] if model["fitted"] is None else f"{model['model']} = {model['fitted']:.3g}"


def caveat(model: dict[str, Any], column: str) -> str:
    """What a row of the ranking has in one of the columns of caveats."""
    if any(name in CAVEATS[column] for name in model["failed"]):
        return NO
    return WEAK if any(name in CAVEATS[column] for name in model["weakened"]) else ""


def _of_parameters(model: dict[str, Any]) -> str:
    if model["log_ratio"] is None:
        return MISSING
    return "" if model["fitted"] is None else FITTED


def _error(score: float | None) -> str:
    return words.NONE if score is None else words.off(math.sqrt(score)).removeprefix("+")


def document(analyses: Sequence[Analysis]) -> dict[str, Any]:
    """The JSON document: every capture, its flows with their verdicts, every row of the ranking."""
    return contract.envelope([_capture(analysis) for analysis in analyses])


def _capture(analysis: Analysis) -> dict[str, Any]:
    verdicts = {row["flow"]: row for row in contract.rows(analysis.verdicts)}
    models: dict[int, list[dict[str, Any]]] = {number: [] for number in verdicts}
    for row in contract.rows(analysis.ranking):
        models[row.pop("flow")].append(row)
    flows = []
    for row in contract.rows(analysis.flows.select(*FLOW)):
        number = row.pop("flow")
        verdict = {key: verdicts[number][key] for key in ("state", "models", "text")}
        flows.append({"id": number} | row | {"verdict": verdict, "models": models[number]})
    return {"path": analysis.path, "warnings": analysis.warnings, "flows": flows}


def csv_texts(analysis: Analysis, *, header: bool = True) -> Iterator[str]:
    """CSV, a line a flow and model: the flow's ends and verdict, then every column of the ranking."""
    ends = analysis.flows.select(*FLOW)
    verdicts = analysis.verdicts.select("flow", pl.col("state").alias("verdict"))
    table = ends.join(verdicts, on="flow", maintain_order="left").join(
        analysis.ranking, on="flow", maintain_order="left_right"
    )
    reasons = pl.col("reasons").list.join("; ").replace("", None)
    yield from csv.texts(table.with_columns(reasons), analysis.path, header=header)
