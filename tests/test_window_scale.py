"""The shifts that fit where the SYNs are missing: samples analysed from their second second on."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import tcpfit

FOLDER = Path(__file__).parent.parent / "sample-traces"
TRUTHS = {path.name.removesuffix(".truth.json"): json.loads(path.read_text()) for path in FOLDER.glob("*.truth.json")}
# ns2-reno's simulator has no windows to speak of; short-web's connections last less than a second
CAPTURES = [
    (name, end)
    for name, truth in sorted(TRUTHS.items())
    for end in truth["captures"]
    if name not in ("ns2-reno", "short-web")
]


@pytest.mark.parametrize(("name", "end"), CAPTURES)
def test_the_shift_lies_within_the_range(name, end):
    path, sender = FOLDER / TRUTHS[name]["captures"][end], TRUTHS[name]["flows"][0]["src"]
    whole = tcpfit.analyze(path).flows.filter(pl.col("src") == sender).row(0, named=True)
    assert whole["window_scale"] == whole["window_scale_low"] == whole["window_scale_high"]
    cut = tcpfit.analyze(path, from_s=1.0).flows.filter(pl.col("src") == sender).row(0, named=True)
    assert cut["window_scale"] is None
    assert cut["window_scale_low"] <= whole["window_scale"] <= cut["window_scale_high"]
    exact = cut["window_scale_low"] == cut["window_scale_high"]
    assert exact == (cut["rwnd_max"] is not None)
    if exact:
        assert whole["rwnd_max"] == cut["rwnd_max"]


@pytest.mark.parametrize("name", ["slow-reader", "reordering", "bursty-loss"])
def test_windows_that_limit_and_fill_leave_one_shift(name):
    path, sender = FOLDER / TRUTHS[name]["captures"]["sender"], TRUTHS[name]["flows"][0]["src"]
    row = tcpfit.analyze(path, from_s=1.0).flows.filter(pl.col("src") == sender).row(0, named=True)
    assert row["window_scale_low"] == row["window_scale_high"]


def test_a_window_that_never_changes_says_nothing_from_above():
    path, sender = FOLDER / TRUTHS["window-limited"]["captures"]["sender"], TRUTHS["window-limited"]["flows"][0]["src"]
    row = tcpfit.analyze(path, from_s=1.0).flows.filter(pl.col("src") == sender).row(0, named=True)
    assert row["window_scale_high"] == 14
    assert row["rwnd_max"] is None
