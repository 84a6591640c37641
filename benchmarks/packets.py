"""Packet by packet against recorded truth: `python benchmarks/packets.py [--markdown docs/packets.md] [TRACES ...]`.

TRACES holds a folder a scenario, with captures from both ends and what really happened (see its README). tcpfit, tshark
and tcptrace read the same captures; programs that are not installed are left out and named. The truth of a packet is
made from the captures of both ends and the path's own list, never from what any of the programs says.
"""

from __future__ import annotations

import argparse
import bisect
import csv
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

from packets_page import page
from packets_peers import TCPFIT, TCPTRACE, TSHARK, TSHARK_LOOSE, absent, episodes, tcptrace, tshark
from packets_truth import (
    ACCEPTED,
    AGAIN,
    ARRIVED,
    CAUSES,
    COPY,
    LATE_AGAIN,
    LOST,
    MIDDLE,
    NOTHING,
    ORIGINAL,
    RECEIVER,
    REORDERING,
    RETRANSMISSION,
    SENDER,
    WORDS,
    Arrival,
    Capture,
    Ends,
    Found,
    Miss,
    Sent,
    Times,
    as_it_arrives,
    from_kernel,
    mark_dropped,
    mark_simulated,
    match,
    rows,
    that_passed,
    transmissions,
)
from packets_without import WITHOUT

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"
TRACES = (SHARED / "traces", SHARED / "traces-ns2")
HELP = f"what tcpfit says without these, which the other programs read: {', '.join(WITHOUT)}"


def main() -> int:
    """Compare, print the tables, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, nargs="*", default=list(TRACES), metavar="TRACES")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the page too")
    parser.add_argument("--misses", type=Path, metavar="FILE", help="write every miss of tcpfit, as CSV")
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    parser.add_argument("--without", nargs="+", default=[], choices=list(WITHOUT), metavar="WHAT", help=HELP)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.markdown and arguments.without:
        parser.error("the page is of captures as they are: --markdown or --without")
    folders = [path.parent for root in arguments.traces for path in sorted(root.glob("*/truth.json"))]
    folders = [folder for folder in folders if arguments.only in folder.name]
    if not folders:
        print(f"no scenario in {', '.join(map(str, arguments.traces))}", file=sys.stderr)
        return 2
    total = Found()
    built = engine_bytes()
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        for number, found in enumerate(pool.map(partial(compare, without=arguments.without), folders), 1):
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

        with AtomicFile(arguments.markdown) as unfinished:
            unfinished.write_text(text)
    return 0


def engine_bytes() -> bytes:
    """The engine's library, to know whether it changed."""
    from tcpfit.engine import _engine

    return Path(str(vars(_engine)["__file__"])).read_bytes()


def compare(folder: Path, without: list[str]) -> Found:
    """Everything of one scenario."""
    truth = json.loads((folder / "truth.json").read_text())
    simulated = "simulator" in truth
    src = truth["client"].rsplit(":", 1)[0] if simulated else truth["flows"][0]["src"]
    mss = truth["mss"] if simulated else truth["summary"]["mss"]
    found = Found()
    places = [next(folder.glob(f"{place}.pcap*")) for place in ("sender", "receiver")]
    sender, receiver = (Capture(path, src, without) for path in places)
    sent = transmissions(sender, mss)
    (mark_simulated if simulated else mark_dropped)(folder, truth, sent, found)
    arrivals = match(sent, sender, receiver, folder.name, found)
    at_receiver(folder.name, sent, arrivals, receiver, found)
    at_sender(folder.name, sent, sender, found)
    seen = {RECEIVER: (receiver, arrivals)}
    for path in folder.glob("midpath.pcap*"):
        behind = bool(truth["parameters"]["mid"].get("loss_after_mid"))
        middle = Capture(path, src, without)
        seen[MIDDLE] = (middle, match(that_passed(sent, behind), sender, middle, f"{folder.name}, middle", found))
    for place, (capture, _) in seen.items():
        by_segment(folder.name, sent, place, capture, found)
    causes(folder, truth, simulated, sender, seen, found)
    by_count(sent, sender, seen, found)
    return found


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
    weigh_words(true, originals, capture, found)
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


