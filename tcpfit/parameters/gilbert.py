"""Runs of losses: p_gb and p_bg of the two-state chain, the mean run, and whether losses come independently.

**Definition**: every transmission is lost or arrives, in the order of sending. `p_gb` is the share of losses among
transmissions that follow an arrival, `p_bg` the share of arrivals among those that follow a loss: the maximum
likelihood of a Markov chain with the states lost and arrived (Gilbert's channel whose bad state loses all, h = 0; he
lets a bad state spare some). With R runs of consecutive losses, L losses and N segments sent: p_gb = R / (N - L),
p_bg = R / L, and the mean run `loss_run` = L / R. The loss probability after a loss is 1 - p_bg; independent losses
have 1 - p_bg = p_gb.
**Symbols**: a loss's `order`, the segments sent before it, and `segments`; N is `flows.sent_segments`.
**Interval**: Clopper and Pearson, each transition being a trial of its own under the chain. Runs that come together,
several in a loss event or more events at some times than at others, are no chain's: p_gb has the interval of as many
runs as tell as much (`intervals.renewal_count`), and its ends go as far as `lost_low` and `lost_high` allow. `loss_run`
is the inverse of p_bg.
**Domain**: at least one loss. A channel with h > 0 (a bad state that spares some) has shorter runs than its bad
periods: p_bg is then the end of a run, not of the bad state. Offload: the first lost piece of a super-segment counts
as its first segment. Away from the sender the place of a loss among resends is inferred. Losses of the reason
`not-held`, whose place is not known, are left out.
**Validation**: tests/parameters/test_gilbert.py (hand-computed; coverage on simulated chains; sample-traces against the
path's own list); docs/parameters.md has the errors on the lab's transfers.
**Reference**: Gilbert (1960), doi:10.1002/j.1538-7305.1960.tb03959.x; Mood (1940), doi:10.1214/aoms/1177731825 (runs).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import special

from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.intervals import Estimate, Floats, Ints, binomial_interval, renewal_count, summed
from tcpfit.parameters.loss_rate import count_range, cycles_of
from tcpfit.parameters.nearest import latest
from tcpfit.schema import F64, U32, U64, Column, check_tables

INDEPENDENCE = (
    Column("flow", U32, "", "number of the flow"),
    Column("sent", U64, "segments", "segments sent"),
    Column("lost", U64, "segments", "losses"),
    Column("runs", U64, "", "runs of consecutive losses"),
    Column("loss_after_arrival", F64, "", "share of losses among segments sent next after one that arrived, p_gb"),
    Column("loss_after_loss", F64, "", "share of losses among segments sent next after a lost one, 1 - p_bg"),
    Column("ratio", F64, "", "twice the logarithm of the likelihoods' ratio, two-state chain over independent losses"),
    Column("p_value", F64, "", "probability of as few runs were the losses independent; null without a loss"),
)
"""Columns of the table that `independence` returns."""


@dataclass(frozen=True)
class Runs:
    """Segments sent, lost, and runs of consecutive losses of every flow; `alone` is how many runs would tell as much
    of their rate if each came by itself."""

    sent: Floats
    lost: Floats
    runs: Floats
    alone: Floats


def runs(evidence: Evidence) -> Runs:
    """Counts the runs; losses follow each other where the one is sent next after the other. What no duplicate ACK
    speaks for has no known place: it is left out, of the segments sent as well."""
    found = evidence.of("loss")
    placed = np.asarray(found.frame["reason"].cast(pl.String) != "not-held", dtype=np.bool_)
    losses, others = found.where(placed).frame.sort("flow", "order", "left"), found.where(~placed)
    columns = ("flow", "order", "left", "right", "segments")
    flow, order, left, right, count = (losses[name].cast(pl.Int64).to_numpy() for name in columns)
    number = np.searchsorted(evidence.flow, flow)
    begins = np.ones(len(flow), np.bool_)
    piece = (flow[1:] == flow[:-1]) & (order[1:] == order[:-1])
    next_one = (flow[1:] == flow[:-1]) & (order[1:] == _ends(piece, order, count)[:-1])
    begins[1:] = ~np.where(piece, left[1:] <= right[:-1], next_one)
    flows = len(evidence)
    lost = summed(count.astype(np.float64), number, flows)
    elsewhere = summed(others.floats("segments"), others.owner, flows)
    sent = np.maximum(np.nan_to_num(evidence.column("sent_segments")) - elsewhere, lost)
    begun = np.bincount(number, begins, flows).astype(np.float64)
    alone = _alone(evidence, number, order, begins, count.astype(np.float64))
    return Runs(sent, lost, begun, np.where((alone > 0) & (alone < begun), alone, begun))


def _alone(evidence: Evidence, owner: Ints, order: Ints, begins: np.ndarray, lost: Floats) -> Floats:
    """Runs that would tell as much of their rate if each came by itself, from the runs of each loss event; 0 where no
    loss event is known."""
    events = evidence.of("loss_event")
    place = np.nan_to_num(events.floats("order")).astype(np.int64)
    event = latest(owner, order, events.owner, place)
    inside = event >= 0
    runs, gone = (summed(of[inside], event[inside], len(events)) for of in (begins.astype(np.float64), lost))
    cycles, dead = cycles_of(evidence, events)
    arrived, dead = np.maximum(cycles - gone, 1.0), np.maximum(dead - gone, 0.0)
    return renewal_count(runs, arrived, dead, events.owner, len(evidence))


def _ends(piece: np.ndarray, order: Ints, count: Ints) -> Ints:
    """Place after each loss in the order of sending; pieces of a super-segment follow each other."""
    first = np.concatenate(([True], ~piece))[: len(order)]
    before = np.cumsum(count) - count
    start = np.maximum.accumulate(np.where(first, before, 0))
    return order + before - start + count


def p_gb(evidence: Evidence, found: Runs) -> Estimate:
    """Loss probability of a segment sent next after one that arrived, from what `runs` found."""
    share = _share(found.runs, found.sent - found.lost, found.lost > 0, found.alone)
    fewer, more = count_range(evidence)
    wide = share.widened(fewer, more)
    return Estimate(wide.value, wide.low, np.minimum(wide.high, 1.0), found.runs.astype(np.int64))


def p_bg(found: Runs) -> Estimate:
    """Probability that the segment sent next after a lost one arrives."""
    return _share(found.runs, found.lost, found.lost > 0)


def loss_run(found: Runs) -> Estimate:
    """Mean run of consecutive losses, in segments."""
    share = p_bg(found)
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.where(share.low > 0, 1 / share.low, np.nan)
        return Estimate(1 / share.value, 1 / share.high, high, found.runs.astype(np.int64))


def _share(hits: Floats, trials: Floats, known: np.ndarray, alone: Floats | None = None) -> Estimate:
    """Hits over trials; the interval is that of as many independent hits as `alone` says, of the same share."""
    hits = np.minimum(hits, trials)
    part = np.ones(len(hits)) if alone is None else np.where(hits > 0, np.minimum(alone / np.maximum(hits, 1), 1), 1)
    low, high = binomial_interval(part * hits, part * trials)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(known, hits / trials, np.nan)
    known = np.isfinite(value)
    return Estimate(value, np.where(known, low, np.nan), np.where(known, high, np.nan), trials.astype(np.int64))


def independence(flows: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Tests for every flow whether losses come independently, columns as in `INDEPENDENCE`, by flow.

    The test is exact: of L independent losses in N segments, however often they come, the number of runs has the
    hypergeometric law of L draws from N of which N - L + 1 count (Mood 1940). Raises InvalidParameter for a table that
    is none of `tcpfit.schema`.
    """
    check_tables(flows=flows, events=events)
    evidence = Evidence(flows, events, pl.DataFrame(schema={"flow": pl.UInt32(), "round": pl.UInt32()}))
    found = runs(evidence)
    sent, lost, count = found.sent, found.lost, found.runs
    after_arrival, after_loss = _share(count, sent - lost, lost > 0).value, 1 - _share(count, lost, lost > 0).value
    table = pl.DataFrame(
        {
            "flow": evidence.flow,
            "sent": sent,
            "lost": lost,
            "runs": count,
            "loss_after_arrival": after_arrival,
            "loss_after_loss": after_loss,
            "ratio": np.where(lost > 0, likelihood_ratio(sent, lost, count), np.nan),
            "p_value": [few_runs(*row) for row in zip(sent, lost, count, strict=True)],
        },
        schema_overrides={"p_value": pl.Float64},
    ).with_columns(pl.col(pl.Float64).fill_nan(None))
    return table.select(pl.col(c.name).cast(c.dtype) for c in INDEPENDENCE)


def likelihood_ratio(sent: Floats, lost: Floats, runs: Floats) -> Floats:
    """Twice the log of the likelihood of the fitted chain over that of independent losses."""
    arrived = sent - lost
    chain = _entropy(runs, arrived) + _entropy(runs, lost)
    return np.maximum(2 * (chain - _entropy(lost, sent)), 0.0)


def _entropy(hits: Floats, trials: Floats) -> Floats:
    """Log likelihood of a share at its estimate."""
    with np.errstate(invalid="ignore"):
        return np.asarray(special.xlogy(hits, hits / trials) + special.xlogy(trials - hits, 1 - hits / trials))


def few_runs(sent: float, lost: float, runs: float) -> float | None:
    """Probability of at most `runs` runs of `lost` losses among `sent` segments, all orders being as likely."""
    if lost < 1:
        return None
    some = np.arange(1.0, runs + 1)
    log = _choose(sent - lost + 1, some) + _choose(lost - 1, some - 1) - _choose(sent, np.array(lost))
    return float(min(np.exp(special.logsumexp(log)), 1.0))


def _choose(n: float, k: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))
