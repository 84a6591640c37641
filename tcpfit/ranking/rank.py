"""Every model on every flow: predictions, applicability, comparison, rank and verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcpfit import arguments
from tcpfit.models import Model, catalogue
from tcpfit.parameters.event_rules import RULES
from tcpfit.parameters.evidence import Evidence, floats
from tcpfit.parameters.intervals import Floats, Ints
from tcpfit.parameters.loss_rate import capture_loss, seen_twice
from tcpfit.parameters.table import NAMES, PARAMETERS
from tcpfit.ranking import applicability, fitting, residuals
from tcpfit.ranking.blocks import ENOUGH, EVENTS, SUMS, Blocks
from tcpfit.ranking.blocks import parameters as of_blocks
from tcpfit.ranking.bottleneck import Bottleneck, bottleneck
from tcpfit.ranking.comparison import Comparison, block_weights, compare
from tcpfit.ranking.cut import cut
from tcpfit.ranking.prediction import lacking, law, spread
from tcpfit.ranking.steady import Steady
from tcpfit.ranking.table import BASELINES, RANKING, TEXTS, VERDICTS
from tcpfit.ranking.variants import fitted_parameter, throughput_models
from tcpfit.ranking.verdict import Candidate, too_little, verdict
from tcpfit.schema import check_table, check_tables


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
    evidence: Evidence | None = None,
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
    those of `parameters.under_rule`. `evidence` is that of the tables, where it is there already. Raises
    InvalidParameter for a model of transfer times, for a parameter that cannot be fitted, and for other arguments that
    make no sense.
    """
    check_tables(flows=flows, events=events, rounds=rounds)
    check_table("the table of parameters", parameters, PARAMETERS, "tcpfit.parameters.estimate")
    arguments.one_of("rule", rule, RULES)
    arguments.whole("per_block", per_block)
    fits = arguments.texts("fits", fits)
    if models is not None:
        models = throughput_models(models)
    if evidence is None:
        evidence = Evidence(flows, events, rounds)
    arguments.instance("evidence", evidence, Evidence, "the Evidence of the tables")
    chosen, free = dict(ranked_models() if models is None else models), [fitted_parameter(text) for text in fits]
    return of_evidence(evidence, parameters, chosen, free, per_block, rule)


