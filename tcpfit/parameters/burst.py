"""Bursts of loss: m, the losses per loss event, and q, the loss probability of an event's other segments.

A loss event covers the W segments from its first loss (Parvez et al., section II); each of the other W - 1 is lost
with probability q, so that E[m] = 1 + (W - 1) q (eq 5).

**Estimates of q**: *direct*, the one named `q`: sum of (m - 1) over sum of (W - 1) over the loss events. W - 1 is
the event's `flight`: what was outstanding when its first loss was sent, that one not included. *Eq 30*:
(q_tilde/p - 1)/(W - 1) with W from eq 14 at q = q_tilde; offered as `q_eq30`. The paper's Table IV is computed in the
direct way (q = (m - 1)/(W - 1), text of section VI); it is the maximum-likelihood estimate where each of an event's
other segments is lost with the same probability (binomial counts with sizes W - 1). The direct one is chosen because it
needs no model of the window:
eq 14 holds for a sender that grows by one segment a round and that loss alone limits.
**Domain**: q is held in [0, 1]; an event whose first loss was the only segment in flight tells nothing about q.
**Validation**: tests/parameters/test_rates.py; on the Bernoulli flows of ns-2 at 1 and 2 % q is 0.96 to 1.00 times the
loss rate, as it must be.
**Reference**: Parvez, Mahanti, Williamson (2010), doi:10.1109/TNET.2009.2030889.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.intervals import (
    Estimate,
    Floats,
    alike,
    binomial_interval,
    count_factors,
    mean,
    numbers,
    ratio,
    summed,
)
from tcpfit.parameters.loss_rate import count_range


def m(evidence: Evidence) -> Estimate:
    """Losses per loss event; of events that all had one, up to what as many could hide (Poisson), of events that all
    had as many, another one may have one loss, or one more than they."""
    events = evidence.of("loss_event")
    drawn = mean(events.floats("segments"), events.owner, len(evidence))
    drawn = alike(drawn, drawn.value - 1.0, np.ones(len(evidence)))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = evidence.column("lost_segments") / evidence.column("loss_events")
    value = np.where(np.isfinite(value), value, drawn.value)
    fewer, more = count_range(evidence)
    shift = value - drawn.value
    n = drawn.n.astype(np.float64)
    with np.errstate(divide="ignore"):
        unseen = np.where(
            evidence.column("lost_segments") <= evidence.column("loss_events"), count_factors(0 * n)[1] / n, 0
        )
    high = np.where(drawn.n > 1, np.maximum(drawn.high + shift, value + unseen), np.nan)
    estimate = Estimate(value, drawn.low + shift, high, drawn.n).widened(fewer, more)
    low = np.where(drawn.n > 1, np.fmax(estimate.low, np.minimum(1.0, value)), np.nan)
    return Estimate(value, low, estimate.high, estimate.n)


def q(evidence: Evidence) -> Estimate:
    """Loss probability of the other segments of a loss event, the direct estimate; exact (binomial) where it is 0.

    Where all events had as many others lost, another one may have none, or one more than they.
    """
    events = evidence.of("loss_event")
    events = events.where((events.floats("flight") >= 1.0) & np.isfinite(events.floats("segments")))
    others = events.floats("flight")
    drawn = ratio(np.minimum(events.floats("segments") - 1.0, others), others, events.owner, len(evidence))
    with np.errstate(divide="ignore", invalid="ignore"):
        one = drawn.n / summed(others, events.owner, len(evidence))
    drawn = alike(drawn, drawn.value, one)
    none = (drawn.value == 0) & (drawn.n > 1)
    drawn = replace(
        drawn,
        high=np.where(none, binomial_interval(drawn.value, summed(others, events.owner, len(evidence)))[1], drawn.high),
    )
    fewer, more = count_range(evidence)
    wide = drawn.widened(fewer, more)
    return Estimate(np.clip(drawn.value, 0, 1), np.clip(wide.low, 0, 1), np.clip(wide.high, 0, 1), drawn.n)


def window_eq14(p: Floats, q: Floats) -> Floats:
    """Window at which a loss event begins, in segments (Parvez et al., eq 14 as printed).

    Raises InvalidParameter for what is no number.
    """
    # W = (10pq - 5p + sqrt(p (24 + 32q + 49p))) / (p (3 + 4q))                                              (14)
    p, q = numbers("p", p), numbers("q", q)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((10 * p * q - 5 * p + np.sqrt(p * (24 + 32 * q + 49 * p))) / (p * (3 + 4 * q)))


def q_eq30(p: Floats, q_tilde: Floats) -> Floats:
    """Loss probability of an event's other segments from the two loss rates (Parvez et al., eq 30), held in [0, 1].

    NaN where p is 0; 0 where every event has one loss. Raises InvalidParameter for what is no number.
    """
    p, q_tilde = numbers("p", p), numbers("q_tilde", q_tilde)
    # q = (q_tilde/p - 1) / (W - 1)                                                                            (30)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (q_tilde / p - 1) / (window_eq14(p, q_tilde) - 1)
    return np.where(p > 0, np.clip(value, 0.0, 1.0), np.nan)
