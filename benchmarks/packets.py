"""Packet by packet against recorded truth: `python benchmarks/packets.py [--markdown docs/packets.md] [TRACES ...]`.

TRACES holds a folder a scenario, with captures from both ends and what really happened (see its README). tcpfit, tshark
and tcptrace read the same captures; programs that are not installed are left out and named. The truth of a packet is
made from the captures of both ends and the path's own list, never from what any of the programs says.
"""

from __future__ import annotations

import argparse
import bisect
import csv
import gzip
import json
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version as distribution
from ipaddress import ip_address
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"
TRACES = (SHARED / "traces", SHARED / "traces-ns2")
SYN = 2
CLOCK_S = 0.005  # the path may note a packet that much before the capture does
LOSS, RECOVERY = 4, 3  # of the kernel's congestion states
SHOWN = 4  # frames named of a class of misses

TSHARK, TCPTRACE, TCPFIT = "tshark", "tcptrace", "tcpfit"
TSHARK_LOOSE = "tshark, out of order = sent again"
FLAGS = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "lost_segment")

# what a segment below the highest sequence is in truth, and what may be said of it
ORIGINAL, AGAIN, LATE_AGAIN, COPY = "late original", "retransmission", "late retransmission", "copy by the path"
REORDERING, RETRANSMISSION, DUPLICATE, NOTHING = "reordering", "retransmission", "copy", "nothing"
BOTH = "reordering and retransmission"
ACCEPTED = {
    ORIGINAL: {REORDERING},
    AGAIN: {RETRANSMISSION},
    LATE_AGAIN: {RETRANSMISSION, REORDERING, BOTH},
    COPY: {DUPLICATE},
}
LOST, ARRIVED = "lost", "not lost"

TARGETS = {"made": 0.97, "wrong": 0.005, "fate": 0.99, "cause": 0.98}

