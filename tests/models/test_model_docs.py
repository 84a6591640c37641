"""The pages under docs/models: one a model, and a table of printed values that is up to date."""

from __future__ import annotations

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
