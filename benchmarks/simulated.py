#!/usr/bin/env python3
"""Flows of ns-2's textbook senders, with the exact record of what happened.

    simulated.py OUT [--count N] [--seed S]

Each flow is drawn at random: Tahoe, Reno, NewReno or SACK, its windows and timers, one bottleneck, and what is lost or
held on the way. It needs `ns`, the simulator's version 2.35. OUT gets a folder a flow, with the captures of both ends,
`truth.json` and `cwnd.csv.gz` as in `traces-ns2`, which the grader grades and `packets.py` compares event by event.
The same seed makes the same flows, to the last packet.

What happened is read from the simulator's own trace, never from the captures. Only the blocks of the SACK option are
not in it: they are made again by the sink's rule, and each acknowledgement's size proves how many there were.
"""

from __future__ import annotations

import argparse
import bisect
import csv
import gzip
import json
import math
import random
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MSS = 1448
UNLIMITED = 100000
"""A window, or a queue, that limits nothing."""
FIRST_S = 0.1
"""When the SYN leaves."""
SACK_BLOCKS = 3
SNAP = 96
MAC = {"client": bytes.fromhex("020000000001"), "server": bytes.fromhex("020000000002")}
AGENTS = {"Tahoe": "Agent/TCP", "Reno": "Agent/TCP/Reno", "NewReno": "Agent/TCP/Newreno", "SACK": "Agent/TCP/Sack1"}
RETRANSMITS = {"FAST_RETX", "RENO_FAST_RETX", "NEWRENO_FAST_RETX", "FAST_RECOVERY"}
"""What the senders call the third duplicate acknowledgement in the trace."""

Facts = dict[str, Any]

SCRIPT = """
# The one error model that asks the script about each packet is made to ask nothing else.
ErrorModel/MultiState instproc init {} { $self next }
ErrorModel/MultiState instproc corrupt {} { return [[$self set rule_]] }

set chance [new RNG]
$chance seed $seed
proc happens {p} { return [expr {[$::chance uniform 0 1] < $p}] }

proc lose_none {} { return 0 }
proc lose_bern {} { return [happens $::p] }
set more 0
proc lose_burst {} {
    if {$::more > 0} { incr ::more -1; return 1 }
    if {![happens $::p]} { return 0 }
    set ::more [expr {$::m - 1}]
    return 1
}
set bad 0
proc lose_gilbert {} {
    set ::bad [expr {$::bad ? ![happens $::r] : [happens $::p]}]
    return $::bad
}
# The rest of a round: what comes without a pause, and not much longer than packets of one round can.
set since -1
set before -1
proc lose_round {} {
    set now [$::ns now]
    set same [expr {$::since >= 0 && $now - $::before <= $::gap && $now - $::since <= $::life}]
    set ::before $now
    if {$same} { return 1 }
    set ::since [expr {[happens $::p] ? $now : -1}]
    return [expr {$::since >= 0}]
}
set held 0
set next $period
proc hold {} {
    if {[$::ns now] >= $::next} {
        set ::held $::packets
        while {$::next <= [$::ns now]} { set ::next [expr {$::next + $::period}] }
    }
    if {$::held == 0} { return 0 }
    incr ::held -1
    return 1
}

set ns [new Simulator]
set file [open trace w]
$ns eventtrace-all $file
foreach i {0 1 2 3} { set node($i) [$ns node] }
$ns duplex-link $node(0) $node(1) 1Gb $reach DropTail
$ns duplex-link $node(1) $node(2) $bottleneck 1ms DropTail
$ns duplex-link $node(2) $node(3) 1Gb $reach DropTail
foreach {i j} {0 1 1 2 2 3} {
    $ns queue-limit $node($i) $node($j) 100000
    $ns queue-limit $node($j) $node($i) 100000
}
$ns queue-limit $node(1) $node(2) $limit
foreach {i j} {0 1 1 2 2 3 3 2 1 0} { $ns trace-queue $node($i) $node($j) $file }

if {$packets > 0} {
    set late [new ErrorModel/MultiState]
    $late set rule_ hold
    $late set delay_pkt_ true
    $late set delay_ $pushout
    $ns lossmodel $late $node(2) $node(3)
}
set losses [new ErrorModel/MultiState]
$losses set rule_ lose_$model
$ns lossmodel $losses $node(2) $node(3)

set tcp [new $agent]
set sink [new $receiver]
if {$wait > 0} { $sink set interval_ $wait }
$tcp set packetSize_ $mss
$tcp set window_ $window
$tcp set windowInit_ $initial
$tcp set minrto_ $minrto
$tcp set tcpTick_ $tick
$tcp set singledup_ $singledup
if {$impatient >= 0} { $tcp set newreno_changes1_ $impatient }
$ns attach-agent $node(0) $tcp
$ns attach-agent $node(3) $sink
$ns connect $tcp $sink
$tcp attach $file
$tcp trace cwnd_
set source [new Application/FTP]
$source attach-agent $tcp
$ns at $first "$source start"
$ns at $duration "$ns flush-trace; close $file; exit 0"
$ns run
"""
"""A sender, a bottleneck and a receiver in a row; losses and delays are behind the bottleneck."""


