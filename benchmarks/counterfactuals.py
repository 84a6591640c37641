#!/usr/bin/env python3
"""Predicted against measured changes: pairs of captures that differ in one thing. `counterfactuals.py [TRACES]`

For each pair the cost that tcpfit gives the first capture (without reordering, or with the other's rate of losses) is
held against the rate of the second. TRACES holds a folder a scenario with `sender.*`, as of the path emulator.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import tcpfit
from tcpfit.diagnosis import diagnose
from tcpfit.models import catalogue
from tcpfit.ranking.prediction import predict

LOSS = ("p", "p_indication", "q_tilde")

# the second has the first's path, but for the loss rate
LOSSES = (
    ("a-newreno-p5-rtt50", "a-newreno-p2-rtt50"),
    ("a-newreno-p2-rtt50", "a-newreno-p0.5-rtt50"),
    ("b-sack-p5-rtt50", "b-sack-p1-rtt50"),
    ("b-sack-p1-rtt50", "b-sack-p0.3-rtt50"),
    ("m-testbed-p2-rtt50", "m-testbed-p1-rtt50"),
)

# the second has the first's path and window; its sender undoes what it did for late segments
REORDERING = (
    ("f-d5-A2-push50-newreno", "f-d5-A2-push50-sack"),
    ("f-d1-A1-push10-newreno", "f-d10-A1-push30-sack"),
)

WITHIN = 0.2


def flow_of(folder: Path) -> tuple[tcpfit.Analysis, int, float]:
    """The analysis of a scenario at the sender, its largest flow, and the flow's goodput in bit/s."""
    analysis = tcpfit.analyze(next(folder.glob("sender.*")))
    number = analysis.largest()[0]
    row = analysis.flows.filter(pl.col("flow") == number).row(0, named=True)
    return analysis, number, 8e9 * row["unique_bytes"] / (row["last_ns"] - row["first_ns"])


def estimates(analysis: tcpfit.Analysis, flow: int) -> dict[str, float]:
    """Parameters of a flow by their names; nan where there is none."""
    own = analysis.parameters.filter(pl.col("flow") == flow)
    return {name: np.nan if value is None else value for name, value in own.select("name", "value").iter_rows()}


def without_reordering(first: Path) -> float | None:
    """The rate that the accounting gives the flow without its reaction to late segments."""
    analysis, number, _ = flow_of(first)
    found = diagnose(analysis.flows, analysis.events, analysis.rounds)[number]
    return next((c.cost.rate_bps for c in found.causes if c.cause == "reordering-limited" and c.cost), None)


def with_losses_of(first: Path, second: Path) -> tuple[str, float] | None:
    """The rate that the first model named gives the flow with the loss rates and the round trip of the other."""
    analysis, number, rate = flow_of(first)
    other = flow_of(second)
    mine, theirs = estimates(analysis, number), estimates(*other[:2])
    named: Any = analysis.verdicts.filter(pl.col("flow") == number)["models"][0]
    best = analysis.ranking.filter((pl.col("flow") == number) & (pl.col("rank") == 1))["model"].to_list()
    for name in [*(named if named is not None else []), *best]:
        before = {key: np.asarray([value]) for key, value in mine.items()}
        after = before | {key: np.asarray([theirs[key]]) for key in (*LOSS, "q", "m", "rtt", "rto")}
        ratio = float((predict(catalogue()[name], after) / predict(catalogue()[name], before))[0])
        if np.isfinite(ratio):
            return name, rate * ratio
    return None


def show(first: str, second: str, how: str, predicted: float, measured: float, before: float) -> bool:
    """Print a pair; whether the predicted change, a ratio of rates, is within a fifth of the measured one."""
    change, real = predicted / before, measured / before
    good = abs(change / real - 1) <= WITHIN
    print(
        f"{first:24} {second:24} {how:14} {change:8.2f} {real:8.2f} {change / real - 1:+8.0%} {'' if good else 'miss'}"
    )
    return good


def main(traces: Path) -> int:
    """Print every pair and how many are within a fifth."""
    print(f"{'from':24} {'to':24} {'by':14} {'said':>8} {'measured':>8} {'off':>8}")
    good = []
    for first, second in REORDERING:
        rate = without_reordering(traces / first)
        if rate is not None:
            good.append(
                show(first, second, "accounting", rate, flow_of(traces / second)[2], flow_of(traces / first)[2])
            )
    for first, second in LOSSES:
        found = with_losses_of(traces / first, traces / second)
        if found is not None:
            good.append(show(first, second, *found, flow_of(traces / second)[2], flow_of(traces / first)[2]))
    print(f"{sum(good)} of {len(good)} within {WITHIN:.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2] / "shared" / "traces")))
