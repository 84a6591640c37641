"""The rounds of all flows as stretches of time, and what each shows of the path and of the application."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcpfit.parameters.evidence import Evidence, once
from tcpfit.parameters.intervals import Floats, Ints, summed
from tcpfit.parameters.nearest import latest
from tcpfit.ranking.steady import idle_within

Flags = NDArray[np.bool_]

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
"""Of such an excess: if less comes back of it in the next round, it came in vain."""

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

FLAT_ROUNDS = 30
"""Rounds without growth that show a send buffer (T-RAT: 30 flights)."""

PAUSE = 0.1
"""Of a round trip: a longer time with nothing outstanding is no delay of the host's, where it comes again and again."""

OFTEN = 1 / 3
"""Of the rounds: pauses after so many are the application's; rarer ones only if they last a round trip (T-RAT)."""

TURNS = 5
"""Rounds in a row that the other end's data end: fewer may be chance, or the opening of a connection."""

NAGLE = 3
"""Rounds whose ACK a short segment waits for: fewer may be chance."""

AT_ONCE = 0.75
"""Of the rounds whose ACK a short segment may have waited for: an application's own clock meets it in fewer."""

TOP = 0.9
"""Of the 95th percentile of the flight: a flight that is held is so high; it may pass that while the buffer fills."""

MOSTLY = 0.75
"""Of the rounds without a loss: a flight that is held is in so many the same."""

REPLACED = 0.85
"""Of the flight: each ACK lets as much go as it covers, so a flight that is held goes once in a round trip. Of flows
that a send buffer held 0.92 and more went, of applications that write several times in a round trip 0.73 at most."""

HOST_S = 1e-3
"""Seconds that a host may take to answer an ACK with data."""

SLACK = 0.02
"""Of the least round trip: the same."""

PHASE = 0.1
"""Of the time between two ACKs: data that an ACK lets go follow it closer than that, or have their own times. Of flows
that a send buffer held the median was 0.02 at most, behind a shaper 0.25."""

SCHEDULED_S = 2e-4
"""Seconds that a host may take to answer an ACK however close ACKs come."""

ELSEWHERE = 1.5
"""So many times as long elsewhere than at the sender, where its delays are told by the round trips."""

FILLED = 0.6
"""Of the SMSS: a flow's segments are small if they carry less on average."""

OWN_CLOCK = 0.5
"""Of the rounds: a sender that begins so many without an ACK has a clock of its own."""

ACK_CLOCK = 0.25
"""Of the rounds: a sender that begins no more without an ACK sends when ACKs let it."""

WHOLE = 0.95
"""Of a round: a window that was full for longer was full for all of it, but for the host's own delays."""

BEYOND = 1.25
"""Of the window: a sender that moves so much more in a round trip does not keep to the window."""

TIMERS = 8.0
"""Retransmission timers: data outstanding for so long without one that expired was not outstanding."""

ONE_DELAYED_ACK = 0.05
"""Seconds that a delayed ACK adds to one sample of a round (Linux: 40 ms)."""

MANY_SENT = 16.0
"""Segments of a round in which one delayed ACK does not matter."""


