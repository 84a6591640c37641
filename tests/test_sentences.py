"""Are the sentences on a flow true, wherever it was captured?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tcpfit
from tcpfit.report import sentences

SAMPLES = Path(__file__).parent.parent / "sample-traces"


def facts(path: Path) -> dict[str, Any]:
    """The largest flow of a capture, as the document has it."""
    return tcpfit.analyze(path).to_dict()["captures"][0]["flows"][0]


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_losses_are_of_what_was_sent(end):
    """4327 segments arrived; the 102 that were lost are not among them."""
    flow = facts(SAMPLES / f"sack-loss-{end}.pcap.gz")
    assert "102 of 4429 segments lost" in sentences.what_happened(flow)
    assert 102 / 4429 == pytest.approx(flow["parameters"]["q_tilde"]["value"], rel=1e-3)
