#!/usr/bin/env python3
"""Write docs/compare.md from the mapping and from the sample traces: `python docs/make_compare.py`; it needs tshark.

`--check` says whether the part that is made from the code alone is current, and needs no tshark.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tcpfit import comparison
from tcpfit.comparison import ANY, CLASSES, MAPPING, NOT_COMPARED, NOT_OF_PACKETS
from tcpfit.readers import wireshark

PAGE = Path(__file__).with_name("compare.md")
SAMPLES = Path(__file__).parents[1] / "sample-traces"

HEAD = """# Compared with tshark

Made from the code by `docs/make_compare.py`; do not edit.

    tcpfit compare capture.pcap.gz

puts tcpfit's labels beside the `tcp.analysis` flags of tshark, packet by packet, counts where they agree, and says why
they differ. From Python:

```python
import tcpfit
from tcpfit.comparison import compare

analysis = tcpfit.analyze("capture.pcap.gz")
comparison = compare(analysis, "capture.pcap.gz")
comparison.flows  # flow, class, packets: how many agree, and how many differ why
comparison.packets  # flow, frame, time_ns, label, tshark, agrees, class, why
```

Both look at the same packets with other questions. tshark says what a segment looks like when it passes and never goes
back on it; its rules know the highest number so far, the last ACK and the handshake's round trip. tcpfit waits for what
comes later (a duplicate SACK block, the ACK's echo, a second copy), goes by the sending order that identifications and
timestamps show, and asks what the sender did and what the path did to it. Neither is the truth: where they differ the
table says which fact decides, and a packet that no rule explains is `unexplained`.

tshark runs once, with `tcp.analyze_sequence_numbers` on and without reassembly; its rules are quoted from packet-tcp.c
of Wireshark 4.0. A flag that another one implies is left out: what is fast or spurious is also a retransmission. A
flag about the acknowledged data (`zero_window`, `ack_lost_segment`) belongs to the flow that is acknowledged.
"""

MAPPED = """
## Which flag says the same as which label

A packet agrees when each of its labels has one of the flags beside it here, and each flag one of the labels. A packet
whose resend was needless counts as `spurious`, not as `retransmission`. A loss that the capture point did not see is
compared at the packet that showed the hole. Reordering that only the ACKs show, at the sender, is not compared.

| label: kind | reason | tshark |
| --- | --- | --- |
"""

OURS = """
Labels that are not compared, since they are not about one packet or tshark has no word for them:

"""

THEIRS = """
Flags that are not compared:

"""

WHY = """
## Why they differ

"""

MEASURED = """
## How often, on the sample traces

Packets, all flows of each [sample](../sample-traces/README.md) together; tshark {version}.

"""


def code_part() -> str:
    """What is made from the code alone."""
    parts = [HEAD, MAPPED]
    for (kind, reason), flags in MAPPING.items():
        others = "any" if (kind, ANY) in MAPPING and not _reasons(kind) else "any other"
        shown = f"`{reason}`" if reason != ANY else others
        parts.append(f"| `{kind}` | {shown} | {', '.join(f'`{flag}`' for flag in flags) or 'none'} |\n")
    parts += [OURS, *(f"- `{kind}`: {why}\n" for kind, why in NOT_OF_PACKETS.items())]
    parts += [THEIRS, *(f"- `{flag}`: {why}\n" for flag, why in NOT_COMPARED.items())]
    parts += [WHY, *(f"- `{name}`: {sentence}\n" for name, sentence in CLASSES.items())]
    return "".join(parts)


def _reasons(kind: str) -> list[str]:
    return [reason for other, reason in MAPPING if other == kind and reason != ANY]


def measured_part() -> str:
    """What is measured on the sample traces."""
    counts = dict(_measured())
    used = [name for name in ["agrees", *CLASSES] if any(count[name] for count in counts.values())]
    rows = [["trace", *used], ["---", *("---:" for _ in used)]]
    rows += [[name, *(str(count[key] or "") for key in used)] for name, count in counts.items()]
    table = "".join(f"| {' | '.join(row)} |\n".replace("  ", " ") for row in rows)
    return MEASURED.format(version=wireshark.version()) + table


def _measured() -> Iterator[tuple[str, Counter[str]]]:
    from tcpfit.analysis import analyze

    for path in sorted(SAMPLES.glob("*.pcap*")):
        flows = comparison.compare(analyze(path), path).flows
        count: Counter[str] = Counter()
        for name, packets in flows.select("class", "packets").iter_rows():
            count[name] += packets
        yield path.name.split(".pcap")[0], count


def main() -> int:
    """Write the page, or say whether the part from the code is current."""
    if "--check" in sys.argv[1:]:
        current = PAGE.exists() and PAGE.read_text().startswith(code_part())
        if not current:
            print("docs/compare.md is not what tcpfit/comparison.py says; run docs/make_compare.py", file=sys.stderr)
        return 0 if current else 1
    PAGE.write_text(code_part() + measured_part())
    return 0


if __name__ == "__main__":
    sys.exit(main())
