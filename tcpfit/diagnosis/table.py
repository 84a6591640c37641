"""The diagnosis of every flow of an analysis, and the face of it that the JSON shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tcpfit import arguments
from tcpfit.diagnosis.accounting import account, account_of
from tcpfit.diagnosis.causes import LOSS, TIMEOUT
from tcpfit.diagnosis.changes import Estimate, Models, WhatIf
from tcpfit.diagnosis.connections import segments_of
from tcpfit.diagnosis.cost import Cost, Together, accounted_together
from tcpfit.diagnosis.excerpt import excerpt
from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.stalls import Stall, stalls
from tcpfit.diagnosis.verdict import Diagnosis, attempted, judge, permitting_sack, placed, withheld
from tcpfit.exceptions import InvalidParameter
from tcpfit.parameters import estimate
from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.growth import as_reno, families
from tcpfit.parameters.intervals import Floats
from tcpfit.parameters.loss_rate import capture_loss, seen_twice
from tcpfit.ranking.blocks import parameters as of_blocks
from tcpfit.ranking.cut import cut
from tcpfit.ranking.observed import observed_of

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

OF_LOSSES = frozenset({"p", "p_indication", "q_tilde", "q", "m", "p_to"})
"""Parameters made of losses and of what they set off."""


def diagnose(flows: pl.DataFrame, events: pl.DataFrame, rounds: pl.DataFrame) -> dict[int, Diagnosis]:
    """The diagnosis of every flow by its number; the tables are those of `tcpfit.schema`.

    Raises InvalidParameter for another table.
    """
    return of_spans(flows, account(flows, events, rounds))


def of(spans: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """The spans of these flows."""
    return spans.filter(pl.col("flow").is_in(flows["flow"].implode()))


def accounted(evidence: Evidence) -> pl.DataFrame:
    """The spans that diagnoses rest on: those of `account`, unknown where the capture missed too much to tell."""
    return withheld(account_of(evidence), evidence.flow, _missed(evidence))


def _missed(evidence: Evidence) -> Floats:
    """The share of each flow's data that the capture missed, infinite where it has most of it twice."""
    return np.where(seen_twice(evidence), np.inf, capture_loss(evidence))


def of_spans(flows: pl.DataFrame, spans: pl.DataFrame) -> dict[int, Diagnosis]:
    """The diagnosis of every flow from spans that are there, whole or cut to some time."""
    evidence = Evidence(flows, NONE, NONE)
    vantage = evidence.flows["vantage"].cast(pl.String).to_list()
    first_ns = evidence.flows["first_ns"].to_numpy()
    found = judge(spans, evidence.flow, first_ns, vantage, _missed(evidence))
    for row in flows.filter(data_segments=0, acks_seen=False).iter_rows(named=True):
        if row["timeouts"]:
            found[row["flow"]] = attempted(found[row["flow"]], row["timeouts"] + 1, row["completeness"])
    ran_out = flows.filter(pl.col("timeouts") > 0, "sack_permitted")
    for number, probes in ran_out.select("flow", "tail_loss_probes").iter_rows():
        found[number] = permitting_sack(found[number], probes)
    for row in flows.filter(pl.col("vantage") == "middle", pl.col("lost_segments") > 0).iter_rows(named=True):
        if found[row["flow"]].primary in (LOSS, TIMEOUT):
            found[row["flow"]] = placed(found[row["flow"]], row["lost_segments"], row["lost_upstream"])
    return found


NONE = pl.DataFrame({"flow": []}, schema={"flow": pl.UInt32})


