"""Do the models reproduce the reference values, within each value's tolerance?"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from make_values import grid_of
from model_values import GRIDS, NO_EVIDENCE, SHARMA, VALUES, grid, printed, reordering

TABLE = Path(__file__).parents[3] / "shared" / "model-values.json"
EVIDENCE = [row for row in VALUES["printed"] if row.get("status") not in NO_EVIDENCE]


@cache
def rows_of_the_table():
    return json.loads(TABLE.read_text())["rows"]


@pytest.mark.parametrize("name", GRIDS)
def test_grid(name):
    inputs, expected, rel_tol, abs_tol = grid(name)
    with np.errstate(divide="ignore", invalid="ignore"):
        actual = GRIDS[name](**inputs)
    np.testing.assert_allclose(actual, expected["expected"], rtol=rel_tol, atol=abs_tol)


@pytest.mark.parametrize("name", SHARMA)
def test_areas_below_zero_are_clamped(name):
    inputs, expected, rel_tol, abs_tol = grid(f"sharma.{name}")
    np.testing.assert_allclose(
        reordering(clamp=True)(**inputs), expected["expected_clamped"], rtol=rel_tol, atol=abs_tol
    )


@pytest.mark.parametrize("row", EVIDENCE, ids=[row["id"] for row in EVIDENCE])
def test_printed_value(row):
    tolerance = {"rel": row["rel_tol"]} if "rel_tol" in row else {"abs": row["abs_tol"]}
    assert pytest.approx(row["expected"], **tolerance) == printed(row)


def test_every_value_is_used():
    assert set(VALUES["grids"]) == set(GRIDS)
    assert all(len(table["rows"]) >= 15 for table in VALUES["grids"].values())
    assert len(EVIDENCE) == 146


@pytest.mark.skipif(not TABLE.exists(), reason="the whole table of reference values is not part of this repository")
@pytest.mark.parametrize("name", GRIDS)
def test_every_row_of_the_table(name):
    inputs, expected, rel_tol, abs_tol = grid(name, grid_of(rows_of_the_table(), name))
    assert len(expected["expected"]) >= len(VALUES["grids"][name]["rows"])
    with np.errstate(divide="ignore", invalid="ignore"):
        actual = GRIDS[name](**inputs)
    np.testing.assert_allclose(actual, expected["expected"], rtol=rel_tol, atol=abs_tol)
