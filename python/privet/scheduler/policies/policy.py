"""What a policy is: an order of the jobs that wait, and perhaps wishes for material ahead.

The order is a key that a job gets when it enters a queue and keeps while it waits. That costs
nothing: a score `length - beta * age` falls for all jobs at one pace, so jobs stay in the order of
`length + beta * arrival`; slack and fair shares are static in the same way. The scheduler can then
keep its queues in heaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from privet.scheduler.machine import FreeResources
from privet.scheduler.profiles import Demand, Key, Profiles
from privet.scheduler.snapshot import RunningStatus
from privet.scheduler.submission import Phase, Submission


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that enters a queue, as a policy sees it. Times in seconds on the scheduler's clock.

    `arrived`: when its request (or notice) was submitted; `queued`: when the job entered this
    queue. `seconds`: estimated length; `remaining_seconds`: the same and that of the T_on still to
    follow. It `is_requested` if a request waits for it, so it is no T_pre for a notice or made
    ahead.
    """

    client: str
    model: str
    suite: str
    batch: int
    phase: Phase
    arrived: float
    queued: float
    cores: int
    seconds: float
    remaining_seconds: float
    is_requested: bool
    deadline: float | None


@dataclass(frozen=True, slots=True)
class JobStream:
    """Requests that the same material serves."""

    client: str
    model: str
    suite: str
    batch: int

    def job(self, phase: Phase) -> Key:
        """The kind of its job of a phase, for the profiles."""
        return Key(self.model, self.suite, self.batch, phase)


@dataclass(frozen=True)
class View:
    """What a policy sees when it may wish: `free` entries (made or being made) that nobody claimed,
    by stream; `bytes` and `cores` that entries made ahead take now; and the machines' rooms."""

    free: Mapping[JobStream, int]
    bytes: int
    cores: int
    resources: Mapping[str, FreeResources]
    profiles: Profiles


@dataclass(frozen=True, slots=True)
class Capacity:
    """Cores, and bytes of memory, of all machines together."""

    cores: int
    memory: int


class Policy:
    """Base of the policies: order of arrival, no wishes."""

    name = "policy"
    #: Whether any T_on that fits goes before every T_pre.
    online_first = True
    #: Whether clients have shares: `share` then comes before the order of jobs.
    by_client = False

    @property
    def may_wish(self) -> bool:
        """Whether `wishes` may give anything: else no decision asks for it."""
        return type(self).wishes is not Policy.wishes

    def share(self, client: str) -> float:
        """How much a client had so far; clients with less go first. It may rise while a decision is
        made, and must not fall then."""
        return 0.0

    def key(self, job: Candidate) -> float:
        """The place of `job` in its queues: lower goes first, equals by order of entry."""
        return job.queued

    def claimed(self, job: Candidate, key: float) -> float:
        """The new place of a queued T_pre for a notice, whose request has come; `key` so far."""
        return key

    def submitted(self, now: float, submission: Submission, batches: Iterable[int]) -> None:
        """A request or notice was admitted, split into job pairs of `batches` samples."""

    def present(self, now: float, client: str, present: bool) -> None:
        """A client came or went; none is there before it came."""

    def began(self, now: float, run: RunningStatus) -> None:
        """A job was started."""

    def ended(self, now: float, run: RunningStatus) -> None:
        """A job is over, or gives its cores back; `run` is as when it was started."""

    def cores(self, demand: Demand, jobs: int, total: Capacity) -> int:
        """How many cores to give to a job that could use `demand.cores`, from 1 to that, while
        `jobs`, those made ahead aside, run or could run on machines of that `total` capacity."""
        return demand.cores

    def wishes(self, now: float, view: View) -> list[JobStream]:
        """Entries to make ahead now, most wanted first. The scheduler starts those that fit, and
        asks again until it starts none."""
        return []

    def next_event_at(self, now: float) -> float | None:
        """When `wishes` may change although nothing happens, in seconds; None for never."""
        return None


class Over(Policy):
    """A policy that changes something about another; all else is as `order` says."""

    def __init__(self, name: str, order: Policy) -> None:
        self.name = f"{name}+{order.name}"
        self.online_first, self.by_client = order.online_first, order.by_client
        self.order = order

    @property
    def may_wish(self) -> bool:
        return type(self).wishes is not Over.wishes or self.order.may_wish

    def share(self, client: str) -> float:
        return self.order.share(client)

    def key(self, job: Candidate) -> float:
        return self.order.key(job)

    def claimed(self, job: Candidate, key: float) -> float:
        return self.order.claimed(job, key)

    def submitted(self, now: float, submission: Submission, batches: Iterable[int]) -> None:
        self.order.submitted(now, submission, batches)

    def present(self, now: float, client: str, present: bool) -> None:
        self.order.present(now, client, present)

    def began(self, now: float, run: RunningStatus) -> None:
        self.order.began(now, run)

    def ended(self, now: float, run: RunningStatus) -> None:
        self.order.ended(now, run)

    def cores(self, demand: Demand, jobs: int, total: Capacity) -> int:
        return self.order.cores(demand, jobs, total)

    def wishes(self, now: float, view: View) -> list[JobStream]:
        return self.order.wishes(now, view)

    def next_event_at(self, now: float) -> float | None:
        return self.order.next_event_at(now)
