"""A part of the data set: the rows of some captures in every table, a Parquet file each.

A part is written from results and from old parts, sorted by capture; the same captures give the same bytes, whatever
way they came. Files are named by their content, so that a file that is there is never written again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from tcpfit.analysis import unwritten
from tcpfit.corpus import result
from tcpfit.corpus.dataset import footer
from tcpfit.corpus.settings import LAYOUT
from tcpfit.corpus.table import OF_FLOWS, TABLES, schema_of
from tcpfit.schema import SCHEMA_VERSION

ROWS = 1 << 17
"""Rows of a row group: what a query that names captures reads at least."""

METADATA = {"tcpfit_schema": str(SCHEMA_VERSION), "tcpfit_layout": str(LAYOUT)}


def write(task: dict[str, Any]) -> dict[str, Any]:
    """Write the tables named in `tables` of the part `name` into the folder `out`; give back file, rows and footer.

    `captures` says of each capture, in order: its identity, the files of its results (none if it is in an old part),
    its files' paths and sizes, its copies and its labels. `old` has folders' files of old parts by table.
    """
    captures: list[dict[str, Any]] = task["captures"]
    made = {}
    results = {each["capture"]: _result(each) for each in captures if each["results"]}
    kept = [each["capture"] for each in captures if not each["results"]]
    for name in task["tables"]:
        if name == "labels":
            frame = pl.DataFrame(
                [(each["capture"], *label) for each in captures for label in each["labels"]],
                schema=schema_of(name),
                orient="row",
            )
        else:
            old = _old(task["old"].get(name, []), name, kept)
            if name == "captures":
                frame = _captures(captures, old, results)
            else:
                new = [found.tables[name] for found in results.values() if name in found.tables]
                # in one piece in any case: the bytes do not tell in which ones the rows came
                frame = pl.concat([old, *new], rechunk=True)
                if kept:  # the new ones are in order
                    frame = frame.sort("capture", maintain_order=True)
        file = _file(frame, Path(task["out"]), f"{name}.{task['name']}")
        made[name] = {"file": file, "rows": frame.height, "footer": footer(Path(task["out"]) / file)}
    return {"tables": made}


def _result(capture: dict[str, Any]) -> result.Result:
    """The result of a capture, of the shares of its flows where it was split."""
    found = [result.read(Path(path)) for path in capture["results"]]
    whole = [each for each in found if each is not None]
    if len(whole) < len(found):
        raise OSError(f"a result of {capture['capture']} is damaged; run again")
    if len(whole) == 1:
        return whole[0]
    merged = {}
    for name in OF_FLOWS:
        if pieces := [each.tables[name] for each in whole if name in each.tables]:
            merged[name] = pl.concat(pieces).sort("flow", maintain_order=True)
    return result.Result(whole[0].capture, merged)


def _old(files: Iterable[str], name: str, kept: list[str]) -> pl.DataFrame:
    """Rows of captures that stay as they are."""
    files = list(files)
    if not files or not kept:
        return pl.DataFrame(schema=schema_of(name))
    rows = pl.scan_parquet(files).filter(pl.col("capture").is_in(kept)).collect()
    return rows.cast(schema_of(name))


def _captures(captures: list[dict[str, Any]], old: pl.DataFrame, results: dict[str, result.Result]) -> pl.DataFrame:
    columns = [column.name for column in TABLES["captures"]]
    known = {row["capture"]: row for row in old.to_dicts()}
    rows = []
    for each in captures:
        capture = each["capture"]
        row = results[capture].capture if capture in results else known[capture]
        named = {key: each[key] for key in ("capture", "path", "files", "copies", "file_bytes")}
        rows.append({column: (row | named).get(column) for column in columns})
    return pl.DataFrame(rows, schema=schema_of("captures"), orient="row")


def _file(frame: pl.DataFrame, folder: Path, name: str) -> str:
    """Write a table under a name with the hash of its bytes; give back that name."""
    partial = folder / f"{name}.{os.getpid()}.partial"
    try:
        frame.write_parquet(partial, compression="zstd", row_group_size=ROWS, metadata=METADATA)
        with partial.open("rb") as written:
            digest = hashlib.file_digest(written, lambda: hashlib.blake2b(digest_size=8)).hexdigest()
            os.fsync(written.fileno())
        final = f"{name}-{digest}.parquet"
        partial.replace(folder / final)
    except BaseException as error:
        told = unwritten(error, partial) if isinstance(error, pl.exceptions.ComputeError) else None
        partial.unlink(missing_ok=True)
        if told is not None:
            raise told from error
        raise
    return final
