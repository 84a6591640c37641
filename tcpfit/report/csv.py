"""Tables as CSV: an empty cell is a value that cannot be had, true and false are lower case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from tcpfit.diagnosis.accounting import account_of
from tcpfit.diagnosis.table import of, of_spans
from tcpfit.parameters import NAMES
from tcpfit.ranking.table import BASELINES
from tcpfit.report import contract
from tcpfit.report.encoding import nan_as_null

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

ROWS_AT_A_TIME = 4096

BEST = ("predicted_bps", "predicted_time_s", "log_ratio")
"""What a flow's row says of the model of rank 1, besides its name."""

DIAGNOSIS = {
    "diagnosis.primary": pl.String,
    "diagnosis.who": pl.String,
    "diagnosis.confidence": pl.Float64,
    "diagnosis.time_share": pl.Float64,
    "diagnosis.cost_bps": pl.Float64,
    "diagnosis.text": pl.String,
    "diagnosis.remedy": pl.String,
}
"""What a flow's row says of the diagnosis: `docs/json.md` has the keys; share and cost are those of the main cause."""


def texts(table: pl.DataFrame, capture: str, *, header: bool = True) -> Iterator[str]:
    """The rows as text of whole lines, some thousand at a time, the capture's path first in each; lists are joined by
    spaces."""
    path = capture.encode("utf-8", "backslashreplace").decode()
    lists = [name for name, dtype in table.schema.items() if isinstance(dtype, pl.List)]
    flat = nan_as_null(table.select(pl.lit(path).alias("capture"), pl.all())).with_columns(
        *(pl.col(name).cast(pl.List(pl.String())).list.join(" ").replace("", None) for name in lists),
    )
    if header:
        yield flat.clear().write_csv()
    for part in flat.iter_slices(ROWS_AT_A_TIME):
        yield part.write_csv(include_header=False)


def flow_texts(analysis: Analysis, *, header: bool = True) -> Iterator[str]:
    """A line a flow, the largest first: what `tcpfit analyze --format csv` prints."""
    spans = account_of(analysis.conversations)
    for part in analysis.portions() if analysis.flows.height else [analysis]:
        yield from texts(flow_rows(part, spans), analysis.path, header=header)
        header = False


def flow_rows_of_each(several: Sequence[Analysis]) -> list[pl.DataFrame]:
    """The rows of each of several captures of few flows, of which all were selected, at little more than the cost of
    one; `tcpfit.joint` says what they have in common."""
    from tcpfit.joint import Joint

    joint = Joint(several)
    rows, owner = joint.own(flow_rows(joint.analysis, account_of(joint.analysis.evidence)), "id")
    return [rows.filter(pl.Series(owner == number)) for number in range(len(several))]


def flow_rows(analysis: Analysis, spans: pl.DataFrame) -> pl.DataFrame:
    """A row a flow, the largest first: nested keys of the document joined by a dot, the best model, the verdict and the
    diagnosis at the end. `spans` are those of the whole capture, from `account_of`."""
    flows = contract.ordered(analysis)
    count = pl.col("lost_segments")
    ranged = pl.col("lost_low") != pl.col("lost_high")
    tables = [
        *(
            part.rename({name: f"{key}.{name}" for name in part.columns})
            for key, part in contract.groups(analysis, flows).items()
        ),
        _parameters(analysis, flows),
        flows.select(
            pl.when(ranged).then("lost_low").otherwise(count).alias("lost_segments.low"),
            pl.when(ranged).then("lost_high").otherwise(count).alias("lost_segments.high"),
        ),
        _best(analysis, flows),
        contract.of_flow(flows, analysis.verdicts).select(
            contract.VERDICT[0].alias("verdict"), contract.VERDICT[1].alias("verdict.models")
        ),
        _diagnosis(flows, spans),
    ]
    return pl.concat([contract.identity(flows), *tables], how="horizontal")


def _parameters(analysis: Analysis, flows: pl.DataFrame) -> pl.DataFrame:
    """Value, low and high of every parameter, as NAME, NAME.low and NAME.high."""
    wide = analysis.parameters.pivot("name", index="flow", values=["value", "low", "high"])
    columns = {
        name + suffix: f"{end}_{name}"
        for name in NAMES
        for end, suffix in (("value", ""), ("low", ".low"), ("high", ".high"))
    }
    known = contract.of_flow(flows, wide)
    absent = (name for name in columns.values() if name not in known.columns)
    every = known.with_columns(pl.lit(None, pl.Float64).alias(name) for name in absent)
    return every.select(pl.col(column).alias(name) for name, column in columns.items())


def _best(analysis: Analysis, flows: pl.DataFrame) -> pl.DataFrame:
    """The model of rank 1."""
    first = (pl.col("rank") == 1) & ~pl.col("model").is_in(list(BASELINES))
    best = analysis.ranking.filter(first).unique("flow", keep="first", maintain_order=True)
    return contract.of_flow(flows, best).select(
        pl.col("model").alias("best.name"), *(pl.col(name).alias(f"best.{name}") for name in BEST)
    )


def _diagnosis(flows: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """What held each flow back, with the share of the time and the cost of its main cause."""
    found = of_spans(flows, of(spans, flows))
    rows = [
        (
            diagnosis.primary,
            diagnosis.who,
            diagnosis.confidence,
            diagnosis.main.time_share if diagnosis.main else None,
            diagnosis.main.cost.gain_bps if diagnosis.main and diagnosis.main.cost else None,
            diagnosis.text,
            diagnosis.remedy,
        )
        for diagnosis in map(found.__getitem__, flows["flow"])
    ]
    return pl.DataFrame(rows, DIAGNOSIS, orient="row")