def draw(generator: random.Random, name: str) -> Facts:
    """One flow, in the terms of its truth."""
    choose, chance = generator.choice, generator.random
    variant = choose(["Tahoe", "Reno", "NewReno", "NewReno", "SACK", "SACK"])
    delayed = chance() < 0.4
    rtt_s = choose([0.02, 0.03, 0.05, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25])
    facts: Facts = {
        "name": name,
        "variant": variant,
        "newreno_timer": choose(["slow-but-steady", "impatient"]) if variant == "NewReno" else None,
        "limited_transmit": chance() < 0.5,
        "delayed_ack": delayed,
        "delayed_ack_interval_s": choose([0.1, 0.1, 0.2]) if delayed else None,
        "initial_window_segments": choose([1, 2, 3, 4]),
        "min_rto_s": choose([0.2, 1.0]),
        "timer_tick_s": 0.01,
        "bottleneck": choose(["1.5Mb", "2Mb", "4Mb", "6Mb", "10Mb", "10Mb", "20Mb"]),
        "rtt_propagation_s": rtt_s,
        "queue": "DropTail",
        "queue_limit_packets": choose([UNLIMITED, UNLIMITED, 10, 20, 50]),
        "loss_imposed": {"model": "none"},
        "reordering_imposed": None,
        "background": None,
        "seed": generator.randrange(1, 2**31 - 1),
        "simulator": "ns-2.35",
        "client": f"{address(generator, 10)}:{generator.randrange(32768, 61000)}",
        "server": f"{address(generator, 172)}:{choose([80, 443, 5001, 5201, 8080])}",
        "data_direction": "client->server",
        "isn": generator.randrange(2**32),
        "mss": MSS,
        "window_limit_segments": choose([UNLIMITED, UNLIMITED, UNLIMITED, 12, 16, 20, 24, 32, 40]),
        "sack_permitted": variant == "SACK",
        "duration_s": float(choose([60, 80, 90, 120])),
    }
    choose(KINDS)(generator, facts)
    facts["window_scale"] = 7 if facts["window_limit_segments"] * MSS > 0xFFFF else None
    return facts | {"note": note(facts)}


def address(generator: random.Random, first: int) -> str:
    """A private one."""
    second = generator.randrange(16, 32) if first == 172 else generator.randrange(256)
    return f"{first}.{second}.{generator.randrange(1, 255)}.{generator.randrange(1, 255)}"


def random_losses(generator: random.Random, facts: Facts) -> None:
    """Each packet with the same probability."""
    facts["loss_imposed"] = {"model": "bern", "p": generator.choice([0.005, 0.01, 0.02, 0.03, 0.05])}
    if generator.random() < 0.1:
        held(generator, facts)


def bursts(generator: random.Random, facts: Facts) -> None:
    """Several back to back."""
    p, m = generator.choice([0.002, 0.005, 0.01]), generator.choice([2, 3, 4, 5, 6, 8])
    facts["loss_imposed"] = {"model": "burst", "p": p, "m": m}


