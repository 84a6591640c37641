"""Which losses are a queue's that the flow filled, and which come by chance while it stands?"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tcpfit.diagnosis import accounting
from tcpfit.diagnosis.causes import Reason
from tcpfit.diagnosis.reactions import Stretches, queue_full

LEAST_S, FULL_S = 0.05, 0.02


def lost_in(lengths: list[float], queued: list[bool] | None = None) -> list[bool]:
    """Of a flow that loses something in every second round, in which the queue is so long (of a full one)."""
    number = 2 * len(lengths)
    rtt = np.full(number, np.nan)
    rtt[::2] = LEAST_S + FULL_S * np.array(lengths)
    stands = np.zeros(number, np.bool_)
    stands[::2] = True if queued is None else queued
    rounds = SimpleNamespace(
        queued=stands,
        rtt=rtt,
        start=np.arange(number) * 100,
        flow_begin=np.array([0]),
        flow_count=np.array([number]),
        flow_least_s=np.array([LEAST_S]),
    )
    owner = np.zeros(len(lengths), np.int64)
    return queue_full(rounds, owner, np.arange(len(lengths)) * 200 + 100).tolist()


def test_a_queue_that_drops_what_finds_no_room_is_as_long_each_time():
    assert [True] * 5 == lost_in([1.0, 0.97, 1.0, 0.9, 0.7])
    assert [True, True, False, True] == lost_in([1.0, 1.0, 0.9, 1.0], [True, True, False, True])


def test_losses_by_chance_find_it_at_any_length():
    assert [True, True, False, False, False, False, True] == lost_in([1.0, 1.0, 0.1, 0.4, 0.2, 0.1, 0.9])


def test_where_the_longest_are_fewer_than_those_of_half_the_length_none_was_full():
    by_chance = [1.0, 0.1, 0.6, 1.0, 0.5, 0.3, 0.7, 0.2, 0.5]
    assert not any(lost_in(by_chance)[1:])
    # of fewer losses nothing can be said, and a full queue's are most
    assert [True, False, True, True, False, False, True] == lost_in(by_chance[:7])
    full = [1.0, 0.1, 1.0, 1.0, 0.5, 0.3, 0.95, 0.9, 0.5]
    assert [True, False, True, True, False, False, True, True, False] == lost_in(full)


def test_the_overshoot_of_slow_start_does_not_say_how_long_it_becomes():
    """Where a router drops sooner (RFC 8289) the queue never is so long again; or no round trip has shown it yet."""
    assert [True] * 4 == lost_in([6.0, 1.0, 1.0, 1.0])
    assert [True] * 4 == lost_in([0.1, 1.0, 1.0, 1.0])


def test_a_round_trip_that_is_not_known_speaks_against_nothing():
    assert [True, True, True] == lost_in([1.0, float("nan"), 1.0])


class Course(SimpleNamespace):
    """Of one flow, what a memory of its reactions looks at."""

    def __len__(self) -> int:
        return len(self.owner)


@pytest.mark.parametrize(("resent", "left"), [(1, Reason.AFTER_LOSS), (0, Reason.PATH_FILLED)])
def test_a_burst_of_acks_in_a_recovery_does_not_fill_the_path(resent: int, left: int):
    """The ACK that ends a recovery covers what came long before: the round only looks as fast as the path."""
    course = Course(
        flow_count=np.array([4]),
        flow_begin=np.array([0]),
        owner=np.zeros(4, np.int64),
        queued=np.array([False, True, False, False]),
        until=np.array([10, 20, 30, 40]),
        open=np.ones(4, np.bool_),
        resent=np.array([0, resent, 0, 0]),
        flight=np.array([20.0, 20.0, 10.0, 11.0]),
    )
    axis = SimpleNamespace(place=lambda time, owner: time)
    none = np.zeros(1, np.int64)
    covers = Stretches(none, np.array([12]), np.array([15]), np.array([Reason.RECOVERY]), none)
    memory = accounting._memories(course, axis, covers, [Reason.AFTER_LOSS], np.zeros(4, np.bool_))
    assert [-1, left, left, left] == memory.tolist()
