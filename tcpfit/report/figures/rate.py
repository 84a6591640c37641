"""The rate over time, by blocks and of the steady part, beside every model's predicted rate with its interval on the
same axis. Models are compared with the steady part without its pauses, not with the whole time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tcpfit.parameters.intervals import Floats
from tcpfit.ranking.blocks import SUMS
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

LINES = {
    "observed": ("bins of time", drawing.BLUE, "M-1.5,.6H0V-.6H1.5"),
    "blocks": ("blocks of the ranking", drawing.RED, "M-1.2,-.15H1.2V.15H-1.2Z"),
    "steady": ("steady part without pauses", drawing.PURPLE, "M-1.5,0H-.8M-.35,0H.35M.8,0H1.5"),
}
"""Observed rates by table: name, colour, the legend's symbol."""
LOOKS: dict[str, dict[str, Any]] = {
    "observed": {"strokeWidth": 2},
    "blocks": {"strokeWidth": 3.5, "opacity": 0.8},
    "steady": {"strokeWidth": 2, "strokeDash": [6, 4]},
}

PAUSES = 0.01
"""Pauses of this share of the steady part are told."""

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
    """`observed` (begin and end of a bin in s, rate), `blocks` of the steady part (begin, end, rate), `steady`, all of
    it (begin, end, rate, pauses in s) and `models` (model, group, rate, low, high, rank); rates in bit/s of payload
    that was acknowledged, those of blocks and of the steady part over the time without pauses."""
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
    blocks, part = _steady(analysis, flow, since)
    tables = {
        "observed": pl.DataFrame({"begin": edges[:-1], "end": edges[1:], "rate": observed}),
        "blocks": blocks,
        "steady": part.with_columns(pl.col("end").clip(upper_bound=end)),
        "models": _models(analysis, flow),
    }
    places = drawing.time_decimals(end - begin)
    return {
        name: drawing.rounded(
            table, {n: places for n in ("begin", "end", "pauses") if n in table.columns}
        ).with_columns(pl.col(n).round_sig_figs(5) for n in ("rate", "low", "high") if n in table.columns)
        for name, table in tables.items()
    }


def _acknowledged(start: Floats, until: Floats, acked: Floats, end: float) -> tuple[Floats, Floats]:
    """Bytes acknowledged by each time: those of a round come evenly over it, none while nothing was outstanding."""
    follows = np.append(start[1:], end)
    until = np.minimum(np.maximum(until, start), np.maximum(follows, start))
    at = np.column_stack((start, until)).ravel()
    total = np.cumsum(acked)
    return np.maximum.accumulate(at), np.column_stack((np.concatenate(([0.0], total[:-1])), total)).ravel()


