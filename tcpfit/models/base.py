"""What a model is: its parameters, its assumptions, and a scikit-learn style regressor around its law.

A model's file holds the law as plain functions; its class, derived from `Model`, names the parameters and calls them.
Checking names, broadcasting, the domain, fitting and scoring are done here, once.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcpfit import arguments
from tcpfit.exceptions import InvalidParameter, PluginWarning

Array: TypeAlias = NDArray[np.float64]

TINY = 1e-150  # p below it is taken for 0: its reciprocal, squared, is no longer a number
STARTS = 9  # points between a parameter's bounds of which the best is where its fit starts
FAR = 20.0  # residual, in ln, of a row that a trial value of a parameter takes out of the domain


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
    """Base of every model. A subclass defines the attributes below, `__init__` with its conventions, and its law:
    `_rate`, or `_time` where it predicts the time of a transfer.

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
    plugin: ClassVar[str] = ""  # the package that registered it, of one that is not tcpfit's own

    free: Sequence[str] | None = None
    params_: dict[str, float]
    params_se_: dict[str, float]

    @property
    def quantity(self) -> Literal["send-rate", "throughput", "goodput"]:
        """The observed rate that the prediction is to be compared with; of a transfer time, that of the transfer."""
        if self.predicts == "transfer-time":
            return "goodput"
        raise NotImplementedError

    def _rate(self, **arrays: Array) -> Array:
        """The law in segments/s, for 1-d arrays of one length, all inside the domain."""
        raise NotImplementedError

    def _time(self, **arrays: Array) -> Array:
        """The law in seconds of a model that predicts the transfer time, for arrays like those of `_rate`."""
        return self._rate(**arrays)

    def _inside(self, **arrays: Array) -> NDArray[np.bool_]:
        """Limits of the domain that involve more than one parameter."""
        return np.asarray(True)

    # The regressor

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the free parameters to observed rates or times by least squares on their ln, in log space within bounds.

        X is a mapping or frame of columns (polars, pandas), or a 2-d array with the columns `parameters` in their
        order; y has a value a row. Rows whose value is not positive and finite, or for which the model has none, are
        left out. A parameter fixed in the constructor is not fitted unless `free` names it; a column of a parameter
        that is fitted is not read.

        Sets `params_`; `params_se_`, standard errors by the delta method, nan where the rows do not determine a
        parameter or it ended at a bound; `residual_std_`, of the ln; `converged_`; `n_fitted_`, the rows used;
        `n_features_in_` and, of a frame, `feature_names_in_`.
        Raises `InvalidParameter` for X or y that cannot be read, too few rows, or a name that cannot be fitted.
        """
        from scipy.optimize import least_squares

        fixed = self._fixed()
        usual = [name for name in list(self.fittable)[:1] if name not in fixed]
        names = tuple(usual if self.free is None else arguments.texts(f"free of {self.name}", self.free))
        for name in names:
            if name not in self.fittable:
                raise InvalidParameter(f"{self.name} can fit {_list(self.fittable)}, not {name!r}.")
        table = self._columns(X)
        columns: dict[str, ArrayLike] = {key: value for key, value in (table | fixed).items() if key not in names}
        observed = self._observed(y, table)
        used = np.isfinite(observed) & (observed > 0)

        def residuals(theta: Array) -> Array:
            found = self._evaluate({**columns, **_at(names, theta)}, observed.shape)
            with np.errstate(divide="ignore"):
                left = np.log(found[used]) - np.log(observed[used])
            return np.where(np.isfinite(left), left, FAR)

        low, high, start = (np.log([self.fittable[name][side] for name in names]) for side in (0, 1, 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            used &= np.isfinite(np.log(self._evaluate({**columns, **_at(names, start)}, observed.shape)))
        if used.sum() < len(names) + 1:
            raise InvalidParameter(
                f"{self.name} needs at least {len(names) + 1} rows with finite {self._noun}s to fit {_list(names)}, "
                f"got {int(used.sum())} of {observed.size} samples."
            )
        self.params_, self.params_se_, self.converged_ = {}, {}, True
        left = residuals(start)
        if names:
            found = least_squares(residuals, _start(residuals, start, low, high), bounds=(low, high), x_scale="jac")
            left = found.fun
            self.params_ = _at(names, found.x)
            self.converged_ = bool(found.success)
        variance = float(left @ left) / (int(used.sum()) - len(names))
        if names:
            errors = np.where(found.active_mask == 0, _standard_errors(found.jac, variance), np.nan)
            self.params_se_ = {key: self.params_[key] * float(errors[i]) for i, key in enumerate(names)}
        self.residual_std_ = float(np.sqrt(variance))
        self.n_fitted_ = int(used.sum())
        self._remember(X, table)
        return self

    def predict(self, X: Any = None, /, **arrays: Any) -> Array:
        """The model's rate in segments/s, or time in s, from keywords or from a table X, broadcast over numpy arrays.

        Keywords are parameters, extensions, or conventions of the constructor (which then hold for this call only).
        X is a mapping or frame of columns, or a 2-d array whose columns are `parameters` in their order.
        """
        model, given = self._given(arrays)
        columns = model._columns(X, self) if X is not None else {}
        fixed = model._fixed() | getattr(self, "params_", {})
        columns |= {key: np.asarray(value, dtype=np.float64) for key, value in fixed.items()}
        return model._evaluate(columns | given)

    def score(self, X: Any, y: ArrayLike) -> float:
        """R squared of ln(rate), or ln(time): 1 is perfect, 0 is no better than the geometric mean of y.

        Raises `InvalidParameter` for X or y that cannot be read.
        """
        observed = np.log(self._observed(y, self._columns(X)))
        residual = np.log(self.predict(X)).ravel() - observed
        total = float(np.sum((observed - observed.mean()) ** 2))
        return 1.0 - float(np.sum(residual**2)) / total if total > 0 else float("nan")

    def domain(self, **arrays: Any) -> NDArray[np.bool_]:
        """True where every parameter is inside the domain that the model declares; `predict` gives nan elsewhere.

        The keywords are those of `predict`. Raises `InvalidParameter` for another, and for what is no number.
        """
        model, given = self._given(arrays)
        return model._mask(model._resolve(given))

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
            regressor_tags=utils.RegressorTags(poor_score=True),  # a law with its own few parameters
            input_tags=utils.InputTags(allow_nan=True),
            requires_fit=False,
        )

    # Names, tables and shapes

    @classmethod
    def _conventions(cls) -> tuple[str, ...]:
        return _arguments(cast(Any, cls))

    def _takes(self, name: str) -> bool:
        return any(name == p.name for p in (*self.parameters, *self.extensions))

    def _fixed(self) -> dict[str, Array]:
        """Parameters whose value a convention of the same name fixes."""
        given = self.get_params()
        fixed = (p.name for p in self.parameters if given.get(p.name) is not None)
        return {name: array_of(self.name, name, given[name]) for name in fixed}

    def _given(self, keywords: Mapping[str, Any]) -> tuple[Self, dict[str, Array]]:
        """The model under the conventions that keywords name, and their parameters as arrays."""
        conventions = {
            key: value for key, value in keywords.items() if key in self._conventions() and not self._takes(key)
        }
        model = self if not conventions else self._with(**conventions)
        given = {key: value for key, value in keywords.items() if key not in conventions}
        for key in given:
            if not model._takes(key):
                known = [*(p.name for p in model.parameters), *(p.name for p in model.extensions)]
                raise InvalidParameter(f"{self.name} has no parameter {key!r}; it takes {_list(known)}.")
        return model, {key: array_of(self.name, key, value) for key, value in given.items()}

    def _with(self, **conventions: Any) -> Self:
        return type(self)(**self.get_params()).set_params(**conventions)

    @property
    def _noun(self) -> str:
        return "time" if self.predicts == "transfer-time" else "rate"

    def _columns(self, X: Any, fitted: Model | None = None) -> dict[str, Array]:
        """A table's columns under the model's parameter names; one is found by that name, then by `column`.

        An array has to have as many columns as that which `fitted` was fitted to.
        """
        if hasattr(X, "toarray"):
            raise InvalidParameter(f"{self.name} does not take sparse input; give it X.toarray().")
        if hasattr(X, "collect"):
            raise InvalidParameter(f"{self.name} does not take lazy frames; give it X.collect().")
        if isinstance(X, Mapping) or hasattr(X, "columns"):
            present = set(X if isinstance(X, Mapping) else X.columns)
            found = (
                (p.name, next((key for key in (p.name, p.column) if key in present), None)) for p in self.parameters
            )
            return {name: array_of(self.name, name, X[key]) for name, key in found if key is not None}
        table = array_of(self.name, "X", X)
        names = [p.name for p in self.parameters]
        if table.ndim != 2:
            raise InvalidParameter(
                f"{self.name} reads a 2-d array with the columns {_list(names)}, got shape {table.shape}. "
                "Reshape your data to a row an observation."
            )
        rows, width = table.shape
        if width == 0 or rows == 0:
            what = "sample" if width else "feature"
            raise InvalidParameter(
                f"{self.name} got 0 {what}(s) (shape=({rows}, {width})) while a minimum of 1 is required."
            )
        if width > len(names):
            raise InvalidParameter(
                f"{self.name} reads a 2-d array with the columns {_list(names)}, got shape {table.shape}."
            )
        expected = getattr(fitted, "n_features_in_", width)
        if width != expected:
            raise InvalidParameter(
                f"X has {width} features, but {type(self).__name__} is expecting {expected} features as input."
            )
        return dict(zip(names, table.T, strict=False))

    def _observed(self, y: Any, table: Mapping[str, Array]) -> Array:
        """The target as a 1-d array, as long as the columns."""
        if y is None:
            raise InvalidParameter(f"{self.name} requires y to be passed, but the target y is None.")
        observed = array_of(self.name, "y", y).ravel()
        rows = {key: value.size for key, value in table.items() if value.ndim}
        for key, size in rows.items():
            if size != observed.size:
                raise InvalidParameter(f"{self.name} got {size} values of {key}, but {observed.size} of y.")
        return observed

    def _remember(self, X: Any, table: Mapping[str, Array]) -> None:
        """The columns that the model was fitted to, under scikit-learn's names for them."""
        columns = list(X) if isinstance(X, Mapping) else list(getattr(X, "columns", ()))
        self.n_features_in_ = len(columns) or len(table)
        if columns:
            self.feature_names_in_ = np.asarray(columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _resolve(self, values: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """Every parameter by name, defaults filled in, broadcast to one shape."""
        for key, allowed in (_switches(cast(Any, type(self))) | self.choices).items():
            chosen = getattr(self, key)
            if not (isinstance(chosen, (str, int, float, np.generic)) and chosen in allowed):
                raise InvalidParameter(
                    f"{key} of {self.name} must be one of {_list(allowed)}, got {arguments.shown(chosen)}."
                )
        full: dict[str, ArrayLike] = {}
        fixed = self._fixed()
        for parameter in self.parameters:
            value = values.get(parameter.name, fixed.get(parameter.name, parameter.default))
            if value is None:
                raise InvalidParameter(
                    f"{self.name} needs {parameter.name} ({parameter.meaning}, {parameter.unit}), which was not given."
                )
            full[parameter.name] = value
        return self._together(full | {p.name: values[p.name] for p in self.extensions if p.name in values})

    def _together(self, full: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """Arrays of one shape."""
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
        found = np.full(inside.shape, np.nan)
        if inside.any():
            law = self._time if self.predicts == "transfer-time" else self._rate
            try:
                with np.errstate(all="ignore"):
                    found[inside] = law(**{key: value[inside] for key, value in arrays.items()})
            except Exception as error:
                if not self.plugin:
                    raise
                warnings.warn(PluginWarning(failure(self.name, self.plugin, error)), stacklevel=3)
        return found if shape is None else np.broadcast_to(found, shape)


@cache
def _arguments(cls: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(cls).parameters)


@cache
def _switches(cls: Any) -> dict[str, tuple[Any, ...]]:
    """The conventions that are on or off."""
    given = inspect.signature(cls).parameters.items()
    return {name: (True, False) for name, parameter in given if isinstance(parameter.default, bool)}


def failure(name: str, package: str, error: BaseException) -> str:
    """The sentence for a plug-in that fails."""
    reason = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".: ")
    return f"model {name} of the package {package} failed and is left out ({reason})."


def array_of(model: str, name: str, value: Any) -> Array:
    """What a user gives for a parameter as an array; raises InvalidParameter for what is no number."""
    try:
        array = np.asarray(value)
        if np.iscomplexobj(array):
            raise InvalidParameter(f"Complex data not supported: {name} of {model} must be real.")
        if array.dtype.kind in "US":
            raise TypeError("numpy would read numbers in texts")
        return array.astype(np.float64, copy=False)
    except InvalidParameter:
        raise
    except (TypeError, ValueError):
        given = arguments.shown(value)
        raise InvalidParameter(f"{name} of {model} must be a number or an array of numbers, got {given}.") from None


def _at(names: Sequence[str], theta: Array) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, np.exp(theta), strict=True)}


def _start(residuals: Callable[[Array], Array], start: Array, low: Array, high: Array) -> Array:
    """The best point of a coarse grid along each axis in turn: a limit that nothing reaches has no slope to follow."""
    best = start.copy()
    for axis in range(len(best)):
        trials = np.tile(best, (STARTS, 1))
        trials[1:, axis] = np.linspace(low[axis], high[axis], STARTS + 1)[1:-1]
        best = trials[int(np.argmin([np.sum(residuals(trial) ** 2) for trial in trials]))]
    return best


def _standard_errors(jacobian: Array, variance: float) -> Array:
    """Those of independent residuals of equal variance; nan for parameters that the residuals do not determine."""
    _, singular, axes = np.linalg.svd(jacobian, full_matrices=False)
    known = singular > 1e-7 * max(float(singular[0]), 1e-7)  # the Jacobian is of finite differences
    covariance = axes[known].T / singular[known] ** 2 @ axes[known] * variance
    undetermined = np.any(np.abs(axes[~known]) > 1e-3, axis=0)
    return np.where(undetermined, np.nan, np.sqrt(np.diag(covariance)))


def _list(names: Iterable[Any]) -> str:
    return ", ".join(str(name) for name in names) or "none"
