"""What really happened to every packet: from the captures of both ends, the path's list, the kernel's tracepoints."""

from __future__ import annotations

import bisect
import csv
import gzip
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import packets_without

SYN = 2
CLOCK_S = 0.005  # the path may note a packet that much before the capture does
LOSS, RECOVERY = 4, 3  # of the kernel's congestion states

# what a segment below the highest sequence is in truth, and what may be said of it
ORIGINAL, AGAIN, LATE_AGAIN, COPY = "late original", "retransmission", "late retransmission", "copy by the path"
REORDERING, RETRANSMISSION, DUPLICATE, NOTHING = "reordering", "retransmission", "copy", "nothing"
BOTH = "reordering and retransmission"
WORDS = {"reordering": REORDERING, "retransmission": RETRANSMISSION, "duplicate": DUPLICATE}  # by kind of event
ACCEPTED = {
    ORIGINAL: {REORDERING},
    AGAIN: {RETRANSMISSION},
    LATE_AGAIN: {RETRANSMISSION, REORDERING, BOTH},
    COPY: {DUPLICATE},
}

LOST, ARRIVED = "lost", "not lost"

SENDER, MIDDLE, RECEIVER = "sender", "middle", "receiver"
QUEUE = "queue"  # the reason of what found it full, before which nobody captures


class Ends(NamedTuple):
    """A flow by its ports; `life` counts uses of the same ports."""

    sport: int
    dport: int
    life: int


@dataclass
class Sent:
    """A transmission."""

    number: int
    flow: Ends
    frame: int
    time_s: float
    seq: int
    left: int
    right: int
    ip_id: int | None
    again: bool
    resent_by: int | None = None
    """Frame of the next transmission of its first byte."""
    lost: bool = False
    reason: str = ""
    """Of the loss, as the path has it."""
    late_s: float | None = None
    """When it left a path that had held it back."""
    arrived: int = 0


class Miss(NamedTuple):
    """Something tcpfit says that is not so, or does not say."""

    question: str
    scenario: str
    place: str
    true: str
    said: str
    frame: int | None
    note: str


