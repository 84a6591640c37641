"""Processor time of an analysis, stage by stage: `python benchmarks/analyze.py [CAPTURE]`.

Without a capture one of 10 000 short flows is made, each with a loss. User and system time of all threads; the wall's
clock says little on a busy machine. The description ranks and diagnoses its flows itself, some thousand at a time.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tcpfit.cli.main import GARBAGE

import tcpfit
from tcpfit.diagnosis import diagnose
from tcpfit.report import contract

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

FLOWS = 10_000
SEGMENTS = 40


def main() -> None:
    """Print a line a stage."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else generated(Path(folder) / "generated.pcap")
        gc.set_threshold(GARBAGE)  # as the command does
        analysis = timed("read, decode, track", lambda: tcpfit.analyze(path))
        timed("parameters", lambda: analysis.parameters)
        timed("ranking", lambda: analysis.ranking)
        timed("diagnosis", lambda: diagnose(analysis.flows, analysis.events, analysis.rounds))
        characters = timed(
            "all of these but the first, as JSON", lambda: sum(len(flow) for flow in contract.flow_texts(analysis))
        )
        packets, megabytes = analysis.capture["packets"], path.stat().st_size / 1e6
        print(f"{packets} packets, {analysis.flows.height} flows, {megabytes:.0f} MB, JSON {characters / 1e6:.0f} MB")


def timed(what: str, run: Callable[[], Any]) -> Any:
    """Run and print the seconds."""
    start = time.process_time()
    result = run()
    print(f"{time.process_time() - start:8.3f} s  {what}", flush=True)
    return result


def generated(path: Path) -> Path:
    """Many short flows with losses, one after the other."""
    import captures

    packets = []
    for number in range(FLOWS):
        lost = frozenset({number % SEGMENTS})
        transfer = captures.Transfer(
            segments=SEGMENTS, lost=lost, sport=1024 + number % 60_000, start_s=number * 0.01, snaplen=96
        )
        packets += transfer.run()
    packets.sort(key=lambda packet: packet.time_ns)
    path.write_bytes(captures.pcap(packets))
    return path


if __name__ == "__main__":
    main()
