"""Workers of a dask cluster (the extra [cluster]): the same tasks, limits and outcomes as on one machine.

A dask worker has the task done by a worker process of tcpfit beside it, which it keeps for the next: a capture that
kills its worker kills no dask worker. Results come back through dask, so that only the captures have to be on storage
that every machine sees. A dask worker that is lost is dask's to replace: its tasks go to others.
"""

from __future__ import annotations

import base64
import queue
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from tcpfit.corpus import result
from tcpfit.corpus.local import Token
from tcpfit.corpus.process import Limits, Process
from tcpfit.corpus.task import Outcome, Task
from tcpfit.exceptions import InvalidParameter

CONNECT_S = 10.0

ASK_EVERY_S = 1.0
"""Time between questions how many threads the cluster has, each of which goes over the network."""

SPARE: queue.SimpleQueue[Process] = queue.SimpleQueue()
"""Worker processes of this dask worker that wait for a task."""


def perform(task: Task, limits: tuple[float | None, int | None]) -> Outcome:
    """Do a task on a dask worker; its outcome has the result in it, since there may be no disk that both ends see."""
    try:
        process = SPARE.get_nowait()
    except queue.Empty:
        process = Process()
    try:
        return process.call(task | {"bring": True}, Limits(*limits))
    finally:
        SPARE.put(process)


class Cluster:
    """Workers of a dask scheduler: one that runs at an address, or one of this machine (`local`)."""

    def __init__(self, scheduler: str, workers: int, limits: Limits) -> None:
        try:
            import distributed
        except ImportError:
            raise InvalidParameter("--scheduler needs dask.distributed; install tcpfit[cluster]") from None
        self._limits = (limits.time_s, limits.memory_bytes)
        self._own: Any = None
        connect: Any = distributed.Client
        local: Any = distributed.LocalCluster
        try:
            if scheduler == "local":
                self._own = local(n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1")
            self._client = connect(self._own or scheduler, timeout=CONNECT_S)
        except (OSError, ValueError, TimeoutError) as error:
            said = " ".join(str(error).split())
            raise InvalidParameter(f"{scheduler}: no dask scheduler answers there ({said})") from None
        self._done: queue.SimpleQueue[tuple[Any, Token, Task]] = queue.SimpleQueue()
        self._under_way: dict[str, Any] = {}
        self._slots, self._asked = 1, -ASK_EVERY_S

    @property
    def slots(self) -> int:
        """Two tasks a thread, as many as there are now: workers come and go."""
        if time.monotonic() > self._asked + ASK_EVERY_S:
            threads: dict[str, int] = self._client.nthreads()
            self._slots, self._asked = max(2 * sum(threads.values()), 1), time.monotonic()
        return self._slots

    def submit(self, token: Token, task: Task) -> None:
        """Have a task done."""
        future = self._client.submit(perform, task, self._limits, pure=False)
        self._under_way[future.key] = future
        future.add_done_callback(lambda future: self._done.put((future, token, task)))

    def next(self, timeout_s: float) -> tuple[Token, Outcome] | None:
        """A task that is done; its result is written here. None if none was in that time."""
        try:
            future, token, task = self._done.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if self._under_way.pop(future.key, None) is None:
            return None
        error = future.exception()
        if error is not None:
            return token, {"failed": "died", "reason": f"the dask workers that analysed it were lost ({error})"}
        outcome = future.result()
        for asked, one in zip(task["each"], outcome.get("each", ()), strict=False):
            if "result" in one:
                result.write(base64.b85decode(one.pop("result")), Path(asked["result"]))
        return token, outcome

    def abandon(self) -> None:
        """Drop every task that is not done."""
        self._client.cancel(list(self._under_way.values()), force=True)
        self._under_way.clear()

    def close(self) -> None:
        """Drop what is not done and leave the cluster; one of this run ends."""
        self.abandon()
        self._client.close()
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()
