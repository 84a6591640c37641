"""What a model predicts from parameters, and how far the parameters' intervals let it vary.

Every parameter of a model is fed from the column it names, so each model gets the loss rate it was derived for. Where a
flow does not show a parameter, the model's default stands in, except for b: 1 segment a round (RFC 3465, and what Linux
does), because the papers' 2 assumes a sender that counts ACKs. A parameter without default leaves the prediction out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tcpfit.exceptions import InvalidParameter
from tcpfit.models import Model
from tcpfit.parameters.intervals import Z95, Floats

DRAWS = 64
SEED = 1998
INSTEAD = {"b": 1.0}
TOGETHER = {name: "loss" for name in ("p", "p_indication", "q_tilde")}


def feed(model: Model, values: Mapping[str, Floats]) -> dict[str, Floats]:
    """The model's keywords from parameters by column name; NaN where neither the flow nor a default gives one, and
    where it is outside the model's range."""
    some = next(iter(values.values()))
    keywords: dict[str, Floats] = {}
    for parameter in model.parameters:
        column = parameter.column or parameter.name
        value = values.get(column, np.full(some.shape, np.nan))
        default = INSTEAD.get(column, parameter.default)
        if default is not None:
            value = np.where(np.isfinite(value), value, default)
        inside = (value >= parameter.low) & (value <= parameter.high)
        keywords[parameter.name] = np.where(inside, value, np.nan)
    return keywords


def lacking(model: Model, values: Mapping[str, Floats]) -> dict[str, NDArray[np.bool_]]:
    """Sentences that say why a parameter of the model cannot be had, and where each holds."""
    reasons, fed = {}, feed(model, values)
    for parameter in model.parameters:
        column = parameter.column or parameter.name
        gone = np.isnan(fed[parameter.name])
        beyond = gone & np.isfinite(values[column]) if column in values else np.zeros_like(gone)
        most = "" if np.isinf(parameter.high) else f" and at most {parameter.high:g}"
        reasons[f"the flow does not show {column}, which it needs"] = gone & ~beyond
        reasons[f"{column} is outside its domain, at least {parameter.low:g}{most}"] = beyond
    return reasons


def law(model: Model, values: Mapping[str, Floats]) -> Floats:
    """What the model gives; NaN where a parameter is missing or outside the domain, infinite where nothing limits."""
    try:
        return np.asarray(model.predict(**feed(model, values)), dtype=np.float64)
    except InvalidParameter:
        return np.full(next(iter(values.values())).shape, np.nan)


def predict(model: Model, values: Mapping[str, Floats]) -> Floats:
    """The model's prediction; NaN where a parameter is missing or outside the domain, or the rate is not finite."""
    found = law(model, values)
    return np.where(np.isfinite(found) & (found > 0), found, np.nan)


def draws(
    columns: Sequence[str], values: Mapping[str, Floats], low: Mapping[str, Floats], high: Mapping[str, Floats]
) -> dict[str, Floats]:
    """64 draws of each of the columns that has an interval, (draws, flows), from the parameters' 95 % intervals.

    With a fixed seed (a Latin hypercube: each 64th of every distribution once); each parameter varies log-normally with
    the spread of its own interval on either side, the three loss rates together. A share or rate of 0, which has no
    logarithm, stays 0 in half of the draws and follows half of a normal law in the others: 97.5 % are below its end.
    """
    axes = sorted({TOGETHER.get(column, column) for column in columns})
    generator = np.random.default_rng(SEED)
    strata = generator.permuted(np.tile(np.arange(DRAWS), (len(axes), 1)), axis=1).T
    normal = special.ndtri((strata + 0.5) / DRAWS)
    drawn = {}
    for column in columns:
        if column not in values or column not in low:
            continue
        z = normal[:, axes.index(TOGETHER.get(column, column))][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            down = np.log(values[column] / np.maximum(low[column], values[column] * 1e-2)) / Z95
            up = np.log(high[column] / values[column]) / Z95
        down, up = (np.where(np.isfinite(side), np.maximum(side, 0.0), 0.0) for side in (down, up))
        drawn[column] = values[column] * np.exp(z * np.where(z < 0, down, up))
        end = np.where((values[column] == 0) & (high[column] > 0), high[column], 0.0)
        drawn[column] = drawn[column] + end * np.maximum(z, 0.0) / Z95
    return drawn


def spread(
    model: Model, centre: Floats, values: Mapping[str, Floats], low: Mapping[str, Floats], high: Mapping[str, Floats]
) -> tuple[Floats, Floats]:
    """ln of the 2.5 and 97.5 percentiles of the prediction over `centre`, the prediction, from the parameters' 95 %
    intervals.

    A parameter without interval does not vary.
    """
    columns = {p.column or p.name: p for p in model.parameters}
    if not columns or not len(centre):
        return np.zeros_like(centre), np.zeros_like(centre)
    at = np.flatnonzero(np.isfinite(centre))  # a flow without a prediction has no interval of it
    low_end, high_end = np.full(len(centre), np.nan), np.full(len(centre), np.nan)
    if not len(at):
        return low_end, high_end
    values, low, high = ({name: side[at] for name, side in table.items()} for table in (values, low, high))
    drawn = dict(values)
    for column, moved in draws([*columns], values, low, high).items():
        drawn[column] = np.clip(moved, columns[column].low, columns[column].high)
    shape = (DRAWS, len(at))
    fed = [name for name in columns if name in drawn] or [*drawn][:1]  # the first one says how many
    flat = {name: np.ascontiguousarray(np.broadcast_to(drawn[name], shape)).reshape(-1) for name in fed}
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(predict(model, flat).reshape(shape) / centre[at])
    logs = np.sort(np.where(np.isfinite(logs), logs, np.nan), axis=0)  # NaN last
    known = np.isfinite(logs).sum(axis=0)
    enough, every = known >= DRAWS // 2, np.arange(len(at))
    for ends, share in ((low_end, 0.025), (high_end, 0.975)):
        # the k-th of n draws stands for the quantile (k - 1/2)/n, as it was drawn
        place = np.clip(share * known - 0.5, 0.0, np.maximum(known - 1.0, 0.0))
        lower = place.astype(np.int64)
        upper = np.minimum(lower + 1, np.maximum(known - 1, 0))
        between = logs[lower, every] + (place - lower) * (logs[upper, every] - logs[lower, every])
        ends[at] = np.where(enough, between, np.nan)
    return low_end, high_end
