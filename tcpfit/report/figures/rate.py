"""The rate over time and by blocks, beside every model's predicted rate with its interval on the same axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tcpfit.parameters.intervals import Floats
from tcpfit.ranking.residuals import rate as block_rate
from tcpfit.ranking.table import BASELINES
from tcpfit.report import words
from tcpfit.report.figures import drawing
from tcpfit.report.figures.kind import Kind, NothingToDraw, flow_row, one_way, start_ns, subtitle
from tcpfit.report.figures.ranking import GROUPS

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

BINS = 100
"""Most bins of time; a bin lasts two round trips at least."""

UNITS = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))

MODELS = pl.Schema(
    {
        "model": pl.String(),
        "group": pl.String(),
        "rate": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "rank": pl.UInt32(),
    }
)


def data(analysis: Analysis, flow: int) -> dict[str, pl.DataFrame]:
    """`observed` (begin and end of a bin in s, rate), `blocks` of the steady part (begin, end, rate) and `models`
    (model, group, rate, low, high, rank); rates in bit/s of payload that was acknowledged."""
    row = flow_row(analysis, flow)
    rounds = analysis.rounds.filter(pl.col("flow") == flow).sort("round")
    since = start_ns(analysis)
    begin, end = ((row[name] - since) / 1e9 for name in ("first_ns", "last_ns"))
    acked = rounds["acked_bytes"].sum() if rounds.height else 0
    if not acked or end <= begin:
        why = one_way(row) or "no ACKs of its data over some time"
        raise NothingToDraw(f"flow {flow} of {analysis.path} shows no rate: {why}")
    rtt = row["rtt_mean_s"] or 0.0
    count = max(1, min(BINS, int((end - begin) / (2 * rtt)) if rtt else BINS))
    edges = np.linspace(begin, end, count + 1)
    start = (rounds["start_ns"].to_numpy() - since) / 1e9
    until = (rounds["end_ns"].to_numpy() - since) / 1e9
    at, total = _acknowledged(start, until, rounds["acked_bytes"].to_numpy().astype(np.float64), end)
    observed = 8 * np.diff(np.interp(edges, at, total)) / np.diff(edges)
    tables = {
        "observed": pl.DataFrame({"begin": edges[:-1], "end": edges[1:], "rate": observed}),
        "blocks": _blocks(analysis, flow, since),
        "models": _models(analysis, flow),
    }
    places = drawing.time_decimals(end - begin)
    return {
        name: drawing.rounded(table, {n: places for n in ("begin", "end") if n in table.columns}).with_columns(
            pl.col(n).round_sig_figs(5) for n in ("rate", "low", "high") if n in table.columns
        )
        for name, table in tables.items()
    }


def _acknowledged(start: Floats, until: Floats, acked: Floats, end: float) -> tuple[Floats, Floats]:
    """Bytes acknowledged by each time: those of a round come evenly over it, none while nothing was outstanding."""
    follows = np.append(start[1:], end)
    until = np.minimum(np.maximum(until, start), np.maximum(follows, start))
    at = np.column_stack((start, until)).ravel()
    total = np.cumsum(acked)
    return np.maximum.accumulate(at), np.column_stack((np.concatenate(([0.0], total[:-1])), total)).ravel()


def _blocks(analysis: Analysis, flow: int, since: int) -> pl.DataFrame:
    """The blocks that the ranking compares models by, each with the rate of its own time."""
    own = analysis.select([flow])
    blocks = own.blocks()
    if len(blocks.owner) < 2:
        return pl.DataFrame(schema={"begin": pl.Float64(), "end": pl.Float64(), "rate": pl.Float64()})
    begin, end = ((time_ns - since) / 1e9 for time_ns in (blocks.start_ns, blocks.end_ns))
    rate = 8 * float(own.flows["smss_bytes"][0]) * block_rate(blocks.sums, "goodput")
    return pl.DataFrame({"begin": begin, "end": end, "rate": pl.Series(rate).fill_nan(None)})


def _models(analysis: Analysis, flow: int) -> pl.DataFrame:
    rows = []
    for row in analysis.ranking.filter(pl.col("flow") == flow, pl.col("predicted_bps") > 0).iter_rows(named=True):
        ends = [row[name] for name in ("log_ratio_low", "log_ratio_high")]
        known = row["log_ratio"] is not None and None not in ends
        low, high = (row["predicted_bps"] * math.exp(e - row["log_ratio"]) if known else None for e in ends)
        group = "baseline" if row["model"] in BASELINES else "applies" if row["applicable"] else "fails"
        rows.append((row["model"], group, row["predicted_bps"], low, high, row["rank"]))
    return pl.DataFrame(rows, schema=MODELS, orient="row")


def describe(analysis: Analysis, flow: int) -> str:
    """The mean and the extremes of the observed rate, and the models' range."""
    row, tables = flow_row(analysis, flow), data(analysis, flow)
    observed = tables["observed"]["rate"].to_numpy()
    seconds = (row["last_ns"] - row["first_ns"]) / 1e9
    width = tables["observed"]["end"][0] - tables["observed"]["begin"][0]
    text = (
        f"Rate: {words.rate(8 * row['acked_bytes'] / seconds)} acknowledged on average, between "
        f"{words.rate(float(observed.min()))} and {words.rate(float(observed.max()))} in bins of {words.seconds(width)}"
    )
    models = tables["models"].filter(pl.col("group") == "applies")
    if models.height:
        rates = models["rate"].to_numpy()
        text += (
            f"; {words.plural(models.height, 'model')} that {'applies' if models.height == 1 else 'apply'} "
            f"predict{'s' if models.height == 1 else ''} "
            + (
                words.rate(rates[0])
                if models.height == 1
                else f"{words.rate(float(rates.min()))} to {words.rate(float(rates.max()))}"
            )
        )
    return f"{text}."


