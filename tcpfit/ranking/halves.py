"""The second half of a flow predicted from the first: does what the whole flow says of the models hold there?

**Cut**: the steady part (`steady.py`) at the middle of its time, idle time left out. **Parameters**: those of the first
half's rounds and events alone (of a half without a timeout, the flow's replayed timer). **Residuals**:
ln(predicted/observed) of each block of the second half from the first half's parameters; the models that apply to the
flow are compared as in `comparison.py`.
**Validation**: tests/ranking/test_halves.py; measured by benchmarks/halves.py, figures in docs/ranking.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from tcpfit.models import Model
from tcpfit.parameters import growth_rate, window
from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.growth import as_reno, families
from tcpfit.parameters.intervals import Floats, summed
from tcpfit.parameters.rtt import rtt
from tcpfit.parameters.table import NAMES
from tcpfit.ranking import residuals
from tcpfit.ranking.blocks import SUMS, blocks, parameters
from tcpfit.ranking.comparison import block_weights, compare
from tcpfit.ranking.prediction import predict
from tcpfit.ranking.steady import Steady, steady
from tcpfit.schema import BOOL, F64, STR, U32, Column

LEAST = 2
"""Blocks of the second half below which models are not compared."""

HALVES = (
    Column("flow", U32, "", "number of the flow"),
    Column("model", STR, "", "name of the model"),
    Column("log_ratio", F64, "", "ln(predicted/observed) of the second half, predicted from the first"),
    Column("score", F64, "", "weighted mean square of ln(predicted/observed) over the second half's blocks"),
    Column("as_good", BOOL, "", "no applicable model is better; null with too few blocks"),
)
"""Columns of the table that `halves` returns."""


def halves(
    flows: pl.DataFrame, events: pl.DataFrame, rounds: pl.DataFrame, ranking: pl.DataFrame, models: Mapping[str, Model]
) -> pl.DataFrame:
    """Predict every flow's second half: a row a flow and applicable model, columns as in `HALVES`.

    `ranking` is that of the same flows by the same models; only rows that are applicable there compete.
    """
    evidence = Evidence(flows, events, rounds)
    whole = steady(evidence, window.w_max(evidence).value)
    middle = _middle(evidence, whole)
    early = Evidence(evidence.flows, _until(events, evidence, middle), _until(rounds, evidence, middle, "start_ns"))
    times = rtt(evidence).value
    start = evidence.rounds.floats("start_ns")
    first, second = (
        blocks(evidence, replace(whole, inside=whole.inside & side), times)
        for side in (start < middle[whole.owner], start >= middle[whole.owner])
    )
    nothing = np.full(len(evidence), np.nan)
    fixed = {name: nothing for name in NAMES} | {
        "rto": evidence.column("rto_s"),
        "w_max": window.w_max(early).value,
        "b": as_reno(families(evidence), growth_rate.b(early).value),
    }
    values, total = parameters(first.of_flows(), fixed), second.of_flows()
    seconds, sent = (second.sums[:, SUMS.index(name)] for name in ("seconds", "sent"))
    bounds = np.concatenate(([0], np.cumsum(second.count())))
    own = {int(number): part for (number,), part in ranking.filter("applicable").group_by("flow")}
    predicted = {name: predict(model, values) for name, model in models.items()}
    rows: list[tuple[object, ...]] = []
    for i, number in enumerate(evidence.flow.tolist()):
        named = [name for name in (own[number]["model"].to_list() if number in own else []) if name in models]
        here = slice(bounds[i], bounds[i + 1])
        if not named or bounds[i] == bounds[i + 1]:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            errors, ratio = (
                np.stack([np.log(predicted[name][i] / residuals.rate(sums, models[name].quantity)) for name in named])
                for sums in (second.sums[here], total[i : i + 1])
            )
        compared = compare(errors, block_weights(seconds[here], sent[here]), np.ones(len(named), np.bool_))
        enough = bounds[i + 1] - bounds[i] >= LEAST and np.isfinite(compared.score).any()
        as_good: list[bool | None] = [None] * len(named)
        if enough:
            as_good = compared.as_good(int(np.nanargmin(compared.score)), ratio[:, 0]).tolist()
        rows += zip([number] * len(named), named, ratio[:, 0].tolist(), compared.score.tolist(), as_good, strict=True)
    schema = {c.name: c.dtype for c in HALVES}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("log_ratio", "score").fill_nan(None))


def _middle(evidence: Evidence, part: Steady) -> Floats:
    """When half of each flow's steady time has passed, in ns; NaN without a steady part."""
    lasted = np.where(part.inside, part.duration_s, 0.0)
    before = np.concatenate(([0.0], np.cumsum(lasted)))[:-1]
    total = summed(lasted, part.owner, len(evidence))
    first = np.full(len(evidence), np.inf)
    np.minimum.at(first, part.owner, before)
    late = part.inside & (before - first[part.owner] >= total[part.owner] / 2)
    middle = np.full(len(evidence), np.inf)
    np.minimum.at(middle, part.owner[late], evidence.rounds.floats("start_ns")[late])
    return np.where(np.isfinite(middle), middle, np.nan)


def _until(table: pl.DataFrame, evidence: Evidence, middle: Floats, column: str = "time_ns") -> pl.DataFrame:
    """The rows before the middle of their flow."""
    limit = pl.DataFrame({"flow": evidence.flow, "middle": middle}, schema={"flow": pl.UInt32, "middle": pl.Float64})
    return table.join(limit, on="flow", maintain_order="left").filter(pl.col(column) < pl.col("middle")).drop("middle")
