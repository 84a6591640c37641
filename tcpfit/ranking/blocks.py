"""The steady part in blocks of consecutive rounds with enough events each, and the parameters of any set of blocks.

An event is a loss event or a reordering event. A block ends with the round of its last event; a flow has as many
blocks of 4 events as it has events for, 32 at most. No round is cut, so one with several events can leave fewer to the
next block. Of every block only sums are kept, so the parameters of
all blocks but one are those of a difference of sums. Segments count as they are (`sent`), since each can be lost, and
by what they carry (`full_sent`, `acked`, in units of the SMSS), since rates are of bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from tcpfit.parameters.evidence import Evidence, Rows
from tcpfit.parameters.intervals import Floats, Ints, summed
from tcpfit.parameters.nearest import latest
from tcpfit.parameters.reorder import with_reaction
from tcpfit.parameters.tfrc import interval_rates
from tcpfit.ranking.steady import Steady

EVENTS = 4
MOST = 32
ENOUGH = 8

SUMS = (
    "rounds",
    "sent",
    "full_sent",
    "acked",
    "seconds",
    "idle",
    "limited",
    "events",
    "losses",
    "indications",
    "followed",
    "others_lost",
    "others",
    "rtt",
    "rtt_n",
    "rto",
    "rto_n",
    "w",
    "w_n",
    "reorder_events",
    "reacted",
    "late",
    "late_rounds",
    "rates",
    "weighed",
)


@dataclass(frozen=True)
class Blocks:
    """Every block of every flow, in the order of time: the position of its flow, its sums (blocks by `SUMS`), when its
    first round begins and its last one ends (ns)."""

    owner: Ints
    sums: Floats
    flows: int
    start_ns: Ints
    end_ns: Ints

    def of_flows(self) -> Floats:
        """The sums of each flow's whole steady part (flows by `SUMS`)."""
        return np.stack([summed(column, self.owner, self.flows) for column in self.sums.T], axis=1)

    @cached_property
    def others(self) -> Floats:
        """For each block the sums of its flow's other blocks (blocks by `SUMS`)."""
        found: Floats = self.of_flows()[self.owner] - self.sums
        return found

    def count(self) -> Ints:
        """How many blocks each flow has."""
        return np.bincount(self.owner, minlength=self.flows).astype(np.int64)


def blocks(evidence: Evidence, steady: Steady, rtt: Floats, per_block: int = EVENTS, rule: str = "one-rtt") -> Blocks:
    """Cut every flow's steady part; `rtt` is each flow's mean round-trip time in seconds, `per_block` the fewest events
    of a block. Under the rule `tfrc` p is that of the weighted loss intervals."""
    rounds, flows = evidence.rounds, len(evidence)
    if not len(rounds):
        nothing = np.zeros(0, np.int64)
        return Blocks(nothing, np.zeros((0, len(SUMS))), flows, nothing, nothing)
    losses, reorders = evidence.of("loss_event"), evidence.of("reorder_event")
    at_loss, at_reorder = _round_of(evidence, losses), _round_of(evidence, reorders)
    marks = _per_round(rounds, at_loss) + _per_round(rounds, at_reorder)
    cut = _cut(rounds.owner, steady.inside, marks, flows, per_block)
    size = len(rounds)
    smss, sent = evidence.column("smss_bytes")[rounds.owner], rounds.floats("sent_segments")
    times = rounds.floats("rtt_s")
    recoveries, timeouts = evidence.of("recovery"), evidence.first_timeouts
    at_recovery, at_timeout = _round_of(evidence, recoveries), _round_of(evidence, timeouts)
    at_felt = _round_of(evidence, evidence.felt_recoveries)
    alone = np.asarray(timeouts.frame["phase"].cast(pl.String) == "open", dtype=np.bool_)
    alone_at, alone_flight = at_timeout[alone], timeouts.floats("flight")[alone]
    others = losses.floats("flight")
    others = np.where((others >= 1.0) & np.isfinite(losses.floats("segments")), others, 0.0)
    others_lost = np.where(others > 0, np.minimum(losses.floats("segments") - 1.0, others), 0.0)
    late = reorders.floats("value")
    reacted = with_reaction(evidence)["reacted"].to_numpy().astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        late_rounds = np.fmax(np.ceil(late / rtt[reorders.owner]), 1.0)
        acked = rounds.floats("acked_bytes") / smss

    def gather(at: Ints, values: Floats) -> Floats:
        return summed(np.nan_to_num(values[at >= 0]), at[at >= 0], size)

    per_round: Mapping[str, Floats] = {
        "rounds": np.ones(size),
        "sent": sent,
        "full_sent": sent * evidence.full_size[rounds.owner],
        "acked": acked,
        "seconds": steady.duration_s,
        "idle": steady.idle_s,
        "limited": steady.limited.astype(np.float64),
        "events": _per_round(rounds, at_loss),
        "losses": rounds.floats("lost_segments"),
        "indications": _per_round(rounds, at_felt) + _per_round(rounds, at_timeout),
        "followed": gather(at_loss, losses.floats("timeout_follows")),
        "others_lost": gather(at_loss, others_lost),
        "others": gather(at_loss, others),
        "rtt": np.nan_to_num(times),
        "rtt_n": np.isfinite(times).astype(np.float64),
        "rto": gather(at_timeout, timeouts.floats("value")),
        "rto_n": _per_round(rounds, at_timeout),
        "w": gather(at_recovery, recoveries.floats("flight")) + gather(alone_at, alone_flight),
        "w_n": _per_round(rounds, at_recovery) + _per_round(rounds, alone_at),
        "reorder_events": _per_round(rounds, at_reorder),
        "reacted": gather(at_reorder, reacted),
        "late": gather(at_reorder, reorders.floats("segments")),
        "late_rounds": gather(at_reorder, late_rounds),
        "rates": np.zeros(size),
        "weighed": np.zeros(size),
    }
    if rule == "tfrc":
        rates, segments = interval_rates(evidence)
        per_round = {**per_round, "rates": gather(at_loss, rates), "weighed": gather(at_loss, segments)}
    inside = cut >= 0
    number = int(cut.max()) + 1 if inside.any() else 0
    sums = np.stack([summed(np.nan_to_num(per_round[name][inside]), cut[inside], number) for name in SUMS], axis=1)
    owner = np.zeros(number, np.int64)
    owner[cut[inside]] = rounds.owner[inside]
    # rounds come in the order of time, and one lasts until the next
    start = rounds.times("start_ns")[inside]
    until = start + np.rint(1e9 * (steady.duration_s + steady.idle_s)[inside]).astype(np.int64)
    edges = np.searchsorted(cut[inside], np.arange(number + 1))
    return Blocks(owner, sums, flows, start[edges[:-1]], until[edges[1:] - 1])


