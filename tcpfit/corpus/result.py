"""The result of one capture on its way into the data set: a file that is whole or is not taken.

A first line of magic, 16 bytes of BLAKE2b over what follows, the length of the header, the header as JSON, then every
table as Arrow streams of some rows each, all of them compressed by zstd. The header names the table and length of each.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import zstandard

MAGIC = b"tcpfit result 1\n"
DIGEST = 16
LENGTH = struct.Struct("<I")

TEXTS = pl.CompatLevel.oldest()
"""Texts as they are, no views of them: with those a few rows of a table would bring the texts of all its rows."""

LISTS, CODED = pl.List(pl.String()), pl.List(pl.Categorical())
MANY = 1 << 12
"""Rows of a table from which on lists of texts are written as lists of numbers of texts: the sentences of a ranking are
few, and two thirds of all bytes."""

ROWS = 1 << 16
"""Rows of a table that are written together, which bounds the memory: a row of the ranking is some 250 bytes then."""


@dataclass
class Result:
    """The capture's own row, as far as its content says it, and its tables by name; a failure has none."""

    capture: dict[str, Any]
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each table."""
        return {name: table.height for name, table in self.tables.items()}


def failure(status: str, reason: str) -> Result:
    """The result of a capture that was not analysed."""
    return Result({"status": status, "reason": reason})


def pack(result: Result) -> bytes:
    """A result as bytes; tables without rows are left out."""
    packed, lengths = io.BytesIO(), []
    with zstandard.ZstdCompressor(1).stream_writer(packed, closefd=False) as compressor:
        for name, table in result.tables.items():
            coded = _recoded(table, LISTS, CODED) if table.height >= MANY else table
            for part in coded.iter_slices(ROWS):
                body = io.BytesIO()
                part.write_ipc_stream(body, compat_level=TEXTS)
                compressor.write(body.getbuffer())
                lengths.append((name, body.tell()))
    header = json.dumps({"capture": result.capture, "tables": lengths}).encode()
    rest = b"".join((LENGTH.pack(len(header)), header, packed.getbuffer()))
    return MAGIC + hashlib.blake2b(rest, digest_size=DIGEST).digest() + rest


def write(packed: bytes, path: Path) -> None:
    """Write a result; the file appears under its name when it is whole."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(packed)
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def facts(path: Path) -> dict[str, Any] | None:
    """The capture's own row from a file; None where the file is not whole."""
    opened = _open(path)
    return opened[0]["capture"] if opened else None


def read(path: Path) -> Result | None:
    """A result from its file; None where the file is not whole."""
    opened = _open(path)
    if opened is None:
        return None
    header, packed = opened
    parts: dict[str, list[pl.DataFrame]] = {}
    with zstandard.ZstdDecompressor().stream_reader(packed) as bodies:
        for name, length in header["tables"]:
            parts.setdefault(name, []).append(pl.read_ipc_stream(io.BytesIO(bodies.read(length))))
    tables = {name: _recoded(pl.concat(frames), CODED, LISTS) for name, frames in parts.items()}
    return Result(header["capture"], tables)


def _recoded(table: pl.DataFrame, old: pl.DataType, new: pl.DataType) -> pl.DataFrame:
    """The table with its columns of one dtype in another."""
    return table.with_columns(pl.col(name).cast(new) for name, dtype in table.schema.items() if dtype == old)


def _open(path: Path) -> tuple[dict[str, Any], bytes] | None:
    data = path.read_bytes()
    start = len(MAGIC) + DIGEST
    digest, rest = data[len(MAGIC) : start], data[start:]
    if not data.startswith(MAGIC) or hashlib.blake2b(rest, digest_size=DIGEST).digest() != digest:
        return None
    end = LENGTH.size + LENGTH.unpack_from(rest)[0]
    return json.loads(rest[LENGTH.size : end]), rest[end:]
