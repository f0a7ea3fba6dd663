"""Jobs that wait, in lanes: one heap for each kind of job, since those of a kind need the same.

A decision that can start something looks at the head of each lane, so it costs the number of lanes
(models, suites, batches, machines; clients as well, where they have shares or may be away), and the
logarithm of the number of jobs. One that cannot looks at the kinds of lanes alone, over all
clients. The needs are looked up when a job starts, not when it enters: corrected profiles hold for
what waits already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from privet.scheduler.heap import Heap
from privet.scheduler.pairs import Pair
from privet.scheduler.profiles import Key
from privet.scheduler.submission import Phase


@dataclass(eq=False, slots=True)
class Lane:
    """Jobs of one kind; `machine` where their material lies, for T_on; `client` whose they are, if
    clients have lanes of their own. `homeless_since`: from when on no machine is large enough;
    `head`: what `first` gives, until the lane changes."""

    job: Key
    machine: str | None
    client: str | None
    heap: Heap[Pair] = field(default_factory=Heap)
    homeless_since: float | None = None
    head: tuple[float, int, Pair] | None = None

    def first(self) -> tuple[float, int, Pair]:
        """Key, turn and pair of the job that comes first; there is one."""
        if self.head is None:
            self.head = self.heap.first()
            assert self.head is not None
        return self.head

    @property
    def kind(self) -> Kind:
        """Where its jobs fit is that of all lanes of the kind."""
        return self.job, self.machine


Kind = tuple[Key, str | None]
"""What the jobs of a lane are, and the machine where they must run if there is one."""


class Queues:
    """The queues of both phases; `by_client`: with lanes for each client. `homeless` are the kinds
    for which no machine was large enough at the last look."""

    def __init__(self, by_client: bool = False) -> None:
        self.homeless: set[Kind] = set()
        self._by_client = by_client
        self._kinds: Counter[Kind] = Counter()
        self._lanes: dict[tuple[Key, str | None, str | None], Lane] = {}
        self._lane_of: dict[Pair, Lane] = {}
        self._oldest: dict[Phase, Heap[Pair]] = {phase: Heap() for phase in Phase}
        self._turn = 0

    def __len__(self) -> int:
        return len(self._lane_of)

    def push(self, pair: Pair, phase: Phase) -> None:
        """Puts `pair` in by its key, or moves it."""
        stream = pair.stream
        kind = Key(stream.model, stream.suite, stream.batch, phase)
        place = (kind, pair.machine, stream.client if self._by_client else None)
        lane = self._lanes.get(place)
        if lane is None:
            lane = self._lanes[place] = Lane(*place)
            self._kinds[lane.kind] += 1
        self._turn += 1
        lane.heap.push(pair, pair.key, self._turn)
        lane.head = None
        self._lane_of[pair] = lane
        self._oldest[phase].push(pair, pair.since, self._turn)

    def remove(self, pair: Pair) -> None:
        """Takes `pair` out, if it is in."""
        lane = self._lane_of.pop(pair, None)
        if lane is not None:
            lane.heap.remove(pair)
            lane.head = None
            self._oldest[lane.job.phase].remove(pair)
            if not lane.heap:
                del self._lanes[lane.job, lane.machine, lane.client]
                self._kinds[lane.kind] -= 1
                if not self._kinds[lane.kind]:
                    del self._kinds[lane.kind]
                    self.homeless.discard(lane.kind)

    def lane(self, pair: Pair) -> Lane:
        return self._lane_of[pair]

    def lanes(self) -> Iterator[Lane]:
        """The lanes, none of which is empty."""
        return iter(tuple(self._lanes.values()))

    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of lanes that there are."""
        return tuple(self._kinds)

    def of(self, kind: Kind) -> list[Lane]:
        return [lane for lane in self._lanes.values() if lane.kind == kind]

    def oldest(self, phase: Phase) -> Pair | None:
        """The job that has waited longest in its queue."""
        first = self._oldest[phase].first()
        return None if first is None else first[2]
