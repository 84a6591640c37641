"""Intervals against published numbers, and their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from tcpfit.parameters import intervals


def test_ends_of_a_count_of_ten() -> None:
    """Half of chi-squared's quantiles: 21 degrees of freedom at 0.025 give 10.283, 22 at 0.975 give 36.781 (tables);
    no event at all gives 0 to 3.689 (Garwood)."""
    low, high = intervals.count_factors(np.array([10.0, 0.0]))
    assert [10.283 / 2 / 10, 0.0] == pytest.approx(low.tolist(), abs=5e-5)
    assert [36.781 / 2 / 10, 3.689] == pytest.approx(high.tolist(), abs=5e-4)


def test_ends_of_counts_in_any_order_and_more_than_once() -> None:
    counts = [3.0, 0.0, 2.5, 3.0, 0.0, 1e6, 2.5]
    alone = [[float(end[0]) for end in intervals.count_factors(np.array([count]))] for count in counts]
    assert alone == np.array(intervals.count_factors(np.array(counts))).T.tolist()


def test_binomial_interval_of_two_in_ten() -> None:
    """Clopper and Pearson: 2 of 10 gives 0.0252 to 0.5561; 0 of 10 ends at 0.3085; no trial gives nothing."""
    low, high = intervals.binomial_interval(np.array([2.0, 0.0, 0.0]), np.array([10.0, 10.0, 0.0]))
    assert [0.0252, 0.0] == pytest.approx(low[:2].tolist(), abs=5e-5)
    assert [0.5561, 0.3085] == pytest.approx(high[:2].tolist(), abs=5e-5)
    assert np.isnan([low[2], high[2]]).all()


def test_ranks_around_a_quantile() -> None:
    """25 values: heads and tails leave 2.2 % below the 8th and above the 18th. 0.95^71 is 2.6 %, 0.95^72 2.49 %:
    of 71 values none is above the 95th percentile. Of 72 no more than 63 lie below it in 1.0 %, 64 in 2.7 %."""
    ranks = intervals.quantile_ranks(np.array([0, 5, 6, 25]), 0.5)
    assert [[-1, -1, 0, 7], [0, 5, 5, 17]] == [end.tolist() for end in ranks]
    ranks = intervals.quantile_ranks(np.array([1, 2, 71, 72]), 0.95)
    assert [[-1, 0, 62, 63], [1, 2, 71, 71]] == [end.tolist() for end in ranks]


@given(st.integers(0, 2000), st.floats(0.01, 0.99))
def test_ranks_around_a_quantile_are_the_narrowest(n: int, share: float) -> None:
    low, high = (int(end[0]) for end in intervals.quantile_ranks(np.array([n]), share))
    assert -1 <= low < max(high, 0) <= n or n == 0
    assert low < 0 or special.bdtr(low, n, share) <= 0.025
    assert low == n - 1 or special.bdtr(low + 1, n, share) > 0.025
    assert high == n or special.bdtrc(high, n, share) <= 0.025
    assert high == 0 or special.bdtrc(high - 1, n, share) > 0.025


def renewals(cycles: list[float], sizes: list[float], dead: float = 0.0) -> float:
    owner = np.zeros(len(cycles), np.int64)
    return float(intervals.renewal_count(np.array(sizes), np.array(cycles), np.full(len(cycles), dead), owner, 1)[0])


def test_renewal_count_by_hand() -> None:
    """Cycles of 50, 100 and 150 without dead time: 1 - cycle/100 is 0.5, 0 and -0.5, whose squares sum to 0.5, so that
    the dispersion is (3 + 0.5)/(3 + 2); Student's quantile of 5 degrees of freedom is 2.5706. Of fewer than eight the
    order says nothing."""
    student = (2.5706 / 1.95996) ** 2
    assert 3 / (3.5 / 5) / student == pytest.approx(renewals([50, 100, 150], [1, 1, 1]), rel=1e-4)
    assert renewals([50, 100, 150], [1, 1, 1]) == pytest.approx(renewals([50, 150, 100], [1, 1, 1]))


def test_long_run_variance_by_hand() -> None:
    """Of -1, 1, -1, 1 the squares sum to 4, over 1 - 1/4. Of eight that alternate the correlation with the one before
    is -7/8, with its bias (-7/8 + 1/8)/(1 - 3/8) = -1.2, held at -1/2: what is left is 0.75 and seven quarters, their
    products are of the signs -, +: two lags with the weights 2/3 and 1/3."""
    few, freedom = intervals.long_run(np.array([-1.0, 1.0, -1.0, 1.0]), np.zeros(4, np.int64), 1)
    assert (4 / 0.75, 3.0) == pytest.approx((few[0], freedom[0]))
    found, freedom = intervals.long_run(np.array([-1.0, 1.0] * 4), np.zeros(8, np.int64), 1)
    root = 0.75**0.5
    squares, next_, after = 0.75 + 7 / 4, -root / 2 - 6 / 4, root / 2 + 5 / 4
    b = 3 / 8
    by_hand = (squares + 4 / 3 * next_ + 2 / 3 * after) / (1 - b + b * b / 3) / 1.5**2
    assert (by_hand, 8 / (1 + 2 * (1 + 1 / 9))) == pytest.approx((found[0], freedom[0]))


def test_neighbours_that_are_alike_make_the_count_less_sure() -> None:
    alternating, blocks = [50.0, 150.0] * 32, ([50.0] * 8 + [150.0] * 8) * 4
    assert renewals(blocks, [1.0] * 64) < 0.5 * renewals(alternating, [1.0] * 64)


def test_regular_events_are_surer_than_irregular_ones() -> None:
    regular, irregular = [100.0] * 60, [10.0, 190.0] * 30
    assert renewals(irregular, [1.0] * 60) < renewals(regular, [1.0] * 60)
    assert renewals(regular, [1.0] * 60) < renewals(regular, [1.0] * 60, dead=50.0)


def test_events_of_one_size_tell_as_much_as_their_number_and_unequal_ones_less() -> None:
    cycles = np.random.default_rng(1).exponential(100.0, 80).tolist()
    single = renewals(cycles, [1.0] * 80)
    assert single == pytest.approx(renewals(cycles, [8.0] * 80))
    unequal = np.random.default_rng(2).choice([1.0, 15.0], 80).tolist()
    assert renewals(cycles, unequal) < 0.8 * single


def test_mean_of_two_observations_and_of_one() -> None:
    found = intervals.mean(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1]), 2)
    assert [2.0, 5.0] == found.value.tolist()
    assert found.low[0] < 1.0 < 3.0 < found.high[0]
    assert np.isnan([found.low[1], found.high[1]]).all()
    assert [2, 1] == found.n.tolist()


COVERED = 4000


@pytest.mark.parametrize("n", [2, 3, 5, 7, 8, 30, 140])
def test_interval_holds_the_mean_of_exponential_observations(n: int) -> None:
    """The standard error is 0.35 %. Without a skewness, 3 to 7 of them held it in 88 or 89 %."""
    values = np.random.default_rng(n).exponential(1.0, COVERED * n)
    found = intervals.mean(values, np.repeat(np.arange(COVERED), n), COVERED)
    held = np.mean((found.low <= 1.0) & (found.high >= 1.0))
    assert 0.93 <= held <= 0.97


@pytest.mark.parametrize("n", [2, 4, 7])
def test_few_observations_that_are_not_skew_have_students_interval(n: int) -> None:
    values = np.random.default_rng(n).normal(10.0, 1.0, COVERED * n)
    found = intervals.mean(values, np.repeat(np.arange(COVERED), n), COVERED)
    assert 0.94 <= np.mean((found.low <= 10.0) & (found.high >= 10.0)) <= 0.96


def test_interval_of_the_mean_of_three_by_hand() -> None:
    """1, 2 and 6: mean 3, standard deviation root 7, so that 2 x 0.88192 is the skewness. The curve of the logarithm is
    a sixth of 0.88192; Student's quantile 4.30265 of two degrees of freedom over root 3, less 1.76383/18."""
    found = intervals.mean(np.array([1.0, 2.0, 6.0]), np.zeros(3, np.int64), 1)
    cv = 7**0.5 / 3
    curve, middle = cv / 6, 2 * cv / 18
    ends = [3 * np.exp(-cv * (np.cbrt(1 + 3 * curve * (x - middle)) - 1) / curve) for x in (2.48414, -2.48414)]
    assert ends == pytest.approx([found.low[0], found.high[0]], rel=1e-4)


