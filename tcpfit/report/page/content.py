"""What stands in the report of a capture, as words and numbers; how it looks is left to the templates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpfit.diagnosis.table import Report, report
from tcpfit.ranking.table import BASELINES
from tcpfit.report import contract, diagnosed, filters, sentences, words
from tcpfit.report.terminal import STATES

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

LISTED = 1000
"""Flows in the table of a page, the largest first; a table of all is what --data and CSV are for."""

STALLS = 50
"""Stalls in the table of a flow, the longest; JSON has all."""

KEY = ("p", "rtt", "rtt_min", "rto", "w_max", "b", "m")
"""Parameters that are shown at once; the others are folded away."""

SURE = ((0.75, "well supported"), (0.45, "supported"), (0.0, "weakly supported"))
"""What a diagnosis's confidence is called; it orders verdicts and is no probability."""


@dataclass(frozen=True)
class Row:
    """A flow in the table: its cells as text, and as what they are sorted by."""

    flow: int
    drawn: bool
    cells: dict[str, tuple[str, float | str | None]]
    cause: str
    state: str


@dataclass(frozen=True)
class Section:
    """All that the page says of one flow."""

    flow: int
    ends: tuple[str, str]
    facts: dict[str, Any]
    report: Report
    summary: str
    seen: str
    happened: str
    distrusted: str | None
    sure: str
    cost: str
    verdict: str
    key: list[dict[str, str]]
    parameters: list[dict[str, str]]
    models: list[dict[str, Any]]
    causes: list[dict[str, Any]]
    changes: list[dict[str, str]]
    joint: list[str]
    stalls: list[dict[str, str]]
    more_stalls: int
    findings: list[dict[str, Any]]
    filter: str


@dataclass(frozen=True)
class Content:
    """A page: the capture, the table of its flows, and the flows that have a section of their own."""

    capture: dict[str, Any]
    rows: list[Row]
    sections: list[Section]
    causes: list[tuple[str, int]]
    states: list[tuple[str, str, int]]
    missing: list[str]


def content(analysis: Analysis, drawn: Sequence[int], missing: Sequence[str] = ()) -> Content:
    """Put together the page of an analysis: a row each of its flows, a section each of the flows `drawn`.

    The analysis needs its segments, empty where they were not saved; `missing` says what the page lacks then.
    """
    facts = {flow["id"]: flow for flow in contract.flow_facts(analysis)}
    start_ns = analysis.capture.get("start_ns") or 0
    reports = report(analysis.select(drawn)) if drawn else []
    rows = [_row(flow, number in drawn) for number, flow in facts.items()]
    states = Counter(row.state for row in rows)
    return Content(
        capture=contract.capture_facts(analysis),
        rows=rows,
        sections=[_section(each, facts[each.flow["flow"]], start_ns) for each in reports],
        causes=Counter(row.cause for row in rows).most_common(),
        states=[(state, STATES[state][0], states[state]) for state in STATES if states[state]],
        missing=list(missing),
    )


def _row(flow: dict[str, Any], drawn: bool) -> Row:
    counts, parameters, diagnosis = flow["counts"], flow["parameters"], flow["diagnosis"]
    ends = [words.endpoint(flow[end], flow[f"{end}_port"]) for end in ("src", "dst")]
    share = next((c["time_share"] for c in diagnosis["causes"] if c["cause"] == diagnosis["primary"]), None)
    goodput, p, rtt = flow["observed"]["goodput_bps"], parameters["p"]["value"], parameters["rtt"]["value"]
    state, models = flow["verdict"]["state"], flow["verdict"]["models"]
    verdict = STATES[state][0] + (f" {models[0]}" if models else "")
    if len(models) > 1:
        verdict += f", {models[1]}" if len(models) == 2 else f" + {len(models) - 1} more"
    cells: dict[str, tuple[str, float | str | None]] = {
        "flow": (str(flow["id"]), flow["id"]),
        "from": (ends[0], ends[0]),
        "to": (ends[1], ends[1]),
        "held back by": (diagnosis["primary"] + ("" if share is None else f", {share:.0%}"), diagnosis["primary"]),
        "goodput": (sentences.goodput(flow), goodput),
        "bytes": (words.size(counts["unique_bytes"]), counts["unique_bytes"]),
        "duration": (words.seconds(flow["duration_s"]), flow["duration_s"]),
        "lost": (sentences.lost(flow), counts["lost_segments"]),
        "p": (sentences.loss_rate(flow), p),
        "RTT": (words.seconds(rtt), rtt),
        "models": (verdict, verdict),
    }
    return Row(flow["id"], drawn, cells, diagnosis["primary"], state)


