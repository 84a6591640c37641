"""What a throughput model is: its parameters, its assumptions, and a scikit-learn style regressor around its law.

A model's file holds the law as plain functions; its class, derived from `Model`, names the parameters and calls them.
Checking names, broadcasting, the domain, fitting and scoring are done here, once.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcpfit.exceptions import InvalidParameter

Array: TypeAlias = NDArray[np.float64]

TINY = 1e-150  # p below it is taken for 0: its reciprocal, squared, is no longer a number


SHORTEST, LONGEST = 1e-9, 1e9  # s: bounds of every time that a model takes; inside them no rate overflows


@dataclass(frozen=True)
class Parameter:
    """One input of a model; it must be given where `default` is None.

    Outside [low, high], with low excluded if `positive`, the rate is nan.
    """

    name: str
    unit: str
    meaning: str
    default: float | None = None
    column: str = ""
    low: float = 0.0
    high: float = np.inf
    positive: bool = False

    def holds(self, value: Array) -> NDArray[np.bool_]:
        """True where the value is inside the parameter's range; nan is not."""
        above = value > self.low if self.positive else value >= self.low
        return above & (value <= self.high)


@dataclass(frozen=True)
class Assumption:
    """A condition on a flow. Without a `required` one the model does not apply; without another it is weaker."""

    name: str
    text: str
    required: bool = True


