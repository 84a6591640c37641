"""Captures of few flows taken as one: what an analysis costs however few its flows are is then paid once for all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tcpfit.analysis import BESIDE, Analysis
from tcpfit.readers import Reading


class Joint:
    """Several captures with the same choices for the ranking, as one `analysis` whose flows are numbered through.

    What is said of a flow stays the same to the last bit: no flow has a connection in common with one of another
    capture. The facts are those of the first capture, `segments` is left out, and so are flows that were not selected:
    what is said of a flow whose other direction was not is another thing then.
    """

    def __init__(self, several: Sequence[Analysis]) -> None:
        most = [each.flows.select(pl.max_horizontal(pl.col("flow", "connection").max())).item() for each in several]
        self._starts = np.array([0, *accumulate(0 if number is None else number + 1 for number in most[:-1])])
        tables = {}
        for name in BESIDE:
            pieces = [getattr(each, name) for each in several]
            by = np.repeat(self._starts, [piece.height for piece in pieces])
            tables[name] = _renumbered(pl.concat(pieces), ("flow", "connection"), by)
        self.analysis = several[0].of(Reading(several[0].capture, tables))

    def own(self, table: pl.DataFrame, flow: str = "flow") -> tuple[pl.DataFrame, npt.NDArray[np.int64]]:
        """A table of the joint analysis, whose column `flow` has numbers of flows, as the captures number them, and the
        place among the captures of that which each row is of."""
        owner = np.searchsorted(self._starts, table[flow].to_numpy(), side="right") - 1
        return _renumbered(table, (flow, "connection"), -self._starts[owner]), owner


def _renumbered(table: pl.DataFrame, names: tuple[str, str], by: npt.NDArray[Any]) -> pl.DataFrame:
    """Those columns higher by so much in each row; an error of polars where a number has no room."""
    more = pl.Series(by, dtype=pl.Int64)
    known = [name for name in names if name in table.columns]
    return table.with_columns((table[name].cast(pl.Int64) + more).cast(table.schema[name]) for name in known)
