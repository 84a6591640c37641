"""Running sums and extremes of each flow's values, up to each value; flows in order, the values of each in its order.

Polars has them as `over`, which takes the rows of every group apart: with three rounds a flow ten times as long.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tcpfit.parameters.intervals import Floats, Ints

Number = TypeVar("Number", np.float64, np.int64)


def total(owner: Ints, values: Floats) -> Floats:
    """The sum of the owner's values up to each, exact for whole numbers; no value may be NaN."""
    every = np.cumsum(values)
    first = np.searchsorted(owner, owner)
    sums: Floats = every - (every - values)[first]
    return sums


def highest(owner: Ints, values: NDArray[Number]) -> NDArray[Number]:
    """The highest of the owner's values up to each."""
    ordered, place = np.unique(values, return_inverse=True)
    # the owner first: none before this one has as much
    top = np.maximum.accumulate(owner * len(ordered) + place)
    return ordered[top - owner * len(ordered)]


def lowest(owner: Ints, values: NDArray[Number]) -> NDArray[Number]:
    """The lowest of the owner's values up to each."""
    return -highest(owner, -values)


def before(owner: Ints, values: Floats) -> Floats:
    """The owner's value before each, 0 before its first."""
    follows = np.append(False, owner[1:] == owner[:-1])[: len(owner)]
    return np.where(follows, np.append(0.0, values[:-1])[: len(owner)], 0.0)
