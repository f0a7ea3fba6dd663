"""What a side has done: seconds of its workers, bytes that went to them, and what was redone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class Ledger:
    """Counts from the start of a side.

    `seconds[stage]` are the processor seconds of a stage's workers and `calls[stage]` their number;
    `moved` are bytes of ciphertexts that workers were given; `redone` counts rounds that were done
    again because a worker was lost.
    """

    seconds: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    calls: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    moved: int = 0
    redone: int = 0

    def spent(self, stage: int, seconds: float) -> None:
        """A worker of a stage has ended a call."""
        self.seconds[stage] += seconds
        self.calls[stage] += 1
