"""Rotated captures: files that one capture was written to, one after the other.

By name: `x.pcap`, `x.pcap1`, `x.pcap2` (tcpdump -C), `x.pcap0`, `x.pcap1` (-C with -W, which pads with zeros),
`x_00001_20261121093000.pcapng` (dumpcap -b) and `x_20261121093000_00001.pcapng` (-b nametimenum:2); each may be
compressed. Parts are in order of their numbers; a ring of tcpdump begins again at 0, so the order of time is found when
the parts are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

TCPDUMP = re.compile(r"(?P<stem>.*\.(?:pcap|pcapng|cap|dmp|tcpdump))(?P<number>\d*)(?P<compressed>\.(?:gz|zst))?", re.S)
DUMPCAP = re.compile(
    r"(?P<stem>.*)_(?:(?P<number>\d{5,})_\d{14}|\d{14}_(?P<later>\d{5,}))(?P<suffix>(?:\.\w+)??)(?P<compressed>\.(?:gz|zst))?",
    re.S,
)


def joined(paths: Iterable[str]) -> list[tuple[str, ...]]:
    """Paths in groups: those of a rotated capture together, every other by itself."""
    groups: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for path in paths:
        key, number = _place(path)
        groups.setdefault(key, []).append((number, path))
    traces: list[tuple[str, ...]] = []
    for group in groups.values():
        if len({number for number, _ in group}) < len(group):  # x.pcap beside x.pcap.gz
            traces += [(path,) for _, path in group]
        else:
            traces.append(tuple(path for _, path in sorted(group)))
    return sorted(traces)


def _place(path: str) -> tuple[tuple[str, ...], int]:
    """The trace that a file belongs to, and its number there; -1 is before all others."""
    if match := DUMPCAP.fullmatch(path):
        number = match["number"] or match["later"]
        return ("dumpcap", match["stem"], match["suffix"]), int(number)
    if match := TCPDUMP.fullmatch(path):
        return ("tcpdump", match["stem"]), int(match["number"] or -1)
    return ("", path), 0