def weigh_words(true: dict[int, str], originals: set[int], capture: Capture, found: Found) -> None:
    """How often a word is right that was said with some confidence."""
    for event in capture.events:
        frame, word = event["frame"], WORDS.get(event["kind"])
        if word and (frame in true or frame in originals):
            found.weigh("receiver", event, 1, word in ACCEPTED.get(true.get(frame, ""), ()))


def words(capture: Capture) -> dict[str, dict[int, str]]:
    """By program and frame, the word for the segment."""
    kinds: dict[int, set[str]] = defaultdict(set)
    for event in capture.events:
        if event["frame"] is not None and event["kind"] in WORDS:
            kinds[event["frame"]].add(WORDS[event["kind"]])
    said = {TCPFIT: {frame: " and ".join(sorted(of)) for frame, of in kinds.items()}}
    if flags := tshark(capture):
        said[TSHARK] = {}
        for frame, of in flags.items():
            if "out_of_order" in of:
                said[TSHARK][frame] = REORDERING
            elif {"retransmission", "fast_retransmission", "spurious_retransmission"} & of:
                said[TSHARK][frame] = RETRANSMISSION
    return said


def at_sender(name: str, sent: list[Sent], capture: Capture, found: Found) -> None:
    """Lost or not?"""
    lost: dict[int, list[tuple[int, int]]] = defaultdict(list)
    by_frame: dict[int, list[Sent]] = defaultdict(list)
    for one in sent:
        by_frame[one.frame].append(one)
    nowhere = 0
    for event in capture.events:
        if event["kind"] == "loss":
            if event["frame"] is None:
                nowhere += event["segments"]
                found.weigh("sender", event, event["segments"], 0)
            else:
                left, right = event["left"], event["right"]
                lost[event["frame"]].append((left, right))
                told = [one for one in by_frame[event["frame"]] if left < one.right and one.left < right]
                found.weigh("sender", event, len(told), sum(one.lost for one in told))
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


def by_segment(name: str, sent: list[Sent], place: str, capture: Capture, found: Found) -> None:
    """Losses seen from where a lost transmission may not pass."""
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
    left_over = true.copy()
    losses = [event for event in capture.events if event["kind"] == "loss"]
    for event in sorted(losses, key=lambda event: -event["confidence"]):  # what is too many is the least sure
        told = within(capture.flows[event["flow"]], event["left"], event["right"])
        right = [one for one in told if left_over[one] > 0]
        said[TCPFIT].update(told)
        left_over.subtract(right)
        found.weigh(place, event, len(told), len(right))
    if (flags := tshark(capture)) is not None:
        said[TSHARK] = Counter()
        highest: dict[Ends, int] = defaultdict(lambda: 1)
        for flow, frame, _, left, right, _ in capture.data:
            if "lost_segment" in flags[frame]:
                said[TSHARK].update(within(flow, highest[flow], left))
            highest[flow] = max(highest[flow], right)
    for program, counted in said.items():
        missed, invented = true - counted, counted - true
        found.segments[place, program].update(true=true.total(), missed=missed.total(), invented=invented.total())
        if program == TCPFIT:
            for wrong, truth, word in ((missed, LOST, ARRIVED), (invented, ARRIVED, LOST)):
                for (flow, left), number in wrong.items():
                    note = f"offset {left}" + (f" of port {flow.dport}" if len(edges) > 1 else "")
                    miss = Miss(f"losses seen from the {place}", name, place, truth, word, None, note)
                    found.misses += [miss] * number