def rounds(generator: random.Random, facts: Facts) -> None:
    """From one lost packet on, the rest of its round."""
    rtt_s, p = facts["rtt_propagation_s"], generator.choice([0.005, 0.01, 0.02, 0.03, 0.05])
    spread = {"round_gap_s": round(rtt_s / 4, 6), "round_life_s": round(0.75 * rtt_s, 6)}
    facts["loss_imposed"] = {"model": "round", "p": p} | spread


def gilbert(generator: random.Random, facts: Facts) -> None:
    """As long as the path is in its bad state."""
    p, r = generator.choice([0.003, 0.006, 0.012]), generator.choice([0.3, 0.4, 0.6, 0.8])
    facts["loss_imposed"] = {"model": "gilbert", "p": p, "r": r}


def full_queue(generator: random.Random, facts: Facts) -> None:
    """Nothing is lost but what finds the queue full."""
    facts["queue_limit_packets"] = generator.choice([8, 12, 20, 40, 80])
    facts["bottleneck"] = generator.choice(["1.5Mb", "2Mb", "4Mb", "6Mb"])
    facts["window_limit_segments"] = UNLIMITED


def held(generator: random.Random, facts: Facts) -> None:
    """Every now and then some packets come late. A window without limit would grow for ever if none were lost."""
    facts["reordering_imposed"] = {
        "period_s": generator.choice([2.0, 3.0, 5.0]),
        "packets": generator.choice([1, 2, 3, 4, 6, 8]),
        "pushout_s": generator.choice([0.01, 0.03, 0.06, 0.12, 0.2, 0.3]),
    }
    if facts["loss_imposed"]["model"] == "none":
        facts["window_limit_segments"] = generator.choice([12, 16, 20, 24, 32, 40])


KINDS: tuple[Callable[[random.Random, Facts], None], ...] = (
    random_losses,
    random_losses,
    bursts,
    rounds,
    gilbert,
    full_queue,
    held,
)


def note(facts: Facts) -> str:
    """The path in words."""
    imposed = facts["loss_imposed"] | (facts["reordering_imposed"] or {})
    return ", ".join(f"{key} {value}" for key, value in imposed.items())


def simulate(facts: Facts) -> Iterator[list[str]]:
    """The words of each line of the trace that tells something of the ends or of a drop."""
    late = facts["reordering_imposed"] or {}
    loss = facts["loss_imposed"]
    sink = "Agent/TCPSink" + "/Sack1" * facts["sack_permitted"] + "/DelAck" * facts["delayed_ack"]
    given = {
        "seed": facts["seed"],
        "model": loss["model"],
        "p": loss.get("p", 0),
        "m": loss.get("m", 0),
        "r": loss.get("r", 0),
        "gap": loss.get("round_gap_s", 0),
        "life": loss.get("round_life_s", 0),
        "period": late.get("period_s", 0),
        "packets": late.get("packets", 0),
        "pushout": late.get("pushout_s", 0),
        "reach": round(facts["rtt_propagation_s"] / 4 - 0.0005, 6),  # the bottleneck has the other half millisecond
        "bottleneck": facts["bottleneck"],
        "limit": facts["queue_limit_packets"],
        "agent": AGENTS[facts["variant"]],
        "receiver": sink,
        "wait": facts["delayed_ack_interval_s"] or 0,
        "mss": MSS,
        "window": facts["window_limit_segments"],
        "initial": facts["initial_window_segments"],
        "minrto": facts["min_rto_s"],
        "tick": facts["timer_tick_s"],
        "singledup": int(facts["limited_transmit"]),
        "impatient": {None: -1, "slow-but-steady": 0, "impatient": 1}[facts["newreno_timer"]],
        "first": FIRST_S,
        "duration": facts["duration_s"],
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "script.tcl").write_text("".join(f"set {k} {v}\n" for k, v in given.items()) + SCRIPT)
        subprocess.run(["ns", "script.tcl"], cwd=folder, check=True)
        with (Path(folder) / "trace").open() as lines:
            for line in lines:
                if line[0] not in "-v":
                    yield line.split()


