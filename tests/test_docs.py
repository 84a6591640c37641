"""Are the pages that are made from the code current, and do the others name what exists?"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tcpfit import schema

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_tables_page_is_current():
    page = runpy.run_path(str(ROOT / "docs/make_tables.py"))["page"]()
    assert (ROOT / "docs/tables.md").read_text() == page, "run docs/make_tables.py"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.relative_to(ROOT)} links to {target}"


def test_every_option_is_documented():
    from tcpfit.cli.analyze import analyze

    text = (ROOT / "docs/cli.md").read_text()
    options = [option for parameter in analyze.params for option in parameter.opts if option.startswith("--")]
    assert options
    assert [] == [option for option in options if option not in text]


def test_readme_shows_what_the_demo_prints():
    """Every line of the README's block, in the demo's order."""
    block = re.search(r"shortened:\n\n((?:    .*\n|\n)+)", (ROOT / "README.md").read_text())
    environment = os.environ | {"COLUMNS": "80"}
    command = [
        sys.executable,
        "-c",
        "from tcpfit.cli.main import run; run()",
        "analyze",
        "sample-traces/newreno-loss.pcap.gz",
    ]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    printed = iter(line.rstrip() for line in run.stdout.splitlines())
    shown = [line[4:] for line in block[1].splitlines() if line.strip() not in ("", "...")]
    assert len(shown) > 20
    assert [] == [line for line in shown if line not in printed]


def test_columns_are_declared_once():
    for name, columns in schema.TABLES.items():
        names = [column.name for column in columns]
        assert len(names) == len(set(names)), name
        assert all(column.meaning for column in columns), name


def test_schema_is_known_by_table_name():
    assert list(schema.polars_schema("events")) == [column.name for column in schema.EVENTS]
    with pytest.raises(KeyError):
        schema.polars_schema("nothing")
