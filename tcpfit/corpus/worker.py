"""The program of a worker: tasks come as lines of JSON on standard input, outcomes go as lines on standard output.

It ends when its input ends, at once, whatever it does then: whoever started it is gone.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading

from tcpfit.corpus import task


def main() -> None:
    """Work until the input ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no outcome
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tasks: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()
    while True:
        try:
            outcome = task.run(json.loads(tasks.get()))
        except MemoryError:
            outcome = {"failed": "memory", "reason": "no more memory was to be had"}
        except OSError as error:  # of the data set's disk: what a capture can do wrong is an outcome
            outcome = {"broken": f"{error.filename or 'the data set'}: {error.strerror}" if error.errno else str(error)}
        replies.write(json.dumps(outcome) + "\n")
        replies.flush()


def _listen(tasks: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        tasks.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
