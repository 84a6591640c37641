"""The table of segments as a Parquet file, written while the capture is read: its memory is that of a piece.

Pieces wait beside the file, as Arrow, in a folder of their own. When the last one is there they become one Parquet file
under another name, which is renamed; then the folder goes, as it does where the reading failed.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

import polars as pl

from tcpfit import arguments
from tcpfit.analysis import AtomicFile, metadata, new_run
from tcpfit.schema import check_tables, polars_schema

ROWS = 1 << 17
"""Rows of a row group."""


class SegmentFile:
    """Takes the pieces that `analyze(path, segments=file.add)` hands out; `target` is there when the block ends well.

    >>> with SegmentFile(Path("big/segments.parquet")) as file:      # doctest: +SKIP
    ...     analysis = tcpfit.analyze("big.pcap", segments=file.add)
    >>> analysis.write_parquet("big", run=file.run)                  # doctest: +SKIP

    `run` is in the file's metadata; tables that are saved beside it under the same one are of the same analysis.
    """

    def __init__(self, target: Path) -> None:
        self._target = Path(arguments.path_of_tables("target", target))
        self.run = new_run()
        self._folder: TemporaryDirectory[str] | None = None
        self._pieces: list[Path] = []

    def __enter__(self) -> SegmentFile:
        return self

    def add(self, piece: pl.DataFrame) -> None:
        """Write the next rows.

        Raises InvalidParameter for what is no piece of that table, OSError where the file cannot be written.
        """
        check_tables(segments=piece)
        if self._folder is None:
            self._target.parent.mkdir(parents=True, exist_ok=True)
            name = f".{self._target.name}."
            try:
                self._folder = TemporaryDirectory(prefix=name, suffix=".partial", dir=self._target.parent)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(self._target)) from error
        path = Path(self._folder.name) / f"{len(self._pieces)}.arrow"
        try:
            piece.write_ipc(path)
        except OSError as error:  # polars gives no number
            raise OSError(error.errno, error.strerror or str(error), str(self._target)) from error
        self._pieces.append(path)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None:
                self._join()
        finally:
            if self._folder is not None:
                self._folder.cleanup()

    def _join(self) -> None:
        if not self._pieces:
            self.add(pl.DataFrame(schema=polars_schema("segments")))
        with AtomicFile(self._target) as partial:
            pl.scan_ipc(self._pieces).sink_parquet(partial, row_group_size=ROWS, metadata=metadata(self.run))
