"""The diagnosis of every flow of an analysis, and the face of it that the JSON shows."""

from __future__ import annotations

from typing import Any

import polars as pl

from tcpfit.diagnosis.accounting import Slices, account
from tcpfit.diagnosis.cost import Cost
from tcpfit.diagnosis.verdict import Diagnosis, judge
from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.loss_rate import capture_loss


def diagnose(flows: pl.DataFrame, events: pl.DataFrame, rounds: pl.DataFrame) -> dict[int, Diagnosis]:
    """The diagnosis of every flow by its number; the tables are those of `tcpfit.schema`."""
    return of_spans(flows, account(flows, events, rounds))


def of_spans(flows: pl.DataFrame, spans: pl.DataFrame) -> dict[int, Diagnosis]:
    """The diagnosis of every flow from spans that are there, whole or cut to some time."""
    evidence = Evidence(flows, NONE, NONE)
    rows = Slices(spans, tuple(column for column in spans.columns if column != "flow"))
    vantage = evidence.flows["vantage"].cast(pl.String).to_list()
    missed = capture_loss(evidence).tolist()
    return {
        number: judge(number, rows.of(number), vantage[i], missed[i]) for i, number in enumerate(evidence.flow.tolist())
    }


NONE = pl.DataFrame({"flow": []}, schema={"flow": pl.UInt32})


def facts(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as the JSON has it; docs/json.md says what each key means."""
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
