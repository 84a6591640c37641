"""Predictions of several models side by side, at a point or over a sweep, and what `tcpfit predict` prints of them."""

from __future__ import annotations

import csv as csv_module
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import tcpfit
from tcpfit.exceptions import InvalidParameter
from tcpfit.models import Model, Parameter
from tcpfit.models.base import Array
from tcpfit.report import cards

ROWS = 20
"""Values of a sweep that the table shows; JSON and CSV have all."""

SIZE = "size"
SIZES = ("segments", SIZE, "n")
"""Names and columns of the parameter that is the size of a transfer."""


@dataclass(frozen=True)
class Default:
    """What stands in for a needed parameter that was not given: its value from the others, and the rule in words."""

    name: str
    of: str
    rule: Callable[[Array], Array]
    words: str


DEFAULTS = (
    Default(
        "rto",
        "rtt",
        lambda rtt: np.maximum(0.2, 4 * rtt),
        "max(200 ms, 4 RTT): Linux's smallest timeout, and 4 RTT as RFC 5348, 3.1, simplifies it",
    ),
    Default("q", "p", lambda p: p, "p: losses are independent"),
    Default("q_tilde", "p", lambda p: p, "p: a loss event is one loss"),
)


@dataclass(frozen=True)
class Sweep:
    """A parameter and the values that it takes."""

    name: str
    values: Array


@dataclass
class Prediction:
    """One model's answer: arrays of a value a point, nan where `reasons` says why."""

    model: Model
    rate: Array  # segments/s
    time_s: Array  # of the transfer; nan where no size was given
    used: dict[str, Array]
    origin: dict[str, str]  # of each parameter used: given, tcpfit's default, model's default
    reasons: list[str] = field(default_factory=list)  # one a point, empty where there is a value


@dataclass(frozen=True)
class Predictions:
    """All models' answers to one question."""

    given: Mapping[str, float]
    conventions: Mapping[str, Any]
    sweep: Sweep | None
    size: float | None  # segments
    mss: float  # bytes
    mss_given: bool
    models: list[Prediction]


def predict(
    models: Iterable[Model],
    given: Mapping[str, float],
    *,
    sweep: Sweep | None = None,
    size: float | None = None,
    mss: float = 1460.0,
    mss_given: bool = False,
    conventions: Mapping[str, Any] | None = None,
) -> Predictions:
    """Every model's prediction from parameters by name, in the models' units; `size` is that of a transfer in segments.

    A sweep over `size` varies that. A convention goes to the models that know its value. Raises `InvalidParameter` for
    a name that no model takes, and for a value outside the range of all that take it.
    """
    chosen = [_configured(model, conventions or {}) for model in models]
    points: dict[str, Array] = {name: np.asarray(value, dtype=np.float64) for name, value in given.items()}
    lengths = None if size is None else np.asarray(float(size))
    if sweep is not None and sweep.name == SIZE:
        lengths = sweep.values
    elif sweep is not None:
        points[sweep.name] = sweep.values
    check_names(chosen, points, conventions or {})
    _inside(chosen, given)
    found = [_predict(model, points, sweep, lengths) for model in chosen]
    return Predictions(dict(given), dict(conventions or {}), sweep, size, mss, mss_given, found)


def timed(predictions: Predictions, prediction: Prediction) -> bool:
    """Whether a sweep is to be shown as times: of a model of them, and where the size is what varies."""
    by_size = predictions.sweep is not None and predictions.sweep.name in SIZES
    return by_size or prediction.model.predicts == "transfer-time"


def is_size(parameter: Parameter) -> bool:
    """Whether the parameter is the size of a transfer."""
    return parameter.column in SIZES or (not parameter.column and parameter.name in SIZES)


def check_names(models: Sequence[Model], names: Iterable[str], conventions: Iterable[str] = ()) -> None:
    """Raise InvalidParameter for a parameter that no model takes, and for a convention that none has."""
    takes = {p.name for model in models for p in _takes(model)}
    has = {name for model in models for name in model.get_params() if name != "free"}
    for name, known in [(name, takes) for name in names] + [(name, has) for name in conventions]:
        if name not in known:
            who = models[0].name if len(models) == 1 else "no model"
            verb = "takes no" if len(models) == 1 else "takes"
            raise InvalidParameter(f"{who} {verb} {name!r}; known are {', '.join(sorted(takes | has))}.")


