"""Every model on every flow: predictions, applicability, comparison, rank and verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from tcpfit.models import Model, catalogue
from tcpfit.parameters.evidence import Evidence, floats
from tcpfit.parameters.growth import as_reno, families
from tcpfit.parameters.intervals import Floats
from tcpfit.parameters.loss_rate import capture_loss
from tcpfit.parameters.table import NAME, NAMES
from tcpfit.ranking import applicability, fitting, residuals
from tcpfit.ranking.blocks import ENOUGH, EVENTS, SUMS, Blocks, blocks
from tcpfit.ranking.blocks import parameters as of_blocks
from tcpfit.ranking.bottleneck import Bottleneck, bottleneck
from tcpfit.ranking.comparison import block_weights, compare
from tcpfit.ranking.prediction import missing, predict, spread
from tcpfit.ranking.steady import Steady, steady
from tcpfit.ranking.table import BASELINES, RANKING, VERDICTS
from tcpfit.ranking.variants import fitted_parameter
from tcpfit.ranking.verdict import Candidate, verdict


def ranked_models() -> dict[str, Model]:
    """The models that flows are ranked by unless others are asked for: throughput models of current senders."""
    return {
        name: model
        for name, model in catalogue().items()
        if model.predicts == "throughput" and name not in applicability.NOT_RANKED
    }


def rank(
    flows: pl.DataFrame,
    events: pl.DataFrame,
    rounds: pl.DataFrame,
    parameters: pl.DataFrame,
    models: Mapping[str, Model] | None = None,
    *,
    fits: Sequence[str] = (),
    per_block: int = EVENTS,
    rule: str = "one-rtt",
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rank the models on every flow and judge: tables with the columns `RANKING` and `VERDICTS`, sorted by flow and
    rank.

    The tables are those of `tcpfit.schema`, `parameters` that of `tcpfit.parameters.estimate`; `models` is by default
    the catalogue's throughput models without `applicability.NOT_RANKED`. Every model that has its parameters is
    predicted, applicable or not. Rank 1 is the best applicable model: by score where the flow has at least 8 blocks, by
    |log_ratio| otherwise; models that do not apply follow, by |log_ratio|.

    `fits` names parameters as NAME.PARAMETER, each fitted on the blocks of every flow (`fitting.py`); the fitted model
    is a row of that name beside the printed one. `per_block` is the fewest loss or reordering events of a block. Under
    the rule `tfrc` p is that of the weighted loss intervals, in `parameters` too; of the other rules the tables are
    those of `parameters.under_rule`. Raises
    InvalidParameter for a parameter that cannot be fitted.
    """
    evidence = Evidence(flows, events, rounds)
    chosen, free = dict(ranked_models() if models is None else models), [fitted_parameter(text) for text in fits]
    value, low, high = _wide(parameters, evidence)
    family = families(evidence)
    value["b"] = as_reno(family, value["b"])
    part = steady(evidence, value["w_max"])
    cut = blocks(evidence, part, value["rtt"], per_block, rule)
    total = cut.of_flows()
    whole = {**of_blocks(total, value), **_sizes(evidence)}
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = [{name: side[name] * whole[name] / value[name] for name in NAMES} for side in (low, high)]
    path = bottleneck(evidence, part)
    found = _facts(evidence, total, whole, value, low, high, family, path)
    failed = [applicability.check_all(facts) for facts in found]
    judged = [_fit(model, evidence, cut, total, whole, value, ends, failed) for model in chosen.values()]
    for model, parameter in free:
        judged.append(_fit(model, evidence, cut, total, whole, value, ends, failed, parameter))
    judged += _baselines(evidence, part, cut, total, whole)
    return _tables(evidence, cut, total, judged, per_block)


class _Fit:
    """One model on all flows: arrays over the flows, and residuals over the blocks."""

    def __init__(self, name: str, baseline: bool, flows: int) -> None:
        self.name, self.baseline = name, baseline
        nan = np.full(flows, np.nan)
        self.predicted_bps, self.predicted_time, self.ratio, self.low, self.high = nan, nan, nan, nan, nan
        self.residuals = np.zeros(0)
        self.applicable = np.zeros(flows, np.bool_)
        self.failed: list[list[str]] = [[] for _ in range(flows)]
        self.weakened: list[list[str]] = [[] for _ in range(flows)]
        self.reasons: list[list[str]] = [[] for _ in range(flows)]


