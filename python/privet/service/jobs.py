"""The jobs that clients asked for, as clients see them, and how clients wait for updates.

A client's jobs share one count of changes: it tells a client that polls which updates it has seen,
and nothing about other clients. Who waits is told at once what it can act on: a job that it comes
to, material that lies ready, an end. Other changes go with the next of these.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal

from privet import tracing
from privet.service.repository import SuiteChoice, Version

Kind = Literal["notice", "request", "ahead", "session", "fetch"]
"""An advance notice, a request for an inference, material that the service offers to make, the
keys of a session, or encrypted weights for a client that keeps them."""

State = Literal["queued", "preparing", "prepared", "inferring", "fetching", "ended"]
"""`prepared`: the material is ready. A notice then is done and waits for its request; a request
waits for its turn. A session then has its keys."""

KEPT = 200
"""Jobs of one client that are remembered, those that ended among them."""

MOST_ENDED = 5_000
"""Jobs of all clients that are remembered after their end; the oldest go first."""


@dataclass(frozen=True)
class WorkerLease:
    """Leave to run one job now: connect to `host` and `port`, and prepare, infer or fetch.

    `server_name` is in the certificate there. `program` is the hash to expect, `suite` the label of
    the plan, `material` the entry to use (none to prepare), `samples` how many go through at most.
    The client must have asked within `grace` seconds; the job is killed
    `seconds` after that. Suites with a dealer find it at `dealer`.
    """

    job: str
    phase: Literal["prepare", "infer", "fetch"]
    host: str
    port: int
    server_name: str
    program: str
    suite: str
    material: str | None
    samples: int
    grace: float
    seconds: float
    dealer: str | None

    def document(self) -> dict[str, Any]:
        """As clients get it."""
        return vars(self).copy()


@dataclass(slots=True)
class Job:
    """A notice or a request. `created` and `ended` are in seconds since 1970, `done` counts the
    samples whose material is made (of a notice) or that are inferred (of a request); `notice` is
    what announced a request, or the session that it is made in; `waited` is
    how many seconds passed until the first inference started, `key` is the client's name for the
    call that made it, `sequence` the number of its latest change, `notable` that of the latest that
    clients hear of at once, `trace` the span of that call."""

    id: str
    client: str
    kind: Kind
    version: Version
    choice: SuiteChoice
    samples: int
    notice: str | None
    created: float
    key: str | None = None
    state: State = "queued"
    outcome: str | None = None
    reason: str = ""
    ended: float | None = None
    done: int = 0
    waited: float | None = None
    sequence: int = 0
    notable: int = 0
    trace: str | None = field(default_factory=tracing.current)
    leases: dict[str, WorkerLease] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether there is work to do that its client asked for: it has not ended, is no notice
        whose material lies ready, no session that has its keys, and nothing that is made ahead."""
        if self.kind == "ahead" or self.state == "ended":
            return False
        return self.kind in ("request", "fetch") or self.state != "prepared"

    def document(self) -> dict[str, Any]:
        """As clients get it; of itself it holds nothing about other clients or the schedule."""
        return {
            "id": self.id,
            "kind": self.kind,
            "model": self.version.model,
            "version": self.version.number,
            "program": self.version.program.program_hash,
            **self.choice.facts,
            "calibration": self.version.program.calibration,
            "samples": self.samples,
            "notice": self.notice,
            "state": self.state,
            "done": self.done,
            "go": [lease.document() for lease in self.leases.values()],
            "outcome": self.outcome,
            "reason": self.reason,
            "sequence": self.sequence,
        }


