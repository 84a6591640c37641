"""Events as comments on packets: a sentence an event, on the packet that the event is about.

An event whose packet is not in the capture, a loss before the capture point, stands on the packet that shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import polars as pl

from tcpfit.report import words
from tcpfit.report.evidence import SEEN_LATE
from tcpfit.report.listing import COUNTS, VALUES
from tcpfit.schema import REASONS

MOST = 16
"""Comments on one packet; more are counted in one sentence."""

CAUSES = {
    "retransmission": "of frame {}",
    "loss": "shown by frame {}",
    "loss_event": "shown by frame {}",
    "recovery": "begins with the resend of frame {}",
    "timeout": "of frame {}",
    "tail_loss_probe": "of frame {}",
    "spurious": "shown by frame {}",
    "reordering": "overtaken by frame {}",
    "reorder_event": "overtaken by frame {}",
    "duplicate": "of frame {}",
    "zero_window": "until frame {}",
    "ecn_mark": "of frame {}",
    "ecn_response": "to frame {}",
}
"""What `cause_frame` is of each kind."""


def comments(events: pl.DataFrame) -> Iterator[tuple[int, list[str]]]:
    """Frames in their order, each with its comments; of an event without any frame there is none."""
    at = pl.coalesce("frame", "cause_frame")
    rows = events.with_columns(at.alias("at")).drop_nulls("at").sort(["at", "time_ns"], maintain_order=True)
    for frame, some in groupby(rows.iter_rows(named=True), key=lambda row: row["at"]):
        texts: list[str] = []
        more = 0
        for event in some:
            if len(texts) < MOST:
                texts.append(sentence(event))
            else:
                more += 1
        yield frame, [*texts, f"{words.plural(more, 'more event')}; see tcpfit events"] if more else texts


def sentence(event: dict[str, Any]) -> str:
    """An event in words: its kind, the rule that says so, the frames that prove it, its numbers."""
    kind, frame, cause = event["kind"], event["frame"], event["cause_frame"]
    parts = [f"{kind.replace('_', ' ')}: {REASONS[event['reason']]}"]
    if frame is None:
        parts.append(f"bytes {event['left']} to {event['right']}, not in the capture, shown by this frame")
    elif cause is not None and kind in CAUSES:
        heard = kind in ("reordering", "reorder_event") and event["reason"] not in SEEN_LATE
        parts.append((CAUSES["spurious"] if heard else CAUSES[kind]).format(cause))
    if kind in VALUES and event["value"] is not None:
        parts.append(VALUES[kind].format(words.seconds(event["value"])))
    if kind in COUNTS and COUNTS[kind]:
        parts.append(COUNTS[kind].format(event["segments"]))
    if event["timeout_follows"]:
        parts.append("ended by a timeout")
    parts += [f"flow {event['flow']}", f"confidence {event['confidence']:.2g}"]
    return ", ".join(parts)
