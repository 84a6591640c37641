"""Are the files of a rotated capture one capture for the verbs that are told so?"""

from __future__ import annotations

import gzip
from pathlib import Path

import captures
import pytest
from captures import Transfer
from test_cli import assert_sentence, tcpfit

PACKETS = Transfer(segments=400, lost=frozenset(range(50, 400, 37))).run()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture as `whole.pcap`, and in three files: cut within its connection, the last of them compressed."""
    folder = tmp_path_factory.mktemp("ring")
    (folder / "whole.pcap").write_bytes(captures.pcap(PACKETS))
    (folder / "a.pcap").write_bytes(captures.pcap(PACKETS[:300]))
    (folder / "b.pcap").write_bytes(captures.pcapng(PACKETS[300:500]))
    (folder / "c.pcap.gz").write_bytes(gzip.compress(captures.pcap(PACKETS[500:])))
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "analyze",
        "analyze --format json",
        "analyze --format csv",
        "analyze --reader dpkt",
        "diagnose",
        "rank --format csv",
        "pool",
    ],
)
def test_files_are_one_capture(words: str, folder: Path) -> None:
    """In the order of time, whatever the order of the arguments; the name is that of the first argument."""
    whole = tcpfit(*words.split(), "whole.pcap", cwd=folder)
    joined = tcpfit(*words.split(), "--join", "c.pcap.gz", "a.pcap", "b.pcap", cwd=folder)
    assert (0, "") == (joined.returncode, joined.stderr)
    alike = joined.stdout.replace("c.pcap.gz", "whole.pcap").replace("pcapng", "pcap")
    assert whole.stdout.replace("pcapng", "pcap") == alike


def test_what_is_written_is_of_one_capture(folder: Path, tmp_path: Path) -> None:
    names = [folder / name for name in ("a.pcap", "b.pcap", "c.pcap.gz")]
    run = tcpfit("analyze", "--join", *names, "--output", "o", "--segments", "--html", "a.html", cwd=tmp_path)
    assert (0, "") == (run.returncode, run.stderr)
    assert {tmp_path / "a.html", tmp_path / "o"} == set(tmp_path.iterdir())
    assert ["a"] == [path.name for path in (tmp_path / "o").iterdir()]
    assert 0 == tcpfit("report", "--join", *names, "-o", tmp_path / "r.html").returncode
    assert f"{len(PACKETS)} packets" in (tmp_path / "r.html").read_text().replace("&nbsp;", " ")


def test_a_file_that_is_not_there_or_damaged(folder: Path, tmp_path: Path) -> None:
    run = tcpfit("analyze", "--join", folder / "a.pcap", folder / "d.pcap")
    assert_sentence(run, 1, "d.pcap: No such file", "not joined without it")
    (tmp_path / "b.pcap").write_bytes(captures.pcap(PACKETS[300:500])[:-7])
    run = tcpfit("analyze", "--join", folder / "a.pcap", tmp_path / "b.pcap", folder / "c.pcap.gz")
    assert (0, "") == (run.returncode, run.stderr)
    assert "warning: part 2: it ends within a record; the trace goes on with the next part" in " ".join(
        run.stdout.split()
    )
    assert f"{len(PACKETS) - 1} packets" in run.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("analyze --join a.pcap -", "standard input"),
        ("analyze --join a.pcap .", "is a folder"),
        ("report --join . a.pcap", "is a folder"),
        ("report --join a.pcap b.pcap -o b.pcap", "ends in .html"),
        ("analyze --join a.pcap b.html --html b.html", "is a capture"),
        ("diagnose --join a.pcap b.pcap --reader tshark", "take the engine"),
    ],
)
def test_what_cannot_be_joined(words: str, said: str, folder: Path) -> None:
    (folder / "b.html").write_bytes((folder / "b.pcap").read_bytes())
    run = tcpfit(*words.split(), cwd=folder)
    assert "" == run.stdout
    assert_sentence(run, 1 if "tshark" in words else 2, said.replace("ends in", "end its name in"))
