"""Where a job can run now, and the room kept for the one at the head of the line.

A job that fits nowhere and is first in line gets a reservation (EASY backfilling, Lifka 1995): the
machine on which it will fit soonest, and that time by the estimates. Others may pass it there only
if they end before that time, or take what it leaves. So a job that needs much cannot starve behind
small ones, and cores do not idle while it waits.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from privet.scheduler.machine import FreeResources
from privet.scheduler.profiles import Demand
from privet.scheduler.snapshot import RunningStatus


@dataclass(slots=True)
class Reservation:
    """What is kept on a machine from time `at` (seconds); `cores` and `memory` are left."""

    machine: str
    at: float
    cores: int
    memory: int

    def admits(self, now: float, demand: Demand, lease: float) -> bool:
        """Whether a job may start now without delaying the one the room is kept for."""
        ends_before = now + demand.seconds + lease <= self.at
        return ends_before or (demand.cores <= self.cores and demand.memory <= self.memory)

    def use(self, now: float, demand: Demand, lease: float) -> None:
        """A job was started beside."""
        if now + demand.seconds + lease > self.at:
            self.cores -= demand.cores
            self.memory -= demand.memory


class Placement:
    """One decision's view of the machines: `rooms`, what runs, and the reservations made so far."""

    def __init__(
        self,
        now: float,
        resources: Mapping[str, FreeResources],
        running: Callable[[], Iterable[RunningStatus]],
    ) -> None:
        self._now = now
        self._resources = resources
        self._running = running
        self._reservations: list[Reservation] = []

    @property
    def full(self) -> bool:
        """Whether no core is free anywhere."""
        return not any(free.cores for free in self._resources.values())

    def find(
        self, demand: Demand, pinned: str | None, lease: float = 0.0
    ) -> tuple[str, Demand] | None:
        """The machine with the most free cores on which the job fits, and what it takes there. Its
        memory stays taken for `lease` seconds after its end."""
        best: tuple[str, Demand] | None = None
        largest_share = 0.0
        for name, free in self._resources.items():
            if not free.cores or not free.is_for(pinned):
                continue
            local_demand = demand.on(min(demand.cores, free.machine.cores))
            share = free.cores / free.machine.cores
            if (
                share > largest_share
                and free.fits(local_demand.cores, local_demand.memory)
                and self._admits(name, local_demand, lease)
            ):
                best, largest_share = (name, local_demand), share
        return best

    def _admits(self, machine: str, demand: Demand, lease: float) -> bool:
        reservations = (
            reservation for reservation in self._reservations if reservation.machine == machine
        )
        return all(reservation.admits(self._now, demand, lease) for reservation in reservations)

    def started(self, machine: str, demand: Demand, lease: float = 0.0) -> None:
        """A job was started that `find` placed."""
        for reservation in self._reservations:
            if reservation.machine == machine:
                reservation.use(self._now, demand, lease)

    def reserve(self, demand: Demand, pinned: str | None) -> str | None:
        """Keeps room for a job that does not fit now; the machine, None if none is large enough."""
        names = [name for name, free in self._resources.items() if free.is_for(pinned)]
        reservations = [
            soonest for name in names if (soonest := self._soonest(name, demand)) is not None
        ]
        if not reservations:
            return None
        best = min(reservations, key=lambda reservation: reservation.at)
        self._reservations.append(best)
        return best.machine

    def _soonest(self, name: str, demand: Demand) -> Reservation | None:
        free = self._resources[name]
        local_demand = demand.on(min(demand.cores, free.machine.cores))
        if local_demand.memory > free.usable_memory:
            return None
        cores, memory, at = free.cores, free.memory, self._now
        ends = [(run.expected_end, run.job, run) for run in self._running() if run.machine == name]
        heapq.heapify(ends)
        while ends and not (cores >= local_demand.cores and memory >= local_demand.memory):
            run = heapq.heappop(ends)[2]
            cores, memory = cores + len(run.cores), memory + run.memory
            at = max(self._now, run.expected_end)
        return Reservation(name, at, cores - local_demand.cores, memory - local_demand.memory)