@pytest.mark.parametrize("alike", [0.0, 0.3, 0.6])
def test_interval_holds_the_mean_of_neighbours_that_are_alike(alike: float) -> None:
    """Windows, each from half of the last one (0.5), are such: without what their neighbours tell the share would be
    93, 87 and 75 per cent."""
    n, random = 140, np.random.default_rng(3)
    values = random.normal(0.0, 1.0, (COVERED, n))
    values[:, 0] /= (1 - alike**2) ** 0.5
    for k in range(1, n):
        values[:, k] += alike * values[:, k - 1]
    found = intervals.mean(20.0 + values.ravel(), np.repeat(np.arange(COVERED), n), COVERED)
    assert 0.93 <= np.mean((found.low <= 20.0) & (found.high >= 20.0)) <= 0.97


@pytest.mark.parametrize(("n", "held"), [(100, 0.8), (300, 0.85), (1000, 0.89)])
def test_interval_of_many_observations_that_change_slowly(n: int, held: float) -> None:
    """Round trips behind a queue that others fill: each 0.95 of the one before. With a correlation of neighbours of 0.9
    at most 75, 78 and 80 per cent of the intervals held the mean."""
    random, values = np.random.default_rng(n), np.zeros((COVERED, n))
    values[:, 0] = random.normal(0.0, 1.0, COVERED)
    for k in range(1, n):
        values[:, k] = 0.95 * values[:, k - 1] + (1 - 0.95**2) ** 0.5 * random.normal(0.0, 1.0, COVERED)
    found = intervals.mean(np.exp(0.5 * values.ravel()), np.repeat(np.arange(COVERED), n), COVERED)
    truth = np.exp(0.125)
    assert np.mean((found.low <= truth) & (found.high >= truth)) >= held


