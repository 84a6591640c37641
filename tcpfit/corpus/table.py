"""The tables of a corpus: those of a capture, keyed by `capture`, and what is known of the captures themselves.

`capture` is the first 128 bits of the BLAKE2b hash of the file's bytes, in hexadecimal: two files with the same bytes
are one capture, whatever they are called. Rows are sorted by capture, then as they are in the table of one capture.
"""

from __future__ import annotations

from functools import cache

import polars as pl

from tcpfit.analysis import CAPTURES as FACTS
from tcpfit.diagnosis.causes import CAUSES as CAUSE_NAMES
from tcpfit.parameters import FAMILIES
from tcpfit.parameters.table import PARAMETERS
from tcpfit.ranking import OBSERVED, RANKING, VERDICTS
from tcpfit.schema import EVENTS, F64, FLOWS, STR, U32, U64, WITHOUT_DATA, Column

STATUSES = {
    "analysed": "all went well; `warnings` says what is wrong with the capture all the same",
    "rejected": "in no format that tcpfit reads, or damaged from its beginning",
    "unreadable": "it cannot be opened or read, or changed while it was: its mode, its path, a pipe",
    "timeout": "it took longer than the time limit",
    "memory": "it needed more than the memory limit",
    "died": "the worker that analysed it died, again and again",
    "error": "tcpfit failed; please report it",
}

FOR_NOW = ("unreadable", "timeout", "memory", "died")
"""Statuses that lie in the machine or the limits, not in the capture: the next run tries again."""

WHO = ("sender", "network", "receiver", "unknown")

CAUSE = pl.Enum(CAUSE_NAMES)
TEXTS = pl.List(pl.String())

CAPTURE = Column("capture", STR, "", "the capture: hash of its content; of one that cannot be read, of its path")

FACT_MEANINGS = {
    "format": ("", "pcap or pcapng"),
    "link_types": ("", "link layers, in order of appearance"),
    "packets": ("", "packets in the capture"),
    "tcp_segments": ("", "TCP segments that were analysed"),
    "bytes": ("bytes", "of all packets, on the wire"),
    "start_time": ("s", "time of the first packet, since the epoch"),
    "duration_s": ("s", "first packet to last"),
    "skipped": ("", "packets that show no TCP segment, by reason; what a filter leaves out is not among them"),
    "capture_loss_rate": ("", "share of the data that the capture missed"),
    "capture_loss_low": ("", "lower end of its 95 % interval"),
    "capture_loss_high": ("", "upper end"),
    "interface_drops": ("", "packets that the interfaces say they dropped; null if the capture does not say"),
    **{f"without_data_{what}": ("", f"connections without data: {meaning}") for what, meaning in WITHOUT_DATA.items()},
    "warnings": ("", "what is wrong with the capture, a sentence each"),
}

CAPTURES = (
    CAPTURE,
    Column("path", STR, "", "path or URL of its first file; of copies the first in order"),
    Column("files", TEXTS, "", "every file of it: of a rotated capture its parts by their numbers"),
    Column("copies", TEXTS, "", "first files of others with the same content, which are not analysed again"),
    Column("status", pl.Enum(list(STATUSES)), "", "what became of it"),
    Column("reason", STR, "", "why it was not analysed, a sentence; null if it was"),
    Column("file_bytes", U64, "bytes", "size of its files as they lie on disk; null if it cannot be read"),
    *(Column(name, FACTS[name], *meaning) for name, meaning in FACT_MEANINGS.items()),
    Column("flows", U32, "", "flows that carried data or were acknowledged"),
    Column("events", U64, "", "events of these flows"),
)

LABELS = (
    CAPTURE,
    Column("path", STR, "", "first file that the label was given to; copies may have labels of their own"),
    Column("name", STR, "", "name of the label: a column of the list of captures, or of --label"),
    Column("value", STR, "", "its value"),
)

DIAGNOSES = (
    CAPTURE,
    Column("flow", U32, "", "number of the flow"),
    Column("primary", CAUSE, "", "the cause that the verdict names"),
    Column("who", pl.Enum(WHO), "", "who can do something about it"),
    Column("text", STR, "", "the verdict in a sentence or two"),
    Column("remedy", STR, "", "what would help"),
    Column("confidence", F64, "", "0 to 1; orders verdicts, it is no probability"),
    Column("busy", F64, "", "share of the time with data to send, as tcpi_busy_time counts it; null without time"),
    Column("rwnd_limited", F64, "", "share held by the receiver's window, as tcpi_rwnd_limited counts it"),
    Column("sndbuf_limited", F64, "", "share held by the send buffer, as tcpi_sndbuf_limited counts it"),
)

CAUSES = (
    CAPTURE,
    Column("flow", U32, "", "number of the flow"),
    Column("cause", CAUSE, "", "what held the flow"),
    Column("time_share", F64, "", "share of the flow's time; those of a flow sum to 1, but for causes under 0.5 %"),
    Column("seconds", F64, "s", "the same as a length of time"),
    Column("rate_bps", F64, "bit/s", "rate the flow would have had without it; null where nothing is known"),
    Column("low_bps", F64, "bit/s", "lower end of its 95 % interval"),
    Column("high_bps", F64, "bit/s", "upper end"),
    Column("gain_bps", F64, "bit/s", "what that is more than the observed rate: the cost of the cause"),
    Column("gain_s", F64, "s", "seconds that the same bytes would take less"),
    Column("basis", STR, "", "what the cost rests on"),
    Column("confidence", F64, "", "0 to 1"),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "captures": CAPTURES,
    "labels": LABELS,
    "flows": (
        CAPTURE,
        *FLOWS,
        *OBSERVED[1:],
        Column("family", pl.Enum(list(FAMILIES)), "", "family of its congestion control"),
        Column("family_confidence", F64, "", "0 to 1"),
    ),
    "events": (CAPTURE, *EVENTS),
    "parameters": (CAPTURE, *PARAMETERS),
    "rankings": (CAPTURE, *RANKING),
    "verdicts": (CAPTURE, *VERDICTS),
    "diagnoses": DIAGNOSES,
    "causes": CAUSES,
}
"""Columns of every table of a data set."""

OF_FLOWS = tuple(name for name in TABLES if name not in ("captures", "labels"))
"""Tables that follow from a capture's content and the settings alone."""


@cache
def schema_of(table: str) -> pl.Schema:
    """Dtypes of a table by its name."""
    return pl.Schema({column.name: column.dtype for column in TABLES[table]})
