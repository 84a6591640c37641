"""What every comparison of models begins with: the flows' parameters as arrays, and their steady parts in blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from tcpfit.exceptions import InvalidParameter
from tcpfit.parameters.evidence import Evidence, floats
from tcpfit.parameters.growth import as_reno, families
from tcpfit.parameters.intervals import Floats
from tcpfit.parameters.table import NAME, NAMES
from tcpfit.ranking.blocks import EVENTS, OF_SUMS, Blocks, blocks
from tcpfit.ranking.steady import Steady, steady


@dataclass(frozen=True)
class Cut:
    """Parameters by name, arrays over the flows: values and the ends of their 95 % intervals, b as of a Reno sender.

    `held_out` are the values for a block that is predicted from the others, where those have no observation: none for
    what blocks have sums of, since the flow's value is of the block's own events then, and the replayed timer (RFC
    6298) for the mean of the timeouts. What is no sum of blocks (b, w_max) is the flow's.
    `family` is each flow's kind of congestion control.
    """

    value: dict[str, Floats]
    held_out: dict[str, Floats]
    low: dict[str, Floats]
    high: dict[str, Floats]
    family: pl.DataFrame
    steady: Steady
    blocks: Blocks


def cut(evidence: Evidence, parameters: pl.DataFrame, per_block: int = EVENTS, rule: str = "one-rtt") -> Cut:
    """The flows' blocks of at least `per_block` events; `parameters` are those of the flows under the rule."""
    value, low, high = _wide(parameters, evidence)
    family = families(evidence)
    for side in (value, low, high):
        side["b"] = as_reno(family, side["b"])
    part = steady(evidence, value["w_max"])
    unknown = np.full(len(evidence), np.nan)
    held_out = {**value, **dict.fromkeys(OF_SUMS, unknown), "rto": evidence.column("rto_s")}
    return Cut(value, held_out, low, high, family, part, blocks(evidence, part, value["rtt"], per_block, rule))


def _wide(parameters: pl.DataFrame, evidence: Evidence) -> tuple[dict[str, Floats], ...]:
    """Values, low and high ends as arrays over the flows, by name; NaN where there is no row or no value.

    Raises InvalidParameter for a parameter that a flow has twice.
    """
    rows = parameters.select("flow", "value", "low", "high", name=pl.col("name").cast(NAME, strict=False).to_physical())
    rows = rows.filter(pl.col("name").is_not_null() & pl.col("flow").is_in(evidence.flows["flow"].implode()))
    at = rows["name"].to_numpy(), np.searchsorted(evidence.flow, rows["flow"].to_numpy())
    there = np.zeros((len(NAMES), len(evidence)), np.bool_)
    there[at] = True
    if np.count_nonzero(there) < rows.height:
        flow, name = rows.filter(rows.select("flow", "name").is_duplicated()).select("flow", "name").row(0)
        raise InvalidParameter(
            f"the table of parameters has {list(NAMES)[name]} of flow {flow} twice; renumber the flows before tables "
            "of several captures are joined"
        )
    found = []
    for side in ("value", "low", "high"):
        grid = np.full((len(NAMES), len(evidence)), np.nan)
        grid[at] = floats(rows[side])
        found.append(dict(zip(NAMES, grid, strict=True)))
    return tuple(found)
