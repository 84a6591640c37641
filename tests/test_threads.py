"""Tables are memory of the engine: they may outlive the thread that made them, and end in another."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tcpfit import analysis

SAMPLES = Path(__file__).parent.parent / "sample-traces"
SAMPLE = SAMPLES / "newreno-loss.pcap.gz"


def test_tables_pass_between_threads_that_end() -> None:
    expected = analysis.analyze(SAMPLE)
    found: queue.Queue[analysis.Analysis] = queue.Queue()
    equal: list[bool] = []

    def make() -> None:
        found.put(analysis.analyze(SAMPLE))

    def compare() -> None:
        one = found.get()
        frames = (one.flows, one.events, one.rounds)
        # the sort makes polars' own threads take and give back parts of them
        equal.extend(
            mine.sort("flow", maintain_order=True).equals(theirs)
            for mine, theirs in zip(frames, (expected.flows, expected.events, expected.rounds), strict=True)
        )

    for _ in range(10):
        threads = [threading.Thread(target=work) for work in (make, compare, make, compare)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [True] * 60 == equal


def test_captures_side_by_side_are_as_one_after_the_other() -> None:
    """The engine reads without the interpreter's lock; nothing of one analysis is another's."""
    captures = sorted(SAMPLES.glob("*.pcap*"))
    with ThreadPoolExecutor(4) as threads:
        beside = list(threads.map(partial(analysis.analyze, segments=True), captures))
    for capture, found in zip(captures, beside, strict=True):
        alone = analysis.analyze(capture, segments=True)
        assert alone.capture == found.capture
        for name in ("flows", "events", "rounds", "segments"):
            assert getattr(alone, name).equals(getattr(found, name)), (capture.name, name)


def test_an_interpreter_ends_with_tables_alive() -> None:
    """At the end of a process, static data of libraries go in no order of ours."""
    code = (
        "import sys, threading; from tcpfit import analysis; kept = []\n"
        "def work(): kept.append(analysis.analyze(sys.argv[1]))\n"
        "threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]\n"
        "[thread.start() for thread in threads]; threads[0].join()"
    )
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code, str(SAMPLE)], capture_output=True, check=False)
        assert (0, b"") == (done.returncode, done.stderr)