HEAD = """# Packet by packet

Made by `python benchmarks/packets.py --markdown docs/packets.md` with tcpfit {tcpfit}; do not edit. {programs}

Captures of {scenarios} scenarios, each taken at both ends: transfers between real kernels over an emulated path that
noted every packet it dropped, held back or copied, and simulator runs. [Accuracy](accuracy.md) compares their counts;
here every packet is compared. Nothing was tuned for this page.

## Definitions

- A **transmission** is a data segment that left the sender; a super-segment counts as the segments that the wire
  carried. It is *lost* if the path's list says that it was dropped. What left the sender and is neither dropped nor
  seen at the receiver was under way when the capture ended; it counts as not lost.
- The capture at the receiver is matched with the transmissions by ports, sequence number and IP identification (over
  IPv6, which has none, by the order of arrival of the copies of a segment). What arrives a second time is a *copy by
  the path*.
- **At the receiver** the question is what a segment is that begins below the highest sequence number that has come. A
  *late original* was sent once and overtaken: right is reordering. A *retransmission* carries bytes that had been sent
  before: right is retransmission. A *late retransmission* was also overtaken by something sent after it: either word is
  right. Of a copy by the path only "copy" is right. A decision is *made* if there is a word, *wrong* if it is not the
  right one; two words that contradict each other are wrong. A word about an original that came in order, of which
  nobody asked, is *stray*; strays count as wrong in the first table.
- **At the sender** the question is whether a transmission was lost. *In question* are the transmissions whose bytes
  were sent more than once, or that were lost; the others nobody doubts.
- **Losses seen from the receiver**: as the transmission is not in the capture, losses are counted by segment: how many
  transmissions of it were lost, and how many a program says. What is too few is missed, what is too many invented.
- **Causes**: expiries of the retransmission timer, tail loss probes and entries into fast recovery, from the kernel's
  tracepoints (they agree with its counters) or from the simulator. An event that is said and one that happened are
  paired if they are at most a round trip apart (the mean smoothed one of the flow), nearest first, each in one pair at
  most. At the receiver an event is put at the time when it can show there: as much later as the next transmission that
  arrived was under way. Where none arrived any more it leaves no trace there and is not asked for; nor is a timer of
  the first SYN, before which nothing had come. *Precision* is the share of the said events that are in a pair,
  *recall* that of the true ones. Fast retransmits of Tahoe, which has no fast recovery, are left out.
- **tshark** flags packets (`tcp.analysis.*`). Retransmission, fast and spurious retransmission are read as
  retransmission, out-of-order as reordering; it has no word for a copy. At the sender its flags are read thus: a
  transmission was lost if the next one of its bytes is flagged retransmission or fast retransmission, and not spurious.
  It often calls a quick retransmission out-of-order, which at a sender cannot be: a second row reads that as
  retransmission. `lost_segment` is read as: every segment of the hole was lost. Of causes it names fast retransmission
  only; the first in a round trip is read as an entry into fast recovery.
- **tcptrace** has counts a flow (`-l`: "rexmt data pkts", "outoforder pkts") and says nothing of a packet. They are
  compared with the retransmissions sent and with the late segments.
"""


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
    segments: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By program: losses seen from the receiver, by segment."""
    causes: dict[tuple[str, str, str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By flows, cause, place and program: paired, said, true."""
    counts: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By count and program: captures right, within tolerance, captures; sums said and true."""
    misses: list[Miss] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    """Where the truth does not agree with itself."""

    def add(self, other: Found) -> None:
        for name in ("receiver", "in_order", "sender", "segments", "causes", "counts"):
            mine, theirs = getattr(self, name), getattr(other, name)
            for key, counter in theirs.items():
                mine[key].update(counter)
        self.misses += other.misses
        self.doubts += other.doubts


class Capture:
    """What the engine makes of a capture: every packet as it is, and what tcpfit says of the flows."""

    def __init__(self, path: Path, src: str) -> None:
        from tcpfit import engine

        self.path = path
        self.src = src
        tables = engine.frames(engine.analyze(str(path), segments=True))
        columns = ("frame", "time_ns", "src", "dst", "src_port", "dst_port", "seq", "flags", "payload", "ip_id")
        self.data: list[tuple[Ends, int, float, int, int, int | None]] = []
        """Flow, frame, time, left and right edge as offsets from the initial sequence number, identification."""
        self.initial: dict[Ends, int] = {}
        lives: Counter[tuple[int, int]] = Counter()
        for frame, time_ns, source, _, sport, dport, seq, flags, payload, ip_id in (
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


def main() -> int:
    """Compare, print the tables, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, nargs="*", default=list(TRACES), metavar="TRACES")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the page too")
    parser.add_argument("--misses", type=Path, metavar="FILE", help="write every miss of tcpfit, as CSV")
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    folders = [path.parent for root in arguments.traces for path in sorted(root.glob("*/truth.json"))]
    folders = [folder for folder in folders if arguments.only in folder.name]
    if not folders:
        print(f"no scenario in {', '.join(map(str, arguments.traces))}", file=sys.stderr)
        return 2
    total = Found()
    built = engine_bytes()
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        for number, found in enumerate(pool.map(compare, folders), 1):
            print(f"{number} of {len(folders)}: {folders[number - 1].name}", file=sys.stderr)
            total.add(found)
    if engine_bytes() != built:
        print("the engine was rebuilt in the meantime: nothing is printed or written", file=sys.stderr)
        return 1
    text = page(total, len(folders))
    print(text)
    if arguments.misses:
        with arguments.misses.open("w", newline="") as out:
            csv.writer(out).writerows([Miss._fields, *total.misses])
    if arguments.markdown:
        from tcpfit.analysis import AtomicFile

        with AtomicFile(arguments.markdown) as partial:
            partial.write_text(text)
    return 0


def engine_bytes() -> bytes:
    """The engine's library, to know whether it changed."""
    from tcpfit.engine import _engine

    return Path(str(vars(_engine)["__file__"])).read_bytes()


def compare(folder: Path) -> Found:
    """Everything of one scenario."""
    truth = json.loads((folder / "truth.json").read_text())
    simulated = "simulator" in truth
    src = truth["client"].rsplit(":", 1)[0] if simulated else truth["flows"][0]["src"]
    mss = truth["mss"] if simulated else truth["summary"]["mss"]
    found = Found()
    sender, receiver = (Capture(next(folder.glob(f"{place}.pcap*")), src) for place in ("sender", "receiver"))
    sent = transmissions(sender, mss)
    (mark_simulated if simulated else mark_dropped)(folder, truth, sent, found)
    arrivals = match(sent, receiver, folder.name, found)
    at_receiver(folder.name, sent, arrivals, receiver, found)
    at_sender(folder.name, sent, sender, found)
    by_segment(folder.name, sent, receiver, found)
    causes(folder, truth, simulated, sender, receiver, arrivals, found)
    by_count(sent, arrivals, sender, receiver, found)
    return found


