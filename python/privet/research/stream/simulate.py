"""Pipelines on more servers than there are here: profiled stages under a simulated clock.

Stages stand in a row and serve requests in the order in which they come. A stage with threads of
its own takes what the profile says for so many; between stages a tensor takes the link's latency
and its bytes' time. It is a simulation: what it leaves out (the operating system, Python's share,
stages that share a core) only ever makes a real cluster slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privet.stream.allocation import Allocation
from privet.stream.profile import StageTimes

BYTES_PER_SECOND = 1.25e9
"""The paper's 10 Gbit/s."""

LATENCY = 1e-4
WINDOW = 16


@dataclass(frozen=True)
class Flow:
    """What a run of requests took: until the last was done, and each on its own."""

    makespan: float
    latencies: tuple[float, ...]

    @property
    def throughput(self) -> float:
        """Requests a second."""
        return len(self.latencies) / self.makespan


def flow(
    times: Sequence[float], requests: int, window: int, transfers: Sequence[float] | None = None
) -> Flow:
    """Runs `requests` that are all there at the start through stages that take `times`, at most
    `window` of them at once. The way to stage `i` takes `transfers[i]`, one request after the
    other."""
    waits = transfers or [0.0] * len(times)
    wires, free = [0.0] * len(times), [0.0] * len(times)
    ends: list[float] = []
    latencies = []
    for number in range(requests):
        now = ends[number - window] if number >= window else 0.0
        began = max(now, wires[0], free[0] - waits[0])
        for stage, (seconds, wait) in enumerate(zip(times, waits, strict=True)):
            now = wires[stage] = max(now, wires[stage]) + wait
            now = free[stage] = max(now, free[stage]) + seconds
        ends.append(now)
        latencies.append(now - began)
    return Flow(max(ends), tuple(latencies))


def time_of(stage: StageTimes, threads: int) -> float:
    """Seconds with so many threads: as profiled, or between what was profiled.

    Between two profiled counts, and beyond the largest, a stage takes its share of the work of the
    lower one, and never less than a larger profiled count does.
    """
    if threads in stage.seconds:
        return stage.seconds[threads]
    below = max(count for count in stage.seconds if count < threads)
    above = [seconds for count, seconds in stage.seconds.items() if count > threads]
    return max([stage.seconds[below] * below / threads, *above])


def simulate(
    stages: Sequence[StageTimes],
    allocation: Allocation,
    *,
    requests: int = 32,
    row_bytes: int = 512,
    whole_inputs: bool = False,
    bytes_per_second: float = BYTES_PER_SECOND,
) -> Flow:
    """A pipeline of profiled stages with the threads of an allocation.

    With `whole_inputs` each worker of a stage is sent all of its tensor, as without partitioning.
    """
    times, transfers = [], []
    for stage, threads in zip(stages, allocation.threads, strict=True):
        times.append(time_of(stage, threads))
        rows = stage.whole * threads if whole_inputs else _read(stage, threads)
        transfers.append(LATENCY + rows * row_bytes / bytes_per_second)
    return flow(times, requests, WINDOW, transfers)


def _read(stage: StageTimes, threads: int) -> int:
    return stage.read[max(count for count in stage.read if count <= threads)]