def _inside(models: Sequence[Model], given: Mapping[str, float]) -> None:
    """Raise InvalidParameter for a value that no model can do anything with."""
    for name, value in given.items():
        takers = [p for model in models for p in _takes(model) if p.name == name]
        if any(parameter.holds(np.asarray(value)) for parameter in takers):
            continue
        low, high = min(p.low for p in takers), max(p.high for p in takers)
        least = f"above {low:g}" if all(p.positive for p in takers if p.low == low) else f"at least {low:g}"
        most = "" if np.isinf(high) else f" and at most {high:g}"
        raise InvalidParameter(f"{name} must be {least}{most}, got {value:g}")


def _configured(model: Model, conventions: Mapping[str, Any]) -> Model:
    """The model with those of the conventions that it has and whose value it knows."""
    own = {
        name: value
        for name, value in conventions.items()
        if name in model.get_params() and value in model.choices.get(name, (value,))
    }
    return type(model)(**{**model.get_params(), **own})


def _predict(model: Model, points: Mapping[str, Array], sweep: Sweep | None, size: Array | None) -> Prediction:
    shape = sweep.values.shape if sweep is not None else (1,)
    used: dict[str, Array] = {}
    origin: dict[str, str] = {}
    absent: list[Parameter] = []
    for parameter in model.parameters:
        value, where = _value(parameter, points, size)
        if value is None:
            absent.append(parameter)
        else:
            used[parameter.name], origin[parameter.name] = np.broadcast_to(value, shape), where
    for parameter in model.extensions:
        if parameter.name in points:
            used[parameter.name], origin[parameter.name] = np.broadcast_to(points[parameter.name], shape), "given"
    nothing = np.full(shape, np.nan)
    if absent:
        reason = f"needs {', '.join(f'{p.name} ({p.meaning})' for p in absent)}"
        return Prediction(model, nothing, nothing, used, origin, [reason] * nothing.size)
    found = np.broadcast_to(np.asarray(model.predict(**used), dtype=np.float64), shape)
    inside = np.broadcast_to(model.domain(**used), shape)
    reasons = [_reason(model, used, i, bool(inside[i]), float(found[i])) for i in range(found.size)]
    with np.errstate(divide="ignore", invalid="ignore"):
        if model.predicts == "transfer-time":
            segments = next((used[p.name] for p in model.parameters if is_size(p)), nothing)
            rate, time = segments / found, found
        else:
            # no rate that is not told is infinite
            rate, time = found, np.where(np.isfinite(found), (size if size is not None else np.nan) / found, np.nan)
    return Prediction(model, rate, time, used, origin, reasons)


def _value(parameter: Parameter, points: Mapping[str, Array], size: Array | None) -> tuple[Array | None, str]:
    if parameter.name in points:
        return points[parameter.name], "given"
    if size is not None and is_size(parameter):
        return size, "given"
    if parameter.default is not None:
        return np.asarray(parameter.default), "default of the model"
    for default in DEFAULTS:
        if default.name == parameter.name and default.of in points:
            return np.asarray(default.rule(points[default.of])), "default of tcpfit"
    return None, ""


def _reason(model: Model, used: Mapping[str, Array], i: int, inside: bool, value: float) -> str:
    """Why there is no number at a point, empty where there is one."""
    if np.isfinite(value):
        return ""
    for parameter in (*model.parameters, *model.extensions):
        if parameter.name in used and not parameter.holds(used[parameter.name][i]):
            return f"outside its domain: {parameter.name} is {used[parameter.name][i]:g}, not {cards.span(parameter)}"
    if not inside:
        return f"outside its domain (tcpfit models {model.name})"
    if not np.isposinf(value):
        return "the law has no value here"
    return "infinite: the transfer never ends" if model.predicts == "transfer-time" else "no limit: infinite"


# JSON and CSV


