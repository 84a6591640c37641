"""The commit of a run: results and old parts become the parts of the data set, then the manifest names them.

Captures are sorted by their identity and dealt to buckets by its first digits, as many as the size of the corpus asks
for; a bucket is cut into parts of some `WEIGHT` rows. Which captures there are decides what the parts are, so that the
same corpus gives the same data set, byte for byte, in one run or in many.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from tcpfit.corpus.dataset import Manifest, Part, State, sync, write_manifest
from tcpfit.corpus.local import Executor
from tcpfit.corpus.settings import Settings
from tcpfit.corpus.table import TABLES

WEIGHT = 500_000
"""About how many rows of all tables a part has."""

BUCKETS = ((1 << 10, 0), (1 << 14, 1))
"""Up to so many captures, so many digits; two beyond."""

ATTEMPTS = 3

OF_NAMES = ("captures", "labels")
"""Tables that change when a file is renamed or labelled."""


@dataclass
class Entry:
    """A capture that the data set is to have: where its rows are, and what is not part of its content."""

    capture: str
    status: str
    weight: int
    results: list[str] = field(default_factory=list)
    """Files of its result; none where an old part has it."""
    names: list[tuple[str, tuple[str, ...], int | None]] = field(default_factory=list)
    """First file, all files and size of every trace with this content."""
    labels: list[tuple[str, str, str]] = field(default_factory=list)
    """First file, name and value."""

    def facts(self) -> dict[str, Any]:
        """What `tcpfit.corpus.part` is told."""
        (path, files, size), *copies = sorted(self.names)
        return {
            "capture": self.capture,
            "results": self.results,
            "path": path,
            "files": files,
            "file_bytes": size,
            "copies": [copy for copy, *_ in copies],
            "labels": sorted(self.labels),
        }


def commit(
    state: State,
    old: Manifest | None,
    places: dict[str, int],
    entries: dict[str, Entry],
    settings: Settings,
    key: str,
    executor: Executor,
) -> Manifest:
    """Make the data set hold exactly these captures; give back its manifest.

    `old` is the manifest that stands, `places` says in which of its parts a capture is.
    """
    reuse = {part.name: part for part in (old.parts if old else [])}
    parts: list[Part] = []
    tasks: dict[int, dict[str, Any]] = {}
    for name, captures in _parts(entries):
        facts = [entry.facts() for entry in captures]
        content = _digest([entry.capture for entry in captures])
        names = _digest([[each[key] for key in ("path", "files", "file_bytes", "copies", "labels")] for each in facts])
        same = reuse.get(name)
        if same is None or same.captures != content or any(entry.results for entry in captures):
            same = None
        part = Part(name, content, names, {}, {})
        if same is not None:
            part = replace(part, files=dict(same.files), rows=dict(same.rows), footers=dict(same.footers))
        tables = list(TABLES) if same is None else [] if same.names == names else list(OF_NAMES)
        if tables:
            tasks[len(parts)] = {
                "kind": "compact",
                "name": name,
                "tables": tables,
                "captures": facts,
                "old": _old_files(state, old, {places[e.capture] for e in captures if not e.results}),
                "out": str(state.new),
            }
        parts.append(part)
    statuses = Counter(entry.status for entry in entries.values())
    manifest = Manifest(key, settings, parts, dict(sorted(statuses.items())))
    if not tasks and old == manifest:
        return manifest
    _write(tasks, parts, executor)
    _move(state, parts)
    write_manifest(state.out, manifest)
    state.drop({state.out / table / file for part in parts for table, file in part.files.items()})
    return manifest


def _parts(entries: dict[str, Entry]) -> Iterator[tuple[str, list[Entry]]]:
    """Names of parts and the captures in them."""
    digits = next((digits for most, digits in BUCKETS if len(entries) <= most), 2)
    for prefix, bucket in groupby(sorted(entries), key=lambda capture: capture[:digits]):
        part: list[Entry] = []
        number = weight = 0
        for capture in bucket:
            entry = entries[capture]
            if part and weight + entry.weight > WEIGHT:
                yield f"{prefix or 'all'}.{number:03}", part
                part, weight, number = [], 0, number + 1
            part.append(entry)
            weight += entry.weight
        yield f"{prefix or 'all'}.{number:03}", part


def _old_files(state: State, old: Manifest | None, places: set[int]) -> dict[str, list[str]]:
    if old is None:
        return {}
    return {table: [str(state.out / table / old.parts[i].files[table]) for i in sorted(places)] for table in TABLES}


def _write(tasks: dict[int, dict[str, Any]], parts: list[Part], executor: Executor) -> None:
    """Have the workers write the parts; another one takes over where one dies."""
    waiting, under_way = list(tasks), 0
    attempts: Counter[int] = Counter()
    while waiting or under_way:
        while waiting and under_way < executor.slots:
            number = waiting.pop()
            executor.submit(("part", number), tasks[number])
            under_way += 1
        done = executor.next(1.0)
        if done is None:
            continue
        under_way -= 1
        (_, number), outcome = done
        if "broken" in outcome:
            raise OSError(outcome["broken"])
        if "failed" in outcome:
            attempts[number] += 1
            if attempts[number] == ATTEMPTS:
                raise OSError(f"part {parts[number].name} could not be written: {outcome['reason']}")
            waiting.append(number)
            continue
        for table, made in outcome["tables"].items():
            parts[number].files[table] = made["file"]
            parts[number].rows[table] = made["rows"]
            parts[number].footers[table] = made["footer"]


def _move(state: State, parts: list[Part]) -> None:
    """Move new files to their tables; those are on the disk afterwards."""
    for part in parts:
        for table, file in part.files.items():
            made = state.new / file
            if made.exists():
                part.files[table] = file.removeprefix(f"{table}.")
                made.replace(state.out / table / part.files[table])
    for table in TABLES:
        sync(state.out / table)


def _digest(value: Any) -> str:
    return hashlib.blake2b(json.dumps(value).encode(), digest_size=8).hexdigest()
