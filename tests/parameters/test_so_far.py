"""Running values of flows, against polars' own."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tcpfit.parameters import so_far

WITHIN = {
    "total": pl.col("values").cum_sum(),
    "highest": pl.col("values").cum_max(),
    "lowest": pl.col("values").cum_min(),
    "before": pl.col("values").shift(1, fill_value=0.0),
}


@pytest.mark.parametrize("name", WITHIN)
@pytest.mark.parametrize("flows", [0, 1, 2, 7, 400])
def test_it_is_what_polars_has_over_each_flow(name: str, flows: int) -> None:
    """Whole numbers of either sign, flows with a gap in their numbers, of one value, and of values that are alike."""
    draw = np.random.default_rng(flows)
    owner = np.repeat(2 * np.arange(flows), draw.integers(1, 9, flows))
    values = np.floor(draw.normal(0.0, 3.0, len(owner)))
    table = pl.DataFrame({"owner": owner, "values": values}, schema={"owner": pl.Int64, "values": pl.Float64})
    asked = table.select(WITHIN[name].over("owner")).to_series().to_numpy()
    assert np.array_equal(getattr(so_far, name)(owner, values), asked)


def test_times_stay_whole() -> None:
    """Nanoseconds since the epoch have more digits than a float64."""
    start = 1_700_000_000_000_000_000
    found = so_far.highest(np.array([0, 0, 1, 1]), start + np.array([3, 1, 2, 5]))
    assert (found - start).tolist() == [3, 3, 2, 5]
    assert found.dtype == np.int64
