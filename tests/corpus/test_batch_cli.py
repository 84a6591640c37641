"""Does `tcpfit batch` say what it did, and end with the status that it should?"""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest
from corpora import capture
from test_cli import COMMAND, assert_sentence, tcpfit

from tcpfit import corpus
from tcpfit.exceptions import InvalidParameter

PAGE = (Path(__file__).parent.parent.parent / "docs/corpora.md").read_text()


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with a corpus of two sites, and its data set."""
    folder = tmp_path_factory.mktemp("made")
    rows = ["path,site"]
    (folder / "captures").mkdir()
    for number in range(4):
        capture(folder / "captures" / f"{number}.pcap", number, segments=80)
        rows.append(f"captures/{number}.pcap,{'AB'[number % 2]}")
    (folder / "list.csv").write_text("\n".join(rows) + "\n")
    run = tcpfit("batch", folder / "list.csv", "-o", folder / "OUT", "--workers", 2, "--label", "when=now")
    assert (0, "") == (run.returncode, run.stderr)
    assert re.fullmatch(r".*OUT: 4 captures: 4 analysed, 0 known already; [\d.]+ s\n", run.stdout)
    return folder


def test_failures_are_said_and_counted(made, tmp_path):
    (tmp_path / "text.pcap").write_text("words, words\n")
    run = tcpfit("batch", made / "captures", tmp_path, "-o", tmp_path / "OUT", "--workers", 2)
    assert 1 == run.returncode
    assert "5 captures: 4 analysed, 0 known already, 1 rejected" in run.stdout
    assert f"tcpfit: {tmp_path}/text.pcap: rejected: a text file, not a capture" in run.stderr
    run = tcpfit("batch", made / "captures", tmp_path, "-o", tmp_path / "OUT")
    assert 1 == run.returncode
    assert "5 captures: 0 analysed, 4 known already, 1 rejected" in run.stdout


def test_status(made):
    run = tcpfit("batch", "--status", made / "OUT")
    assert (0, "") == (run.returncode, run.stderr)
    assert "OUT: 4 captures (4 analysed) in 1 part\n" in run.stdout
    assert re.search(r"labels +8 rows", run.stdout)
    assert "settings   the defaults" in run.stdout


def test_status_of_a_first_run_that_was_killed(tmp_path):
    for number in range(30):
        capture(tmp_path / f"{number}.pcap", number)
    command = [*COMMAND, "batch", str(tmp_path), "-o", str(tmp_path / "OUT"), "--workers", "1"]
    run = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while run.poll() is None and not list((tmp_path / "OUT" / ".state").glob("results/*/[!.]*")):
        time.sleep(0.01)
    run.kill()
    run.wait()
    while corpus.dataset.holder(tmp_path / "OUT"):  # its worker notices
        time.sleep(0.05)
    said = tcpfit("batch", "--status", tmp_path / "OUT")
    assert (0, "") == (said.returncode, said.stderr)
    assert re.search(r"OUT: its first run ended early, the next goes on; \d+ results? so far\n", said.stdout)


def test_time_left_is_told_when_it_is_known():
    progress = corpus.Progress(captures=1000, work=1000)
    progress.done, progress.work_done = 3, 3
    assert progress.left_s is None
    progress.done, progress.work_done = 20, 20
    assert progress.left_s is not None
    progress.done, progress.work_done = 1, 900  # one of them is most of the work
    assert progress.left_s is not None
    progress.done, progress.work_done = 30, 0  # all that were looked at are known already
    assert progress.left_s is None
    assert corpus.Progress(captures=1, done=1).left_s is None


def test_a_terminal_is_shown_a_run_that_has_nothing_to_do(made):
    ours, theirs = pty.openpty()
    command = [*COMMAND, "batch", str(made / "captures"), "-o", str(made / "OUT"), "--workers", "1"]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, timeout=120)
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert 0 == run.returncode, shown
    assert "0 analysed, 4 known already" in run.stdout
    assert "Traceback" not in shown


BAD = {
    "nothing": ([], "give the captures and, with -o, the data set"),
    "no data set": (["list.csv"], "give the captures and, with -o, the data set"),
    "no such corpus": (["none", "-o", "NEW"], "none: no such file or directory"),
    "no captures": (["empty", "-o", "NEW"], "empty: no captures there"),
    "two things at once": (["list.csv", "--status", "OUT"], "--status takes the data set and nothing else"),
    "status of nothing": (["--status", "captures"], "captures: no data set"),
    "label": (["captures", "-o", "NEW", "--label", "site"], "'site' is no label; write NAME=VALUE"),
    "size": (["captures", "-o", "NEW", "--memory-limit", "4 apples"], "is not a size; write 500MB, 4GB or 2GiB"),
    "workers": (["captures", "-o", "NEW", "--workers", "0"], "--workers"),
    "model": (["captures", "-o", "NEW", "--models", "none"], "none"),
    "filter": (["captures", "-o", "NEW", "--filter", "host and"], "expected an IPv4"),
    "span": (["captures", "-o", "NEW", "--from", "2s", "--to", "1s"], "the end must come after the start"),
    "folder": (["captures", "-o", "captures"], "not empty and no data set"),
    "file": (["captures", "-o", "list.csv"], "list.csv"),
    "scheduler": (["captures", "-o", "NEW", "--scheduler", "nowhere"], "nowhere"),
    "other settings": (["captures/0.pcap", "-o", "OUT", "--vantage", "sender"], "--prune"),
}


@pytest.mark.parametrize("name", BAD)
def test_arguments_that_make_no_sense(made, name):
    (made / "empty").mkdir(exist_ok=True)
    arguments, said = BAD[name]
    run = subprocess.run([*COMMAND, "batch", *arguments], cwd=made, capture_output=True, text=True)
    assert_sentence(run, 2, said)
    assert not (made / "NEW" / "manifest.json").exists()


def test_two_runs_at_once(made, monkeypatch):
    monkeypatch.setattr(corpus.dataset, "PATIENCE_S", 0.1)
    with corpus.dataset.locked(made / "OUT") as lock:
        lock.write("process 4711, 9 captures")
        lock.flush()
        run = tcpfit("batch", "--status", made / "OUT")
        assert "being written by process 4711, 9 captures" in run.stdout
        with pytest.raises(InvalidParameter, match=r"another run is writing it \(process 4711"):
            corpus.run([made / "captures"], made / "OUT")
        lock.truncate(0)


def test_an_interrupt(tmp_path):
    for number in range(60):
        capture(tmp_path / f"{number}.pcap", number)
    command = [*COMMAND, "batch", str(tmp_path), "-o", str(tmp_path / "OUT"), "--workers", "1"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while run.poll() is None and len(list((tmp_path / "OUT" / ".state").glob("results/*/[!.]*"))) < 31:
        time.sleep(0.01)  # the one worker has told of its first task, half of them at most, before it writes more
    run.send_signal(signal.SIGTERM)
    out, err = run.communicate()
    assert (130, "tcpfit: interrupted; what was done is in the data set, run again to go on\n") == (run.returncode, err)
    assert 0 < corpus.open(tmp_path / "OUT").captures.collect().height < 60


def blocks(language: str) -> list[str]:
    """The examples of a section of the page, each dedented."""
    section = re.search(rf"^In {language}.*?:\n(.*?)(?=^In |^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section
    found = re.findall(r"^\n((?:    .*\n|\n)+)", section[1], re.MULTILINE)
    return ["".join(line[4:] or "\n" for line in block.splitlines(keepends=True)) for block in found if block.strip()]


def test_queries_in_python(made, monkeypatch):
    monkeypatch.chdir(made)
    names: dict = {}
    for block in blocks("Python"):
        exec(block, names)
    assert names["limits"]["flows"].sum() == 4
    assert {"A", "B"} == set(names["by_site"]["value"])
    assert 0 == names["failures"].height


def test_queries_in_duckdb(made):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    before = os.getcwd()
    os.chdir(made)
    try:
        [block] = blocks("DuckDB")
        found = [connection.execute(statement).fetchall() for statement in block.split(";") if statement.strip()]
    finally:
        os.chdir(before)
    first, costs, timeouts = found
    ranked = corpus.open(made / "OUT").rankings.filter(pl.col("rank") == 1, "applicable").collect()
    assert sum(flows for _, flows, _ in first) == ranked.height
    assert 4 == len(timeouts)
    assert len(costs) <= 20
