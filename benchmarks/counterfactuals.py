#!/usr/bin/env python3
"""Predicted against measured changes in pairs of transfers that differ in one thing.

    counterfactuals.py --pairs OUT       transfers made by pairs.py
    counterfactuals.py --traces DIR      the recorded flows of DIR: a folder a scenario, with sender.* and truth.json
    counterfactuals.py                   docs/diagnosis/counterfactuals.md from the table, which the others write

What `tcpfit diagnose` says of the first transfer of a pair (what a cause cost, or what models say of a change) is held
against the rate of the second, which is taken from its truth and not from its capture. Rows of transfers that are not
given stay as they are.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pairs import REPLICAS, kept_time
from scipy.stats import t as students_t

import tcpfit
from tcpfit.diagnosis.table import Report, report
from tcpfit.models import catalogue
from tcpfit.ranking.prediction import predict

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/diagnosis"
TABLE, PAGE = FOLDER / "counterfactuals.csv", FOLDER / "counterfactuals.md"
COLUMNS = ("transfer", "replica", "what", "bps", "low_bps", "high_bps", "by")

Row = dict[str, Any]

WITHIN = 0.2

HEAD = """# Predicted and measured changes

Made by `benchmarks/counterfactuals.py`; do not edit.

`tcpfit diagnose` says what a cause cost and what a change would bring. Here that is held against experiment: pairs of
transfers that differ in one thing, {replicas} replicas of each with other seeds, between two Linux 6.18 hosts over an
emulated path. `benchmarks/pairs.py` has every transfer by its name and makes them again, given the emulator. In every
transfer 99 % of the packets left the emulator within half a millisecond of their time; the hosts shared a busy machine.

A change is a ratio of rates. *Said* is what tcpfit says of the transfer before the change, from the sender's capture:
the median of its replicas, with the least and the most of all of them (of a window limit the least is always 1: what
twice the window brings is said to be so much at most); "4 of 6" where something is said of so many. *Measured* is the
ratio of the mean rates, geometric, as the hosts recorded them, with Welch's 95 % interval on logarithms. *Off* is said
over measured, less one; more than 20 % is a miss.
"""

NOTES = {
    "Losses in bursts, and single ones at the same rate of events": """\
A burst of two or four segments in a row is dropped instead of one, at the same 0.4 % of events. NewReno repairs one
loss a round trip, so that bursts cost it rate; a sender with SACK repairs them at once and is hardly slower. That
models of NewReno are named for a sender with SACK (no other fits worse or better on so few events) makes tcpfit say
a tenth too much there.""",
    "Half the losses": """\
Independent losses. The middle is the first model named, the ends hold the others too. With SACK the first is
often one without timeouts, which says the square root of two whatever the rate of losses; at 4 % more than that is
measured, as the models with timeouts say, which are the upper end.""",
    "Late segments, and none": """\
Three segments in a row are held back 60 ms, twice a second; the round trip is 50 ms, the window 24 segments, but
for the lossy pair, which has 0.5 % of losses besides and no window in its way. The accounting reckons what the
sender's reaction cost. Late segments cost a window-limited flow without any reaction, too: the cumulative ACK waits
for them, and a full window stays full for that long. That time is given to the receiver's window, so that where the
sender adapts its threshold of duplicate ACKs, tcpfit says too little. In the lossy pair no limit is ever reached;
the reference is the rest of the time, which losses have slowed, and what the accounting says is too little as well.
The models, which are told how many loss indications had no loss behind them, are right there.""",
    "Twice the receiver's window": """\
The windows are 12, 24 and 48 segments at 80 ms; lossy: with 0.1 % of independent losses; narrow: through a
bottleneck of 2.5 Mbit/s, which the larger window overfills. What is said is the most that there is to gain, and
losses or the bottleneck take their part of it. The models say nothing, since none applies to a flow that is mostly
at its window.""",
    "Timeouts, and none or fewer": """\
