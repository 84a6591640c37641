"""Tables that `Analysis.write_parquet` saved, as a reading: what was computed is not computed again.

A folder holds a file a table; that of the segments is there only if it was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from tcpfit.exceptions import CaptureError
from tcpfit.readers import Reading
from tcpfit.schema import RUN, SCHEMA_VERSION, WITHOUT_DATA

NEEDED = ("captures", "flows", "events", "rounds")

COMPUTED = ("parameters", "ranking", "verdicts")


def is_saved(folder: Path) -> bool:
    """Whether a folder holds the tables of a capture."""
    return all((folder / f"{name}.parquet").is_file() for name in NEEDED)


def read(folder: Path, declared: Mapping[str, pl.Schema]) -> Reading:
    """Read a folder of tables, each of which has at least the columns that are `declared`.

    Raises CaptureError where one is missing, damaged, cut, of another version or of another analysis than the others.
    """
    tables, runs = {}, set()
    for name in (*NEEDED, *COMPUTED, "segments"):
        path = folder / f"{name}.parquet"
        if path.is_file():
            tables[name], run = _table(path, declared[name])
            runs.add(run)
        elif name in NEEDED:
            raise CaptureError(
                f"{folder} holds no saved tables: {name}.parquet is missing; tcpfit analyze --output saves them"
            )
    if len(runs) > 1:
        raise CaptureError(f"{folder} holds tables of different analyses; analyse the capture again")
    captures = tables.pop("captures")
    if captures.height != 1:
        raise CaptureError(f"{folder}/captures.parquet has {captures.height} rows; it should have one, the capture")
    return Reading(_facts(captures.row(0, named=True)), tables)


def _table(path: Path, declared: pl.Schema) -> tuple[pl.DataFrame, str | None]:
    """A table, and the run that saved it; None of one that was saved before runs had names."""
    try:
        said = pl.read_parquet_metadata(path)
        version = said.get("tcpfit_schema")
        if version != str(SCHEMA_VERSION):
            raise CaptureError(
                f"{path} was saved with schema {version or 'unknown'}, this tcpfit reads {SCHEMA_VERSION}; "
                "analyse the capture again"
            )
        table = pl.read_parquet(path)
        absent = [name for name in declared if name not in table.columns]
        if absent:
            raise CaptureError(f"{path} lacks the column {absent[0]!r}; analyse the capture again")
        table = table.cast(dict(declared))  # type: ignore[arg-type]
    except CaptureError:
        raise
    except (pl.exceptions.PolarsError, OSError) as error:
        raise CaptureError(
            f"{path} cannot be read as a table of tcpfit: {' '.join(str(error).split())[:200]}"
        ) from error
    if "flow" in declared and table["flow"].null_count():
        raise CaptureError(f"{path} has rows of no flow; analyse the capture again")
    return table, said.get(RUN)


def _facts(row: dict[str, Any]) -> dict[str, Any]:
    """What a reader knows of a capture, from its row of the table of captures."""
    start, length = row.pop("start_time"), row.pop("duration_s")
    start_ns = None if start is None else round(start * 1e9)
    return row | {
        "start_ns": start_ns,
        "end_ns": None if start_ns is None or length is None else start_ns + round(length * 1e9),
        "capture_loss": {part: row.pop(f"capture_loss_{part}") for part in ("rate", "low", "high")},
        "skipped": {entry["reason"]: entry["packets"] for entry in row["skipped"] or []},
        "without_data": {what: row.pop(f"without_data_{what}") for what in WITHOUT_DATA},
    }
