"""Stalls of all flows as far as events and rounds show them, without the packets.

Every expiry of the retransmission timer, as long as it ran; every tail loss probe; every period without a window; every
other pause longer than the threshold of `tcpfit.diagnosis.stalls`, which has the packets and so tells the silence
itself, and those of other causes as well.
**Validation**: tests/diagnosis/test_stalls.py.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit.diagnosis.causes import Reason
from tcpfit.diagnosis.reactions import Stretches, reactions
from tcpfit.diagnosis.rounds import Rounds, rounds_of
from tcpfit.diagnosis.stalls import APPLICATION, LEAST_S, PROBE, TIMEOUT, ZERO_WINDOW
from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.intervals import Ints
from tcpfit.schema import I64, STR, U32, U64, Column, check_tables

SILENCES = (
    Column("flow", U32, "", "number of the flow"),
    Column("start_ns", I64, "ns", "when it begins: the timer starts, the window closes, all is acknowledged"),
    Column("length_s", pl.Float64(), "s", "how long it lasts; of a timeout or a probe the timer's run"),
    Column("cause", STR, "", "timeout, probe, zero-window, application"),
    Column(
        "detail",
        STR,
        "",
        "of a timeout unanswered (nothing came back any more), ack-lost (an ACK passed here that did not reach the "
        "sender), needless (nothing was lost), back-off; null otherwise",
    ),
    Column("outstanding_bytes", U64, "bytes", "data outstanding, in whole segments"),
    Column("before", U64, "", "frame that it begins with; null where only the rounds show it"),
    Column("after", U64, "", "frame that ends it; null where it is not in the capture, or only the rounds show it"),
)

_FLOW = {"flow": pl.UInt32}

_CAUSE = {"timeout": TIMEOUT, "tail_loss_probe": PROBE, "zero_window": ZERO_WINDOW}


def silences(flows: pl.DataFrame, events: pl.DataFrame, rounds: pl.DataFrame) -> pl.DataFrame:
    """A row per stall, columns as in `SILENCES`, in order of flow and time.

    The tables should have both directions of each connection: the other one tells whether the receiver is still there.
    Raises InvalidParameter for a table that is none of `tcpfit.schema`.
    """
    check_tables(flows=flows, events=events, rounds=rounds)
    return silences_of(Evidence(flows, events, rounds))


def silences_of(evidence: Evidence) -> pl.DataFrame:
    """The same of an evidence."""
    course = rounds_of(evidence)
    stretches = reactions(evidence)
    told = _of_events(evidence, stretches)
    found = [told, _pauses(evidence, course, stretches, told)]
    # one that ends as it begins comes before that which begins then
    return pl.concat(found).sort("flow", "start_ns", "length_s", maintain_order=True).select(c.name for c in SILENCES)


def _of_events(evidence: Evidence, stretches: Stretches) -> pl.DataFrame:
    rows = pl.concat([evidence.of(kind).frame for kind in _CAUSE])
    shut, first = pl.col("kind") == "zero_window", pl.col("segments") == 0
    needless = evidence.of("spurious").frame.select("flow", "frame", needless=True).unique()
    gone = stretches.where(stretches.reason == Reason.UNANSWERED)
    silent = pl.DataFrame({"flow": evidence.flow[gone.owner], "gone_ns": gone.start}, schema_overrides=_FLOW)
    found = (
        rows.join(evidence.flows.select("flow", "smss_bytes", "first_ns"), on="flow")
        .filter(pl.col("time_ns") >= pl.col("first_ns"))
        .join(needless, on=["flow", "frame"], how="left")
        .join(silent, on="flow", how="left")
        .with_columns(length_s=pl.col("value").fill_null(0.0), cause=pl.col("kind").cast(pl.String).replace(_CAUSE))
        .with_columns(
            start_ns=pl.col("time_ns") - pl.when(shut).then(0).otherwise((1e9 * pl.col("length_s")).cast(pl.Int64)),
            outstanding_bytes=(pl.col("flight") * pl.col("smss_bytes")).round().cast(pl.UInt64),
            before=pl.when(shut).then("frame").otherwise("cause_frame"),
            after=pl.when(shut).then("cause_frame").otherwise("frame"),
        )
    )
    detail = (
        pl.when(pl.col("cause") != TIMEOUT)
        .then(None)
        .when(pl.col("start_ns") >= pl.col("gone_ns"))
        .then(pl.lit("unanswered"))
        .when(pl.col("needless"))
        .then(pl.lit("needless"))
        .when(~first)
        .then(pl.lit("back-off"))
    )
    return found.with_columns(detail=detail).select(c.name for c in SILENCES)


def _pauses(evidence: Evidence, course: Rounds, stretches: Stretches, told: pl.DataFrame) -> pl.DataFrame:
    """Pauses of the application, and those that a resend of acknowledged data ends, but for other stalls."""
    lost = stretches.where(stretches.reason == Reason.ACK_LOST)
    inside = stretches.where(stretches.reason == Reason.PAUSE)
    paused = np.flatnonzero(course.idle_ns > 0)
    owner = np.concatenate((course.owner[paused], inside.owner))
    start = np.concatenate((course.until[paused] - course.idle_ns[paused], inside.start))
    end = np.concatenate((course.until[paused], inside.end))
    until = told["start_ns"].to_numpy() + np.rint(1e9 * told["length_s"].to_numpy()).astype(np.int64)
    covered = (np.searchsorted(evidence.flow, told["flow"].to_numpy()), told["start_ns"].to_numpy(), until)
    owner, start, end = _outside((owner, start, end), covered)
    trip, timer = evidence.column("rtt_mean_s"), evidence.column("rto_s")
    least = np.fmin(np.where(trip > 0, 2 * trip, np.nan), np.where(timer > 0, timer, np.nan))
    long = (end - start) / 1e9 > np.fmax(least, LEAST_S)[owner]
    length_s = (end - start)[long] / 1e9  # polars would multiply by the reciprocal, which is another number
    pauses = pl.DataFrame(
        {"owner": owner[long], "start_ns": start[long], "end_ns": end[long], "length_s": length_s},
    )
    resent = pl.DataFrame({"owner": lost.owner, "end_ns": lost.end, "after": lost.frame})
    # two ACKs may pass at one instant, and a pause end with one resend
    return pauses.join(resent.unique(["owner", "end_ns"]), on=["owner", "end_ns"], how="left").select(
        flow=pl.Series(evidence.flow, dtype=pl.UInt32).gather(owner[long]),
        start_ns="start_ns",
        length_s="length_s",
        cause=pl.when(pl.col("after").is_null()).then(pl.lit(APPLICATION)).otherwise(pl.lit(TIMEOUT)),
        detail=pl.when(pl.col("after").is_not_null()).then(pl.lit("ack-lost")),
        outstanding_bytes=pl.lit(0, pl.UInt64),
        before=pl.lit(None, pl.UInt64),
        after=pl.col("after").cast(pl.UInt64),
    )


def _outside(spans: tuple[Ints, Ints, Ints], covers: tuple[Ints, Ints, Ints]) -> tuple[Ints, Ints, Ints]:
    """What is left of spans (owner, start, end) between the covers of the same owner, in order of owner and time."""
    owner = np.concatenate((spans[0], spans[0], covers[0], covers[0]))
    time = np.concatenate((*spans[1:], *covers[1:]))
    kinds = [np.full(len(part[0]), step) for part, step in ((spans, 1), (spans, -1))]
    of_span = np.concatenate((*kinds, np.zeros(2 * len(covers[0]), np.int64)))
    of_cover = np.concatenate(
        (np.zeros(2 * len(spans[0]), np.int64), np.ones_like(covers[0]), -np.ones_like(covers[0]))
    )
    order = np.lexsort((time, owner))
    owner, time = owner[order], time[order]
    free = (np.cumsum(of_span[order]) > 0) & (np.cumsum(of_cover[order]) == 0)
    # from each edge to the next one; pieces that touch are one
    lasts = np.append(time[1:] > time[:-1], False) & free if len(time) else np.zeros(0, np.bool_)
    piece = np.flatnonzero(lasts)
    follows = (time[piece[1:]] == time[piece[:-1] + 1]) & (owner[piece[1:]] == owner[piece[:-1]])
    begins, ends = np.append(True, ~follows)[: len(piece)], np.append(~follows, True)[: len(piece)]
    return owner[piece[begins]], time[piece[begins]], time[piece[ends] + 1]
