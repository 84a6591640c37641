"""Loss rates p, p_indication and q_tilde and the rate of congestion marks p_mark, each per segment sent.

The papers differ in what they call p. `p` counts loss events, the losses within one round trip of the first (Parvez et
al., section II; RFC 5348, 5.2); `p_indication` counts what the congestion window felt, fast recoveries and series of
timeouts (Padhye et al. 1998, section II-B); `q_tilde` counts lost segments (Parvez et al., eq 30). `p_mark` counts
windows with congestion marks, which are no losses (RFC 3168, 6.1.2); no model takes it yet.

**Symbols**: events from `flows.loss_events` and the kinds recovery and timeout, losses from `flows.lost_segments`, all
over `flows.sent_segments` (retransmissions included; at a receiver, arrived plus lost).
**Interval**: exact Poisson on the events (Garwood); for q_tilde the gamma interval of a sum of event sizes (Fay and
Feuer), since the losses of one event are one observation, not many. Both ends are then moved as far as `lost_low` and
`lost_high` allow and by one loss for each segment that the capture missed.
**Departures**: loss events are at least a round trip apart, so they vary less than Poisson events and the interval is
wide.
**Validation**: tests/parameters/test_rates.py (hand-computed; coverage on simulated flows).
"""

from __future__ import annotations

import numpy as np

from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.intervals import Estimate, Floats, poisson_interval, summed, weighted_poisson_interval


def p(evidence: Evidence) -> Estimate:
    """Loss events per segment sent, of every flow."""
    return _rate(evidence, evidence.column("loss_events"))


def p_indication(evidence: Evidence) -> Estimate:
    """Fast recoveries plus series of timeouts, per segment sent."""
    return _rate(evidence, evidence.count(evidence.of("recovery")) + evidence.count(evidence.first_timeouts))


def p_mark(evidence: Evidence) -> Estimate:
    """Windows with congestion marks per segment sent; NaN where marks cannot show."""
    count, sent = evidence.column("mark_events"), evidence.column("sent_segments")
    low, high = poisson_interval(np.nan_to_num(count))
    known = np.isfinite(count) & (sent > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value, low, high = (np.where(known, x / sent, np.nan) for x in (count, low, high))
    return Estimate(value, low, np.minimum(high, 1.0), np.nan_to_num(count).astype(np.int64))


def q_tilde(evidence: Evidence) -> Estimate:
    """Segment losses per segment sent."""
    lost, events = evidence.column("lost_segments"), evidence.of("loss_event")
    sizes = events.floats("segments")
    total = summed(sizes, events.owner, len(evidence))
    squares = summed(sizes**2, events.owner, len(evidence))
    largest = np.zeros(len(evidence))
    np.maximum.at(largest, events.owner, sizes)
    seen = total > 0
    scale = np.where(seen, lost / np.where(seen, total, 1.0), 1.0)
    squares, largest = np.where(seen, squares * scale**2, lost), np.where(seen, np.maximum(largest * scale, 1.0), 1.0)
    low, high = weighted_poisson_interval(lost, squares, largest)
    return _per_segment(evidence, lost, low, high, np.where(seen, evidence.count(events), lost))


def count_range(evidence: Evidence) -> tuple[Floats, Floats]:
    """Fewest and most losses over the losses counted, from `lost_low` and `lost_high`: factors of a loss count."""
    lost = evidence.column("lost_segments")
    some = lost > 0
    base = np.where(some, lost, 1.0)
    low = np.where(some, evidence.column("lost_low") / base, 1.0)
    high = np.where(some, evidence.column("lost_high") / base, 1.0)
    return np.clip(np.nan_to_num(low, nan=1.0), 0.0, 1.0), np.maximum(np.nan_to_num(high, nan=1.0), 1.0)


def _rate(evidence: Evidence, count: Floats) -> Estimate:
    low, high = poisson_interval(count)
    return _per_segment(evidence, count, low, high, count)


def _per_segment(evidence: Evidence, count: Floats, low: Floats, high: Floats, n: Floats) -> Estimate:
    sent = evidence.column("sent_segments")
    missing = np.nan_to_num(evidence.column("missing_segments"))
    fewer, more = count_range(evidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(sent > 0, count / sent, np.nan)
        below = np.maximum(low * fewer - missing, 0.0) / (sent + missing)
        above = np.minimum((high * more + missing) / sent, 1.0)
    unknown = ~np.isfinite(value)
    return Estimate(
        value, np.where(unknown, np.nan, below), np.where(unknown, np.nan, np.maximum(above, value)), n.astype(np.int64)
    )
