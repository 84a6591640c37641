#!/usr/bin/env python3
"""Verdicts on transfers that were made with a cause: `verdicts.py DIR [DIR ...]`, folders NAME/truth.json.

Writes docs/diagnosis/causes/validation.json, which docs/make_causes.py puts into the pages. What a transfer was made
with follows from its name (the conditions of pairs.py and the recorded scenarios); others are left out.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
from pairs import kept_time

import tcpfit
from tcpfit.diagnosis import causes as a
from tcpfit.diagnosis.table import diagnose

COUNTS = Path(__file__).resolve().parent.parent / "docs/diagnosis/causes/validation.json"

MADE_WITH: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"i-app-limited", (a.APPLICATION,)),
    (r"i-slow-reader", (a.STALLED, a.WINDOW)),
    (r"i-rwnd-limited|window(12|24|48)|window12-narrow|prompt-(newreno|sack)-\w+|prompt-rack|outage0", (a.WINDOW,)),
    (r"i-rate-limited|standing\d+|window24-narrow", (a.BOTTLENECK, a.WINDOW)),
    (r"e-.*|queue\d+", (a.BOTTLENECK, a.LOSS)),
    (r"(loss[68]-newreno)|a-newreno-p10-.*", (a.LOSS, a.TIMEOUT)),
    (r"loss[\d.]+-\w+|loss2-long-\w+|burst\d-\w+|prompt-lossy-newreno|crossed-\w+", (a.LOSS, a.TIMEOUT)),
    (r"(a|b|c-cubic|d|m)-.*", (a.LOSS, a.TIMEOUT)),
    (r"f-.*newreno|late-newreno-fixed", (a.REORDERING, a.WINDOW)),
    (r"late-newreno-adapts|late-sack-\w+|late-rack", (a.WINDOW, a.REORDERING)),
    (r"late-lossy-newreno", (a.REORDERING, a.LOSS)),
)
"""What a name says: the cause, and what else may be named since it comes with it."""

FULL = 0.8
"""Share of the bottleneck's rate from which losses may be those of its own queue."""

NEAR = 0.05
KERNEL = {"busy": "busy_time_us", "rwnd_limited": "rwnd_limited_us", "sndbuf_limited": "sndbuf_limited_us"}


def made_with(name: str, truth: dict[str, Any]) -> tuple[str, ...]:
    """The cause that a transfer was made with, and those that may come with it; empty where its name does not say."""
    known = next((causes for pattern, causes in MADE_WITH if re.fullmatch(pattern, name)), ())
    rate, goodput = truth["parameters"]["fwd"].get("rate_bps"), truth["summary"].get("goodput_bps")
    if known and rate and goodput and goodput > FULL * rate:
        return (a.BOTTLENECK, *(cause for cause in known if cause != a.BOTTLENECK))
    return known


def transfers(folders: list[Path]) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Name without its replica's number, folder and truth of every transfer."""
    for folder in folders:
        for path in sorted(folder.glob("*/truth.json")):
            replica = re.fullmatch(r"(.*)-\d", path.parent.name) if not (folder / "README.md").exists() else None
            if replica is None or kept_time(path.parent):
                truth = json.loads(path.read_text())
                yield (replica[1] if replica else path.parent.name), path.parent, truth


def main(folders: list[Path]) -> int:
    """Count and write."""
    counts: Counter[tuple[str, str, int]] = Counter()
    shares: Counter[tuple[str, bool]] = Counter()
    seen, missed = 0, []
    for name, folder, truth in transfers(folders):
        expected = made_with(name, truth)
        for end in ("sender", "receiver"):
            analysis = tcpfit.analyze(next(folder.glob(f"{end}.*")))
            flow = analysis.largest()[0]
            own = [table.filter(pl.col("flow") == flow) for table in (analysis.flows, analysis.events, analysis.rounds)]
            found = diagnose(*own)[flow]
            if end == "sender" and truth["summary"]["flows"] == 1:
                info, total_s = truth["flows"][0]["tcp_info"], sum(cause.seconds for cause in found.causes)
                for share, key in KERNEL.items():
                    counted = min(info[key] / 1e6 / total_s, 1.0)
                    shares[share, abs(found.kernel.get(share, 0.0) - counted) <= NEAR] += 1
            if not expected:
                continue
            seen += end == "sender"
            counts[expected[0], end, 0] += 1
            if found.primary == expected[0]:
                counts[expected[0], end, 1] += 1
            else:
                counts[found.primary, end, 2] += 1
                counts[found.primary, end, 3] += found.primary in expected
            if found.primary not in expected:
                missed.append(f"{folder.name} at the {end}: {found.primary}")
    document = {
        "transfers": seen,
        "causes": {
            cause: {end: [counts[cause, end, k] for k in range(4)] for end in ("sender", "receiver")}
            for cause in a.CAUSES
            if any(key[0] == cause for key in counts)
        },
        "kernel": {share: [shares[share, True], shares[share, True] + shares[share, False]] for share in KERNEL},
        "wrong": missed,
    }
    COUNTS.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main([Path(folder) for folder in sys.argv[1:]]))
