"""A data set on disk: its manifest, its lock, and the frames that read it.

    OUT/manifest.json           what the data set holds; files that it does not name do not belong to it
    OUT/TABLE/PART-HASH.parquet a part: the rows of some captures, named by its content
    OUT/.state/lock             held by the run that writes
    OUT/.state/identities.jsonl which capture a file holds, so that it is not read again to know it
    OUT/.state/results/KEY/     results of captures that are not in a part yet
    OUT/.state/new/             files of parts before the manifest names them

The manifest is written beside and renamed over the old one, after every file that it names is on the disk: at any time
the data set is either that before a run's commit or that after it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import starmap
from pathlib import Path
from typing import IO

import polars as pl

import tcpfit
from tcpfit import arguments
from tcpfit.analysis import AtomicFile
from tcpfit.corpus.settings import LAYOUT, Settings, settings_of
from tcpfit.corpus.table import TABLES, schema_of
from tcpfit.exceptions import InvalidParameter
from tcpfit.schema import SCHEMA_VERSION

PATIENCE_S = 10.0
"""How long a run waits for another: workers of one that was killed hold its lock until they notice."""

PART = re.compile(r"\w+\.\d{3,}-[0-9a-f]{16}\.parquet")
"""Names of the files of parts; a run removes no others from the folders of tables."""

END = b"PAR1"
"""Last bytes of a Parquet file, before them the length of its footer."""


@dataclass(frozen=True)
class Part:
    """Some captures' rows: a file and a number of rows for every table."""

    name: str
    captures: str
    """Hash of which captures they are."""
    names: str
    """Hash of what does not follow from their content: paths, copies, labels."""
    files: dict[str, str]
    rows: dict[str, int]
    footers: dict[str, str] = field(default_factory=dict)
    """Of every file what `footer` says; empty in a data set of an earlier version."""


@dataclass(frozen=True)
class Manifest:
    """What a data set holds. `key` says what its results depend on (`Settings.key`)."""

    key: str
    settings: Settings
    parts: list[Part]
    statuses: dict[str, int]

    def rows(self) -> dict[str, int]:
        """Rows of every table."""
        return {name: sum(part.rows[name] for part in self.parts) for name in TABLES}


