#!/usr/bin/env python3
"""Write docs/accuracy.md: run a grader over captures with recorded truth and keep its whole table.

    python docs/make_accuracy.py [--grader FILE] [--traces DIR ...]

The grader is a program that takes `--tcpfit COMMAND DIR ...`, runs the command on every capture and prints a table.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import tcpfit

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path(__file__).with_name("accuracy.md")
SHARED = ROOT.parent / "shared"

HEAD = """# Accuracy

Made by `docs/make_accuracy.py` with tcpfit {version}; do not edit.

Captures of {scenarios} scenarios whose truth is known: transfers between real kernels over an emulated path that
recorded every packet it dropped, held or copied, with the kernel's own counters; and simulator runs. The first two
columns say in how many captures taken at the sender and at the receiver a number is within its tolerance, the last the
median relative error. Nothing is left out: what is not reached is listed below the table, capture by capture.
"""


def main() -> int:
    """Run the grader and write the page, whole or not at all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grader", type=Path, default=SHARED / "grade" / "grade.py")
    parser.add_argument("--traces", type=Path, nargs="+", default=[SHARED / "traces", SHARED / "traces-ns2"])
    arguments = parser.parse_args()
    missing = [path for path in (arguments.grader, *arguments.traces) if not path.exists()]
    if missing:
        print(f"{missing[0]} does not exist; name the grader and the traces", file=sys.stderr)
        return 2
    beside = Path(sys.executable).with_name("tcpfit")
    command = str(beside) if beside.exists() else shutil.which("tcpfit")
    if command is None:
        print("the tcpfit command is not installed beside this Python", file=sys.stderr)
        return 2
    call = [sys.executable, str(arguments.grader), "--tcpfit", shlex.quote(command), *map(str, arguments.traces)]
    run = subprocess.run(call, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        print(run.stderr, file=sys.stderr)
        return 1
    misses, table = split(run.stdout)
    scenarios = sum(len(list(folder.glob("*/truth.json"))) for folder in arguments.traces)
    text = HEAD.format(version=tcpfit.__version__, scenarios=scenarios)
    text += f"\n```\n{table}\n```\n"
    if misses:
        text += f"\n## Not reached\n\n```\n{misses}\n```\n"
    partial = PAGE.with_suffix(".partial")
    partial.write_text(text)
    partial.replace(PAGE)
    print(table)
    return 0


def split(output: str) -> tuple[str, str]:
    """The list of misses and the table of a grader's output."""
    lines = output.splitlines()
    misses = [line.rstrip() for line in lines if line.startswith("miss ")]
    table = [line.rstrip() for line in lines if not line.startswith("miss ")]
    return "\n".join(misses), "\n".join(table).strip("\n")


if __name__ == "__main__":
    sys.exit(main())
