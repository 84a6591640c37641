"""Reordering: d, a_h and r of Sharma et al.

**Definitions**: an event is what one cause on the path delayed together (kind `reorder_event`). `d` is the mean number
of segments it delayed; `a_h` the mean time between the events' beginnings, in seconds; `r` the round trips until the
late segments' ACKs reach the sender, at least 1: the late time of an event's last segment over the mean round-trip
time, rounded up.
**Interval**: bootstrap over the events, over the gaps between them.
**Validation**: tests/parameters/test_windows.py.
**Reference**: Sharma et al., section III and eq 10 (`r` there is a whole number of rounds; the mean need not be).
"""

from __future__ import annotations

import numpy as np

from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.intervals import Estimate, Floats, mean


def d(evidence: Evidence) -> Estimate:
    """Segments that one reordering event delays."""
    events = evidence.of("reorder_event")
    return mean(events.floats("segments"), events.owner, evidence.flow)


def a_h(evidence: Evidence) -> Estimate:
    """Mean time between reordering events, in seconds; NaN with fewer than two."""
    events = evidence.of("reorder_event")
    time = events.frame["time_ns"].to_numpy()
    same = events.owner[1:] == events.owner[:-1]
    return mean((np.diff(time)[same]) / 1e9, events.owner[1:][same], evidence.flow)


def r(evidence: Evidence, rtt: Floats) -> Estimate:
    """Round trips until the ACKs of the late segments arrive, given the flows' mean round-trip times in seconds."""
    events = evidence.of("reorder_event")
    late = events.floats("value")
    with np.errstate(divide="ignore", invalid="ignore"):
        rounds = np.maximum(np.ceil(late / rtt[events.owner]), 1.0)
    return mean(rounds, events.owner, evidence.flow)
