"""Memory of the engine: `python benchmarks/memory.py [--markdown docs/memory.md] [--quick]`.

Every capture is analysed in a process of its own, which says what it had resident before the call, when the last packet
had been read, at its most, and when the tables were polars'. `--quick` makes captures a twentieth as large.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version as distribution
from pathlib import Path
from typing import BinaryIO

import numpy as np
from attacks import ACK, ATTACKS, HEADER, SERVER, SYN, segment, write
from engine import SEED, aligned, figures, machine

QUICKER = 20
STREAM_GB = 20
IDLE, OUTSTANDING = "Idle flows", "A window of a million segments"
IDLE_LONGER = "Idle longer flows"
IDLE_SEGMENTS = {IDLE: 20, IDLE_LONGER: 100}
BULK_FLOWS = 8
BULK_PAYLOAD = 1448
BULK_WINDOW = 700  # segments
LOST_EVERY = 20  # windows of a flow

HEAD = """# Memory

Made by `python benchmarks/memory.py --markdown docs/memory.md` with tcpfit {tcpfit}; do not edit.

{machine}

## What is measured

Resident memory of a process that analyses one capture and turns the tables of flows, events and rounds into polars', in
MiB above what Python and its libraries take before the call ({start_up} MiB here).

- *At the last packet*: the flows that are followed, and the tables of those that are over.
- *Peak*: the most at any time up to the end of the call. The flows that were open become rows.
- *In polars*: the most with the tables as data frames; some 3 MiB of it are polars' code, which is loaded then.
- *Tables*: what the data frames say of their size, columns that share memory counted each.
"""

EACH = (
    "\nAt the last packet that is {idle:.1f} KiB a connection that is idle; {longer:.1f} KiB where it was longer, "
    "most of it room\nfor the 100 segments that were outstanding at once, which is given back after a minute; and "
    "{outstanding:.0f} bytes\na segment that is outstanding.\n"
)

STREAM = """
## A long stream

{gigabytes:.1f} GB through standard input, {packets:,} packets of {flows} flows whose sequence numbers go on, one
segment in {lost:,} lost. What is resident above the start, by what has been read:

{table}

From a twentieth of the stream to its end it changed by {growth:+.1f} MiB; the tables had {rows:,} rows at the end, most
of them rounds, {tables:.1f} MiB.
"""

TAIL = """
## What memory is taken by

- An open connection takes what the flow's state needs, however many packets it has had, and 56 bytes a segment that is
  outstanding. The ring of these has room for a power of two; what a window has never filled is not touched.
- Where more than 2,048 connections are open, new ones wait packed, some 15 bytes a segment, until they end, have more
  than 1,024 bytes, or something unusual comes.
- A row of the flows' table takes some 420 bytes in polars, of the rounds' and events' 100 to 130. Over 2,048 flows,
  columns that are alike are kept once, and so are those that are as they were in the flows before, such as nothing but
  zeros. Until a table is asked for, its numbers take as few bytes as they need: about half.
- Of events and of rounds some 130,000 rows each wait as they are, 128 and 112 bytes, some 30 MB. Beyond that a flow's
  rows become columns as it goes, some thousand at a time and sorted; at the end these are joined, a column at a time.
- A flow's row waits until all of its 2,048 are over. Where more than 30,000 wait, rows are packed: a flow's
  into some 190 bytes, a round's into 55, not 470 and 112.
- A connection that has closed stays for a second, or ten, of the capture's time, and 32 bytes of it for ten.

## Measure it yourself

    .venv/bin/python benchmarks/memory.py

Takes some minutes and 700 MB of a temporary directory; the stream is not stored.
"""


@dataclass(frozen=True)
class Used:
    """Memory of one analysis, in MiB: all of it, before, at the last packet, at most; tables as polars counts them."""

    start_up: float
    last_packet: float
    peak: float
    polars_peak: float
    tables: float
    packets: int
    rows: int
    course: list[tuple[float, float]]  # bytes read and MiB above the start


def resident_mib(field: str = "VmRSS") -> float:
    """A field of proc(5)'s status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


def analyse(path: str) -> None:
    """What a process of its own does and says."""
    from tcpfit import engine

    start_up, course = resident_mib(), []

    def progress(position: int, _size: int | None) -> None:
        course.append((position, resident_mib() - start_up))

    result = engine.analyze(path, progress=progress)
    peak = resident_mib("VmHWM")
    frames = engine.frames(result).values()
    used = Used(
        start_up=start_up,
        last_packet=course[-1][1],
        peak=peak - start_up,
        polars_peak=resident_mib("VmHWM") - start_up,
        tables=sum(frame.estimated_size() for frame in frames) / 2**20,
        packets=result.capture["packets"],
        rows=sum(frame.height for frame in frames),
        course=course,
    )
    print(json.dumps(vars(used)))