def _fit(
    model: Model,
    evidence: Evidence,
    cut: Blocks,
    total: Floats,
    whole: Mapping[str, Floats],
    value: Mapping[str, Floats],
    ends: list[dict[str, Floats]],
    failed: list[dict[str, str]],
    free: str | None = None,
) -> _Fit:
    """One model's row of every flow; `free` is the parameter that is fitted on the flow's blocks."""
    fit = _Fit(model.name, False, len(evidence))
    fitted = None
    if free is not None:
        fitted, column = fitting.fit(model, free, cut, value), fitting.column_of(model, free)
        fit.name = f"{model.name}.{free}"
        whole, ends = {**whole, column: fitted.value}, [{**end, column: fitted.value} for end in ends]
    predicted = predict(model, whole)
    if fitted is not None:  # a default does not stand in for what could not be fitted
        predicted = np.where(np.isfinite(fitted.value), predicted, np.nan)
    below, above = spread(model, whole, ends[0], ends[1])
    smss = evidence.column("smss_bytes")
    with np.errstate(divide="ignore", invalid="ignore"):
        if model.predicts == "transfer-time":
            fit.predicted_time = predicted
            fit.predicted_bps = 8 * evidence.column("unique_bytes") / predicted
            fit.ratio = np.log(predicted / _transfer_time(evidence))
            fit.residuals = np.full(len(cut.owner), np.nan)
        else:
            to_send = evidence.column("sent_segments") * smss if model.quantity == "send-rate" else None
            to_send = evidence.column("unique_bytes") if to_send is None else to_send
            fit.predicted_bps = 8 * predicted * smss
            fit.predicted_time = to_send / (predicted * smss)
            fit.ratio = np.log(predicted / residuals.rate(total, model.quantity))
            fit.residuals = residuals.held_out(model, cut, value) if fitted is None else fitted.residuals
    fit.low, fit.high = fit.ratio + below, fit.ratio + above
    lacking, number = missing(model, whole), cut.count()
    for i, failures in enumerate(failed):
        fit.applicable[i], fit.reasons[i] = applicability.judge(model, failures)
        fit.failed[i], fit.weakened[i] = applicability.failing(model, failures)
        absent = [name for name, gone in lacking.items() if gone[i]]
        fit.reasons[i] += [f"the flow does not show {name}, which it needs" for name in absent]
        if fitted is not None:
            fit.reasons[i].append(_said_of_fit(fitted, i, free or "", int(number[i])))
        if np.isnan(predicted[i]) and not absent and (fitted is None or np.isfinite(fitted.value[i])):
            fit.reasons[i].append("the parameters are outside the model's domain")
    fit.applicable &= np.isfinite(predicted)
    return fit


def _said_of_fit(fitted: fitting.Fitted, i: int, parameter: str, blocks: int) -> str:
    if np.isnan(fitted.value[i]):
        return f"fitted: {parameter} is not, for {blocks} blocks are fewer than {fitting.LEAST} or give no prediction"
    bound = ", a bound: the blocks do not determine it" if fitted.at_bound[i] else ""
    return f"fitted: {parameter} = {fitted.value[i]:.3g} on {blocks} blocks{bound}"


def _baselines(evidence: Evidence, part: Steady, cut: Blocks, total: Floats, whole: Mapping[str, Floats]) -> list[_Fit]:
    """The mean of the other blocks, and min(W/RTT, capacity)."""
    flows, smss = len(evidence), evidence.column("smss_bytes")
    observed = residuals.rate(total, "goodput")
    with np.errstate(divide="ignore", invalid="ignore"):
        acked = evidence.rounds.floats("acked_bytes") / smss[part.owner] / part.duration_s
    table = pl.DataFrame({"owner": part.owner, "rate": acked})
    table = table.filter(pl.Series(part.inside) & pl.col("rate").is_finite())
    fast = table.group_by("owner").agg(pl.col("rate").quantile(0.9))
    capacity = np.full(flows, np.nan)
    capacity[fast["owner"].to_numpy()] = fast["rate"].to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        limit = np.fmin(whole["w_max"] / whole["rtt"], capacity)
    found = []
    for name, predicted, errors in (
        ("mean-of-blocks", observed, residuals.held_out_mean(cut)),
        ("window-or-capacity", limit, residuals.held_out_limit(limit, cut)),
    ):
        fit = _Fit(name, True, flows)
        with np.errstate(divide="ignore", invalid="ignore"):
            fit.predicted_bps = 8 * predicted * smss
            fit.predicted_time = evidence.column("unique_bytes") / (predicted * smss)
            fit.ratio = np.log(predicted / observed)
        fit.residuals = errors
        fit.reasons = [[BASELINES[name]] for _ in range(flows)]
        found.append(fit)
    return found


COMPARED = ("score", "difference", "difference_se", "probability_best")
"""Columns of `RANKING` that come from comparing a flow's blocks."""


