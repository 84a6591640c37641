"""Intervals against published numbers, and their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcpfit.parameters import intervals


def test_ends_of_a_count_of_ten() -> None:
    """Half of chi-squared's quantiles: 21 degrees of freedom at 0.025 give 10.283, 22 at 0.975 give 36.781 (tables);
    no event at all gives 0 to 3.689 (Garwood)."""
    low, high = intervals.count_factors(np.array([10.0, 0.0]))
    assert [10.283 / 2 / 10, 0.0] == pytest.approx(low.tolist(), abs=5e-5)
    assert [36.781 / 2 / 10, 3.689] == pytest.approx(high.tolist(), abs=5e-4)


def test_binomial_interval_of_two_in_ten() -> None:
    """Clopper and Pearson: 2 of 10 gives 0.0252 to 0.5561; 0 of 10 ends at 0.3085; no trial gives nothing."""
    low, high = intervals.binomial_interval(np.array([2.0, 0.0, 0.0]), np.array([10.0, 10.0, 0.0]))
    assert [0.0252, 0.0] == pytest.approx(low[:2].tolist(), abs=5e-5)
    assert [0.5561, 0.3085] == pytest.approx(high[:2].tolist(), abs=5e-5)
    assert np.isnan([low[2], high[2]]).all()


def renewals(cycles: list[float], sizes: list[float], dead: float = 0.0) -> float:
    owner = np.zeros(len(cycles), np.int64)
    return float(intervals.renewal_count(np.array(sizes), np.array(cycles), np.full(len(cycles), dead), owner, 1)[0])


def test_renewal_count_by_hand() -> None:
    """Cycles of 50, 100 and 150 without dead time: 1 - cycle/100 is 0.5, 0 and -0.5, whose squares sum to 0.5, so that
    the dispersion is (3 + 0.5)/(3 + 2); Student's quantile of 5 degrees of freedom is 2.5706. The neighbours' products
    are 0; in the order 50, 150, 100 they are negative and do not count. Of 50, 50, 150, 150 they sum to 0.25, which
    counts twice with the weight 1/2."""
    student = (2.5706 / 1.95996) ** 2
    assert 3 / (3.5 / 5) / student == pytest.approx(renewals([50, 100, 150], [1, 1, 1]), rel=1e-4)
    assert renewals([50, 100, 150], [1, 1, 1]) == pytest.approx(renewals([50, 150, 100], [1, 1, 1]))
    assert 4 / ((3 + 1 + 0.25) / 6) / (2.4469 / 1.95996) ** 2 == pytest.approx(
        renewals([50, 50, 150, 150], [1] * 4), rel=1e-4
    )


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
    assert renewals(cycles, [1.0, 15.0] * 40) < single


def test_mean_of_two_observations_and_of_one() -> None:
    found = intervals.mean(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1]), np.array([4, 9]))
    assert [2.0, 5.0] == found.value.tolist()
    assert found.low[0] < 1.0 < 3.0 < found.high[0]
    assert np.isnan([found.low[1], found.high[1]]).all()
    assert [2, 1] == found.n.tolist()


def test_the_flow_number_seeds_the_bootstrap() -> None:
    values, owner = np.arange(20.0), np.zeros(20, np.int64)
    first, again, other = (intervals.mean(values, owner, np.array([n])) for n in (3, 3, 4))
    assert (first.low[0], first.high[0]) == (again.low[0], again.high[0])
    assert first.low[0] != other.low[0]


@pytest.mark.parametrize("n", [5, 12, 100])
def test_bootstrap_covers_the_mean(n: int) -> None:
    """Of 600 samples from an exponential law at least 88 % of the intervals hold the mean (95 % is nominal)."""
    flows = 600
    values = np.random.default_rng(n).exponential(1.0, flows * n)
    found = intervals.mean(values, np.repeat(np.arange(flows), n), np.arange(flows))
    assert 0.88 <= np.mean((found.low <= 1.0) & (found.high >= 1.0))


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=60), st.floats(0.01, 100))
def test_scaling_the_observations_scales_the_interval(values: list[float], scale: float) -> None:
    observed, owner, flow = np.array(values), np.zeros(len(values), np.int64), np.array([1])
    plain, scaled = intervals.mean(observed, owner, flow), intervals.mean(scale * observed, owner, flow)
    assert [scale * plain.value[0], scale * plain.low[0], scale * plain.high[0]] == pytest.approx(
        [scaled.value[0], scaled.low[0], scaled.high[0]], rel=1e-6, abs=1e-9
    )
