"""Captures made to exhaust a tool: memory stays within bounds and time grows no faster than the capture.

    python benchmarks/attacks.py [--instructions] [NAME...]

Every attack is made at four sizes, each twice the one before, and analysed by the engine in a process of its own. The
exponent is the slope of log(processor time) over log(size): 1 is linear. Fails where one is above 1.1 or the memory of
the largest above its bound. Time also grows with what no longer fits the processor's caches; `--instructions` has
callgrind count instructions instead, at an eighth of the sizes.
"""

from __future__ import annotations

import argparse
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

ALLOWED_EXPONENT = 1.1
MEMORY_MB = 1500
SYN, ACK = 2, 16
HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101)


def segment(
    n: int, src: int, dst: int, ports: tuple[int, int], seq: int, ack: int, flags: int, **more: object
) -> bytes:
    """A pcap record of the n-th packet, one a microsecond."""
    options, payload = bytes(more.get("options", b"")), int(str(more.get("payload", 0)))  # type: ignore[call-overload]
    offset = (20 + len(options)) // 4
    tcp = struct.pack(">HHIIHHHH", *ports, seq % 2**32, ack % 2**32, offset << 12 | flags, 65535, 0, 0) + options
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(tcp) + payload, n & 0xFFFF, 0, 64, 6, 0, src, dst)
    seconds, fraction = divmod(n * 1000, 10**9)
    data = ip + tcp
    return struct.pack("<IIII", 1_700_000_000 + seconds, fraction, len(data), len(data) + payload) + data


CLIENT, SERVER, PORTS = 0x0A000001, 0x0A000002, (40000, 80)


def out(n: int, seq: int, payload: int = 1000) -> bytes:
    return segment(n, CLIENT, SERVER, PORTS, seq, 1, ACK, payload=payload)


def back(n: int, ack: int, *blocks: tuple[int, int]) -> bytes:
    edges = [edge % 2**32 for block in blocks for edge in block]
    options = b"\1\1\5" + bytes([2 + 4 * len(edges)]) + struct.pack(f">{len(edges)}I", *edges) if edges else b""
    return segment(n, SERVER, CLIENT, PORTS[::-1], 1, ack, ACK, options=options)


def syn_flood(size: int) -> Iterator[bytes]:
    """SYNs of as many sources, unanswered."""
    for n in range(size):
        yield segment(n, 0x0B000000 + n, SERVER, (1024 + n % 60000, 80), n, 0, SYN)


def single_segments(size: int) -> Iterator[bytes]:
    """As many connections that send one segment and no more."""
    for n in range(size):
        yield segment(n, 0x0B000000 + n, SERVER, (1024 + n % 60000, 80), n, 1, ACK, payload=100)


def outstanding(size: int) -> Iterator[bytes]:
    """A flow that is never acknowledged again."""
    yield out(0, 0)
    yield back(1, 1000)
    for n in range(size):
        yield out(n + 2, 1000 + 100 * n, 100)


def sack_growing(size: int) -> Iterator[bytes]:
    """A hole, and a block that grows by a segment with each ACK."""
    yield out(0, 0)
    yield back(1, 1000)
    for n in range(size):
        yield out(2 * n + 2, 1000 + 100 * n, 100)
        yield back(2 * n + 3, 1000, (1100, 1100 + 100 * max(n, 1)))


