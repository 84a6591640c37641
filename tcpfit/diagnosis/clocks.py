"""Flows whose ACKs come before the data they acknowledge, so that nothing tells what waited for what.

The directions were captured by different clocks, or are out of order in the file. What then seems outstanding, idle or
late is an accident of the clocks.
**Rule**: the handshake is there, and its SYN-ACK comes before its SYN or its ACK before its SYN-ACK, so that it has no
round trip and tells no place; or, where the clocks differ by less, in a twentieth of the rounds without a loss, and in
three and more, ACKs of new data came and none of them gave a round trip: their data came later.
**What it cannot tell**: clocks that differ by less than the way from the capture point and back: they move the place
where the capture seems to have been taken. Without the handshake round trips may be missing for other reasons.
**Validation**: tests/diagnosis/test_ahead.py.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit.diagnosis.rounds import Flags, rounds_of
from tcpfit.parameters.evidence import Evidence

HANDSHAKE = 7
"""Bits of a flow's completeness: SYN, SYN-ACK and ACK."""

TOLD = 10
"""Segments from which the place of a capture is told by data too."""

SHARE, ROUNDS = 0.05, 3
"""Of the calm rounds, and how many at least, without a round trip. No flow of 150 captures at one clock had one."""


def acks_ahead(evidence: Evidence) -> Flags:
    """The flows whose ACKs come before their data."""
    whole = (evidence.flows["completeness"].to_numpy() & HANDSHAKE) == HANDSHAKE
    nowhere = (evidence.flows["vantage"].cast(pl.String) == "unknown").fill_null(True).to_numpy()
    nowhere &= ~np.isfinite(evidence.column("handshake_rtt_s")) & (evidence.column("data_segments") >= TOLD)
    course = rounds_of(evidence)
    calm = course.calm & (course.acked > 0) & (course.acks > 0)
    number, without = (
        np.bincount(course.owner[which], minlength=len(evidence)) for which in (calm, calm & ~np.isfinite(course.rtt))
    )
    ahead: Flags = whole & (nowhere | (without >= np.maximum(SHARE * number, ROUNDS)))
    return ahead
