"""Timeouts: rto, the mean first timeout of a series (T0), and p_to, the share of loss events that ended in one.

**Definitions**: `rto` is the mean over the timeouts with back-off 0 of how long their timers would have run undoubled
(Padhye et al. 1998 call it T0), the SYN's left out: `value`, halved for each of the `doublings` that expiries of a
series before have left, as no ACK since gave a sample of the round trip (RFC 6298, 5, the note on 5.5; Karn). A flow
without a timeout has the mean of the replayed timer instead (`flows.rto_s`, RFC 6298), n = 0 and no interval. `p_to`
counts the loss events of which `timeout_follows` is known.
**Interval**: Student's over the series; for the share that of Jeffreys for as many independent loss events as tell as
much, since a recovery that fails makes two of them, the first loss and the lost resend, which share a timeout.
**Validation**: tests/parameters/test_rates.py.
"""

from __future__ import annotations

import numpy as np

from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.intervals import Estimate, exact, mean, share_interval, summed


def rto(evidence: Evidence) -> Estimate:
    """Mean first timeout of a series, undoubled, in seconds; the replayed timer where none was seen."""
    first = evidence.first_timeouts
    undoubled = first.floats("value") / np.exp2(np.nan_to_num(first.floats("doublings")))
    seen = mean(undoubled, first.owner, len(evidence))
    replayed = exact(evidence.column("rto_s"), np.zeros(len(evidence), np.int64))
    return seen.where(seen.n >= 1, replayed)


def p_to(evidence: Evidence) -> Estimate:
    """Share of loss events that ended in a timeout."""
    events = evidence.of("loss_event")
    followed = events.floats("timeout_follows")
    known = np.isfinite(followed)
    trials = np.bincount(events.owner[known], minlength=len(evidence)).astype(np.float64)
    hits = summed(followed[known], events.owner[known], len(evidence))
    low, high = share_interval(followed[known], events.owner[known], len(evidence))
    with np.errstate(invalid="ignore"):
        return Estimate(np.where(trials > 0, hits / np.maximum(trials, 1), np.nan), low, high, trials.astype(np.int64))
