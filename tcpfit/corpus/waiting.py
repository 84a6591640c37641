"""What waits for a worker, and how much of it is one task."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")

MOST = 64
"""Items of a task. What is paid once for all is then 2 % of what it is for each of them."""

LEAST = 8
"""Items that are not shared out between workers: what is paid once for them is most of the work."""

SMALL_BYTES = 4 << 20
"""What an item has at most that is a task with others."""

BYTES = 16 << 20
"""Of the items of a task together."""


class Waiting(Generic[Item]):
    """A queue of captures, small ones of which are a task together.

    `size_of` gives the bytes of an item, and None for one that is a task by itself whatever it has.
    """

    def __init__(self, size_of: Callable[[Item], int | None]) -> None:
        self._size_of = size_of
        self._items: deque[Item] = deque()
        self._alone: set[Item] = set()

    def __len__(self) -> int:
        return len(self._items)

    def add(self, items: Iterable[Item]) -> None:
        """Have these done after the others."""
        self._items.extend(items)

    def add_alone(self, items: Iterable[Item]) -> None:
        """Have these done after the others, and each of them by itself, now and later."""
        items = list(items)
        self._alone.update(items)
        self.add(items)

    def drop(self, unwanted: Callable[[Item], bool]) -> None:
        """Forget some."""
        self._items = deque(item for item in self._items if not unwanted(item))

    @property
    def full(self) -> bool:
        """Whether the next task would be no larger if more were added."""
        return bool(self._items) and self._next()[1]

    def take(self, slots: int) -> list[Item]:
        """The items of the next task; so many tasks are done at once, and share what is left."""
        count, full = self._next()
        if not full:
            count = min(count, max(LEAST, -(-count // slots)))
        return [self._items.popleft() for _ in range(count)]

    def _next(self) -> tuple[int, bool]:
        """How many of the first items are a task, and whether no other could be added to it."""
        count = total = 0
        for item in self._items:
            size = None if item in self._alone else self._size_of(item)
            if size is None or size > SMALL_BYTES:
                return max(count, 1), True
            total += size
            if count == MOST or total > BYTES:
                return count, True
            count += 1
        return count, count == MOST
