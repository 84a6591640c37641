"""The rounds of all flows as stretches of time, and what each shows of the path and of the application."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcpfit.diagnosis import held_flight, path_rate, send_clock, turns
from tcpfit.diagnosis.path_rate import ENOUGH_ACKED
from tcpfit.parameters import so_far
from tcpfit.parameters.evidence import Evidence, once
from tcpfit.parameters.intervals import Floats, Ints, summed
from tcpfit.ranking.steady import idle_within

Flags = NDArray[np.bool_]

PAUSE = 0.1
"""Of a round trip: a longer time with nothing outstanding is no delay of the host's, where it comes again and again."""

OFTEN = 1 / 3
"""Of the rounds: pauses after so many are the application's; rarer ones only if they last a round trip (T-RAT)."""

HOST_S = 1e-3
"""Seconds that a host may take to answer an ACK with data."""

SLACK = 0.02
"""Of the least round trip: the same."""

WHOLE = 0.95
"""Of a round: a window that was full for longer was full for all of it, but for the host's own delays."""

BEYOND = 1.25
"""Of the window: a sender that moves so much more in a round trip does not keep to the window."""

TIMERS = 8.0
"""Retransmission timers: data outstanding for so long without one that expired was not outstanding."""


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
        self.start: Ints = so_far.highest(self.owner, begins)
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
        self.estimated: Flags = rows.frame["estimated"].fill_null(False).to_numpy()
        phase = rows.frame["phase"].cast(pl.String)
        self.open: Flags = (phase == "open").fill_null(False).to_numpy()
        self.after_timeout: Flags = (phase == "loss").fill_null(False).to_numpy()
        self.at_sender: Flags = (flows["vantage"].cast(pl.String) == "sender").fill_null(False).to_numpy()
        # elsewhere than at the sender, without timestamps, round trips and flights are estimated from losses
        stamped = flows["timestamps"].fill_null(False).to_numpy()
        self.flow_estimated: Flags = ~self.at_sender & ~stamped
        self.flow_opposite = _opposites(flows["connection"].to_numpy())
        self.flow_least_s = evidence.column("rtt_min_s")
        self.away: Floats = np.nan_to_num(evidence.column("vantage_fraction"))
        smss = evidence.column("smss_bytes")
        self.flow_full_size = evidence.full_size
        self.flow_smss: Floats = np.maximum(np.where(np.isfinite(smss), smss, 1.0), 1.0)
        self.window: Floats = (evidence.column("rwnd_max") * evidence.column("smss_bytes"))[self.owner]
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
            below = (self.acked < self.window / 2) & (self.window < 2 * self.smss)
            moved = self.acked / np.maximum(lasted / self.flow_least_s[self.owner], 1.0)
        seems = np.where(full > WHOLE * lasted, self.acked, 0.0)
        beyond = np.where(moved > BEYOND * self.window, seems, 0.0)
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
        return so_far.highest(self.owner, so_far.before(self.owner, self.lost)) > 0

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
        """Rounds in which their flow was served at the path's rate, but for single flights of an application."""
        queued: Flags = path_rate.queued(self) & ~self.one_flight
        return queued

    @property
    def rate(self) -> Floats:
        """Bits per second that were acknowledged in each round."""
        rate: Floats = 8 * self.acked / np.maximum((self.until - self.start) / 1e9 - self.idle, 1e-9)
        return rate

    @property
    def told(self) -> Flags:
        """Rounds whose rate means something."""
        told: Flags = (self.acked >= ENOUGH_ACKED * self.smss) & np.isfinite(self.flow_least_s[self.owner])
        return told

    @cached_property
    def undisturbed(self) -> Flags:
        """Calm rounds without a pause whose flight is known."""
        undisturbed: Flags = self.calm & (self.idle == 0) & np.isfinite(self.flight)
        return undisturbed

    @cached_property
    def flow_falls(self) -> Floats:
        """Share of the steps between undisturbed rounds in which the flight falls; NaN where there are too few."""
        return path_rate.flow_falls(self)

    @cached_property
    def in_line(self) -> Flags:
        """Rounds of flows that no window holds: their data keep to a straight line, but for how they begin, and the
        flight falls without losses. Where the path is full the line is the path's."""
        in_line: Flags = (self.flow_in_line & (self.count(self.queued) == 0))[self.owner]
        return in_line

    @cached_property
    def flow_in_line(self) -> Flags:
        """Flows whose data keep to a straight line, whatever the path."""
        return path_rate.flow_in_line(self)

    def straight(self, flow: int) -> bool:
        """The data of a flow keep to a straight line."""
        return path_rate.straight(self, flow)

    @cached_property
    def pauses(self) -> Flags:
        """Rounds that a pause of the application follows, or the end of a flow that mostly pauses."""
        paused, rare = self.idle > PAUSE * self.trip, self.idle > self.trip
        often = self.count(paused) / np.maximum(self.flow_count, 1) >= OFTEN
        last = self.position == self.flow_count[self.owner] - 1
        pauses: Flags = np.where(often[self.owner], paused | last, rare)
        return pauses

    @cached_property
    def one_flight(self) -> Flags:
        """Rounds that an application fills between two pauses: all that it wrote was under way at once, and the queue
        that it made had emptied before it wrote again. False where that took most of the time, as a faster path would
        have spared it."""
        after_pause = np.append(False, self.pauses[:-1] & (self.owner[1:] == self.owner[:-1]))[: len(self)]
        lasted = (self.until - self.start) / 1e9
        queue = lasted - self.idle - self.flow_least_s[self.owner]
        one_flight: Flags = self.pauses & after_pause & (queue < lasted / 2)
        return one_flight

    @cached_property
    def turns(self) -> Flags:
        """Rounds of a conversation, in which the sender waited for the other end's data."""
        return turns.turns(self)

    @cached_property
    def small_waits(self) -> Flags:
        """Rounds for whose ACK less than a segment waited (RFC 9293, 3.7.4)."""
        return turns.small_waits(self)

    @property
    def own_clock(self) -> Flags:
        """Rounds of flows that send by a clock of their own."""
        return send_clock.own_clock(self)

    @property
    def unprompted(self) -> Flags:
        """Those of them that begin later than the ACK that ended the round before."""
        return send_clock.unprompted(self)

    @property
    def runs_out(self) -> Flags:
        """Those of flows that mostly have less to send than the segments they send it in."""
        return send_clock.runs_out(self)

    @cached_property
    def lag_s(self) -> Floats:
        """From the ACK that ends each round to the beginning of the next one."""
        lag: Floats = np.append(self.start[1:] - self.end[:-1], 0)[: len(self)] / 1e9
        return lag

    @cached_property
    def host_s(self) -> Floats:
        """What a host may take to answer an ACK."""
        host: Floats = np.maximum(HOST_S, SLACK * np.nan_to_num(self.flow_least_s[self.owner]))
        return host

    @cached_property
    def flow_unprompted(self) -> Floats:
        """Share of each flow's steady rounds that did not begin with the ACK that ended the round before."""
        return send_clock.flow_unprompted(self)

    @cached_property
    def flow_waited(self) -> Floats:
        """The same wherever the capture was taken."""
        return send_clock.flow_waited(self)

    @cached_property
    def flat(self) -> Flags:
        """Rounds of a flight that a buffer of the sender holds."""
        return held_flight.flat(self)

    def count(self, which: Flags) -> Ints:
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


@once
def rounds_of(evidence: Evidence) -> Rounds:
    """The rounds of an evidence."""
    return Rounds(evidence)
