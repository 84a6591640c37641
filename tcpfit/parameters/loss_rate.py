"""Loss rates p, p_indication and q_tilde and the rate of congestion marks p_mark, each per segment sent.

The papers differ in what they call p. `p` counts loss events, the losses within one round trip of the first (Parvez et
al., section II; RFC 5348, 5.2); `p_indication` counts what the congestion window felt, fast recoveries, one a window
(RFC 6582, 3.2), and series of timeouts but the SYN's (Padhye et al. 1998, section II-B); `q_tilde` counts lost segments
(Parvez et al., eq 30).
`p_mark` counts windows with congestion marks, which are no losses (RFC 3168, 6.1.2); no model takes it yet.

**Symbols**: events from `flows.loss_events` and the kinds recovery and timeout, losses from `flows.lost_segments`, all
over `flows.sent_segments` (retransmissions included; at a receiver, arrived plus lost).
**Interval**: of the process behind the flow, not of the count in it. The events are a renewal process: each is followed
by a round trip in which no other can begin, so the spread of the cycles between them, not Poisson's law, says how sure
their number is; an event of several losses is one observation (`intervals.renewal_count`). Both ends are then moved as
far as `lost_low` and `lost_high` allow.
**Capture loss**: a share c of the data segments that the capture missed (`missing_segments`) leaves the rate where it
is, losses and segments becoming fewer alike. A loss shows in two packets, the one that was lost and the one that came
instead; it is without one of them with a probability of 2 c and may then be hidden or seen twice. The ends are moved by
that share, and its chance is added to the variance.
**Departures**: neighbours are compared up to the cube root of the number of events: a loss rate that changes more
slowly than that, or in a flow of few events, varies more than the interval says. Regular losses vary less.
**Validation**: tests/parameters/test_rates.py, tests/test_coverage.py, tests/test_invariance.py; the figures are in
docs/coverage.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcpfit.parameters.evidence import Evidence, Rows, once
from tcpfit.parameters.intervals import Estimate, Floats, count_factors, nothing, renewal_count


@once
def p(evidence: Evidence) -> Estimate:
    """Loss events per segment sent, of every flow."""
    events = evidence.of("loss_event")
    return _rate(evidence, evidence.column("loss_events"), events, np.ones(len(events)))


def p_indication(evidence: Evidence) -> Estimate:
    """Fast recoveries plus series of timeouts, per segment sent; NaN where one direction of the flow is missing."""
    felt = evidence.loss_indications
    rate = _rate(evidence, evidence.count(felt), felt, np.ones(len(felt)))
    return rate.where(evidence.two_way, nothing(len(evidence)))


def p_mark(evidence: Evidence) -> Estimate:
    """Windows with congestion marks per segment sent; NaN where marks cannot show."""
    count, sent = evidence.column("mark_events"), evidence.column("sent_segments")
    known = np.isfinite(count) & (sent > 0)
    low, high = count_factors(np.nan_to_num(count))
    with np.errstate(divide="ignore", invalid="ignore"):
        value, base = (np.where(known, x / sent, np.nan) for x in (count, np.fmax(count, 1.0)))
    return Estimate(value, base * low, np.minimum(base * high, 1.0), np.nan_to_num(count).astype(np.int64))


def q_tilde(evidence: Evidence) -> Estimate:
    """Segment losses per segment sent."""
    events = evidence.of("loss_event")
    return _rate(evidence, evidence.column("lost_segments"), events, events.floats("segments"))


def count_range(evidence: Evidence) -> tuple[Floats, Floats]:
    """Fewest and most losses over the losses counted, from `lost_low` and `lost_high`: factors of a loss count."""
    lost = evidence.column("lost_segments")
    some = lost > 0
    base = np.where(some, lost, 1.0)
    low = np.where(some, evidence.column("lost_low") / base, 1.0)
    high = np.where(some, evidence.column("lost_high") / base, 1.0)
    return np.clip(np.nan_to_num(low, nan=1.0), 0.0, 1.0), np.maximum(np.nan_to_num(high, nan=1.0), 1.0)


def capture_loss(evidence: Evidence) -> Floats:
    """Share of the flow's data segments that the capture missed."""
    missing = np.nan_to_num(evidence.column("missing_segments"))
    return missing / np.maximum(evidence.column("data_segments") + missing, 1.0)


