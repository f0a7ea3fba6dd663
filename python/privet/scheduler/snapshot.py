"""The scheduler's state for people: page, metrics, command line. Times in seconds on its clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privet.scheduler.submission import Outcome, PlacedJob


@dataclass(frozen=True)
class Queued:
    """A job pair in a queue since `since`; `request` is None for a notice without its request."""

    request: str | None
    notice: str | None
    client: str
    model: str
    suite: str
    batch: int
    since: float


@dataclass(frozen=True)
class QueueLine:
    """A queue: how many wait in it, and the first of them, those that wait longest."""

    length: int
    first: tuple[Queued, ...]


@dataclass(frozen=True)
class RunningStatus(PlacedJob):
    """A job that runs: since `started`, to end at about `expected_end`, by `limit_end` at the
    latest. `stopping`: told to stop."""

    started: float
    expected_end: float
    limit_end: float
    stopping: bool = False


@dataclass(frozen=True)
class MachineLoad:
    """A machine: its cores and bytes, and how many of them are taken; `draining`, it is taken out
    as soon as its jobs have ended."""

    name: str
    cores: int
    memory: int
    cores_taken: int
    memory_taken: int
    draining: bool


@dataclass(frozen=True)
class SchedulerCounters:
    """Counts since the start. `requests` and `notices` were admitted. `material`: entries made,
    used, expired, lost with a machine, or given up by a job that failed with them (used before)."""

    requests: int
    notices: int
    refused: Mapping[str, int]
    ended: Mapping[Outcome, int]
    jobs: Mapping[str, int]
    material: Mapping[str, int]


@dataclass(frozen=True)
class Snapshot:
    """Everything at one time; the queues bear the paper's names.

    `pre`: T_pre not started; `transit`: a notice's material ready, no request yet; `waiting`: a
    request whose notice is still being prepared; `ready`: T_on not started. A request in `waiting`
    whose notice has not started is in `pre`, too. `stock` and `announced`: unclaimed entries and
    those in `transit`, by (client, model, suite, batch).
    """

    now: float
    policy: str
    draining: bool
    drained: bool
    pre: QueueLine
    transit: QueueLine
    waiting: QueueLine
    ready: QueueLine
    running: tuple[RunningStatus, ...]
    machines: tuple[MachineLoad, ...]
    stock: Mapping[tuple[str, str, str, int], int]
    announced: Mapping[tuple[str, str, str, int], int]
    counters: SchedulerCounters
