#!/usr/bin/env python3
"""How a corpus scales: `corpus.py [--captures N]` prints what docs/corpora.md quotes.

The captures are made from the samples: the first packets of one, moved in time so that no two are equal. Measured are
the time that two workers take beside one, what a capture without flows costs, what one of the many short flows that
`generate.py` makes does, what is saved by analysing small captures together, the memory of the process that gives out
the tasks, and the time of a run that has nothing to do. Times by the clock need a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import struct
import tempfile
import time
from pathlib import Path
from statistics import median

from generate import generate

import tcpfit
from tcpfit import corpus
from tcpfit.corpus import tables, trace
from tcpfit.corpus.process import memory_of
from tcpfit.corpus.waiting import MOST
from tcpfit.readers.containers import PCAP_MAGICS
from tcpfit.readers.files import Stream

SAMPLES = Path(__file__).parent.parent / "sample-traces"
PACKETS = (300, 600, 1200, 2400)
"""Of a capture: its first so many packets."""
SHORT = 1_000_000
"""Packets of the capture of short flows."""
LOTS = 5
"""Captures are run in so many lots, each by one worker and by two."""


def pieces() -> list[tuple[str, bytes, list[bytes]]]:
    """Byte order, header and records of every sample that is a pcap file."""
    found = []
    for path in sorted(SAMPLES.glob("*.pcap.gz")):
        stream = Stream(str(path))
        head = stream.take(24)
        order, _, _ = PCAP_MAGICS[head[:4]]
        records = []
        while len(records) < max(PACKETS) and len(fields := stream.take(16)) == 16:
            records.append(fields + stream.take(struct.unpack_from(f"{order}8xI", fields)[0]))
        found.append((order, head, records))
        stream.close()
    return found


def make(folder: Path, count: int, sizes: tuple[int, ...] = PACKETS, first: int = 0) -> None:
    """Write so many captures, of the first so many packets of a sample; each begins in a second of its own."""
    sources = pieces()
    for number in range(first, first + count):
        order, head, records = sources[number % len(sources)]
        chosen = records[: sizes[number // len(sources) % len(sizes)]]
        second = struct.Struct(f"{order}I")
        moved = [second.pack((second.unpack_from(record)[0] + number) & 0xFFFFFFFF) + record[4:] for record in chosen]
        (folder / f"{number:05}.pcap").write_bytes(head + b"".join(moved))


class Watch:
    """Memory of this process over a run: at a tenth of the captures, and at the end."""

    def __init__(self) -> None:
        self.memory: dict[float, int] = {}

    def __call__(self, progress: corpus.Progress) -> None:
        for share in (0.1, 1.0):
            if progress.done >= share * progress.captures and share not in self.memory:
                self.memory[share] = memory_of(os.getpid())


def timed(source: Path, out: Path, workers: int, watch: Watch | None = None) -> tuple[float, float]:
    """Seconds of a run, by the clock and of the processors, workers included."""
    before, started = processor_s(), time.perf_counter()
    summary = corpus.run([source], out, workers=workers, progress=watch)
    assert not summary.failures, summary.failures[:3]
    return time.perf_counter() - started, processor_s() - before


def processor_s() -> float:
    """Processor time of this process and of its children that have ended."""
    usage = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in usage)


def analysed(paths: list[Path], together: int) -> float:
    """Processor seconds of the analyses alone in this process, so many captures at a time."""
    settings = corpus.Settings()
    before = processor_s()
    for start in range(0, len(paths), together):
        analyses = {path.name: trace.analyse([str(path)], settings) for path in paths[start : start + together]}
        for analysis, _ in zip(analyses.values(), tables.tables_of_each(analyses), strict=True):
            tables.facts_of(analysis)
    return processor_s() - before


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--captures", type=int, default=2000, help="of the corpus")
    parser.add_argument("--small", type=int, default=1000, help="captures of one packet, to measure the overhead on")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        many, small, start = folder / "many", folder / "small", folder / "start"
        for each in (many, small, start):
            each.mkdir()
        make(start, 1, (1,))
        make(small, arguments.small, (1,))
        start_s = timed(start, folder / "start-out", 1)[1]
        run_s = timed(small, folder / "small-out", 1)[1] - start_s
        print(f"{arguments.small} captures of a packet: {1000 * run_s / arguments.small:.1f} ms", end=" ")
        print(f"of a processor each; {start_s:.1f} s for the run's start", flush=True)

        a_lot = arguments.captures // LOTS
        lots = [many / str(lot) for lot in range(LOTS)]
        for number, lot in enumerate(lots):
            lot.mkdir()
            make(lot, a_lot, first=number * a_lot)
        size = sum(path.stat().st_size for path in many.rglob("*.pcap"))
        print(f"{arguments.captures} captures, {size / 1e6:.0f} MB, in {LOTS} lots", flush=True)
        some = sorted(lots[0].iterdir())[: 2 * MOST]
        analysed(some[:4], 2)  # which loads what all need
        alone_ms, together_ms = (1000 * analysed(some, count) / len(some) for count in (1, MOST))
        print(f"{len(some)} of them alone: {alone_ms:.1f} ms of a processor each to analyse by itself,", end=" ")
        print(f"{together_ms:.1f} ms where {MOST} are analysed together", flush=True)
        one_s, two_s = zip(*(in_turn(lot, folder) for lot in lots), strict=True)
        each_ms = 1000 * sum(one_s) / arguments.captures
        print(f"1 worker:  {sum(one_s):.1f} s, {each_ms:.1f} ms a capture", flush=True)
        ratios = sorted(one / two for one, two in zip(one_s, two_s, strict=True))
        print(f"2 workers: {sum(two_s):.1f} s, {median(ratios):.2f} times as fast, the median of the lots", end=" ")
        print(f"({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)

        watch = Watch()
        own_s = time.process_time()
        whole_s, _ = timed(many, folder / "whole", 2, watch)
        own_ms = 1000 * (time.process_time() - own_s) / arguments.captures
        print(f"all in one run of 2 workers: {whole_s:.1f} s, {own_ms:.2f} ms a capture", end=" ")
        tenth, whole = (watch.memory[share] / 1e6 for share in (0.1, 1.0))
        print(f"in the process that gives out the tasks; its memory: {tenth:.0f} MB at a tenth,", end=" ")
        print(f"{whole:.0f} MB at the end", flush=True)
        print(f"again:     {timed(many, folder / 'whole', 2)[0]:.2f} s with nothing to do", flush=True)

        short = folder / "short.pcap"
        generate(str(short), SHORT, "short", 1)
        before = processor_s()
        flows = tcpfit.analyze(short).flows.height
        read_s = processor_s() - before
        run_s = timed(short, folder / "short-out", 1)[1] - start_s
        print(f"{flows} short flows in one capture: {1e6 * run_s / flows:.0f} us of a processor each,", end=" ")
        print(f"{1e6 * read_s / flows:.0f} of them the engine's")


def in_turn(lot: Path, folder: Path) -> tuple[float, float]:
    """Seconds by the clock of one worker and of two: what else the machine does changes from minute to minute."""
    one, two = (timed(lot, folder / f"{workers}-{lot.name}", workers)[0] for workers in (1, 2))
    return one, two


if __name__ == "__main__":
    main()
