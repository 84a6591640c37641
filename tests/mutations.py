"""Captures changed by chance: bits, bytes, lengths, pieces doubled, left out or put elsewhere.

    python tests/mutations.py COUNT [SEED] [FILE...]

runs so many of them through the command, in one process: each has to end with status 0 or 1 and without a traceback, in
ten seconds and 500 MB, and the engine has to read the same segments as the dpkt reader. What does not is kept under
`mutation-N.pcap`.
"""

from __future__ import annotations

import random
import resource
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "tcpfit" / "engine" / "fuzz" / "corpus" / "capture"
ODD = (0, 1, 2, 3, 4, 15, 16, 20, 60, 127, 128, 254, 255)
ODD_LONG = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF, 0x10000, 262_145)
COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
ALLOWED_S, ALLOWED_MB, GROWTH_MB = 10.0, 500, 100


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The bytes with one to eight changes."""
    out = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(max(len(out), 1))
        match chance.randrange(8):
            case 0:
                out[at : at + 1] = bytes([(out[at] if out else 0) ^ 1 << chance.randrange(8)])
            case 1:
                out[at : at + 1] = bytes([chance.choice(ODD)])
            case 2:
                out[at : at + 1] = chance.randbytes(1)
            case 3:
                out[at : at + 4] = struct.pack(chance.choice("<>") + "I", chance.choice(ODD_LONG))
            case 4:
                del out[at : at + chance.randint(1, 64)]
            case 5:
                out[at:at] = out[at : at + chance.randint(1, 200)]
            case 6:
                to = chance.randrange(max(len(out), 1))
                piece = out[at : at + chance.randint(1, 200)]
                out[to : to + len(piece)] = piece
            case _:
                if chance.random() < 0.2:
                    del out[at:]
    return bytes(out)


def captures_of(files: list[Path], seed: int) -> Iterator[bytes]:
    """Mutated captures without end, the same for a seed."""
    chance = random.Random(seed)
    sources = [path.read_bytes() for path in files]
    while True:
        yield mutated(chance.choice(sources), chance)


def peak_mb() -> float:
    """The most that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def problem(path: Path) -> str | None:
    """What is wrong with how the command takes a capture; None where nothing is."""
    from click.testing import CliRunner
    from tcpfit.cli.main import main

    from tcpfit.exceptions import CaptureError
    from tcpfit.readers import Settings, read

    before, held = time.monotonic(), peak_mb()
    done = CliRunner().invoke(main, ["analyze", str(path), "--format", "json"])
    if time.monotonic() - before > ALLOWED_S:
        return f"more than {ALLOWED_S:g} s"
    if done.exit_code not in (0, 1) or "unexpected error" in done.output or "Traceback" in done.output:
        return f"exit status {done.exit_code}: {done.exception!r} {done.output[-300:]}"
    if peak_mb() > max(ALLOWED_MB, held + GROWTH_MB):  # other tests of the process may have had more than is allowed
        return f"more than {ALLOWED_MB} MB"
    rows: list[list[tuple[object, ...]]] = []
    for reader in ("engine", "dpkt"):
        try:
            rows.append(read(str(path), reader, Settings(segments=True)).tables["segments"].rows())
        except CaptureError:
            rows.append([])
    if path.read_bytes().startswith(COMPRESSED):
        # how much comes out of a damaged stream before the damage shows is the library's matter
        fewest = min(map(len, rows))
        rows = [found[:fewest] for found in rows]
    return None if rows[0] == rows[1] else "the engine and the dpkt reader differ"


def main() -> int:
    count = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    files = [Path(name) for name in sys.argv[3:]] or sorted(CORPUS.iterdir())
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.pcap"
        for number, data in zip(range(count), captures_of(files, seed), strict=False):
            path.write_bytes(data)
            found = problem(path)
            if found:
                failed += 1
                Path(f"mutation-{number}.pcap").write_bytes(data)
                print(f"{number}: {found}", flush=True)
    print(f"{count} captures, {failed} failed, at most {peak_mb():.0f} MB")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
