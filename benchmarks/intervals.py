"""How often intervals of p and q_tilde hold the truth: `python benchmarks/intervals.py [--markdown docs/coverage.md]`.

Simulated flows need nothing. `--replicas DIR` takes folders NAME-rNN, runs of one scenario that differ only by chance,
and `--traces DIR ...` folders of any scenarios: each a truth.json beside sender.pcap* and receiver.pcap*.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from loss_process import PROCESSES, Flows, Process, simulate
from scipy import special

import tcpfit
from tcpfit import engine, parameters
from tcpfit.analysis import AtomicFile
from tcpfit.parameters import loss_rate
from tcpfit.parameters.intervals import Z95, Estimate, binomial_interval
from tcpfit.schema import polars_schema

RATES: Mapping[str, Callable[[Any], Estimate]] = {"p": loss_rate.p, "q_tilde": loss_rate.q_tilde}
LOSS_RATES = (0.0005, 0.002, 0.01, 0.03, 0.1)
EVENTS = (3, 5, 10, 30, 100, 300, 1000)
ENDS = ("sender", "receiver")
MISSED = (0.002, 0.01, 0.05)
RUN = 10  # packets that the capture misses in a row
SEVERAL = 5  # loss events of a flow that is no choice of unlucky ones
SEEDS = 3
ENOUGH = 3  # loss events of a flow whose capture is thinned
SAME = ["src", "dst", "src_port", "dst_port"]

HEAD = """# Coverage

Made by `python benchmarks/intervals.py --replicas DIR --traces DIR DIR --markdown docs/coverage.md` with tcpfit
{version}; do not edit.

How often the 95 % intervals of `p` and `q_tilde` hold the truth. The truth is the rate of the process: what an endless
flow on the same path would show. The number of losses in one capture is known much better, and says little about what
the same path does next.
"""


def main() -> int:
    """Measure what there is data for, print it, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flows", type=int, default=2000, help="simulated for each number (2000)")
    parser.add_argument("--replicas", type=Path, nargs="+", default=[])
    parser.add_argument("--traces", type=Path, nargs="+", default=[])
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    if arguments.flows < 1:
        parser.exit(2, "intervals.py: --flows must be at least 1\n")
    missing = [path for path in (*arguments.replicas, *arguments.traces) if not path.is_dir()]
    if missing:
        parser.exit(2, f"intervals.py: {missing[0]} is not a folder\n")
    parts = [HEAD.format(version=tcpfit.__version__), simulated(arguments.flows)]
    if arguments.replicas:
        parts.append(replicated(scenarios(arguments.replicas)))
    if arguments.traces:
        found = scenarios(arguments.traces)
        parts += [programmed(found), counted([*found, *scenarios(arguments.replicas)]), thinned(found)]
    text = "".join(parts)
    print(text)
    if arguments.markdown:
        with AtomicFile(arguments.markdown) as partial:
            partial.write_text(text)
    return 0


# Simulated flows


def sample(process: Process, p: float, events: float, flows: int, seed: int = 1) -> Flows:
    """Flows with about that many loss events each, where events begin at the rate p outside others."""
    random = np.random.default_rng((seed, round(events), round(1e6 * p)))
    pilot = simulate(process, p, events / p, min(flows, 200), random)
    return simulate(process, p, events / pilot.p, flows, random)


def coverage(flows: Flows) -> dict[str, float]:
    """Share of the flows whose interval holds the rate of all of them, by parameter."""
    evidence = flows.evidence()
    truth = {"p": flows.p, "q_tilde": flows.q_tilde}
    return {name: float(holds(rate(evidence), truth[name]).mean()) for name, rate in RATES.items()}


def holds(estimate: Estimate, truth: float) -> np.ndarray:
    """Whether each interval holds the truth."""
    return (estimate.low <= truth) & (truth <= estimate.high)


