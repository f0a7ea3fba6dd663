"""What comes due by itself: timeouts, limits of jobs, expiry of material."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from privet.scheduler.heap import Heap


class Alarm(StrEnum):
    """What comes due: a submission's timeout, a job's limit, the end of an entry's life, or the end
    of the time for which a client's jobs wait for it."""

    TIMEOUT = "timeout"
    LIMIT = "limit"
    EXPIRY = "expiry"
    ABSENT = "absent"


class Timers:
    """Alarms by time (seconds), at most one of each kind for each name."""

    def __init__(self) -> None:
        self._heap: Heap[tuple[Alarm, str]] = Heap()
        self._turn = 0

    def __len__(self) -> int:
        return len(self._heap)

    def __contains__(self, alarm: tuple[Alarm, str]) -> bool:
        return alarm in self._heap

    def set(self, alarm: Alarm, name: str, at: float) -> None:
        self._turn += 1
        self._heap.push((alarm, name), at, self._turn)

    def drop(self, alarm: Alarm, name: str) -> None:
        """Takes an alarm back, if it is set."""
        self._heap.remove((alarm, name))

    def next_at(self) -> float | None:
        """When the earliest alarm is due."""
        first = self._heap.first()
        return None if first is None else first[0]

    def due(self, now: float) -> Iterator[tuple[Alarm, str]]:
        """Takes out, one by one, what is due by `now`."""
        while (first := self._heap.first()) is not None and first[0] <= now:
            self._heap.remove(first[2])
            yield first[2]
