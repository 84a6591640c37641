"""A few captures changed by chance, through the command; `tests/mutations.py` makes as many as one likes."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import mutations
import pytest


@pytest.mark.parametrize("seed", range(4))
def test_mutated_captures_end_well(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    for data in islice(mutations.captures_of(sorted(mutations.CORPUS.iterdir()), seed), 25):
        path.write_bytes(data)
        assert mutations.problem(path) is None, data.hex()


def test_regressions(tmp_path: Path) -> None:
    """Captures that once were read differently, or not at all."""
    for capture in sorted(mutations.CORPUS.iterdir()):
        assert mutations.problem(capture) is None, capture.name
