"""Where reports of captures go, for the verbs that write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import options
from .errors import spare_captures

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

FLOWS = 20  # of tcpfit.report.page, which a help page does not load

SUFFIXES = (".html", ".htm")

DRAWN = click.option(
    "--flows",
    "drawn",
    type=options.Whole(min=0),
    default=FLOWS,
    show_default=True,
    metavar="N",
    help="How many flows the report shows in full, the largest first; the others are in its table.",
)

DATA = click.option(
    "--data", is_flag=True, help="Also write every table as Parquet into a folder beside the report, segments too."
)


def stems(captures: Sequence[str]) -> list[str]:
    """A name a capture, as UTF-8 has it and without suffixes; those of the same name are numbered."""
    from tcpfit.arguments import path_text

    taken: set[str] = set()
    names = []
    for capture in captures:
        stem = "stdin" if capture == "-" else path_text(Path(capture).name).split(".pcap")[0].split(".cap")[0]
        stem = "capture" if stem in ("", ".", "..") else stem
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name)
        names.append(name)
    return names


def targets(captures: Sequence[str], output: Path | None, option: str) -> list[Path]:
    """A file a capture: `output` itself where there is one capture, else files in the folder `output`.

    Raises UsageError where a name is no HTML file's, where the report would replace a capture, and where the libraries
    that it is made with are missing: before a capture is read.
    """
    _check()
    if output is not None and len(captures) == 1 and not output.is_dir():
        if output.suffix.lower() not in SUFFIXES:
            raise click.UsageError(
                f"{option} names an HTML file or a folder, got {str(output)!r}; end its name in .html"
            )
        paths = [output]
    elif output is not None and output.suffix.lower() in SUFFIXES:
        raise click.UsageError(f"{option} names a folder where there are several captures, got {str(output)!r}")
    else:
        paths = [(output or Path()) / f"{name}.html" for name in stems(captures)]
    spare_captures(paths, captures)
    return paths


def tables_beside(path: Path) -> Path:
    """The folder for the tables of a report."""
    return path.with_name(f"{path.stem}.tables")


def write(analysis: Analysis, path: Path, *, drawn: int, data: bool = False, run: str | None = None) -> None:
    """Write a report, and beside it its tables where they are asked for; `run` has written that of segments already."""
    folder = tables_beside(path)
    if data:
        analysis.write_parquet(folder, segments=run is None and _holds_segments(analysis), run=run)
    analysis.write_html(path, drawn=drawn, data=folder.name if data else "")


def _holds_segments(analysis: Analysis) -> bool:
    from tcpfit.exceptions import InvalidParameter

    try:
        analysis.check_segments()
    except InvalidParameter:
        return False
    return True


def _check() -> None:
    from tcpfit.exceptions import InvalidParameter
    from tcpfit.report import page

    try:
        page.check()
    except InvalidParameter as error:
        raise click.UsageError(str(error)) from error