@dataclass
class Sent:
    """One transmission of a segment. Segment 0 is the SYN."""

    time_s: float
    segment: int
    again: bool
    window: int
    rtt_s: float
    """Smoothed."""
    seen: bool
    """Whether the segment has arrived before this copy of it is sent."""
    dropped_s: float | None = None
    arrived_s: float | None = None


@dataclass
class Expiry:
    """The retransmission timer has expired."""

    time_s: float
    segment: int
    k: int
    timer_s: float
    idle_s: float
    since_ack_s: float
    window: float
    in_recovery: bool


@dataclass
class Receiver:
    """What the sink holds, and the blocks it tells."""

    next: int = 0
    highest: int = 0
    held: set[int] = field(default_factory=set)
    again: bool = False
    last: int = 0
    told: list[tuple[int, int]] = field(default_factory=list)

    def take(self, segment: int) -> None:
        """A segment has arrived."""
        self.last, self.again = segment, self.has(segment)
        self.held.add(segment)
        self.highest = max(self.highest, segment)
        while self.next in self.held:
            self.held.remove(self.next)
            self.next += 1

    def has(self, segment: int) -> bool:
        """Whether it is here."""
        return segment < self.next or segment in self.held

    def blocks(self) -> list[tuple[int, int]]:
        """The SACK blocks of an acknowledgement, each from its first segment to the one behind its last.

        `Sacker::append_ack` step by step: what the last segment has joined comes first, then what was told before and
        is not a part of it, which need not be whole any more.
        """
        below = self.next - 1
        if below >= self.highest and self.told:
            self.told = []
            return []
        if below >= self.highest and not self.again:
            return []
        right = self.last
        while right <= self.highest and self.has(right):
            right += 1
        left, blocks = 0, []
        if self.last > below:
            left = self.last
            while left - 1 > below and self.has(left - 1):
                left -= 1
            blocks.append((left, right))
        at = 0
        while len(blocks) < SACK_BLOCKS and at < len(self.told):
            block = self.told[at]
            if left <= block[0] and right >= block[1]:
                del self.told[at]
                continue
            blocks.append(block)
            at += 1
        if self.last > below:
            self.told = [(left, right), *self.told][:SACK_BLOCKS]
        return blocks


@dataclass
class Ack:
    """One acknowledgement: of all segments up to `segment`."""

    segment: int
    answers_syn: bool
    blocks: list[tuple[int, int]]