def simulated(flows: int) -> str:
    """The table of simulated flows: the mean over the loss rates, and the least and most of them."""
    text = f"""
## Simulated flows

Per cent of {flows} flows whose interval holds the truth, for flows with so many loss events on average: the mean over
events that begin at {", ".join(f"{100 * p:g} %" for p in LOSS_RATES)} of the segments, then the least and the most.
The window halves at each event and then grows by one segment a round; the round trip after an event's first loss
belongs to it. Chance moves one number by {100 * Z95 * (0.95 * 0.05 / flows) ** 0.5:.1f}.
"""
    for name in RATES:
        lines = [
            f"| `{name}` | " + " | ".join(f"{n} events" for n in EVENTS) + " |",
            "|" + " --- |" * (len(EVENTS) + 1),
        ]
        for process in PROCESSES.values():
            cells = []
            for n in EVENTS:
                found = [100 * shares(process.name, p, n, flows)[name] for p in LOSS_RATES]
                cells.append(f"{np.mean(found):.1f} ({min(found):.1f} to {max(found):.1f})")
            lines.append(f"| {process.name} | " + " | ".join(cells) + " |")
        text += "\n" + "\n".join(lines) + "\n"
    return text


@cache
def shares(process: str, p: float, events: int, flows: int) -> dict[str, float]:
    """`coverage` of a sample."""
    return coverage(sample(PROCESSES[process], p, events, flows))


# Captures whose truth was recorded


@dataclass(frozen=True)
class Scenario:
    """A folder with the captures of one run and its truth."""

    folder: Path
    truth: dict[str, Any]

    @property
    def name(self) -> str:
        """The scenario, without the number of the run."""
        return re.sub(r"-r\d+$", "", self.folder.name)

    @property
    def path(self) -> str:
        """The settings of the data direction and the round-trip time."""
        forward = self.truth["parameters"]["fwd"]
        settings = [f"{key}={value:g}" for key, value in forward.items() if key != "delay_us" and value]
        return f"RTT {self.truth['summary']['base_rtt_ms']:g} ms, {', '.join(settings)}"

    @property
    def dropped(self) -> tuple[int, int]:
        """Data packets that the path dropped, and those that it saw."""
        return self.truth["summary"]["data_pkts_dropped"], self.truth["summary"]["data_pkts_sent"]

    @property
    def one_by_one(self) -> bool:
        """Whether the path was programmed to lose packets independently."""
        return bool(self.truth["parameters"]["fwd"].get("loss"))

    def capture(self, end: str) -> Path | None:
        """The capture taken at one end."""
        return next(iter(sorted(self.folder.glob(f"{end}.pcap*"))), None)

    @property
    def q_tilde(self) -> float | None:
        """The rate of the losses that were programmed; None if there were others, or if it has no closed form."""
        forward, reasons = self.truth["parameters"]["fwd"], self.truth["summary"]["drops_by_reason"].get("f", {})
        kinds = {"loss", "burst_p", "ge_p"} & {key for key, value in forward.items() if value}
        if "data_queue" in reasons or len(kinds) != 1:
            return None
        if kinds == {"loss"}:
            return float(forward["loss"])
        if kinds == {"burst_p"}:
            m, p = forward.get("burst_m"), forward["burst_p"]
            return None if not m else m / (1 / p + m - 1)
        return float(forward["ge_h"] * forward["ge_p"] / (forward["ge_p"] + forward["ge_r"]))


def scenarios(folders: Iterable[Path]) -> list[Scenario]:
    """Every scenario below the folders whose truth is of the lab's kind."""
    found = [
        Scenario(path.parent, json.loads(path.read_text())) for f in folders for path in sorted(f.glob("*/truth.json"))
    ]
    return [scenario for scenario in found if "parameters" in scenario.truth and "summary" in scenario.truth]


@cache
def analysed(capture: Path) -> pl.DataFrame:
    """The flows of a capture that carried data, with `value`, `low` and `high` of both rates."""
    analysis = tcpfit.analyze(str(capture))
    return rates({"flows": analysis.flows, "events": analysis.events, "rounds": analysis.rounds})


