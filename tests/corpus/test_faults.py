"""Whatever happens to a run, does running again give the data set that an undisturbed run gives, byte for byte?

Runs are processes of their own here, which are really killed, and the disk is really full.
"""

from __future__ import annotations

import http.server
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from captures import ACK, PSH, START_NS, Packet, link, pcap, tcp
from corpora import bytes_of, capture

from tcpfit import corpus

PROGRAM = """
import sys
from tcpfit import corpus
said = set()
def say(progress):
    if (line := f"{progress.phase} {progress.done}") not in said:
        said.add(line)
        print(line, flush=True)
source, out, workers, limit = sys.argv[1:5]
summary = corpus.run([source], out, workers=int(workers), time_limit_s=float(limit), progress=say)
print("failures", len(summary.failures), flush=True)
sys.exit(130 if summary.interrupted else 0)
"""

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks for workers in /proc")


def started(source: Path, out: Path, workers: int = 2, before=None, limit: float = 600) -> subprocess.Popen[str]:
    """A run in a process of its own, which prints a line a capture."""
    command = [sys.executable, "-c", PROGRAM, str(source), str(out), str(workers), str(limit)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, preexec_fn=before)


def ended(run: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit status, output and complaints of a run that is left alone."""
    out, err = run.communicate(timeout=300)
    return run.returncode, out, err


def workers_of(pid: int) -> list[int]:
    """The worker processes of a run."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and b"tcpfit.corpus.worker" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except (OSError, IndexError):
            continue
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, dict[str, bytes]]:
    """A corpus with a capture that is cut, one that is none and one that cannot be read, and its data set."""
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(8):
        capture(folder / f"{number:02}.pcap", number, segments=30)
    cut = folder / "cut.pcap"
    cut.write_bytes((folder / "00.pcap").read_bytes()[:-1000])
    (folder / "text.pcap").write_text("these are words, not packets\n")
    os.mkfifo(folder / "endless.pcap")
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    summary = corpus.run([folder], out, workers=2)
    assert (9, 2) == (summary.analysed, len(summary.failures))
    return folder, bytes_of(out)


def test_kill_of_the_run_at_random_points(made, tmp_path):
    """20 kills: after so many captures, or while the data set is written, and a random moment later."""
    folder, expected = made
    chance = random.Random(2026)
    out, life = tmp_path / "0", 0
    for _ in range(20):
        lines = chance.choice([0, 1, 2, 4, 6, 8, "commit", "commit"])
        run = started(folder, out)
        assert run.stdout is not None
        if lines == 0:
            time.sleep(chance.uniform(0, 1))
        else:
            numbered = enumerate(run.stdout, 1)
            next((number for number, line in numbered if number == lines or line.startswith(str(lines))), None)
        time.sleep(chance.uniform(0, 0.15))
        run.kill()
        run.communicate()
        if (out / "manifest.json").exists():
            data = corpus.open(out)
            assert all(path.exists() for path in data.named())
            assert data.captures.collect()["capture"].is_unique().all()
            if run.returncode == 0 or life % 2:
                assert expected == bytes_after(folder, out)
                life += 1
                out = tmp_path / str(life)
    assert expected == bytes_after(folder, out)


def bytes_after(folder: Path, out: Path) -> dict[str, bytes]:
    """The data set after a last run that nothing disturbs."""
    status, _, complaints = ended(started(folder, out))
    assert (0, "") == (status, complaints)
    return bytes_of(out)


@LINUX
def test_kill_of_workers(made, tmp_path):
    folder, expected = made
    run = started(folder, tmp_path / "out")
    assert run.stdout is not None
    killed = 0
    for number, _ in enumerate(run.stdout):
        if number % 3 == 2 and killed < 4:
            for pid in workers_of(run.pid)[:1]:
                os.kill(pid, signal.SIGKILL)
                killed += 1
    assert 0 == run.wait()
    run.communicate()
    assert killed > 1
    assert expected == bytes_of(tmp_path / "out")


@LINUX
def test_workers_that_die_again_and_again(tmp_path):
    path = capture(tmp_path / "one.pcap", 1)
    run = started(path, tmp_path / "out", workers=1)
    ending = threading.Event()

    def kill() -> None:
        while not ending.wait(0.02):
            for pid in workers_of(run.pid):
                os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    # what is killed as soon as it begins can write no data set either: the run gives up, and says so
    status, _, complaints = ended(run)
    ending.set()
    killer.join()
    assert 1 == status and "SIGKILL" in complaints
    assert not (tmp_path / "out" / "manifest.json").exists()
    assert 0 == ended(started(path, tmp_path / "out"))[0]
    corpus.run([path], tmp_path / "undisturbed", workers=1)
    assert bytes_of(tmp_path / "undisturbed") == bytes_of(tmp_path / "out")