class Reading:
    """What one trace says, in the order in which it happened."""

    def __init__(self, facts: Facts) -> None:
        self.impatient = facts["newreno_timer"] == "impatient"
        self.newreno = facts["variant"] == "NewReno"
        self.sack = facts["sack_permitted"]
        self.limit = facts["window_limit_segments"]
        self.sent: list[Sent] = []
        self.acks: list[Ack] = []
        self.frames: dict[str, list[tuple[float, str, int]]] = {"sender": [], "receiver": []}
        """Of each capture: the time, who has sent it, which of its packets."""
        self.windows: list[tuple[float, float]] = []
        self.expiries: list[Expiry] = []
        self.retransmits: list[tuple[float, int, float]] = []
        self.late: list[int] = []
        self.arrivals: list[tuple[float, bool]] = []
        self.acked: list[tuple[float, int]] = []
        """When acknowledgements arrive, and how many segments they are the first for."""
        self.samples: list[tuple[float, float]] = []
        self._receiver = Receiver()
        self._number: dict[str, int] = {}
        """Which packet of its end has this number in the trace."""
        self._copies: dict[int, list[Sent]] = {}
        self._newest = -1
        self._window = 1.0
        self._highest_sent = self._highest_acked = self._recover = -1
        self._recovering = self._answered = False
        self._series = 0
        self._started_s = self._acked_s = 0.0
        self._rtt_s = float(facts["rtt_propagation_s"])
        for words in simulate(facts):
            self._line(words)

    def _line(self, words: list[str]) -> None:
        at = words[0]
        if at == "E":
            self._event(float(words[1]), words[5])
        elif at in {"+", "r", "d"}:
            way, time_s, segment, uid = (at, words[2], words[3]), float(words[1]), int(words[10]), words[11]
            if way == ("+", "0", "1"):
                self._send(time_s, segment, uid)
            elif way == ("r", "2", "3"):
                self._arrive(time_s, segment, uid)
            elif way == ("+", "3", "2"):
                self._acknowledge(time_s, segment, uid, int(words[5]))
            elif way == ("r", "1", "0"):
                self._acknowledged(time_s, segment, uid)
            elif at == "d":
                self.sent[self._number[uid]].dropped_s = time_s
        elif words[5] == "cwnd_" and self.sent:
            window = min(float(words[6]), self.limit)
            if window != self._window:
                self._window = window
                self.windows.append((float(words[0]), window))

    def _send(self, time_s: float, segment: int, uid: str) -> None:
        if self._highest_acked == self._highest_sent:
            self._started_s = time_s
        copies = self._copies.setdefault(segment, [])
        sent = Sent(time_s, segment, bool(copies), int(self._window), self._rtt_s, self._receiver.has(segment))
        copies.append(sent)
        self._number[uid] = len(self.sent)
        self.frames["sender"].append((time_s, "client", len(self.sent)))
        self.sent.append(sent)
        self._highest_sent = max(self._highest_sent, segment)

    def _arrive(self, time_s: float, segment: int, uid: str) -> None:
        number = self._number[uid]
        self.sent[number].arrived_s = time_s
        self.frames["receiver"].append((time_s, "client", number))
        if number < self._newest:
            self.late.append(number)
        self._newest = max(self._newest, number)
        self._receiver.take(segment)
        self.arrivals.append((time_s, self._receiver.again))

    def _acknowledge(self, time_s: float, segment: int, uid: str, size: int) -> None:
        blocks = self._receiver.blocks() if self.sack else []
        if segment != self._receiver.next - 1 or size != 40 + 8 * len(blocks):
            raise RuntimeError(f"{time_s} s: the sink's rule does not make this acknowledgement: {segment}, {size} B")
        self._number[uid] = len(self.acks)
        self.frames["receiver"].append((time_s, "server", len(self.acks)))
        self.acks.append(Ack(segment, self._receiver.last == 0, blocks))

    def _acknowledged(self, time_s: float, segment: int, uid: str) -> None:
        self.frames["sender"].append((time_s, "server", self._number[uid]))
        self._acked_s = time_s
        self.acked.append((time_s, max(segment - self._highest_acked, 0)))
        if segment <= self._highest_acked:
            return
        covered = [self._copies[one] for one in range(self._highest_acked + 1, segment + 1)]
        if all(len(copies) == 1 for copies in covered):  # Karn's rule
            sample_s = time_s - covered[-1][0].time_s
            self._rtt_s += (sample_s - self._rtt_s) / (8 if self.samples else 1)
            self.samples.append((time_s, sample_s))
        partial = self.newreno and self._recovering and segment < self._recover
        if not (partial and self.impatient and self._answered):
            self._started_s = time_s
        self._answered = partial
        if segment >= self._recover:
            self._recovering = False
        self._highest_acked = segment
        self._series = 0

    def _event(self, time_s: float, what: str) -> None:
        segment = self._highest_acked + 1
        if what in RETRANSMITS:
            self.retransmits.append((time_s, segment, self._window))
            self._recover, self._recovering, self._answered = self._highest_sent, True, False
        elif what == "TIMEOUT":
            self._series += 1
            timer_s, idle_s, ack_s = (time_s - x for x in (self._started_s, self.sent[-1].time_s, self._acked_s))
            self.expiries.append(
                Expiry(time_s, segment, self._series, timer_s, idle_s, ack_s, self._window, self._recovering)
            )
            self._recovering = False
        else:
            return
        self._started_s = time_s

    def needless(self) -> int:
        """Segments sent again though an earlier copy of them was never dropped."""
        return sum(
            any(copy.dropped_s is None for copy in copies[:place])
            for copies in self._copies.values()
            for place in range(1, len(copies))
        )


