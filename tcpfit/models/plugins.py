"""Models of other packages: classes derived from `Model`, registered as entry points of the group `tcpfit.models`.

A plug-in that cannot be used costs one warning, `PluginWarning`, and nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING

import numpy as np

from tcpfit.exceptions import InvalidParameter, PluginWarning
from tcpfit.models.base import Assumption, Model, Parameter, failure

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "tcpfit.models"
TYPICAL = {"1": 0.01, "s": 0.1, "segments": 10.0}  # what a model is tried with where it has no default
PREDICTS = ("throughput", "transfer-time")


def load(taken: Container[str]) -> list[type[Model]]:
    """The classes that can be used, by package and name; none may have a name that is taken."""
    found: dict[str, type[Model]] = {}
    for point in _entry_points():
        package = point.dist.name if point.dist else point.value.partition(":")[0]
        try:
            cls = _checked(point.load())
            if cls.name in taken or cls.name in found:
                raise InvalidParameter(f"the name {cls.name!r} is taken")
        except (Exception, SystemExit) as error:  # whatever another package's module may raise
            warnings.warn(PluginWarning(failure(point.name, package, error)), stacklevel=2)
            continue
        cls.plugin = package
        found[cls.name] = cls
    return list(found.values())


def _entry_points() -> Iterator[EntryPoint]:
    from importlib.metadata import entry_points  # costs more than all models: only where plug-ins are asked for

    yield from sorted(entry_points(group=GROUP), key=lambda point: (point.dist.name if point.dist else "", point.name))


def _checked(cls: object) -> type[Model]:
    """The class, if it declares what a model has to and its law can be computed."""
    if not (isinstance(cls, type) and issubclass(cls, Model)):
        raise InvalidParameter("it is no class derived from tcpfit.models.Model")
    model = cls()
    for name in ("name", "title", "paper"):
        if not isinstance(getattr(model, name, None), str) or not getattr(model, name):
            raise InvalidParameter(f"{name} must be a text")
    if model.predicts not in PREDICTS:
        raise InvalidParameter(f"predicts must be one of {', '.join(PREDICTS)}, got {model.predicts!r}")
    for name, kind in (("parameters", Parameter), ("extensions", Parameter), ("assumptions", Assumption)):
        declared = getattr(model, name, None)
        if not isinstance(declared, tuple) or not all(isinstance(one, kind) for one in declared):
            raise InvalidParameter(f"{name} must be a tuple of {kind.__name__}")
    if not model.parameters:
        raise InvalidParameter("parameters must name at least one")
    model.p_definition, model.fittable, model.quantity  # noqa: B018  # declared, or AttributeError
    values = {p.name: np.full(2, TYPICAL.get(p.unit, 1.0)) for p in model.parameters if p.default is None}
    model.predict(**values)
    return cls
