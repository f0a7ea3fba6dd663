"""Machines, and what of them is free."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from privet.errors import Misuse


@dataclass(frozen=True)
class Machine:
    """A machine that runs jobs: `cores` that it lends, and `memory` in bytes. A `reserved` one runs
    only jobs that name it."""

    name: str
    cores: int
    memory: int
    reserved: bool = False

    def __post_init__(self) -> None:
        if not self.name or self.cores < 1 or self.memory < 1:
            raise Misuse("a machine has a name, at least one core and at least one byte")


class FreeResources:
    """What is free on one machine: numbered cores, and `memory` in bytes, which is below zero while
    what was set aside waits for jobs to end. `usable_memory`: the bytes that jobs may have at all.
    While `draining`, it is for jobs alone that must run here."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.memory = machine.memory
        self.usable_memory = machine.memory
        self.draining = False
        self._cores = list(range(machine.cores))

    @property
    def cores(self) -> int:
        return len(self._cores)

    def is_for(self, machine: str | None) -> bool:
        """Whether jobs may run here that must run on `machine`, or (None) may run anywhere."""
        if machine is None:
            return not (self.machine.reserved or self.draining)
        return machine == self.machine.name

    def fits(self, cores: int, memory: int) -> bool:
        """Whether `cores` and `memory` (bytes) are free now."""
        return cores <= len(self._cores) and memory <= self.memory

    def take(self, cores: int, memory: int) -> tuple[int, ...]:
        """The lowest free cores, theirs until `release`; call `fits` first."""
        self.memory -= memory
        return tuple(heapq.heappop(self._cores) for _ in range(cores))

    def set_aside(self, memory: int) -> None:
        """Keeps so many bytes from jobs; a negative number gives back."""
        self.memory -= memory
        self.usable_memory -= memory

    def release(self, cores: tuple[int, ...], memory: int) -> None:
        """Returns what `take` gave."""
        self.memory += memory
        for core in cores:
            heapq.heappush(self._cores, core)
