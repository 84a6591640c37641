"""Models that stand beside the printed ones in a ranking, under names of their own.

**Extended**, `NAME+PARAMETER`: the printed law with a measured parameter in the place of one that it derives or fixes.
`newreno-full+p_to` and `pftk-full+p_to` have the measured share of timeouts instead of the derived one,
`reordering-goodput+a_h_reacted` the time between the events that the sender reacted to instead of that between all.
**Fitted**, `NAME.PARAMETER`: one parameter is fitted on the flow's own blocks (`fitting.py`).
**Validation**: tests/ranking/test_variants.py; figures in docs/ranking.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tcpfit import arguments
from tcpfit.exceptions import InvalidParameter
from tcpfit.models import Model, get
from tcpfit.parameters.event_rules import RULES

SUBSTITUTES = {"reordering-goodput": {"a_h_reacted": "a_h"}}
"""By model: a column of the parameters that can be put in the place of that of another one."""

MET = {"a_h_reacted": "reordering-felt"}
"""By such a column: the assumption that it makes good."""


def by_name(names: Iterable[str]) -> dict[str, Model]:
    """Throughput models by name; `NAME+PARAMETER` is an extended one.

    Raises InvalidParameter for a name that is none, and for a model of transfer times.
    """
    chosen: dict[str, Model] = {}
    for text in arguments.texts("models", names):
        name, plus, parameter = text.partition("+")
        model = get(name)
        _of_throughput(name, model)
        chosen[text] = extended(model, parameter) if plus else model
    if not chosen:
        raise InvalidParameter("name at least one model")
    return chosen


def chosen(models: Any, rule: Any, block: Any, fit: Any) -> dict[str, Any]:
    """The arguments of `Analysis.rank`; raises InvalidParameter where one makes no sense."""
    if models is not None:
        models = arguments.texts("models", models)
        by_name(models)
    fits = tuple(arguments.texts("fit", fit))
    for each in fits:
        fitted_parameter(each)
    return {
        "models": models,
        "rule": arguments.one_of("rule", rule, RULES),
        "block": None if block is None else arguments.whole("block", block),
        "fit": fits,
    }


def named_models(models: Any) -> dict[str, Model]:
    """Models by their names, as a function is handed them; raises InvalidParameter for anything else."""
    how = "a dict of models by name, as tcpfit.ranking.by_name gives"
    found: Mapping[Any, Any] = arguments.instance("models", models, Mapping, how)  # type: ignore[type-abstract]
    for model in found.values():
        arguments.instance("each of models", model, Model, "a tcpfit.models.Model")
    return dict(found)


def throughput_models(models: Any) -> dict[str, Model]:
    """The same; raises InvalidParameter for a model of transfer times too: no block of a flow is a transfer."""
    found = named_models(models)
    for name, model in found.items():
        _of_throughput(name, model)
    return found


def _of_throughput(name: str, model: Model) -> None:
    if model.predicts != "throughput":
        raise InvalidParameter(f"{name} predicts transfer times; flows are ranked by models of throughput")


def extensions(model: Model) -> list[str]:
    """The parameters that a model can be extended by."""
    return [*(p.name for p in model.extensions), *SUBSTITUTES.get(model.name, {})]


def extended(model: Model, parameter: str) -> Model:
    """The model with an extension among its parameters, named `NAME+PARAMETER`."""
    known = extensions(model)
    if parameter not in known:
        has = f"its extensions are {', '.join(known)}" if known else "it has none"
        raise InvalidParameter(f"{model.name} has no extension {parameter!r}; {has}")
    replaced = SUBSTITUTES.get(model.name, {}).get(parameter)
    parameters = tuple(replace(p, column=parameter) if p.name == replaced else p for p in model.parameters)
    parameters += tuple(p for p in model.extensions if p.name == parameter)
    assumptions = tuple(a for a in model.assumptions if a.name != MET.get(parameter))
    attributes = {"name": f"{model.name}+{parameter}", "parameters": parameters, "assumptions": assumptions}
    kind = type(type(model).__name__, (type(model),), attributes)
    found: Model = kind(**model.get_params())
    return found


def fitted_parameter(text: str) -> tuple[Model, str]:
    """Model and parameter of `NAME.PARAMETER`; raises InvalidParameter where there is none that can be fitted."""
    name, dot, parameter = arguments.text("a parameter to fit", text).rpartition(".")
    if not dot:
        raise InvalidParameter(f"{text!r} names no parameter to fit; write NAME.PARAMETER, for example pftk-full.b")
    (model,) = by_name([name]).values()
    if parameter not in model.fittable:
        raise InvalidParameter(f"{name} can fit {', '.join(model.fittable)}, not {parameter!r}")
    return model, parameter
