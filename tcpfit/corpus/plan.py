"""Which captures a corpus has: directories, globs, lists of captures and URLs become traces.

In a directory every file below it counts whose name is that of a capture (`NAMES`) or whose first bytes are; hidden
files and directories do not. Files that are named, by a path, a pattern or a list, always count.
"""

from __future__ import annotations

import csv
import glob
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from tcpfit import arguments
from tcpfit.corpus.files import filesystem, is_url
from tcpfit.corpus.rotation import joined
from tcpfit.exceptions import InvalidParameter

NAMES = ("*.pcap*", "*.pcapng*", "*.cap", "*.cap.*", "*.ntar*", "*.dmp", "*.dmp.*", "*.tcpdump", "*.tcpdump.*")
LISTS = (".txt", ".lst", ".list", ".csv", ".tsv", ".jsonl", ".ndjson")
MAGIC = "*?["
LARGEST_FIELD = 1 << 20

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace: its files, several where a capture was rotated, and the labels that it was given."""

    paths: tuple[str, ...]
    labels: Labels = ()


def plan(
    sources: Iterable[str | os.PathLike[str]],
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    labels: Labels = (),
    join: bool = True,
    leave_out: str | None = None,
) -> list[Trace]:
    """The traces of a corpus, each once, in order of their paths.

    `include` and `exclude` are patterns of paths below a directory, or of names; `join` makes one trace of the parts of
    a rotated capture; `leave_out` is a directory whose files are not part of it.
    Raises InvalidParameter for a source that is not there, that has no captures, or that cannot be read as a list, and
    for other arguments that make no sense.
    """
    include, exclude = (
        arguments.texts(name, given, "patterns") for name, given in (("include", include), ("exclude", exclude))
    )
    labels = _labels(labels)
    named: dict[str, set[tuple[str, str]]] = {}
    for source in arguments.several("sources", sources, "paths"):
        if source == "-":
            raise InvalidParameter(
                "standard input ('-') is no capture of a corpus, which later runs go over again; save it to a file, "
                "or analyse it with tcpfit analyze"
            )
        for path, own, listed in _entries(arguments.path("each of sources", source)):
            # what a list names and is not there is a capture that cannot be read
            missing = listed and not is_url(path) and not _is_pattern(path) and not os.path.lexists(path)
            for file in [path] if missing else _files(path, include, exclude, leave_out):
                named.setdefault(file, set()).update(labels, own)
    groups = joined(sorted(named)) if join else [(path,) for path in sorted(named)]
    return [Trace(group, tuple(sorted(set().union(*(named[path] for path in group))))) for group in groups]


def _labels(given: object) -> Labels:
    found = []
    for pair in arguments.several("labels", given, "pairs of a name and a value"):
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise InvalidParameter(f"each of labels must be a pair of a name and a value, got {arguments.shown(pair)}")
        name, value = pair
        found.append((_label("the name of a label", name), _label("the value of a label", value)))
    return tuple(found)


_label = arguments.characters
"""Labels go into tables."""


def _entries(source: str) -> Iterator[tuple[str, Labels, bool]]:
    """A source itself, or the entries of a list of captures, and whether it is one."""
    if is_url(source) or not source.lower().endswith(LISTS) or not os.path.isfile(source):
        yield source, (), False
        return
    folder = os.path.dirname(os.path.abspath(source))
    try:
        with open(source, encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
            for path, labels in _listed(source, lines):
                yield path if is_url(path) else os.path.normpath(os.path.join(folder, path)), labels, True
    except OSError as error:
        raise InvalidParameter(f"{source}: the list cannot be read ({error.strerror})") from None


def _listed(source: str, lines: Iterable[str]) -> Iterator[tuple[str, Labels]]:
    suffix = Path(source).suffix.lower()
    if suffix in (".csv", ".tsv"):
        csv.field_size_limit(LARGEST_FIELD)
        rows = csv.DictReader(lines, delimiter="\t" if suffix == ".tsv" else ",", strict=True)
        try:
            if "path" not in (rows.fieldnames or ()):
                raise InvalidParameter(f"{source}: the first line names the columns, and one of them is `path`")
            for row in rows:
                yield _labelled(f"{source}: line {rows.line_num}", row)
        except csv.Error as error:
            raise InvalidParameter(f"{source}: line {rows.line_num}: not CSV ({error})") from None
        return
    for number, line in enumerate(lines, 1):
        if not line.strip() or (suffix not in (".jsonl", ".ndjson") and line.startswith("#")):
            continue
        if suffix not in (".jsonl", ".ndjson"):
            yield line.rstrip("\r\n"), ()
            continue
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidParameter(f"{source}: line {number}: not JSON ({error})") from None
        if not isinstance(fields, dict):
            raise InvalidParameter(f"{source}: line {number}: an object with `path` and labels is wanted")
        yield _labelled(f"{source}: line {number}", fields)


def _labelled(place: str, fields: dict[str, object]) -> tuple[str, Labels]:
    path = fields.get("path")
    if not isinstance(path, str) or not path:
        raise InvalidParameter(f"{place}: no path in it")
    arguments.path(f"{place}: path", path)
    others = {name: value for name, value in fields.items() if name not in ("path", None) and value not in (None, "")}
    labels = {name: value if isinstance(value, str) else json.dumps(value) for name, value in others.items()}
    for text in (*labels, *labels.values()):
        _label(f"{place}: a label", text)
    return path, tuple(labels.items())


def _files(path: str, include: Sequence[str], exclude: Sequence[str], leave_out: str | None) -> Iterator[str]:
    """The files that a path, a pattern, a directory or a URL stands for."""
    if is_url(path):
        found, root = _remote(path)
        chosen = found if root is None else _chosen(found, root, include, exclude, sniff=False)
    elif os.path.isdir(path):
        root = os.path.abspath(path)
        chosen = _chosen(_walk(root, leave_out), root, include, exclude, sniff=True)
    elif os.path.lexists(path):
        chosen = [os.path.abspath(path)]
    elif _is_pattern(path):
        chosen = []
        for match in sorted(glob.glob(path, recursive=True)):
            chosen += [match] if not os.path.isdir(match) else list(_files(match, include, exclude, leave_out))
        chosen = [os.path.abspath(match) for match in chosen]
    else:
        raise InvalidParameter(f"{path}: no such file or directory; check the path")
    empty = True
    for file in chosen:
        empty = False
        yield file
    if empty:
        raise InvalidParameter(
            f"{path}: no captures there; captures are files named like {', '.join(NAMES[:2])} or {NAMES[2]}"
        )


def _is_pattern(path: str) -> bool:
    return any(character in path for character in MAGIC)


def _chosen(
    files: Iterable[str], root: str, include: Sequence[str], exclude: Sequence[str], sniff: bool
) -> Iterator[str]:
    """The files of a directory that count."""
    for path in files:
        below = path[len(root) :].lstrip("/")
        name = below.rsplit("/", 1)[-1]

        def matches(patterns: Sequence[str], below: str = below, name: str = name) -> bool:
            return any(fnmatch(below, pattern) or fnmatch(name, pattern) for pattern in patterns)

        if matches(exclude):
            continue
        if matches(include) if include else matches(NAMES) or (sniff and _is_capture(path)):
            yield path


def _is_capture(path: str) -> bool:
    from tcpfit.readers.containers import format_of

    return format_of(path) is not None


def _walk(root: str, leave_out: str | None) -> Iterator[str]:
    """Files below a directory that are not hidden; links to directories are not followed."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and os.path.join(folder, name) != leave_out]
        yield from (os.path.join(folder, name) for name in names if not name.startswith("."))


def _remote(url: str) -> tuple[list[str], str | None]:
    """The files of a URL, and the directory that they are below where it is one.

    Of a web server only a URL that ends in / is taken for a directory: to look would be to fetch the file.
    """
    system, inside = filesystem(url)
    system.invalidate_cache()  # another run of this process may have listed it before
    scheme, _, rest = url.partition("://")
    chained = "::" + rest.partition("::")[2] if "::" in rest else ""

    def named(path: str) -> str:
        return path + chained if is_url(path) else f"{scheme}://{path.lstrip('/') if chained else path}{chained}"

    try:
        if _is_pattern(inside):
            return sorted(named(path) for path in system.glob(inside)), None
        directory = inside.endswith("/") if scheme in ("http", "https") else system.isdir(inside)
        if directory:
            return sorted(named(path) for path in system.find(inside)), named(inside)
    except Exception as error:  # every file system of fsspec has errors of its own
        said = " ".join(str(error).split()) or type(error).__name__
        raise InvalidParameter(f"{url}: cannot be listed ({said})") from None
    return [url], None
