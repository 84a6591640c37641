"""Instructions of the engine for a packet, beside those recorded; `python benchmarks/instructions.py --record`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import instructions

ROOM = 1.05


@pytest.fixture(scope="module")
def recorded() -> instructions.Record:
    if absent := instructions.missing():
        pytest.skip(f"not installed: {', '.join(absent)}")
    record: instructions.Record = json.loads(instructions.RECORD.read_text())
    if instructions.compiled_by() != (record["rustc"], record["lock"]):
        pytest.skip("recorded with another compiler or other libraries")
    return record


def test_no_more_instructions_than_recorded(recorded: instructions.Record) -> None:
    counted = instructions.count()["per_packet"]
    assert recorded["per_packet"].keys() == counted.keys()
    more = {kind: figure for kind, figure in counted.items() if figure > ROOM * recorded["per_packet"][kind]}
    assert more == {}