def document(predictions: Predictions) -> dict[str, Any]:
    """The JSON document; with a sweep every number is a list over its values. What cannot be had is null."""
    sweep = predictions.sweep
    one = sweep is None
    return {
        "tcpfit": tcpfit.__version__,
        "mss_bytes": predictions.mss,
        "size_segments": predictions.size,
        "given": {name: _finite(value) for name, value in predictions.given.items()},
        "conventions": dict(predictions.conventions),
        "sweep": None if sweep is None else {"parameter": sweep.name, "values": sweep.values.tolist()},
        "models": [
            {
                "model": p.model.name,
                "predicts": p.model.predicts,
                "quantity": p.model.quantity,
                "p_definition": p.model.p_definition,
                "rate_segments_per_s": _plain(p.rate, one),
                "rate_bps": _plain(8 * predictions.mss * p.rate, one),
                "time_s": _plain(p.time_s, one),
                "reason": (p.reasons[0] or None) if one else [reason or None for reason in p.reasons],
                "parameters": {name: _plain(value, one) for name, value in p.used.items()},
                "origin": p.origin,
            }
            for p in predictions.models
        ],
    }


def csv(predictions: Predictions) -> str:
    """CSV, a row a model and value of the sweep."""
    out = io.StringIO()
    writer = csv_module.writer(out, lineterminator="\n")
    swept = [predictions.sweep.name] if predictions.sweep else []
    writer.writerow([*swept, "model", "quantity", "rate_segments_per_s", "rate_bps", "time_s", "reason"])
    for p in predictions.models:
        for i, (rate, time) in enumerate(zip(p.rate, p.time_s, strict=True)):
            at = [predictions.sweep.values[i]] if predictions.sweep else []
            numbers = ["" if _finite(x) is None else repr(float(x)) for x in (rate, 8 * predictions.mss * rate, time)]
            writer.writerow([*at, p.model.name, cards.predicts(p.model), *numbers, p.reasons[i]])
    return out.getvalue()


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _plain(values: Array, one: bool) -> Any:
    found = [_finite(value) for value in values]
    return found[0] if one else found


# The table


def show(predictions: Predictions, out: Console) -> None:
    """Print what was given, the table of the models, why some have no number, and every default that was used."""
    out.print(Text(question(predictions), style="bold"))
    out.print()
    if predictions.sweep is None:
        _point(predictions, out)
    else:
        _sweep(predictions, predictions.sweep, out)
    for note in (*_without(predictions), *_meanings(predictions), *_times(predictions), *_defaults(predictions)):
        out.print(Padding(Text(note, style="dim"), (0, 0, 0, 2)))


def question(predictions: Predictions) -> str:
    """What was asked, in a line."""
    units = {p.name: p.unit for one in predictions.models for p in (*one.model.parameters, *one.model.extensions)}
    units[SIZE] = "segments"
    parts = [f"{name} {amount(value, units[name])}" for name, value in predictions.given.items()]
    if predictions.size is not None:
        parts.append(f"size {amount(predictions.size, 'segments')}")
    parts += [f"{name} {value}" for name, value in predictions.conventions.items()]
    if predictions.sweep:
        low, high = (amount(value, units[predictions.sweep.name]) for value in predictions.sweep.values[[0, -1]])
        parts.append(f"{predictions.sweep.name} from {low} to {high}")
    return ", ".join([*parts, f"MSS {predictions.mss:g} B{'' if predictions.mss_given else ' (default)'}"])


def _point(predictions: Predictions, out: Console) -> None:
    timed = any(np.isfinite(p.time_s).any() for p in predictions.models)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("  model", no_wrap=True)
    table.add_column("predicts", no_wrap=True)
    for heading in ("Mbit/s", "segments/s", *(["time"] if timed else [])):
        table.add_column(heading, justify="right", no_wrap=True)
    for p in predictions.models:
        rate, time = float(p.rate[0]), float(p.time_s[0])
        cells = [number(8e-6 * predictions.mss * rate), number(rate), *([amount(time, "s")] if timed else [])]
        table.add_row(f"  {p.model.name}", cards.predicts(p.model), *cells)
    out.print(table)
    out.print()


