"""Parameters: from flows, events and rounds to the numbers that throughput models take, with 95 % intervals.

One file a parameter or close family; `table.py` has the names, `intervals.py` the statistics.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit import arguments
from tcpfit.parameters import burst, gilbert, growth, growth_rate, loss_rate, reorder, rtt, tfrc, timeout, window
from tcpfit.parameters.episodes import EPISODES, episodes
from tcpfit.parameters.event_rules import LOSS_EVENTS, OF_LOSS_EVENTS, RULES, loss_events, under_rule
from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.gilbert import INDEPENDENCE, independence
from tcpfit.parameters.growth import FAMILIES
from tcpfit.parameters.hosts import hosts
from tcpfit.parameters.intervals import Estimate
from tcpfit.parameters.table import NAME, NAMES, PARAMETERS
from tcpfit.schema import check_tables

__all__ = [
    "EPISODES",
    "FAMILIES",
    "INDEPENDENCE",
    "LOSS_EVENTS",
    "NAME",
    "NAMES",
    "OF_LOSS_EVENTS",
    "PARAMETERS",
    "RULES",
    "episodes",
    "estimate",
    "estimate_of",
    "estimates",
    "families",
    "hosts",
    "independence",
    "loss_events",
    "under_rule",
]


def families(flows: pl.DataFrame, events: pl.DataFrame, rounds: pl.DataFrame) -> pl.DataFrame:
    """Family of congestion control of every flow: columns flow, family, confidence, decrease, episodes.

    See `tcpfit.parameters.growth` for the rule; `unknown` unless at least 5 clean recoveries agree. Raises
    InvalidParameter for a table that is none of `tcpfit.schema`.
    """
    check_tables(flows=flows, events=events, rounds=rounds)
    return growth.families(Evidence(flows, events, rounds))


def estimate(flows: pl.DataFrame, events: pl.DataFrame, rounds: pl.DataFrame) -> pl.DataFrame:
    """Every parameter of every flow: one row each, columns as in `PARAMETERS`, sorted by flow and name.

    The tables are those of `tcpfit.schema`. A value that cannot be had is null; so is the interval of a value that one
    observation gave. Equal tables give equal numbers: nothing is drawn. Raises InvalidParameter for another table.
    """
    check_tables(flows=flows, events=events, rounds=rounds)
    return estimate_of(Evidence(flows, events, rounds))


def estimate_of(evidence: Evidence) -> pl.DataFrame:
    """The same of an evidence; raises InvalidParameter for what is none."""
    found = estimates(evidence)
    names, count = list(NAMES), len(evidence)

    def column(field: str) -> np.ndarray:
        return np.stack([getattr(found[name], field) for name in names], axis=1).reshape(-1)

    table = pl.DataFrame(
        {
            "flow": np.repeat(evidence.flow, len(names)),
            "name": names * count,
            "value": column("value"),
            "low": column("low"),
            "high": column("high"),
            "n": column("n"),
        },
        schema={c.name: pl.Int64() if c.name in ("flow", "n") else c.dtype for c in PARAMETERS},
    )
    table = table.with_columns(pl.col("value", "low", "high").fill_nan(None))
    return table.cast({c.name: c.dtype for c in PARAMETERS})


def estimates(evidence: Evidence) -> dict[str, Estimate]:
    """Every parameter as arrays over the flows of the evidence, by name.

    Raises InvalidParameter for what is no evidence.
    """
    arguments.instance("evidence", evidence, Evidence, "an Evidence; tcpfit.parameters.estimate takes tables")
    mean_rtt, loss_runs = rtt.rtt(evidence), gilbert.runs(evidence)
    return {
        "p": loss_rate.p(evidence),
        "p_indication": loss_rate.p_indication(evidence),
        "q_tilde": loss_rate.q_tilde(evidence),
        "p_tfrc": tfrc.p_tfrc(evidence),
        "p_mark": loss_rate.p_mark(evidence),
        "q": burst.q(evidence),
        "m": burst.m(evidence),
        "p_gb": gilbert.p_gb(evidence, loss_runs),
        "p_bg": gilbert.p_bg(loss_runs),
        "loss_run": gilbert.loss_run(loss_runs),
        "rtt": mean_rtt,
        "rtt_min": rtt.rtt_min(evidence),
        "rtt_p95": rtt.rtt_p95(evidence),
        "rto": timeout.rto(evidence),
        "p_to": timeout.p_to(evidence),
        "w": window.w(evidence),
        "w_max": window.w_max(evidence),
        "b": growth_rate.b(evidence),
        "d": reorder.d(evidence),
        "a_h": reorder.a_h(evidence),
        "a_h_reacted": reorder.a_h_reacted(evidence),
        "r": reorder.r(evidence, mean_rtt.value),
    }
