"""Runs of consecutive rounds of one flow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcpfit.parameters.intervals import Ints


def run_numbers(owner: Ints, inside: NDArray[np.bool_]) -> Ints:
    """Number of the run each row belongs to, -1 outside; a run ends where `inside` does or the flow changes."""
    if not len(owner):
        return np.zeros(0, np.int64)
    starts = inside & np.concatenate(([True], (owner[1:] != owner[:-1]) | ~inside[:-1]))
    return np.where(inside, np.cumsum(starts) - 1, -1)