def causes(
    folder: Path,
    truth: dict[str, Any],
    simulated: bool,
    sender: Capture,
    seen: dict[str, tuple[Capture, list[Arrival]]],
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
    for place, (capture, arrivals) in {SENDER: (sender, []), **seen}.items():
        start_s = capture.data[0][2]
        for kind, at_sender_s in happened.items():
            true = at_sender_s if place == SENDER else as_it_arrives(at_sender_s, of_syn, arrivals)
            said: Times = defaultdict(list)
            events: dict[tuple[tuple[int, int], float], dict[str, Any]] = {}
            for event in capture.events:
                if event["kind"] == kind:
                    ends = capture.flows[event["flow"]]
                    at = event["time_ns"] / 1e9
                    said[ends.sport, ends.dport].append(at)
                    events[(ends.sport, ends.dport), at] = event
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
                    for at in times.get(one, []):
                        found.weigh(place, events[one, at], 1, at not in alone)
                    question = CAUSES[kind]
                    frames = {at: events[one, at]["frame"] for at in alone}
                    found.misses += [
                        Miss(question, folder.name, place, "none", "one", frames[at], f"at {at - start_s:.4f} s")
                        for at in alone
                    ]
                    found.misses += [
                        Miss(question, folder.name, place, "one", "none", None, f"at {at - start_s:.4f} s")
                        for at in missed
                    ]


def unpaired(said: Sequence[float], true: Sequence[float], apart_s: float) -> tuple[list[float], list[float]]:
    """Events of either list that have no partner in the other; the nearest pairs are made first."""
    pairs = [(abs(a - b), i, j) for i, a in enumerate(said) for j, b in enumerate(true) if abs(a - b) <= apart_s]
    left, right = set(range(len(said))), set(range(len(true)))
    for _, i, j in sorted(pairs):
        if i in left and j in right:
            left.remove(i)
            right.remove(j)
    return [said[i] for i in sorted(left)], [true[j] for j in sorted(right)]


def by_count(sent: list[Sent], sender: Capture, seen: dict[str, tuple[Capture, list[Arrival]]], found: Found) -> None:
    """Counts a capture, which is all that tcptrace has."""
    resent = "retransmissions, at the sender"
    true = {resent: sum(one.again for one in sent)}
    said: dict[tuple[str, str], int] = {}
    said[resent, TCPFIT] = sender.totals["retransmitted_segments"]
    if (flags := tshark(sender)) is not None:
        strict = {"retransmission", "fast_retransmission", "spurious_retransmission"}
        said[resent, TSHARK] = sum(bool(of & strict) for of in flags.values())
        said[resent, TSHARK_LOOSE] = sum(bool(of & (strict | {"out_of_order"})) for of in flags.values())
    if not absent(TCPTRACE):
        said[resent, TCPTRACE] = sum(tcptrace(sender))
    for place, (capture, arrivals) in seen.items():
        overtaken = f"late segments, at the {place}"
        true[overtaken] = late_segments(arrivals)
        said[overtaken, TCPFIT] = capture.totals["reordered_segments"]
        if (flags := tshark(capture)) is not None:
            said[overtaken, TSHARK] = sum("out_of_order" in of for of in flags.values())
        if not absent(TCPTRACE):
            said[overtaken, TCPTRACE] = tcptrace(capture)[1]
    for (what, program), number in said.items():
        counter, right = found.counts[what, program], true[what]
        counter.update(captures=1, said=number, true=right, right=number == right)
        counter.update(near=abs(number - right) <= max(1, 0.05 * right), off=abs(number - right))


def late_segments(arrivals: list[Arrival]) -> int:
    """Those that came after something sent later, copies left out."""
    late = 0
    newest: dict[Ends, int] = defaultdict(lambda: -1)
    for arrival in arrivals:
        late += not arrival.copy and arrival.sent.number < newest[arrival.flow]
        newest[arrival.flow] = max(newest[arrival.flow], arrival.sent.number)
    return late


if __name__ == "__main__":
    sys.exit(main())