def rates(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """The flows table with the values and intervals of both rates, p_value, p_low and so on."""
    wide = tables["flows"]
    estimates = parameters.estimate(tables["flows"], tables["events"], tables["rounds"])
    for name in RATES:
        own = estimates.filter(pl.col("name").cast(pl.String) == name)
        wide = wide.join(
            own.select("flow", *(pl.col(c).alias(f"{name}_{c}") for c in ("value", "low", "high"))), on="flow"
        )
    return wide.filter(pl.col("data_segments") > 0)


def of_data(scenario: Scenario, end: str) -> pl.DataFrame | None:
    """The flows of a scenario's capture that the data senders sent."""
    capture = scenario.capture(end)
    if capture is None:
        return None
    senders = {flow["src"] for flow in scenario.truth["flows"]}
    return analysed(capture).filter(pl.col("src").is_in(senders))


def replicated(found: list[Scenario]) -> str:
    """The table of replicas: coverage of the pooled rate, and of the programmed one where it is known."""
    names = sorted({scenario.name for scenario in found})
    rows, totals = [], np.zeros((len(RATES) + 1, 2))
    for name in names:
        runs = [scenario for scenario in found if scenario.name == name]
        at_sender = pl.concat([t for s in runs if (t := of_data(s, "sender")) is not None])
        sent = sum(s.truth["summary"]["data_pkts_sent"] for s in runs)
        dropped = sum(s.truth["summary"]["data_pkts_dropped"] for s in runs)
        truths = [("p", at_sender["loss_events"].sum() / sent), ("q_tilde", dropped / sent)]
        q_tilde = {s.q_tilde for s in runs}
        truths += [("q_tilde", q_tilde.pop())] if len(q_tilde) == 1 and None not in q_tilde else []
        cells = []
        for i, (rate, truth) in enumerate(truths):
            hit = list(hits(runs, rate, truth))
            totals[i] += sum(hit), len(hit)
            cells.append(f"{truth:.5f}: {sum(hit)} of {len(hit)}")
        cells += ["" for _ in range(3 - len(cells))]
        rows.append(
            f"| {name} | {runs[0].path} | {len(runs)} | {at_sender['loss_events'].mean():.0f} | "
            + " | ".join(cells)
            + " |"
        )
    error = (0.95 * 0.05 / max(len(found), 1)) ** 0.5
    share = [f"**{100 * hit / n:.1f} %** of {n:.0f}" if n else "" for hit, n in totals]
    return f"""
## Replicas

Real kernels over an emulated path, each scenario run many times with other random numbers, both captures of each run
(which share its luck: 80 intervals are 40 trials, and chance moves the shares of all by {100 * Z95 * error:.1f}). The
truth of `p` is the loss events of all runs (captures at the sender) over the segments that the path saw; that of
`q_tilde` the packets the path dropped, and where it follows from how the path was programmed also that rate.

| scenario | path | runs | loss events in a run | p | q_tilde, pooled | q_tilde, programmed |
| --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(rows)}
| all | | {len(found)} | | {" | ".join(share)} |
"""


def hits(runs: Iterable[Scenario], rate: str, truth: float) -> Iterator[bool]:
    """Whether the interval of each flow in both captures of each run holds the truth."""
    for scenario in runs:
        for end in ENDS:
            flows = of_data(scenario, end)
            if flows is not None:
                yield from flows.select(
                    (pl.col(f"{rate}_low") <= truth) & (truth <= pl.col(f"{rate}_high"))
                ).to_series()


def programmed(found: list[Scenario]) -> str:
    """The table of traces whose rate of loss is known from the path's settings, and of those that it is not held in."""
    rows, outside = [], []
    runs: dict[str, tuple[Scenario, bool]] = {}  # of flows with several events
    for few, least, most in (("1 to 4", 1, 4), ("5 or more", SEVERAL, sys.maxsize)):
        hit, flows = 0, 0
        names = set()
        for scenario in found:
            for end in ENDS:
                table = of_data(scenario, end)
                if scenario.q_tilde is None or table is None:
                    continue
                table = table.filter(pl.col("loss_events").is_between(least, most))
                within = (pl.col("q_tilde_low") <= scenario.q_tilde) & (pl.col("q_tilde_high") >= scenario.q_tilde)
                missed = table.filter(~within)
                hit, flows = hit + table.height - missed.height, flows + table.height
                names |= {scenario.name} if table.height else set()
                if least == SEVERAL and table.height:
                    held = runs[scenario.name][1] if scenario.name in runs else True
                    runs[scenario.name] = scenario, held and missed.is_empty()
                    outside += [_outside(scenario, end, row) for row in missed.iter_rows(named=True)]
        rows.append(f"| {few} | {len(names)} | {flows} | {100 * hit / max(flows, 1):.1f} % |")
    return f"""
## Traces: the programmed rate

`q_tilde` of every flow, at both ends, of the scenarios whose rate of loss follows from how the path was programmed and
that lost nothing else. A flow of few segments shows a loss only if it has more than its share: flows with 1 to 4 events
are a choice of the unlucky ones.

| loss events in the flow | scenarios | flows | interval holds the programmed rate |
| --- | --- | --- | --- |
{chr(10).join(rows)}
{_chance(runs.values(), outside) if outside else ""}"""


def _outside(scenario: Scenario, end: str, row: dict[str, Any]) -> str:
    """A line of the table of flows whose interval does not hold the programmed rate."""
    dropped, sent = scenario.dropped
    chance = ""
    if scenario.one_by_one:
        tails = special.bdtr(dropped, sent, scenario.q_tilde), special.bdtrc(dropped - 1, sent, scenario.q_tilde)
        chance = f"{min(1.0, 2 * min(tails)):.3f}"
    return (
        f"| {scenario.name} | {end} | {row['loss_events']} | {scenario.q_tilde:.5f} | {dropped} of {sent}: "
        f"{dropped / sent:.5f} | {row['q_tilde_low']:.5f} to {row['q_tilde_high']:.5f} | {chance} |"
    )


def _chance(runs: Iterable[tuple[Scenario, bool]], outside: list[str]) -> str:
    """How likely it is that so few runs hold the rate, how many would by the path's own count, and which do not."""
    held = [own for _, own in runs]
    alone = [scenario for scenario, _ in runs if scenario.one_by_one]
    dropped, sent = np.array([each.dropped for each in alone], np.float64).reshape(-1, 2).T
    low, high = binomial_interval(dropped, sent)
    rate = np.array([each.q_tilde for each in alone])
    few = 100 * special.bdtr(sum(held), len(held), 0.95)
    exact = int(((low <= rate) & (rate <= high)).sum())
    return f"""
Both captures of a run share its luck: flows with 5 or more events are {len(held)} trials. In {sum(held)} of them the
rate is held; were it held with a probability of 95 %, chance would give as few in {few:.0f} of 100 sets of that size.
Of the {len(alone)} runs whose path lost packets one by one, {exact} hold the rate in the exact interval (Clopper and
Pearson) of the share that the path itself counted. That one takes for granted that losses are independent; tcpfit
measures whether they are. The flows that do not hold it:

| scenario | capture | loss events | programmed | the path dropped | interval | chance of a share as far off |
| --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(outside)}
"""


def counted(found: list[Scenario]) -> str:
    """Whether ranges of counts hold what the path counted, and intervals the flow's own rate."""
    ranges, own = (dict.fromkeys(ENDS, (0, 0)) for _ in range(2))
    off: dict[tuple[str, str], list[int]] = {}
    outside: dict[tuple[str, str], int] = {}
    for scenario in found:
        if scenario.truth.get("group") == "k":  # super-segments: the capture's packets are not the path's
            continue
        summary = scenario.truth["summary"]
        for end in ENDS:
            table = of_data(scenario, end)
            if table is None:
                continue
            low, high, dropped = table["lost_low"].sum(), table["lost_high"].sum(), summary["data_pkts_dropped"]
            inside = low <= dropped <= high
            ranges[end] = ranges[end][0] + inside, ranges[end][1] + 1
            off.setdefault((scenario.name, end), []).append(int(table["lost_segments"].sum()) - dropped)
            outside[scenario.name, end] = outside.get((scenario.name, end), 0) + (not inside)
            if table.height == 1 and dropped:
                rate = dropped / summary["data_pkts_sent"]
                held = bool(table.select((pl.col("q_tilde_low") <= rate) & (pl.col("q_tilde_high") >= rate)).item())
                own[end] = own[end][0] + held, own[end][1] + 1

    def of(pair: Sequence[int]) -> str:
        return f"{pair[0]} of {pair[1]}"

    text = f"""
## Traces: the flow's own count

The range `lost_low` to `lost_high` is about this flow: the losses that the evidence allows. It holds the number of
packets that the path dropped in {of(ranges["sender"])} captures at the sender and in {of(ranges["receiver"])} at the
receiver. The interval of `q_tilde` holds the flow's own rate in {of(own["sender"])} flows at the sender and in
{of(own["receiver"])} at the receiver, as it should: it is made for more than that.
"""
    rows = [
        f"| {name} | {end} | {n} of {len(off[name, end])} | {min(off[name, end]):+d} to {max(off[name, end]):+d} |"
        for (name, end), n in sorted(outside.items())
        if n
    ]
    if rows:
        text += "\n| scenario | capture | not in the range | counted less dropped |\n| --- | --- | --- | --- |\n"
        text += "\n".join(rows) + "\n"
    return text


# Packets that the capture missed


def tracked(segments: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The engine's tables of a table of segments."""
    tracker = engine.Tracker()
    tracker.push(segments.cast(polars_schema("segments")))
    return engine.frames(tracker.finish())


def kept(packets: int, share: float, run: int, seed: int) -> np.ndarray:
    """Which packets a capture keeps that misses a share of them, so many in a row."""
    start = np.flatnonzero(np.random.default_rng((seed, run, round(share * 1e6))).random(packets) < share / run)
    keep = np.ones(packets, np.bool_)
    for offset in range(run):
        keep[np.minimum(start + offset, packets - 1)] = False
    return keep


def thinned_flows(capture: Path, share: float, run: int, seeds: int = SEEDS) -> pl.DataFrame:
    """Flows with enough loss events: the whole capture's columns, those of what was kept with `_kept` to their name."""
    segments = engine.frames(engine.analyze(str(capture), segments=True))["segments"]
    whole = rates(tracked(segments)).filter(pl.col("loss_events") >= ENOUGH)
    parts = []
    for seed in range(seeds):
        less = rates(tracked(segments.filter(pl.Series(kept(segments.height, share, run, seed)))))
        parts.append(whole.join(less, on=SAME, suffix="_kept"))
    table = pl.concat(parts)
    # a connection cut in two, or ports used again: the flows are not the same
    table = table.filter(pl.col("data_segments_kept") > 0.5 * pl.col("data_segments"))
    missing = pl.col("missing_segments_kept")
    return table.with_columns((missing / (missing + pl.col("data_segments_kept"))).alias("missed"))


def thinned(found: list[Scenario]) -> str:
    """The table of captures from which packets were taken."""
    rows = []
    for run in (1, RUN):
        for share in MISSED:
            captures = [capture for s in found for end in ENDS if (capture := s.capture(end)) is not None]
            table = pl.concat([thinned_flows(capture, share, run) for capture in captures])
            cells = [f"{100 * share:g} %, " + ("one by one" if run == 1 else f"{run} in a row"), str(table.height)]
            cells.append(f"{100 * table['missed'].mean():.2f} %")
            for name in RATES:
                change = table[f"{name}_value_kept"] / table[f"{name}_value"] - 1
                within = (table[f"{name}_low_kept"] <= table[f"{name}_value"]) & (
                    table[f"{name}_value"] <= table[f"{name}_high_kept"]
                )
                doubtful = 2 * table["missed"]
                part = change.abs() <= doubtful + Z95 * (doubtful / table["loss_events_kept"]).sqrt()
                cells.append(f"{100 * change.mean():+.1f} % ({100 * change.abs().quantile(0.95):.1f} %)")
                cells.append(f"{100 * within.mean():.1f} %")
                cells.append(f"{100 * part.mean():.1f} %")
            rows.append("| " + " | ".join(cells) + " |")
    return f"""
## Packets that the capture missed

From every capture of the traces packets of both directions were taken, {SEEDS} times with other random numbers, and
what was left was analysed. Flows with at least {ENOUGH} loss events. *Missed* is the share of data segments that tcpfit
says the capture missed. *Change* is that of the rate, mean and 95th percentile of its size. *Within* says how often the
interval from what was left holds the rate from the whole capture; *by the doubt alone* how often the change is within
the part of the interval that stands for capture loss, 2 c and 1.96 sqrt(2 c / events), c the share missed.

| taken | flows | missed | p: change | within | by the doubt alone | q_tilde: change | within | by the doubt alone |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(rows)}
"""


if __name__ == "__main__":
    sys.exit(main())