def test_share_of_trials_that_come_in_pairs() -> None:
    """Pairs of equal trials tell what half as many do; the interval of 95 % holds the share of either."""
    random, n, share = np.random.default_rng(5), 120, 0.2
    singles = (random.random((COVERED, n)) < share).astype(float)
    pairs = np.repeat((random.random((COVERED, n // 2)) < share).astype(float), 2, axis=1)
    owner = np.repeat(np.arange(COVERED), n)
    for trials in (singles, pairs):
        low, high = intervals.share_interval(trials.ravel(), owner, COVERED)
        assert 0.93 <= np.mean((low <= share) & (high >= share)) <= 0.97


def test_share_of_no_hit_and_of_nothing_but_hits() -> None:
    """Clopper and Pearson: 0 of 10 ends at 0.3085, 10 of 10 begin at 0.6915; no trial gives nothing."""
    low, high = intervals.share_interval(np.repeat([0.0, 1.0], 10), np.repeat([0, 1], 10), 3)
    assert [0.0, 0.6915] == pytest.approx(low[:2].tolist(), abs=5e-5)
    assert [0.3085, 1.0] == pytest.approx(high[:2].tolist(), abs=5e-5)
    assert np.isnan([low[2], high[2]]).all()


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=60), st.floats(0.01, 100))
def test_scaling_the_observations_scales_the_interval(values: list[float], scale: float) -> None:
    observed, owner = np.array(values), np.zeros(len(values), np.int64)
    plain, scaled = intervals.mean(observed, owner, 1), intervals.mean(scale * observed, owner, 1)
    assert [scale * plain.value[0], scale * plain.low[0], scale * plain.high[0]] == pytest.approx(
        [scaled.value[0], scaled.low[0], scaled.high[0]], rel=1e-6, abs=1e-9
    )