def facts(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as the JSON has it; docs/json.md says what each key means.

    Raises InvalidParameter for what is no diagnosis.
    """
    arguments.instance("the diagnosis", diagnosis, Diagnosis, "one of those that tcpfit.diagnosis.diagnose gives")
    return {
        "primary": diagnosis.primary,
        "text": diagnosis.text,
        "who": diagnosis.who,
        "remedy": diagnosis.remedy,
        "confidence": diagnosis.confidence,
        "kernel_shares": dict(diagnosis.kernel) or None,
        "causes": [
            {
                "cause": cause.cause,
                "time_share": cause.time_share,
                "seconds": cause.seconds,
                "since_s": cause.since_s,
                "cost_bps": cause.cost.gain_bps if cause.cost else None,
                "cost": _cost(cause.cost),
                "confidence": cause.confidence,
                "frames": cause.frames,
                "evidence": cause.evidence,
            }
            for cause in diagnosis.causes
        ],
    }


def _cost(cost: Cost | None) -> dict[str, Any] | None:
    if cost is None:
        return None
    return {
        "rate_bps": cost.rate_bps,
        "low_bps": cost.low_bps,
        "high_bps": cost.high_bps,
        "seconds": cost.seconds,
        "basis": cost.basis,
    }


def between(spans: pl.DataFrame, start_ns: int, end_ns: int) -> pl.DataFrame:
    """The spans cut to a time; the bytes of one that is cut go with its time."""
    low, high = pl.max_horizontal("start_ns", pl.lit(start_ns)), pl.min_horizontal("end_ns", pl.lit(end_ns))
    kept = (high - low) / (pl.col("end_ns") - pl.col("start_ns"))
    return spans.filter(low < high).with_columns(low.alias("start_ns"), high.alias("end_ns"), pl.col("bytes") * kept)


@dataclass(frozen=True)
class Report:
    """All that is said of one flow."""

    flow: dict[str, Any]
    diagnosis: Diagnosis
    observed_bps: float | None
    """Of what was acknowledged, over the time that is accounted for: what the costs are reckoned from."""
    goodput_bps: float | None
    """Of what arrived, as `tcpfit analyze` has it, which at a receiver may be more than was acknowledged in the end."""
    accounted_s: float
    """The time that is accounted for, that of causes which are not named for their smallness too."""
    what_if: list[WhatIf]
    together: list[Together]
    stalls: list[Stall]
    findings: list[Finding]
    span_ns: tuple[int, int] | None = None
    """The time that is accounted for, where that is not all; findings are of the whole flow."""


def report(analysis: Analysis, span_ns: tuple[int, int] | None = None) -> list[Report]:
    """A report a flow, the largest first; `span_ns` keeps to some time. The analysis needs its segments.

    Of some time the models are those named for the whole flow, with the parameters of that time.
    Raises InvalidParameter where it has no segments, and for a time that ends before it starts.
    """
    arguments.analysis(analysis)
    if span_ns is not None:
        span_ns = _span(span_ns)
    from tcpfit.diagnosis.findings import find_in
    from tcpfit.diagnosis.findings.view import View

    flows = analysis.flows
    spans = of(accounted(analysis.conversations), flows)
    if span_ns is not None:
        spans = between(spans, *span_ns)
    diagnoses = of_spans(flows, spans)
    rows = {row["flow"]: row for row in flows.with_columns(pl.col("vantage").cast(pl.String)).to_dicts()}
    if span_ns is None:
        estimates = _of_steady_parts(_estimates(analysis.parameters, analysis.evidence), analysis)
    else:
        part = estimate(*excerpt(flows, analysis.events, analysis.rounds, *span_ns))
        estimates = _estimates(part, analysis.evidence)
    named = {row["flow"]: row["models"] or [] for row in analysis.verdicts.select("flow", "models").to_dicts()}
    arrived = dict(observed_of(analysis.evidence).select("flow", "goodput_bps").iter_rows())
    found = []
    for number in analysis.largest():
        silences = stalls(rows[number], analysis.events, segments_of(analysis, rows[number]))
        if span_ns is not None:
            silences = [s for s in silences if s.end_ns > span_ns[0] and s.start_ns < span_ns[1]]
        own = _arrays(spans, number)
        ns = (own["end_ns"] - own["start_ns"]).sum()
        rate = float(8e9 * own["bytes"].sum() / ns) if ns else None  # polars' sum of groups would depend on the threads
        asked = Models(rate, estimates[number], named.get(number, [])) if rate and number in estimates else None
        costs = {cause.cause: cause.cost for cause in diagnoses[number].causes if cause.cost is not None}
        total_s = float(ns) / 1e9
        together = accounted_together(own, costs)
        found.append(
            Report(
                rows[number],
                diagnoses[number],
                rate,
                arrived[number] if span_ns is None else None,
                total_s,
                asked.what_if() if asked else [],
                together + (asked.together(total_s) if asked else []),
                silences,
                find_in(View(analysis, number)),
                span_ns,
            )
        )
    return found


def _span(span_ns: Any) -> tuple[int, int]:
    ends = arguments.several("span_ns", span_ns, "two times")
    if len(ends) != 2:
        raise InvalidParameter(f"span_ns must be a list of two times, got {arguments.shown(span_ns)}")
    start, end = (arguments.whole("each of span_ns", each, least=0) for each in ends)
    if end <= start:
        raise InvalidParameter(f"the end must come after the start, got {start} ns to {end} ns")
    return start, end


def _estimates(table: pl.DataFrame, evidence: Evidence) -> dict[int, dict[str, Estimate]]:
    """The parameters of each flow, b as of a Reno sender: what the ranking gives the models."""
    factors = pl.DataFrame(
        {"flow": evidence.flows["flow"], "of_b": as_reno(families(evidence), np.ones(len(evidence)))}
    )
    factor = pl.when(pl.col("name").cast(pl.String) == "b").then("of_b").otherwise(1.0)
    table = table.join(factors, on="flow", maintain_order="left").with_columns(
        pl.col("value", "low", "high") * factor,
    )
    estimates: dict[int, dict[str, Estimate]] = {}
    for flow, name, *ends in table.select("flow", "name", "value", "low", "high").iter_rows():
        estimates.setdefault(flow, {})[name] = Estimate(*(np.nan if end is None else float(end) for end in ends))
    return estimates


def _of_steady_parts(estimates: dict[int, dict[str, Estimate]], analysis: Analysis) -> dict[int, dict[str, Estimate]]:
    """The estimates with those of losses from each flow's steady part, as the ranking has them, where that shows some.

    What slow start loses when it overshoots is no burst that the path would bring again.
    """
    evidence = analysis.evidence
    part = cut(evidence, analysis.parameters)
    steady = of_blocks(part.blocks.of_flows(), part.value)
    for position, flow in enumerate(evidence.flow.tolist()):
        own = estimates.get(flow, {})
        for name in OF_LOSSES & own.keys():
            there, all_ = float(steady[name][position]), own[name]
            if there > 0 and all_.value > 0:
                own[name] = Estimate(*(end * there / all_.value for end in (all_.value, all_.low, all_.high)))
    return estimates


def _arrays(spans: pl.DataFrame, flow: int) -> dict[str, np.ndarray]:
    own = spans.filter(pl.col("flow") == flow).select("start_ns", "end_ns", "cause", "bytes")
    return {name: own[name].to_numpy() for name in own.columns}


def report_facts(report: Report) -> dict[str, Any]:
    """A report as JSON: the flow, and the diagnosis with what `tcpfit analyze` leaves out of it."""
    flow = report.flow
    return {
        "id": flow["flow"],
        "connection": flow["connection"],
        "src": flow["src"],
        "src_port": flow["src_port"],
        "dst": flow["dst"],
        "dst_port": flow["dst_port"],
        "start_time": flow["first_ns"] / 1e9,
        "observed_bps": report.observed_bps,
        "diagnosis": facts(report.diagnosis)
        | {
            "joint": any(two.joint for two in report.together),
            "together": [
                {"of": list(two.of)}
                | {key: getattr(two, key) for key in ("rate_bps", "seconds", "apart_s", "joint", "basis")}
                for two in report.together
            ],
            "what_if": [vars(change) for change in report.what_if],
            "stalls": [
                {
                    "start_time": stall.start_ns / 1e9,
                    "length_s": stall.length_s,
                    "cause": stall.cause,
                    "detail": stall.detail,
                    "outstanding_bytes": stall.outstanding_bytes,
                    "timer_s": stall.timer_s,
                    "frames": [stall.frame_before, stall.frame_after],
                }
                for stall in report.stalls
            ],
            "findings": [{key: getattr(finding, key) for key in FINDING} for finding in report.findings],
        },
    }


FINDING = ("name", "claim", "frames", "display_filter", "remedy", "confidence", "seconds")