def chart(analysis: Analysis, flow: int, *, theme: str = "light") -> Any:
    """Left the observed rate over time with the blocks' rates, right each model's rate; both on one axis."""
    alt = drawing.altair()
    row, tables = flow_row(analysis, flow), data(analysis, flow)
    models = tables["models"]
    judged = models.filter(pl.col("group") == "applies")
    compared = [*tables["observed"]["rate"], *tables["blocks"]["rate"].drop_nulls(), *judged["rate"]]
    top = 1.12 * max(compared) if judged.height else 1.6 * max(compared)
    factor, unit = next(((f, name) for f, name in UNITS if top >= f), UNITS[-1])
    scaled = {name: f"datum.{name} == null ? null : datum.{name} / {factor:g}" for name in ("rate", "low", "high")}
    domain = alt.Scale(domain=[0, top / factor], nice=False)
    series = ["mean of a bin", *(["mean of a block"] if tables["blocks"].height else [])]
    colour = alt.Color(
        "what:N", scale=alt.Scale(domain=series, range=[drawing.BLUE, drawing.RED][: len(series)]), legend=None
    )

    def y(field: str = "rate:Q", **more: Any) -> Any:
        return alt.Y(field, title=more.pop("title", f"acknowledged ({unit})"), scale=domain, **more)

    def bars(table: str, what: str, **look: Any) -> Any:
        source = drawing.source(table, tables[table])
        shown = source.transform_calculate(what=f"'{what}'", rate=scaled["rate"])
        tooltip = [
            alt.Tooltip("what:N"),
            alt.Tooltip("rate:Q", title=unit, format=".4~r"),
            alt.Tooltip("begin:Q", title="from (s)"),
            alt.Tooltip("end:Q", title="to (s)"),
        ]
        x = drawing.time_axis(analysis, row, "begin:Q")
        return shown.mark_rule(clip=True, **look).encode(x, y(), colour, x2="end:Q", tooltip=tooltip)

    source = drawing.source("observed", tables["observed"]).transform_calculate(rate=scaled["rate"])
    steps = source.mark_line(interpolate="step-after", strokeWidth=1.2, color=drawing.BLUE, clip=True)
    over_time = [
        steps.encode(drawing.time_axis(analysis, row, "begin:Q"), y()),
        bars("observed", "mean of a bin", strokeWidth=2),
    ]
    if tables["blocks"].height:
        over_time.append(bars("blocks", "mean of a block", strokeWidth=3, opacity=0.8))
    left = drawing.layered(over_time, width=460 if models.height else drawing.WIDTH)
    below = "thin: bins of time; thick, red: blocks of the ranking" if tables["blocks"].height else "bins of time"
    if models.height:
        left = alt.hconcat(left, _beside(alt, models, scaled, domain, unit, top / factor), spacing=12)
        left = left.resolve_scale(color="independent", shape="independent")
        below += "; right: models with 95 % intervals, those above at the edge"
    return drawing.finished(left, tables, title=KIND.title, subtitle=[subtitle(row), below], theme=theme)


def _beside(alt: Any, models: pl.DataFrame, scaled: dict[str, str], domain: Any, unit: str, top: float) -> Any:
    """The models' panel: a point and an interval each, by group in colour and shape."""
    groups = [group for group in GROUPS if group in models["group"].to_list()]
    colours, shapes = ([GROUPS[group][n] for group in groups] for n in (1, 2))
    titles = {group: GROUPS[group][0] for group in groups}
    names = list(titles.values())
    legend = alt.Legend(title=None, orient="bottom", columns=1, symbolFillColor="transparent", symbolOpacity=1)
    colour = alt.Color("kind:N", scale=alt.Scale(domain=names, range=colours), legend=legend)
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=names, range=shapes), legend=legend)
    x = alt.X("model:N", title=None, sort=models["model"].to_list(), axis=alt.Axis(labelAngle=-60, grid=True))
    base = drawing.source("models", models).transform_calculate(
        kind=drawing.choose("datum.group", titles),
        at=f"min(datum.rate / {scaled['rate'].rsplit(' ', 1)[1]}, {top:.6g})",
        **scaled,
    )
    tooltip = [
        alt.Tooltip("model:N"),
        alt.Tooltip("kind:N"),
        alt.Tooltip("rate:Q", title=f"predicted {unit}", format=".4~r"),
        alt.Tooltip("low:Q", title="at least", format=".4~r"),
        alt.Tooltip("high:Q", title="at most", format=".4~r"),
        alt.Tooltip("rank:Q"),
    ]
    none = alt.Axis(labels=False, ticks=False, domain=False, title=None)
    spans = base.mark_rule(strokeWidth=2, clip=True)
    points = base.mark_point(size=60, strokeWidth=1.8, opacity=1)
    return alt.layer(
        spans.encode(x, alt.Y("low:Q", scale=domain, axis=none), colour, y2="high:Q", tooltip=tooltip),
        points.encode(x, alt.Y("at:Q", scale=domain, axis=none), colour, shape, tooltip=tooltip),
    ).properties(width=alt.Step(20), height=drawing.HEIGHT)


KIND = Kind("rate", "Rate: observed and predicted", False, describe, data, chart)
