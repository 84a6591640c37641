#!/usr/bin/env python3
"""Write docs/tables.md from the schema: `python docs/make_tables.py`, or `--check` to see whether it is current."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from tcpfit import schema
from tcpfit.corpus import table as corpus
from tcpfit.diagnosis.accounting import SPANS
from tcpfit.diagnosis.silences import SILENCES
from tcpfit.parameters.episodes import EPISODES
from tcpfit.parameters.event_rules import LOSS_EVENTS, RULES
from tcpfit.parameters.gilbert import INDEPENDENCE
from tcpfit.parameters.table import NAMES, PARAMETERS
from tcpfit.ranking.across import ACROSS, CONSTANTS, RESIDUALS
from tcpfit.ranking.by_block import BY_BLOCK
from tcpfit.ranking.dynamics import COURSE, COURSE_SCORES
from tcpfit.ranking.short import SHORT, SHORT_VERDICTS, TRANSFERS
from tcpfit.ranking.table import RANKING, STATES, VERDICTS
from tcpfit.report.round_trips import BY_FLOW, ROUND_TRIPS

PAGE = Path(__file__).with_name("tables.md")

ABOUT = {
    "flows": "A row per direction that carried data, or whose SYN was sent again.",
    "events": "A row per event, in order of time within the flow. Every label carries the rule that gave it and the "
    "frames that prove it.",
    "rounds": "A row per round trip of a flow.",
    "segments": "A row per TCP segment; what readers hand to the engine.",
    "parameters": "A row per flow and parameter.",
    "episodes": "A row per flow and recovery or timeout, of `tcpfit.parameters.episodes`.",
    "loss_events": "A row per flow and loss event, of `tcpfit.parameters.loss_events`.",
    "independence": "A row per flow, of `tcpfit.parameters.independence`.",
    "ranking": "A row per flow and model.",
    "verdicts": "A row per flow.",
    "by_block": "A row per flow, block and model, of `analysis.by_block()`.",
    "transfers": "A row per short transfer, of `tcpfit.transfers`.",
    "short": "A row per size, model and start, of `tcpfit.rank_short`.",
    "short_verdicts": "A row per size, of `tcpfit.rank_short`.",
    "course": "A row per bin of time, of `tcpfit.course`.",
    "course_scores": "A row per model, of `tcpfit.course`.",
    "residuals": "A row per flow and model, of `tcpfit.rank`.",
    "across": "A row per model, of `tcpfit.rank`.",
    "constants": "A row per set of flows and constant, of `tcpfit.rank`.",
    "spans": "A row per stretch of a flow's time, of `tcpfit.diagnosis.account`.",
    "silences": "A row per flow and stall that events and rounds show, of `tcpfit.diagnosis.silences`.",
    "round_trips": "A row per flow and sample, of `tcpfit.report.round_trips.round_trips`.",
    "round_trips_by_flow": "A row per flow, of `tcpfit.report.round_trips.by_flow`.",
}

ABOUT_CORPUS = {
    "captures": "A row per capture, whatever became of it.",
    "labels": "A row per file and label.",
    "flows": "A row per flow: `capture`, the columns of [flows](#flows), and:",
    "events": "`capture`, and the columns of [events](#events).",
    "parameters": "`capture`, and the columns of [parameters](#parameters).",
    "rankings": "`capture`, and the columns of [ranking](#ranking).",
    "verdicts": "`capture`, and the columns of [verdicts](#verdicts).",
    "diagnoses": "A row per flow: what held it back.",
    "causes": "A row per flow and cause.",
}

TABLES = dict(schema.TABLES) | {
    "parameters": PARAMETERS,
    "episodes": EPISODES,
    "loss_events": LOSS_EVENTS,
    "independence": INDEPENDENCE,
    "ranking": RANKING,
    "verdicts": VERDICTS,
    "by_block": BY_BLOCK,
    "transfers": TRANSFERS,
    "short": SHORT,
    "short_verdicts": SHORT_VERDICTS,
    "course": COURSE,
    "course_scores": COURSE_SCORES,
    "residuals": RESIDUALS,
    "across": ACROSS,
    "constants": CONSTANTS,
    "spans": SPANS,
    "silences": SILENCES,
    "round_trips": ROUND_TRIPS,
    "round_trips_by_flow": BY_FLOW,
}

HEAD = """# Tables