TWICE = 1 / 3
"""Copies among a flow's data from which most of it counts as there twice: one copy for every two packets."""

COPIES = 20
"""Copies from which that is no chance."""


def seen_twice(evidence: Evidence) -> NDArray[np.bool_]:
    """Flows most of whose data is in the capture twice, the copies too far apart for a mirror port's: captures of two
    points of the path were put into one file, or the path makes copies of all. What was lost between the two points
    seems to have arrived."""
    sent, resent = evidence.column("data_bytes"), np.nan_to_num(evidence.column("retransmitted_bytes"))
    # copies of the capture's own are no data
    copied = sent - evidence.column("unique_bytes") - resent
    return (np.nan_to_num(evidence.column("duplicated_segments")) >= COPIES) & (copied >= TWICE * sent)


def _rate(evidence: Evidence, count: Floats, events: Rows, sizes: Floats) -> Estimate:
    """The count per segment sent, with the interval of the events, each of a size, that make it up."""
    sent, flows = evidence.column("sent_segments"), len(evidence)
    n = np.bincount(events.owner, minlength=flows)
    n = np.where((n == 0) & (count > 0), count, n)
    cycles, dead = cycles_of(evidence, events)
    known = renewal_count(sizes, cycles, dead, events.owner, flows)
    known = np.where(known > 0, known, count)
    doubtful = 2.0 * capture_loss(evidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        known = np.where(count > 0, known / (1.0 + doubtful * known / n), 0.0)
        value = np.where(sent > 0, count / sent, np.nan)
        base = np.where(count > 0, value, 1.0 / sent)
    low, high = count_factors(known)
    fewer, more = count_range(evidence)
    # a flow in which no loss was seen may have had those that the evidence allows
    high = np.where(count > 0, high * more, high + np.nan_to_num(evidence.column("lost_high")))
    with np.errstate(invalid="ignore"):
        below = base * low * fewer * np.maximum(1.0 - doubtful, 0.0)
        above = np.minimum(base * high * (1.0 + doubtful), 1.0)
    unknown = ~np.isfinite(value)
    return Estimate(
        value, np.where(unknown, np.nan, below), np.where(unknown, np.nan, np.maximum(above, value)), n.astype(np.int64)
    )


def cycles_of(evidence: Evidence, events: Rows) -> tuple[Floats, Floats]:
    """Segments sent from the end of the dead time of the event before to the end of an event's own, and that dead time.

    An event stands where its first byte stands in the stream, a resend that was lost where the original stood. After it
    no other can begin for a round trip, in which the sender sends about what was in flight. What follows the last event
    is added to the first one's cycle.
    """
    owner, left = events.owner, events.floats("left")
    sent, extent = evidence.column("sent_segments"), evidence.column("unique_bytes").copy()
    np.maximum.at(extent, owner, events.floats("right"))
    with np.errstate(divide="ignore", invalid="ignore"):
        place = np.nan_to_num(sent[owner] * left / extent[owner])
    first = np.concatenate((np.ones(1, np.bool_), owner[1:] != owner[:-1]))[: len(owner)]
    last = np.concatenate((first[1:], np.ones(1, np.bool_)))[: len(owner)]
    following = np.where(last, sent[owner], np.roll(place, -1))
    dead = np.clip(following - place, 0.0, np.nan_to_num(events.floats("flight")))
    end = place + dead
    tail = np.zeros(len(evidence))
    tail[owner[last]] = sent[owner[last]] - end[last]
    before = np.where(first, -tail[owner], np.roll(end, 1))
    return end - before, dead
