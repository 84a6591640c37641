"""When a flow was served at the path's rate: a queue stood, more was asked for in vain, or the window grew and the rate
did not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpfit.diagnosis.held_flight import MOSTLY
from tcpfit.parameters.intervals import Floats, summed

if TYPE_CHECKING:
    from tcpfit.diagnosis.rounds import Flags, Rounds

QUEUE = 0.25
"""A queue stands where the round trip is so much above the least, relative to it."""

SUSTAINED = 0.9
"""Of the highest sustained rate: a round that reaches it was served at the path's rate."""

ENOUGH_ACKED = 4.0
"""Segments acknowledged in a round from which its rate means something."""

WAITS = 3.0
"""Times between two ACKs: a queue holds more than what waits for the next data of a sender that goes by a clock."""

PLATEAU = 5
"""Rounds at the highest rate from which it is taken to be the path's."""

MOST = 0.5
"""Of the rounds at the highest rate: a queue stands in so many, or it is not the queue that bounds the rate."""

SCATTER, STEPS = 0.5, 0.05
"""The von Neumann ratio of the round trips from round to round, 1 where each is independent of the one before, and what
they differ by, of what they are above the least. A queue is in the next round what it is in this one, but for what a
round brings or takes: at 59 ends of flows with one the ratio was 0.33 at most, under applications that write by a
clock over paths that delay each segment by chance 0.68 to 0.87."""

PUSH = 0.1
"""More sent in a round than was acknowledged in it, relative to that: more is asked of the path. BBR asks for a quarter
more once in eight round trips (draft-cardwell-iccrg-bbr-congestion-control-00, 4.3.4)."""

CAME = 0.5
"""Of such an excess: if less comes back of it in the next round without a loss, it came in vain."""

WAITED = 0.25
"""Of it: what came in vain made the round trip at least so much longer, or it did not wait in a queue."""

PUSHES = 3
"""Times that more was asked for in vain: once or twice may be chance."""

RARELY = 0.05
"""Of the rounds: so few are faster than a rate that is the path's."""

SAME = 0.03
"""Relative to a rate: rounds so near have the same."""

OFTEN_SAME = 0.3
"""Of the calm rounds: so many have the flow's fast rate where that is the path's."""

SPREAD, SPREAD_SEGMENTS = 0.15, 3.0
"""Of the flight at that rate, and in segments: what outgrows the rate so far waits in a queue."""

RISES, FALLS = 1 / 3, 0.05
"""Of the steps from a round at that rate to the next: a window that grows does so in a third at least, and hardly ever
falls. A clock's flight falls as often as it rises, with the path's jitter. Of flows at their path's rate it rose in
0.48 of the steps or more and fell in 0.04 at most, of clocks in 0.15 to 0.47 and fell as often."""

SELDOM, PROBING = 0.03, 0.25
"""Of the steps from a calm round to the next: a window that only losses reduce falls in fewer than the first, under
BBR, which drains what each of its probes put into the queue, in more than the second. Of flows that filled a queue
alone or together the flight fell in 0.01 of them at most, or under BBR in 0.27 and more; of applications that write by
a clock beside such a flow in 0.04 to 0.17."""

IN_LINE = 0.5
"""Of what a round carries: data that a clock sends are no further from a straight line (standard deviation). Of
applications, also over paths with jitter or beside a queue of others, 0.05 to 0.5; of flows that losses held, 0.6 and
more, but for those behind a policer, whose flight only losses reduce."""

TOLD_ROUNDS = 20
"""Calm rounds from which the rate of a flow says something."""

OWN_CLOCK = 0.5
"""Of the rounds: a sender that begins so many without an ACK has a clock of its own."""

ONE_DELAYED_ACK = 0.05
"""Seconds that a delayed ACK adds to one sample of a round (Linux: 40 ms)."""

MANY_SENT = 16.0
"""Segments of a round in which one delayed ACK does not matter."""


def queued(rounds: Rounds) -> Flags:
    """Rounds in which their flow was served so."""
    served: Flags = _standing(rounds) | _pressed(rounds) | _outgrown(rounds) | _refilled(rounds)
    return served


