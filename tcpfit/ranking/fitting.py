"""One parameter of a model fitted on a flow's own blocks.

**Estimate**: the value for which the weighted mean square of ln(predicted/observed) over the blocks is least, each
block predicted from the other blocks' parameters: the ranking's own score. Looked for on 61 points between the model's
bounds, equally far apart in ln, then at the vertex of the parabola through the best point and its neighbours.
**Held out**: a block's residual is that with the value fitted on the flow's *other* blocks, so a fitted model pays for
its freedom where it is compared with one that has none.
**Domain**: at least 3 blocks. A value at a bound means that the blocks do not determine it.
**Validation**: tests/ranking/test_variants.py: the b of a simulated sender is found within its interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcpfit.models import Model
from tcpfit.parameters.intervals import Floats, Ints, summed
from tcpfit.ranking.blocks import SUMS, Blocks, parameters
from tcpfit.ranking.prediction import predict
from tcpfit.ranking.residuals import rate

POINTS = 61
LEAST = 3


@dataclass(frozen=True)
class Fitted:
    """The fitted value of every flow (NaN with too few blocks), whether it is at a bound, and the blocks' residuals."""

    value: Floats
    at_bound: NDArray[np.bool_]
    residuals: Floats


def fit(model: Model, parameter: str, blocks: Blocks, fixed: Mapping[str, Floats]) -> Fitted:
    """Fit the parameter on every flow's blocks; `fixed` as in `residuals.held_out`."""
    column = column_of(model, parameter)
    low, high, _ = model.fittable[parameter]
    points = np.linspace(np.log(low), np.log(high), POINTS)
    owner, number = blocks.owner, blocks.count()
    values = parameters(blocks.others, {name: value[owner] for name, value in fixed.items()})
    observed = rate(blocks.sums, model.quantity)
    weights = _weights(blocks)

    def errors(theta: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(predict(model, {**values, column: theta}) / observed))

    squares = np.stack([weights * errors(np.full(len(owner), np.exp(x))) ** 2 for x in points])
    squares = np.where(np.isfinite(squares), squares, np.inf)
    total = np.stack([summed(row, owner, blocks.flows) for row in squares])
    enough = number >= LEAST
    whole, at_bound = _least(total, points)
    with np.errstate(invalid="ignore"):
        without, _ = _least(np.where(np.isfinite(squares), total[:, owner] - squares, np.inf), points)
    usable = enough & np.isfinite(total).any(axis=0)
    return Fitted(
        np.where(usable, np.exp(whole), np.nan),
        at_bound & usable,
        np.where(usable[owner], errors(np.exp(without)), np.nan),
    )


def column_of(model: Model, parameter: str) -> str:
    """The column of the parameters that feeds the model's parameter."""
    return next((p.column or p.name for p in model.parameters if p.name == parameter), parameter)


def _weights(blocks: Blocks) -> Floats:
    seconds, sent = (blocks.sums[:, SUMS.index(name)] for name in ("seconds", "sent"))
    of_seconds, of_sent = (summed(x, blocks.owner, blocks.flows)[blocks.owner] for x in (seconds, sent))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((seconds / of_seconds + sent / of_sent) / 2)


def _least(squares: Floats, points: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Where each column of `squares` (points by columns) is least, and whether that is the first or last point."""
    at: Ints = np.argmin(squares, axis=0)
    inner = np.clip(at, 1, len(points) - 2)
    columns = np.arange(squares.shape[1])
    left, middle, right = (squares[inner + step, columns] for step in (-1, 0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = 0.5 * (left - right) / (left - 2 * middle + right)
    at_bound = (at == 0) | (at == len(points) - 1)
    shift = np.where(np.isfinite(shift) & ~at_bound, np.clip(shift, -0.5, 0.5), 0.0)
    return points[at] + shift * (points[1] - points[0]), at_bound
