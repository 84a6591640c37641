#!/usr/bin/env python3
"""How long do parameters and ranking of many flows take? `python benchmarks/ranking.py CAPTURE...`

The flows of the captures are cut after their first rounds and repeated until there are as many as asked for, each with
a number of its own; shorter ones are left out. Standard output: flows, events and rounds, and the seconds of both
steps, the middle of three runs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import cycle, islice
from pathlib import Path

import polars as pl

from tcpfit import analyze
from tcpfit.parameters import estimate
from tcpfit.ranking import rank

RUNS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description="Time parameters and ranking of many flows.")
    parser.add_argument("captures", nargs="+", type=Path)
    parser.add_argument("--flows", type=int, default=10_000, help="how many flows")
    parser.add_argument("--rounds", type=int, default=60, help="of each flow")
    arguments = parser.parse_args()
    pieces = [piece for capture in arguments.captures for piece in pieces_of(capture, arguments.rounds)]
    if not pieces:
        raise SystemExit(f"no flow has {arguments.rounds} rounds")
    many = [numbered(piece, n) for n, piece in enumerate(islice(cycle(pieces), arguments.flows))]
    flows, events, rounds = (pl.concat(tables) for tables in zip(*many, strict=True))
    print(f"{flows.height} flows, {events.height} events, {rounds.height} rounds")
    seconds: dict[str, list[float]] = {"parameters": [], "ranking": []}
    for _ in range(RUNS):
        start = time.perf_counter()
        parameters = estimate(flows, events, rounds)
        estimated = time.perf_counter()
        rank(flows, events, rounds, parameters)
        seconds["parameters"].append(estimated - start)
        seconds["ranking"].append(time.perf_counter() - estimated)
    print(", ".join(f"{step} {statistics.median(times):.1f} s" for step, times in seconds.items()))


def pieces_of(capture: Path, length: int) -> list[tuple[pl.DataFrame, ...]]:
    """Flow, events and rounds of every flow that is long enough, cut."""
    analysis, pieces = analyze(capture), []
    for number in analysis.flows["flow"]:
        flow, events, rounds = (
            table.filter(pl.col("flow") == number) for table in (analysis.flows, analysis.events, analysis.rounds)
        )
        if rounds.height > length:
            end = rounds["start_ns"][length]
            pieces.append((flow, events.filter(pl.col("time_ns") < end), rounds.head(length)))
    return pieces


def numbered(tables: tuple[pl.DataFrame, ...], number: int) -> tuple[pl.DataFrame, ...]:
    return tuple(table.with_columns(flow=pl.lit(number, dtype=pl.UInt32)) for table in tables)


if __name__ == "__main__":
    main()
