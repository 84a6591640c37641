"""Which flows heed losses: a flow that is as fast after its recoveries as before them is not held by what losses left.

**Rule**: at each fast recovery from a real loss the rate of the first round that begins after it is compared with that
of the round before the one in which it began, both as sent. Where the window is what holds the flow a loss makes that
ratio 0.5 (RFC 5681) to 0.7 (RFC 9438). BBR keeps its rate (draft-cardwell-iccrg-bbr-congestion-control-00, 4.3.4), and
so does a flow whose path, receiver or application is slower than what the loss left of its window. A flow is heedless
if two thirds of its recoveries, of five and more, kept nine tenths of the rate; or four in ten, where the flow's data
keep to a straight line, for writes that come about once in a round trip make rounds uneven. The recoveries themselves
cost it nothing either if as many had nine tenths of that rate in them, or if the flow's data keep to a straight line:
what they held up went before the next round was over. Not so where a full window waits for the resend.
**What it cannot tell**: why the flow keeps its rate; with fewer recoveries, whether it does.
**Validation**: tests/diagnosis/test_heed.py; docs/diagnosis.md has the figures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcpfit.diagnosis.rounds import Flags, Rounds
from tcpfit.parameters.intervals import Floats, Ints

KEPT = 0.9
"""Of the rate before: a recovery that leaves so much has not reduced it."""

MOSTLY = 2 / 3
"""Of the recoveries: BBR's own probing makes a round in five slower."""

SOME = 0.4
"""Of them, where the data keep to a straight line: of 162 captures of flows that losses or policers held four do, and
at most 0.24 of their recoveries kept the rate; of applications under BBR 0.48 and more."""

ENOUGH = 5
"""Recoveries from which that is no chance."""


@dataclass(frozen=True)
class Heed:
    """A value a flow: whether it keeps its rate after recoveries, and whether it keeps it in them as well."""

    heedless: Flags
    unbroken: Flags


def heed(rounds: Rounds, owner: Ints, start: Ints, end: Ints) -> Heed:
    """How flows take losses, from their recoveries' flows and times."""
    number = len(rounds.flow_count)
    told, kept, kept_in = (np.zeros(number, np.int64) for _ in range(3))
    active = np.maximum((rounds.until - rounds.start) / 1e9 - rounds.idle, 1e-9)
    for flow in np.flatnonzero(np.bincount(owner, minlength=number) >= ENOUGH).tolist():
        first, past = np.searchsorted(owner, (flow, flow + 1)).tolist()
        rows = slice(rounds.flow_begin[flow], rounds.flow_begin[flow] + rounds.flow_count[flow])
        began = np.searchsorted(rounds.start[rows], start[first:past], "right") - 1
        after = np.searchsorted(rounds.start[rows], end[first:past])
        compared = (began >= 1) & (after < rounds.flow_count[flow])
        began, after = began[compared], np.maximum(after, began + 1)[compared]
        rate: Floats = rounds.sent[rows] / active[rows]
        sent, spent = (np.append(0.0, np.cumsum(values[rows])) for values in (rounds.sent, active))
        least = KEPT * rate[began - 1]
        told[flow] = len(began)
        kept[flow] = (rate[np.minimum(after, len(rate) - 1)] >= least).sum()
        kept_in[flow] = (sent[after] - sent[began] >= least * (spent[after] - spent[began])).sum()
    heedless: Flags = (told >= ENOUGH) & (kept >= MOSTLY * told)
    for flow in np.flatnonzero((told >= ENOUGH) & (kept >= SOME * told) & ~heedless).tolist():
        heedless[flow] = rounds.straight(flow)
    unbroken: Flags = heedless & (kept_in >= MOSTLY * told)
    for flow in np.flatnonzero(heedless & ~unbroken).tolist():
        unbroken[flow] = rounds.straight(flow)
    return Heed(heedless, unbroken)
