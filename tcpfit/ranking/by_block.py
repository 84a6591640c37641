"""Every model's error on every block of every flow: where in a flow a model is right, and where it is not.

What a score sums up in one number. Errors that jump about zero are chance; those that drift, or stay on one side for a
part of the flow, say that the path or the sender changed, which no steady-state model follows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from tcpfit import arguments
from tcpfit.models import Model
from tcpfit.parameters.event_rules import RULES
from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.table import PARAMETERS
from tcpfit.ranking import residuals
from tcpfit.ranking.blocks import EVENTS, SUMS
from tcpfit.ranking.comparison import block_weights
from tcpfit.ranking.cut import cut
from tcpfit.ranking.rank import ranked_models
from tcpfit.ranking.variants import named_models
from tcpfit.schema import F64, I64, STR, U32, Column, check_table, check_tables

MEAN = "mean-of-blocks"
"""The baseline that stands beside the models."""

BY_BLOCK = (
    Column("flow", U32, "", "number of the flow"),
    Column("block", U32, "", "number of the block in the flow's steady part, from 0"),
    Column("start_ns", I64, "ns", "begin of its first round"),
    Column("end_ns", I64, "ns", "end of its last round"),
    Column("weight", F64, "", "what it counts in a score; those of a flow sum to 1"),
    Column("model", STR, "", f"name of the model, or the baseline `{MEAN}`"),
    Column("log_ratio", F64, "", "ln(predicted/observed) of the block, predicted from the flow's other blocks"),
)


def by_block(
    flows: pl.DataFrame,
    events: pl.DataFrame,
    rounds: pl.DataFrame,
    parameters: pl.DataFrame,
    models: Mapping[str, Model] | None = None,
    *,
    per_block: int = EVENTS,
    rule: str = "one-rtt",
    evidence: Evidence | None = None,
) -> pl.DataFrame:
    """A row per flow, block and model with the columns `BY_BLOCK`, in the order of time and of the models.

    Arguments are those of `rank`; models of the transfer time, which have no blocks, are left out. Flows of one block
    have no row. Raises InvalidParameter for arguments that make no sense.
    """
    check_tables(flows=flows, events=events, rounds=rounds)
    check_table("the table of parameters", parameters, PARAMETERS, "tcpfit.parameters.estimate")
    arguments.one_of("rule", rule, RULES)
    arguments.whole("per_block", per_block)
    chosen = ranked_models() if models is None else named_models(models)
    if evidence is None:
        evidence = Evidence(flows, events, rounds)
    arguments.instance("evidence", evidence, Evidence, "the Evidence of the tables")
    found = cut(evidence, parameters, per_block, rule)
    owner = found.blocks.owner
    errors = {
        model.name: residuals.held_out(model, found.blocks, found.held_out)
        for model in chosen.values()
        if model.predicts == "throughput"
    }
    errors[MEAN] = residuals.held_out_mean(found.blocks)
    first = np.concatenate(([0], np.cumsum(found.blocks.count())))
    seconds, sent = (found.blocks.sums[:, SUMS.index(name)] for name in ("seconds", "sent"))
    weight = np.zeros(len(owner))
    for begin, end in zip(first[:-1], first[1:], strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            weight[begin:end] = block_weights(seconds[begin:end], sent[begin:end])
    table = pl.DataFrame(
        {
            "flow": evidence.flow[owner],
            "block": np.arange(len(owner)) - first[owner],
            "start_ns": found.blocks.start_ns,
            "end_ns": found.blocks.end_ns,
            "weight": weight,
            **errors,
        }
    ).filter(pl.Series(found.blocks.count()[owner] > 1))
    keys = [column.name for column in BY_BLOCK[:5]]
    schema = pl.Schema({column.name: column.dtype for column in BY_BLOCK})
    return (
        table.unpivot(list(errors), index=keys, variable_name="model", value_name="log_ratio")
        .with_columns(pl.when(pl.col("log_ratio").is_finite()).then("log_ratio").alias("log_ratio"))
        .select(schema.names())
        .cast(schema)
        .sort("flow", "block", maintain_order=True)
    )