class Corpus:
    """A data set to read: every table is a lazy frame, keyed by `capture`, and by `flow` where it has flows.

    Columns are declared in `tcpfit.corpus.table`; docs/tables.md lists them. Raises InvalidParameter where the folder
    has no data set, or one of which a file is gone or cut.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(arguments.path("folder", folder))
        self.manifest = read_manifest(self.folder)
        while damage := next(filter(None, starmap(_damage, self._written())), None):
            before, self.manifest = self.manifest, read_manifest(self.folder)
            if self.manifest == before:  # no run has taken the file away meanwhile
                raise InvalidParameter(f"{damage}; the data set is not whole, make it anew in another folder")

    @property
    def captures(self) -> pl.LazyFrame:
        """A row per capture, whatever became of it."""
        return self.table("captures")

    @property
    def labels(self) -> pl.LazyFrame:
        """A row per file and label."""
        return self.table("labels")

    @property
    def flows(self) -> pl.LazyFrame:
        """A row per flow, with what it achieved."""
        return self.table("flows")

    @property
    def events(self) -> pl.LazyFrame:
        """A row per event."""
        return self.table("events")

    @property
    def parameters(self) -> pl.LazyFrame:
        """A row per flow and parameter."""
        return self.table("parameters")

    @property
    def rankings(self) -> pl.LazyFrame:
        """A row per flow and model."""
        return self.table("rankings")

    @property
    def verdicts(self) -> pl.LazyFrame:
        """A row per flow: which models explain it."""
        return self.table("verdicts")

    @property
    def diagnoses(self) -> pl.LazyFrame:
        """A row per flow: what held it back."""
        return self.table("diagnoses")

    @property
    def causes(self) -> pl.LazyFrame:
        """A row per flow and cause: its share of the time and its cost."""
        return self.table("causes")

    def table(self, name: str) -> pl.LazyFrame:
        """A table by its name."""
        files = self.files(name)
        if not files:
            return pl.LazyFrame(schema=schema_of(name))
        return pl.scan_parquet(files)

    def files(self, name: str) -> list[Path]:
        """The Parquet files of a table, for readers other than polars.

        Raises InvalidParameter for a table that does not exist.
        """
        if not isinstance(name, str) or name not in TABLES:
            raise InvalidParameter(f"a data set has the tables {', '.join(TABLES)}, got {name!r}")
        return [self.folder / name / part.files[name] for part in self.manifest.parts]

    def named(self) -> set[Path]:
        """Every file that the manifest names."""
        return {path for name in TABLES for path in self.files(name)}

    def _written(self) -> Iterator[tuple[Path, str | None]]:
        """Every file that the manifest names, and what its `footer` was when it was written."""
        for name in TABLES:
            for part, path in zip(self.manifest.parts, self.files(name), strict=True):
                yield path, part.footers.get(name)

    def __repr__(self) -> str:
        rows = self.manifest.rows()
        return f"<Corpus in {self.folder}: {rows['captures']} captures, {rows['flows']} flows>"


def footer(path: Path) -> str | None:
    """A hash of a Parquet file's size and footer, which tell it from any other; None where it does not end as one.

    The footer has the sizes of all columns and their least and greatest values; the rows are not read.
    """
    with path.open("rb") as file:
        size = file.seek(-4 - len(END), os.SEEK_END) + 4 + len(END)
        length, end = struct.unpack("<I4s", file.read())
        if end != END or length + 4 + len(END) > size:
            return None
        file.seek(-4 - len(END) - length, os.SEEK_END)
        return hashlib.blake2b(file.read() + size.to_bytes(8, "little"), digest_size=8).hexdigest()


def _damage(path: Path, written: str | None) -> str | None:
    """What is wrong with a file of a part: it is gone, is no whole Parquet file, or not the one that was written."""
    try:
        found = footer(path)
        if found is None:
            return f"{path}: cut or damaged"
        return None if written in (None, found) else f"{path}: not the file that was written, another has its name"
    except FileNotFoundError:
        return f"{path}: gone from the data set"
    except OSError as error:
        return f"{path}: {'cut' if error.errno == errno.EINVAL else f'cannot be read ({error.strerror})'}"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a data set.

    Raises InvalidParameter where there is none, or none that this version reads.
    """
    path = folder / "manifest.json"
    try:
        facts = json.loads(path.read_text())
    except FileNotFoundError:
        raise InvalidParameter(f"{folder}: no data set (no manifest.json in it); `tcpfit batch` writes one") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidParameter(f"{path}: cannot be read ({error}); run `tcpfit batch` again") from None
    if not isinstance(facts, dict) or not {"layout", "schema", "tcpfit"} <= facts.keys():
        raise InvalidParameter(f"{path}: not a manifest of `tcpfit batch`; give another folder")
    if (facts["layout"], facts["schema"]) != (LAYOUT, SCHEMA_VERSION):
        raise InvalidParameter(
            f"{folder}: written by tcpfit {facts['tcpfit']} with other tables than {tcpfit.__version__} reads; "
            "run `tcpfit batch` again into another folder"
        )
    try:
        parts = [Part(**part) for part in facts["parts"]]
        files = [part.files[name] for part in parts for name in TABLES]
        manifest = Manifest(facts["key"], settings_of(facts["settings"]), parts, dict(facts["captures"]))
        _check_kinds(manifest)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidParameter(f"{path}: damaged; run `tcpfit batch` again into another folder") from None
    outside = [file for file in files if Path(file).name != file or Path(file).suffix != ".parquet"]
    if outside:  # whoever made the manifest: what it names is in the data set's folder
        raise InvalidParameter(f"{path}: names {outside[0]!r}, which is not a file of the data set; do not use it")
    return manifest