Outage: the path drops everything for half a second or one and a half, once in 20 s. Of 6 % and 8 % of losses RACK
and tail loss probes (RFC 8985) repair what without them takes a timer; some timeouts remain, and NewReno's other
slowness goes as well, so that these pairs differ in more than the timers. The models are told how many of the loss
events ended in a timeout: with NewReno one in seven did (140 of 938), with SACK one in eighty (14 of 1,058). Left to
reckon it from the window, 3/w at a window of six, they give back 1.4 to 1.5 times the rate.""",
    "Without SACK, and with it": """\
Nothing is said of SACK itself: a model of a sender without it has no such parameter. But SACK repairs any number of
losses of a window about as fast as one, so what is said of bursts is taken. Of independent losses that is too
little by what NewReno loses besides, which is less than a tenth.""",
    "A queue in the round trip, and none": """\
Crossed: other people's bursts of 80 packets share the bottleneck, so that the round trip of 50 ms becomes 85 ms on
average, at 2 % of losses. The others fill the queue themselves: 100 packets or 15 at 3 Mbit/s, and windows of 60
and 20 segments, of which 10 fill the path. There nothing is said, which is right: without the queue the rate would
not be higher.""",
    "Another rate of losses, told": """\
Recorded flows, one each: the first model named, given the loss rates and the round trip of the second flow. The
miss is between flows whose loss rates differ by a factor of five: at 5 % the models named have no timeouts or rare
ones.""",
    "Late segments, and a sender that undoes": """\
Recorded flows, one each: the second sender has SACK and time stamps and undoes what it did for late segments.""",
}

MEASURED = "measured"

HALVED, SINGLE, LEAST_RTT, DOUBLED = (
    "half the losses",
    "no bursts of losses",
    "the round trip at its least",
    "twice the window limit",
)
NO_REACTION, NO_TIMERS = "no reaction to late segments", "timers that take no time"
WINDOW, REORDERING, TIMEOUT = "receiver-window-limited", "reordering-limited", "timeout-limited"
LOSSES_OF = "the losses of "


@dataclass(frozen=True)
class Pair:
    """Two transfers; `asks` is the change or the cause of which tcpfit says what it would bring or what it cost."""

    kind: str
    before: str
    after: str
    asks: str


def _pairs() -> Iterator[Pair]:
    kind = "Losses in bursts, and single ones at the same rate of events"
    for stack in ("newreno", "sack"):
        for length in (2, 4):
            yield Pair(kind, f"burst{length}-{stack}", f"burst1-{stack}", SINGLE)
    kind = "Half the losses"
    for stack, rates in (("newreno", (4, 2, 1)), ("sack", (4, 2, 1)), ("rack", (4, 2)), ("cubic", (2, 1))):
        for rate in rates:
            yield Pair(kind, f"loss{rate}-{stack}", f"loss{rate / 2:g}-{stack}", HALVED)
    kind = "Late segments, and none"
    for stack in ("newreno-fixed", "newreno-adapts", "sack-fixed", "sack-adapts", "rack", "lossy-newreno"):
        yield Pair(kind, f"late-{stack}", f"prompt-{stack}", REORDERING)
    for stack in ("newreno-fixed", "lossy-newreno"):
        yield Pair(kind, f"late-{stack}", f"prompt-{stack}", NO_REACTION)
    kind = "Twice the receiver's window"
    for path in ("", "-lossy"):
        for segments in (12, 24):
            yield Pair(kind, f"window{segments}{path}", f"window{2 * segments}{path}", WINDOW)
            if path:
                yield Pair(kind, f"window{segments}{path}", f"window{2 * segments}{path}", DOUBLED)
    yield Pair(kind, "window12-narrow", "window24-narrow", WINDOW)
    kind = "Timeouts, and none or fewer"
    for seconds in ("0.5", "1.5"):
        yield Pair(kind, f"outage{seconds}", "outage0", TIMEOUT)
    for rate in (6, 8):
        for stack in ("newreno", "sack"):
            for asks in (TIMEOUT, NO_TIMERS):
                yield Pair(kind, f"loss{rate}-{stack}", f"loss{rate}-rack", asks)
    kind = "Without SACK, and with it"
    for rate in (1, 2, 4):
        yield Pair(kind, f"loss{rate}-newreno", f"loss{rate}-sack", SINGLE)
    yield Pair(kind, "burst4-newreno", "burst4-sack", SINGLE)
    kind = "A queue in the round trip, and none"
    for stack in ("newreno", "sack"):
        yield Pair(kind, f"crossed-{stack}", f"loss2-long-{stack}", LEAST_RTT)
    yield Pair(kind, "queue100", "queue15", LEAST_RTT)
    yield Pair(kind, "standing60", "standing20", LEAST_RTT)


PAIRS = tuple(_pairs())

RECORDED = (
    *(
        Pair("Another rate of losses, told", before, after, LOSSES_OF + after)
        for before, after in (
            ("a-newreno-p5-rtt50", "a-newreno-p2-rtt50"),
            ("a-newreno-p2-rtt50", "a-newreno-p0.5-rtt50"),
            ("b-sack-p5-rtt50", "b-sack-p1-rtt50"),
            ("b-sack-p1-rtt50", "b-sack-p0.3-rtt50"),
            ("m-testbed-p2-rtt50", "m-testbed-p1-rtt50"),
        )
    ),
    *(
        Pair("Late segments, and a sender that undoes", before, after, REORDERING)
        for before, after in (
            ("f-d5-A2-push50-newreno", "f-d5-A2-push50-sack"),
            ("f-d1-A1-push10-newreno", "f-d10-A1-push30-sack"),
        )
    ),
)
"""Pairs of recorded flows; tcpfit is told the loss rates and the round trip of the second where it says `told`."""

EVERY = (*PAIRS, *RECORDED)

GIVEN = ("p", "p_indication", "q_tilde", "q", "m", "rtt", "rto")


def truth_bps(folder: Path) -> float:
    """Payload a second, from the first data segment to the ACK of the last, by the transfer's own record."""
    return float(json.loads((folder / "truth.json").read_text())["summary"]["goodput_bps"])