def _standing(rounds: Rounds) -> Flags:
    """Rounds near the highest rate of a flow for which, at that rate, mostly a queue stood.

    Not where half of the rounds begin later than the ACK before lets them: that rate is a clock's, a pacer's or an
    application's, and a path that delays some segments makes its round trips long. A pacer at its path's rate asks
    for more (`_pressed`). Nor where the round trips scatter: what delays them is no queue; nor where it is others'.
    """
    active = np.maximum((rounds.until - rounds.start) / 1e9 - rounds.idle, 1e-9)
    rate, told, least = rounds.rate, rounds.told, rounds.flow_least_s[rounds.owner]
    with np.errstate(invalid="ignore"):
        excess = rounds.rtt - least
        inflated = (excess >= QUEUE * least) & (rounds.acks >= ENOUGH_ACKED)
        inflated &= (excess * rounds.acks > ONE_DELAYED_ACK) | (rounds.sent >= MANY_SENT)
        # elsewhere than at the sender an ACK seems under way until data answer it
        inflated &= rounds.at_sender[rounds.owner] | (excess * rounds.acks > WAITS * active)
    # a round whose ACKs come in a burst has too high a rate: the highest that some rounds sustain
    known = np.flatnonzero(told)
    order = known[np.lexsort((rate[known], rounds.owner[known]))]
    number = rounds.count(told)
    some = number > 0
    high = np.cumsum(number)[some] - np.minimum(np.maximum(PLATEAU, number[some] // 20), number[some])
    capacity = np.full(len(number), np.inf)
    capacity[some] = rate[order[high]]
    fast = told & (rate >= SUSTAINED * capacity[rounds.owner])
    of_flow = rounds.count(fast)
    path = (of_flow >= PLATEAU) & (rounds.count(fast & inflated) >= MOST * of_flow)
    path &= (rounds.flow_unprompted < OWN_CLOCK) & ~_scattered(rounds) & ~_follows(rounds)
    standing: Flags = fast & path[rounds.owner]
    return standing


def _follows(rounds: Rounds) -> Flags:
    """Flows whose flight follows the round trip, up and down without a loss, while their data keep to a straight
    line: a clock's, beside a queue of others. BBR's falls after each of its probes, in more rounds."""
    follows = np.zeros(len(rounds.flow_count), np.bool_)
    # where only losses tell how long ACKs were under way, flights are taken from that
    for flow in np.flatnonzero(rounds.flow_in_line & (rounds.flow_falls <= PROBING) & ~rounds.flow_estimated):
        rows = slice(rounds.flow_begin[flow], rounds.flow_begin[flow] + rounds.flow_count[flow])
        flight = rounds.flight[rows][rounds.undisturbed[rows]]
        low, usual, high = np.quantile(flight, (0.05, 0.5, 0.95))
        follows[flow] = high - low >= max(SPREAD * usual, SPREAD_SEGMENTS)
    return follows


def flow_falls(rounds: Rounds) -> Floats:
    """Share of the steps from one such round to the next in which the flight falls, 0 where that may be chance;
    NaN where there are too few steps."""
    number = len(rounds.flow_count)
    calm = rounds.undisturbed
    step = np.flatnonzero(calm[:-1] & calm[1:] & (rounds.owner[1:] == rounds.owner[:-1]))
    falls = rounds.flight[step + 1] < rounds.flight[step]
    steps = np.bincount(rounds.owner[step], minlength=number)
    fell = np.bincount(rounds.owner[step[falls]], minlength=number)
    fell[fell < PUSHES] = 0
    return np.where(steps >= TOLD_ROUNDS, fell / np.maximum(steps, 1), np.nan)


def flow_in_line(rounds: Rounds) -> Flags:
    """Flows of that kind, whatever the path."""
    in_line = np.zeros(len(rounds.flow_count), np.bool_)
    with np.errstate(invalid="ignore"):
        falls = rounds.flow_falls >= SELDOM
    for flow in np.flatnonzero(falls).tolist():
        in_line[flow] = straight(rounds, flow)
    return in_line


def straight(rounds: Rounds, flow: int) -> bool:
    """The data of a flow keep to a straight line, but for how they begin: whatever held them up, they caught up."""
    rows = slice(rounds.flow_begin[flow], rounds.flow_begin[flow] + rounds.flow_count[flow])
    acked, time = rounds.acked[rows], (rounds.until[rows] - rounds.start[rows][:1]) / 1e9
    begun = slice(len(acked) // 10, -1)
    moved, time = np.cumsum(acked)[begun], time[begun]
    if len(time) < TOLD_ROUNDS or time[-1] == time[0]:
        return False
    off = moved - np.polyval(np.polyfit(time, moved, 1), time)
    return bool(off.std() <= IN_LINE * np.median(acked))


def _scattered(rounds: Rounds) -> Flags:
    """Flows whose round trips are long by chance, each for itself, as a path makes them that delays each segment
    for another reason than those before it: a radio link, or one of several ways.

    From rounds in which enough was acknowledged; between two with a pause a queue may have drained.
    """
    number = len(rounds.flow_count)
    known = rounds.told & np.isfinite(rounds.rtt)
    pair = np.flatnonzero(known[:-1] & known[1:] & (rounds.owner[1:] == rounds.owner[:-1]) & (rounds.idle[:-1] == 0))
    owner, one, next_ = rounds.owner[pair], rounds.rtt[pair], rounds.rtt[pair + 1]
    pairs = np.maximum(np.bincount(owner, minlength=number), 1)
    mean = summed(one + next_, owner, number) / (2 * pairs)
    spread = summed((one - mean[owner]) ** 2 + (next_ - mean[owner]) ** 2, owner, number)
    step = np.sqrt(summed((next_ - one) ** 2, owner, number) / pairs)
    with np.errstate(invalid="ignore"):
        scattered: Flags = (pairs >= TOLD_ROUNDS) & (step >= STEPS * (mean - rounds.flow_least_s))
        scattered &= pairs * step**2 > SCATTER * spread
    return scattered


def _pressed(rounds: Rounds) -> Flags:
    """Rounds near the rate of a flow that asked for more again and again and did not get it.

    A sender that paces (BBR) keeps the queue short, and only at times sends more than comes back. Where that much
    more does not come in the next round but makes the round trip longer, or overflows the queue, and hardly a round is
    faster, the rate is the path's, however short the queue. A window's rate and a clock's would be higher with more
    sent.
    """
    pressed = np.zeros(len(rounds), np.bool_)
    rate, told = rounds.rate, rounds.told
    calm = (rounds.lost == 0) & (rounds.resent == 0)
    # after a recovery one ACK covers what came long before
    quiet = told & (rounds.resent == 0) & np.append(True, calm[:-1])[: len(rounds)]
    quiet &= (rounds.idle == 0) & (rounds.full == 0)
    steady = quiet & calm
    # the rate that came of it shows in the next round like this, which follows the recovery where some of it was lost
    followers = np.append(np.flatnonzero(steady), len(rounds))
    next_ = followers[np.searchsorted(followers, np.arange(len(rounds)), "right")]
    push = np.flatnonzero(quiet & (next_ < len(rounds)))
    push = push[rounds.owner[next_[push]] == rounds.owner[push]]
    if not len(push):
        return pressed
    lasted = (rounds.until - rounds.start)[push] / 1e9
    offered = rounds.sent[push] * (rounds.smss * rounds.flow_full_size[rounds.owner])[push]
    excess = offered / rounds.acked[push] - 1
    gain = rate[next_[push]] / rate[push] - 1
    after = np.minimum(push + 2, len(rounds) - 1)
    later = np.where(rounds.owner[after] == rounds.owner[push], rounds.rtt[after], np.nan)
    longer = np.fmax(rounds.rtt[push + 1], later)
    with np.errstate(invalid="ignore"):
        waited = longer - rounds.rtt[push] >= WAITED * excess * lasted
    vain = push[(excess >= PUSH) & (gain < CAME * excess) & waited]
    for flow in np.flatnonzero(np.bincount(rounds.owner[vain], minlength=len(rounds.flow_count)) >= PUSHES):
        rows = slice(rounds.flow_begin[flow], rounds.flow_begin[flow] + rounds.flow_count[flow])
        own = vain[rounds.owner[vain] == flow]
        # a loss makes the rate of its round less certain
        lossless = own[calm[own] & (next_[own] == own + 1)]
        level = np.median(rate[lossless if len(lossless) >= PUSHES else own])
        fast = told[rows] & (rate[rows] >= SUSTAINED * level)
        faster = steady[rows] & (rate[rows] * SUSTAINED > level)
        if fast.sum() >= MOSTLY * told[rows].sum() and faster.sum() <= RARELY * steady[rows].sum():
            pressed[rows] = fast
    return pressed


def _outgrown(rounds: Rounds) -> Flags:
    """Rounds near the fast rate of a flow that had the same rate again and again while its flight grew.

    Below the path's rate more in flight is more rate. A clock's flight grows as well where the round trip does, but
    it falls as often.
    """
    outgrown = np.zeros(len(rounds), np.bool_)
    rate, told = rounds.rate, rounds.told
    steady = told & rounds.calm & (rounds.idle == 0) & (rounds.full == 0) & ~rounds.own_clock
    for flow in np.flatnonzero(rounds.count(steady) >= TOLD_ROUNDS):
        rows = slice(rounds.flow_begin[flow], rounds.flow_begin[flow] + rounds.flow_count[flow])
        own, flight = rate[rows], rounds.flight[rows]
        fast = steady[rows] & (own >= SUSTAINED * np.quantile(own[steady[rows]], SUSTAINED))
        level = np.median(own[fast])
        same = steady[rows] & (np.abs(own - level) <= SAME * level) & np.isfinite(flight)
        if same.sum() < max(OFTEN_SAME * steady[rows].sum(), PLATEAU):
            continue
        low, usual, high = np.quantile(flight[same], (0.05, 0.5, 0.95))
        steps = np.diff(flight)[same[1:] & same[:-1]]
        grows = len(steps) >= PLATEAU and (steps > 0).mean() >= RISES and (steps < 0).mean() <= FALLS
        if grows and high - low >= max(SPREAD * usual, SPREAD_SEGMENTS):
            outgrown[rows] = told[rows] & (own >= (1 - SAME) * level)
    return outgrown


def _refilled(rounds: Rounds) -> Flags:
    """Rounds in which the flight grew by more than a quarter at the same rate, up to a loss, as between most losses.

    Such a flow fills a queue again and again. Beside others that do the rate is its share of the path's, which may be
    another one each time. What a clock sends keeps to a straight line; and beside a queue of others its flight falls
    as well.
    """
    refilled = np.zeros(len(rounds), np.bool_)
    rate, told = rounds.rate, rounds.told
    steady = told & rounds.undisturbed & (rounds.full == 0) & ~rounds.own_clock
    with np.errstate(invalid="ignore"):
        grows = (rounds.flow_falls < SELDOM) & (rounds.count(steady) >= TOLD_ROUNDS)
    for flow in np.flatnonzero(grows).tolist():
        rows = slice(rounds.flow_begin[flow], rounds.flow_begin[flow] + rounds.flow_count[flow])
        own, flight, lost = rate[rows], rounds.flight[rows], rounds.lost[rows] + rounds.resent[rows] > 0
        edges = np.flatnonzero(np.diff(steady[rows], prepend=False, append=False))
        runs = [(first, past) for first, past in edges.reshape(-1, 2).tolist() if past < len(own) and lost[past]]
        runs = [(first, past) for first, past in runs if past - first >= PLATEAU]
        found = np.zeros(len(own), np.bool_)
        filled = 0
        for first, past in runs:
            level = _level_from(own[first:past]) + first
            if past - level >= PLATEAU and flight[past - 1] >= (1 + QUEUE) * flight[level]:
                filled += 1
                found[level:past] = True
        if filled >= max(PUSHES, MOSTLY * len(runs)) and not straight(rounds, flow):
            refilled[rows] = found
    return refilled


def _level_from(rate: Floats) -> int:
    """The first of the rates from which on all are within a tenth of the largest of them."""
    backwards = rate[::-1]
    low, high = np.minimum.accumulate(backwards), np.maximum.accumulate(backwards)
    level = low >= SUSTAINED * high
    return len(rate) - int(np.append(level, False).argmin())