def sack_scattered(size: int) -> Iterator[bytes]:
    """Every second segment is reported, four old blocks with each ACK, in an order of chance."""
    yield out(0, 0)
    yield back(1, 1000)
    for n in range(size // 2):
        yield out(n + 2, 1000 + 100 * n, 100)
    chance = np.random.default_rng(1)
    for n in range(size // 2):
        at = [1100 + 200 * int(number) for number in chance.integers(0, max(size // 4 - 1, 1), 4)]
        yield back(size // 2 + n + 2, 1000, *((left, left + 100) for left in at))


def duplicate_sacks(size: int) -> Iterator[bytes]:
    """DSACK blocks as wide as the window."""
    yield out(0, 0)
    yield back(1, 1000)
    for n in range(size // 2):
        yield out(n + 2, 1000 + 100 * n, 100)
    end = 1000 + 100 * (size // 2)
    for n in range(size // 2):
        yield back(size // 2 + n + 2, 1000, (1100, end - 100), (1100, end))


def resends(size: int) -> Iterator[bytes]:
    """One segment again and again."""
    yield out(0, 0)
    yield back(1, 1000)
    for n in range(size):
        yield out(n + 2, 1000)


def wraps(size: int) -> Iterator[bytes]:
    """Sequence numbers that pass 2^32 every third packet."""
    for n in range(size):
        yield out(n, n * 1_500_000_000)


def backwards(size: int) -> Iterator[bytes]:
    """Data that come in the opposite order."""
    yield out(0, 0)
    yield back(1, 1000)
    for n in range(size):
        yield out(n + 2, 1000 + 100 * (size - n), 100)


def one_port_pair(size: int) -> Iterator[bytes]:
    """Connections on the same ports, each with another initial number."""
    for n in range(size):
        yield segment(n, CLIENT, SERVER, PORTS, n * 70_000, 0, SYN)


ATTACKS: dict[str, tuple[Callable[[int], Iterator[bytes]], int]] = {
    "syn-flood": (syn_flood, 1_000_000),
    "single-segments": (single_segments, 100_000),
    "outstanding": (outstanding, 1_000_000),
    "sack-growing": (sack_growing, 200_000),
    "sack-scattered": (sack_scattered, 200_000),
    "duplicate-sacks": (duplicate_sacks, 100_000),
    "resends": (resends, 200_000),
    "wraps": (wraps, 400_000),
    "backwards": (backwards, 200_000),
    "one-port-pair": (one_port_pair, 400_000),
}


def write(path: Path, packets: Iterator[bytes]) -> None:
    """A capture of the packets."""
    with path.open("wb") as file:
        file.write(HEADER)
        file.writelines(packets)


def counted(path: Path, packets: Iterator[bytes]) -> int:
    """Instructions of an analysis of the packets."""
    import instructions

    write(path, packets)
    return instructions.instructions(str(path))


def measure(path: Path) -> tuple[float, float]:
    """Processor seconds and megabytes of an analysis, without those of a process that only starts."""
    done = subprocess.run([sys.executable, __file__, "--analyse", path], capture_output=True, text=True, check=True)
    seconds, megabytes = done.stdout.split()
    return float(seconds), float(megabytes)


def analyse(path: str) -> None:
    """What `measure` runs."""
    from tcpfit import engine

    before = time.process_time()
    engine.analyze(path)
    seconds = time.process_time() - before
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*ATTACKS, []], metavar="NAME")
    parser.add_argument("--instructions", action="store_true", help="count instructions, not time (needs valgrind)")
    parser.add_argument("--analyse", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.analyse:
        analyse(arguments.analyse)
        return 0
    failed = False
    cost = "instructions a packet" if arguments.instructions else "seconds"
    print(f"| attack | packets | {cost} | MB | exponent |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attack.pcap"
        for name in arguments.names or ATTACKS:
            attack, largest = ATTACKS[name]
            largest >>= 3 * arguments.instructions
            sizes, costs, megabytes = [largest >> halvings for halvings in (3, 2, 1, 0)], [], 0.0
            start_up = counted(path, iter(())) if arguments.instructions else 0
            for size in sizes:
                if arguments.instructions:
                    costs.append(float(counted(path, attack(size)) - start_up))
                else:
                    write(path, attack(size))
                    took, megabytes = measure(path)
                    costs.append(max(took, 1e-3))
            exponent = float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
            failed |= exponent > ALLOWED_EXPONENT or megabytes > MEMORY_MB
            last = f"{costs[-1] / largest:.0f}" if arguments.instructions else f"{costs[-1]:.2f}"
            print(
                f"| {name} | {largest} | {last} | {f'{megabytes:.0f}' if megabytes else ''} | {exponent:.2f} |",
                flush=True,
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
