"""What `tcpfit pool` and `tcpfit dynamics` print: short flows by size, flows compared, and a flow's rate over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tcpfit.report import words
from tcpfit.report.plain import plain

if TYPE_CHECKING:
    from tcpfit.ranking.across import Across
    from tcpfit.ranking.dynamics import Course

SHOWN = 4
"""Models of a size in the table."""
WIDTH = 24
"""Characters of the longest bar."""


def short(ranked: pl.DataFrame, judged: pl.DataFrame) -> list[dict[str, Any]]:
    """The sizes of short flows, each with its verdict and its models, best first."""
    sizes = []
    for verdict in judged.to_dicts():
        low, high = verdict.pop("low"), verdict.pop("high")
        own = ranked.filter((pl.col("low") == low) & (pl.col("high") == high)).drop("low", "high").to_dicts()
        sizes.append({"low": low, "high": high, "verdict": verdict, "models": own})
    return sizes


def across(found: Across) -> dict[str, Any]:
    """Models and constants over the flows, and the tree where there are flows enough for one."""
    from tcpfit.exceptions import TcpfitError

    try:
        grown = found.tree()
    except TcpfitError as error:  # too few flows, or no scikit-learn
        tree: dict[str, Any] = {"rules": None, "text": str(error)}
    else:
        tree = {
            "rules": grown.rules,
            "groups": grown.groups,
            "accuracy": grown.accuracy,
            "accuracy_se": grown.accuracy_se,
            "always": grown.always,
            "always_accuracy": grown.always_accuracy,
            "difference_se": grown.difference_se,
            "text": grown.text,
        }
    return {
        "flows": found.residuals["group"].n_unique(),
        "models": found.models.to_dicts(),
        "constants": found.constants.to_dicts(),
        "tree": tree,
    }


def course(found: Course) -> dict[str, Any]:
    """A flow's course: the bins, and the scores of the models, best first."""
    return {
        "flow": found.flow,
        "bin_s": found.bin_s,
        "blocks": found.blocks,
        "empty_bins": found.empty_bins,
        "text": found.text,
        "scores": found.scores.to_dicts(),
        "course": found.table.to_dicts(),
    }


def show_pool(sizes: Sequence[dict[str, Any]], flows: dict[str, Any], out: Console) -> None:
    """Print short flows by size, and the models over all larger flows."""
    out.print(Text("short flows, by size", style="bold"))
    if not sizes:
        out.print(Text("  no short transfer", style="yellow"))
    for size in sizes:
        out.print()
        _size(size, out)
    out.print()
    out.print(Text(f"models over {words.plural(flows['flows'], 'flow')}", style="bold"))
    table = _table("model", "flows", "1st", "named", "ln ratio", "95 %", "tau", "near")
    for row in flows["models"]:
        ends = "" if row["low"] is None else f"{row['low']:+.2f} to {row['high']:+.2f}"
        between = "" if row["tau"] is None else f"{row['tau']:.2f}"
        counts = [str(row[name]) for name in ("flows", "first", "named")]
        table.add_row(row["model"], *counts, f"{row['log_ratio']:+.2f}", ends, between, f"{row['within_15']:.0%}")
    out.print(table)
    _print("ln ratio: of predicted to observed; tau: its spread between flows; near: within 0.15", out, style="dim")
    for row in flows["constants"]:
        law = {"c_half": "c of c/sqrt(p)", "c": "c of c/p^k", "k": "k of c/p^k"}[row["name"]]
        interval = f"{row['value']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        _print(f"{law}, {row['where']}, {words.plural(row['flows'], 'flow')}: {interval}", out)
    out.print()
    out.print(Text("which model ranks first", style="bold"))
    if flows["tree"]["rules"]:
        _print(flows["tree"]["rules"].rstrip(), out)
    _print(flows["tree"]["text"], out)


def show_course(found: Course, path: str, out: Console) -> None:
    """Print the rate over time, observed and predicted, with a bar for each; then the scores."""
    out.print(Text(f"{plain(path)}, flow {found.flow}", style="bold"), soft_wrap=True)
    _print(found.text, out)
    out.print()
    rates = found.table.select("observed_bps", "predicted_bps").fill_null(0.0).to_numpy()
    top = float(rates.max(initial=1.0))
    table = _table("time", "loss", "observed", "predicted", "", left=("",))
    for row, (seen, said) in zip(
        found.table.to_dicts(), (WIDTH * rates / top).round().astype(int).tolist(), strict=True
    ):
        bar = "".join("=" if i < min(seen, said) else "o" if i < seen else "p" for i in range(max(seen, said)))
        both = [words.rate(row[name]) for name in ("observed_bps", "predicted_bps")]
        table.add_row(words.seconds(row["time_s"]), f"{row['loss_rate']:.2%}", *both, bar)
    out.print(table)
    _print("bars: = both, o observed beyond predicted, p predicted beyond observed", out, style="dim")
    out.print()
    scores = _table("model", "rms", "bias", "shape")
    for row in found.scores.to_dicts():
        scores.add_row(row["model"], f"{row['rms']:.2f}", f"{row['bias']:+.2f}", f"{row['shape']:.2f}")
    out.print(scores)


def _size(size: dict[str, Any], out: Console) -> None:
    models = size["models"]
    _print(f"{size['low']} to {size['high']} segments: {size['verdict']['text']}", out)
    table = _table("model", "start", "flows", "predicted", "ln of means", "median ln", "score", left=("model", "start"))
    ranked = [row for row in models if row["rank"] is not None]
    for row in [*ranked[:SHOWN], *(row for row in models if row["rank"] is None)]:
        numbers = [f"{row['log_ratio_mean']:+.2f}", f"{row['log_ratio_median']:+.2f}", f"{row['score']:.2f}"]
        table.add_row(row["model"], row["start"], str(row["flows"]), words.seconds(row["predicted_mean_s"]), *numbers)
    out.print(Padding(table, (0, 0, 0, 2)))
    if models:
        _print(f"observed {words.seconds(models[0]['observed_mean_s'])} on average", out, by=4, style="dim")
    law = next((row for row in models if row["inside_90"] is not None and row["start"] == "drawn"), None)
    if law:
        shares = f"{law['inside_50']:.0%} and {law['inside_90']:.0%}"
        said = f"central 50 and 90 % of hysteresis with drawn losses hold {shares} of the times"
        _print(said, out, by=4, style="dim")


def _print(text: str, out: Console, *, by: int = 2, style: str = "") -> None:
    """Print text that stays indented in the lines that it wraps to."""
    out.print(Padding(Text(text, style=style), (0, 0, 0, by)))


def _table(*headings: str, left: tuple[str, ...] = ("model",)) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right", no_wrap=True)
    return table
