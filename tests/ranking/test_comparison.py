"""Scores and paired differences by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tcpfit.ranking.comparison import block_weights, compare

EVEN = np.full(4, 0.25)


def test_scores_and_differences_by_hand() -> None:
    """Squares 1, 1, 4, 4 and 0, 1, 1, 4: scores 2.5 and 1.5, differences 1, 0, 3, 0 with sd sqrt(2)."""
    residuals = np.array([[1.0, -1.0, 2.0, -2.0], [0.0, 1.0, -1.0, 2.0]])
    found = compare(residuals, EVEN, np.array([True, True]))
    assert [2.5, 1.5] == found.score.tolist()
    assert [1.0, 0.0] == found.difference.tolist()
    assert [np.sqrt(2.0) / 2, 0.0] == pytest.approx(found.difference_se.tolist())
    assert 1.0 == pytest.approx(found.probability_best.sum())
    assert [True, True] == found.as_good(1, np.array([0.5, 0.0])).tolist()


def test_models_that_predict_the_same_rate_are_as_good() -> None:
    """Four blocks that all prefer the second: two standard errors are zero, and 5 % of rate decide."""
    found = compare(np.array([[0.2] * 4, [0.1] * 4, [np.nan] * 4]), EVEN, np.array([True, True, True]))
    assert [True, True, False] == found.as_good(1, np.array([0.14, 0.1, 0.1])).tolist()
    assert [False, True, False] == found.as_good(1, np.array([0.2, 0.1, 0.1])).tolist()
    assert [False, True, False] == found.tied(1).tolist()


def test_a_model_that_misses_a_block_has_no_score() -> None:
    found = compare(np.array([[np.nan, 1, 1, 1.0], [1.0, 1, 1, 1]]), EVEN, np.array([True, True]))
    assert np.isnan(found.score[0]) and np.isnan(found.probability_best[0])
    assert 1.0 == found.probability_best[1]


def test_what_does_not_apply_cannot_be_best() -> None:
    found = compare(np.array([[0.1] * 4, [1.0] * 4]), EVEN, np.array([False, True]))
    assert [0.0, 1.0] == found.probability_best.tolist()
    assert found.difference[0] < 0 == found.difference[1]


def test_no_contest_no_differences() -> None:
    found = compare(np.array([[0.1] * 4]), EVEN, np.array([False]))
    assert np.isnan(found.difference).all()


def test_weights_put_the_typical_block_between_time_and_segments() -> None:
    assert [(0.25 + 0.5) / 2, (0.75 + 0.5) / 2] == block_weights(np.array([1.0, 3.0]), np.array([5.0, 5.0])).tolist()


def test_a_model_right_about_the_whole_flow_is_unbiased_over_the_blocks() -> None:
    """Weighted by time and segments, the mean log rate is that of the total to second order; unweighted it is not."""
    random = np.random.default_rng(3)
    seconds, rate = random.gamma(9.0, 1.0, 4000), random.lognormal(0.0, 0.3, 4000)
    segments = rate * seconds
    bias = np.log(rate / (segments.sum() / seconds.sum()))
    assert abs(block_weights(seconds, segments) @ bias) < 0.003 < abs(bias.mean())


def test_models_of_one_law_are_best_as_often() -> None:
    """The third is the first but for the last digits that another order of the same sums gives."""
    one = np.array([0.1, 0.3, -0.2, 0.25])
    found = compare(np.stack([one, one + 1.0, one * (1 + 1e-15)]), EVEN, np.array([True, True, True]))
    assert [0.5, 0.0, 0.5] == found.probability_best.tolist()