class Jobs:
    """All jobs that live, and the latest that ended."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._live: dict[str, Job] = {}
        self._open: dict[str, Job] = {}
        self._open_of: Counter[str] = Counter()
        self._open_for: Counter[tuple[str, str]] = Counter()
        self._clients: dict[str, dict[str, Job]] = defaultdict(dict)
        self._ended: dict[str, Job] = {}
        self._keys: dict[tuple[str, str], Job] = {}
        self._sequences: dict[str, int] = defaultdict(int)
        self._notable: dict[str, int] = defaultdict(int)
        # The calls of each client that wait, and how each is ended.
        self._waiting: dict[str, dict[asyncio.Event, Callable[[], None]]] = defaultdict(dict)
        self._is_closing = False

    def add(self, job: Job) -> None:
        """Adds a job; its client is told of it."""
        self._jobs[job.id] = self._live[job.id] = job
        client_jobs = self._clients[job.client]
        client_jobs[job.id] = job
        if job.key is not None:
            self._keys[job.client, job.key] = job
        while len(client_jobs) > KEPT:
            oldest = next((id for id in client_jobs if id in self._ended), None)
            if oldest is None:
                break
            self._forget(client_jobs[oldest])
        while len(self._ended) > MOST_ENDED:
            self._forget(next(iter(self._ended.values())))
        self.changed(job)

    def _forget(self, job: Job) -> None:
        """Forgets a job that has ended."""
        del self._ended[job.id], self._jobs[job.id], self._clients[job.client][job.id]
        if job.key is not None:
            del self._keys[job.client, job.key]

    def find(self, id: str) -> Job | None:
        return self._jobs.get(id)

    def of_client(self, client: str, id: str) -> Job | None:
        """A client's own job by its id; None also for another client's."""
        return self._clients[client].get(id) if client in self._clients else None

    def keyed(self, client: str, key: str | None) -> Job | None:
        """The job that a client's call of that key made, if it is remembered."""
        return None if key is None else self._keys.get((client, key))

    def live(self) -> list[Job]:
        """The jobs that have not ended, the oldest first."""
        return list(self._live.values())

    def live_of(self, client: str) -> list[Job]:
        """A client's jobs that have not ended, in the order of their latest changes."""
        return [job for job in self._clients.get(client, {}).values() if job.state != "ended"]

    def open(self) -> list[Job]:
        return list(self._open.values())

    def count_open(self, model: str | None = None, client: str | None = None) -> int:
        """How many jobs are open: of all models, of one, or of one for a client."""
        if model is None:
            return len(self._open)
        return self._open_of[model] if client is None else self._open_for[client, model]

    def changed(self, job: Job, *, quietly: bool = False) -> None:
        """Tells the job's client that it changed; `quietly`, with what it is told next."""
        if job.state == "ended":
            self._live.pop(job.id, None)
        self._count(job)
        self._sequences[job.client] += 1
        job.sequence = self._sequences[job.client]
        client_jobs = self._clients[job.client]
        if job.id in client_jobs:
            client_jobs[job.id] = client_jobs.pop(job.id)  # the latest change stands last
            if job.state == "ended":
                self._ended.pop(job.id, None)
                self._ended[job.id] = job
        if not quietly:
            self._notable[job.client] = job.notable = job.sequence
            for event in self._waiting.get(job.client, ()):
                event.set()

    def _count(self, job: Job) -> None:
        """Counts open jobs: each new one is held to bounds on their numbers. One that has ended is
        none any more, whatever a machine that was lost still says of it."""
        is_open = job.is_open and job.id in self._live
        if is_open == (job.id in self._open):
            return
        if is_open:
            self._open[job.id] = job
        else:
            del self._open[job.id]
        model, step = job.version.model, 1 if is_open else -1
        self._open_of[model] += step
        self._open_for[job.client, model] += step
        if not self._open_for[job.client, model]:
            del self._open_for[job.client, model]

    def sequence(self, client: str) -> int:
        """How often a client's jobs have changed."""
        return self._sequences.get(client, 0)

    def updates(self, client: str, after: int) -> list[Job]:
        """A client's jobs that changed after number `after`, in that order; all that live if it is
        of another life of the service."""
        if after > self.sequence(client):
            return self.live_of(client)
        latest = reversed(self._clients.get(client, {}).values())
        return list(takewhile(lambda job: job.sequence > after, latest))[::-1]

    def _is_notable(self, client: str, after: int, id: str | None) -> bool:
        if id is None:
            return self._notable.get(client, 0) > after
        job = self.of_client(client, id)
        return job is not None and job.notable > after

    def waiting(self, client: str) -> int:
        """How many calls of a client wait for updates."""
        return len(self._waiting.get(client, ()))

    def leave(self) -> None:
        """Lets go of all who wait, now and later."""
        self._is_closing = True
        for events in self._waiting.values():
            for event in events:
                event.set()

    def end_polls(self, client: str) -> None:
        """Ends a client's calls that wait, as if their time was over: it calls again if it is
        there."""
        for end in self._waiting.get(client, {}).values():
            end()

    async def wait(self, client: str, after: int, seconds: float, id: str | None = None) -> None:
        """Waits until a job of the client, or its job `id`, has changed after number `after` in a
        way that it can act on; not at all if that is of another life of the service."""
        if after > self.sequence(client):
            return
        event, over = asyncio.Event(), False

        def end() -> None:
            nonlocal over
            over = True
            event.set()

        alarm = asyncio.get_running_loop().call_later(seconds, end)
        self._waiting[client][event] = end
        try:
            while not (self._is_closing or over or self._is_notable(client, after, id)):
                event.clear()
                await event.wait()
        finally:
            alarm.cancel()
            del self._waiting[client][event]
            if not self._waiting[client]:
                del self._waiting[client]
