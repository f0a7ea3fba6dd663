"""What a run left: every job with its cores and times, and the paper's figures of it.

All times are in seconds from the start of the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean

from privet.scheduler import Outcome, Phase


@dataclass(frozen=True)
class JobRecord:
    """A job that ran on `cores` of `machine` from `start` to `end`; `done`: it did its work."""

    job: str
    request: str
    model: str
    client: str
    phase: Phase
    machine: str
    cores: tuple[int, ...]
    memory: int
    start: float
    end: float
    done: bool = True


@dataclass(frozen=True)
class InputRecord:
    """Inputs of a request that were inferred together (`count` of them)."""

    request: str
    model: str
    client: str
    count: int
    arrival: float
    start: float
    end: float


@dataclass
class SimulationRecord:
    """A run of `policy` on `cores` cores in all."""

    policy: str
    cores: int
    jobs: list[JobRecord] = field(default_factory=list)
    inputs: list[InputRecord] = field(default_factory=list)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    decision_seconds: list[float] = field(default_factory=list)
    audited: int = 0


@dataclass(frozen=True)
class Figures:
    """The paper's metrics (Section 5). `delay` is D, from arrival to answer; `wait` is W, from
    arrival to the start of T_on; both in seconds, means over inputs. `throughput` in inputs a
    second over the `makespan`, which runs from 0 to the last answer. `utilisation`: the share of
    core seconds within the makespan in which jobs held the cores. `delay_95`: 95 % of inputs took
    at most that long.
    """

    inputs: int
    delay: float
    wait: float
    throughput: float
    makespan: float
    utilisation: float
    delay_95: float
    delay_of: Mapping[str, float]
    ended: Mapping[str, int]


def figures(record: SimulationRecord) -> Figures:
    """The figures of a run in which at least one input was inferred."""
    delays, waits = [], []
    by_model: dict[str, list[float]] = {}
    for item in record.inputs:
        delays += [item.end - item.arrival] * item.count
        waits += [item.start - item.arrival] * item.count
        by_model.setdefault(item.model, []).extend([item.end - item.arrival] * item.count)
    makespan = max(entry.end for entry in record.inputs)
    busy = sum(len(job.cores) * (min(job.end, makespan) - job.start) for job in record.jobs)
    outcomes: dict[str, int] = {}
    for outcome in record.outcomes.values():
        outcomes[str(outcome)] = outcomes.get(str(outcome), 0) + 1
    return Figures(
        len(delays),
        fmean(delays),
        fmean(waits),
        len(delays) / makespan,
        makespan,
        busy / (record.cores * makespan),
        sorted(delays)[int(0.95 * (len(delays) - 1))],
        {model: fmean(values) for model, values in sorted(by_model.items())},
        outcomes,
    )
