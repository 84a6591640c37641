"""Where the time of a flow went: a lane a cause of the diagnosis, with its spans and its share of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit.diagnosis.causes import CAUSES
from tcpfit.diagnosis.table import accounted
from tcpfit.report import words
from tcpfit.report.figures import drawing
from tcpfit.report.figures.kind import Kind, NothingToDraw, flow_row, start_ns, subtitle

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

COLOURS = dict(
    zip(
        CAUSES,
        (
            drawing.GREY,
            drawing.OLIVE,
            drawing.MAGENTA,
            drawing.BROWN,
            drawing.RED,
            drawing.ORANGE,
            drawing.GREEN,
            drawing.PURPLE,
            drawing.BLUE,
            drawing.GREY,
        ),
        strict=True,
    )
)

COLUMNS = 1000
"""Gaps between spans of one cause that are shorter than the time over this are drawn over; the shares are exact."""


def data(analysis: Analysis, flow: int) -> dict[str, pl.DataFrame]:
    """`spans` (begin, end, cause, frame, number of the rule), of which neighbours are joined, `rules` (the rule's text
    by its number), and `causes` (cause, seconds, share), the largest first."""
    row = flow_row(analysis, flow)
    spans = accounted(analysis.select([flow]).conversations).filter(pl.col("flow") == flow)
    spans = spans.with_columns(seconds=(pl.col("end_ns") - pl.col("start_ns")) / 1e9).filter(pl.col("seconds") > 0)
    if spans.is_empty():
        raise NothingToDraw(f"flow {flow} of {analysis.path} carried data at one instant only; no time to account for")
    whole = float(spans["seconds"].sum())
    causes = (
        spans.group_by("cause")
        .agg(pl.col("seconds").sum())
        .with_columns(share=pl.col("seconds") / whole)
        .sort("seconds", "cause", descending=[True, False])
    )
    gap = pl.col("start_ns") - pl.col("end_ns").shift().over("cause") > 1e9 * whole / COLUMNS
    joined = (
        spans.sort("start_ns")
        .with_columns(run=gap.fill_null(True).cum_sum().over("cause"))
        .group_by("cause", "run", maintain_order=True)
        .agg(
            begin=(pl.col("start_ns").first() - start_ns(analysis)) / 1e9,
            end=(pl.col("end_ns").last() - start_ns(analysis)) / 1e9,
            rule=pl.col("rule").first(),
            frame=pl.col("frame").drop_nulls().first(),
        )
        .select("begin", "end", "cause", "rule", "frame")
    )
    rules = joined["rule"].unique(maintain_order=True)
    joined = joined.with_columns(pl.col("rule").replace_strict(rules, pl.int_range(len(rules), eager=True)))
    places = drawing.time_decimals((row["last_ns"] - row["first_ns"]) / 1e9)
    return {
        "spans": drawing.rounded(joined, {"begin": places, "end": places}),
        "rules": pl.DataFrame({"rule": pl.int_range(len(rules), eager=True), "text": rules}),
        "causes": drawing.rounded(causes, {"seconds": 6, "share": 6}),
    }


def describe(analysis: Analysis, flow: int) -> str:
    """Every cause with its share of the time."""
    causes = data(analysis, flow)["causes"]
    shares = [
        f"{cause} {share:.1%} ({words.seconds(seconds)})" for cause, seconds, share in causes.iter_rows() if share
    ]
    return f"Where {words.seconds(float(causes['seconds'].sum()))} went: {', '.join(shares)}."


def chart(analysis: Analysis, flow: int, *, theme: str = "light") -> Any:
    """A lane a cause, with its share of the whole time beside its name."""
    alt = drawing.altair()
    tables = data(analysis, flow)
    causes = tables["causes"]
    names = {cause: f"{cause} {share:.1%}" for cause, share in causes.select("cause", "share").iter_rows()}
    domain = list(names.values())
    y = alt.Y(
        "lane:N", title=None, scale=alt.Scale(domain=domain), axis=alt.Axis(grid=True, ticks=False, labelLimit=260)
    )
    colours = [COLOURS[cause] for cause in names]
    tooltip = [
        alt.Tooltip("cause:N"),
        alt.Tooltip("begin:Q", title="from (s)"),
        alt.Tooltip("end:Q", title="to (s)"),
        alt.Tooltip("text:N", title="rule"),
        alt.Tooltip("frame:Q"),
    ]
    bars = (
        drawing.source("spans", tables["spans"])
        .transform_calculate(
            lane=drawing.choose("datum.cause", names),
            filter=drawing.FILTER,
            text=drawing.choose("datum.rule", {str(rule): text for rule, text in tables["rules"].iter_rows()}),
        )
        .mark_bar(height=18, clip=True)
        .encode(
            drawing.time_axis(analysis, flow_row(analysis, flow), "begin:Q"),
            y,
            alt.Color("lane:N", scale=alt.Scale(domain=domain, range=colours), legend=None),
            x2="end:Q",
            tooltip=tooltip,
        )
    )
    return drawing.finished(
        drawing.layered([bars], encodings=["x"], height=28 * len(domain)),
        {"spans": tables["spans"]},
        title=KIND.title,
        subtitle=subtitle(flow_row(analysis, flow)),
        theme=theme,
    )


KIND = Kind("shares", "Where the time went", False, describe, data, chart)
