"""Instructions of the engine for a packet, as callgrind counts them: `python benchmarks/instructions.py [--record]`.

The figure does not depend on the machine nor on what else it does, only on the compiler and on the libraries that are
compiled in. `--record` writes instructions.json beside this file; tests/test_instructions.py compares with it.
The engine is the example `analyze`, without Python; the captures are `generate.py`'s.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TypedDict

HERE = Path(__file__).parent
CRATE = HERE.parent / "tcpfit" / "engine"
RECORD = HERE / "instructions.json"
KINDS = ("large", "short", "lossy")
PACKETS = 20_000
SEED = 1


class Record(TypedDict):
    """What was counted, and by which compiler and libraries."""

    rustc: str
    lock: str
    per_packet: dict[str, float]


def missing() -> list[str]:
    """Programs that are needed and not installed."""
    return [program for program in ("cargo", "rustc", "valgrind") if not shutil.which(program)]


def compiled_by() -> tuple[str, str]:
    """The compiler's version, and the hash of the libraries' versions."""
    rustc = subprocess.check_output(["rustc", "--version"], text=True).strip()
    return rustc, sha256((CRATE / "Cargo.lock").read_bytes()).hexdigest()[:16]


def count() -> Record:
    """Builds the engine and counts: instructions a packet of each capture, those of an empty capture taken off."""
    build = ["cargo", "build", "--quiet", "--release", "--locked", "--no-default-features", "--example", "analyze"]
    subprocess.run(build, cwd=CRATE, check=True)
    rustc, lock = compiled_by()
    with tempfile.TemporaryDirectory(prefix="tcpfit-instructions-") as folder:
        start_up = instructions(capture(folder, KINDS[0], 0))
        counts = {kind: instructions(capture(folder, kind, PACKETS)) for kind in KINDS}
    per_packet = {kind: round((counted - start_up) / PACKETS, 1) for kind, counted in counts.items()}
    return Record(rustc=rustc, lock=lock, per_packet=per_packet)


def capture(folder: str, kind: str, packets: int) -> str:
    """A capture of that kind."""
    path = f"{folder}/{kind}-{packets}.pcap"
    script = str(HERE / "generate.py")
    subprocess.run([sys.executable, script, path, str(packets), kind, str(SEED)], check=True, stdout=subprocess.DEVNULL)
    return path


def instructions(path: str) -> int:
    """Of one run on the capture."""
    target = json.loads(
        subprocess.check_output(
            ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline"], cwd=CRATE, text=True
        )
    )["target_directory"]
    program = str(Path(target) / "release" / "examples" / "analyze")
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, path]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    found = re.search(r"Collected *: (\d+)", said)
    if not found:
        raise RuntimeError(f"valgrind says nothing of instructions: {said[-200:]!r}")
    return int(found[1])


def main() -> int:
    """Count, print, and record if asked to."""
    if sys.argv[1:] not in ([], ["--record"]):
        print("usage: instructions.py [--record]", file=sys.stderr)
        return 2
    if absent := missing():
        print(f"not installed: {', '.join(absent)}", file=sys.stderr)
        return 1
    counted = count()
    recorded = json.loads(RECORD.read_text())["per_packet"] if RECORD.exists() else {}
    for kind, figure in counted["per_packet"].items():
        print(f"{kind}: {figure:,.1f} instructions a packet (recorded: {recorded.get(kind, 'nothing')})")
    if sys.argv[1:]:
        RECORD.write_text(json.dumps(counted, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