def analysed(folder: Path) -> tuple[tcpfit.Analysis, Report]:
    """The analysis of the capture at the sender, and the report on its largest flow."""
    analysis = tcpfit.analyze(next(folder.glob("sender.*")), segments=True)
    return analysis, report(analysis.select(analysis.largest()[:1]))[0]


def said(found: Report, asks: str) -> Row | None:
    """What a report says of a change or a cause: rate, low, high, and by what, all as ratios to the rate observed."""
    if found.observed_bps is None:
        return None
    for change in found.what_if:
        if change.change == asks:
            return _said(change, found.observed_bps, " ".join(change.models))
    for cause in found.diagnosis.causes:
        if cause.cause == asks and cause.cost is not None:
            return _said(cause.cost, found.observed_bps, "accounting")
    return None


def _said(one: Any, observed_bps: float, by: str) -> Row:
    ends = [one.rate_bps if end is None else end for end in (one.low_bps, one.high_bps)]
    rates = zip(("bps", "low_bps", "high_bps"), (one.rate_bps, *ends), strict=True)
    return {key: rate / observed_bps for key, rate in rates} | {"by": by}


def told(before: Path, after: Path) -> Row | None:
    """The change that the first model named gives with the loss rates and the round trip of the other transfer."""
    analysis, found = analysed(before)
    number = found.flow["flow"]
    other, theirs = analysed(after)
    mine, its = _estimates(analysis, number), _estimates(other, theirs.flow["flow"])
    named: Any = analysis.verdicts.filter(pl.col("flow") == number)["models"][0]
    best = analysis.ranking.filter((pl.col("flow") == number) & (pl.col("rank") == 1))["model"].to_list()
    for name in [*(named if named is not None else []), *best]:
        old = {key: np.asarray([value]) for key, value in mine.items()}
        new = old | {key: np.asarray([its[key]]) for key in GIVEN}
        ratio = float((predict(catalogue()[name], new) / predict(catalogue()[name], old))[0])
        if np.isfinite(ratio):
            return {"bps": ratio, "low_bps": ratio, "high_bps": ratio, "by": name}
    return None