# The truth.


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
    """What the path's list says was dropped, the latest transmission before that moment."""
    index: dict[tuple[int, int, int], list[Sent]] = defaultdict(list)
    for one in sent:
        index[one.flow.sport, one.flow.dport, one.seq].append(one)
    dropped = 0
    for row in rows(folder / "path.csv.gz"):
        if row["action"] != "drop" or row["dir"] != "f" or int(row["len"]) == 0:
            continue
        ip_id, time_s, seq = int(row["ip_id"]), float(row["time"]), int(row["seq"])
        near = [
            one
            for one in index[int(row["sport"]), int(row["dport"]), seq]
            if not one.lost and one.time_s < time_s + CLOCK_S and (ip_id < 0 or one.ip_id == ip_id)
        ]
        if not near or time_s - near[-1].time_s > 1:
            found.doubts.append(f"{folder.name}: a drop of {seq} at {time_s} is not in the sender's capture")
            continue
        near[-1].lost = True
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


def match(sent: list[Sent], capture: Capture, name: str, found: Found) -> list[Arrival]:
    """Which transmission each segment at the receiver is."""
    index: dict[tuple[Ends, int], list[Sent]] = defaultdict(list)
    for one in sent:
        if not one.lost:
            index[one.flow, one.left].append(one)
    arrivals = []
    unmatched = 0
    for flow, frame, time_s, left, right, ip_id in capture.data:
        near = [one for one in index[flow, left] if one.ip_id == ip_id and one.time_s < time_s + CLOCK_S]
        if not near:
            unmatched += 1
            continue
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


# The questions.


def at_receiver(name: str, sent: list[Sent], arrivals: list[Arrival], capture: Capture, found: Found) -> None:
    """Reordering or retransmission?"""
    highest: dict[Ends, int] = defaultdict(int)
    newest: dict[Ends, int] = defaultdict(lambda: -1)
    true: dict[int, str] = {}
    originals = set()
    for arrival in arrivals:
        late = arrival.sent.number < newest[arrival.flow]
        if arrival.left < highest[arrival.flow]:
            if arrival.copy:
                true[arrival.frame] = COPY
            elif not arrival.sent.again:
                true[arrival.frame] = ORIGINAL
            else:
                true[arrival.frame] = LATE_AGAIN if late else AGAIN
        elif not arrival.sent.again:
            originals.add(arrival.frame)
        highest[arrival.flow] = max(highest[arrival.flow], arrival.right)
        newest[arrival.flow] = max(newest[arrival.flow], arrival.sent.number)
    said = words(capture)
    by_frame = {arrival.frame: arrival.sent for arrival in arrivals}
    for program, says in said.items():
        for frame, truth in true.items():
            word = says.get(frame, NOTHING)
            found.receiver[program][truth, word] += 1
            if program == TCPFIT and word not in ACCEPTED[truth]:
                note = f"sent as frame {by_frame[frame].frame} of the sender's capture"
                found.misses.append(Miss("reordering or retransmission", name, "receiver", truth, word, frame, note))
        for frame in originals & set(says):
            found.in_order[program][says[frame]] += 1
            if program == TCPFIT:
                note = "in order"
                found.misses.append(
                    Miss("reordering or retransmission", name, "receiver", note, says[frame], frame, "")
                )


def words(capture: Capture) -> dict[str, dict[int, str]]:
    """By program and frame, the word for the segment."""
    kinds: dict[int, set[str]] = defaultdict(set)
    for event in capture.events:
        if event["frame"] is not None and event["kind"] in ("reordering", "retransmission", "duplicate"):
            kinds[event["frame"]].add(event["kind"])
    names = {"duplicate": DUPLICATE}
    said = {TCPFIT: {f: " and ".join(sorted(names.get(kind, kind) for kind in of)) for f, of in kinds.items()}}
    if flags := tshark(capture):
        said[TSHARK] = {}
        for frame, of in flags.items():
            if "out_of_order" in of:
                said[TSHARK][frame] = REORDERING
            elif {"retransmission", "fast_retransmission", "spurious_retransmission"} & of:
                said[TSHARK][frame] = RETRANSMISSION
    return said


