"""Intervals against published numbers, and their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcpfit.parameters import intervals


def test_poisson_interval_of_ten_events() -> None:
    """Garwood's table: 10 events give 4.795 to 18.390; none gives 0 to 3.689."""
    low, high = intervals.poisson_interval(np.array([10.0, 0.0]))
    assert [4.795, 0.0] == pytest.approx(low.tolist(), abs=5e-4)
    assert [18.390, 3.689] == pytest.approx(high.tolist(), abs=5e-4)


def test_binomial_interval_of_two_in_ten() -> None:
    """Clopper and Pearson: 2 of 10 gives 0.0252 to 0.5561; 0 of 10 ends at 0.3085; no trial gives nothing."""
    low, high = intervals.binomial_interval(np.array([2.0, 0.0, 0.0]), np.array([10.0, 10.0, 0.0]))
    assert [0.0252, 0.0] == pytest.approx(low[:2].tolist(), abs=5e-5)
    assert [0.5561, 0.3085] == pytest.approx(high[:2].tolist(), abs=5e-5)
    assert np.isnan([low[2], high[2]]).all()


def test_weighted_poisson_with_sizes_of_one_is_the_plain_interval() -> None:
    count = np.array([7.0])
    plain = intervals.poisson_interval(count)
    weighted = intervals.weighted_poisson_interval(count, count, np.ones(1))
    assert [plain[0][0], plain[1][0]] == pytest.approx([weighted[0][0], weighted[1][0]])


def test_events_of_eight_losses_are_wider_than_as_many_single_losses() -> None:
    single = intervals.weighted_poisson_interval(np.array([80.0]), np.array([80.0]), np.array([1.0]))
    bursts = intervals.weighted_poisson_interval(np.array([80.0]), np.array([640.0]), np.array([8.0]))
    assert bursts[0][0] < single[0][0] < 80 < single[1][0] < bursts[1][0]


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


def test_poisson_interval_covers_the_rate() -> None:
    counts = np.random.default_rng(1).poisson(6.0, 4000).astype(np.float64)
    low, high = intervals.poisson_interval(counts)
    assert 0.95 <= np.mean((low <= 6.0) & (high >= 6.0)) <= 0.99


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=60), st.floats(0.01, 100))
def test_scaling_the_observations_scales_the_interval(values: list[float], scale: float) -> None:
    observed, owner, flow = np.array(values), np.zeros(len(values), np.int64), np.array([1])
    plain, scaled = intervals.mean(observed, owner, flow), intervals.mean(scale * observed, owner, flow)
    assert [scale * plain.value[0], scale * plain.low[0], scale * plain.high[0]] == pytest.approx(
        [scaled.value[0], scaled.low[0], scaled.high[0]], rel=1e-6, abs=1e-9
    )
