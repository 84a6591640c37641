"""How much of what waits is one task?"""

from __future__ import annotations

from tcpfit.corpus.waiting import BYTES, LEAST, MOST, SMALL_BYTES, Waiting


def lots(waiting: Waiting, slots: int) -> list[list]:
    """All that waits, task by task."""
    taken = []
    while waiting:
        taken.append(waiting.take(slots))
    return taken


def waiting_of(*sizes: int | None) -> Waiting[int]:
    """Items numbered from 0 with these sizes."""
    waiting: Waiting[int] = Waiting(lambda item: sizes[item])
    waiting.add(range(len(sizes)))
    return waiting


def test_small_items_are_a_task_together():
    waiting = waiting_of(*[1000] * (2 * MOST + 3))
    assert waiting.full
    assert [MOST, MOST, 3] == [len(lot) for lot in lots(waiting, slots=2)]


def test_what_is_left_is_shared_between_the_slots():
    assert [15, LEAST, 7] == [len(lot) for lot in lots(waiting_of(*[1000] * 30), slots=2)]
    assert [LEAST, LEAST, LEAST, 6] == [len(lot) for lot in lots(waiting_of(*[1000] * 30), slots=16)]
    assert not waiting_of(*[1000] * 30).full


def test_large_items_and_those_of_unknown_size_are_alone():
    large = waiting_of(SMALL_BYTES + 1, 1, 1, None, 1, SMALL_BYTES)
    assert large.full
    assert [[0], [1, 2], [3], [4, 5]] == lots(large, slots=1)


def test_items_together_are_no_larger_than_a_few_alone():
    waiting = waiting_of(*[SMALL_BYTES] * 9)
    most = BYTES // SMALL_BYTES
    assert [most, most, 1] == [len(lot) for lot in lots(waiting, slots=1)]
    exact = waiting_of(*[SMALL_BYTES] * most)
    assert not exact.full


def test_an_item_stays_alone():
    waiting = waiting_of(1, 1, 1)
    waiting.add_alone([1])
    assert [[0], [1], [2], [1]] == lots(waiting, slots=1)
    waiting.add([0, 1, 2])
    assert [[0], [1], [2]] == lots(waiting, slots=1)


def test_items_are_dropped():
    waiting = waiting_of(1, 1, 1)
    waiting.drop(lambda item: item == 1)
    assert 2 == len(waiting)
    assert [[0, 2]] == lots(waiting, slots=1)


def test_nothing_waits():
    assert not waiting_of().full
    assert 0 == len(waiting_of())