def _section(found: Report, facts: dict[str, Any], start_ns: int) -> Section:
    flow, diagnosis = found.flow, found.diagnosis
    parameters = [_parameter(name, value) for name, value in facts["parameters"].items() if value["value"] is not None]
    longest = sorted(found.stalls, key=lambda stall: stall.start_ns - stall.end_ns)[:STALLS]
    share = diagnosis.main.time_share if diagnosis.main else None
    return Section(
        flow=flow["flow"],
        ends=(words.endpoint(flow["src"], flow["src_port"]), words.endpoint(flow["dst"], flow["dst_port"])),
        facts=facts,
        report=found,
        summary=f"{sentences.volume(facts['counts'])} in {words.seconds(facts['duration_s'])}"
        + ("" if sentences.one_flight(facts) else f", {sentences.goodput(facts)}"),
        seen=sentences.how_seen(facts),
        happened=sentences.what_happened(facts),
        distrusted=sentences.distrusted(facts),
        sure=_sure(diagnosis.confidence, share),
        cost=diagnosed.cost_sentence(found),
        verdict=facts["verdict"]["text"],
        key=[row for name in KEY for row in parameters if row["name"] == name],
        parameters=parameters,
        models=[_model(model) for model in (*facts["models"], *facts["baselines"])],
        causes=[
            {
                "cause": cause.cause,
                "share": cause.time_share,
                "percent": f"{cause.time_share:.1%}",
                "seconds": words.seconds(cause.seconds),
                "saves": saves,
                "rate": rate,
                "confidence": f"{cause.confidence:.2f}",
                "evidence": "; ".join(cause.evidence),
                "filter": diagnosed.display_filter(flow, cause),
            }
            for cause in diagnosis.causes
            for saves, rate in (diagnosed.saving(cause.cost),)
        ],
        joint=[diagnosed.joint_sentence(two) for two in found.together if two.joint],
        changes=[
            {
                "change": change.change,
                "rate": words.rate(change.rate_bps),
                "interval": f"{words.rate(change.low_bps)} to {words.rate(change.high_bps)}",
                "models": ", ".join(change.models),
            }
            for change in found.what_if
        ],
        stalls=[
            {
                "at": f"{(stall.start_ns - start_ns) / 1e9:.3f} s",
                "length": words.seconds(stall.length_s),
                "timer": words.seconds(stall.timer_s),
                "cause": stall.cause,
                "detail": stall.detail,
                "unacked": words.size(stall.outstanding_bytes),
                "frames": f"{_frame(stall.frame_before)} to {_frame(stall.frame_after)}",
                "filter": filters.between_frames(stall.frame_before, stall.frame_after),
            }
            for stall in sorted(longest, key=lambda stall: stall.start_ns)
        ],
        more_stalls=len(found.stalls) - len(longest),
        findings=[
            {
                "name": finding.name,
                "claim": finding.claim,
                "remedy": finding.remedy,
                "frames": finding.frames,
                "filter": finding.display_filter,
                "confidence": f"{finding.confidence:.2f}",
                "cost": None if finding.seconds is None else words.seconds(finding.seconds),
            }
            for finding in found.findings
        ],
        filter=filters.of_flow(flow),
    )


def _frame(number: int | None) -> str:
    return words.NONE if number is None else str(number)


def _sure(confidence: float, share: float | None) -> str:
    """How far the diagnosis can be trusted, in words, with its number."""
    if share is None:
        return "nothing to go by"
    name = next(name for least, name in SURE if confidence >= least)
    most = "" if share >= 0.5 else "; no cause has half of the time"
    return f"{name} (confidence {confidence:.2f}), {share:.0%} of the time{most}"


def _parameter(name: str, estimate: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": name,
        "value": words.quantity(name, estimate["value"]),
        "interval": words.interval(name, estimate),
        "n": words.NONE if estimate["n"] is None else str(estimate["n"]),
        "meaning": words.meaning(name, estimate["n"]),
    }


def _model(model: Mapping[str, Any]) -> dict[str, Any]:
    predicted = words.rate(model["predicted_bps"])
    if model["predicted_bps"] is None:
        predicted = words.seconds(model["predicted_time_s"])
    low, high = model["log_ratio_low"], model["log_ratio_high"]
    best = model["probability_best"]
    return {
        "name": model["name"],
        "rank": words.NONE if model["rank"] is None else str(model["rank"]),
        "predicted": predicted,
        "off": words.off(model["log_ratio"]),
        "interval": words.NONE if low is None or high is None else f"{words.off(low)} to {words.off(high)}",
        "best": words.NONE if best is None else f"{best:.0%}",
        "applicable": model["applicable"],
        "against": _against(model),
    }


def _against(model: Mapping[str, Any]) -> str:
    """What speaks against a model; of a baseline, which nobody asks whether it applies, what it is."""
    reasons = "; ".join(model["reasons"] or [])
    applies = model["applicable"] or model["name"] in BASELINES
    return reasons if applies or not reasons else f"does not apply: {reasons}"
