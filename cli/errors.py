"""How the command says that something is wrong: one sentence on standard error."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from tcpfit.exceptions import InvalidParameter
from tcpfit.report.plain import plain

from .streams import beside

UNWRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of writing: no capture is said to be at fault for them."""


def unwritable(output: Path, error: OSError, option: str = "--output") -> InvalidParameter:
    """What to raise for an `--output` that makes no sense; an error of writing to one that does is raised itself."""
    if error.errno in UNWRITTEN:
        raise error
    return InvalidParameter(f"{option} {output}: {error.strerror or error}")


def spare_captures(outputs: Iterable[Path], captures: Sequence[str]) -> None:
    """Refuse to write over a capture that is read, whatever links lead to it."""
    files = [part for capture in captures for part in getattr(capture, "parts", (capture,))]
    read = {_identity(Path(file)) for file in files if file != "-"} - {None}
    for output in outputs:
        if _identity(output) in read:
            raise click.UsageError(f"{output} is a capture; write elsewhere")


def spare_captures_in(folder: Path, pattern: str, captures: Sequence[str]) -> None:
    """Refuse to write files with such names into a folder where one of them is a capture that is read."""
    spare_captures([folder, *folder.glob(pattern)], captures)


def check_spelling(output: Path) -> None:
    """Refuse a name that polars writes no tables to."""
    try:
        str(output).encode()
    except UnicodeEncodeError:
        raise click.UsageError(f"{output}: tables go only to names that are UTF-8; give another") from None


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def complain(sentence: str) -> None:
    """Say a sentence on standard error."""
    with beside(sys.stderr):
        click.echo(f"tcpfit: {plain(sentence)}", err=True)


def tell_path(path: Path) -> None:
    """Say which file was written; on a terminal without what would move its cursor, to programs by its very name."""
    click.echo(plain(str(path)) if sys.stdout.isatty() else path)


def debugging() -> bool:
    """Whether the user wants tracebacks."""
    return os.environ.get("TCPFIT_DEBUG", "") not in ("", "0")


def unexpected(error: BaseException) -> str:
    """A sentence for an error that nobody thought of."""
    if isinstance(error, OSError) and error.strerror:
        unnamed = "standard output: " if error.errno in UNWRITTEN else ""
        place = f"{error.filename}: " if error.filename else unnamed
        return f"{place}{error.strerror}"
    text = " ".join(str(error).split())
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"unexpected error, please report it ({what}); TCPFIT_DEBUG=1 shows where it happened"