def truth(facts: Facts, reading: Reading) -> Facts:
    """What happened."""
    sent = reading.sent
    begun = starts(sent, lambda number: number + max(sent[number].window, 1), lambda number: number)

    def seq(segment: int) -> int:
        return sequence(facts, segment)

    return facts | {
        "packets_sender_capture": len(reading.frames["sender"]),
        "packets_receiver_capture": len(reading.frames["receiver"]),
        "retransmissions_sent": sum(one.again for one in sent),
        "retransmissions_spurious": sum(one.again and one.seen for one in sent),
        "retransmissions_unneeded": reading.needless(),
        "duplicate_segments_at_receiver": sum(again for _, again in reading.arrivals),
        "data_segments_at_receiver": len(reading.arrivals),
        "drops": [
            {
                "t_send": one.time_s,
                "t_drop": one.dropped_s,
                "segment": one.segment,
                "tx_index": number + 1,
                "retransmission": one.again,
                "new_loss_event": number in begun,
                "seq": seq(one.segment),
            }
            for number, one in enumerate(sent)
            if one.dropped_s is not None
        ],
        "fast_retransmits": [
            {"t": time_s, "segment": segment, "cwnd_before": window, "seq": seq(segment)}
            for time_s, segment, window in reading.retransmits
        ],
        "timeouts": [
            {
                "t": one.time_s,
                "segment": one.segment,
                "k": one.k,
                "timer": round(one.timer_s, 6),
                "idle": round(one.idle_s, 6),
                "cwnd_before": one.window,
                "seq": seq(one.segment),
            }
            for one in reading.expiries
        ],
        "timeout_sequences": [
            {
                "t_first": some[0].time_s,
                "length": len(some),
                "timers_s": [round(one.timer_s, 6) for one in some],
                "segment": some[0].segment,
            }
            for some in series(reading.expiries)
        ],
        "reordered_arrivals": [
            {
                "t_arrival": one.arrived_s,
                "t_send": one.time_s,
                "segment": one.segment,
                "retransmission": one.again,
                "seq": seq(one.segment),
            }
            for one in (sent[number] for number in reading.late)
        ],
        "reorder_events": [
            {
                "t_first": min(one.arrived_s or 0 for one in some),
                "t_last": max(one.arrived_s or 0 for one in some),
                "segments": [one.segment for one in some],
            }
            for some in together(facts, reading)
        ],
        "measured_whole": measured(facts, reading, 0.0),
        "measured_after_5s": measured(facts, reading, 5.0),
    }


def starts(sent: list[Sent], until: Callable[[int], float], place: Callable[[int], float]) -> set[int]:
    """The first losses of loss events, each of which lasts `until` some place."""
    found, end = set(), -math.inf
    for number, one in enumerate(sent):
        if one.dropped_s is not None and place(number) >= end:
            found.add(number)
            end = until(number)
    return found


def together(facts: Facts, reading: Reading) -> list[list[Sent]]:
    """The late packets of each time that some were held, and no other packets are late."""
    found: list[list[Sent]] = []
    for one in (reading.sent[number] for number in sorted(reading.late)):
        if not found or one.time_s - found[-1][-1].time_s > facts["reordering_imposed"]["period_s"] / 2:
            found.append([])
        found[-1].append(one)
    return found


