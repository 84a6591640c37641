"""Which captures does a corpus have, and which files are one trace?"""

from __future__ import annotations

import gzip
import json
import os
import struct
from pathlib import Path

import pytest
from captures import Transfer, pcap

from tcpfit.corpus.plan import plan
from tcpfit.corpus.rotation import joined
from tcpfit.exceptions import InvalidParameter


@pytest.fixture
def folder(tmp_path) -> Path:
    capture = pcap(Transfer(segments=3).run())
    for name in ("a.pcap", "b.pcapng.gz", "deep/c.cap", "deep/d.dmp", "nameless", ".hidden.pcap", ".git/e.pcap"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(capture)
    (tmp_path / "notes.md").write_text("words")
    return tmp_path


def names(folder: Path, *sources: object, **choices) -> list[str]:
    found = plan([str(source) for source in sources], **choices)
    return [os.path.relpath(path, folder) for trace in found for path in trace.paths]


EVERYTHING = ["a.pcap", "b.pcapng.gz", "deep/c.cap", "deep/d.dmp", "nameless"]


def test_a_directory(folder):
    assert EVERYTHING == names(folder, folder)
    assert EVERYTHING == names(folder, folder / "deep", folder, folder / "a.pcap")


@pytest.mark.parametrize(
    ("head", "taken"),
    [
        (b"\x0a\x0d\x0d\x0a", True),
        (b"snoop\0\0\0" + struct.pack(">II", 2, 4), True),
        (gzip.compress(b"snoop\0\0\0" + struct.pack(">II", 2, 4), mtime=0), True),
        (b"snooping is not a capture", False),
        (b"snoo", False),
    ],
)
def test_a_directory_has_the_captures_that_no_name_tells(head, taken, folder):
    (folder / "trace.snoop").write_bytes(head)
    assert [*EVERYTHING, *["trace.snoop"] * taken] == names(folder, folder)


def test_what_is_named_is_taken(folder):
    assert [".hidden.pcap", "notes.md"] == names(folder, folder / "notes.md", folder / ".hidden.pcap")


def test_patterns(folder):
    assert ["a.pcap", "deep/c.cap"] == names(folder, folder / "**" / "?.*cap")
    assert ["deep/c.cap", "deep/d.dmp"] == names(folder, folder / "d*")
    with pytest.raises(InvalidParameter, match="no captures there"):
        names(folder, folder / "*.none")


def test_include_and_exclude(folder):
    assert ["deep/c.cap", "deep/d.dmp"] == names(folder, folder, include=["deep/*"])
    assert ["a.pcap", "b.pcapng.gz", "nameless"] == names(folder, folder, exclude=["deep/*"])
    assert ["deep/c.cap"] == names(folder, folder, include=["*.cap", "*.dmp"], exclude=["d.*"])


def test_the_data_set_is_no_part_of_its_corpus(folder):
    out = folder / "out"
    out.mkdir()
    (out / "x.pcap").write_bytes(b"")
    assert EVERYTHING == names(folder, folder, leave_out=str(out))


def test_lists(folder):
    (folder / "list.txt").write_text("# captures\na.pcap\n\ndeep\nmissing.pcap\n")
    expected = ["a.pcap", "deep/c.cap", "deep/d.dmp", "missing.pcap"]
    assert expected == names(folder, folder / "list.txt")


LABELLED = [{"path": "a.pcap", "site": "A", "run": 1}, {"path": "deep", "site": "B", "note": ""}]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_lists_with_labels(folder, suffix):
    if suffix == "jsonl":
        text = "".join(json.dumps(row) + "\n" for row in LABELLED)
    else:
        between = "," if suffix == "csv" else "\t"
        rows = [["path", "site", "run", "note"], ["a.pcap", "A", "1", ""], ["deep", "B", "", ""]]
        text = "".join(between.join(row) + "\n" for row in rows)
    path = folder / f"list.{suffix}"
    path.write_text(text)
    found = {os.path.relpath(trace.paths[0], folder): trace.labels for trace in plan([path], labels=(("when", "now"),))}
    assert {
        "a.pcap": (("run", "1"), ("site", "A"), ("when", "now")),
        "deep/c.cap": (("site", "B"), ("when", "now")),
        "deep/d.dmp": (("site", "B"), ("when", "now")),
    } == found


def test_a_list_that_a_spreadsheet_marks_as_utf_8(folder, tmp_path):
    (tmp_path / "list.csv").write_text(f"path,site\n{folder / 'a.pcap'},A\n", encoding="utf-8-sig")
    assert [(("site", "A"),)] == [trace.labels for trace in plan([tmp_path / "list.csv"])]


BAD = {
    "list.csv": ("name,site\na.pcap,A\n", "one of them is `path`"),
    "empty.csv": ("", "one of them is `path`"),
    "hole.csv": ("path,site\n,A\n", "line 2: no path"),
    "quote.csv": ('path,site\n"a.pcap,A\n', "not CSV"),
    "list.jsonl": ('{"path": "a.pcap"}\nwords\n', "line 2: not JSON"),
    "array.jsonl": ("[1]\n", "line 1: an object"),
    "deep.jsonl": ("[" * 100_000, "line 1: not JSON"),
    "zero.csv": ("path\na\0.pcap\n", r"line 2: path must be a path, got 'a\\x00.pcap'"),
    "half.jsonl": (r'{"path": "\ud800.pcap"}', r"line 1: path must be a path, got '\\ud800.pcap'"),
    "label.jsonl": (r'{"path": "a.pcap", "site": "\ud800"}', "line 1: a label must be a text that UTF-8 can hold"),
    "latin.csv": ("path,site\na.pcap,caf\udce9\n", "line 2: a label must be a text that UTF-8 can hold"),
}


@pytest.mark.parametrize("name", BAD)
def test_lists_that_are_none(tmp_path, name):
    text, said = BAD[name]
    (tmp_path / name).write_text(text, errors="surrogateescape")
    (tmp_path / "a.pcap").write_bytes(b"")
    with pytest.raises(InvalidParameter, match=said):
        plan([tmp_path / name])


def test_standard_input_is_none():
    with pytest.raises(InvalidParameter, match="standard input .* save it to a file"):
        plan(["-"])


def test_what_is_not_there(tmp_path):
    with pytest.raises(InvalidParameter, match="no such file or directory"):
        plan([tmp_path / "none.pcap"])
    with pytest.raises(InvalidParameter, match="no captures there"):
        plan([tmp_path])


ROTATED = {
    "tcpdump -C": ["x.pcap", "x.pcap1", "x.pcap2", "x.pcap10"],
    "tcpdump -C -W": ["x.pcap00", "x.pcap01", "x.pcap10"],
    "compressed since": ["x.pcap0.gz", "x.pcap1.gz", "x.pcap2"],
    "dumpcap -b": ["x_00001_20261121093000.pcapng", "x_00002_20261121093010.pcapng"],
    "dumpcap -b nametimenum": ["x_20261121093000_00001.pcapng", "x_20261121093010_00002.pcapng"],
    "dumpcap without a suffix": ["x_00001_20261121093000", "x_00002_20261121093010"],
}


@pytest.mark.parametrize("name", ROTATED)
def test_rotated_captures(name):
    paths = ROTATED[name]
    assert [("other.pcap",), tuple(paths)] == joined([*reversed(paths), "other.pcap"])
    elsewhere = [f"{number}/{path}" for number, path in enumerate(paths)]
    assert [(path,) for path in elsewhere] == joined(elsewhere)


SEPARATE = {
    "a capture and its compressed copy": ["x.pcap", "x.pcap.gz"],
    "two captures": ["x1.pcap", "x2.pcap"],
    "dates": ["x-20261121.pcap", "x-20261122.pcap"],
    "another suffix": ["x.pcap", "x.pcapng"],
}


@pytest.mark.parametrize("name", SEPARATE)
def test_captures_of_their_own(name):
    assert [(path,) for path in SEPARATE[name]] == joined(SEPARATE[name])
