"""Calibration by simulation, and the papers' claims measured again: docs/validation.md and its figures.

    python benchmarks/validate.py                          simulate (minutes), write docs/validation/*.csv and the page
    python benchmarks/validate.py --traces DIR ...         measure recorded flows too: folders NAME/truth.json
    python benchmarks/validate.py --page                   the page and the figures from the CSV files that are there

Rows of recorded flows that are in none of the folders stay as they are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path as File

import calibration
import claims
from calibration import LOOSE, LOSS_RATES, WORLDS, Row
from claims import load, save
from validation_figures import drawings
from validation_page import page

from tcpfit.parameters import estimate
from tcpfit.report import figures

ROOT = File(__file__).resolve().parent.parent
PAGE = ROOT / "docs/validation.md"
DATA = ROOT / "docs/validation"

FLOWS, COVERED, EVENTS = 60, 240, 140
LENGTHS = (30, 300)
SIMULATED: Mapping[str, Callable[[], Iterator[Row]]] = {
    "bernoulli": claims.bernoulli,
    "bursts": claims.bursts,
    "transfers": claims.transfers,
    "repairs": claims.repairs,
    "timeouts": claims.in_timeout,
    "correlated": claims.correlated,
}


def judge(task: tuple[int, int]) -> tuple[list[Row], list[Row]]:
    """Coverage and verdicts of one world at one of its loss rates."""
    world, number = WORLDS[task[0]], task[1]
    p = world.rates[number]
    many = world.flows(p, EVENTS, COVERED, seed=1000 + EVENTS)
    covered = list(calibration.coverage(many, world, estimate(*many)))
    tables = world.flows(p, EVENTS, FLOWS, seed=number)
    parameters = estimate(*tables)
    where = {"model": world.model, "loss": p}
    row = where | calibration.verdicts(tables, parameters, world.model)
    row["bias"] = calibration.bias(tables, parameters, world.model)
    row["bias_programmed"] = calibration.bias(tables, parameters, world.model, p)
    return [where | {"events": EVENTS} | one for one in covered], [row]


def cover(task: tuple[int, int]) -> list[Row]:
    """Coverage of one world at its middle loss rate, for flows of another length; after the last world the loose
    one."""
    world, events = (*WORLDS, LOOSE)[task[0]], task[1]
    tables = world.flows(0.01, events, COVERED, seed=1000 + events)
    rows = calibration.coverage(tables, world, estimate(*tables))
    return [{"model": world.model, "loss": 0.01, "events": events} | row for row in rows]


def run(name: str) -> list[Row]:
    """The rows of one claim on simulated senders."""
    return list(SIMULATED[name]())


def measure(jobs: int) -> None:
    """Simulate everything, into CSV files."""
    # a fork would copy polars' locks, held or not
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        named = {name: pool.submit(run, name) for name in SIMULATED}
        judged = pool.map(judge, [(i, k) for i in range(len(WORLDS)) for k in range(len(LOSS_RATES))])
        random = [i for i, world in enumerate(WORLDS) if world.losses != "periodic"]
        tasks = [(i, events) for events in LENGTHS for i in random]
        others = pool.map(cover, tasks + [(len(WORLDS), events) for events in (*LENGTHS, EVENTS)])
        for name, future in named.items():
            write(name, future.result())
        coverage: list[Row] = []
        verdicts: list[Row] = []
        for covered, row in judged:
            coverage += covered
            verdicts += row
        write("verdicts", verdicts)
        write("coverage", coverage)
        coverage += [row for part in others for row in part]
    write("coverage", coverage)


def write(name: str, rows: list[Row]) -> None:
    """A table into its CSV file."""
    DATA.mkdir(exist_ok=True)
    save(DATA / f"{name}.csv", list(rows[0]), rows)


def with_others(rows: list[Row]) -> list[Row]:
    """The rows, and behind them those of flows that were recorded elsewhere."""
    measured = {row["trace"] for row in rows}
    return rows + [row for row in load(DATA / "flows.csv") if row["trace"] not in measured]


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=File, nargs="+", default=[], metavar="DIR")
    parser.add_argument("--page", action="store_true", help="simulate nothing")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--markdown", type=File, default=PAGE)
    arguments = parser.parse_args()
    if arguments.traces:
        long, short = claims.recorded(arguments.traces)
        write("flows", with_others([{column: row[column] for column in claims.COLUMNS} for row in long]))
        write("web", list(claims.web(short)))
    if not arguments.page:
        measure(arguments.jobs)
    arguments.markdown.write_text(page(tables()))
    for name, chart, mark in drawings(tables()):
        svg = figures.render(chart, ".svg").decode().rstrip("\n")
        (DATA / f"{name}.svg").write_text(f"{svg}\n<!-- {mark} -->\n")
    return 0


def tables() -> dict[str, list[Row]]:
    """Every table that the page is made of."""
    names = ("coverage", "verdicts", *SIMULATED, "flows", "web")
    return {name: load(DATA / f"{name}.csv") for name in names}


if __name__ == "__main__":
    sys.exit(main())
