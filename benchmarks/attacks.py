"""Captures made to exhaust a tool: memory stays within bounds and time grows no faster than the capture.

    python benchmarks/attacks.py [--instructions] [--runs N] [NAME...]

Every attack is made at four sizes, each twice the one before, and analysed by the engine in processes of its own: all
sizes in turn, so many turns over, and in each turn three times by the same process, so that what else the machine does
meets all of them alike. Of each size the least processor time counts, user and system. That leaves out one thing: what
the kernel takes to give a process memory it never had, which falls into the first of the three and depends on the
machine's mood by a factor of thirty; MB says how much memory that is. The exponent is the slope of log(time) over
log(size): 1 is linear. Fails where one is above 1.1 or the memory of the largest above its bound. Time also grows where
what is found outgrows the processor's caches: attacks that find an event in every packet are made large enough to be
beyond that at their smallest. `--instructions` has callgrind count instructions instead, at an eighth of the sizes.

The captures of one flow begin with a handshake that shows the capture to be at the sender, where most is inferred, or
at the receiver.
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
SIZES = 4
RUNS = 3
CALLS = 3
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


ROUND_TRIP = 1000
OPENING = ROUND_TRIP + 2
"""Packets of a flow are numbered, one a microsecond, from here: what comes before is the handshake."""
SYN_OPTIONS = b"\2\4\5\xb4\4\2\1\3\3\x0e\1\1"


def begin(at_sender: bool = True) -> Iterator[bytes]:
    """Handshake of a round trip that is all on one side of the capture point."""
    answer = ROUND_TRIP if at_sender else 1
    yield segment(0, CLIENT, SERVER, PORTS, -1, 0, SYN, options=SYN_OPTIONS)
    yield segment(answer, SERVER, CLIENT, PORTS[::-1], 0, 0, SYN | ACK, options=SYN_OPTIONS)
    yield segment(ROUND_TRIP + 1, CLIENT, SERVER, PORTS, 0, 1, ACK)


def out(n: int, seq: int, payload: int = 1000) -> bytes:
    return segment(OPENING + n, CLIENT, SERVER, PORTS, seq, 1, ACK, payload=payload)


def back(n: int, ack: int, *blocks: tuple[int, int]) -> bytes:
    edges = [edge % 2**32 for block in blocks for edge in block]
    options = b"\1\1\5" + bytes([2 + 4 * len(edges)]) + struct.pack(f">{len(edges)}I", *edges) if edges else b""
    return segment(OPENING + n, SERVER, CLIENT, PORTS[::-1], 1, ack, ACK, options=options)


def hundreds(count: int) -> Iterator[bytes]:
    """As many segments of 100 bytes that are outstanding, in the packets from 2 on."""
    yield from begin()
    yield out(0, 0)
    yield back(1, 1000)
    for n in range(count):
        yield out(n + 2, 1000 + 100 * n, 100)


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
    yield from hundreds(size)


def sack_growing(size: int) -> Iterator[bytes]:
    """A hole, and a block that grows by a segment with each ACK."""
    yield from begin()
    yield out(0, 0)
    yield back(1, 1000)
    for n in range(size):
        yield out(2 * n + 2, 1000 + 100 * n, 100)
        yield back(2 * n + 3, 1000, (1100, 1100 + 100 * max(n, 1)))


def sack_scattered(size: int) -> Iterator[bytes]:
    """Every second segment is reported, four old blocks with each ACK, in an order of chance."""
    yield from hundreds(size // 2)
    chance = np.random.default_rng(1)
    for n in range(size // 2):
        at = [1100 + 200 * int(number) for number in chance.integers(0, max(size // 4 - 1, 1), 4)]
        yield back(size // 2 + n + 2, 1000, *((left, left + 100) for left in at))


def duplicate_sacks(size: int) -> Iterator[bytes]:
    """DSACK blocks as wide as the window."""
    yield from hundreds(size // 2)
    end = 1000 + 100 * (size // 2)
    for n in range(size // 2):
        yield back(size // 2 + n + 2, 1000, (1100, end - 100), (1100, end))


def resends(size: int) -> Iterator[bytes]:
    """One segment again and again."""
    yield from begin()
    yield out(0, 0)
    yield back(1, 1000)
    for n in range(size):
        yield out(n + 2, 1000)


def wraps(size: int) -> Iterator[bytes]:
    """Sequence numbers that pass 2^32 every third packet."""
    yield from begin()
    for n in range(size):
        yield out(n, n * 1_500_000_000)


def backwards(size: int) -> Iterator[bytes]:
    """Data that come in the opposite order."""
    yield from begin()
    yield out(0, 0)
    yield back(1, 1000)
    for n in range(size):
        yield out(n + 2, 1000 + 100 * (size - n), 100)


def late(size: int) -> Iterator[bytes]:
    """At the receiver: every second segment, then those between from the last to the first."""
    yield from begin(at_sender=False)
    yield out(0, 0)
    yield back(1, 1000)
    for n in range(size // 2):
        yield out(n + 2, 1100 + 200 * n, 100)
    for n in range(size // 2):
        yield out(size // 2 + n + 2, 1000 + 200 * (size // 2 - 1 - n), 100)


def gap_by_gap(size: int) -> Iterator[bytes]:
    """At the receiver, with much outstanding: one comes after the next, again and again."""
    yield from begin(at_sender=False)
    for n in range(size // 2):
        yield out(n, 100 * n, 100)
    for n in range(size // 2, size):
        yield out(n, 100 * (n ^ 1), 100)


def gaps(size: int) -> Iterator[bytes]:
    """Each packet 1,000 segments beyond the one before."""
    yield from begin()
    for n in range(size):
        yield out(n, 1_460_000 * n)


def sack_then_resends(size: int) -> Iterator[bytes]:
    """All but the lowest are reported, and that is sent again and again."""
    yield from hundreds(size // 2)
    yield back(size // 2 + 2, 1000, (1100, 1000 + 100 * (size // 2)))
    for n in range(size // 2):
        yield out(size // 2 + n + 3, 1000, 100)


def sack_cuts(size: int) -> Iterator[bytes]:
    """Four bytes of each segment are reported, with holes between them."""
    yield from hundreds(size // 2)
    for n in range(size // 2):
        lefts = range(1010 + 100 * n, 1050 + 100 * n, 10)
        yield back(size // 2 + n + 2, 1000, *((left, left + 1) for left in lefts))


def resend_cuts(size: int) -> Iterator[bytes]:
    """Bytes here and there of long segments are sent again."""
    yield from begin()
    for n in range(size // 8):
        yield out(n, 60_000 * n, 60_000)
    for n in range(size - size // 8):
        yield out(size // 8 + n, 60 * (n * 7919 % (size // 8 * 1000)), 1)


def resends_then_cuts(size: int) -> Iterator[bytes]:
    """One segment again and again, of which every second byte is then reported."""
    yield from resends(size - 500)
    for n in range(500):
        yield back(size - 500 + n + 2, 1000, (1002 + 2 * n % 998, 1003 + 2 * n % 998))


def together(size: int) -> Iterator[bytes]:
    """Bytes sent one by one, and then as one segment again and again."""
    yield from begin()
    for n in range(size // 2):
        yield out(n, n, 1)
    for n in range(size - size // 2):
        yield out(size // 2 + n, 0, min(size // 2, 60_000))


def acknowledged_twice(size: int) -> Iterator[bytes]:
    """Every segment twice, and its ACK: each waits for evidence."""
    yield from begin()
    for n in range(size // 3):
        yield out(3 * n, 100 * n, 100)
        yield out(3 * n + 1, 100 * n, 100)
        yield back(3 * n + 2, 100 * n + 100)


def one_port_pair(size: int) -> Iterator[bytes]:
    """Connections on the same ports, each with another initial number."""
    for n in range(size):
        yield segment(n, CLIENT, SERVER, PORTS, n * 70_000, 0, SYN)


ATTACKS: dict[str, tuple[Callable[[int], Iterator[bytes]], int]] = {
    "syn-flood": (syn_flood, 4_000_000),
    "single-segments": (single_segments, 200_000),
    "outstanding": (outstanding, 1_000_000),
    "sack-growing": (sack_growing, 400_000),
    "sack-scattered": (sack_scattered, 400_000),
    "duplicate-sacks": (duplicate_sacks, 400_000),
    "sack-then-resends": (sack_then_resends, 400_000),
    "sack-cuts": (sack_cuts, 400_000),
    "resends": (resends, 1_600_000),
    "resend-cuts": (resend_cuts, 200_000),
    "resends-then-cuts": (resends_then_cuts, 400_000),
    "together": (together, 400_000),
    "acknowledged-twice": (acknowledged_twice, 800_000),
    "wraps": (wraps, 800_000),
    "backwards": (backwards, 400_000),
    "late": (late, 400_000),
    "gaps": (gaps, 200_000),
    "gap-by-gap": (gap_by_gap, 400_000),
    "one-port-pair": (one_port_pair, 800_000),
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


def least(paths: list[Path], runs: int) -> tuple[list[float], float]:
    """The least processor seconds of each capture in so many turns, and the megabytes of the last."""
    turns = [[measure(path) for path in paths] for _ in range(runs)]
    seconds = [min(took for took, _ in of_size) for of_size in zip(*turns, strict=True)]
    return seconds, max(turn[-1][1] for turn in turns)


def measure(path: Path) -> tuple[float, float]:
    """Processor seconds and megabytes of an analysis, without the start of the process."""
    done = subprocess.run([sys.executable, __file__, "--analyse", path], capture_output=True, text=True, check=True)
    seconds, megabytes = done.stdout.split()
    return float(seconds), float(megabytes)


def analyse(path: str) -> None:
    """What `measure` runs: the least of some calls, and the most memory after the first."""
    from tcpfit import engine

    calls, megabytes = [], 0.0
    for _ in range(CALLS):
        before = time.process_time()
        engine.analyze(path)
        calls.append(time.process_time() - before)
        megabytes = megabytes or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(min(calls), megabytes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*ATTACKS, []], metavar="NAME")
    parser.add_argument("--instructions", action="store_true", help="count instructions, not time (needs valgrind)")
    parser.add_argument("--runs", type=int, default=RUNS, help="how often each size is measured (%(default)s)")
    parser.add_argument("--analyse", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.analyse:
        analyse(arguments.analyse)
        return 0
    failed = False
    cost = "instructions a packet" if arguments.instructions else "seconds"
    print(f"| attack | packets | {cost} | MB | exponent |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{n}.pcap" for n in range(SIZES)]
        for name in arguments.names or ATTACKS:
            attack, largest = ATTACKS[name]
            largest >>= 3 * arguments.instructions
            sizes, megabytes = [largest >> halvings for halvings in reversed(range(SIZES))], 0.0
            if arguments.instructions:
                start_up = counted(paths[0], iter(()))
                costs = [float(counted(paths[0], attack(size)) - start_up) for size in sizes]
            else:
                for path, size in zip(paths, sizes, strict=True):
                    write(path, attack(size))
                costs, megabytes = least(paths, arguments.runs)
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
