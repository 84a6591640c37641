"""Are the files of a rotated capture one capture for the verbs that are told so?"""

from __future__ import annotations

import gzip
import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import captures
import pytest
from captures import Transfer
from test_cli import assert_sentence, tcpfit
from test_formats import snoop

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


def counted(run: subprocess.CompletedProcess[str]) -> tuple[int, int, float, list[str]]:
    """Packets, segments and duration of the only capture, and what is warned of."""
    assert (0, "") == (run.returncode, run.stderr)
    (capture,) = json.loads(run.stdout)["captures"]
    return capture["packets"], capture["tcp_segments"], capture["duration_s"], capture["warnings"]


@pytest.mark.parametrize("form", [{}, {"order": ">", "nanoseconds": False}])
def test_a_file_that_is_several_already(form: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    """As `cat` leaves them, of one form or of two; the next part has the form of the first again."""
    several = captures.pcap(PACKETS[:100]) + captures.pcap(PACKETS[100:300], **form)
    (tmp_path / "a.pcap").write_bytes(several)
    (tmp_path / "b.pcap").write_bytes(captures.pcap(PACKETS[300:]))
    whole = counted(tcpfit("analyze", "--format", "json", folder / "whole.pcap"))
    *found, warnings = counted(
        tcpfit("analyze", "--format", "json", "--join", tmp_path / "b.pcap", tmp_path / "a.pcap")
    )
    assert pytest.approx(whole[:3]) == found
    (warning,) = warnings
    assert f"frame 101 (byte {len(captures.pcap(PACKETS[:100]))}): another pcap file begins here" in warning


def test_files_of_an_old_version(folder: Path, tmp_path: Path) -> None:
    """Before 2.3 a record's length on the wire came first."""
    for name, packets in (("a", PACKETS[:300]), ("b", PACKETS[300:])):
        file = bytearray(captures.pcap([]))
        struct.pack_into("<HH", file, 4, 2, 2)
        for packet in packets:
            data = packet.data[:80]
            file += struct.pack("<IIII", *divmod(packet.time_ns, 10**9), packet.wire_len, len(data)) + data
        (tmp_path / f"{name}.pcap").write_bytes(file)
    whole = counted(tcpfit("analyze", "--format", "json", folder / "whole.pcap"))
    found = counted(tcpfit("analyze", "--format", "json", "--join", tmp_path / "b.pcap", tmp_path / "a.pcap"))
    assert whole == found


def test_snoop_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.snoop").write_bytes(snoop())
    alone, *_ = counted(tcpfit("analyze", "--format", "json", tmp_path / "a.snoop"))
    joined, *_ = counted(tcpfit("analyze", "--format", "json", "--join", tmp_path / "a.snoop", tmp_path / "b.snoop"))
    assert 2 * alone == joined > 0


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