class Model:
    """Base of every model. A subclass defines the attributes below, `__init__` with its conventions, and `_rate`.

    A parameter's value is looked for in this order: a keyword given to `predict`; a fitted value (`params_`); a
    convention of the same name fixed in the constructor (`b=1`); the column of a table; the parameter's default.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    predicts: ClassVar[Literal["throughput", "transfer-time"]] = "throughput"
    p_definition: ClassVar[Literal["loss_event", "loss_indication", "packet"] | None]
    parameters: tuple[Parameter, ...]  # what `predict` takes, required ones first; may depend on the conventions
    assumptions: ClassVar[tuple[Assumption, ...]]
    extensions: ClassVar[tuple[Parameter, ...]] = ()
    fittable: ClassVar[dict[str, tuple[float, float, float]]]  # name: low, high, starting point
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {}  # convention: the values it may take

    free: Sequence[str] | None = None
    params_: dict[str, float]
    params_se_: dict[str, float]

    @property
    def quantity(self) -> Literal["send-rate", "throughput", "goodput"]:
        """The observed rate that the prediction is to be compared with."""
        raise NotImplementedError

    def _rate(self, **arrays: Array) -> Array:
        """The law, for 1-d arrays of one length, all inside the domain."""
        raise NotImplementedError

    def _inside(self, **arrays: Array) -> NDArray[np.bool_]:
        """Limits of the domain that involve more than one parameter."""
        return np.asarray(True)

    # The regressor

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the free parameters to observed rates by least squares on ln(rate), in log space and within bounds.

        Sets `params_`, `params_se_` (standard errors, delta method), `residual_std_` (of ln rate), `converged_`,
        `n_fitted_` (rows used) and `n_features_in_`. Rows whose rate is not positive and finite are left out.
        A parameter fixed in the constructor is not fitted unless `free` names it.
        """
        from scipy.optimize import least_squares

        fixed = self._fixed()
        usual = [name for name in list(self.fittable)[:1] if name not in fixed]
        names = tuple(usual if self.free is None else self.free)
        for name in names:
            if name not in self.fittable:
                raise InvalidParameter(f"{self.name} can fit {_list(self.fittable)}, not {name!r}.")
        table = self._columns(X)
        columns: dict[str, ArrayLike] = {key: value for key, value in (table | fixed).items() if key not in names}
        observed = np.asarray(y, dtype=np.float64).ravel()
        start = np.log([self.fittable[name][2] for name in names])
        used = np.isfinite(observed) & (observed > 0)

        def residuals(theta: Array) -> Array:
            rate = self._evaluate({**columns, **dict(zip(names, np.exp(theta), strict=True))}, observed.shape)
            return np.asarray(np.log(rate[used]) - np.log(observed[used]))

        with np.errstate(divide="ignore", invalid="ignore"):
            used &= np.isfinite(np.log(self._evaluate({**columns, **_at(names, start)}, observed.shape)))
        if used.sum() < len(names) + 1:
            raise InvalidParameter(
                f"{self.name} needs at least {len(names) + 1} rows with finite rates to fit {_list(names)}, "
                f"got {int(used.sum())}."
            )
        low, high = (np.log([self.fittable[name][side] for name in names]) for side in (0, 1))
        self.params_, self.params_se_, self.converged_ = {}, {}, True
        if names:
            found = least_squares(residuals, start, bounds=(low, high), x_scale="jac")
            self.params_ = {key: float(value) for key, value in _at(names, found.x).items()}
            self.converged_ = bool(found.success)
        left = residuals(np.log([self.params_[name] for name in names]))
        variance = float(left @ left) / (int(used.sum()) - len(names))
        if names:
            covariance = np.linalg.pinv(found.jac.T @ found.jac) * variance
            self.params_se_ = {key: float(self.params_[key] * np.sqrt(covariance[i, i])) for i, key in enumerate(names)}
        self.residual_std_ = float(np.sqrt(variance))
        self.n_fitted_ = int(used.sum())
        self.n_features_in_ = len(table)
        return self

    def predict(self, X: Any = None, /, **arrays: Any) -> Array:
        """The model's rate in segments/s, from keywords or from a table X, broadcast over numpy arrays.

        Keywords are parameters, extensions, or conventions of the constructor (which then hold for this call only).
        X is a mapping or frame of columns, or a 2-d array whose columns are `parameters` in their order.
        """
        conventions = {
            key: arrays.pop(key) for key in list(arrays) if key in self._conventions() and not self._takes(key)
        }
        model = self if not conventions else self._with(**conventions)
        for key in arrays:
            if not model._takes(key):
                known = [*(p.name for p in model.parameters), *(p.name for p in model.extensions)]
                raise InvalidParameter(f"{self.name} has no parameter {key!r}; it takes {_list(known)}.")
        columns = model._columns(X) if X is not None else {}
        fixed = model._fixed() | getattr(self, "params_", {})
        columns |= {key: np.asarray(value, dtype=np.float64) for key, value in fixed.items()}
        return model._evaluate(columns | {key: _array(self.name, key, value) for key, value in arrays.items()})

    def score(self, X: Any, y: ArrayLike) -> float:
        """R squared of ln(rate): 1 is perfect, 0 is no better than the geometric mean of y."""
        observed = np.log(np.asarray(y, dtype=np.float64).ravel())
        residual = np.log(self.predict(X)).ravel() - observed
        total = float(np.sum((observed - observed.mean()) ** 2))
        return 1.0 - float(np.sum(residual**2)) / total if total > 0 else float("nan")

    def domain(self, **arrays: Any) -> NDArray[np.bool_]:
        """True where every parameter is inside the domain that the model declares; `predict` gives nan elsewhere."""
        values = self._resolve({key: _array(self.name, key, value) for key, value in arrays.items()})
        return self._mask(values)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The conventions given to the constructor (scikit-learn's protocol)."""
        return {name: getattr(self, name) for name in self._conventions()}

    def set_params(self, **params: Any) -> Self:
        """Change conventions in place (scikit-learn's protocol)."""
        for key, value in params.items():
            if key not in self._conventions():
                raise InvalidParameter(f"{self.name} has no convention {key!r}; it has {_list(self._conventions())}.")
            setattr(self, key, value)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.get_params().items())})"

    def __sklearn_tags__(self) -> Any:
        """Called by scikit-learn only, which is then loaded already; this package never imports it."""
        utils = sys.modules["sklearn.utils"]
        return utils.Tags(
            estimator_type="regressor",
            target_tags=utils.TargetTags(required=True),
            regressor_tags=utils.RegressorTags(),
            input_tags=utils.InputTags(allow_nan=True),
        )

    # Names, tables and shapes

    @classmethod
    def _conventions(cls) -> tuple[str, ...]:
        return _arguments(cast(Any, cls))

    def _takes(self, name: str) -> bool:
        return any(name == p.name for p in (*self.parameters, *self.extensions))

    def _fixed(self) -> dict[str, float]:
        """Parameters whose value a convention of the same name fixes."""
        given = self.get_params()
        return {p.name: given[p.name] for p in self.parameters if given.get(p.name) is not None}

    def _with(self, **conventions: Any) -> Self:
        return type(self)(**self.get_params()).set_params(**conventions)

    def _columns(self, X: Any) -> dict[str, Array]:
        """A table's columns under the model's parameter names; one is found by that name, then by `column`."""
        if isinstance(X, Mapping) or hasattr(X, "columns"):
            present = set(X if isinstance(X, Mapping) else X.columns)
            found = (
                (p.name, next((key for key in (p.name, p.column) if key in present), None)) for p in self.parameters
            )
            return {name: _array(self.name, name, X[key]) for name, key in found if key is not None}
        table = np.asarray(X, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] > len(self.parameters):
            names = _list(p.name for p in self.parameters)
            raise InvalidParameter(f"{self.name} reads a 2-d array with the columns {names}, got shape {table.shape}.")
        return {p.name: table[:, i] for i, p in enumerate(self.parameters[: table.shape[1]])}

    def _resolve(self, values: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """Every parameter by name, defaults filled in, broadcast to one shape."""
        for key, allowed in self.choices.items():
            if getattr(self, key) not in allowed:
                raise InvalidParameter(
                    f"{key} of {self.name} must be one of {_list(allowed)}, got {getattr(self, key)!r}."
                )
        full: dict[str, ArrayLike] = {}
        for parameter in self.parameters:
            value = values.get(parameter.name, self._fixed().get(parameter.name, parameter.default))
            if value is None:
                raise InvalidParameter(
                    f"{self.name} needs {parameter.name} ({parameter.meaning}, {parameter.unit}), which was not given."
                )
            full[parameter.name] = value
        full |= {p.name: values[p.name] for p in self.extensions if p.name in values}
        try:
            arrays = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in full.values()))
        except ValueError:
            shapes = ", ".join(f"{key} {np.shape(value)}" for key, value in full.items())
            raise InvalidParameter(f"{self.name} cannot broadcast its parameters together: {shapes}.") from None
        return dict(zip(full, arrays, strict=True))

    def _mask(self, values: Mapping[str, Array]) -> NDArray[np.bool_]:
        inside = np.ones(np.shape(next(iter(values.values()))), dtype=np.bool_)
        for parameter in (*self.parameters, *self.extensions):
            if parameter.name in values:
                inside &= parameter.holds(values[parameter.name])
        with np.errstate(all="ignore"):
            return inside & self._inside(**values)

    def _evaluate(self, values: Mapping[str, ArrayLike], shape: tuple[int, ...] | None = None) -> Array:
        arrays = self._resolve(values)
        inside = self._mask(arrays)
        if "p" in arrays:
            arrays["p"] = np.where(arrays["p"] < TINY, 0.0, arrays["p"])
        rate = np.full(inside.shape, np.nan)
        if inside.any():
            with np.errstate(all="ignore"):
                rate[inside] = self._rate(**{key: value[inside] for key, value in arrays.items()})
        return rate if shape is None else np.broadcast_to(rate, shape)


@cache
def _arguments(cls: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(cls).parameters)


def _array(model: str, name: str, value: Any) -> Array:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} of {model} must be a number or an array of numbers, got {value!r}.") from None


def _at(names: Sequence[str], theta: Array) -> dict[str, float]:
    return dict(zip(names, np.exp(theta), strict=True))


def _list(names: Iterable[Any]) -> str:
    return ", ".join(str(name) for name in names) or "none"
