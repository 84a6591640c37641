"""What does each figure draw? Its specification, with its data in short, beside one that was looked at.

Each file of golden/ is a figure's Vega-Lite specification. Instead of their CSV its tables have the number of rows, a
digest and the first rows, so that a change of the data shows as one. After a change that is meant:

    TCPFIT_GOLDEN=write python -m pytest tests/figures/test_golden.py

and look at the difference, and at the pictures (docs/make_pictures.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tcpfit
from tcpfit.report.figures import KINDS, draw

pytest.importorskip("altair")

HERE = Path(__file__).parent
SAMPLES = HERE.parents[1] / "sample-traces"
SHOWN = {
    "time-sequence": "timeouts",
    "window": "sack-loss-sender",
    "rtt": "sack-loss-receiver",
    "rate": "newreno-loss",
    "ranking": "sack-loss-sender",
    "residuals": "sack-loss-sender",
    "losses": "reordering-receiver",
    "intervals": "newreno-loss",
    "shares": "slow-reader",
    "stalls": "timeouts",
}
FIRST = 5


@cache
def analysed(name: str) -> tcpfit.Analysis:
    return tcpfit.analyze(SAMPLES / f"{name}.pcap.gz", segments=True)


def in_short(table: str | list[dict[str, Any]]) -> Any:
    if isinstance(table, list):  # a line that is always there
        return table
    rows = table.splitlines()
    digest = hashlib.sha256(table.encode()).hexdigest()[:12]
    return {"columns": rows[0], "rows": len(rows) - 1, "digest": digest, "first": rows[1 : 1 + FIRST]}


def judged(kind: str) -> str:
    spec = draw(analysed(SHOWN[kind]), kind).to_dict()
    spec["datasets"] = {name: in_short(table) for name, table in spec["datasets"].items()}
    spec["config"] = f"config({hashlib.sha256(json.dumps(spec['config']).encode()).hexdigest()[:12]})"
    text = json.dumps(spec, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    text = re.sub(r"/vega-lite/v\d+(\.\d+)*\.json", "/vega-lite.json", text)
    return re.sub(r"\b(view|data)[_-][0-9a-f]+", r"\1", text)  # Altair's names, which may change with it


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_is_as_it_was_looked_at(kind):
    path = HERE / "golden" / f"{kind}.json"
    if os.environ.get("TCPFIT_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(judged(kind))
    assert path.read_text() == judged(kind)
