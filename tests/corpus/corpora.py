"""Corpora made for the tests."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from captures import Transfer, pcap

from tcpfit.corpus import task

SAMPLES = Path(__file__).parent.parent.parent / "sample-traces"


def capture(path: Path, number: int, segments: int = 40) -> Path:
    """A small capture; those of different numbers differ."""
    transfer = Transfer(segments=segments + number % 7, lost=frozenset({5 + number % 11, 23}), sport=40000 + number)
    path.write_bytes(pcap(transfer.run()))
    return path


def bytes_of(out: Path) -> dict[str, bytes]:
    """The data set: every file of it by its name, and none but those that belong there."""
    found = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    state = {name for name in found if name.startswith(".state")}
    assert {".state/lock", ".state/identities.jsonl"} == state, "files of a run were left"
    assert b"" == found[".state/lock"]
    return {name: content for name, content in found.items() if name not in state}


class Here:
    """Does the tasks of a run in its own process, one by one, so that a test can step in before and after each."""

    slots = 2

    def __init__(self, before=lambda task: None):
        self.before, self.waiting = before, deque()

    def submit(self, token, task):
        """Have a task done when it is asked for."""
        self.waiting.append((token, task))

    def next(self, timeout_s):
        """The outcome of the oldest task, or what `before` gives in its place."""
        token, work = self.waiting.popleft()
        return token, self.before(work) or task.run(work)

    def abandon(self):
        """Drop what waits."""
        self.waiting.clear()

    def close(self):
        """Nothing to end."""