_flags: dict[Path, dict[int, set[str]]] = {}


def tshark(capture: Capture) -> dict[int, set[str]] | None:
    """By frame of the data sender, tshark's flags; None if it is not installed."""
    if absent(TSHARK):
        return None
    if capture.path not in _flags:
        fields = [part for flag in FLAGS for part in ("-e", f"tcp.analysis.{flag}")]
        mine = f"tcp.len > 0 && ip{'v6' if ':' in capture.src else ''}.src == {capture.src}"
        command = ["tshark", "-n", "-r", str(capture.path), "-Y", mine, "-T", "fields", "-e", "frame.number", *fields]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        flags = {}
        for line in output.splitlines():
            frame, *values = line.split("\t")
            flags[int(frame)] = {flag for flag, value in zip(FLAGS, values, strict=True) if value}
        if len(flags) != len(capture.data):
            raise SystemExit(f"{capture.path}: tshark sees {len(flags)} data segments, tcpfit {len(capture.data)}")
        _flags[capture.path] = flags
    return _flags[capture.path]


def at_sender(name: str, sent: list[Sent], capture: Capture, found: Found) -> None:
    """Lost or not?"""
    lost: dict[int, list[tuple[int, int]]] = defaultdict(list)
    nowhere = 0
    for event in capture.events:
        if event["kind"] == "loss":
            if event["frame"] is None:
                nowhere += event["segments"]
            else:
                lost[event["frame"]].append((event["left"], event["right"]))
    if nowhere:
        found.sender[TCPFIT]["not in the capture", ARRIVED, LOST] += nowhere
        found.misses += [Miss("lost or not", name, "sender", ARRIVED, LOST, None, "not in the capture")] * nowhere
    flags = tshark(capture)
    copies = Counter((one.flow, one.left) for one in sent)
    for one in sent:
        repeated = copies[one.flow, one.left] > 1 or one.again or one.lost
        kind = ("sent again" if one.again else "first") if repeated else "sent once, arrived"
        true = LOST if one.lost else ARRIVED
        said = {TCPFIT: any(left < one.right and one.left < right for left, right in lost.get(one.frame, ()))}
        if flags is not None:
            of = flags[one.resent_by] if one.resent_by is not None else set()
            again = bool(of & {"retransmission", "fast_retransmission"}) and "spurious_retransmission" not in of
            said[TSHARK] = again and "out_of_order" not in of
            said[TSHARK_LOOSE] = again or ("out_of_order" in of and "spurious_retransmission" not in of)
        for program, yes in said.items():
            word = LOST if yes else ARRIVED
            found.sender[program][kind, true, word] += 1
            if program == TCPFIT and word != true:
                note = f"{kind}; next sent as frame {one.resent_by}; offset {one.left}"
                found.misses.append(Miss("lost or not", name, "sender", true, word, one.frame, note))


def by_segment(name: str, sent: list[Sent], capture: Capture, found: Found) -> None:
    """Losses seen from the receiver."""
    edges: dict[Ends, list[int]] = defaultdict(list)
    true: Counter[tuple[Ends, int]] = Counter()
    for one in sent:
        if not one.again:
            edges[one.flow].append(one.left)
        if one.lost:
            true[one.flow, one.left] += 1

    def within(flow: Ends, left: int, right: int) -> list[tuple[Ends, int]]:
        of = edges[flow]
        first = max(0, bisect.bisect_right(of, left) - 1)
        return [(flow, edge) for edge in of[first : bisect.bisect_left(of, right)]]

    said: dict[str, Counter[tuple[Ends, int]]] = {TCPFIT: Counter()}
    for event in capture.events:
        if event["kind"] == "loss":
            said[TCPFIT].update(within(capture.flows[event["flow"]], event["left"], event["right"]))
    if (flags := tshark(capture)) is not None:
        said[TSHARK] = Counter()
        highest: dict[Ends, int] = defaultdict(lambda: 1)
        for flow, frame, _, left, right, _ in capture.data:
            if "lost_segment" in flags[frame]:
                said[TSHARK].update(within(flow, highest[flow], left))
            highest[flow] = max(highest[flow], right)
    for program, counted in said.items():
        missed, invented = true - counted, counted - true
        found.segments[program].update(true=true.total(), missed=missed.total(), invented=invented.total())
        if program == TCPFIT:
            for wrong, truth, word in ((missed, LOST, ARRIVED), (invented, ARRIVED, LOST)):
                for (flow, left), number in wrong.items():
                    note = f"offset {left}" + (f" of port {flow.dport}" if len(edges) > 1 else "")
                    miss = Miss("losses seen from the receiver", name, "receiver", truth, word, None, note)
                    found.misses += [miss] * number


