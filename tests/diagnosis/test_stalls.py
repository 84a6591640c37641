"""Is every silence in the table, with its length and its cause?"""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tcpfit
from tcpfit.diagnosis.stalls import stalls

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample-traces"
TRACES = ROOT / ".." / "shared" / "traces"


def of_largest(path: Path, src: str | None = None):
    analysis = tcpfit.analyze(path, segments=True)
    flows = analysis.flows if src is None else analysis.flows.filter(pl.col("src") == src)
    row = flows.sort("data_bytes").tail(1).row(0, named=True)
    return analysis, row, stalls(row, analysis.events, analysis.segments)


def test_a_reader_that_stops_makes_stalls_of_its_zero_windows():
    analysis, row, found = of_largest(SAMPLES / "slow-reader.pcap.gz")
    shut = [stall for stall in found if stall.cause == "zero-window"]
    assert len(shut) == row["zero_window_episodes"]
    lasted = analysis.events.filter(pl.col("kind") == "zero_window")["value"].to_numpy()
    # the silence begins with the data that filled the window, up to two round trips before the window was seen closed
    silent = sum(stall.length_s for stall in shut)
    assert lasted.sum() < silent < lasted.sum() + len(shut) * 2 * row["rtt_mean_s"]


def test_every_timeout_is_a_stall_with_its_timer():
    analysis, row, found = of_largest(SAMPLES / "timeouts.pcap.gz")
    timeouts = [stall for stall in found if stall.cause == "timeout"]
    assert len(timeouts) == row["timeouts"]
    assert all(stall.timer_s and stall.timer_s > 0.2 for stall in timeouts)
    assert {stall.detail for stall in timeouts} <= {
        "needless",
        "back-off",
        "double-loss",
        "small-window",
        "tail",
        "continuous-loss",
        "other",
    }


def test_stalls_are_longer_than_two_round_trips_or_the_timer():
    _, row, found = of_largest(SAMPLES / "slow-reader.pcap.gz")
    least = min(2 * row["rtt_mean_s"], row["rto_s"])
    assert all(stall.length_s > least for stall in found if stall.cause != "timeout")


@pytest.mark.skipif(not TRACES.is_dir(), reason="the traces with truth are not here")
def test_kernel_timeouts_are_in_the_table_with_their_length():
    """A stall ends at every entry of the kernel into Loss, and is as long as the sender was silent before it."""
    missed, off, all_of_them = [], [], 0
    for path in sorted(TRACES.glob("*/truth.json")):
        truth = json.loads(path.read_text())
        if len(truth["flows"]) != 1:
            continue
        flow = truth["flows"][0]
        with gzip.open(path.parent / "kernel_events.csv.gz", "rt") as file:
            kernel = [
                float(row["time"])
                for row in csv.DictReader(file)
                if (row["event"], row["value"]) == ("tcp_cong_state_set", "4") and int(row["sport"]) == flow["sport"]
            ]
        if not kernel:
            continue
        analysis, row, found = of_largest(next(path.parent.glob("sender.pcap*")), flow["src"])
        timeouts = {stall.end_ns / 1e9: stall for stall in found if stall.cause == "timeout"}
        sent = (
            analysis.segments.filter((pl.col("src") == row["src"]) & (pl.col("payload") > 0))["time_ns"].to_numpy()
            / 1e9
        )
        for time in kernel:
            all_of_them += 1
            after = int(np.searchsorted(sent, time - 1e-3))
            near = [stall for end, stall in timeouts.items() if abs(end - time) < 0.02]
            if not near:
                missed.append((path.parent.name, time))
            elif abs(near[0].length_s / (sent[after] - sent[after - 1]) - 1) > 0.1:
                off.append((path.parent.name, time))
    assert all_of_them > 90
    assert missed == []
    assert off == []
