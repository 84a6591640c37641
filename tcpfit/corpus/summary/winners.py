"""Which model ranks first under which conditions: a decision tree over the corpus, tested on flows it has not seen."""

from __future__ import annotations

from typing import Any

import polars as pl

from tcpfit.exceptions import TcpfitError
from tcpfit.ranking import across

MOST = 20_000
"""Flows that the tree is grown from; of more, every n-th."""


def winners(table: pl.DataFrame) -> dict[str, Any]:
    """The tree of `across.grow` over `fits.ranked`, its `nodes`, and its accuracy on flows that it was not grown
    from; or in `reason` why there is none. Conditions are those of the whole flow."""
    first = table.filter(pl.col("first") & pl.col("applicable"))
    groups = first["group"].unique().sort()
    if len(groups) > MOST:
        groups = groups.gather_every(-(-len(groups) // MOST))
    conditions = first.filter(pl.col("group").is_in(groups.implode())).with_columns(
        limited=pl.col("limited_share"),
        sack=pl.col("sack").cast(pl.Float64),
        cubic=(pl.col("family").cast(pl.String) == "cubic").cast(pl.Float64),
    )
    try:
        found = across.grow(conditions)
    except TcpfitError as error:
        return {"reason": str(error)}
    return {
        "rules": found.rules,
        "nodes": found.nodes,
        "groups": found.groups,
        "accuracy": found.accuracy,
        "accuracy_se": found.accuracy_se,
        "always": found.always,
        "always_accuracy": found.always_accuracy,
        "text": found.text.replace("groups", "flows"),  # a group is what several captures saw of one
    }
