"""A worker process, seen from outside: it is given tasks one by one, and killed when one goes beyond its limits.

A worker is a program of its own and no fork: polars' threads do not survive one. It is used again for task after task,
so that its start (a second of imports) is paid once.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import IO

from tcpfit.corpus.task import Outcome, Task

LOOK_S = 0.05
"""Time between looks at a worker's memory and at the clock."""

LAST_WORDS_S = 5.0
"""How long a worker that says nothing any more is given to end by itself, which says how it died."""

ONE_THREAD = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True)
class Limits:
    """What a task may take: seconds, and bytes of memory that the worker has for itself; None is without limit."""

    time_s: float | None = None
    memory_bytes: int | None = None


class Process:
    """One worker. `shared` are file descriptors that it holds open for as long as it lives."""

    def __init__(self, shared: tuple[int, ...] = ()) -> None:
        self._shared = shared
        self._process: subprocess.Popen[bytes] | None = None
        self._tasks = 0
        self._killed = False

    def call(self, task: Task, limits: Limits) -> Outcome:
        """Have a task done; what becomes of it is the outcome, whatever becomes of the worker."""
        self._killed = False
        for fresh in (False, True):
            process = self._started()
            first = self._tasks == 0
            self._tasks += 1
            outcome = self._ask(process, task, limits)
            # memory that earlier tasks left is not this one's, and a worker may have died before it was asked
            own = first or fresh or outcome.get("failed") not in ("memory", "died")
            if own or self._killed:
                return outcome
        raise AssertionError("the second worker is a fresh one")

    def kill(self) -> None:
        """End the worker, whatever it does; a call under way comes back."""
        self._killed = True
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the worker and wait for its end."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    _close(stream)
            process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            environment = os.environ | dict.fromkeys(ONE_THREAD, "1")
            environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
            self._tasks = 0
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tcpfit.corpus.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if os.environ.get("TCPFIT_DEBUG") else subprocess.DEVNULL,
                env=environment,
                pass_fds=self._shared,
                start_new_session=True,  # Ctrl-C is for the run, which ends its workers
            )
        return self._process

    def _ask(self, process: subprocess.Popen[bytes], task: Task, limits: Limits) -> Outcome:
        assert process.stdin is not None and process.stdout is not None
        deadline = None if limits.time_s is None else time.monotonic() + limits.time_s
        try:
            process.stdin.write(json.dumps(task).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            return self._died(process)
        answer = bytearray()
        while not answer.endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], LOOK_S)
            if ready:
                block = os.read(process.stdout.fileno(), 1 << 16)
                if not block:
                    return self._died(process)
                answer += block
            elif deadline is not None and time.monotonic() > deadline:
                self.close()
                return {"failed": "timeout", "reason": f"it took longer than the time limit of {limits.time_s:g} s"}
            elif limits.memory_bytes is not None and memory_of(process.pid) > limits.memory_bytes:
                self.close()
                said = f"it needed more than the memory limit of {limits.memory_bytes / 1e6:.0f} MB"
                return {"failed": "memory", "reason": said}
        outcome: Outcome = json.loads(answer)
        return outcome

    def _died(self, process: subprocess.Popen[bytes]) -> Outcome:
        try:
            process.wait(LAST_WORDS_S)
        except subprocess.TimeoutExpired:
            pass
        self.close()
        code = process.returncode
        how = f"by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"with exit status {code}"
        return {"failed": "died", "reason": f"the worker that analysed it ended {how}"}


def memory_of(pid: int) -> int:
    """Bytes of memory that a process has for itself: resident, files it has mapped apart. 0 when it has ended."""
    try:
        with open(f"/proc/{pid}/statm") as statm:
            _, resident, shared, *_ = map(int, statm.read().split())
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    except (FileNotFoundError, ProcessLookupError, ValueError):
        pass
    if sys.platform == "linux":
        return 0
    said = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return int(said) * 1024 if said.isdigit() else 0


def _close(stream: IO[bytes]) -> None:
    try:
        stream.close()
    except BrokenPipeError:
        pass
