"""The result of one capture on its way into the data set: a file that is whole or is not taken.

A first line of magic, 16 bytes of BLAKE2b over what follows, the length of the header, the header as JSON, then every
table as an Arrow stream, all of them compressed by zstd.
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


@dataclass
class Result:
    """The capture's own row, as far as its content says it, and its tables by name; a failure has none."""

    capture: dict[str, Any]
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each table."""
        return {name: table.height for name, table in self.tables.items()}


def pack(result: Result) -> bytes:
    """A result as bytes."""
    bodies = {}
    for name, table in result.tables.items():
        body = io.BytesIO()
        table.write_ipc_stream(body)
        bodies[name] = body.getvalue()
    facts = {"capture": result.capture, "tables": [[name, len(body)] for name, body in bodies.items()]}
    header = json.dumps(facts).encode()
    rest = LENGTH.pack(len(header)) + header + zstandard.compress(b"".join(bodies.values()), 1)
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
    rest = zstandard.decompress(packed)
    tables, at = {}, 0
    for name, length in header["tables"]:
        tables[name] = pl.read_ipc_stream(io.BytesIO(rest[at : at + length]))
        at += length
    return Result(header["capture"], tables)


def _open(path: Path) -> tuple[dict[str, Any], bytes] | None:
    data = path.read_bytes()
    start = len(MAGIC) + DIGEST
    digest, rest = data[len(MAGIC) : start], data[start:]
    if not data.startswith(MAGIC) or hashlib.blake2b(rest, digest_size=DIGEST).digest() != digest:
        return None
    end = LENGTH.size + LENGTH.unpack_from(rest)[0]
    return json.loads(rest[LENGTH.size : end]), rest[end:]