OF_SUMS = (
    "p",
    "p_indication",
    "q_tilde",
    "q",
    "m",
    "rtt",
    "rto",
    "p_to",
    "w",
    "d",
    "a_h",
    "a_h_reacted",
    "r",
)
"""Parameters that `parameters` takes from the sums."""


def parameters(sums: Floats, fixed: Mapping[str, Floats]) -> dict[str, Floats]:
    """Parameters of sets of blocks from their sums (sets by `SUMS`); what sums do not give comes from `fixed`.

    So does a mean without an observation (rto without a timeout, q without an event). p is that of the weighted loss
    intervals where the sums have them.
    """
    s = {name: sums[:, i] for i, name in enumerate(SUMS)}

    def over(top: str, bottom: str, name: str) -> Floats:
        some = s[bottom] > 0
        return np.where(some, s[top] / np.where(some, s[bottom], 1.0), fixed[name])

    return {
        **fixed,
        "p": np.where(s["weighed"] > 0, over("rates", "weighed", "p"), over("events", "sent", "p")),
        "p_indication": over("indications", "sent", "p_indication"),
        "q_tilde": over("losses", "sent", "q_tilde"),
        "q": np.clip(over("others_lost", "others", "q"), 0.0, 1.0),
        "m": over("losses", "events", "m"),
        "rtt": over("rtt", "rtt_n", "rtt"),
        "rto": over("rto", "rto_n", "rto"),
        "p_to": over("followed", "events", "p_to"),
        "w": over("w", "w_n", "w"),
        "d": over("late", "reorder_events", "d"),
        "a_h": over("seconds", "reorder_events", "a_h"),
        "a_h_reacted": over("seconds", "reacted", "a_h_reacted"),
        "r": over("late_rounds", "reorder_events", "r"),
    }


def _round_of(evidence: Evidence, rows: Rows) -> Ints:
    """Position of the round each event falls into, the last one that started by then; -1 before the first."""
    return latest(rows.owner, rows.times(), evidence.rounds.owner, evidence.rounds.times("start_ns"))


def _per_round(rounds: Rows, at: Ints) -> Floats:
    return np.bincount(at[at >= 0], minlength=len(rounds)).astype(np.float64)


def _cut(owner: Ints, inside: np.ndarray, marks: Floats, flows: int, per_block: int) -> Ints:
    """Block of each round, numbered over all flows; -1 for rounds that are not steady."""
    marks = np.where(inside, marks, 0.0)
    total = summed(marks, owner, flows)
    most = np.clip(np.floor(total / per_block), 1, MOST)
    share = most / np.maximum(total, 1)
    running = np.cumsum(marks) - marks
    first = np.full(flows, np.inf)
    np.minimum.at(first, owner, running)
    block = np.minimum(np.floor((running - first[owner]) * share[owner] + 1e-9), most[owner] - 1).astype(np.int64)
    order = owner * (MOST + 1) + block
    _, numbered = np.unique(order[inside], return_inverse=True)
    result = np.full(len(owner), -1, np.int64)
    result[inside] = numbered
    return result
