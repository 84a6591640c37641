"""What the report of a corpus costs: `python benchmarks/overview.py [--flows 100000] [--corpus OUT]`.

A data set (by default that of the sample captures) is written again and again under other capture names, addresses and
times until it has so many flows. The report is then made from it in a process of its own; processor time, elapsed time
and the largest resident memory are the kernel's.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

import tcpfit.corpus
from tcpfit.corpus.dataset import Part, write_manifest
from tcpfit.corpus.table import TABLES

SAMPLES = Path(__file__).resolve().parent.parent / "sample-traces"
DAY_NS = 86_400 * 10**9


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--flows", type=int, default=100_000)
    parser.add_argument("--corpus", type=Path, help="a data set to copy; by default one of the sample captures is made")
    options = parser.parse_args()
    with TemporaryDirectory() as made:
        small = options.corpus or Path(made) / "samples"
        if options.corpus is None:
            tcpfit.corpus.run([str(SAMPLES)], small)
        large, page = Path(made) / "corpus", Path(made) / "corpus.html"
        flows = multiply(small, large, options.flows)
        command = [
            sys.executable,
            "-c",
            "from tcpfit.cli.main import run; run()",
            "report",
            str(large),
            "-o",
            str(page),
        ]
        started = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        elapsed = time.monotonic() - started
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"flows            {flows}")
        print(f"processor time   {used.ru_utime + used.ru_stime:.1f} s (that of the sample run too, if one was made)")
        print(f"elapsed          {elapsed:.1f} s, load average {os.getloadavg()[0]:.1f}")
        print(f"largest process  {used.ru_maxrss / 1024:.0f} MiB")
        print(f"page             {page.stat().st_size / 1e6:.2f} MB")
    return 0


def multiply(small: Path, large: Path, flows: int) -> int:
    """Copies of a data set as one, of at least so many flows; give back how many it has."""
    corpus = tcpfit.corpus.open(small)
    tables = {name: corpus.table(name).collect() for name in TABLES}
    copies = -(-flows // tables["flows"].height)
    parts = []
    for copy in range(copies):
        files = {}
        for name, table in tables.items():
            (large / name).mkdir(parents=True, exist_ok=True)
            files[name] = f"copy-{copy:05}.parquet"
            _another(table, name, copy).write_parquet(large / name / files[name])
        rows = {name: table.height for name, table in tables.items()}
        parts.append(Part(f"copy-{copy:05}", "", "", files, rows))
    statuses = {status: copies * count for status, count in corpus.manifest.statuses.items()}
    write_manifest(large, replace(corpus.manifest, parts=parts, statuses=statuses))
    return copies * tables["flows"].height


def _another(table: pl.DataFrame, name: str, copy: int) -> pl.DataFrame:
    changed = [pl.concat_str(pl.lit(f"{copy:05x}"), pl.col("capture").str.slice(5)).alias("capture")]
    if name == "flows":
        changed += [pl.col(end) + copy * DAY_NS for end in ("first_ns", "last_ns")]
    return table.with_columns(changed)


if __name__ == "__main__":
    sys.exit(main())