Made from the code by `docs/make_tables.py`; do not edit.

`tcpfit.analyze(...)` gives these tables as polars frames, `--output DIR` writes them as Parquet with the version of
this schema ({version}) in each file's metadata, and there, as `tcpfit_run`, the run that saved it: `tcpfit.load`
takes no folder whose tables are of several. Times are integer nanoseconds since the epoch where a name ends in `_ns`,
float seconds where it ends in `_s`. Windows and counts are segments of one SMSS. A value that cannot be had is
null.
"""

CORPUS = """
## Corpora

The tables of a data set that `tcpfit batch` writes ([corpora](corpora.md)). Every one has `capture` in front.
"""


def page() -> str:
    """The page's text."""
    parts = [HEAD.format(version=schema.SCHEMA_VERSION)]
    for name, columns in TABLES.items():
        parts.append(f"\n## {name}\n\n{ABOUT[name]}\n{_rows(columns)}")
    parts.append(CORPUS)
    known = {column for columns in TABLES.values() for column in columns} | {corpus.CAPTURE}
    for name, columns in corpus.TABLES.items():
        parts.append(f"\n### corpus: {name}\n\n{ABOUT_CORPUS[name]}\n")
        parts.append(
            _rows(
                columns
                if name in ("captures", "labels", "diagnoses", "causes")
                else [column for column in columns if column not in known]
            )
        )
    parts.append("\n## Words\n")
    parts.append("\n### vantage\n\n" + _list(schema.VANTAGE.items()))
    parts.append("\n### feedback of ECN\n\n" + _list(schema.FEEDBACK.items()))
    parts.append("\n### ending of a connection\n\n" + _list(schema.ENDING.items()))
    parts.append("\n### kind of an event\n\n" + _list(schema.KINDS.items()))
    parts.append("\n### reason of an event\n\n" + _list(schema.REASONS.items()))
    parts.append("\n### phase of the sender\n\n" + _list(schema.PHASES.items()))
    parts.append("\n### rule of loss events\n\n" + _list(RULES.items()))
    named = ((name, f"{meaning} [{unit}]" if unit else meaning) for name, (unit, meaning) in NAMES.items())
    parts.append("\n### name of a parameter\n\n" + _list(named))
    parts.append("\n### state of a verdict\n\n" + _list(STATES.items()))
    parts.append("\n### status of a capture of a corpus\n\n" + _list(corpus.STATUSES.items()))
    return "".join(parts)


def _rows(columns: Iterable[schema.Column]) -> str:
    """A table of columns; nothing where there are none."""
    rows = [f"| `{c.name}` | {_dtype(c.dtype)} | {c.unit} | {_cell(c.meaning)} |\n" for c in columns]
    return "".join(["\n| column | type | unit | meaning |\n| --- | --- | --- | --- |\n", *rows]) if rows else ""


def _dtype(dtype: pl.DataType) -> str:
    if isinstance(dtype, pl.Enum):
        return "word"
    if isinstance(dtype, pl.List):
        return f"list of {dtype.inner}"
    return str(dtype)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _list(items: Iterable[tuple[str, str]]) -> str:
    return "".join(f"- `{word}`: {meaning}\n" for word, meaning in items)


def main() -> int:
    """Write the page, or say whether it is current."""
    if "--check" in sys.argv[1:]:
        current = PAGE.exists() and PAGE.read_text() == page()
        if not current:
            print("docs/tables.md is not what the schema says; run docs/make_tables.py", file=sys.stderr)
        return 0 if current else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