def of_evidence(
    evidence: Evidence,
    parameters: pl.DataFrame,
    models: Mapping[str, Model],
    free: Sequence[tuple[Model, str]] = (),
    per_block: int = EVENTS,
    rule: str = "one-rtt",
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The same of an evidence and of models of any kind: those of a transfer's time are given the steady part's
    parameters, and have no residuals of blocks."""
    found = cut(evidence, parameters, per_block, rule)
    value, low, high, blocks = found.value, found.low, found.high, found.blocks
    total = blocks.of_flows()
    whole = of_blocks(total, value)
    ends = [{name: _of_part(side[name], whole[name], value[name]) for name in NAMES} for side in (low, high)]
    facts = _facts(evidence, total, whole, value, low, high, found.family, bottleneck(evidence, found.steady))
    rows = [_fit(model, evidence, blocks, total, whole, found.held_out, ends) for model in models.values()]
    rows += [_fit(model, evidence, blocks, total, whole, found.held_out, ends, parameter) for model, parameter in free]
    rows += _baselines(evidence, found.steady, blocks, total, whole)
    return _tables(evidence, blocks, total, rows, *_judged(rows, facts), per_block)


def _of_part(end: Floats, part: Floats, whole: Floats) -> Floats:
    """An end of the flow's interval for its steady part: relatively as far from the value, of a part without an event
    that of the flow."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(part == 0, end, end * part / whole)


class _Fit:
    """One model on all flows: arrays over the flows, and residuals over the blocks; no model is a baseline.

    `reasons` are those that are no assumptions, in their order: where each holds with its sentence, or sentences.
    """

    def __init__(self, name: str, model: Model | None, flows: int) -> None:
        self.name, self.model = name, model
        nan = np.full(flows, np.nan)
        self.predicted_bps, self.predicted_time, self.ratio, self.low, self.high = nan, nan, nan, nan, nan
        self.fitted = nan
        self.residuals = np.zeros(0)
        self.unknown = np.zeros(flows, np.bool_)
        self.reasons: list[tuple[NDArray[np.bool_], str] | NDArray[np.str_]] = []


def _fit(
    model: Model,
    evidence: Evidence,
    blocks: Blocks,
    total: Floats,
    whole: Mapping[str, Floats],
    others: Mapping[str, Floats],
    ends: list[dict[str, Floats]],
    free: str | None = None,
) -> _Fit:
    """One model's row of every flow; `free` is the parameter that is fitted on the flow's blocks."""
    fit = _Fit(model.name, model, len(evidence))
    fitted = None
    if free is not None:
        fitted, column = fitting.fit(model, free, blocks, others), fitting.column_of(model, free)
        fit.name, fit.fitted = f"{model.name}.{free}", fitted.value
        whole, ends = {**whole, column: fitted.value}, [{**end, column: fitted.value} for end in ends]
    given = law(model, whole)
    endless, predicted = np.isposinf(given), np.where(np.isfinite(given) & (given > 0), given, np.nan)
    if fitted is not None:  # a default does not stand in for what could not be fitted
        predicted = np.where(np.isfinite(fitted.value), predicted, np.nan)
    below, above = spread(model, predicted, whole, ends[0], ends[1])
    smss = evidence.column("smss_bytes")
    with np.errstate(divide="ignore", invalid="ignore"):
        to_send = evidence.column("unique_bytes")
        if model.quantity == "send-rate":
            to_send = evidence.column("sent_segments") * evidence.full_size * smss
        fit.predicted_bps = 8 * predicted * smss
        fit.predicted_time = to_send / (predicted * smss)
        fit.ratio = np.log(predicted / residuals.rate(total, model.quantity))
        fit.residuals = residuals.held_out(model, blocks, others) if fitted is None else fitted.residuals
    fit.low, fit.high = fit.ratio + below, fit.ratio + above
    fit.unknown, outside = np.isnan(predicted), np.isnan(predicted) & ~endless
    for sentence, holds in lacking(model, whole).items():
        fit.reasons.append((holds, sentence))
        outside &= ~holds
    fit.reasons.append((endless, f"{'' if model.p_definition is None else 'without loss '}the law sets no limit"))
    if fitted is not None:
        outside &= np.isfinite(fitted.value)
        number = blocks.count().tolist()
        fit.reasons.append(np.array([_said_of_fit(fitted, i, free or "", n) for i, n in enumerate(number)]))
    fit.reasons.append((outside, "the parameters are outside the model's domain"))
    return fit


def _judged(fits: list[_Fit], flows: Sequence[applicability.Facts]) -> tuple[pl.DataFrame, Ints]:
    """Whether each model applies to each flow, and why not, in the columns of `applicability.says`: the rows that
    differ, and which of them every flow and model has (flows by models)."""
    number: dict[tuple[tuple[str, str], ...], int] = {}
    of_flow = [number.setdefault(tuple(applicability.check_all(facts).items()), len(number)) for facts in flows]
    row = np.array(of_flow, dtype=np.int64)
    failed = applicability.table([dict(texts) for texts in number])
    conditions: dict[str, NDArray[Any]] = {}
    columns: dict[str, pl.Expr] = {}

    def condition(name: str, values: NDArray[Any]) -> pl.Expr:
        conditions[name] = values
        return pl.col(name)

    for i, fit in enumerate(fits):
        says, reasons = _of_baseline(fit) if fit.model is None else applicability.says(fit.model), []
        applicable = says["applicable"]
        if fit.unknown.any():
            applicable = applicable & ~condition(f"{i} unknown", fit.unknown)
        for j, reason in enumerate(fit.reasons):
            if not isinstance(reason, tuple):
                reasons.append(condition(f"{i} reason {j}", reason))
            elif reason[0].any():
                reasons.append(pl.when(condition(f"{i} reason {j}", reason[0])).then(pl.lit(reason[1])))
        every = pl.concat_list(says["reasons"], *reasons).list.drop_nulls() if reasons else says["reasons"]
        said = says | {"applicable": applicable, "reasons": every}
        columns |= {f"{i} {name}": expression for name, expression in said.items()}
    first, kind = _kinds(row, list(conditions.values()))
    wide = failed[row[first]].with_columns(pl.Series(name, values[first]) for name, values in conditions.items())
    wide = wide.with_columns(**columns)
    rows = pl.concat(
        (pl.DataFrame({name: wide[f"{i} {name}"] for name in JUDGED}) for i in range(len(fits))), rechunk=True
    )
    return rows, kind[:, None] + len(first) * np.arange(len(fits))


JUDGED = ("applicable", "failed", "weakened", "reasons")


def _of_baseline(fit: _Fit) -> dict[str, pl.Expr]:
    none = pl.lit([], TEXTS)
    return dict(zip(JUDGED, (pl.lit(False), none, none, pl.lit([BASELINES[fit.name]], TEXTS)), strict=True))


def _kinds(row: Ints, conditions: list[NDArray[Any]]) -> tuple[Ints, Ints]:
    """The kinds of flows, which differ in their row or in a condition: a flow of each, and which one every flow is."""
    kind = row
    flags = [*{values.tobytes(): values for values in conditions if values.dtype == np.bool_}.values()]
    for start in range(0, len(flags), FLAGS):
        code = np.zeros(len(kind), np.int64)
        for i, values in enumerate(flags[start : start + FLAGS]):
            code += values.astype(np.int64) << i
        _, kind = np.unique(kind << FLAGS | code, return_inverse=True)
    for values in conditions:
        if values.dtype != np.bool_:
            _, code = np.unique(values, return_inverse=True)
            _, kind = np.unique(kind * len(kind) + code, return_inverse=True)
    _, first, kind = np.unique(kind, return_index=True, return_inverse=True)
    return first, kind


FLAGS = 30
"""Conditions that go into one number."""


def _said_of_fit(fitted: fitting.Fitted, i: int, parameter: str, blocks: int) -> str:
    if np.isnan(fitted.value[i]):
        return f"fitted: {parameter} is not, for {blocks} blocks are fewer than {fitting.LEAST} or give no prediction"
    bound = ", a bound: the blocks do not determine it" if fitted.at_bound[i] else ""
    return f"fitted: {parameter} = {fitted.value[i]:.3g} on {blocks} blocks{bound}"


def _baselines(
    evidence: Evidence, part: Steady, blocks: Blocks, total: Floats, whole: Mapping[str, Floats]
) -> list[_Fit]:
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
        ("mean-of-blocks", observed, residuals.held_out_mean(blocks)),
        ("window-or-capacity", limit, residuals.held_out_limit(limit, blocks)),
    ):
        fit = _Fit(name, None, flows)
        with np.errstate(divide="ignore", invalid="ignore"):
            fit.predicted_bps = 8 * predicted * smss
            fit.predicted_time = evidence.column("unique_bytes") / (predicted * smss)
            fit.ratio = np.log(predicted / observed)
        fit.residuals = errors
        found.append(fit)
    return found


