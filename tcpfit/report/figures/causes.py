"""What an event looks like: each cause has a colour and a shape of its own, the same in every figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tcpfit.report.figures import drawing
from tcpfit.report.figures.kind import start_ns
from tcpfit.schema import REASONS

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

SALTIRE = "M-1,-1L1,1M1,-1L-1,1"
RING = "M0,-1.25A1.25,1.25,0,1,1,0,1.25A1.25,1.25,0,1,1,0,-1.25"
HOURGLASS = "M-1,-1H1L-1,1H1Z"
STAR = "M0,-1.2L.35,-.4L1.15,-.37L.5,.15L.7,1L0,.5L-.7,1L-.5,.15L-1.15,-.37L-.35,-.4Z"
ARROW_DOWN = "M-.25,-1.1H.25V.2H.9L0,1.2L-.9,.2H-.25Z"
TWO = "M-1,-1H.5V.5H-1ZM-.5,.5V1H1V-.5H.5"


@dataclass(frozen=True)
class Cause:
    """A cause of marks: its name, colour and shape, and the kind and reasons of events that it stands for (no reason:
    all that are left)."""

    name: str
    colour: str
    shape: str
    kind: str
    reasons: tuple[str, ...] = ()


CAUSES = (
    Cause("lost", drawing.RED, SALTIRE, "loss"),
    Cause(
        "fast retransmit",
        drawing.BLUE,
        "triangle-up",
        "retransmission",
        ("fast-dupthresh", "fast-rack", "early-retransmit"),
    ),
    Cause(
        "resent in recovery",
        drawing.TEAL,
        "triangle-right",
        "retransmission",
        ("partial-ack", "recovery", "lost-retransmission"),
    ),
    Cause("timeout", drawing.ORANGE, HOURGLASS, "retransmission", ("rto",)),
    Cause("resent after timeout", drawing.BROWN, "triangle-left", "retransmission", ("rto-recovery",)),
    Cause("tail loss probe", drawing.MAGENTA, STAR, "retransmission", ("tlp",)),
    Cause("resent, already there", drawing.OLIVE, "triangle-down", "retransmission", ("unneeded",)),
    Cause("resent, cause unknown", drawing.GREY, "square", "retransmission"),
    Cause("needless resend", drawing.INDIGO, RING, "spurious"),
    Cause("late segment", drawing.GREEN, "diamond", "reordering"),
    Cause("copy", drawing.GREY, TWO, "duplicate"),
    Cause("zero window", drawing.MAGENTA, "square", "zero_window"),
    Cause("probe", drawing.BROWN, "cross", "probe"),
    Cause("ECN mark", drawing.PURPLE, ARROW_DOWN, "ecn_mark"),
    Cause("ECN response", drawing.PURPLE, "cross", "ecn_response"),
)
"""Causes in the order of the legend; no two share both colour and shape, nor a shape within what is often seen
together."""


def marks(analysis: Analysis, flow: int) -> pl.DataFrame:
    """A row an event of the flow that `CAUSES` has: t (s), left, right, frame, shown_by, cause, reason."""
    named = pl.lit(None, pl.String)
    kind, reason = pl.col("kind").cast(pl.String), pl.col("reason").cast(pl.String)
    for cause in reversed(CAUSES):
        fits = kind == cause.kind
        if cause.reasons:
            fits &= reason.is_in(cause.reasons)
        named = pl.when(fits).then(pl.lit(cause.name)).otherwise(named)
    events = analysis.events.filter(pl.col("flow") == flow).sort("time_ns", maintain_order=True)
    return events.select(
        t=(pl.col("time_ns") - start_ns(analysis)) / 1e9,
        left="left",
        right="right",
        frame="frame",
        shown_by="cause_frame",
        cause=named,
        reason=reason,
    ).filter(pl.col("cause").is_not_null())


def shown(table: pl.DataFrame) -> list[Cause]:
    """Causes that a table of marks has, in their order."""
    names = set(table["cause"].unique())
    return [cause for cause in CAUSES if cause.name in names]


def reasons(table: pl.DataFrame) -> str:
    """The rule behind a mark in words, as a Vega expression over its `reason`."""
    there = sorted(set(table["reason"].unique()))
    return drawing.choose("datum.reason", {name: REASONS[name] for name in there})
