"""The pages under docs/models: one a model, and a table of printed values that is up to date."""

from __future__ import annotations

import csv
import runpy
from pathlib import Path

import pytest
from model_values import VALUES, printed

from tcpfit.models import catalogue

DOCS = Path(__file__).parents[2] / "docs" / "models"


@pytest.mark.parametrize("model", catalogue().values(), ids=catalogue())
def test_every_model_has_a_page_with_its_symbols_and_reference(model):
    page = (DOCS / f"{model.name}.md").read_text()
    assert model.paper.rsplit("doi:", 1)[1] in page
    assert all(f"`{parameter.name}`" in page for parameter in (*model.parameters, *model.extensions))
    assert f"]({model.name}.md)" in (DOCS / "README.md").read_text()


@pytest.mark.parametrize("row", VALUES["printed"], ids=[row["id"] for row in VALUES["printed"]])
def test_printed_values_are_current(row):
    lines = (DOCS / "printed-values.md").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(f"| {row['id']} |")]
    assert line.endswith(f"| {printed(row):.5g} | {row['status']} |")


@pytest.fixture(scope="module")
def made():
    return dict(runpy.run_path(str(DOCS / "make_pages.py"))["pages"]())


@pytest.mark.parametrize("name", [*catalogue(), "comparison"])
def test_made_parts_are_current(made, name):
    path = DOCS / f"{name}.md"
    assert path.read_text() == made[path], "run docs/models/make_pages.py"


def test_figures_are_current_and_small():
    """A figure carries the digest of its data, which comes from flows.csv, the reference values and the models."""
    pytest.importorskip("altair")
    drawn = {name: mark for name, _, mark in runpy.run_path(str(DOCS / "make_figures.py"))["drawings"]()}
    assert set(drawn) == {path.stem for path in DOCS.glob("figures/*.svg")}
    for name, mark in drawn.items():
        text = (DOCS / "figures" / f"{name}.svg").read_text()
        assert text.startswith("<svg") and len(text) < 60_000
        assert text.endswith(f"<!-- {mark} -->\n"), f"{name}.svg is not current; run docs/models/make_figures.py"


def test_flows_are_of_models_that_exist():
    with (DOCS / "figures/flows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["model"] for row in rows} <= set(catalogue())
    assert {"Linux", "ns-2"} == {row["source"] for row in rows}
    assert all(float(row["predicted"]) > 0 and float(row["observed"]) > 0 for row in rows)
