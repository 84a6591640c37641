#!/usr/bin/env python3
"""What tcpfit has got right stays right: `python tests/ratchet.py [--tighten]`.

A cell is one number of one capture (scenario, place, metric) that the grader judges against recorded truth. The record,
`ratchet.json` beside this file, holds the cells that are right. Without an option the cells that were right and are
wrong now are named, and those that could be added. `--tighten` adds them; no option takes one out.

The judging is the grader's own: its `main` runs here as its command line would run it, only that the command it starts
for every capture is answered in this process, by the code behind `tcpfit analyze CAPTURE --format json`, which saves
starting an interpreter for each. `test_ratchet.py` compares the two.

The sample captures have no grader; of them the record holds how many losses and late segments are found wrongly, one by
one, and that number may only fall. `test_samples.py` asserts their counts and rates.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent
RECORD = Path(__file__).with_name("ratchet.json")
SAMPLES = ROOT / "sample-traces"
SHARED = ROOT.parent / "shared"
GRADER = SHARED / "grade" / "grade.py"
SETS = ("traces", "traces-ns2")
PLACES = ("sender", "receiver")
JOBS = 2


class Cell(NamedTuple):
    """Which number of which capture."""

    set: str
    scenario: str
    place: str
    metric: str

    def __str__(self) -> str:
        return f"{self.set}/{self.scenario} at the {self.place}: {self.metric}"


class Judged(NamedTuple):
    """What the grader says of a cell."""

    right: bool
    said: str


def absent() -> str | None:
    """Why nothing can be graded here, or None."""
    missing = [path for path in (GRADER, *(SHARED / name for name in SETS)) if not path.exists()]
    return (
        f"{missing[0]} does not exist: the captures with recorded truth are not part of this repository"
        if missing
        else None
    )


def answer(command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
    """What `subprocess.run` gives for `tcpfit analyze CAPTURE --format json`."""
    import tcpfit
    from tcpfit.report import contract

    name, verb, capture, *options = command
    if (name, verb, options) != ("tcpfit", "analyze", ["--format", "json"]):
        raise ValueError(
            f"the grader starts {' '.join(command)}; ratchet.py answers tcpfit analyze CAPTURE --format json"
        )
    document = contract.dumps(tcpfit.analyze(capture).to_dict())
    return subprocess.CompletedProcess(list(command), 0, document.encode(), b"")


def grader() -> ModuleType:
    """The grader as a module, with the command it starts answered in this process."""
    spec = importlib.util.spec_from_file_location("grade", GRADER)
    if spec is None or spec.loader is None:
        raise ImportError(f"{GRADER} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["subprocess"] = SimpleNamespace(run=answer)
    return module


def graded(traces: Path, place: str) -> list[dict[str, Any]]:
    """The grader's own list of cells for the captures taken at one end."""
    module = grader()
    with TemporaryDirectory() as folder:
        out = Path(folder) / "cells.json"
        arguments = [str(GRADER), "--vantage", place, "--jobs", "1", "--json", str(out), str(traces)]
        with patch.object(sys, "argv", arguments), redirect_stdout(io.StringIO()):
            module.main()
        cells: list[dict[str, Any]] = json.loads(out.read_text())
    return cells


def judge() -> dict[Cell, Judged]:
    """Every cell of both sets. Of several captures of a cell all have to be right."""
    tasks = [(name, place) for name in SETS for place in PLACES]
    judged: dict[Cell, Judged] = {}
    with ProcessPoolExecutor(JOBS, mp_context=get_context("spawn")) as pool:
        lists = pool.map(graded, [SHARED / name for name, _ in tasks], [place for _, place in tasks])
        for (name, place), cells in zip(tasks, lists, strict=True):
            for cell in cells:
                said = f"expected {cell['want']}, found {cell['got']}" + (f" ({cell['why']})" if cell["why"] else "")
                key = Cell(name, cell["scenario"], place, cell["metric"])
                before = judged.get(key)
                if before is None or before.right:
                    judged[key] = Judged(cell["ok"], said)
    return judged


def wrong_one_by_one(name: str, place: str) -> dict[str, int]:
    """Of a sample: losses (at the sender) or late segments (at the receiver) missed, and found where there was none."""
    import tcpfit

    truth = json.loads((SAMPLES / f"{name}.truth.json").read_text())
    analysis = tcpfit.analyze(SAMPLES / truth["captures"][place])
    ends = ("src", "src_port", "dst", "dst_port")
    flows = {row["flow"]: tuple(row[end] for end in ends) for row in analysis.flows.iter_rows(named=True)}
    kind = "loss" if place == "sender" else "reordering"
    found: Counter[tuple[Any, ...]] = Counter()
    for event in analysis.events.iter_rows(named=True):
        if event["kind"] == kind:
            found[*flows[event["flow"]], event["left"]] += event["segments"] if kind == "loss" else 1
    expected: Counter[tuple[Any, ...]] = Counter()
    for flow in truth["flows"]:
        offsets = (
            [drop[1] for drop in flow["drops"]]
            if kind == "loss"
            else [held[1] for held in flow.get("held", ()) if held[2]]
        )
        expected.update((*(flow[end] for end in ends), offset) for offset in offsets)
    what = "losses" if kind == "loss" else "late segments"
    return {f"{what} missed": (expected - found).total(), f"{what} invented": (found - expected).total()}


