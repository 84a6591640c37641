"""Models compared on one flow: score, paired differences, probability of being best.

A model's score is its mean squared log error over the flow's blocks. Two models are compared by the difference block
by block, which the blocks' own fortunes hardly touch; its standard error is sd/sqrt(M). The probability of being best
is the share of bootstrap samples of the blocks in which a model has the lowest score.

Reference: Vehtari, Gelman, Gabry (2017), doi:10.1007/s11222-016-9696-4 (comparison by paired differences).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcpfit.parameters.intervals import Floats

REPLICATES = 500
SEED = 2017
DECIDED = 2.0


@dataclass(frozen=True)
class Comparison:
    """One flow's models: arrays in the order given, NaN for a model that was not compared."""

    score: Floats
    difference: Floats
    difference_se: Floats
    probability_best: Floats

    def as_good(self, best: int) -> NDArray[np.bool_]:
        """Which models the blocks cannot tell from the one at `best`: within two standard errors of the difference."""
        with np.errstate(invalid="ignore"):
            close = self.difference <= DECIDED * self.difference_se
        close[best] = True
        return close


def scores(residuals: Floats) -> Floats:
    """Mean squared log error of each model (models by blocks); NaN for a model that misses a block."""
    return np.asarray(np.mean(residuals**2, axis=1))


def compare(residuals: Floats, contest: NDArray[np.bool_], seed: int) -> Comparison:
    """Compare the models of one flow (models by blocks); only those in `contest` can be best.

    Differences are against the best score in the contest, or NaN if nothing in it has one.
    """
    squares = residuals**2
    score = scores(residuals)
    nothing = np.full(len(score), np.nan)
    contest = contest & np.isfinite(score)
    if not contest.any() or residuals.shape[1] < 2:
        return Comparison(score, nothing, nothing, nothing)
    best = int(np.argmin(np.where(contest, score, np.inf)))
    paired = squares - squares[best]
    blocks = squares.shape[1]
    error = np.std(paired, axis=1, ddof=1) / np.sqrt(blocks)
    weights = np.random.default_rng((SEED, seed)).multinomial(blocks, np.full(blocks, 1 / blocks), REPLICATES)
    drawn = squares[contest] @ weights.T
    winners = np.bincount(np.argmin(drawn, axis=0), minlength=int(contest.sum())) / REPLICATES
    probability = np.where(np.isfinite(score), 0.0, np.nan)
    probability[contest] = winners
    return Comparison(score, np.asarray(np.mean(paired, axis=1)), np.asarray(error), probability)