def test_an_interrupt_commits_what_is_done(made, tmp_path):
    folder, expected = made
    run = started(folder, tmp_path / "out", workers=1)
    assert run.stdout is not None
    next(number for number, _ in enumerate(run.stdout, 1) if number == 5)
    run.send_signal(signal.SIGINT)
    assert 130 == ended(run)[0]
    statuses = corpus.open(tmp_path / "out").captures.collect()["status"]
    assert 4 <= len(statuses) < 11
    bytes_of(tmp_path / "out")  # says so if files of the run were left
    assert expected == bytes_after(folder, tmp_path / "out")


def test_a_second_interrupt_ends_at_once(made, tmp_path):
    folder, expected = made
    run = started(folder, tmp_path / "out")
    assert run.stdout is not None
    next(number for number, _ in enumerate(run.stdout, 1) if number == 5)
    run.send_signal(signal.SIGINT)
    next(line for line in run.stdout if line.startswith("commit"))
    run.send_signal(signal.SIGINT)
    assert 0 != ended(run)[0]
    assert expected == bytes_after(folder, tmp_path / "out")


def test_files_that_may_not_grow(made, tmp_path):
    """As on a full disk, for every user: what is written stops short."""
    folder, expected = made

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))

    status, _, complaints = ended(started(folder, tmp_path / "out", before=limited))
    assert 1 == status and "OSError" in complaints
    assert [] == list((tmp_path / "out").rglob("*.partial"))
    assert expected == bytes_after(folder, tmp_path / "out")


@pytest.mark.parametrize("kilobytes", [24, 180])
def test_a_full_disk(made, tmp_path, kilobytes):
    """A file system in memory without room for all results, or for the data set beside them."""
    folder, expected = made
    out = tmp_path / "small"
    out.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(out)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root mounts a file system")
    try:
        status, _, complaints = ended(started(folder, out))
        assert 1 == status and "No space left on device" in complaints
        assert [] == list(out.rglob("*.partial"))
        assert not (out / "manifest.json").exists()
        subprocess.run(["mount", "-o", "remount,size=64m", str(out)], check=True)
        assert expected == bytes_after(folder, out)
    finally:
        subprocess.run(["umount", str(out)], check=True)


@pytest.fixture
def endless() -> Iterator[str]:
    """The address of a capture that never ends."""

    class Endless(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802
            self.send_response(200)
            self.end_headers()
            self.wfile.write(pcap([]))
            record = pcap([Packet(START_NS, bytes(60), 60)])[24:]
            try:
                while True:
                    self.wfile.write(record)
                    time.sleep(0.01)
            except OSError:
                pass

        def do_HEAD(self) -> None:  # noqa: N802
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/endless.pcap"
        server.shutdown()


def test_a_capture_that_never_ends(tmp_path, endless):
    pytest.importorskip("aiohttp")
    path = capture(tmp_path / "one.pcap", 1)
    corpus.run([path], tmp_path / "out", workers=1)
    summary = corpus.run([endless, path], tmp_path / "out", workers=1, time_limit_s=2)
    assert 1 == summary.unchanged
    said = [(failure.path, failure.status, failure.reason) for failure in summary.failures]
    assert [(endless, "timeout", "it took longer than the time limit of 2 s")] == said


def test_a_capture_that_needs_too_much_memory(tmp_path):
    """Of 40,000 flows: its worker is killed at the limit, the other captures are analysed."""
    folder, out = tmp_path / "captures", tmp_path / "out"
    folder.mkdir()
    packets = []
    for number in range(40_000):
        address = f"10.0.{number >> 8}.{number & 255}"
        data = link(tcp(address, "10.9.9.9", 40000, 80, 1000, 1, ACK | PSH, 10), 1)
        packets.append(Packet(START_NS + 1000 * number, data, len(data)))
    (folder / "many.pcap").write_bytes(pcap(packets))
    capture(folder / "one.pcap", 1)
    summary = corpus.run([folder], out, workers=1, memory_limit_bytes=110_000_000)
    assert (1, ["memory"]) == (summary.analysed, [failure.status for failure in summary.failures])
    row = corpus.open(out).captures.filter(pl.col("status") == "memory").collect().row(0, named=True)
    assert "it needed more than the memory limit of 110 MB" == row["reason"]
    assert (None, None) == (row["packets"], row["flows"])
