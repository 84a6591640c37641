"""Does the congestion window of the kernel lie within the bounds of each round?

The traces with truth have the sender's TCP_INFO every 20 ms; a sample counts for the round of its time. The least bound
must have been reached by the first samples after the round at the latest.
"""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tcpfit

ROOT = Path(__file__).resolve().parents[1]
TRACES = ROOT / ".." / "shared" / "traces"
SAMPLES = ROOT / "sample-traces"
AFTER_NS = 45_000_000
# window-limited by the congestion window most of the time, by each family and recovery
LIMITED = [
    "a-newreno-p1-rtt100",
    "b-sack-p1-rtt50",
    "c-cubic-p2-rtt100",
    "d-m4-sack",
    "e-cubic-q100-1flow",
    "k-tso-cubic-p1",
]


def kernel(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Times in ns and congestion windows in segments."""
    with gzip.open(folder / "tcpinfo.csv.gz", "rt") as file:
        rows = [(float(row["time"]) * 1e9, float(row["snd_cwnd"])) for row in csv.DictReader(file)]
    table = np.array(rows)
    return table[:, 0], table[:, 1]


@pytest.mark.skipif(not TRACES.is_dir(), reason="the traces with truth are not here")
@pytest.mark.parametrize("name", LIMITED)
def test_kernel_windows_lie_within_the_bounds(name):
    folder = TRACES / name
    times, windows = kernel(folder)
    capture = next(folder.glob("sender.pcap*"))
    analysis = tcpfit.analyze(capture)
    sender = json.loads((folder / "truth.json").read_text())["flows"][0]["src"]
    flow = analysis.flows.filter(pl.col("src") == sender)["flow"][0]
    rounds = analysis.rounds.filter(pl.col("flow") == flow)
    bounded = rounds.filter(pl.col("cwnd_high").is_not_null())
    assert bounded.height >= 0.75 * rounds.height
    inside = above = reached = 0
    for row in bounded.iter_rows(named=True):
        first, last = np.searchsorted(times, [row["start_ns"], row["end_ns"] - 1_000_000])
        if first < last:
            inside += 1
            above += windows[first:last].max() > row["cwnd_high"]
            reached += windows[first : np.searchsorted(times, row["end_ns"] + AFTER_NS)].max() >= row["cwnd_low"]
    assert inside >= 100
    assert above <= 0.01 * inside
    assert reached >= 0.99 * inside


@pytest.mark.parametrize(
    ("name", "end"), [("window-limited", "sender"), ("slow-reader", "sender"), ("sack-loss", "receiver")]
)
def test_no_upper_bound_where_others_limit_or_the_sender_is_far(name, end):
    captures = json.loads((SAMPLES / f"{name}.truth.json").read_text())["captures"]
    rounds = tcpfit.analyze(SAMPLES / captures[end]).rounds
    assert rounds["cwnd_high"].is_null().all()
    assert rounds["cwnd_low"].is_not_null().any()


def test_bounds_are_in_order_and_apart_from_recovery():
    rounds = tcpfit.analyze(SAMPLES / "sack-loss-sender.pcap.gz").rounds
    both = rounds.filter(pl.col("cwnd_high").is_not_null())
    assert both.height > 100
    assert (both["cwnd_low"] <= both["cwnd_high"]).all()
    assert rounds.filter(pl.col("resent_segments") > 0)["cwnd_low"].is_null().all()