CAUSES = {"timeout": "retransmission timeout", "tail_loss_probe": "tail loss probe", "recovery": "fast recovery"}
Times = dict[tuple[int, int], list[float]]


def causes(
    folder: Path,
    truth: dict[str, Any],
    simulated: bool,
    sender: Capture,
    receiver: Capture,
    arrivals: list[Arrival],
    found: Found,
) -> None:
    """Timeouts, probes and recoveries, paired in time."""
    if simulated:
        ports = (sender.data[0][0].sport, sender.data[0][0].dport)
        happened: dict[str, Times] = {"timeout": {ports: [event["t"] for event in truth["timeouts"]]}}
        of_syn = {event["t"] for event in truth["timeouts"] if event["segment"] == 0}
        happened["tail_loss_probe"] = {}
        if truth["variant"].lower() != "tahoe":
            happened["recovery"] = {ports: [event["t"] for event in truth["fast_retransmits"]]}
        rtt_s = truth["measured_whole"]["rtt_mean"]
        flows = "one flow"
    else:
        happened, of_syn = from_kernel(folder, truth, found), set()
        polled = folder / "tcpinfo.csv.gz"
        smoothed = [int(row["rtt_us"]) / 1e6 for row in rows(polled) if int(row["unacked"])] if polled.exists() else []
        rtt_s = max(truth["summary"]["base_rtt_ms"] / 1e3, fmean(smoothed) if smoothed else 0)
        flows = "one flow" if truth["summary"]["flows"] == 1 else "several flows"
    for place, capture in (("sender", sender), ("receiver", receiver)):
        start_s = capture.data[0][2]
        for kind, at_sender_s in happened.items():
            true = at_sender_s if place == "sender" else as_it_arrives(at_sender_s, of_syn, arrivals)
            said: Times = defaultdict(list)
            frames: dict[tuple[tuple[int, int], float], int | None] = {}
            for event in capture.events:
                if event["kind"] == kind:
                    ends = capture.flows[event["flow"]]
                    at = event["time_ns"] / 1e9
                    said[ends.sport, ends.dport].append(at)
                    frames[(ends.sport, ends.dport), at] = event["frame"]
            by_program = {TCPFIT: said}
            if kind == "recovery" and (flags := tshark(capture)) is not None:
                by_program[TSHARK] = episodes(capture, flags, rtt_s)
            for program, times in by_program.items():
                counter = found.causes[flows, CAUSES[kind], place, program]
                for one in set(true) | set(times):
                    alone, missed = unpaired(times.get(one, []), true.get(one, []), rtt_s)
                    counter["said"] += len(times.get(one, []))
                    counter["true"] += len(true.get(one, []))
                    counter["paired"] += len(true.get(one, [])) - len(missed)
                    if program != TCPFIT:
                        continue
                    question = CAUSES[kind]
                    found.misses += [
                        Miss(question, folder.name, place, "none", "one", frames[one, at], f"at {at - start_s:.4f} s")
                        for at in alone
                    ]
                    found.misses += [
                        Miss(question, folder.name, place, "one", "none", None, f"at {at - start_s:.4f} s")
                        for at in missed
                    ]


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


def episodes(capture: Capture, flags: dict[int, set[str]], rtt_s: float) -> Times:
    """tshark's fast retransmissions, the first of each round trip."""
    times: Times = defaultdict(list)
    for flow, frame, time_s, *_ in capture.data:
        of = times[flow.sport, flow.dport]
        if "fast_retransmission" in flags[frame] and (not of or time_s - of[-1] > rtt_s):
            of.append(time_s)
    return times


