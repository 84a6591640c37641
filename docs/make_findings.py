#!/usr/bin/env python3
"""Write docs/diagnosis from the rules' own words: `python docs/make_findings.py`; `--check` says whether it is current.

A page a finding: what the rule's docstring says, what it says of a sample capture, and how often it was right on
captures whose paths are known, which docs/diagnosis/validation.json holds.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import textwrap
from pathlib import Path

import tcpfit
from tcpfit.diagnosis import findings

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs/diagnosis"
SAMPLES = {
    "ack-loss": "findings/ack-loss",
    "ack-thinning": "findings/ack-thinning",
    "broken-off": "findings/broken-off",
    "bufferbloat": "findings/bufferbloat",
    "delayed-ack-nagle": "findings/delayed-ack",
    "duplicated-capture": "findings/duplicated-capture",
    "handoffs": "reordering-sender",
    "policer": "findings/policer",
    "sack-absent": "findings/sack-refused",
    "serial-requests": "findings/serial-requests",
    "shallow-buffer": "findings/shallow-buffer",
    "slow-ack-path": "findings/slow-ack-path",
    "slow-receiver": "slow-reader",
    "small-mss": "findings/small-mss",
    "spurious-timeouts": "findings/spurious-timeouts",
    "syn-loss": "findings/syn-loss",
    "timestamps-absent": "findings/timestamps",
    "window-scaling-absent": "findings/window-scaling-sender",
}

HEAD = """# What is wrong: findings

Made from the code by `docs/make_findings.py`; do not edit.

`tcpfit.diagnosis.findings.find(analysis, flow)` looks for these in one flow. Each is a rule, not a fit; it names
frames that show it, a display filter for Wireshark, a remedy, and what it cost where the capture shows that. A rule
that cannot be sure says nothing. The analysis must hold its packets: `tcpfit.analyze(path, segments=True)`.

{about}

| finding | what it is | found, sender | found, receiver | wrong |
| --- | --- | --- | --- | --- |
"""


def module(name: str) -> object:
    """The module of a rule."""
    return importlib.import_module(findings.RULES[name].__module__)


def index(counts: dict[str, dict[str, list[int]]], about: str) -> str:
    """The page that lists all."""
    rows = []
    for name in findings.RULES:
        title = _title(name)
        each, wrong, clean = counts.get(name, {}), 0, 0
        for end in each.values():
            wrong, clean = wrong + end[3], clean + end[2]
        cells = [_of(each.get(end)) for end in ("sender", "receiver")]
        rows.append(f"| [`{name}`]({name}.md) | {title} | {cells[0]} | {cells[1]} | {wrong} of {clean} |\n")
    words = (
        f'"Found" and "wrong" are counts of captures whose paths are known, at the sender\'s and the receiver\'s end: '
        f"{about}. A dash means that no such capture has it. Where a page says that a rule is silent at one end, the "
        "captures of that end count as not found."
    )
    return HEAD.format(about=textwrap.fill(words, 118)) + "".join(rows)


def page(name: str, counts: dict[str, list[int]], notes: list[str]) -> str:
    """The page of one finding."""
    doc = module(name).__doc__ or ""
    title, body = doc.strip().split("\n", 1)
    heading = title.split(":")[0]
    body = re.sub(r"\*\*Validation\*\*.*", "", body, flags=re.DOTALL)
    parts = [f"# {heading}\n\nMade from the code by `docs/make_findings.py`; do not edit.\n\n{title}\n"]
    parts += [f"\n{part.strip()}\n" for part in re.split(r"\n(?=\*\*)", body) if part.strip()]
    sample = SAMPLES[name]
    analysis = tcpfit.analyze(ROOT / f"sample-traces/{sample}.pcap.gz", segments=True)
    said = [one for flow in analysis.flows["flow"] for one in findings.find(analysis, flow) if one.name == name]
    one = said[0]
    parts.append(f"\n## A sample\n\n`sample-traces/{sample}.pcap.gz`:\n\n")
    cost = "not known" if one.seconds is None else f"{one.seconds:.3g} s"
    for label, text in (("claim", one.claim), ("remedy", one.remedy), ("cost", cost)):
        parts.append(textwrap.fill(f"{label}: {text}", 118, initial_indent="> ", subsequent_indent="> ") + "\n>\n")
    parts.append(f"> frames: {', '.join(map(str, one.frames))}\n>\n> confidence: {one.confidence}\n\n")
    parts.append(f"In Wireshark: `{one.display_filter}`\n\n## Validation\n\n")
    parts.append("| end | has it | found | has it not | wrongly found |\n| --- | --- | --- | --- | --- |\n")
    parts += [f"| {end} | {c[0]} | {c[1]} | {c[2]} | {c[3]} |\n" for end, c in sorted(counts.items(), reverse=True)]
    parts += [f"\n{textwrap.fill(note, 118)}\n" for note in notes]
    return "".join(parts)


def pages() -> dict[Path, str]:
    """Every page by its path."""
    data = json.loads((FOLDER / "validation.json").read_text())
    made = {FOLDER / "README.md": index(data["counts"], data["captures"])}
    for name in findings.RULES:
        made[FOLDER / f"{name}.md"] = page(name, data["counts"].get(name, {}), data["notes"].get(name, []))
    return made


def _title(name: str) -> str:
    first = (module(name).__doc__ or "").split("\n", 1)[0]
    return first.split(": ", 1)[1].rstrip(".")


def _of(counts: list[int] | None) -> str:
    return f"{counts[1]} of {counts[0]}" if counts and counts[0] else "-"


def main() -> int:
    made = pages()
    if "--check" in sys.argv:
        stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not current; run docs/make_findings.py", file=sys.stderr)
        return 1 if stale else 0
    for path, text in made.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
