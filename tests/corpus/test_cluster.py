"""Do the workers of a dask scheduler give the same data set, whatever becomes of one of them?"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from corpora import bytes_of, capture

from tcpfit import corpus
from tcpfit.exceptions import InvalidParameter

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, dict[str, bytes]]:
    """A corpus and its data set, made by workers of this machine."""
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(16):
        capture(folder / f"{number:02}.pcap", number)
    (folder / "text.pcap").write_text("these are words, not packets\n")
    out = tmp_path_factory.mktemp("local") / "out"
    corpus.run([folder], out, workers=2)
    return folder, bytes_of(out)


@pytest.fixture
def cluster(tmp_path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler on this machine and two workers, each a process of its own."""
    address = tmp_path / "scheduler.json"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}

    def start(program: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{program}", "--scheduler-file", str(address), *arguments]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment, cwd=tmp_path)

    local = ["--host", "127.0.0.1", "--no-dashboard"]
    running = [start("dask_scheduler", "--port", "0", *local)]
    try:
        running += [start("dask_worker", *local, "--nthreads", "1", "--no-nanny", "--name", name) for name in "ab"]
        from distributed import Client

        deadline = time.monotonic() + 60
        while not address.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        with Client(scheduler_file=str(address)) as client:
            client.wait_for_workers(2, timeout=60)
            url = client.scheduler.address
        yield url, running[1:]
    finally:
        for process in reversed(running):
            process.kill()
            process.wait()


def test_two_workers_of_a_scheduler(made, tmp_path, cluster):
    folder, expected = made
    address, _ = cluster
    summary = corpus.run([folder], tmp_path / "out", scheduler=address)
    assert (16, ["rejected"]) == (summary.analysed, [failure.status for failure in summary.failures])
    assert expected == bytes_of(tmp_path / "out")


def test_a_worker_that_is_lost_changes_nothing(made, tmp_path, cluster):
    folder, expected = made
    address, workers = cluster

    def kill(progress: corpus.Progress) -> None:
        if progress.done == 4:
            workers[0].kill()

    summary = corpus.run([folder], tmp_path / "out", scheduler=address, progress=kill)
    assert -9 == workers[0].wait()
    assert (16, ["rejected"]) == (summary.analysed, [failure.status for failure in summary.failures])
    assert expected == bytes_of(tmp_path / "out")


def test_a_scheduler_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr("tcpfit.corpus.cluster.CONNECT_S", 0.5)
    path = capture(tmp_path / "one.pcap", 1)
    with pytest.raises(InvalidParameter, match="tcp://127.0.0.1:1: no dask scheduler answers there"):
        corpus.run([path], tmp_path / "out", scheduler="tcp://127.0.0.1:1")