def unpaired(said: Sequence[float], true: Sequence[float], apart_s: float) -> tuple[list[float], list[float]]:
    """Events of either list that have no partner in the other; the nearest pairs are made first."""
    pairs = [(abs(a - b), i, j) for i, a in enumerate(said) for j, b in enumerate(true) if abs(a - b) <= apart_s]
    left, right = set(range(len(said))), set(range(len(true)))
    for _, i, j in sorted(pairs):
        if i in left and j in right:
            left.remove(i)
            right.remove(j)
    return [said[i] for i in sorted(left)], [true[j] for j in sorted(right)]


def by_count(sent: list[Sent], arrivals: list[Arrival], sender: Capture, receiver: Capture, found: Found) -> None:
    """Counts a capture, which is all that tcptrace has."""
    again = sum(one.again for one in sent)
    late = 0
    newest: dict[Ends, int] = defaultdict(lambda: -1)
    for arrival in arrivals:
        late += not arrival.copy and arrival.sent.number < newest[arrival.flow]
        newest[arrival.flow] = max(newest[arrival.flow], arrival.sent.number)
    said: dict[tuple[str, str], int] = {}
    resent, overtaken = "retransmissions, at the sender", "late segments, at the receiver"
    said[resent, TCPFIT] = sender.totals["retransmitted_segments"]
    said[overtaken, TCPFIT] = receiver.totals["reordered_segments"]
    if (flags := tshark(sender)) is not None:
        strict = {"retransmission", "fast_retransmission", "spurious_retransmission"}
        said[resent, TSHARK] = sum(bool(of & strict) for of in flags.values())
        said[resent, TSHARK_LOOSE] = sum(bool(of & (strict | {"out_of_order"})) for of in flags.values())
        said[overtaken, TSHARK] = sum("out_of_order" in of for of in (tshark(receiver) or {}).values())
    if not absent(TCPTRACE):
        said[resent, TCPTRACE] = sum(tcptrace(sender))
        said[overtaken, TCPTRACE] = tcptrace(receiver)[1]
    for (what, program), number in said.items():
        true = again if what == resent else late
        counter = found.counts[what, program]
        counter.update(captures=1, said=number, true=true, right=number == true)
        counter.update(near=abs(number - true) <= max(1, 0.05 * true), off=abs(number - true))


def absent(program: str) -> bool:
    """The program cannot be run here; tcptrace needs editcap, to read what is compressed or pcapng."""
    return not all(map(shutil.which, (program, "editcap") if program == TCPTRACE else (program,)))


def tcptrace(capture: Capture) -> tuple[int, int]:
    """Retransmitted and out-of-order packets of the data sender, summed over its flows."""
    with TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.pcap"
        subprocess.run(["editcap", "-F", "nsecpcap", str(capture.path), str(plain)], check=True, capture_output=True)
        command = ["tcptrace", "-n", "-l", str(plain)]
        output = subprocess.run(command, capture_output=True, text=True, check=True, errors="replace").stdout
    counts = [0, 0]
    hosts: list[str] = []
    for line in output.splitlines():
        if line.startswith("TCP connection "):
            hosts = []
        elif host := re.match(r"\s+host \S+:\s+(\S+):\d+$", line):
            hosts.append(str(ip_address(host[1])))
        for n, label in enumerate(("rexmt data pkts:", "outoforder pkts:")):
            if label in line:
                counts[n] += int(re.findall(rf"{label}\s+(\d+)", line)[hosts.index(str(ip_address(capture.src)))])
    return counts[0], counts[1]


# The page.


def page(found: Found, scenarios: int) -> str:
    """All tables, as Markdown."""
    missing = [name for name in (TSHARK, TCPTRACE) if absent(name)]
    said = [f"`{name}` {version(name)}" for name in (TSHARK, TCPTRACE) if name not in missing]
    programs = f"Beside it: {', '.join(said)}." if said else ""
    if missing:
        programs += f" Not installed and left out: {', '.join(missing)}."
    sections = [
        HEAD.format(tcpfit=distribution("tcpfit"), scenarios=scenarios, programs=programs.strip()),
        summary(found),
        receiver_tables(found),
        sender_tables(found),
        segment_table(found),
        cause_table(found),
        count_table(found),
        miss_tables(found),
    ]
    if found.doubts:
        lines = "\n".join(f"- {doubt}" for doubt in found.doubts)
        sections.append(f"## Where the truth is not whole\n\n{lines}\n")
    return "\n".join(sections)