def measured(facts: Facts, reading: Reading, start_s: float) -> Facts:
    """Counts, and the parameters of the models, of what happened from `start_s` on."""
    length_s = facts["duration_s"] - start_s
    sent = [one for one in reading.sent if one.time_s >= start_s]
    lost = sum(one.dropped_s is not None for one in sent)
    expiries = [one for one in reading.expiries if one.time_s >= start_s]
    first = [one for one in expiries if one.k == 1]
    lengths = [len(some) for some in series(reading.expiries) if some[0].time_s >= start_s]
    recoveries = [window for time_s, _, window in reading.retransmits if time_s >= start_s]
    peaks = recoveries + [one.window for one in first if not one.in_recovery]
    by_window = len(starts(sent, lambda number: number + max(sent[number].window, 1), lambda number: number))
    by_rtt = len(starts(sent, lambda number: sent[number].time_s + sent[number].rtt_s, lambda n: sent[n].time_s))
    rtt_s = [value for time_s, value in reading.samples if time_s >= start_s]
    acked = [new for time_s, new in reading.acked if time_s >= start_s]
    mean_window, variance = outside_timeouts(reading, start_s, facts["duration_s"], expiries)
    values: Facts = {
        "segments_sent": len(sent),
        "segments_retransmitted": sum(one.again for one in sent),
        "segments_lost": lost,
        "acks": len(acked),
        "loss_events_win": by_window,
        "loss_events_rtt": by_rtt,
        "p_win": by_window / len(sent) if sent else None,
        "p_rtt": by_rtt / len(sent) if sent else None,
        "p_ind": (len(recoveries) + len(first)) / len(sent) if sent else None,
        "q_tilde": lost / len(sent) if sent else None,
        "m_win": lost / by_window if by_window else None,
        "m_rtt": lost / by_rtt if by_rtt else None,
        "rtt_mean": mean(rtt_s),
        "rtt_sd": statistics.pstdev(rtt_s) if len(rtt_s) > 1 else None,
        "rto_first_timer": mean([one.timer_s for one in first]),
        "rto_first_idle": mean([one.idle_s for one in first]),
        "fr": len(recoveries),
        "to_sequences": len(first),
        **{f"to{k}": lengths.count(k) for k in range(1, 6)},
        "to6plus": sum(length > 5 for length in lengths),
        "fr_ending_in_to": sum(one.in_recovery for one in first),
        "throughput_segps": len(sent) / length_s,
        "goodput_segps": sum(acked) / length_s,
        "w_peak": mean(peaks),
        "n_peaks": len(peaks),
        "p_timeout": sum(one.idle_s for one in expiries) / length_s,
        "p_timeout_from_ack": sum(one.since_ack_s for one in expiries) / length_s,
        "p_timeout_timer": sum(one.timer_s for one in expiries) / length_s,
        "cwnd_mean_noto": mean_window,
        "cwnd_var_noto": variance,
    }
    return {key: round(value, 9) if isinstance(value, float) else value for key, value in values.items()}


def series(expiries: list[Expiry]) -> list[list[Expiry]]:
    """Expiries with no acknowledgement of new data between them."""
    found: list[list[Expiry]] = []
    for one in expiries:
        if one.k == 1:
            found.append([])
        found[-1].append(one)
    return found


def mean(values: list[float]) -> float | None:
    """None of nothing."""
    return statistics.fmean(values) if values else None


def outside_timeouts(reading: Reading, start_s: float, end_s: float, expiries: list[Expiry]) -> tuple[float, float]:
    """The mean over time and the variance of the window while the sender does not just wait for its timer."""
    changes = [(FIRST_S, 1.0), *reading.windows]
    times = [time_s for time_s, _ in changes]
    waits = [(one.time_s - one.idle_s, one.time_s) for one in expiries]
    total = area = squares = 0.0
    for sign, left_s, right_s in [(1, max(start_s, FIRST_S), end_s), *((-1, *wait) for wait in waits)]:
        for place in range(max(bisect.bisect_right(times, left_s) - 1, 0), len(times)):
            if times[place] >= right_s:
                break
            until_s = min(times[place + 1] if place + 1 < len(times) else end_s, right_s)
            lasted = sign * max(until_s - max(times[place], left_s), 0)
            total += lasted
            area += lasted * changes[place][1]
            squares += lasted * changes[place][1] ** 2
    return area / total, squares / total - (area / total) ** 2


def sequence(facts: Facts, segment: int) -> int:
    """The sequence number with which a segment starts."""
    offset = 1 + (segment - 1) * MSS if segment else 0
    return (int(facts["isn"]) + offset) % 2**32