def _sweep(predictions: Predictions, sweep: Sweep, out: Console) -> None:
    """Tables of as many models as fit the width, a row a value; Mbit/s, or s for a transfer time."""
    rows = np.unique(np.linspace(0, sweep.values.size - 1, min(ROWS, sweep.values.size)).round().astype(int))
    units = (p.unit for one in predictions.models for p in one.model.parameters if p.name == sweep.name)
    unit = next(units, "segments")
    for heading, in_seconds in (("Mbit/s", False), ("seconds", True)):
        group = [p for p in predictions.models if np.isfinite(p.rate).any() and timed(predictions, p) is in_seconds]
        while group:
            room, taken = out.width - 14, 0
            while taken < len(group) and room >= len(group[taken].model.name) + 2:
                room -= max(len(group[taken].model.name), 8) + 2
                taken += 1
            part, group = group[: max(taken, 1)], group[max(taken, 1) :]
            table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", title_justify="left")
            table.add_column(f"  {sweep.name}", justify="right", no_wrap=True, min_width=9)
            for p in part:
                table.add_column(p.model.name, justify="right", no_wrap=True)
            for i in rows:
                values = (p.time_s if in_seconds else 8e-6 * predictions.mss * p.rate for p in part)
                table.add_row(amount(float(sweep.values[i]), unit), *(number(float(value[i])) for value in values))
            out.print(Text(f"  {heading}"))
            out.print(table)
            out.print()
    if rows.size < sweep.values.size:
        out.print(Text(f"  {rows.size} of {sweep.values.size} values; --format csv has all", "dim"))


def _without(predictions: Predictions) -> list[str]:
    """A sentence for each model that has no number somewhere."""
    notes = []
    for p in predictions.models:
        reasons = [reason for reason in p.reasons if reason]
        if reasons:
            several = "" if len(reasons) == len(p.reasons) else f" (at {len(reasons)} of {len(p.reasons)} values)"
            notes.append(f"{p.model.name}: {reasons[0]}{several}")
    return notes


def _meanings(predictions: Predictions) -> list[str]:
    """Which p each model takes what was given for, as the papers differ in it."""
    groups: dict[str, list[str]] = {}
    for p in predictions.models:
        if p.model.p_definition is not None and "p" in p.used:
            groups.setdefault(cards.COUNTS[p.model.p_definition], []).append(p.model.name)
    if not groups:
        return []
    return ["p is taken for " + "; for ".join(f"{what} by {', '.join(names)}" for what, names in groups.items())]


def _takes(model: Model) -> Sequence[Parameter]:
    return (*model.parameters, *model.extensions)


def _times(predictions: Predictions) -> list[str]:
    if any(np.isfinite(p.time_s).any() for p in predictions.models if p.model.predicts == "throughput"):
        return ["the time of a model of throughput is the size over its rate, without slow start"]
    return []


def _defaults(predictions: Predictions) -> list[str]:
    """Every value that nobody gave, and whose it is."""
    notes = []
    answered = [p for p in predictions.models if np.isfinite(p.rate).any()]
    for default in DEFAULTS:
        users = [p for p in answered if p.origin.get(default.name) == "default of tcpfit"]
        if users:
            unit = next(p.unit for p in users[0].model.parameters if p.name == default.name)
            values = users[0].used[default.name]
            shown = f"{amount(float(values[0]), unit)}, " if np.all(values == values[0]) else ""
            takes = [p for p in answered if any(default.name == each.name for each in _takes(p.model))]
            by = f" ({', '.join(p.model.name for p in users)})" if len(takes) > len(users) else ""
            notes.append(f"{default.name} was not given: {shown}{default.words}{by}")
    groups: dict[tuple[str, float, str], list[str]] = {}
    for p in answered:
        for parameter in p.model.parameters:
            if p.origin.get(parameter.name) == "default of the model":
                key = (parameter.name, float(parameter.default or 0), parameter.unit)
                groups.setdefault(key, []).append(p.model.name)
    for (name, value, unit), names in groups.items():
        notes.append(f"{name} was not given: {amount(value, unit)}, the default of {', '.join(names)}")
    return notes


def number(value: float) -> str:
    """Three significant digits or more, without exponent where there is room; `-` is what cannot be had."""
    if not np.isfinite(value):
        return "-"
    size = abs(value)
    if size >= 1e7 or 0 < size < 1e-3:
        return f"{value:.2e}"
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:.{digits}f}" if size >= 0.1 or size == 0 else f"{value:.3g}"


def amount(value: float, unit: str) -> str:
    """A value with its unit: 100 ms, 45 segments, 1 segment, none."""
    if np.isposinf(value):
        return "none"
    if np.isnan(value):
        return "-"
    if unit == "s":
        factor, name = next(((f, n) for f, n in ((1, "s"), (1e3, "ms")) if value * f >= 0.9995), (1e6, "us"))
        return f"{value * factor:.4g} {name}"
    if unit == "1":
        return f"{value:.4g}"
    return f"{value:.6g} {unit.removesuffix('s') if value == 1 else unit}"
