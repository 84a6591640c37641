"""Which of a flow's rounds or events comes next before, or next after, each of others.

Polars has this as `join_asof`, which costs a small table ten times as much as these sorts.
"""

from __future__ import annotations

import numpy as np

from tcpfit.parameters.intervals import Ints


def latest(owner: Ints, time: Ints, of_owner: Ints, of_time: Ints) -> Ints:
    """For each (owner, time) the position in (of_owner, of_time) of the latest one of the same owner that is no later;
    -1 where there is none. Of several at one time it is the last one. Neither need be in order."""
    count = len(of_owner)
    owners, times = np.concatenate((of_owner, owner)), np.concatenate((of_time, time))
    order = np.lexsort((times, owners))  # stable: at one time those that are looked for come first
    there = np.maximum.accumulate(np.where(order < count, np.arange(len(order)), -1))
    asked = order >= count
    found = order[there[asked]]
    mine = (there[asked] >= 0) & (owners[found] == owners[order[asked]])
    result = np.full(len(owner), -1, np.int64)
    result[order[asked] - count] = np.where(mine, found, -1)
    return result


def earliest(owner: Ints, time: Ints, of_owner: Ints, of_time: Ints) -> Ints:
    """The same for the earliest one that is no earlier; of several at one time it is the first one."""
    backwards = latest(owner, -time, of_owner[::-1], -of_time[::-1])
    return np.where(backwards < 0, -1, len(of_owner) - 1 - backwards)