def _steady(analysis: Analysis, flow: int, since: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The blocks that the ranking compares models by, where there are several, and the steady part, which they are."""
    own = analysis.select([flow])
    blocks = own.blocks()
    begin, end = ((time_ns - since) / 1e9 for time_ns in (blocks.start_ns, blocks.end_ns))
    bits, total = 8 * float(own.flows["smss_bytes"][0]), blocks.of_flows()
    each, whole = (pl.Series(bits * block_rate(sums, "goodput")).fill_nan(None) for sums in (blocks.sums, total))
    table = pl.DataFrame({"begin": begin, "end": end, "rate": each})
    part = pl.DataFrame(
        {
            "begin": begin[:1],
            "end": end[-1:],
            "rate": whole[: len(end)],
            "pauses": total[: len(end), SUMS.index("idle")],
        }
    )
    return table if len(end) > 1 else table.clear(), part.drop_nulls()


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
    """The mean and the extremes of the observed rate, that of the steady part, and the models' range."""
    row, tables = flow_row(analysis, flow), data(analysis, flow)
    observed = tables["observed"]["rate"].to_numpy()
    seconds = (row["last_ns"] - row["first_ns"]) / 1e9
    width = tables["observed"]["end"][0] - tables["observed"]["begin"][0]
    text = (
        f"Rate: {words.rate(8 * row['acked_bytes'] / seconds)} acknowledged on average, between "
        f"{words.rate(float(observed.min()))} and {words.rate(float(observed.max()))} in bins of {words.seconds(width)}"
    )
    text += "".join(f"; {_said(part)}" for part in tables["steady"].iter_rows(named=True))
    models = tables["models"].filter(pl.col("group") == "applies")
    if models.height:
        rates = models["rate"].to_numpy()
        text += (
            f"; {words.plural(models.height, 'model')} that {'applies' if models.height == 1 else 'apply'} "
            f"predict{'s' if models.height == 1 else ''} for it "
            + (
                words.rate(rates[0])
                if models.height == 1
                else f"{words.rate(float(rates.min()))} to {words.rate(float(rates.max()))}"
            )
        )
    return f"{text}."


def _said(part: dict[str, Any]) -> str:
    """What the models are compared with."""
    pauses = part["pauses"] >= PAUSES * (part["end"] - part["begin"])
    without = f" without its pauses of {words.seconds(part['pauses'])}" if pauses else ""
    return f"the steady part{without}, with which models are compared, was acknowledged at {words.rate(part['rate'])}"


def chart(analysis: Analysis, flow: int, *, theme: str = "light") -> Any:
    """Left the observed rate over time with those of blocks and of the steady part, right each model's; on one axis."""
    alt = drawing.altair()
    row, tables = flow_row(analysis, flow), data(analysis, flow)
    models = tables["models"]
    judged = models.filter(pl.col("group") == "applies")
    compared = [rate for table in LINES for rate in tables[table]["rate"].drop_nulls()] + judged["rate"].to_list()
    top = 1.12 * max(compared) if judged.height else 1.6 * max(compared)
    factor, unit = next(((f, name) for f, name in UNITS if top >= f), UNITS[-1])
    scaled = {name: f"datum.{name} == null ? null : datum.{name} / {factor:g}" for name in ("rate", "low", "high")}
    domain = alt.Scale(domain=[0, top / factor], nice=False)
    drawn = [look for table, look in LINES.items() if tables[table].height]

    def y(field: str = "rate:Q", **more: Any) -> Any:
        return alt.Y(field, title=more.pop("title", f"acknowledged ({unit})"), scale=domain, **more)

    def bars(table: str) -> Any:
        source = drawing.source(table, tables[table])
        shown = source.transform_calculate(what=f"'{LINES[table][0]}'", rate=scaled["rate"])
        tooltip = [
            alt.Tooltip("what:N"),
            alt.Tooltip("rate:Q", title=unit, format=".4~r"),
            alt.Tooltip("begin:Q", title="from (s)"),
            alt.Tooltip("end:Q", title="to (s)"),
        ]
        x = drawing.time_axis(analysis, row, "begin:Q")
        look = LOOKS[table] | {"color": LINES[table][1], "clip": True}
        return shown.mark_rule(**look).encode(x, y(), x2="end:Q", tooltip=tooltip)

    source = drawing.source("observed", tables["observed"]).transform_calculate(rate=scaled["rate"])
    steps = source.mark_line(interpolate="step-after", strokeWidth=1.2, color=drawing.BLUE, clip=True)
    over_time = [
        steps.encode(drawing.time_axis(analysis, row, "begin:Q"), y()),
        *(bars(table) for table in LINES if tables[table].height),
        drawing.key("what", drawn, columns=3),
    ]
    left = drawing.layered(over_time, width=460 if models.height else drawing.WIDTH)
    below = [_said(part) for part in tables["steady"].iter_rows(named=True)]
    if models.height:
        left = alt.hconcat(left, _beside(alt, tables, scaled, domain, unit, top / factor), spacing=12)
        left = left.resolve_scale(color="independent", shape="independent")
        below.append("right: models with 95 % intervals, those above at the edge")
    return drawing.finished(left, tables, title=KIND.title, subtitle=[subtitle(row), *below], theme=theme)


def _beside(
    alt: Any, tables: dict[str, pl.DataFrame], scaled: dict[str, str], domain: Any, unit: str, top: float
) -> Any:
    """The models' panel: a point and an interval each, by group in colour and shape, and the rate observed."""
    models = tables["models"]
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
    part = drawing.source("steady", tables["steady"]).transform_calculate(rate=scaled["rate"])
    observed = part.mark_rule(color=LINES["steady"][1], **LOOKS["steady"])
    return alt.layer(
        observed.encode(alt.Y("rate:Q", scale=domain, axis=none)),
        spans.encode(x, alt.Y("low:Q", scale=domain, axis=none), colour, y2="high:Q", tooltip=tooltip),
        points.encode(x, alt.Y("at:Q", scale=domain, axis=none), colour, shape, tooltip=tooltip),
    ).properties(width=20 * models.height, height=drawing.HEIGHT)


KIND = Kind("rate", "Rate: observed and predicted", False, describe, data, chart)
