"""Models compared on one flow: score, paired differences, probability of being best.

A model's score is the weighted mean of its squared log errors over the flow's blocks. Two models are compared by the
difference block by block, which the blocks' own fortunes hardly touch; its standard error is that of a weighted mean.
The probability of being best is the share of bootstrap samples of the blocks in which a model has the lowest score.

**Weights**: a block counts by the mean of its share of the time and its share of the segments. The mean log rate
weighted by time lies below the log of the total rate, the one weighted by segments above it (Jensen, both ways); by
their mean a model that is right about the whole flow is preferred to one that is right about its typical block.

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
SAME = 0.05
"""Of ln(rate). A p known from a hundred loss events leaves twice that open of a rate that goes with 1/sqrt(p)."""


@dataclass(frozen=True)
class Comparison:
    """One flow's models: arrays in the order given, NaN for a model that was not compared."""

    score: Floats
    difference: Floats
    difference_se: Floats
    probability_best: Floats

    def tied(self, best: int) -> NDArray[np.bool_]:
        """Which models the blocks cannot tell from the one at `best`: within two standard errors of the difference."""
        with np.errstate(invalid="ignore"):
            close: NDArray[np.bool_] = self.difference <= DECIDED * self.difference_se
        close[best] = True
        return close

    def as_good(self, best: int, log_ratio: Floats) -> NDArray[np.bool_]:
        """Which models are as good as the one at `best`, by their `log_ratio` of the whole: those that the blocks
        cannot tell from it, and those that predict the same rate within 5 %. Many blocks tell even a printed model from
        its own approximation, but not which of the two the flow follows.
        """
        with np.errstate(invalid="ignore"):
            same = np.isfinite(self.difference) & (np.abs(log_ratio - log_ratio[best]) <= SAME)
        return np.asarray(self.tied(best) | same)


def block_weights(seconds: Floats, segments: Floats) -> Floats:
    """Weight of each block, summing to one: mean of its shares of the time and of the segments."""
    return np.asarray((seconds / seconds.sum() + segments / segments.sum()) / 2)


def compare(residuals: Floats, weights: Floats, contest: NDArray[np.bool_]) -> Comparison:
    """Compare the models of one flow (models by blocks); only those in `contest` can be best.

    `weights` are those of the blocks and sum to one. A model that misses a block has no score. Differences are against
    the best score in the contest, NaN if nothing in it has one.
    """
    squares = residuals**2
    score = squares @ weights
    nothing = np.full(len(score), np.nan)
    contest = contest & np.isfinite(score)
    blocks = len(weights)
    if not contest.any() or blocks < 2:
        return Comparison(score, nothing, nothing, nothing)
    best = int(np.argmin(np.where(contest, score, np.inf)))
    paired = squares - squares[best]
    difference = paired @ weights
    error = np.sqrt(((paired - difference[:, None]) ** 2) @ weights**2 * blocks / (blocks - 1))
    times = np.random.default_rng(SEED).multinomial(blocks, np.full(blocks, 1 / blocks), REPLICATES)
    drawn = (squares[contest] @ (times * weights).T) / (times @ weights)
    # models of one law share what they win: neither is best by its place or by a last digit
    equal = drawn <= drawn.min(axis=0) * (1 + 1e-9)
    winners = (equal / equal.sum(axis=0)).mean(axis=1)
    probability = np.where(np.isfinite(score), 0.0, np.nan)
    probability[contest] = winners
    return Comparison(score, difference, np.asarray(error), probability)
