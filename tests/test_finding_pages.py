"""Are the pages of the findings what the rules and their samples say now?"""

from __future__ import annotations

import json
import runpy
from pathlib import Path

from tcpfit.diagnosis import findings

ROOT = Path(__file__).parent.parent


def test_pages_are_current():
    for path, text in runpy.run_path(str(ROOT / "docs/make_findings.py"))["pages"]().items():
        assert path.read_text() == text, "run docs/make_findings.py"


def test_every_finding_has_figures_and_words_on_them():
    data = json.loads((ROOT / "docs/diagnosis/validation.json").read_text())
    assert set(findings.RULES) == set(data["counts"]) == set(data["notes"])
