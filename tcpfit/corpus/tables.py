"""The tables of captures as the data set has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from tcpfit import ranking
from tcpfit.analysis import Analysis
from tcpfit.corpus.table import OF_FLOWS, schema_of
from tcpfit.diagnosis.accounting import account, account_of
from tcpfit.diagnosis.table import of, of_spans
from tcpfit.joint import Joint
from tcpfit.parameters.growth import families


def tables_of(analysis: Analysis, numbers: Sequence[int], capture: str) -> dict[str, pl.DataFrame]:
    """Every table of flows, of those with these numbers, with the columns of `tcpfit.corpus.table`, sorted by flow."""
    pieces: dict[str, list[pl.DataFrame]] = {name: [] for name in OF_FLOWS}
    for some in analysis.portions(numbers):
        for name, table in _of_flows(some, analysis).items():
            pieces[name].append(conform(table, name, pl.lit(capture)))
    return {n: pl.concat(frames) if frames else pl.DataFrame(schema=schema_of(n)) for n, frames in pieces.items()}


def tables_of_each(analyses: Mapping[str, Analysis]) -> Iterator[dict[str, pl.DataFrame]]:
    """The same of all flows of several captures, by their hashes: those that `tables_of` makes of each, at the cost of
    one, which is most of it where the flows are few. All of them have to be analysed with the same choices.
    """
    if len(analyses) == 1:
        ((capture, analysis),) = analyses.items()
        yield tables_of(analysis, analysis.flows["flow"].to_list(), capture)
        return
    joint, captures = Joint(list(analyses.values())), pl.Series(list(analyses))
    tables, edges = {}, {}
    for name, table in _of_flows(joint.analysis, joint.analysis).items():
        own, owner = joint.own(table)
        tables[name] = conform(own, name, pl.lit(captures.gather(owner)))
        edges[name] = np.searchsorted(owner, np.arange(len(captures) + 1)).tolist()
    for i in range(len(captures)):
        yield {name: table[edges[name][i] : edges[name][i + 1]] for name, table in tables.items()}


def facts_of(analysis: Analysis) -> dict[str, Any]:
    """The capture's own row, as far as its content says it."""
    facts: dict[str, Any] = analysis.captures.to_dicts()[0]
    return facts | {"status": "analysed", "flows": analysis.flows.height, "events": analysis.events.height}


def conform(table: pl.DataFrame, name: str, capture: pl.Expr) -> pl.DataFrame:
    """A table with the capture in front and exactly the dtypes of the data set; what is no number is null."""
    known = {"capture": capture}
    for column, dtype in table.schema.items():
        value = pl.col(column)
        known[column] = pl.when(value.is_finite()).then(value) if dtype.is_float() else value
    return table.select(known[column].cast(dtype).alias(column) for column, dtype in schema_of(name).items())


def _of_flows(analysis: Analysis, whole: Analysis) -> dict[str, pl.DataFrame]:
    family = families(analysis.evidence).select("flow", "family", family_confidence="confidence")
    flows = analysis.flows.join(ranking.observed_of(analysis.evidence), on="flow", how="left", maintain_order="left")
    verdicts, causes = _diagnoses(analysis.flows, whole)
    return {
        "flows": flows.join(family, on="flow", how="left", maintain_order="left"),
        "events": analysis.events,
        "parameters": analysis.parameters,
        "rankings": analysis.ranking,
        "verdicts": analysis.verdicts,
        "diagnoses": verdicts,
        "causes": causes,
    }


def _diagnoses(flows: pl.DataFrame, whole: Analysis) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Verdicts, a row a flow, and causes, a row a flow and cause; the other direction of a flow tells of its pauses."""
    verdicts, causes = [], []
    if flows.height == whole.flows.height:
        spans = account_of(whole.evidence)
    else:
        both = whole.flows.filter(pl.col("connection").is_in(flows["connection"].implode()))
        spans = of(account(both, whole.events, whole.rounds), flows)
    for flow, found in sorted(of_spans(flows, spans).items()):
        verdict = {name: getattr(found, name) for name in ("primary", "who", "text", "remedy", "confidence")}
        verdicts.append({"flow": flow} | verdict | found.kernel)
        for cause in found.causes:
            row = {"flow": flow, "cause": cause.cause, "time_share": cause.time_share, "seconds": cause.seconds}
            if cause.cost is not None:
                row |= {name: getattr(cause.cost, name) for name in ("rate_bps", "low_bps", "high_bps", "gain_bps")}
                row |= {"gain_s": cause.cost.seconds, "basis": cause.cost.basis}
            causes.append(row | {"confidence": cause.confidence})
    return _frame(verdicts, "diagnoses"), _frame(causes, "causes")


def _frame(rows: list[dict[str, Any]], name: str) -> pl.DataFrame:
    schema = {column: dtype for column, dtype in schema_of(name).items() if column != "capture"}
    return pl.DataFrame(rows, schema=schema)
