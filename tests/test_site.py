"""Do the pages become a site: without a broken link, with formulas, and without a thing from elsewhere?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest
from tcpfit.cli.main import main

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(
    any(util.find_spec(name) is None for name in ("mkdocs", "material", "latex2mathml")),
    reason="mkdocs-material and latex2mathml are not installed",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site without its reports, which take longer; --strict fails on a broken link."""
    folder = tmp_path_factory.mktemp("site")
    environment = os.environ | {"TCPFIT_SITE_REPORTS": "0", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert 0 == run.returncode, run.stderr
    return folder


def test_it_loads_nothing_from_elsewhere(site):
    loaded = re.compile(r"<(?:script|img|iframe|link(?! rel=\"canonical\"))[^>]+(?:src|href)=\"?(https?:)?//")
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    assert [] == [page.name for page in pages if loaded.search(page.read_text())]


def test_formulas_are_drawn(site):
    page = (site / "models" / "pftk-full.html").read_text()
    assert page.count("<math") > 10
    assert "\\frac" not in page


def test_every_command_is_there(site):
    page = (site / "commands.html").read_text()
    assert [] == [name for name in main.commands if f"Usage: tcpfit {name}" not in page]


def test_links_out_of_the_folder_lead_on(site):
    assert 'href="contributing.html"' in (site / "index.html").read_text()