def share(part: float, whole: float) -> str:
    """Per cent, in the figures that tell 99.9 from 99.99."""
    return f"{part / whole:.2%}" if whole else "-"


def made_and_wrong(counts: Counter[tuple[str, str]]) -> tuple[int, int, int]:
    """Segments asked about, words, wrong words."""
    made = {key: number for key, number in counts.items() if key[1] != NOTHING}
    wrong = sum(number for (true, word), number in made.items() if word not in ACCEPTED[true])
    return counts.total(), sum(made.values()), wrong


def right_fates(counts: Counter[tuple[str, str, str]], kinds: Callable[[str], bool]) -> tuple[int, int]:
    """Transmissions asked about, and right answers."""
    of = {key: number for key, number in counts.items() if kinds(key[0])}
    return sum(of.values()), sum(number for (_, true, word), number in of.items() if true == word)


def everyone(_: str) -> bool:
    return True


def in_question(kind: str) -> bool:
    return kind != "sent once, arrived"


def summary(found: Found) -> str:
    """tcpfit against the targets."""
    table: list[tuple[str, ...]] = [("question", "asked", "figure", "target", "tcpfit", "reached")]

    def line(question: str, asked: int, figure: str, value: float, target: float, most: bool = False) -> None:
        reached = value <= target if most else value >= target
        bound = f"{'<=' if most else '>='} {target:.1%}"
        table.append((question, f"{asked:,}", figure, bound, f"{value:.2%}", "yes" if reached else "no"))

    asked, made, wrong = made_and_wrong(found.receiver[TCPFIT])
    if asked:
        line("reordering or retransmission, at the receiver", asked, "made", made / asked, TARGETS["made"])
        stray = found.in_order[TCPFIT].total()
        line("", asked + stray, "wrong", (wrong + stray) / (asked + stray), TARGETS["wrong"], most=True)
    for label, kinds in (("lost or not, at the sender", everyone), ("the same, in question", in_question)):
        asked, right = right_fates(found.sender[TCPFIT], kinds)
        if asked:
            line(label, asked, "right", right / asked, TARGETS["fate"])
    for (flows, cause, place, program), counter in sorted(found.causes.items()):
        alone = found.causes["one flow", cause, place, program]
        if program == TCPFIT and (flows == "one flow" or not alone["true"]):
            of = "" if flows == "one flow" else f", {flows}"
            for figure, whole in (("precision", counter["said"]), ("recall", counter["true"])):
                if whole:
                    line(f"{cause}, at the {place}{of}", whole, figure, counter["paired"] / whole, TARGETS["cause"])
    return f"## Targets\n\n{aligned(table, left=1)}\n"


def receiver_tables(found: Found) -> str:
    table: list[tuple[str, ...]] = [("program", "asked", "made", "wrong", "right", "stray")]
    for program, counts in found.receiver.items():
        asked, made, wrong = made_and_wrong(counts)
        stray = str(found.in_order[program].total())
        row = (program, f"{asked:,}", share(made, asked), share(wrong, asked), share(made - wrong, asked), stray)
        table.append(row)
    text = f"## At the receiver: reordering or retransmission\n\n{aligned(table)}\n"
    for program, counts in found.receiver.items():
        columns = sorted({word for _, word in counts})
        rows: list[tuple[str, ...]] = [("truth", *columns)]
        rows += [(true, *(f"{counts[true, word]:,}" for word in columns)) for true in ACCEPTED]
        text += f"\n{program} says:\n\n{aligned(rows)}\n"
    return text


