#!/usr/bin/env python3
"""Does a verdict hold on a part of the flow that it was not told of? `python benchmarks/halves.py TRACES...`

Every flow's steady part is cut in two by time, and the second half predicted from the parameters of the first
(`tcpfit.ranking.halves`). A flow whose verdict is `explained` or `undecided` counts. S are the models that it names:

  stays   a model of S is as good as any on the second half: none that applies is better by two standard errors
  top     the same of the best of S alone
  near    a model of S is within 25 % of the second half's rate
  others  of the applicable models that are not in S, the share that is as good on the second half

TRACES are folders of scenarios, each with sender.pcap*, receiver.pcap* and a truth.json that names the data senders.
Standard output: a line a flow and place, then the shares.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from tcpfit import Analysis, analyze
from tcpfit.ranking.halves import halves
from tcpfit.ranking.rank import ranked_models

NEAR = math.log(1.25)


def main() -> None:
    parser = argparse.ArgumentParser(description="Predict the second half of flows from the first.")
    parser.add_argument("traces", nargs="+", type=Path, help="folder of scenarios")
    scenarios = sorted(truth.parent for folder in parser.parse_args().traces for truth in folder.glob("*/truth.json"))
    flows = [flow for scenario in scenarios for flow in of_scenario(scenario)]
    if not flows:
        raise SystemExit("no flow has a verdict that names a model")
    others = [share for flow in flows for share in flow["others"]]
    shares = {key: sum(flow[key] for flow in flows) / len(flows) for key in ("stays", "top", "near")}
    print(f"{len(flows)} flows: " + ", ".join(f"{key} {share:.1%}" for key, share in shares.items()))
    print(f"others: {sum(others)} of {len(others)}")


def of_scenario(scenario: Path) -> Iterator[dict]:
    """What the flows of a scenario say, at both ends."""
    truth = json.loads((scenario / "truth.json").read_text())
    senders = {truth["client"].rsplit(":", 1)[0]} if "client" in truth else {flow["src"] for flow in truth["flows"]}
    for place in ("sender", "receiver"):
        analysis = analyze(next(scenario.glob(f"{place}.pcap*")))
        chosen = analysis.flows.filter(pl.col("src").is_in(senders))["flow"].to_list()
        for flow in of_analysis(analysis.select(chosen)):
            yield flow
            marks = " ".join(key for key in ("stays", "top", "near") if flow[key])
            print(f"{scenario.name:30} {place:8} {flow['flow']:4} {marks:15} {','.join(flow['models'])}", flush=True)


def of_analysis(analysis: Analysis) -> Iterator[dict]:
    """A dictionary for every flow whose verdict names a model."""
    second = halves(analysis.flows, analysis.events, analysis.rounds, analysis.ranking, ranked_models())
    for verdict in analysis.verdicts.filter(pl.col("models").list.len() > 0).to_dicts():
        named, own = verdict["models"], second.filter(pl.col("flow") == verdict["flow"])
        as_good = dict(own.select("model", "as_good").iter_rows())
        ratio = dict(own.select("model", "log_ratio").iter_rows())
        yield {
            "flow": verdict["flow"],
            "models": named,
            "stays": any(as_good.get(name) for name in named),
            "top": bool(as_good.get(named[0])),
            "near": any(abs(ratio[name]) <= NEAR for name in named if ratio.get(name) is not None),
            "others": [bool(good) for name, good in as_good.items() if name not in named],
        }


if __name__ == "__main__":
    main()
