"""Intervals and verdicts on flows whose law is known: simulated from each model's own assumptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from sender import Path, Sender, Tables, half_window, simulate

from tcpfit.models import catalogue
from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.window import w_max as window_limit
from tcpfit.ranking import rank, residuals
from tcpfit.ranking.blocks import blocks
from tcpfit.ranking.blocks import parameters as of_blocks
from tcpfit.ranking.prediction import predict
from tcpfit.ranking.steady import steady

Row = dict[str, Any]

COVERED = ("p", "p_indication", "q_tilde", "q", "m", "rtt", "rto", "p_to", "w", "b")
"""Parameters that the simulated flows show. The others need the order of segments or reordering."""

EVENTS = (30, 100, 300)
LOSS_RATES = (0.003, 0.01, 0.03)


@dataclass(frozen=True)
class World:
    """A model's assumptions as a sender and a path, but for the loss rate."""

    model: str
    losses: str
    sender: Sender
    path: Row = field(default_factory=dict)
    rates: tuple[float, ...] = LOSS_RATES

    def flows(self, p: float, events: float, flows: int, seed: int) -> Tables:
        """Flows of so many loss events on average."""
        path = Path(p, self.losses, **self.path)
        steady = half_window(p, self.sender)
        sender = replace(self.sender, first_window=steady, threshold=steady)
        return simulate(path, sender, int(events * (1 / p + 1.2 / np.sqrt(p))), flows, seed)


REST_LOST, ANY, ONE = "round", "window", "periodic"
WORLDS = (
    World("mathis", ONE, Sender("none", timeouts=False, restart=False, instant=True)),
    World("pftk-simple", REST_LOST, Sender("none", timeouts=False, restart=False)),
    World("pftk-approx", REST_LOST, Sender("none", restart=False)),
    World("pftk-full", REST_LOST, Sender("none", restart=False)),
    World("newreno-noto", ANY, Sender("newreno", timeouts=False), {"q": 0.05}),
    World("newreno-full", ANY, Sender("newreno", fragile=True), {"q": 0.05}),
    World("bohacek-sack", ANY, Sender("sack", pipe=True, restart=False, instant=True)),
    World("sikdar-reno", REST_LOST, Sender("reno", b=2.0)),
    World("sikdar-sack", REST_LOST, Sender("sack", b=2.0, pipe=True)),
    World("cubic", ONE, Sender("none", timeouts=False, cubic=True, instant=True)),
)


LOOSE = World("growth-by-chance", REST_LOST, Sender("sack", b=2.0, pipe=True, loose=True))
"""Of the models' flows every window grows alike, so that no chance touches b: here it does."""


def truths(tables: Tables, world: World) -> dict[str, float]:
    """What an endless flow would show: what was programmed, else the rate of all flows together."""
    flows, events, _ = tables
    path = Path(0.5, **world.path)
    sent = float(flows["sent_segments"].sum())
    of = {str(kind): part for (kind,), part in events.partition_by("kind", as_dict=True).items()}
    losses = of["loss_event"]
    wide = losses.filter(pl.col("flight") >= 1)
    others = float(wide["flight"].sum())
    felt = [of[kind] for kind in ("recovery", "timeout") if kind in of]
    firsts = [part.filter((pl.col("kind") == "recovery") | (pl.col("segments") == 0)) for part in felt]
    followed = losses["timeout_follows"].mean()
    begun = [
        part.filter((pl.col("kind") == "recovery") | (pl.col("phase").cast(pl.String) == "open")) for part in firsts
    ]
    found = {
        "p": losses.height / sent,
        "p_indication": sum(part.height for part in firsts) / sent,
        "q_tilde": float(flows["lost_segments"].sum()) / sent,
        "q": float(pl.select(pl.min_horizontal(wide["segments"].cast(pl.Float64) - 1, wide["flight"]).sum()).item())
        / others,
        "m": float(losses["segments"].mean()),  # type: ignore[arg-type]
        "rtt": path.rtt_s,
        "rto": path.rto_s,
        "p_to": float(followed or 0.0),  # type: ignore[arg-type]
        "w": float(pl.concat([part["flight"] for part in begun]).mean()),  # type: ignore[arg-type]
        "b": world.sender.b,
    }
    if not world.sender.loose:
        del found["b"]
    return {"b": found["b"]} if world is LOOSE else found


def coverage(tables: Tables, world: World, parameters: pl.DataFrame) -> Iterator[Row]:
    """Share of the flows whose interval holds the truth, of each parameter that varies."""
    for name, truth in truths(tables, world).items():
        own = parameters.filter((pl.col("name").cast(pl.String) == name) & pl.col("low").is_not_null())
        # a quantity that no chance touches has no interval to speak of
        if own.height < 0.9 * tables[0].height or own["value"].std() in (None, 0.0) or truth in (0.0, 1.0):
            continue
        below, above = (own["high"] < truth).sum(), (own["low"] > truth).sum()
        bias = float((own["value"] / truth).log().median())  # type: ignore[arg-type]
        yield {
            "parameter": name,
            "flows": own.height,
            "held": 1 - (below + above) / own.height,
            "too_low": below / own.height,
            "too_high": above / own.height,
            "bias": bias,
        }


def bias(tables: Tables, parameters: pl.DataFrame, model: str, p: float | None = None) -> float:
    """ln(predicted/observed) of the model on all flows together: its error under its own assumptions, chance gone.

    With `p` that loss rate, the programmed one, stands in for the measured `p` and `p_indication`.
    """
    evidence = Evidence(*tables)
    whole = dict(parameters.group_by("name").agg(pl.col("value").mean()).iter_rows())
    limit = window_limit(evidence).value
    rtt = np.full(len(evidence), whole["rtt"])
    total = blocks(evidence, steady(evidence, limit), rtt).of_flows().sum(axis=0, keepdims=True)
    fixed = {name: np.array([np.nan if value is None else value]) for name, value in whole.items()}
    values = of_blocks(total, fixed)
    if p is not None:
        values |= {name: np.array([p]) for name in ("p", "p_indication")}
    predicted = predict(catalogue()[model], values)
    return float(np.log(predicted / residuals.rate(total, catalogue()[model].quantity))[0])


def verdicts(tables: Tables, parameters: pl.DataFrame, model: str) -> Row:
    """How the ranking judges flows that the model is true of."""
    ranking, judged = rank(*tables, parameters)
    own = ranking.filter(pl.col("model") == model)
    named = judged.with_columns(pl.col("models").list.contains(model).alias("named"))
    state = named["state"].cast(pl.String)
    lone = named.filter((pl.col("state").cast(pl.String) == "explained") & ~pl.col("named"))
    inside = own.filter((pl.col("log_ratio_low") <= 0) & (pl.col("log_ratio_high") >= 0)).height
    rivals = named.filter(~pl.col("named"))["models"].list.first().drop_nulls()
    return {
        "flows": judged.height,
        "named": float(named["named"].mean()),  # type: ignore[arg-type]
        "wrong": lone.height / judged.height,
        "none": float((state == "none_applies").mean()),  # type: ignore[arg-type]
        "applicable": float(own["applicable"].mean()),  # type: ignore[arg-type]
        "ratio": float(own["log_ratio"].median()),  # type: ignore[arg-type]
        "within": inside / judged.height,
        "instead": rivals.mode().sort()[0] if rivals.len() else "",
        "set": float(named["models"].list.len().mean()),  # type: ignore[arg-type]
    }
