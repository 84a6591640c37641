"""A flow's bit rate over time: bohacek-dynamics driven by the losses seen, beside static models block by block.

**Loss series** The blocks of the steady part (`blocks.py`: at least 4 loss events each) give delta(t), a step function:
the segments lost in a block over those sent in it (`losses="events"`, an extension: its loss events, where losses come
in bursts that the window feels once). It drives `bohacek-dynamics` from the steady state of the first
block, with the flow's mean round-trip time and first timeout.

**Static models** take each block's own parameters and hold their rate for the block: what a steady-state model says
where the loss rate changes slowly. `mean-of-flow`, a baseline, is the flow's own mean rate throughout: a model that
does not beat it has not followed any change.

**Observed** Acknowledged bytes, spread evenly over each round, per bin of time. Bins are equal; by default a fortieth
of the steady part, at least 10 round trips.

**Score** Over the bins with data: root mean square of ln(predicted/observed) (`rms`), its mean (`bias`) and what is
left without it (`shape`). No value is held out: all models see the same losses, those of the time that they predict.

**Validation** tests/ranking/test_dynamics.py; docs/time-varying.md has the figures.

**Reference** Bohacek, Shah: TCP Throughput and Timeout - Steady State and Time-varying Dynamics, IEEE GLOBECOM 2004,
doi:10.1109/GLOCOM.2004.1378225.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tcpfit import arguments
from tcpfit.exceptions import InvalidParameter
from tcpfit.models import Model, catalogue
from tcpfit.models.bohacek_dynamics import BohacekDynamics
from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.growth import as_reno, families
from tcpfit.parameters.intervals import Floats
from tcpfit.parameters.table import NAMES
from tcpfit.ranking.blocks import SUMS, blocks
from tcpfit.ranking.blocks import parameters as of_blocks
from tcpfit.ranking.prediction import predict
from tcpfit.ranking.steady import steady
from tcpfit.schema import F64, STR, Column

BLOCKS = 2
"""Blocks of a loss series that can change."""
BINS = 40
SHORTEST_BIN = 10.0
"""Round trips."""
STATIC = ("bohacek-sack", "mathis", "pftk-full", "newreno-full", "tfrc", "sikdar-sack")
BASELINE = "mean-of-flow"
DRIVES = {"segments": "q_tilde", "events": "p"}
"""What drives bohacek-dynamics: the parameter of a block."""

COURSE = (
    Column("time_s", F64, "s", "middle of the bin, since the flow's first data segment"),
    Column("loss_rate", F64, "", "losses per segment sent in the block that holds then: delta(t)"),
    Column("observed_bps", F64, "bit/s", "payload bits acknowledged per second"),
    Column("predicted_bps", F64, "bit/s", "of bohacek-dynamics; every other model has a column of its name, in bit/s"),
    Column("in_timeout", F64, "", "share of time in a timeout that bohacek-dynamics predicts, 0 to 1"),
)
"""Columns of every course, before those of the static models."""

COURSE_SCORES = (
    Column("model", STR, "", "bohacek-dynamics, a static model with the parameters of each block, or mean-of-flow"),
    Column("rms", F64, "", "root mean square of ln(predicted/observed) over the bins"),
    Column("bias", F64, "", "mean of ln(predicted/observed)"),
    Column("shape", F64, "", "root mean square without the bias"),
)


@dataclass(frozen=True)
class Course:
    """A flow over time: `table` (columns `COURSE` and one a static model), `scores` (columns `COURSE_SCORES`, best
    first) and `text`, what they come to."""

    flow: int
    bin_s: float
    blocks: int
    empty_bins: int
    table: pl.DataFrame
    scores: pl.DataFrame
    text: str


def course(capture: Any, flow: int, *, bin_s: float | None = None, losses: str = "segments") -> Course:
    """Predicted and observed bit rate over time of one flow of a capture (an `Analysis`).

    `bin_s` is the length of a bin in seconds; `losses` what drives bohacek-dynamics, lost `segments` or loss `events`.
    Raises InvalidParameter for a flow that the capture does not have, or
    whose losses are too few to change (fewer than two blocks of 4 loss events), and for a bin shorter than one round
    trip or longer than the steady part.
    """
    arguments.one_of("losses", losses, DRIVES)
    own = arguments.flow_rows(capture, flow)
    flow = int(own["flow"][0])
    evidence = Evidence(own, capture.events, capture.rounds)
    known = capture.parameters.filter(pl.col("flow") == flow)
    value = {name: np.full(1, np.nan) for name in NAMES}
    for name, x in known.select(pl.col("name").cast(pl.String), "value").rows():
        value[name] = np.full(1, np.nan if x is None else x)
    value["b"] = as_reno(families(evidence), value["b"])  # as the ranking gives it to the same models
    part = steady(evidence, value["w_max"])
    cut = blocks(evidence, part, value["rtt"])
    rtt, rto = float(value["rtt"][0]), float(value["rto"][0])
    lost = cut.sums[:, SUMS.index("losses")]
    if len(cut.owner) < BLOCKS or not (lost > 0).any() or not math.isfinite(rtt * rto):
        segments = "1 segment" if lost.sum() == 1 else f"{lost.sum():.0f} segments"
        found_in = "1 block" if len(cut.owner) == 1 else f"{len(cut.owner)} blocks"
        raise InvalidParameter(
            f"flow {flow} of {capture.path} lost {segments} in {found_in} of the steady part; a loss rate that changes "
            f"needs {BLOCKS} blocks of 4 loss events, and a known RTT and timeout."
        )
    inside = np.flatnonzero(part.inside)
    starts = evidence.rounds.floats("start_ns")[inside]
    first_ns = float(own["first_ns"][0])
    origin = (float(starts[0]) - first_ns) / 1e9
    lasted = (part.duration_s + part.idle_s)[inside]
    end = origin + float(lasted.sum())
    width = max((end - origin) / BINS, SHORTEST_BIN * rtt) if bin_s is None else arguments.number("bin_s", bin_s)
    if not rtt <= width <= end - origin:
        raise InvalidParameter(
            f"a bin must last between a round trip ({rtt:.3g} s) and the steady part ({end - origin:.3g} s), "
            f"got {width:g} s."
        )
    edges = origin + width * np.arange(int((end - origin) / width + 1e-9) + 1, dtype=np.float64)
    smss = float(own["smss_bytes"][0])
    edge_of_round = origin + np.concatenate(([0.0], np.cumsum(lasted)))
    acked = np.concatenate(([0.0], np.cumsum(np.nan_to_num(evidence.rounds.floats("acked_bytes")[inside]))))
    observed = 8 * _per_bin(edges, edge_of_round, acked)
    of_block = of_blocks(cut.sums, {name: np.repeat(x, len(cut.owner)) for name, x in value.items()})
    seconds = cut.sums[:, SUMS.index("seconds")] + cut.sums[:, SUMS.index("idle")]
    block_edges = origin + np.concatenate(([0.0], np.cumsum(seconds)))
    delta: Floats = np.clip(np.nan_to_num(of_block[DRIVES[losses]]), 0.0, 1.0)
    if not (delta > 0).any():
        raise InvalidParameter(
            f"flow {flow} of {capture.path} has no loss event in its steady part; drive by segments."
        )
    delta[0] = delta[0] or delta[delta > 0][0]  # the steady state it begins with
    found = BohacekDynamics().trajectory(
        block_edges[:-1], delta, rtt=rtt, rto=rto, end=float(block_edges[-1]), step=min(width / 16, rtt)
    )
    sent, waited = (
        np.concatenate(([0.0], np.cumsum(np.diff(found.time) * (x[1:] + x[:-1]) / 2)))
        for x in (found.rate, found.in_timeout)
    )
    dynamics = 8 * smss * _per_bin(edges, found.time, sent)
    static = _static(of_block, block_edges, edges, smss)
    static[BASELINE] = np.full(len(edges) - 1, 8 * acked[-1] / (end - origin))
    middle = (edges[1:] + edges[:-1]) / 2
    at = np.clip(np.searchsorted(block_edges, middle, side="right") - 1, 0, len(delta) - 1)
    columns = {
        "time_s": middle,
        "loss_rate": delta[at],
        "observed_bps": observed,
        "predicted_bps": dynamics,
        "in_timeout": _per_bin(edges, found.time, waited),
        **static,
    }
    table = pl.DataFrame({name: pl.Series(x).fill_nan(None) for name, x in columns.items()})
    scores = _scores(observed, {BohacekDynamics.name: dynamics, **static})
    return Course(
        flow, width, len(delta), int((observed <= 0).sum()), table, scores, _text(scores, delta, len(observed), own)
    )


def _per_bin(edges: Floats, at: Floats, total: Floats) -> Floats:
    """Mean rate in each bin of what has come to `total` by the times `at`."""
    return np.asarray(np.diff(np.interp(edges, at, total)) / np.diff(edges))


def _static(of_block: Mapping[str, Floats], block_edges: Floats, edges: Floats, smss: float) -> dict[str, Floats]:
    """Bit/s in each bin of each static model, its rate held for a block."""
    models: dict[str, Model] = catalogue()
    found = {}
    for name in STATIC:
        rate = predict(models[name], of_block)
        total = np.concatenate(([0.0], np.cumsum(rate * np.diff(block_edges))))
        found[name] = 8 * smss * _per_bin(edges, block_edges, total)
    return found


def _scores(observed: Floats, predicted: Mapping[str, Floats]) -> pl.DataFrame:
    rows = []
    for name, rate in predicted.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.log(rate / observed)
        left = left[np.isfinite(left) & (observed > 0)]
        if len(left):
            rms, bias = float(np.sqrt(np.mean(left**2))), float(left.mean())
            rows.append({"model": name, "rms": rms, "bias": bias, "shape": float(left.std())})
    schema = pl.Schema({c.name: c.dtype for c in COURSE_SCORES})
    return pl.DataFrame(rows, schema=schema).sort("rms")


def _text(scores: pl.DataFrame, delta: Floats, bins: int, own: pl.DataFrame) -> str:
    row = {item["model"]: item for item in scores.to_dicts()}
    ours, base = row[BohacekDynamics.name], row[BASELINE]
    best = next(item for item in scores.to_dicts() if item["model"] not in (BASELINE, BohacekDynamics.name))
    changed = f"Loss went between {100 * delta.min():.2g} and {100 * delta.max():.2g} % over {len(delta)} blocks."
    followed = "follows" if ours["shape"] < base["shape"] else "does not follow"
    told = (
        f"Over {bins} bins bohacek-dynamics is off by {ours['rms']:.2f} (root mean square of ln), {best['model']} by "
        f"{best['rms']:.2f} with each block's parameters, and the flow's own mean rate by {base['rms']:.2f}: the model "
        f"{followed} the changes of the rate."
    )
    sack = own["sack_permitted"][0]
    weak = " The model is one of SACK, which this flow does not use." if sack is False else ""
    return f"{changed} {told}{weak}"
