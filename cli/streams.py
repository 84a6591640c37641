"""Standard output and standard error whose reader may leave, as `| head` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


def closed(error: BaseException) -> bool:
    """Whether an error is that nobody reads any more; rich leaves the program instead of raising it."""
    return isinstance(error, BrokenPipeError) or (
        isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError)
    )


def silence(stream: TextIO) -> None:
    """Nobody reads the stream any more: what is left in its buffer, and what comes, goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def beside(stream: TextIO | None = None) -> Iterator[None]:
    """What the block prints, by default on standard output, is beside the work, which goes on where nobody reads it."""
    try:
        yield
    except (BrokenPipeError, SystemExit) as error:
        if not closed(error):
            raise
        silence(stream or sys.stdout)
