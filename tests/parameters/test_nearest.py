"""Is what comes next before or after found, by the definition?"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tcpfit.parameters.nearest import earliest, latest

ROWS = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 6)), max_size=12)


def columns(rows):
    return np.array([owner for owner, _ in rows], np.int64), np.array([time for _, time in rows], np.int64)


@given(ROWS, ROWS)
def test_nearest_is_the_nearest(rows, others):
    before, after = latest(*columns(rows), *columns(others)), earliest(*columns(rows), *columns(others))
    for i, (owner, time) in enumerate(rows):
        past = [(at, n) for n, (whose, at) in enumerate(others) if whose == owner and at <= time]
        future = [(at, n) for n, (whose, at) in enumerate(others) if whose == owner and at >= time]
        assert max(past, default=(0, -1))[1] == before[i]
        assert min(future, default=(0, -1))[1] == after[i]


def test_times_of_captures_are_not_rounded():
    time = np.array([1_700_000_000 * 10**9 + 1], np.int64)
    assert [-1] == latest(np.zeros(1, np.int64), time - 1, np.zeros(1, np.int64), time).tolist()
    assert [0] == earliest(np.zeros(1, np.int64), time - 1, np.zeros(1, np.int64), time).tolist()