def samples() -> dict[str, dict[str, int]]:
    """By sample and place, what is wrong."""
    wrong = {}
    for path in sorted(SAMPLES.glob("*.truth.json")):
        name = path.name.removesuffix(".truth.json")
        for place in json.loads(path.read_text())["captures"]:
            wrong[f"{name} at the {place}"] = wrong_one_by_one(name, place)
    return wrong


def recorded() -> tuple[set[Cell], dict[str, dict[str, int]]]:
    """The cells that were right, and the most that may be wrong in a sample."""
    document = json.loads(RECORD.read_text()) if RECORD.exists() else {"right": {}, "samples": {}}
    cells = {
        Cell(name, scenario, place, metric)
        for name, scenarios in document["right"].items()
        for scenario, places in scenarios.items()
        for place, metrics in places.items()
        for metric in metrics
    }
    return cells, document["samples"]


def lost(right: set[Cell], judged: dict[Cell, Judged]) -> list[str]:
    """A line for every cell that was right and is not now."""
    gone = Judged(False, "the grader does not judge it any more; take it out of ratchet.json by hand if that is meant")
    now = {cell: judged.get(cell, gone) for cell in sorted(right)}
    return [f"{cell}: {verdict.said}" for cell, verdict in now.items() if not verdict.right]


def worse(most: dict[str, dict[str, int]], now: dict[str, dict[str, int]]) -> list[str]:
    """A line for every number of a sample that has grown, or is no longer there."""
    lines = []
    for sample, numbers in most.items():
        for what, number in numbers.items():
            found = now.get(sample, {}).get(what)
            if found is None:
                lines.append(f"{sample}: {what}: was {number}, is not counted any more")
            elif found > number:
                lines.append(f"{sample}: {what}: was {number}, is {found}")
    return lines


def write(right: set[Cell], most: dict[str, dict[str, int]]) -> None:
    """The record, a line a capture, so that a change reads well."""
    tree: dict[str, dict[str, dict[str, list[str]]]] = {}
    for cell in sorted(right):
        tree.setdefault(cell.set, {}).setdefault(cell.scenario, {}).setdefault(cell.place, []).append(cell.metric)
    lines = ["{", ' "right": {']
    for name, scenarios in tree.items():
        lines.append(f"  {json.dumps(name)}: {{")
        for scenario, places in scenarios.items():
            lines.append(f"   {json.dumps(scenario)}: {{")
            lines += [f"    {json.dumps(place)}: {json.dumps(metrics)}," for place, metrics in places.items()]
            lines[-1] = lines[-1][:-1]
            lines.append("   },")
        lines[-1] = lines[-1][:-1]
        lines.append("  },")
    lines[-1] = lines[-1].removesuffix(",")
    lines += [" },", ' "samples": {']
    lines += [f"  {json.dumps(sample)}: {json.dumps(numbers)}," for sample, numbers in sorted(most.items())]
    lines[-1] = lines[-1].removesuffix(",")
    text = "\n".join([*lines, " }", "}"]) + "\n"
    json.loads(text)
    partial = RECORD.with_suffix(".partial")
    partial.write_text(text)
    partial.replace(RECORD)


def main() -> int:
    """Compare with the record, and tighten it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tighten", action="store_true", help="add what has become right to the record")
    arguments = parser.parse_args()
    right, most = recorded()
    now = samples()
    failures = worse(most, now)
    judged: dict[Cell, Judged] = {}
    why = absent()
    if why:
        print(why)
    else:
        judged = judge()
        failures += lost(right, judged)
    for line in failures:
        print(f"no longer right: {line}")
    added = sorted(cell for cell, verdict in judged.items() if verdict.right and cell not in right)
    fewer = {
        sample: {what: min(number, most.get(sample, {}).get(what, number)) for what, number in numbers.items()}
        for sample, numbers in now.items()
    }
    tighter = {sample: most.get(sample, {}) | numbers for sample, numbers in fewer.items()}
    changed = [sample for sample, numbers in tighter.items() if numbers != most.get(sample)]
    for cell in added:
        print(f"has become right: {cell}")
    for sample in changed:
        print(f"fewer are wrong: {sample}: {tighter[sample]}")
    if arguments.tighten and (added or changed):
        write(right | set(added), most | tighter)
        print(f"{RECORD.name}: {len(added)} cells added, {len(changed)} samples tightened")
    wrong = len(judged) - sum(verdict.right for verdict in judged.values())
    print(f"{len(right)} cells were right, {len(added)} have become so, {wrong} of {len(judged)} are wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