COMPARED = ("score", "difference", "difference_se", "probability_best")
"""Columns of `RANKING` that come from comparing a flow's blocks."""


def _tables(
    evidence: Evidence,
    blocks: Blocks,
    total: Floats,
    fits: list[_Fit],
    judged: pl.DataFrame,
    row: Ints,
    per_block: int,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Compare, rank and judge every flow; `judged` and `row` are those of `_judged`."""
    flows, size = len(evidence), len(fits)
    of_fits = {
        "predicted_bps": _stack([fit.predicted_bps for fit in fits], flows),
        "predicted_time_s": _stack([fit.predicted_time for fit in fits], flows),
        "log_ratio": _stack([fit.ratio for fit in fits], flows),
        "log_ratio_low": _stack([fit.low for fit in fits], flows),
        "log_ratio_high": _stack([fit.high for fit in fits], flows),
        "fitted": _stack([fit.fitted for fit in fits], flows),
        **{name: np.full((flows, size), np.nan) for name in COMPARED},
    }
    applicable = judged["applicable"].to_numpy()[row]
    models = np.array([fit.model is not None for fit in fits], dtype=np.bool_)
    usable = applicable & np.isfinite(of_fits["log_ratio"])
    compared = _compared(evidence, blocks, [fit.residuals for fit in fits], usable & models)
    for i, comparison in compared.items():
        for name in COMPARED:
            of_fits[name][i] = getattr(comparison, name)
    order, ranked = _order(of_fits["score"], of_fits["log_ratio"], usable, models)
    as_good, tied = np.zeros((flows, size), np.bool_), np.zeros((flows, size), np.bool_)
    for i, comparison in compared.items():
        if ranked[i]:
            as_good[i] = comparison.as_good(int(order[i, 0]), of_fits["log_ratio"][i])
            tied[i] = comparison.tied(int(order[i, 0]))
    ranks, row = np.arange(1, size + 1), np.take_along_axis(row, order, 1)
    ranking = pl.DataFrame(
        {
            "flow": np.repeat(evidence.flow, size),
            "model": pl.Series([fit.name for fit in fits], dtype=pl.String).gather(order.ravel()),
            "rank": np.where(ranks <= ranked[:, None], ranks, 0).ravel(),
            **{name: np.take_along_axis(array, order, 1).ravel() for name, array in of_fits.items()},
            **judged[row.ravel()].to_dict(),
            "is_model": models[order.ravel()],
            "as_good": np.take_along_axis(as_good, order, 1).ravel(),
            "tied": np.take_along_axis(tied, order, 1).ravel(),
        }
    ).with_columns(
        pl.when(pl.col("rank") > 0).then(pl.col("rank")),
        *(pl.when(pl.col(name).is_finite()).then(pl.col(name)) for name in of_fits),
    )
    of_models = ranking.select("is_model", *CANDIDATE.values()).filter("is_model").drop("is_model")
    said, row = judged["reasons"].to_list(), row[models[order]].reshape(flows, int(models.sum()))

    def candidates(of: Ints) -> list[list[Candidate]]:
        """The models of each of these flows, best first."""
        size, reasons = row.shape[1], [said[i] for i in row[of].ravel().tolist()]
        some = of_models[(of[:, None] * size + np.arange(size)).ravel()]
        every = list(map(Candidate, *(column.to_list() for column in some), reasons))
        return [every[i * size : (i + 1) * size] for i in range(len(of))]

    baseline = of_fits["score"][:, [fit.name for fit in fits].index("mean-of-blocks")]
    verdicts = _verdicts(evidence, blocks, total, (usable & models).any(axis=1), candidates, baseline, per_block)
    schema = pl.Schema({c.name: c.dtype for c in RANKING})
    return ranking.select(schema.names()).cast(schema), verdicts


def _compared(
    evidence: Evidence, blocks: Blocks, residuals: Sequence[Floats], contest: NDArray[np.bool_]
) -> dict[int, Comparison]:
    """The models compared on every flow with enough blocks, by its position."""
    number, first = blocks.count(), np.concatenate(([0], np.cumsum(blocks.count())))
    errors = _stack(list(residuals), len(blocks.owner)).T
    seconds, sent = blocks.sums[:, SUMS.index("seconds")], blocks.sums[:, SUMS.index("sent")]
    found = {}
    for i in np.flatnonzero(number >= ENOUGH).tolist():
        own = slice(first[i], first[i + 1])
        weights = block_weights(seconds[own], sent[own])
        found[i] = compare(errors[:, own], weights, contest[i])
    return found


CANDIDATE = {
    "name": "model",
    "applicable": "applicable",
    "as_good": "as_good",
    "tied": "tied",
    "log_ratio": "log_ratio",
    "low": "log_ratio_low",
    "high": "log_ratio_high",
    "probability_best": "probability_best",
    "score": "score",
}
"""Columns that the fields of a `Candidate` before its reasons come from, in its order."""


def _verdicts(
    evidence: Evidence,
    blocks: Blocks,
    total: Floats,
    applies: NDArray[np.bool_],
    candidates: Callable[[Ints], list[list[Candidate]]],
    baseline: Floats,
    per_block: int,
) -> pl.DataFrame:
    """The verdict on every flow; candidates, of which `applies` says where there are, are made where it needs them."""
    events = total[:, SUMS.index("events")] + total[:, SUMS.index("reorder_events")]
    rounds, score, missed = total[:, SUMS.index("rounds")].tolist(), _known(baseline), capture_loss(evidence).tolist()
    shown = list(zip(applies.tolist(), rounds, missed, seen_twice(evidence).tolist(), strict=True))
    said = {each: too_little(*each) for each in set(shown)}  # of short flows few differ
    without = [said[each] for each in shown]
    asked = iter(candidates(np.flatnonzero([each is None for each in without])))
    judged = [
        verdict(next(asked), *of_flow, per_block) if known is None else known
        for known, of_flow in zip(
            without, zip(blocks.count().tolist(), events.tolist(), rounds, score, missed, strict=True), strict=True
        )
    ]
    schema = pl.Schema({c.name: c.dtype for c in VERDICTS})
    columns = {name: [getattr(each, name) for each in judged] for name in ("state", "models", "text")}
    table = pl.DataFrame({"flow": evidence.flow, **columns, "models": _lists(columns["models"])})
    return table.select(schema.names()).cast(schema)


def _known(values: Floats) -> list[float | None]:
    """The values, None for what is not finite."""
    return [value if finite else None for value, finite in zip(values.tolist(), np.isfinite(values), strict=True)]


def _stack(arrays: list[Floats], size: int) -> Floats:
    """Arrays of that size beside each other, one a column."""
    return np.stack(arrays, axis=1) if arrays else np.zeros((size, 0))


def _lists(values: list[list[str]]) -> pl.Series:
    """A column of lists of text. Few of them differ, and polars takes each as a series of its own."""
    number: dict[tuple[str, ...], int] = {}
    rows = [number.setdefault(tuple(value), len(number)) for value in values]
    return pl.Series([list(value) for value in number], dtype=pl.List(pl.String)).gather(rows)


def _order(score: Floats, ratio: Floats, usable: NDArray[np.bool_], models: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Of each flow (flows by models) the models in the order of their rank, and how many have one.

    Applicable ones by score, or else by |log ratio|, the others after them; then what has no rank.
    """
    out = ~(models & np.isfinite(ratio))
    by_score = np.where(usable & np.isfinite(score), score, np.inf)
    keys = np.abs(ratio), by_score, ~usable  # the last one counts first
    order = np.lexsort((*(np.where(out, 0, key) for key in keys), out))
    return order, (~out).sum(axis=1)


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
    columns: dict[str, Any] = {
        "rounds": s["rounds"],
        "sent": s["sent"],
        "seconds": s["seconds"],
        "idle_s": s["idle"],
        "limited_share": s["limited"] / np.maximum(s["rounds"], 1.0),
        "loss_events": s["events"],
        "indications": s["indications"],
        "timeouts": s["rto_n"],
        "reorder_events": s["reorder_events"],
        "whole_sent": np.nan_to_num(evidence.column("sent_segments")),
        "confidence": floats(family["confidence"]),
        "decrease": _known(floats(family["decrease"])),
        "p": _known(whole["p"]),
        "q_tilde": _known(whole["q_tilde"]),
        "m_low": _known(low["m"]),
        "m_high": _known(high["m"]),
        "w": _known(whole["w"]),
        "w_max": _known(value["w_max"]),
        "rtt": _known(whole["rtt"]),
        "flatness": _known(path.flatness),
        "growth": _known(path.growth),
        "standing": _known(path.standing),
        "whole_loss_events": np.nan_to_num(evidence.column("loss_events")),
        "marks": evidence.count(evidence.mark_responses),
    }
    lists = {name: column if isinstance(column, list) else column.tolist() for name, column in columns.items()}
    lists |= {"sack": evidence.flows["sack_permitted"].to_list(), "family": family["family"].cast(pl.String).to_list()}
    return list(map(applicability.Facts, *(lists[name] for name in applicability.Facts._fields)))
