"""What a side has done: seconds of its workers, bytes that went to them, what was redone, and what
was prepared."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from privet.suites.costs import PhaseCost


@dataclass
class Ledger:
    """Counts from the start of a side.

    `seconds[stage]` are the processor seconds of a stage's workers and `calls[stage]` their number;
    `moved` are bytes of rows that workers were given; `redone` counts rounds that were done
    again because a worker was lost. `pieces` were prepared in `offline_seconds` with
    `offline_bytes` of both sides, for keys and the first setup with it; `spoiled` are those that
    were begun and given up.
    """

    seconds: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    calls: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    moved: int = 0
    redone: int = 0
    pieces: int = 0
    spoiled: int = 0
    offline_seconds: float = 0.0
    offline_bytes: int = 0

    def spent(self, stage: int, seconds: float) -> None:
        """A worker of a stage has ended a call."""
        self.seconds[stage] += seconds
        self.calls[stage] += 1

    def stocked(self, cost: PhaseCost) -> None:
        """A piece was prepared."""
        self.pieces += 1
        self.offline_seconds += cost.seconds
        self.offline_bytes += cost.bytes_client + cost.bytes_server
