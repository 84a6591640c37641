"""Captures of others against tshark: an answer for each, packets and payload bytes of every TCP stream and direction.

    python benchmarks/foreign.py DIRECTORY...    (sources of Wireshark, tcpdump, libpcap and Suricata unpacked, say)

Whatever file tshark opens is tried; the two readers, engine and dpkt, must agree segment by segment. Differences are
listed with the first frame of each; docs/limits.md says why they are there. Needs tshark; reads, and writes nothing.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tcpfit.exceptions import CaptureError
from tcpfit.readers import Settings, read

# only what stands in the headers: nothing put together or labelled
PREFERENCES = (
    "tcp.analyze_sequence_numbers:FALSE",
    "tcp.relative_sequence_numbers:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
    "ip.defragment:FALSE",
    "ipv6.defragment:FALSE",
    "ip.tso_support:TRUE",
    "ipv6.tso_support:TRUE",
    "wg.dissect_packet:FALSE",  # decrypted with the keys in the file
)
FIELDS = (
    *("frame.number", "tcp.stream", "frame.protocols", "ip.src", "ipv6.src", "tcp.srcport", "tcp.len"),
    *("ip.len", "ip.hdr_len", "tcp.hdr_len"),
)
ALLOWED_S = 120


class Way(NamedTuple):
    """One direction of a stream of tshark's: who sends."""

    stream: int
    src: str
    port: int


@dataclass
class Tally:
    """What was found over all captures."""

    captures: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    packets: int = 0
    same: int = 0
    ways: int = 0
    equal: int = 0
    different: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def by_tshark(path: Path) -> dict[int, tuple[Way, int]] | None:
    """Segment of each frame and its payload; None where tshark does not open the file."""
    call = ["tshark", "-n", "-r", str(path), "-Y", "tcp && !icmp && !icmpv6", "-T", "fields", "-E", "occurrence=l"]
    for preference in PREFERENCES:
        call += ["-o", preference]
    for name in FIELDS:
        call += ["-e", name]
    done = subprocess.run(call, capture_output=True, text=True, errors="replace", timeout=ALLOWED_S)
    if done.returncode and not done.stdout and "cut short" not in done.stderr:
        return None
    segments = {}
    for line in done.stdout.splitlines():
        frame, stream, protocols, src, src6, port, payload, *lengths = line.split("\t")
        layers = protocols.split(":")
        if not payload and all(lengths):  # the header's options are cut: tshark gives the lengths, not their difference
            total, *headers = map(int, lengths)
            payload = str(total - sum(headers))
        if not payload or "tcp" not in layers:  # a header that ends early or is no header
            continue
        inner = [layer for layer in layers[: len(layers) - layers[::-1].index("tcp")] if layer in ("ip", "ipv6")]
        way = Way(int(stream), src6 if inner and inner[-1] == "ipv6" else src, int(port))
        segments[int(frame)] = way, int(payload)
    return segments


def by_reader(path: Path, reader: str) -> list[dict[str, object]]:
    """Rows of the table of segments."""
    return list(read(path, reader, Settings(segments=True)).tables["segments"].iter_rows(named=True))


def compare(path: Path, name: str, tally: Tally) -> None:
    """One capture."""
    expected = by_tshark(path)
    try:
        rows = by_reader(path, "engine")
    except CaptureError as error:
        if expected:
            tally.refused[str(error).removeprefix(f"{path}: ")] += 1
        return
    if expected is None:
        return
    tally.captures += 1
    if rows != by_reader(path, "dpkt"):
        tally.failed.append(f"{name}: the engine and the dpkt reader differ")
    # a later fragment is a segment of its own for tcpfit, and none for tshark
    rows = [row for row in rows if not (row["ip_id"] is None and "." in str(row["src"]))]
    tally.packets += len(rows)
    tally.same += sum(expected.get(int(str(r["frame"])), (None, None))[1] == r["payload"] for r in rows)
    sent: dict[Way, list[tuple[int, int]]] = defaultdict(list)
    for frame, (way, payload) in expected.items():
        sent[way].append((frame, payload))
    found: dict[Way, list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        frame = int(str(row["frame"]))
        way = expected[frame][0] if frame in expected else Way(-1, str(row["src"]), int(str(row["src_port"])))
        found[way].append((frame, int(str(row["payload"]))))
    for way in sent | found:
        tally.ways += 1
        if sent[way] == found[way]:
            tally.equal += 1
            continue
        tshark, tcpfit = dict(sent[way]), dict(found[way])
        first = min(f for f in tshark | tcpfit if tshark.get(f) != tcpfit.get(f))
        counts = [f"{len(seen)} packets with {sum(seen.values())} bytes" for seen in (tshark, tcpfit)]
        tally.different.append(
            f"{name}: stream {way.stream} of {way.src}:{way.port}: {counts[0]} by tshark, {counts[1]} by tcpfit; "
            f"frame {first}: {tshark.get(first)}, {tcpfit.get(first)}"
        )


def files_in(directories: list[Path]) -> Iterator[tuple[Path, str]]:
    """Files that may be captures, with a name to tell."""
    for directory in directories:
        for path in sorted(directory.rglob("*")):
            if path.is_file() and not is_text(path):
                yield path, str(path.relative_to(directory.parent))


def is_text(path: Path) -> bool:
    """Nothing, or nothing but text: tshark reads dumps written in text, which are no captures here."""
    with path.open("rb") as file:
        start = file.read(4096)
    try:
        start.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in start


def ring(*_: object) -> None:
    """An analysis took too long."""
    raise TimeoutError


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", type=Path)
    arguments = parser.parse_args()
    signal.signal(signal.SIGALRM, ring)
    tally, told = Tally(), (0, 0)
    for path, name in files_in(arguments.directories):
        signal.alarm(2 * ALLOWED_S)
        try:
            compare(path, name, tally)
        except (TimeoutError, subprocess.TimeoutExpired):
            tally.failed.append(f"{name}: no answer in {ALLOWED_S} s")
        except Exception as error:  # the answer to any of these is a repair
            tally.failed.append(f"{name}: {type(error).__name__}: {error}")
        signal.alarm(0)
        for sentence in (*tally.failed[told[0] :], *tally.different[told[1] :]):
            print(sentence, flush=True)
        told = len(tally.failed), len(tally.different)
    for reason, count in tally.refused.most_common():
        print(f"refused: {reason} ({count} captures)")
    share = 100 * tally.equal / max(tally.ways, 1)
    print(f"{tally.captures} captures; {tally.same} of {tally.packets} segments equal", end="; ")
    print(f"{tally.equal} of {tally.ways} streams and directions ({share:.2f} %); {len(tally.failed)} failures")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
