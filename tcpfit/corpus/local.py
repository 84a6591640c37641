"""Workers of this machine: a thread each that waits for its process."""

from __future__ import annotations

import queue
import threading
from typing import Any, Protocol

from tcpfit.corpus.process import Limits, Process
from tcpfit.corpus.task import Outcome, Task

Token = tuple[str, Any]
"""What a task is about; its outcome comes back with it."""


class Executor(Protocol):
    """Where tasks are done: they go in with a token and come out, in any order, with the same."""

    @property
    def slots(self) -> int:
        """Tasks that should be under way, so that no worker waits for the next."""

    def submit(self, token: Token, task: Task) -> None:
        """Have a task done."""

    def next(self, timeout_s: float) -> tuple[Token, Outcome] | None:
        """A task that is done; None if none was in that time."""

    def abandon(self) -> None:
        """Drop every task that is not done; workers may be used again."""

    def close(self) -> None:
        """Drop what is not done and end the workers."""


class Local:
    """Worker processes of this machine."""

    def __init__(self, workers: int, limits: Limits, shared: tuple[int, ...] = ()) -> None:
        self._workers = workers
        self._limits = limits
        self._shared = shared
        self._tasks: queue.SimpleQueue[tuple[int, Token, Task] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[int, Token, Outcome]] = queue.SimpleQueue()
        self._turn = 0  # raised when tasks are dropped: those of earlier turns are not looked at any more
        self._processes: list[Process] = []
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    @property
    def slots(self) -> int:
        """Two tasks a worker."""
        return 2 * self._workers

    def submit(self, token: Token, task: Task) -> None:
        """Have a task done."""
        self._tasks.put((self._turn, token, task))

    def next(self, timeout_s: float) -> tuple[Token, Outcome] | None:
        """A task that is done; None if none was in that time."""
        try:
            turn, token, outcome = self._done.get(timeout=timeout_s)
        except queue.Empty:
            return None
        return (token, outcome) if turn == self._turn else None

    def abandon(self) -> None:
        """Drop every task that is not done; workers may be used again."""
        self._turn += 1
        for process in list(self._processes):
            process.kill()

    def close(self) -> None:
        """Drop what is not done and end the workers."""
        self.abandon()
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            while thread.is_alive():  # a process that was about to be started could not be killed yet
                thread.join(0.1)
                for process in list(self._processes):
                    process.kill()

    def _work(self) -> None:
        process = Process(self._shared)
        self._processes.append(process)
        try:
            while (asked := self._tasks.get()) is not None:
                turn, token, task = asked
                if turn == self._turn:
                    limits = Limits() if task["kind"] == "compact" else self._limits
                    self._done.put((turn, token, process.call(task, limits)))
        finally:
            process.close()