def measure(path: Path) -> Used:
    return Used(**json.loads(subprocess.check_output([sys.executable, __file__, "--analyse", path])))


def generated(kind: str) -> Callable[[Path, int], str]:
    """Makes a capture of `generate.py`'s and says what is in it."""

    def make(path: Path, packets: int) -> str:
        script = Path(__file__).with_name("generate.py")
        command = [sys.executable, str(script), str(path), str(packets), kind, str(SEED)]
        return subprocess.check_output(command, text=True).strip().replace(" at a time", "")

    return make


def idle(name: str) -> Callable[[Path, int], str]:
    """Makes connections that neither end nor go on."""
    segments = IDLE_SEGMENTS[name]

    def make(path: Path, connections: int) -> str:
        write(path, idle_packets(connections, segments))
        return f"{connections:,} connections that sent {segments} segments each, all acknowledged, and stay open"

    return make


def idle_packets(connections: int, segments: int) -> Iterator[bytes]:
    n = 0  # microseconds

    def packet(connection: int, there: bool, seq: int, ack: int, flags: int, payload: int = 0) -> bytes:
        nonlocal n
        n += 100 if payload else 1
        ends, ports = (0x0B000000 + connection, SERVER), (1024 + connection % 60_000, 80)
        if not there:
            ends, ports = ends[::-1], ports[::-1]
        return segment(n, *ends, ports, seq, ack, flags, payload=payload)

    for connection in range(connections):
        yield packet(connection, True, 0, 0, SYN)
        yield packet(connection, False, 0, 1, SYN | ACK)
        yield packet(connection, True, 1, 1, ACK)
        for number in range(segments):
            yield packet(connection, True, 1 + 1000 * number, 1, ACK, 1000)
        for number in range(2, segments + 2, 2):
            yield packet(connection, False, 1, 1 + 1000 * number, ACK)


def attack(name: str) -> Callable[[Path, int], str]:
    """Makes a capture of `attacks.py`'s."""

    def make(path: Path, size: int) -> str:
        packets = ATTACKS[name][0]
        write(path, packets(size))
        return (packets.__doc__ or name).rstrip(".")

    return make


CAPTURES: dict[str, tuple[Callable[[Path, int], str], int]] = {
    "Few large flows": (generated("large"), 2_000_000),
    "Full packets": (generated("full"), 200_000),
    "Many short flows": (generated("short"), 5_400_000),
    "Many flows at once": (generated("open"), 5_400_000),
    IDLE: (idle(IDLE), 50_000),
    IDLE_LONGER: (idle(IDLE_LONGER), 20_000),
    OUTSTANDING: (attack("outstanding"), 1_000_000),
    "SYN flood": (attack("syn-flood"), 1_000_000),
    "Connections of one segment": (attack("single-segments"), 1_000_000),
    "One segment, again and again": (attack("resends"), 1_000_000),
}

RECORD = np.dtype(
    [
        ("seconds", "<u4"), ("fraction", "<u4"), ("captured", "<u4"), ("wire", "<u4"),
        ("ip", ">u2"), ("length", ">u2"), ("id", ">u4"), ("ttl", ">u4"), ("src", ">u4"), ("dst", ">u4"),
        ("sport", ">u2"), ("dport", ">u2"), ("seq", ">u4"), ("ack", ">u4"), ("flags", ">u2"), ("window", ">u2"),
        ("checksum", ">u4"), ("padding", ">u4"), ("tsval", ">u4"), ("tsecr", ">u4"),
    ]
)  # fmt: skip
DATA = np.dtype([("head", RECORD), ("payload", f"V{BULK_PAYLOAD}")])