def _check_kinds(manifest: Manifest) -> None:
    """Raise TypeError where something is of another kind than declared: JSON has no types."""
    names, counts = [manifest.key, *manifest.statuses], [*manifest.statuses.values()]
    for part in manifest.parts:
        names += [part.name, part.captures, part.names, *(part.files[table] for table in TABLES)]
        names += [part.footers.get(table, "") for table in TABLES]
        counts += [part.rows[table] for table in TABLES]
    if not (all(isinstance(name, str) for name in names) and all(type(count) is int for count in counts)):
        raise TypeError


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of a data set; it is on the disk afterwards."""
    facts = {
        "format": "tcpfit corpus",
        "layout": LAYOUT,
        "schema": SCHEMA_VERSION,
        "tcpfit": tcpfit.__version__,
        "key": manifest.key,
        "settings": manifest.settings.given(),
        "captures": manifest.statuses,
        "rows": manifest.rows(),
        "parts": [vars(part) for part in manifest.parts],
    }
    with AtomicFile(folder / "manifest.json") as partial, partial.open("w") as out:
        json.dump(facts, out, indent=1)
        out.write("\n")
        out.flush()
        os.fsync(out.fileno())
    sync(folder)


def sync(folder: Path) -> None:
    """Put the names in a folder on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class State:
    """The part of a data set's folder that runs keep to themselves."""

    def __init__(self, out: Path, key: str) -> None:
        self.out = out
        self.folder = out / ".state"
        self.results = self.folder / "results" / key
        self.new = self.folder / "new"
        self.identities = self.folder / "identities.jsonl"

    def clean(self, named: set[Path]) -> None:
        """Remove what a run that ended early left: files of parts that are not `named`, results of other settings.

        Raises InvalidParameter where a folder is a link: what it leads to is not the data set's to clean.
        """
        for folder in (self.folder, *(self.out / name for name in TABLES)):
            if folder.is_symlink():
                raise InvalidParameter(f"{folder}: a link to another folder; a data set has its tables in its own")
        for folder in (self.folder / "results").glob("*"):
            if folder != self.results:
                shutil.rmtree(folder)
        shutil.rmtree(self.new, ignore_errors=True)
        for folder in (self.results, self.new, *(self.out / name for name in TABLES)):
            folder.mkdir(parents=True, exist_ok=True)
        leftovers = [*self.folder.glob("**/*.partial"), *self.out.glob(".manifest.json.*.partial")]
        for path in leftovers:
            path.unlink()
        self.drop(named)

    def drop(self, named: set[Path]) -> None:
        """Remove files of parts that are not `named`."""
        for name in TABLES:
            for path in (self.out / name).iterdir():
                if path not in named and PART.fullmatch(path.name):
                    path.unlink()

    def discard(self) -> None:
        """Forget results that are in no part yet."""
        shutil.rmtree(self.results, ignore_errors=True)

    def tidy(self) -> None:
        """Remove the folders of a run that has ended well."""
        for folder in (self.folder / "results", self.new):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def locked(out: Path) -> Iterator[IO[str]]:
    """Hold a data set's lock; workers inherit the file, so that it is free when the last of them has ended.

    Raises InvalidParameter where another run holds it.
    """
    folder = out / ".state"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as lock:
        deadline = time.monotonic() + PATIENCE_S
        while not _lock(lock):
            if time.monotonic() > deadline:
                raise InvalidParameter(f"{out}: another run is writing it ({holder(out)}); wait for it or end it")
            time.sleep(0.05)
        lock.truncate(0)
        yield lock


def holder(out: Path) -> str | None:
    """Who holds a data set's lock, in words; None where nobody does."""
    try:
        lock = (out / ".state" / "lock").open("r+")
    except OSError:
        return None
    with lock:
        if _lock(lock):
            return None
        return lock.read().strip() or "process not known"


def _lock(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
