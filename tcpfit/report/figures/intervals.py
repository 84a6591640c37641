"""Segments from one loss event to the next, against the geometric distribution that models of random losses assume.

Drawn is the share of gaps that are longer than so many segments. Where every segment begins a loss event with the same
probability p, that share is (1 - p)^n, a straight line on this axis; p is one over the mean gap. The band is where the
shares of so many gaps of that law lie with 95 % (Dvoretzky, Kiefer, Wolfowitz; Massart 1990), which is a little wide,
as p is taken from the same gaps (Lilliefors).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tcpfit.report import words
from tcpfit.report.figures import drawing
from tcpfit.report.figures.kind import Kind, NothingToDraw, flow_row, start_ns, subtitle

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

LEAST_GAPS = 3
POINTS = 60
"""Points of the law's line."""


def data(analysis: Analysis, flow: int) -> dict[str, pl.DataFrame]:
    """`gaps`, a row a loss event but the first: segments since the one before, seconds, the share of gaps longer than
    this, t (s), frame; and `geometric`: segments, share, low, high."""
    row = flow_row(analysis, flow)
    events = analysis.events.filter(
        pl.col("flow") == flow, pl.col("kind").cast(pl.String) == "loss_event", pl.col("order").is_not_null()
    ).sort("order", "time_ns")
    gaps = events.select(
        segments=pl.col("order").cast(pl.Int64).diff(),
        seconds=pl.col("time_ns").diff() / 1e9,
        t=(pl.col("time_ns") - start_ns(analysis)) / 1e9,
        frame="frame",
    ).filter(pl.col("segments") > 0)
    if gaps.height < LEAST_GAPS:
        many = events.height > LEAST_GAPS
        why = "how many segments lay between them is not in the capture"
        raise NothingToDraw(
            f"flow {flow} of {analysis.path} has {words.plural(events.height, 'loss event')}; "
            f"{why if many else f'their distances need {LEAST_GAPS + 1} at least'}"
        )
    longer = pl.len() - pl.col("segments").rank("max")
    gaps = gaps.sort("segments").with_columns(share=longer / pl.len())
    p = 1 / float(gaps["segments"].mean())  # type: ignore[arg-type]
    n = np.unique(np.round(np.linspace(0, 1.1 * float(gaps["segments"].to_numpy().max()), POINTS)))
    law = (1 - p) ** n
    off = np.sqrt(np.log(2 / 0.05) / (2 * gaps.height))
    geometric = pl.DataFrame(
        {
            "segments": n.astype(np.int64),
            "share": law,
            "low": np.maximum(law - off, 0.0),
            "high": np.minimum(law + off, 1.0),
        }
    )
    places = drawing.time_decimals((row["last_ns"] - row["first_ns"]) / 1e9)
    return {
        "gaps": drawing.rounded(
            gaps.select("segments", "share", "seconds", "t", "frame"), {"share": 5, "seconds": places, "t": places}
        ),
        "geometric": geometric.with_columns(pl.col("share", "low", "high").round_sig_figs(4)),
    }


def describe(analysis: Analysis, flow: int) -> str:
    """Number, mean and spread of the gaps, and whether they leave the band of the geometric distribution."""
    tables = data(analysis, flow)
    gaps = tables["gaps"]["segments"].to_numpy()
    farthest, off = _farthest(tables["gaps"])
    inside = "stays within" if farthest <= off else "leaves"
    return (
        f"Segments between loss events: {words.plural(len(gaps), 'gap')}, mean {words.number(float(gaps.mean()))}, "
        f"middle {words.number(float(np.median(gaps)))}, least {gaps.min()}, most {gaps.max()}. Their distribution "
        f"{inside} the 95 % band of a geometric one with that mean ({farthest:.2f} off, the band {off:.2f})."
    )


def _farthest(gaps: pl.DataFrame) -> tuple[float, float]:
    """The largest distance of the gaps' distribution from the geometric one, and the band's half width."""
    length, count = gaps["segments"].to_numpy(), gaps.height
    p = 1 / float(length.mean())
    values, number = np.unique(length, return_counts=True)
    after = 1 - np.cumsum(number) / count
    before = after + number / count
    distance = np.maximum(np.abs(after - (1 - p) ** values), np.abs(before - (1 - p) ** (values - 1)))
    return float(distance.max()), float(np.sqrt(np.log(2 / 0.05) / (2 * count)))


def chart(analysis: Analysis, flow: int, *, theme: str = "light") -> Any:
    """A symbol a gap, the geometric distribution as a line in its band, on a logarithmic axis of shares."""
    alt = drawing.altair()
    tables = data(analysis, flow)
    floor = 0.5 / tables["gaps"].height
    names = ["gaps", "geometric with the same mean", "95 % of so many gaps"]
    looks = (
        [drawing.BLUE, drawing.ORANGE, drawing.ORANGE],
        ["circle", "M-1.5,0H1.5", "M-1.2,-.8H1.2V.8H-1.2Z"],
    )
    legend = drawing.legend(3)
    colour = alt.Color("what:N", scale=alt.Scale(domain=names, range=looks[0]), legend=legend)
    shape = alt.Shape("what:N", scale=alt.Scale(domain=names, range=looks[1]), legend=legend)
    x = alt.X("segments:Q", title="segments from one loss event to the next", scale=alt.Scale(zero=True, nice=False))
    scale = alt.Scale(type="log", domain=[floor, 1], nice=False)
    ticks = alt.Axis(
        format=".2~%", values=[v for v in (1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001) if v >= floor]
    )

    def y(field: str) -> Any:
        return alt.Y(field, title="share of gaps that are longer", scale=scale, axis=ticks)

    def of(table: str, name: str) -> Any:
        return drawing.source(table, tables[table]).transform_calculate(what=f"'{name}'")

    band = of("geometric", names[2]).transform_calculate(
        low=f"max(datum.low, {floor:.3g})", high=f"max(datum.high, {floor:.3g})"
    )
    line = of("geometric", names[1]).transform_filter(f"datum.share >= {floor:.3g}")
    points = of("gaps", names[0]).transform_calculate(at=f"max(datum.share, {floor:.3g})", filter=drawing.FILTER)
    tooltip = [
        alt.Tooltip("segments:Q"),
        alt.Tooltip("seconds:Q"),
        alt.Tooltip("share:Q", title="share longer", format=".3~%"),
        alt.Tooltip("t:Q", title="ended at (s)"),
        alt.Tooltip("frame:Q", title="ended by frame"),
    ]
    layers = [
        band.mark_area(opacity=0.2, clip=True).encode(x, y("low:Q"), colour, y2="high:Q"),
        line.mark_line(strokeWidth=1.8, clip=True).encode(x, y("share:Q"), colour),
        points.mark_point(size=32, strokeWidth=1.5, opacity=1, clip=True).encode(
            x, y("at:Q"), colour, shape, tooltip=tooltip
        ),
    ]
    below = "on a straight line losses come at random; the longest gap stands at the lower edge"
    return drawing.finished(
        drawing.layered(layers),
        tables,
        title=KIND.title,
        subtitle=[subtitle(flow_row(analysis, flow)), below],
        theme=theme,
    )


KIND = Kind("intervals", "From one loss event to the next", False, describe, data, chart)