@dataclass
class Found:
    """Counts of one scenario; they add up."""

    receiver: dict[str, Counter[tuple[str, str]]] = field(default_factory=lambda: defaultdict(Counter))
    """By program: (truth, word) of the segments below the highest."""
    in_order: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By program: words about originals that came in order, all of them wrong."""
    sender: dict[str, Counter[tuple[str, str, str]]] = field(default_factory=lambda: defaultdict(Counter))
    """By program: (class, truth, word) of the transmissions."""
    segments: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By place and program: losses seen from there, by segment."""
    causes: dict[tuple[str, str, str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By flows, cause, place and program: paired, said, true."""
    counts: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By count and program: captures right, within tolerance, captures; sums said and true."""
    sure: dict[tuple[str, str, str, float], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By kind of event, place, reason and confidence of tcpfit's: said, right."""
    misses: list[Miss] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    """Where the truth does not agree with itself."""

    def add(self, other: Found) -> None:
        for name in ("receiver", "in_order", "sender", "segments", "causes", "counts", "sure"):
            mine, theirs = getattr(self, name), getattr(other, name)
            for key, counter in theirs.items():
                mine[key].update(counter)
        self.misses += other.misses
        self.doubts += other.doubts

    def weigh(self, place: str, event: dict[str, Any], said: int, right: int) -> None:
        """So many things that an event says, and how many of them are so."""
        key = (event["kind"], place, event["reason"] or "", event["confidence"])
        self.sure[key].update(said=said, right=right)


class Capture:
    """What the engine makes of a capture: every packet as it is, and what tcpfit says of the flows, which can be what
    it says of them `without` something that their packets tell."""

    def __init__(self, path: Path, src: str, without: list[str]) -> None:
        from tcpfit import engine

        self.path = path
        self.src = src
        tables = engine.frames(engine.analyze(str(path), segments=True))
        columns = ("frame", "time_ns", "src", "src_port", "dst_port", "seq", "flags", "payload", "ip_id", "tsval")
        self.data: list[tuple[Ends, int, float, int, int, int | None]] = []
        """Flow, frame, time, left and right edge as offsets from the initial sequence number, identification."""
        self.stamps: dict[int, int | None] = {}
        """Timestamp of each of these, by frame."""
        self.initial: dict[Ends, int] = {}
        lives: Counter[tuple[int, int]] = Counter()
        for frame, time_ns, source, sport, dport, seq, flags, payload, ip_id, stamp in (
            tables["segments"].select(columns).iter_rows()
        ):
            if source != src:
                continue
            ends = Ends(sport, dport, lives[sport, dport])
            if flags & SYN and self.initial.get(ends) != seq:
                lives[sport, dport] += 1
                ends = Ends(sport, dport, lives[sport, dport])
                self.initial[ends] = seq
            if payload:
                left = (seq - self.initial[ends]) % 2**32
                self.data.append((ends, frame, time_ns / 1e9, left, left + payload, ip_id))
                self.stamps[frame] = stamp
        if without:
            with TemporaryDirectory() as folder:
                packets_without.write(path, without, copy := Path(folder) / "copy.pcap")
                tables = engine.frames(engine.analyze(str(copy)))
        flows = tables["flows"].filter(tables["flows"]["src"] == src)
        seen: dict[tuple[int, int], list[int]] = defaultdict(list)
        for ends, *_ in self.data:
            if ends.life not in seen[ends.sport, ends.dport]:
                seen[ends.sport, ends.dport].append(ends.life)
        self.flows: dict[int, Ends] = {}
        for row in flows.sort("first_ns").iter_rows(named=True):
            ports = (row["src_port"], row["dst_port"])
            life = seen[ports].pop(0) if seen[ports] else 0
            self.flows[row["flow"]] = Ends(*ports, life)
        self.events = [row for row in tables["events"].iter_rows(named=True) if row["flow"] in self.flows]
        self.totals = {
            name: int(flows[name].sum()) for name in ("retransmitted_segments", "reordered_segments", "lost_segments")
        }


def transmissions(capture: Capture, mss: int) -> list[Sent]:
    """Every data segment that left the sender, super-segments cut into what the wire carried."""
    sent: list[Sent] = []
    highest: dict[Ends, int] = defaultdict(int)
    last: dict[tuple[Ends, int], Sent] = {}
    for flow, frame, time_s, left, right, ip_id in capture.data:
        edges = range(left, right, mss)
        for k, edge in enumerate(edges):
            number = None if ip_id is None else (ip_id + k) % 65536
            end = min(edge + mss, right)
            seq = (capture.initial[flow] + edge) % 2**32
            one = Sent(len(sent), flow, frame, time_s, seq, edge, end, number, edge < highest[flow])
            if earlier := last.get((flow, edge)):
                earlier.resent_by = frame
            last[flow, edge] = one
            sent.append(one)
        highest[flow] = max(highest[flow], right)
    return sent


def mark_dropped(folder: Path, truth: dict[str, Any], sent: list[Sent], found: Found) -> None:
    """What the path's list says was dropped, or held back until when: the latest transmission before that moment."""
    index: dict[tuple[int, int, int], list[Sent]] = defaultdict(list)
    for one in sent:
        index[one.flow.sport, one.flow.dport, one.seq].append(one)
    dropped = 0
    for row in rows(folder / "path.csv.gz"):
        if row["action"] not in ("drop", "late") or row["dir"] != "f" or int(row["len"]) == 0:
            continue
        ip_id, time_s, seq = int(row["ip_id"]), float(row["time"]), int(row["seq"])
        near = [
            one
            for one in index[int(row["sport"]), int(row["dport"]), seq]
            if not one.lost and one.time_s < time_s + CLOCK_S and (ip_id < 0 or one.ip_id == ip_id)
        ]
        if not near or time_s - near[-1].time_s > 1:
            what = "drop" if row["action"] == "drop" else "late arrival"
            found.doubts.append(f"{folder.name}: a {what} of {seq} at {time_s} is not in the sender's capture")
        elif row["action"] == "late":
            near[-1].late_s = float(row["out_time"])
        else:
            near[-1].lost = True
            near[-1].reason = row["reason"]
            dropped += 1
    if dropped != (counted := truth["summary"]["data_pkts_dropped"]):
        found.doubts.append(f"{folder.name}: {counted} segments were dropped, {dropped} are in the capture")


def mark_simulated(folder: Path, truth: dict[str, Any], sent: list[Sent], found: Found) -> None:
    """The simulator's drops, the transmission nearest in time."""
    index: dict[int, list[Sent]] = defaultdict(list)
    for one in sent:
        index[one.seq].append(one)
    for drop in truth["drops"]:
        near = [one for one in index[drop["seq"]] if not one.lost]
        if drop["segment"] == 0:
            continue  # the SYN
        nearest = min(near, key=lambda one: abs(one.time_s - drop["t_send"]), default=None)
        if nearest is None or abs(nearest.time_s - drop["t_send"]) > CLOCK_S:
            found.doubts.append(f"{folder.name}: a drop of {drop['seq']} is not in the sender's capture")
        else:
            nearest.lost = True


class Arrival(NamedTuple):
    """A data segment at the receiver."""

    frame: int
    flow: Ends
    time_s: float
    left: int
    right: int
    sent: Sent
    copy: bool


def that_passed(sent: list[Sent], behind: bool) -> list[Sent]:
    """The transmissions as a place inside the path has them, all but the queue's losses being before or `behind` it."""
    return [replace(one, lost=one.lost and not (behind and one.reason != QUEUE), arrived=0) for one in sent]


def match(sent: list[Sent], sender: Capture, capture: Capture, name: str, found: Found) -> list[Arrival]:
    """Which transmission each segment at the receiver is."""

    def same(one: Sent, frame: int, time_s: float, ip_id: int | None) -> bool:
        stamps = sender.stamps[one.frame], capture.stamps[frame]
        return one.ip_id == ip_id and one.time_s < time_s + CLOCK_S and stamps[0] == stamps[1]

    index: dict[tuple[Ends, int], list[Sent]] = defaultdict(list)
    for one in sent:
        if not one.lost:
            index[one.flow, one.left].append(one)
    arrivals = []
    unmatched = 0
    for flow, frame, time_s, left, right, ip_id in capture.data:
        near = [one for one in index[flow, left] if same(one, frame, time_s, ip_id)]
        if not near:
            unmatched += 1
            continue
        # of those that are alike, the one that the path held until now, or else the first that it did not hold
        held = [one for one in near if one.late_s is not None and abs(one.late_s - time_s) < CLOCK_S]
        near = held or [one for one in near if one.late_s is None] or near
        one = next((one for one in near if not one.arrived), near[-1])
        arrivals.append(Arrival(frame, flow, time_s, left, right, one, one.arrived > 0))
        one.arrived += 1
    under_way = sum(not one.lost and not one.arrived for one in sent)
    if unmatched:
        found.doubts.append(f"{name}: segments at the receiver that match no transmission: {unmatched}")
    if under_way:
        found.doubts.append(f"{name}: neither dropped nor seen at the receiver (under way at the end): {under_way}")
    return arrivals


def rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as lines:
        yield from csv.DictReader(lines)


CAUSES = {"timeout": "retransmission timeout", "tail_loss_probe": "tail loss probe", "recovery": "fast recovery"}
Times = dict[tuple[int, int], list[float]]


def from_kernel(folder: Path, truth: dict[str, Any], found: Found) -> dict[str, Times]:
    """Times of the kernel's timeouts, probes and recoveries by ports of the flow."""
    times: dict[str, Times] = {kind: defaultdict(list) for kind in CAUSES}
    state: dict[tuple[int, int], int] = defaultdict(int)
    ports = {(flow["sport"], flow["dport"]) for flow in truth["flows"]}
    for row in rows(folder / "kernel_events.csv.gz"):
        one, at = (int(row["sport"]), int(row["dport"])), float(row["time"])
        if one not in ports:
            continue
        if row["event"] == "tcp_cong_state_set":
            state[one] = int(row["value"])
            if state[one] in (LOSS, RECOVERY):
                times["timeout" if state[one] == LOSS else "recovery"][one].append(at)
        elif state[one] < RECOVERY:
            times["tail_loss_probe"][one].append(at)  # sent again, and not in recovery
    summary = truth["summary"]
    counters = ("timeout", "timeouts"), ("recovery", "fast_recovery_episodes"), ("tail_loss_probe", "tail_loss_probes")
    for kind, counter in counters:
        number = sum(map(len, times[kind].values()))
        if number != summary[counter]:
            found.doubts.append(f"{folder.name}: {number} {counter} in the tracepoints, {summary[counter]} counted")
    return times


def as_it_arrives(times: Times, traceless: set[float], arrivals: list[Arrival]) -> Times:
    """Times at the sender, later by the way of the next transmission that arrived; without one there is no trace."""
    ways: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for arrival in arrivals:
        if not arrival.copy:
            ways[arrival.flow.sport, arrival.flow.dport].append((arrival.sent.time_s, arrival.time_s))
    shifted: Times = {}
    for one, of in times.items():
        way = sorted(ways[one])
        left = [time_s for time_s in of if time_s not in traceless]
        at = [bisect.bisect_left(way, (time_s - CLOCK_S,)) for time_s in left]
        shifted[one] = [time_s + way[n][1] - way[n][0] for time_s, n in zip(left, at, strict=True) if n < len(way)]
    return shifted