def _estimates(analysis: tcpfit.Analysis, flow: int) -> dict[str, float]:
    own = analysis.parameters.filter(pl.col("flow") == flow)
    return {name: np.nan if value is None else value for name, value in own.select("name", "value").iter_rows()}


def measure(folder: Path, pairs: Iterable[Pair]) -> Iterator[Row]:
    """Rows of the transfers of a folder: the rate of each, and what is said of those that come first in a pair."""
    asked: dict[str, list[str]] = {}
    for pair in pairs:
        questions = asked.setdefault(pair.before, [])
        questions += [pair.asks] if pair.asks not in questions else []
        asked.setdefault(pair.after, [])
    for name, questions in asked.items():
        for own in sorted([*folder.glob(f"{name}-[0-9]"), *folder.glob(name)]):
            if own.name != name and not kept_time(own):
                continue
            bps = truth_bps(own)
            row = {"transfer": name, "replica": 1 if own.name == name else int(own.name.rsplit("-", 1)[1])}
            yield row | {"what": MEASURED, "bps": bps, "low_bps": bps, "high_bps": bps, "by": "truth"}
            if not questions:
                continue
            _, found = analysed(own)
            for question in questions:
                other = folder / question.removeprefix(LOSSES_OF)
                answer = told(own, other) if question.startswith(LOSSES_OF) else said(found, question)
                if answer is not None:
                    scaled = {key: answer[key] * bps for key in ("bps", "low_bps", "high_bps")}
                    yield row | scaled | {"what": question, "by": answer["by"]}


@dataclass(frozen=True)
class Change:
    """A ratio of rates with the ends of its interval."""

    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        same = f"{self.low:.2f}" == f"{self.high:.2f}"
        return f"{self.ratio:.2f}" if same else f"{self.ratio:.2f} ({self.low:.2f} to {self.high:.2f})"


def predicted(rows: list[Row], pair: Pair) -> tuple[Change, int] | None:
    """The change said of the first: the median of its replicas with the least and the most of all, and how many."""
    rates = {row["replica"]: row["bps"] for row in rows if (row["transfer"], row["what"]) == (pair.before, MEASURED)}
    own = [row for row in rows if (row["transfer"], row["what"]) == (pair.before, pair.asks)]
    if not own:
        return None
    ratios = {key: [row[key] / rates[row["replica"]] for row in own] for key in ("bps", "low_bps", "high_bps")}
    return Change(statistics.median(ratios["bps"]), min(ratios["low_bps"]), max(ratios["high_bps"])), len(own)


