"""Whether a flow fills its bottleneck: the path's capacity, not the window that losses leave, sets the rate.

Where the window is below the capacity's share, the rate is W/RTT: it follows the window and the RTT stands. Above it
the queue takes what the window has too much: the RTT follows the window and the rate stands.

**Evidence**, over the rounds of the steady part (at least 20): `flatness`, the 10th over the 90th percentile of the
rounds' rates (acknowledged segments over time); `growth`, the slope of ln RTT on ln flight, 1 where the queue takes all
and 0 without one; `standing`, the median RTT over the flow's smallest.
**Rule**: flatness of at least 0.75, and growth of at least 0.5 or a standing of at least 1.5. A window that halves,
without a queue, has a flatness of (0.5 + 0.05)/(1 - 0.05) = 0.58 at most; a CUBIC window can be flatter than 0.75, but
then its RTT stands.
**Departures**: a flow among others in one queue has a rate that changes; it is not recognised, nor is its capacity its
own. A receiver's capture without timestamps shows no growth, for the flight there is an estimate: hence `standing`.
**Validation**: tests/ranking/test_bottleneck.py; on every flow with recorded truth, docs/ranking.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.intervals import Floats
from tcpfit.ranking.steady import Steady

ROUNDS = 20
FLAT = 0.75
GROWTH = 0.5
STANDING = 1.5


@dataclass(frozen=True)
class Bottleneck:
    """The evidence of every flow; NaN with too few rounds or without an RTT."""

    flatness: Floats
    growth: Floats
    standing: Floats


def bottleneck(evidence: Evidence, part: Steady) -> Bottleneck:
    """How flat each flow's rate is, and how its round-trip time goes with its flight."""
    rounds, smallest = evidence.rounds, evidence.column("rtt_min_s")
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = rounds.floats("acked_bytes") / part.duration_s
        window, times = np.log(rounds.floats("flight")), np.log(rounds.floats("rtt_s"))
    table = pl.DataFrame({"owner": part.owner, "rate": rate, "window": window, "rtt": times})
    own = table.filter(pl.Series(part.inside))
    finite = pl.col("rate").is_finite() & (pl.col("rate") > 0)
    rates = (
        own.filter(finite)
        .group_by("owner")
        .agg(low=pl.col("rate").quantile(0.1), high=pl.col("rate").quantile(0.9), n=pl.len())
    )
    both = own.filter(pl.col("window").is_finite() & pl.col("rtt").is_finite())
    slopes = both.group_by("owner").agg(
        growth=pl.cov("window", "rtt") / pl.col("window").var(), rtt=pl.col("rtt").median(), n=pl.len()
    )
    flatness, growth, standing = (np.full(len(evidence), np.nan) for _ in range(3))
    rates, slopes = rates.filter(pl.col("n") >= ROUNDS), slopes.filter(pl.col("n") >= ROUNDS)
    flatness[rates["owner"].to_numpy()] = (rates["low"] / rates["high"]).to_numpy()
    at = slopes["owner"].to_numpy()
    growth[at] = slopes["growth"].to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        standing[at] = np.exp(slopes["rtt"].to_numpy()) / smallest[at]
    return Bottleneck(flatness, growth, standing)