def stream(out: BinaryIO, size: float) -> int:
    """Writes a capture of some gigabytes without end; gives the number of packets.

    A flow sends a window, and gets an ACK for every second segment a round trip later; a segment of some windows is
    missing and comes again at its end, before the ACKs.
    """
    out.write(HEADER)
    packets, window, now_ms, written = 0, 0, 0, 0
    acks = BULK_WINDOW // 2
    data, back = np.zeros(BULK_WINDOW, DATA), np.zeros(acks, RECORD)
    for records, payload in ((data["head"], BULK_PAYLOAD), (back, 0)):
        records["captured"] = records["wire"] = 52 + payload
        records["ip"], records["length"], records["ttl"] = 0x4500, 52 + payload, 64 << 24 | 6 << 16
        records["flags"], records["window"] = 8 << 12 | ACK, 65535
        records["padding"] = 0x0101080A
    while written < size:
        flow, turn = window % BULK_FLOWS, window // BULK_FLOWS
        first = turn * BULK_WINDOW
        numbers = np.arange(first, first + BULK_WINDOW)
        lost = turn % LOST_EVERY == LOST_EVERY - 1
        order = np.append(np.delete(numbers, 300), first + 300) if lost else numbers
        ends = first + 2 * np.arange(1, acks + 1)
        for records, at_us, src, dst in ((data["head"], now_ms * 1000, 1, 2), (back, now_ms * 1000 + 40_000, 2, 1)):
            us = at_us + np.arange(len(records)) * 10
            records["seconds"], records["fraction"] = 1_700_000_000 + us // 1_000_000, us % 1_000_000
            records["src"], records["dst"] = (0x0A000000 + 256 * src) + flow, (0x0A000000 + 256 * dst) + flow
            records["sport"], records["dport"] = (40_000, 443)[:: 1 if src == 1 else -1]
            records["tsval"], records["tsecr"] = us // 1000, us // 1000 - 40
        data["head"]["seq"], data["head"]["ack"] = order * BULK_PAYLOAD % 2**32, 1
        back["seq"], back["ack"] = 1, ends * BULK_PAYLOAD % 2**32
        for records in (data, back):
            written += out.write(memoryview(records).cast("B"))
            packets += len(records)
        window += 1
        now_ms += 60
    return packets


def streamed(size: float) -> Used:
    """An analysis of the stream."""
    command = [sys.executable, __file__]
    with (
        subprocess.Popen([*command, "--stream", str(size)], stdout=subprocess.PIPE) as source,
        subprocess.Popen([*command, "--analyse", "-"], stdin=source.stdout, stdout=subprocess.PIPE) as process,
    ):
        said, _ = process.communicate()
    return Used(**json.loads(said))


def course(used: Used) -> str:
    """The memory at twenty points of the stream, at most."""
    step = max(len(used.course) // 20, 1)
    rows = [("GB read", "MiB")]
    rows += [(f"{read / 1e9:.2f}", f"{mib:.1f}") for read, mib in used.course[::step]]
    return aligned(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the page")
    parser.add_argument("--quick", action="store_true", help="captures a twentieth as large")
    parser.add_argument("--analyse", help=argparse.SUPPRESS)
    parser.add_argument("--stream", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.analyse:
        analyse(arguments.analyse)
        return 0
    if arguments.stream is not None:
        stream(sys.stdout.buffer, arguments.stream)
        return 0
    share = QUICKER if arguments.quick else 1
    rows = [("capture", "packets", "at the last packet", "peak", "in polars", "tables")]
    said, start_up, last_packet = [], 0.0, {}
    with tempfile.TemporaryDirectory(prefix="tcpfit-memory-") as folder:
        path = Path(folder) / "capture.pcap"
        for name, (make, size) in CAPTURES.items():
            content = make(path, size // share)
            used = measure(path)
            path.unlink()
            print(f"{name}: {used.peak:.1f} MiB", file=sys.stderr)
            start_up = max(start_up, used.start_up)
            said.append(f"- {name}: {content}.")
            last_packet[name] = used.last_packet * 2**20 / (size // share)
            mib = (used.last_packet, used.peak, used.polars_peak, used.tables)
            rows.append((name, f"{used.packets:,}", *(f"{value:.1f}" for value in mib)))
    page = HEAD.format(tcpfit=distribution("tcpfit"), machine=machine([]), start_up=figures(start_up))
    page += "\n" + "\n".join([*said, "", aligned(rows)]) + "\n"
    page += EACH.format(
        idle=last_packet[IDLE] / 1024, longer=last_packet[IDLE_LONGER] / 1024, outstanding=last_packet[OUTSTANDING]
    )
    used = streamed(STREAM_GB * 1e9 / share)
    read = used.course[-1][0]
    early = next(mib for position, mib in used.course if position >= read / 20)
    page += STREAM.format(
        gigabytes=read / 1e9,
        packets=used.packets,
        flows=BULK_FLOWS,
        lost=BULK_WINDOW * LOST_EVERY,
        table=course(used),
        growth=used.course[-1][1] - early,
        rows=used.rows,
        tables=used.tables,
    )
    page += TAIL
    print(page)
    if arguments.markdown:
        arguments.markdown.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