def measured(rows: list[Row], pair: Pair) -> Change:
    """The change of the mean rate, geometric, with Welch's 95 % interval on logarithms where there are replicas."""
    logs = [
        [math.log(row["bps"]) for row in rows if (row["transfer"], row["what"]) == (name, MEASURED)]
        for name in (pair.before, pair.after)
    ]
    middle = statistics.fmean(logs[1]) - statistics.fmean(logs[0])
    if min(map(len, logs)) < 2:
        return Change(*(math.exp(middle),) * 3)
    parts = [statistics.variance(values) / len(values) for values in logs]
    spread = sum(parts)
    if spread == 0:
        return Change(*(math.exp(middle),) * 3)
    freedom = spread**2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, logs, strict=True))
    half = float(students_t.ppf(0.975, freedom)) * math.sqrt(spread)
    return Change(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def load() -> list[Row]:
    """The rows of the table, rates as numbers."""
    with TABLE.open(newline="") as file:
        return [row | {"replica": int(row["replica"])} | _rates(row) for row in csv.DictReader(file)]


def _rates(row: Mapping[str, str]) -> dict[str, float]:
    return {key: float(row[key]) for key in ("bps", "low_bps", "high_bps")}


def save(rows: Iterable[Row]) -> None:
    """Write the table, in the order of its keys."""
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in sorted(rows, key=lambda row: (row["transfer"], row["replica"], row["what"])):
            writer.writerow(row | {key: f"{row[key]:.0f}" for key in ("bps", "low_bps", "high_bps")})


def outcome(said: Change | None, real: Change) -> str:
    """Whether the predicted change is within a fifth of the measured one, in a word or two."""
    if said is None:
        return ""
    off = said.ratio / real.ratio - 1
    return f"{off:+.0%}".replace("%", " %") + ("" if abs(off) <= WITHIN else ", **miss**")


def table(rows: list[Row], pairs: Iterable[Pair]) -> str:
    """A table of pairs in Markdown: predicted and measured changes with their intervals, and how far off."""
    lines = ["| before | after | said of | said | by | measured | off |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for pair in pairs:
        found, real = predicted(rows, pair), measured(rows, pair)
        told_by = Counter(
            row["by"].split(" ")[0] for row in rows if (row["transfer"], row["what"]) == (pair.before, pair.asks)
        )
        replicas = len({row["replica"] for row in rows if row["transfer"] == pair.before})
        said, count = found or (None, 0)
        text = "nothing" if said is None else str(said) + ("" if count == replicas else f", {count} of {replicas}")
        by = told_by.most_common(1)[0][0] if told_by else ""
        asks = LOSSES_OF + "the other" if pair.asks.startswith(LOSSES_OF) else pair.asks
        lines.append(f"| {pair.before} | {pair.after} | {asks} | {text} | {by} | {real} | {outcome(said, real)} |")
    return "\n".join(lines)


def score(rows: list[Row], pairs: Iterable[Pair]) -> tuple[int, int, int]:
    """Pairs within a fifth, of those of which something is said, and all."""
    found = [(predicted(rows, pair), measured(rows, pair)) for pair in pairs]
    said = [(one[0], real) for one, real in found if one is not None]
    return sum(abs(one.ratio / real.ratio - 1) <= WITHIN for one, real in said), len(said), len(found)


def page(rows: list[Row]) -> str:
    """docs/diagnosis/counterfactuals.md."""
    parts = [HEAD.format(replicas=REPLICAS)]
    good, said, every = score(rows, EVERY)
    large = [pair for pair in EVERY if abs(math.log(measured(rows, pair).ratio)) > math.log(1 + WITHIN)]
    among, of, _ = score(rows, large)
    summary = (
        f"Of {every} pairs, something is said of {said}; {good} of these are within 20 %. That is easily had where the "
        f"rate hardly changes: where it changes by more than a fifth, {among} of {of} are."
    )
    parts.append(f"{textwrap.fill(summary, 118)}\n")
    for kind in dict.fromkeys(pair.kind for pair in EVERY):
        own = [pair for pair in EVERY if pair.kind == kind]
        good, said, _ = score(rows, own)
        text = f"{good} of {said} within 20 %. {' '.join(NOTES[kind].split())}"
        parts.append(f"## {kind}\n\n{table(rows, own)}\n\n{textwrap.fill(text, 118)}\n")
    return "\n".join(parts)


def main() -> int:
    """Measure if asked to, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, metavar="OUT")
    parser.add_argument("--traces", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    rows = load() if TABLE.exists() else []
    for folder, pairs in ((arguments.pairs, PAIRS), (arguments.traces, RECORDED)):
        if folder is not None:
            names = {name for pair in pairs for name in (pair.before, pair.after)}
            rows = [row for row in rows if row["transfer"] not in names] + list(measure(folder, pairs))
    if arguments.pairs or arguments.traces:
        save(rows)
    PAGE.write_text(page(load()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