class Wire:
    """Packets of the trace as frames."""

    def __init__(self, facts: Facts) -> None:
        generator = random.Random(f"headers {facts['seed']}")
        self.facts = facts
        self.of_server = generator.randrange(2**32)
        self.first_id = {end: generator.randrange(2**16) for end in ("client", "server")}
        ends = {end: facts[end].rsplit(":", 1) for end in ("client", "server")}
        self.address = {end: socket.inet_aton(host) for end, (host, _) in ends.items()}
        self.port = {end: int(port) for end, (_, port) in ends.items()}
        limit = facts["window_limit_segments"] * MSS
        self.opening = min(limit, 0xFFFF)
        self.window = min(-(-limit // 2**7) if facts["window_scale"] else limit, 0xFFFF)

    def frame(self, end: str, number: int, of: Sent | Ack, here: bool) -> tuple[bytes, int]:
        """The headers of a packet of this end, and the length of the whole frame."""
        other = "server" if end == "client" else "client"
        if isinstance(of, Sent):
            tcp, payload = self._data(of)
        else:
            tcp, payload = self._ack(of), 0
        tcp = struct.pack("!HH", self.port[end], self.port[other]) + tcp
        length = len(tcp) + payload
        pseudo = self.address[end] + self.address[other] + struct.pack("!HH", 6, length)
        tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
        identification = (self.first_id[end] + number) % 2**16
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, identification, 0x4000, 64 if here else 61, 6, 0)
        ip += self.address[end] + self.address[other]
        ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
        return MAC[other] + MAC[end] + b"\x08\x00" + ip + tcp, 34 + length

    def _data(self, sent: Sent) -> tuple[bytes, int]:
        at = sequence(self.facts, sent.segment)
        if sent.segment == 0:
            return rest(at, 0, 0x02, 0xFFFF, self._options()), 0
        return rest(at, (self.of_server + 1) % 2**32, 0x10, 502), MSS

    def _ack(self, ack: Ack) -> bytes:
        upto = sequence(self.facts, ack.segment + 1)
        if ack.answers_syn:
            return rest(self.of_server, upto, 0x12, self.opening, self._options())
        told = b"".join(struct.pack("!II", *(sequence(self.facts, edge) for edge in block)) for block in ack.blocks)
        option = struct.pack("!BBBB", 1, 1, 5, 2 + len(told)) + told if told else b""
        return rest((self.of_server + 1) % 2**32, upto, 0x10, self.window, option)

    def _options(self) -> bytes:
        options = struct.pack("!BBH", 2, 4, MSS)
        if self.facts["sack_permitted"]:
            options += b"\x04\x02"
        if self.facts["window_scale"]:
            options += struct.pack("!BBBB", 1, 3, 3, self.facts["window_scale"])
        return options + b"\x01" * (-len(options) % 4)


def rest(seq: int, ack: int, flags: int, window: int, options: bytes = b"") -> bytes:
    """A TCP header behind its ports, with no checksum yet."""
    return struct.pack("!IIBBHHH", seq, ack, (20 + len(options)) << 2, flags, window, 0, 0) + options


def checksum(data: bytes) -> int:
    """The Internet checksum of an even number of octets. A payload of zeros would add nothing."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def write_captures(folder: Path, facts: Facts, reading: Reading) -> None:
    """Both ends' captures."""
    wire = Wire(facts)
    packets: dict[str, list[Sent] | list[Ack]] = {"client": reading.sent, "server": reading.acks}
    for place, near in (("sender", "client"), ("receiver", "server")):
        with gzip.GzipFile(folder / f"{place}.pcap.gz", "wb", mtime=0) as file:
            file.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, SNAP, 1))
            for time_s, end, number in reading.frames[place]:
                data, length = wire.frame(end, number, packets[end][number], end == near)
                seconds, micros = divmod(round(time_s * 1e6), 10**6)
                file.write(struct.pack("<IIII", seconds, micros, len(data), length) + data)


def make(out: Path, count: int, seed: int) -> None:
    """The flows that are not there yet."""
    generator = random.Random(seed)
    for facts in [draw(generator, f"simulated-{seed}-{number:02d}") for number in range(count)]:
        folder = out / facts["name"]
        if (folder / "truth.json").exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        reading = Reading(facts)
        write_captures(folder, facts, reading)
        with gzip.open(folder / "cwnd.csv.gz", "wt", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(["t_s", "cwnd_segments"])
            lines.writerows((f"{time_s:.5f}", f"{window:.3f}") for time_s, window in reading.windows)
        (folder / "truth.json").write_text(json.dumps(truth(facts, reading), indent=1) + "\n")


def main() -> int:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if shutil.which("ns") is None:
        parser.error("this needs `ns`, the simulator ns-2 (Debian: apt-get install ns2)")
    make(arguments.out, arguments.count, arguments.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