class Rounds:
    """The rounds of the flows of an evidence, flow by flow.

    Arrays have a value a round, those that begin with `flow_` a value a flow; `owner` is the position of a round's
    flow. A round lasts from `start` to `until`, ns: a flow's rounds tile its time from `flow_first` to `flow_last`.
    """

    def __init__(self, evidence: Evidence) -> None:
        flows, rows = evidence.flows, evidence.rounds
        self.owner = rows.owner
        self.flow_count: Ints = np.bincount(self.owner, minlength=len(evidence))
        ends: Ints = np.cumsum(self.flow_count)
        self.flow_begin: Ints = ends - self.flow_count
        first, last = flows["first_ns"].to_numpy(), flows["last_ns"].to_numpy().copy()
        # the first round begins the flow's time, whatever the capture missed; none begins before the one before it
        begins = rows.frame["start_ns"].to_numpy().copy()
        opening, closing = self.flow_begin[self.flow_count > 0], ends[self.flow_count > 0] - 1
        begins[opening] = first[self.flow_count > 0]
        order = pl.DataFrame({"owner": self.owner, "start": begins})
        self.start: Ints = order.select(pl.col("start").cum_max().over("owner"))["start"].to_numpy()
        idle, end = np.nan_to_num(rows.floats("idle_s")), rows.frame["end_ns"].to_numpy()
        # all was acknowledged: closing the connection is none of the flow's time
        over = closing[idle[closing] > 0]
        last[self.owner[over]] = np.minimum(last[self.owner[over]], np.maximum(end[over], self.start[over] + 1))
        self.flow_first, self.flow_last = first, last
        self.until: Ints = np.append(self.start[1:], 0)
        self.until[closing] = last[self.owner[closing]]
        # a pause of the last round lies before the data that end it, not after
        self.idle_before: Floats = np.zeros(len(self.owner))
        self.idle_before[closing] = idle_within(evidence)[closing]
        idle[closing] = 0.0
        full = np.nan_to_num(rows.floats("window_full_s"))
        full[closing] = 0.0  # nothing was left to send
        self.idle = idle
        self.position: Ints = np.arange(len(self.owner)) - self.flow_begin[self.owner]
        self.flight = rows.floats("flight")
        self.rtt = rows.floats("rtt_s")
        self.acked = rows.floats("acked_bytes")
        self.acks = rows.floats("acks")
        self.sent = rows.floats("sent_segments")
        self.lost = rows.floats("lost_segments")
        self.resent = rows.floats("resent_segments")
        phase = rows.frame["phase"].cast(pl.String)
        self.open: Flags = (phase == "open").fill_null(False).to_numpy()
        self.after_timeout: Flags = (phase == "loss").fill_null(False).to_numpy()
        self._at_sender: Flags = (flows["vantage"].cast(pl.String) == "sender").fill_null(False).to_numpy()
        self.flow_opposite = _opposites(flows["connection"].to_numpy())
        self.flow_least_s = evidence.column("rtt_min_s")
        self._away: Floats = np.nan_to_num(evidence.column("vantage_fraction"))
        smss = evidence.column("smss_bytes")
        self.flow_full_size = evidence.full_size
        self.flow_smss: Floats = np.maximum(np.where(np.isfinite(smss), smss, 1.0), 1.0)
        self._window: Floats = (evidence.column("rwnd_max") * evidence.column("smss_bytes"))[self.owner]
        self.full: Floats = np.where(self._not_held(full), 0.0, full)
        mean = evidence.column("rtt_mean_s")
        measured = np.isfinite(self.rtt)
        self.end = end
        rto = evidence.column("rto_s")
        self._timer_ns: Floats = 1e9 * np.maximum(np.where(np.isfinite(rto), rto, np.inf), 1.0)[self.owner]
        self.trip: Floats = np.where(measured, self.rtt, np.where(np.isfinite(mean), mean, 1.0)[self.owner])

    def _not_held(self, full: Floats) -> Flags:
        """Rounds in which a window without room for another segment did not hold the sender.

        With less than half of the window outstanding it may send what it has, if the window is below two segments
        (RFC 9293, 3.8.6.2.1). A sender that moves most of its data faster than a window a round trip, while that seems
        full, does not keep to it.
        """
        lasted = np.maximum((self.until - self.start) / 1e9, 1e-9)
        with np.errstate(invalid="ignore", divide="ignore"):
            below = (self.acked < self._window / 2) & (self._window < 2 * self.smss)
            moved = self.acked / np.maximum(lasted / self.flow_least_s[self.owner], 1.0)
        seems = np.where(full > WHOLE * lasted, self.acked, 0.0)
        beyond = np.where(moved > BEYOND * self._window, seems, 0.0)
        number = len(self.flow_count)
        self.flow_heedless: Flags = summed(beyond, self.owner, number) > summed(seems, self.owner, number) / 2
        not_held: Flags = below | self.flow_heedless[self.owner]
        return not_held

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def smss(self) -> Floats:
        """SMSS of each round's flow, bytes."""
        smss: Floats = self.flow_smss[self.owner]
        return smss

    @cached_property
    def idle_ns(self) -> Ints:
        """Time of each round with nothing outstanding, at its end, but for the host's own delays."""
        idle: Ints = np.minimum((1e9 * self.idle).astype(np.int64), self.until - self.start)
        idle[idle < PAUSE * 1e9 * self.trip] = 0
        return idle

    @cached_property
    def full_ns(self) -> Ints:
        """Time of each round in which the advertised window had no room."""
        lasted = self.until - self.start
        full = np.minimum((1e9 * self.full).astype(np.int64), lasted)
        whole: Ints = np.where(full > WHOLE * lasted, lasted, full)
        return whole

    @property
    def calm(self) -> Flags:
        """Rounds without a loss or a resend, in themselves and in the round before."""
        calm = (self.lost == 0) & (self.resent == 0)
        follows = np.append(True, calm[:-1] | (self.owner[1:] != self.owner[:-1]))[: len(self)]
        both: Flags = calm & follows
        return both

    @property
    def lost_before(self) -> Flags:
        """Rounds before which the flow has lost something."""
        lost = pl.DataFrame({"owner": self.owner, "lost": self.lost})
        so_far = pl.col("lost").shift(1, fill_value=0.0).cum_sum()
        before: Flags = lost.select(so_far.over("owner"))["lost"].to_numpy() > 0
        return before

    @cached_property
    def window_used(self) -> Flags:
        """Rounds after one with a full window and up to the next: what the window let go meanwhile was sent.

        A sender that paces does not send it at once; its clock measures how fast the receiver opens the window.
        """
        full = self.full_ns > 0
        before = np.append(False, full[:-1] & (self.owner[1:] == self.owner[:-1]))[: len(self)]
        after = np.append(full[1:] & (self.owner[1:] == self.owner[:-1]), False)[: len(self)]
        used: Flags = before & (full | after)
        return used

    @cached_property
    def overdue(self) -> Flags:
        """Rounds in which data seems outstanding for longer than a timer allows, and not for want of a window."""
        busy = self.until - self.start - self.idle_ns - (1e9 * self.idle_before).astype(np.int64)
        overdue: Flags = (busy > TIMERS * self._timer_ns) & (TIMERS * self._timer_ns > self.full_ns)
        return overdue

    @cached_property
    def queued(self) -> Flags:
        """Rounds in which the flow was served at the path's rate: a queue stood, more was asked for in vain, or the
        window grew and the rate did not."""
        queued: Flags = self._standing | self._pressed | self._outgrown
        return queued

    @property
    def _rate(self) -> Floats:
        """Bits per second that were acknowledged in each round."""
        rate: Floats = 8 * self.acked / np.maximum((self.until - self.start) / 1e9 - self.idle, 1e-9)
        return rate

    @property
    def _told(self) -> Flags:
        """Rounds whose rate means something."""
        told: Flags = (self.acked >= ENOUGH_ACKED * self.smss) & np.isfinite(self.flow_least_s[self.owner])
        return told

    @property
    def _standing(self) -> Flags:
        """Rounds near the highest rate of a flow for which, at that rate, mostly a queue stood.

        Not where half of the rounds begin later than the ACK before lets them: that rate is a clock's, a pacer's or an
        application's, and a path that delays some segments makes its round trips long. A pacer at its path's rate asks
        for more (`_pressed`). Nor where the round trips scatter: what delays them is no queue; nor where it is others'.
        """
        active = np.maximum((self.until - self.start) / 1e9 - self.idle, 1e-9)
        rate, told, least = self._rate, self._told, self.flow_least_s[self.owner]
        with np.errstate(invalid="ignore"):
            excess = self.rtt - least
            inflated = (excess >= QUEUE * least) & (self.acks >= ENOUGH_ACKED)
            inflated &= (excess * self.acks > ONE_DELAYED_ACK) | (self.sent >= MANY_SENT)
            # elsewhere than at the sender an ACK seems under way until data answer it
            inflated &= self._at_sender[self.owner] | (excess * self.acks > WAITS * active)
        # a round whose ACKs come in a burst has too high a rate: the highest that some rounds sustain
        known = np.flatnonzero(told)
        order = known[np.lexsort((rate[known], self.owner[known]))]
        number = self._count(told)
        some = number > 0
        high = np.cumsum(number)[some] - np.minimum(np.maximum(PLATEAU, number[some] // 20), number[some])
        capacity = np.full(len(number), np.inf)
        capacity[some] = rate[order[high]]
        fast = told & (rate >= SUSTAINED * capacity[self.owner])
        of_flow = self._count(fast)
        path = (of_flow >= PLATEAU) & (self._count(fast & inflated) >= MOST * of_flow)
        path &= (self.flow_unprompted < OWN_CLOCK) & ~self._scattered & ~self._follows
        standing: Flags = fast & path[self.owner]
        return standing

    @property
    def _follows(self) -> Flags:
        """Flows whose flight follows the round trip, up and down without a loss, while their data keep to a straight
        line: a clock's, beside a queue of others. BBR's falls after each of its probes, in more rounds."""
        follows = np.zeros(len(self.flow_count), np.bool_)
        for flow in np.flatnonzero(self._in_line & (self._flow_falls <= PROBING)):
            rows = slice(self.flow_begin[flow], self.flow_begin[flow] + self.flow_count[flow])
            flight = self.flight[rows][self._undisturbed[rows]]
            low, usual, high = np.quantile(flight, (0.05, 0.5, 0.95))
            follows[flow] = high - low >= max(SPREAD * usual, SPREAD_SEGMENTS)
        return follows

    @cached_property
    def _undisturbed(self) -> Flags:
        """Calm rounds without a pause whose flight is known."""
        undisturbed: Flags = self.calm & (self.idle == 0) & np.isfinite(self.flight)
        return undisturbed

    @cached_property
    def _flow_falls(self) -> Floats:
        """Share of the steps from one such round to the next in which the flight falls, 0 where that may be chance;
        NaN where there are too few steps."""
        number = len(self.flow_count)
        calm = self._undisturbed
        step = np.flatnonzero(calm[:-1] & calm[1:] & (self.owner[1:] == self.owner[:-1]))
        falls = self.flight[step + 1] < self.flight[step]
        steps = np.bincount(self.owner[step], minlength=number)
        fell = np.bincount(self.owner[step[falls]], minlength=number)
        fell[fell < PUSHES] = 0
        return np.where(steps >= TOLD_ROUNDS, fell / np.maximum(steps, 1), np.nan)

    @cached_property
    def in_line(self) -> Flags:
        """Rounds of flows that no window holds: their data keep to a straight line, but for how they begin, and the
        flight falls without losses. Where the path is full the line is the path's."""
        in_line: Flags = (self._in_line & (self._count(self.queued) == 0))[self.owner]
        return in_line

    @cached_property
    def _in_line(self) -> Flags:
        """Flows of that kind, whatever the path."""
        in_line = np.zeros(len(self.flow_count), np.bool_)
        with np.errstate(invalid="ignore"):
            falls = self._flow_falls >= SELDOM
        for flow in np.flatnonzero(falls).tolist():
            in_line[flow] = self.straight(flow)
        return in_line

    def straight(self, flow: int) -> bool:
        """The data of a flow keep to a straight line, but for how they begin: whatever held them up, they caught up."""
        rows = slice(self.flow_begin[flow], self.flow_begin[flow] + self.flow_count[flow])
        acked, time = self.acked[rows], (self.until[rows] - self.start[rows][:1]) / 1e9
        begun = slice(len(acked) // 10, -1)
        moved, time = np.cumsum(acked)[begun], time[begun]
        if len(time) < TOLD_ROUNDS or time[-1] == time[0]:
            return False
        off = moved - np.polyval(np.polyfit(time, moved, 1), time)
        return bool(off.std() <= IN_LINE * np.median(acked))

    @property
    def _scattered(self) -> Flags:
        """Flows whose round trips are long by chance, each for itself, as a path makes them that delays each segment
        for another reason than those before it: a radio link, or one of several ways.

        From rounds in which enough was acknowledged; between two with a pause a queue may have drained.
        """
        number = len(self.flow_count)
        known = self._told & np.isfinite(self.rtt)
        pair = np.flatnonzero(known[:-1] & known[1:] & (self.owner[1:] == self.owner[:-1]) & (self.idle[:-1] == 0))
        owner, one, next_ = self.owner[pair], self.rtt[pair], self.rtt[pair + 1]
        pairs = np.maximum(np.bincount(owner, minlength=number), 1)
        mean = summed(one + next_, owner, number) / (2 * pairs)
        spread = summed((one - mean[owner]) ** 2 + (next_ - mean[owner]) ** 2, owner, number)
        step = np.sqrt(summed((next_ - one) ** 2, owner, number) / pairs)
        with np.errstate(invalid="ignore"):
            scattered: Flags = (pairs >= TOLD_ROUNDS) & (step >= STEPS * (mean - self.flow_least_s))
            scattered &= pairs * step**2 > SCATTER * spread
        return scattered

    @property
    def _pressed(self) -> Flags:
        """Rounds near the rate of a flow that asked for more again and again and did not get it.

        A sender that paces (BBR) keeps the queue short, and only at times sends more than comes back. Where that much
        more does not come in the next round but makes the round trip longer, and hardly a round is faster, the rate is
        the path's, however short the queue. A window's rate and a clock's would be higher with more sent.
        """
        pressed = np.zeros(len(self), np.bool_)
        rate, told = self._rate, self._told
        calm = (self.lost == 0) & (self.resent == 0)
        # after a recovery one ACK covers what came long before
        steady = told & calm & np.append(True, calm[:-1])[: len(self)] & (self.idle == 0) & (self.full == 0)
        pair = np.flatnonzero(steady[:-1] & steady[1:] & (self.owner[1:] == self.owner[:-1]))
        if not len(pair):
            return pressed
        lasted = (self.until - self.start)[pair] / 1e9
        offered = self.sent[pair] * (self.smss * self.flow_full_size[self.owner])[pair]
        excess = offered / self.acked[pair] - 1
        gain = rate[pair + 1] / rate[pair] - 1
        after = np.minimum(pair + 2, len(self) - 1)
        longer = np.fmax(self.rtt[pair + 1], np.where(self.owner[after] == self.owner[pair], self.rtt[after], np.nan))
        with np.errstate(invalid="ignore"):
            waited = longer - self.rtt[pair] >= WAITED * excess * lasted
        vain = pair[(excess >= PUSH) & (gain < CAME * excess) & waited]
        for flow in np.flatnonzero(np.bincount(self.owner[vain], minlength=len(self.flow_count)) >= PUSHES):
            rows = slice(self.flow_begin[flow], self.flow_begin[flow] + self.flow_count[flow])
            level = np.median(rate[vain[self.owner[vain] == flow]])
            fast = told[rows] & (rate[rows] >= SUSTAINED * level)
            faster = steady[rows] & (rate[rows] * SUSTAINED > level)
            if fast.sum() >= MOSTLY * told[rows].sum() and faster.sum() <= RARELY * steady[rows].sum():
                pressed[rows] = fast
        return pressed

    @property
    def _outgrown(self) -> Flags:
        """Rounds near the fast rate of a flow that had the same rate again and again while its flight grew.

        Below the path's rate more in flight is more rate. A clock's flight grows as well where the round trip does, but
        it falls as often.
        """
        outgrown = np.zeros(len(self), np.bool_)
        rate, told = self._rate, self._told
        steady = told & self.calm & (self.idle == 0) & (self.full == 0) & ~self.own_clock
        for flow in np.flatnonzero(self._count(steady) >= TOLD_ROUNDS):
            rows = slice(self.flow_begin[flow], self.flow_begin[flow] + self.flow_count[flow])
            own, flight = rate[rows], self.flight[rows]
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

    @cached_property
    def pauses(self) -> Flags:
        """Rounds that a pause of the application follows, or the end of a flow that mostly pauses."""
        paused, rare = self.idle > PAUSE * self.trip, self.idle > self.trip
        often = self._count(paused) / np.maximum(self.flow_count, 1) >= OFTEN
        last = self.position == self.flow_count[self.owner] - 1
        pauses: Flags = np.where(often[self.owner], paused | last, rare)
        return pauses

    @cached_property
    def turns(self) -> Flags:
        """Rounds of a conversation: all that was sent was acknowledged, and more was sent only after the other end's
        data, in `TURNS` rounds in a row, with those that an ACK alone ended; and the flow's last round, after such."""
        if not (self.flow_opposite[self.owner] >= 0).any():
            return np.zeros(len(self), np.bool_)
        last = self.position == self.flow_count[self.owner] - 1
        turn = self._answered & self._settled & ~last | self.small_waits
        turn |= last & np.append(False, turn[:-1])
        breaks = np.append(True, (turn[1:] != turn[:-1]) | (self.owner[1:] != self.owner[:-1]))
        run: Ints = np.cumsum(breaks) - 1
        turns: Flags = turn & (np.bincount(run)[run] >= TURNS) & ~self.small_waits
        return turns

    @cached_property
    def small_waits(self) -> Flags:
        """Rounds with whose ACK, as soon as nothing was outstanding, less than a segment was sent, and not for data of
        the other end: by Nagle's algorithm (RFC 9293, 3.7.4) it waits for that ACK.

        In a flow with three of them, where three quarters of what came so after all was acknowledged came at once.
        """
        if not len(self):
            return np.zeros(0, np.bool_)
        mine = np.append(self.owner[1:] == self.owner[:-1], False)
        next_ = np.minimum(np.arange(len(self)) + 1, len(self) - 1)
        calm = (self.lost == 0) & (self.resent == 0)
        less = (self.acked[next_] > 0) & (self.acked[next_] < self.smss)
        may = mine & calm & calm[next_] & less & (self.acked > 0) & self._settled & ~self._answered
        at_once = may & (self.idle <= self._host_s)
        number = self._count(at_once)
        enough = (number >= NAGLE) & (number >= AT_ONCE * self._count(may))
        waits: Flags = at_once & enough[self.owner]
        return waits

    @cached_property
    def _answered(self) -> Flags:
        """Rounds in which the other end's data came to the sender."""
        said = latest(self.flow_opposite[self.owner], self.until, self.owner, self.start)
        spoke = np.append(self.start, 0)[said]
        heard = spoke + (1e9 * self._away * np.nan_to_num(self.flow_least_s))[self.owner]
        answered: Flags = (said >= 0) & (spoke > self.start) & (heard <= self.until)
        return answered

    @cached_property
    def _settled(self) -> Flags:
        """Rounds at whose end nothing was outstanding: so it seems, or no more segments were sent than were
        acknowledged since that was so."""
        settled = self.idle > 0
        acked = np.ceil(np.nan_to_num(self.acked) / self.smss)
        since = pl.DataFrame(
            {"owner": self.owner, "part": np.cumsum(np.append(0, settled)[:-1]), "more": self.sent - acked}
        )
        since = since.with_columns(more=pl.col("more").cum_sum().over("owner", "part"))
        least = pl.col("more").cum_min().over("owner", "part").clip(upper_bound=0.0)
        outstanding = since.select(pl.col("more") - least).to_series().to_numpy()
        none: Flags = settled | (outstanding <= 0)
        return none

    @property
    def own_clock(self) -> Flags:
        """Rounds of flows that send by a clock of their own; elsewhere than at the sender it may be a queue's."""
        own: Flags = (self._at_sender & (self.flow_unprompted >= OWN_CLOCK))[self.owner]
        return own

    @property
    def unprompted(self) -> Flags:
        """Those of them that begin later than the ACK that ended the round before: the window had room before."""
        late = np.append(False, self._lag_s[:-1] > self._host_s[:-1])[: len(self)]
        unprompted: Flags = self.own_clock & late & (self.position > 0)
        return unprompted

    @property
    def runs_out(self) -> Flags:
        """Rounds of flows that send by a clock of their own, and mostly a short segment in a round: whoever has more to
        send fills it. But for flows whose segments are filled on average: one that writes record by record ends each
        with a short one, and over a path whose MTU is below what the MSS option says all are short."""
        told = (self.acked > 0) & (self.lost == 0) & (self.resent == 0)
        short = told & (self.acked % self.smss > 0)
        mostly = self._count(short) > self._count(told) / 2
        small = self.flow_full_size < FILLED
        runs_out: Flags = (mostly & small & (self.flow_unprompted >= OWN_CLOCK))[self.owner]
        return runs_out

    @cached_property
    def _lag_s(self) -> Floats:
        """From the ACK that ends each round to the beginning of the next one."""
        lag: Floats = np.append(self.start[1:] - self.end[:-1], 0)[: len(self)] / 1e9
        return lag

    @cached_property
    def _host_s(self) -> Floats:
        """What a host may take to answer an ACK."""
        host: Floats = np.maximum(HOST_S, SLACK * np.nan_to_num(self.flow_least_s[self.owner]))
        return host

    @cached_property
    def flow_unprompted(self) -> Floats:
        """Share of each flow's steady rounds that did not begin with the ACK that ended the round before.

        A sender that a window or a buffer holds sends when an ACK lets it; one that has not enough to send, or paces,
        sends by a clock of its own. 0 with fewer rounds than make a plateau.
        """
        return self._late_share(self._lag_s > self._host_s)

    @cached_property
    def flow_waited(self) -> Floats:
        """The same wherever the capture was taken: elsewhere than at the sender an ACK counts as there when data that
        answer it pass, so a sender that lets it wait makes the round longer than the least round trip. What passes
        in even steps, paced or behind a shaper, lags behind the ACK by a good part of a step."""
        least = np.nan_to_num(self.flow_least_s[self.owner])
        longer = (self.end - self.start) / 1e9 - least > ELSEWHERE * self._host_s
        step = (self.until - self.start) / 1e9 / np.maximum(np.nan_to_num(self.acks), 1.0)
        even = self._at_sender[self.owner] & (self._lag_s > np.maximum(PHASE * step, SCHEDULED_S))
        return self._late_share((self._lag_s > self._host_s) | even | longer & ~self._at_sender[self.owner])

    def _late_share(self, late: Flags) -> Floats:
        """Share of these in each flow's steady rounds."""
        steady = (self.lost == 0) & (self.resent == 0) & (self.idle_ns == 0) & (self.full_ns == 0)
        steady &= self.position < self.flow_count[self.owner] - 1
        number = self._count(steady)
        share: Floats = np.where(number >= PLATEAU, self._count(steady & late) / np.maximum(number, 1), 0.0)
        return share

    @cached_property
    def flat(self) -> Flags:
        """Rounds of a flight that does not grow, without a loss: runs of 30 and more within a segment of each other; or
        those within a segment of the usual flight, if that is near the largest and in three quarters of the rounds.
        Only of senders that send when ACKs let them, below a window that is known, and all of it in each round."""
        with np.errstate(invalid="ignore"):
            quiet = (self.lost == 0) & (self.resent == 0) & (self.flight > 2) & (self.full == 0)
            quiet &= self.acked > 0.5 * self.smss * self.sent
            quiet &= (self.flow_waited[self.owner] < ACK_CLOCK) & np.isfinite(self._window)
            went = np.where(quiet, self.sent - REPLACED * self.flight, 0.0)
        quiet &= (summed(went, self.owner, len(self.flow_count)) >= 0)[self.owner]
        flat = np.zeros(len(self), np.bool_)
        for flow in np.flatnonzero(self._count(quiet) >= FLAT_ROUNDS):
            rows = slice(self.flow_begin[flow], self.flow_begin[flow] + self.flow_count[flow])
            flat[rows] = _level(self.flight[rows], quiet[rows])
            whole = quiet[rows] & (went[rows] >= 0)
            if not flat[rows].any() and whole.sum() >= FLAT_ROUNDS:
                flat[rows] = _level(self.flight[rows], whole)
        return flat

    def _count(self, which: Flags) -> Ints:
        """How many of these rounds each flow has."""
        number: Ints = np.bincount(self.owner[which], minlength=len(self.flow_count))
        return number


def _opposites(connection: Ints) -> Ints:
    """The position of the other direction of each flow's connection; -1 if it is not there."""
    order = np.argsort(connection, kind="stable")
    pairs = np.flatnonzero(connection[order][1:] == connection[order][:-1])
    opposite = np.full(len(connection), -1)
    opposite[order[pairs]], opposite[order[pairs + 1]] = order[pairs + 1], order[pairs]
    return opposite


def _level(flight: Floats, quiet: Flags) -> Flags:
    """The flat ones of one flow's rounds."""
    flat = np.zeros(len(flight), np.bool_)
    course = [*np.where(quiet, flight, np.nan).tolist(), np.nan]
    first = 0
    low = high = 0.0
    for k, value in enumerate(course):
        if k > first and max(high, value) - min(low, value) <= 1 and value == value:
            low, high = min(low, value), max(high, value)
            continue
        if k - first >= FLAT_ROUNDS:
            flat[first:k] = True
        first = k
        low = high = value
    values, number = np.unique(np.round(flight[quiet]), return_counts=True)
    usual = values[np.argmax(number)]
    level = quiet & (np.abs(flight - usual) <= 1)
    high = usual >= TOP * np.quantile(flight[quiet], 0.95)
    if high and level.sum() >= max(FLAT_ROUNDS, MOSTLY * quiet.sum()):
        flat |= level
    held: Flags = flat & quiet
    return held


@once
def rounds_of(evidence: Evidence) -> Rounds:
    """The rounds of an evidence."""
    return Rounds(evidence)