def _tables(
    evidence: Evidence, cut: Blocks, total: Floats, fits: list[_Fit], per_block: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Compare, rank and judge flow by flow."""
    flows, size = len(evidence), len(fits)
    of_fits = {
        "predicted_bps": _stack([fit.predicted_bps for fit in fits], flows),
        "predicted_time_s": _stack([fit.predicted_time for fit in fits], flows),
        "log_ratio": _stack([fit.ratio for fit in fits], flows),
        "log_ratio_low": _stack([fit.low for fit in fits], flows),
        "log_ratio_high": _stack([fit.high for fit in fits], flows),
        **{name: np.full((flows, size), np.nan) for name in COMPARED},
    }
    applicable = np.array([fit.applicable for fit in fits], dtype=np.bool_).reshape(size, flows).T
    models = np.array([not fit.baseline for fit in fits], dtype=np.bool_)
    usable = applicable & np.isfinite(of_fits["log_ratio"])
    rows, ranks = np.zeros((flows, size), np.intp), np.zeros((flows, size), np.int64)
    verdicts: dict[str, list[Any]] = {c.name: [] for c in VERDICTS}
    number, first = cut.count(), np.concatenate(([0], np.cumsum(cut.count())))
    mean_of_blocks = [fit.name for fit in fits].index("mean-of-blocks")
    errors = _stack([fit.residuals for fit in fits], len(cut.owner)).T
    events = total[:, SUMS.index("events")] + total[:, SUMS.index("reorder_events")]
    rounds, missed = total[:, SUMS.index("rounds")], capture_loss(evidence)
    seconds, sent = cut.sums[:, SUMS.index("seconds")], cut.sums[:, SUMS.index("sent")]
    as_good, tied = np.zeros((flows, size), np.bool_), np.zeros((flows, size), np.bool_)
    for i in range(flows):
        compared, of_flow = None, slice(first[i], first[i + 1])
        if number[i] >= ENOUGH:
            weights = block_weights(seconds[of_flow], sent[of_flow])
            compared = compare(errors[:, of_flow], weights, usable[i] & models, int(evidence.flow[i]))
            for name in COMPARED:
                of_fits[name][i] = getattr(compared, name)
        order = _order(of_fits["score"][i], of_fits["log_ratio"][i], usable[i], models)
        if compared and order:
            as_good[i] = compared.as_good(order[0], of_fits["log_ratio"][i])
            tied[i] = compared.tied(order[0])
        rows[i] = [*order, *(k for k in range(size) if k not in order)]
        ranks[i, order] = range(1, len(order) + 1)
    known = {
        name: np.where(np.isfinite(array), array, None).tolist()  # type: ignore[call-overload]
        for name, array in of_fits.items()
    }
    for i in range(flows):
        candidates = [
            Candidate(
                fits[k].name,
                bool(applicable[i, k]),
                bool(as_good[i, k]),
                bool(tied[i, k]),
                known["log_ratio"][i][k],
                known["log_ratio_low"][i][k],
                known["log_ratio_high"][i][k],
                known["probability_best"][i][k],
                known["score"][i][k],
                fits[k].reasons[i],
            )
            for k in rows[i].tolist()
            if models[k]
        ]
        baseline = known["score"][i][mean_of_blocks]
        judged = verdict(
            candidates, int(number[i]), float(events[i]), float(rounds[i]), baseline, float(missed[i]), per_block
        )
        flow = int(evidence.flow[i])
        for key, item in {"flow": flow, "state": judged.state, "models": judged.models, "text": judged.text}.items():
            verdicts[key].append(item)
    placed = {name: pl.Series(np.take_along_axis(array, rows, 1).ravel()) for name, array in of_fits.items()}
    rank_of = pl.Series(np.take_along_axis(ranks, rows, 1).ravel())
    ranking = {
        "flow": pl.Series(np.repeat(evidence.flow, size)),
        "model": pl.Series([fit.name for fit in fits], dtype=pl.String).gather(rows.ravel()),
        "rank": pl.select(pl.when(rank_of > 0).then(rank_of)).to_series(),
        **{name: pl.select(pl.when(column.is_finite()).then(column)).to_series() for name, column in placed.items()},
        "applicable": pl.Series(np.take_along_axis(applicable, rows, 1).ravel()),
        **{
            name: _lists([getattr(fits[k], name)[i] for i, own in enumerate(rows.tolist()) for k in own])
            for name in ("failed", "weakened", "reasons")
        },
    }
    schema, judgement = (pl.Schema({c.name: c.dtype for c in table}) for table in (RANKING, VERDICTS))
    judged_best = _lists(verdicts.pop("models"))
    return (
        pl.DataFrame(ranking).select(schema.names()).cast(schema),
        pl.DataFrame({**verdicts, "models": judged_best}).select(judgement.names()).cast(judgement),
    )


def _stack(arrays: list[Floats], size: int) -> Floats:
    """Arrays of that size beside each other, one a column."""
    return np.stack(arrays, axis=1) if arrays else np.zeros((size, 0))


def _lists(values: list[list[str]]) -> pl.Series:
    """A column of lists of text. Few of them differ, and polars takes each as a series of its own."""
    number: dict[tuple[str, ...], int] = {}
    rows = [number.setdefault(tuple(value), len(number)) for value in values]
    return pl.Series([list(value) for value in number], dtype=pl.List(pl.String)).gather(rows)


def _order(score: Floats, ratio: Floats, usable: np.ndarray, models: np.ndarray) -> list[int]:
    """Models in the order of their rank: applicable ones by score, or else by |log ratio|; the others after them."""
    off = np.abs(ratio)

    def key(k: int) -> tuple[bool, float, float, int]:
        by_score = float(score[k]) if usable[k] and np.isfinite(score[k]) else np.inf
        return not usable[k], by_score, float(off[k]), k

    return sorted((k for k in range(len(ratio)) if models[k] and np.isfinite(ratio[k])), key=key)


def _wide(parameters: pl.DataFrame, evidence: Evidence) -> tuple[dict[str, Floats], ...]:
    """Values, low and high ends as arrays over the flows, by name; NaN where there is no row or no value."""
    rows = parameters.select("flow", "value", "low", "high", name=pl.col("name").cast(NAME, strict=False).to_physical())
    rows = rows.filter(pl.col("name").is_not_null() & pl.col("flow").is_in(evidence.flows["flow"].implode()))
    at = rows["name"].to_numpy(), np.searchsorted(evidence.flow, rows["flow"].to_numpy())
    found = []
    for side in ("value", "low", "high"):
        grid = np.full((len(NAMES), len(evidence)), np.nan)
        grid[at] = floats(rows[side])
        found.append(dict(zip(NAMES, grid, strict=True)))
    return tuple(found)


def _transfer_time(evidence: Evidence) -> Floats:
    return (evidence.column("last_ns") - evidence.column("first_ns")) / 1e9


def _sizes(evidence: Evidence) -> dict[str, Floats]:
    """What transfer-time models take beside the parameters: the transfer in segments."""
    with np.errstate(divide="ignore", invalid="ignore"):
        segments = np.ceil(evidence.column("unique_bytes") / evidence.column("smss_bytes"))
    return {"segments": segments, "n": segments}


def _facts(
    evidence: Evidence,
    total: Floats,
    whole: Mapping[str, Floats],
    value: Mapping[str, Floats],
    low: Mapping[str, Floats],
    high: Mapping[str, Floats],
    family: pl.DataFrame,
    path: Bottleneck,
) -> list[applicability.Facts]:
    s = {name: total[:, i] for i, name in enumerate(SUMS)}
    confidence, decrease = floats(family["confidence"]), floats(family["decrease"])
    names, sacks = family["family"].cast(pl.String).to_list(), evidence.flows["sack_permitted"].to_list()
    sent, felt = evidence.column("sent_segments"), evidence.column("loss_events")
    marks = evidence.count(evidence.mark_responses)

    def of(array: Floats, i: int) -> float | None:
        return float(array[i]) if np.isfinite(array[i]) else None

    return [
        applicability.Facts(
            rounds=s["rounds"][i],
            sent=s["sent"][i],
            seconds=s["seconds"][i],
            idle_s=s["idle"][i],
            limited_share=s["limited"][i] / max(s["rounds"][i], 1.0),
            loss_events=s["events"][i],
            indications=s["indications"][i],
            timeouts=s["rto_n"][i],
            reorder_events=s["reorder_events"][i],
            whole_sent=float(np.nan_to_num(sent[i])),
            sack=sacks[i],
            family=names[i],
            confidence=confidence[i],
            decrease=of(decrease, i),
            p=of(whole["p"], i),
            q_tilde=of(whole["q_tilde"], i),
            m_low=of(low["m"], i),
            m_high=of(high["m"], i),
            w=of(whole["w"], i),
            w_max=of(value["w_max"], i),
            rtt=of(whole["rtt"], i),
            flatness=of(path.flatness, i),
            growth=of(path.growth, i),
            standing=of(path.standing, i),
            whole_loss_events=float(np.nan_to_num(felt[i])),
            marks=float(marks[i]),
        )
        for i in range(len(evidence))
    ]