def sender_tables(found: Found) -> str:
    table: list[tuple[str, ...]] = [("program", "right of all", "right in question", "lost: precision", "recall")]
    for program, counts in found.sender.items():
        both = [
            share(right, asked) for asked, right in (right_fates(counts, kinds) for kinds in (everyone, in_question))
        ]
        hit = sum(number for (_, true, word), number in counts.items() if true == word == LOST)
        said = sum(number for (_, _, word), number in counts.items() if word == LOST)
        true = sum(number for (_, truth, _), number in counts.items() if truth == LOST)
        table.append((program, *both, share(hit, said), share(hit, true)))
    text = f"## At the sender: lost or not\n\n{aligned(table)}\n"
    for program, counts in found.sender.items():
        rows: list[tuple[str, ...]] = [("transmission", "truth", LOST, ARRIVED)]
        for kind, truth in sorted({(kind, truth) for kind, truth, _ in counts}):
            rows.append((kind, truth, *(f"{counts[kind, truth, word]:,}" for word in (LOST, ARRIVED))))
        text += f"\n{program} says:\n\n{aligned(rows, left=2)}\n"
    return text


def segment_table(found: Found) -> str:
    table: list[tuple[str, ...]] = [("program", "lost", "missed", "invented", "precision", "recall")]
    for program, counter in found.segments.items():
        hit = counter["true"] - counter["missed"]
        numbers = [f"{counter[key]:,}" for key in ("true", "missed", "invented")]
        table.append((program, *numbers, share(hit, hit + counter["invented"]), share(hit, counter["true"])))
    return f"## Losses seen from the receiver\n\n{aligned(table)}\n"


def cause_table(found: Found) -> str:
    table: list[tuple[str, ...]] = [
        ("flows", "cause", "capture", "program", "happened", "said", "paired", "precision", "recall")
    ]
    for (flows, cause, place, program), counter in sorted(found.causes.items()):
        numbers = [f"{counter[key]:,}" for key in ("true", "said", "paired")]
        figures = share(counter["paired"], counter["said"]), share(counter["paired"], counter["true"])
        table.append((flows, cause, place, program, *numbers, *figures))
    return f"## Causes\n\n{aligned(table, left=4)}\n"


def count_table(found: Found) -> str:
    table: list[tuple[str, ...]] = [
        ("count", "program", "captures", "exact", "within 5 % or 1", "true", "said", "sum of differences")
    ]
    for (what, program), counter in sorted(found.counts.items()):
        keys = ("captures", "right", "near", "true", "said", "off")
        table.append((what, program, *(f"{counter[key]:,}" for key in keys)))
    note = "Late segments are all that arrived after something sent later, late retransmissions included."
    return f"## Counts a capture\n\n{note}\n\n{aligned(table, left=2)}\n"


def miss_tables(found: Found) -> str:
    """What tcpfit has wrong, the scenario with the most first."""
    text = "## What tcpfit has wrong\n\nFrames are those of the capture; where there is none, what is known instead.\n"
    questions: dict[str, Counter[tuple[str, str, str, str]]] = defaultdict(Counter)
    examples: dict[tuple[str, tuple[str, str, str, str]], list[str]] = defaultdict(list)
    for miss in found.misses:
        key = (miss.scenario, miss.place, miss.true, miss.said)
        questions[miss.question][key] += 1
        example = f"{miss.frame}" if miss.frame is not None else miss.note
        if len(examples[miss.question, key]) < SHOWN and example not in examples[miss.question, key]:
            examples[miss.question, key].append(example)
    for question, counter in questions.items():
        table: list[tuple[str, ...]] = [("misses", "scenario", "capture", "truth", "tcpfit says", "frames")]
        for key, number in sorted(counter.items(), key=lambda item: (-item[1], item[0])):
            of = examples[question, key]
            table.append((str(number), *key, ", ".join(of) + (", ..." if number > len(of) else "")))
        text += f"\n### {question.capitalize()}: {counter.total()}\n\n{aligned(table, left=6)}\n"
    return text


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Markdown: the first columns to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if n < left else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("| " + " | ".join(cells) + " |")
    rule = ["-" * width if n < left else "-" * (width - 1) + ":" for n, width in enumerate(widths)]
    return "\n".join([lines[0], "| " + " | ".join(rule) + " |", *lines[1:]])


def version(program: str) -> str:
    """The first thing that looks like a version in what it says of itself."""
    option = "-v" if program == TCPTRACE else "--version"
    said = subprocess.run([program, option], capture_output=True, text=True, check=False)
    number = re.search(r"\d+(\.\d+)+", said.stdout + said.stderr)
    return number[0] if number else "of unknown version"


if __name__ == "__main__":
    sys.exit(main())
