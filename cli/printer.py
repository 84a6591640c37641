"""How `tcpfit analyze` prints: in one format, what is said of several small captures computed for all at once."""

from __future__ import annotations

import json
import os
import stat
import time
from typing import TYPE_CHECKING, Any

import click

from .options import Joined
from .reading import Work, tell_warnings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcpfit.analysis import Analysis
    from tcpfit.report.contract import Document

IN_MEMORY = 1 << 24
"""Bytes of a JSON document that wait in memory; a longer one waits in a temporary file."""

FEW = 256
"""Flows of a capture that waits for others. Of so many, what does not depend on their number is little."""

MOST_FLOWS = 2048
"""Flows of the captures that wait; with one more capture they are still ranked in one go."""

MOST = 64
"""Captures that wait."""

PATIENCE_S = 1.0
"""How long the first of them waits."""

SMALL_BYTES = 4 << 20
"""A larger file may take longer than that to be read."""


class Printer:
    """Prints analyses one after the other. JSON is one document, so it waits for the last."""

    def __init__(self, form: str, *, top: int, in_full: bool) -> None:
        self._form, self._top, self._in_full = form, top, in_full
        self._first = True
        self._document: Document | None = None
        self._waiting: list[Analysis] = []
        self._since = 0.0
        if form == "json":
            from tempfile import SpooledTemporaryFile

            from tcpfit.report.contract import Document

            self._document = Document(SpooledTemporaryFile(IN_MEMORY))

    def waits_for(self, analysis: Analysis) -> bool:
        """Whether a capture whose flows are all selected is few enough flows to be printed with others."""
        return analysis.flows.height <= min(FEW, self._shown(analysis))

    def later(self, analysis: Analysis) -> None:
        """Print it with the next ones; `flush` has to be called before the command ends."""
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append(analysis)

    @property
    def due(self) -> bool:
        """Whether those that wait should wait no longer."""
        several = self._waiting
        if not several:
            return False
        flows = sum(analysis.flows.height for analysis in several)
        return len(several) >= MOST or flows >= MOST_FLOWS or time.monotonic() > self._since + PATIENCE_S

    def flush(self) -> int:
        """Print what waits; give back 1 where something went wrong with a capture, which a sentence has said."""
        several, self._waiting = self._waiting, []
        status = 0
        for analysis, flows in zip(several, self._flows_of_each(several), strict=True):
            with Work(analysis.path) as work:
                self.show(analysis, flows)
            status |= work.status
        return status

    def show(self, analysis: Analysis, flows: Any = None) -> None:
        """Print it now; `flows` is what the format has of its flows, where that is known."""
        from tcpfit.report import contract, csv

        if self._form in ("jsonl", "csv"):
            tell_warnings(analysis)
        if self._document is not None:
            self._document.add(analysis, flows)
        elif self._form == "jsonl":
            for line in contract.lines(analysis, flows):
                click.echo(line)
        elif self._form == "csv":
            if flows is None:
                texts = csv.flow_texts(analysis, header=self._first)
            else:
                texts = csv.texts(flows, analysis.path, header=self._first)
            for text in texts:
                click.echo(text, nl=False)
        else:
            self._table(analysis, flows)
        self._first = False

    def close(self) -> None:
        """Print what could not be printed before the last capture was there."""
        if self._document is not None:
            for piece in self._document.close():
                click.echo(piece, nl=False)

    def _flows_of_each(self, several: list[Analysis]) -> list[Any]:
        if len(several) > 1:
            try:
                from tcpfit.report import contract, csv

                if self._form == "csv":
                    return csv.flow_rows_of_each(several)
                return contract.flow_texts_of_each(several)
            except Exception:
                pass  # which of them it is for, each by itself tells
        return [None] * len(several)

    def _shown(self, analysis: Analysis) -> int:
        """Flows of a capture that are shown."""
        if self._form != "table" or self._in_full:
            return analysis.flows.height
        from tcpfit.report import terminal

        return max(self._top, terminal.IN_FULL)

    def _table(self, analysis: Analysis, flows: Iterable[str] | None) -> None:
        from tcpfit.report import contract, terminal

        out = terminal.console()
        if not self._first:
            out.print()
        if flows is None:
            flows = contract.flow_texts(analysis.select(analysis.largest()[: self._shown(analysis)]))
        facts = contract.capture_facts(analysis) | {"flows": list(map(json.loads, flows))}
        number = analysis.flows.height
        terminal.show(facts, out, analysis.rounds, flows=number, top=self._top, in_full=self._in_full)


def is_small(capture: str) -> bool:
    """It is a file that is read in no time."""
    if isinstance(capture, Joined):
        return False
    try:
        found = os.stat(capture)
    except (OSError, ValueError):
        return True  # and said to be none in no time
    return stat.S_ISREG(found.st_mode) and found.st_size <= SMALL_BYTES
