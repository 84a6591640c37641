"""Are the pages of the causes, their pictures and the predicted changes what the code and the samples say now?"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

from tcpfit.diagnosis.causes import CAUSES

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import counterfactuals  # noqa: E402
import pairs  # noqa: E402

FOLDER = ROOT / "docs/diagnosis/causes"


@pytest.fixture(scope="module")
def made():
    return runpy.run_path(str(ROOT / "docs/make_causes.py"))


def test_pages_are_current(made):
    for path, text in made["pages"]():
        assert path.read_text() == text, "run docs/make_causes.py"


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_has_a_page_with_a_sample_that_shows_it(cause, made):
    text = (FOLDER / f"{cause}.md").read_text()
    assert f"({cause}.md)" in (FOLDER / "README.md").read_text()
    samples = re.findall(r"<!-- sample: (\S+) -->", text)
    assert samples
    assert {cause} == {made["analysed"](name)[1].diagnosis.primary for name in samples}
    for heading in ("**Claim.**", "**Rule.**", "**Evidence.**", "## What would help", "## What looks the same"):
        assert heading in text


def test_pictures_are_current_and_small(made):
    """A picture carries the digest of what it shows, so that this needs no Altair."""
    marks = {name: mark for name, _, mark in made["drawings"]()}
    assert set(marks) == {path.stem for path in FOLDER.glob("figures/*.svg")}
    for name, mark in marks.items():
        text = (FOLDER / "figures" / f"{name}.svg").read_text()
        assert text.startswith("<svg") and len(text) < 80_000
        assert text.endswith(f"<!-- {mark} -->\n"), f"{name}.svg is not current; run docs/make_causes.py"


def test_page_of_the_pairs_is_current():
    page = counterfactuals.page(counterfactuals.load())
    assert counterfactuals.PAGE.read_text() == page, "run benchmarks/counterfactuals.py"


def test_every_pair_has_a_recipe_and_replicas():
    names = {name for pair in counterfactuals.PAIRS for name in (pair.before, pair.after)}
    assert names <= set(pairs.conditions())
    measured = [row["transfer"] for row in counterfactuals.load() if row["what"] == counterfactuals.MEASURED]
    assert all(pairs.REPLICAS == measured.count(name) for name in names)


def test_change_is_welchs_interval_on_logarithms():
    rates = {"a": (1.0, 2.0, 4.0), "b": (4.0, 8.0, 16.0)}
    rows = [
        {"transfer": name, "replica": n, "what": "measured", "bps": rate}
        for name, own in rates.items()
        for n, rate in enumerate(own)
    ]
    change = counterfactuals.measured(rows, counterfactuals.Pair("", "a", "b", ""))
    # t(0.975, 4) = 2.7764, times ln 2 x sqrt(2/3)
    assert (4.0, 4 / 4.8131, 4 * 4.8131) == pytest.approx((change.ratio, change.low, change.high), rel=1e-3)
