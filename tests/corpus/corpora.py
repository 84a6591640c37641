"""Corpora made for the tests."""

from __future__ import annotations

from pathlib import Path

from captures import Transfer, pcap

SAMPLES = Path(__file__).parent.parent.parent / "sample-traces"


def capture(path: Path, number: int, segments: int = 40) -> Path:
    """A small capture; those of different numbers differ."""
    transfer = Transfer(segments=segments + number % 7, lost=frozenset({5 + number % 11, 23}), sport=40000 + number)
    path.write_bytes(pcap(transfer.run()))
    return path


def bytes_of(out: Path) -> dict[str, bytes]:
    """The data set: every file of it by its name, and none but those that belong there."""
    found = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    state = {name for name in found if name.startswith(".state")}
    assert {".state/lock", ".state/identities.jsonl"} == state, "files of a run were left"
    assert b"" == found[".state/lock"]
    return {name: content for name, content in found.items() if name not in state}
