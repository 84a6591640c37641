"""Time of an analysis, stage by stage: `python benchmarks/analyze.py [CAPTURE]`.

Without a capture one of 10 000 short flows is made.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tcpfit
from tcpfit.report import contract

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

FLOWS = 10_000
SEGMENTS = 40


def main() -> None:
    """Print a line a stage."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else generated(Path(folder) / "generated.pcap")
        analysis = timed("read, decode, track", lambda: tcpfit.analyze(path))
        timed("parameters", lambda: analysis.parameters)
        timed("ranking", lambda: analysis.ranking)
        text = timed("document", lambda: contract.dumps(analysis.to_dict()))
        packets, megabytes = analysis.capture["packets"], path.stat().st_size / 1e6
        print(f"{packets} packets, {analysis.flows.height} flows, {megabytes:.0f} MB, JSON {len(text) / 1e6:.0f} MB")


def timed(what: str, run: Callable[[], Any]) -> Any:
    """Run and print the seconds."""
    start = time.perf_counter()
    result = run()
    print(f"{time.perf_counter() - start:8.3f} s  {what}")
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
