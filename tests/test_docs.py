"""Are the pages that are made from the code current, and do the others name what exists?"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tcpfit.cli.main import main

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


@pytest.mark.parametrize("verb", main.commands)
def test_help_tells_no_bound_that_is_none(verb):
    assert "None" not in main.commands[verb].get_help(click.Context(main.commands[verb]))


@pytest.mark.parametrize("verb", main.commands)
def test_every_option_is_documented(verb):
    """In the verb's part of the page of the command line, or on a page of its own."""
    page = (ROOT / "docs/cli.md").read_text()
    own = ROOT / f"docs/{verb}.md"
    part = re.search(rf"^## tcpfit {verb}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    text = (part[1] if part else "") + (own.read_text() if own.exists() else "")
    assert f"tcpfit {verb}" in page
    options = [option for parameter in main.commands[verb].params for option in parameter.opts if "--" in option]
    assert options
    assert [] == [option for option in options if not re.search(rf"`{option}[` ]", text)]


def shown_and_printed(block: str, command: list[str]) -> tuple[list[str], Iterator[str]]:
    """Lines of a block of a page, and those that the command prints."""
    environment = os.environ | {"COLUMNS": "80"}
    call = [sys.executable, "-c", "from tcpfit.cli.main import run; run()", *command]
    run = subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    shown = [line[4:] for line in block.splitlines() if line.strip() not in ("", "...")]
    return shown, iter(line.rstrip() for line in run.stdout.splitlines())


def test_readme_shows_what_the_demo_prints():
    """Every line of the README's block, in the demo's order."""
    block = re.search(r"shortened:\n\n((?:    .*\n|\n)+)", (ROOT / "README.md").read_text())
    shown, printed = shown_and_printed(block[1], ["analyze", "sample-traces/newreno-loss.pcap.gz"])
    assert len(shown) > 20
    assert [] == [line for line in shown if line not in printed]


GETTING_STARTED = (ROOT / "docs/getting-started.md").read_text()
EXAMPLES = re.findall(r"`tcpfit ([^`]+)` prints, shortened:\n\n((?:    .*\n|\n)+)", GETTING_STARTED)


def test_there_are_examples():
    assert {"events", "explain"} == {command.split()[0] for command, _ in EXAMPLES}


@pytest.mark.parametrize(("command", "block"), EXAMPLES, ids=lambda text: text.split()[0])
def test_getting_started_shows_what_is_printed(command, block):
    """Every line of each block, in the order in which the command prints them."""
    shown, printed = shown_and_printed(block, command.split())
    assert len(shown) > 5
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
