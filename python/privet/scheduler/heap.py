"""A heap from which any item can be taken."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Heap(Generic[T]):
    """Items in the order of their keys, equal keys in the order of `turn`; O(log n) an operation.

    An item removed stays in the list until it comes up, or until half the list is such.
    """

    def __init__(self) -> None:
        self._live: dict[T, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, T]] = []

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, item: T) -> bool:
        return item in self._live

    def __iter__(self) -> Iterator[T]:
        """All items, in the order in which they were pushed."""
        return iter(tuple(self._live))

    def push(self, item: T, key: float, turn: int) -> None:
        """Puts `item` in, or moves it; `turn` is unique."""
        self._live[item] = (key, turn)
        heapq.heappush(self._heap, (key, turn, item))

    def remove(self, item: T) -> None:
        """Takes `item` out, if it is in."""
        self._live.pop(item, None)
        if len(self._heap) > 64 and len(self._heap) > 2 * len(self._live):
            self._heap = [(key, turn, item) for item, (key, turn) in self._live.items()]
            heapq.heapify(self._heap)

    def first(self) -> tuple[float, int, T] | None:
        """Key, turn and item that come first; None if there is no item."""
        while self._heap:
            key, turn, item = self._heap[0]
            if self._live.get(item) == (key, turn):
                return key, turn, item
            heapq.heappop(self._heap)
        return None
