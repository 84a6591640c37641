"""Does docs/figures.md show every kind of figure, and do its pictures stay small?"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tcpfit.report.figures import KINDS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_section_and_a_small_picture(kind):
    page = (DOCS / "figures.md").read_text()
    assert f"\n## {kind}\n\n![{KINDS[kind].title}](figures/{kind}.svg)\n" in page
    svg = (DOCS / "figures" / f"{kind}.svg").read_text()
    assert len(svg) < 100_000
    assert ElementTree.fromstring(svg).attrib["aria-label"].endswith(".")
