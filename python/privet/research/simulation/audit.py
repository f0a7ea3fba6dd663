"""A second opinion on every decision: what must hold, whatever the scheduler believes.

`Audit` keeps its own books from the events and actions alone, shares no code with the scheduler,
and raises `Violation` at the first action that breaks a rule.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from privet.errors import PrivetError
from privet.scheduler import (
    Action,
    Drained,
    Ended,
    JobStream,
    Machine,
    MaterialGone,
    Outcome,
    Phase,
    Probe,
    Start,
    Stop,
    Submission,
    TakeBack,
)


class Violation(PrivetError):
    """The scheduler broke a rule."""


@dataclass
class Host:
    """What a machine runs: who has each core, the bytes of each job, and those set `aside`;
    `draining`, it gets only jobs whose material lies there."""

    machine: Machine
    cores: dict[int, str] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    aside: int = 0
    draining: bool = False


class Audit:
    """The books of one run. Call a method for each event, in the order of time, then `actions`."""

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}
        self.admitted: dict[str, Submission] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.running: dict[str, Start] = {}
        self.stopped: set[str] = set()
        self.taken_back: set[str] = set()
        self.parked: set[str] = set()
        self.entries: dict[str, tuple[JobStream, str]] = {}
        self.spent_entries: set[str] = set()
        self.events = 0
        self.listening: set[str] | None = None
        self._jobs: set[str] = set()
        self._due: list[tuple[float, str]] = []
        self._inferred: dict[str, int] = {}
        self._leases: list[tuple[float, str]] = []

    # Events -------------------------------------------------------------------------------------

    def joined(self, machine: Machine) -> None:
        self.events += 1
        self.hosts[machine.name] = Host(machine)

    def machine_lost(self, name: str) -> list[str]:
        """A machine is gone, with its jobs and entries; the jobs."""
        self.events += 1
        del self.hosts[name]
        jobs = [job for job, start in self.running.items() if start.machine == name]
        for job in jobs:
            del self.running[job]
        lost_entries = [entry for entry, (_, machine) in self.entries.items() if machine == name]
        self.spent_entries.update(lost_entries)
        for entry in lost_entries:
            del self.entries[entry]
        return jobs

    def drains(self, name: str, draining: bool) -> None:
        """A machine is taken out, or kept after all."""
        self.events += 1
        self.hosts[name].draining = draining

    def submitted(self, now: float, submission: Submission) -> None:
        """A submission was admitted at `now` (seconds)."""
        self.events += 1
        self.admitted[submission.id] = submission
        if submission.timeout is not None and not submission.notice:
            heapq.heappush(self._due, (now + submission.timeout, submission.id))

    def listens(self, client: str, is_listening: bool) -> None:
        """A client began or ceased to listen; from the first such event on, jobs start for those
        alone that do."""
        self.events += 1
        self.listening = self.listening or set()
        (self.listening.add if is_listening else self.listening.discard)(client)

    def stock_found(self, material: str, stream: JobStream, machine: str) -> None:
        """A material entry from an earlier run."""
        self.events += 1
        self.entries[material] = (stream, machine)

    def park(self, now: float, job: str) -> None:
        """A T_pre alone gives its cores back at `now` and keeps its memory."""
        self.events += 1
        start = self.running[job]
        self._leave_cores(start)
        self.parked.add(job)
        heapq.heappush(self._leases, (now + self.admitted[start.request].lease, job))

    def set_aside(self, machine: str, memory: int) -> None:
        """Jobs may have so many bytes less."""
        self.events += 1
        self.hosts[machine].aside += memory

    def over(self, job: str, material: str | None = None) -> None:
        """A job ended; one that did its work left `material` (any name for a T_on), a failed one
        none."""
        self.events += 1
        start = self.running.pop(job)
        if job not in self.parked:
            self._leave_cores(start)
        self.parked.discard(job)
        del self.hosts[start.machine].memory[job]
        submission = self.admitted.get(start.request)
        if start.phase is Phase.ON:
            if material is not None:
                total = self._inferred.get(start.request, 0) + start.batch
                self._inferred[start.request] = total
        elif material is not None and (submission is None or submission.only is None):
            self.entries[material] = (_stream(start), start.machine)

    def _leave_cores(self, start: Start) -> None:
        for core in start.cores:
            del self.hosts[start.machine].cores[core]

    # Actions ------------------------------------------------------------------------------------

    def actions(self, now: float, actions: Iterable[Action]) -> None:
        """Checks what the scheduler decided at `now`, and that no timeout is past."""
        for action in actions:
            self.events += 1
            match action:
                case Start():
                    self._start(action)
                case Stop(job=job):
                    _require(job in self.running, f"{job} is stopped but does not run")
                    _require(job not in self.stopped, f"{job} is stopped twice")
                    self.stopped.add(job)
                case Probe(client=client):
                    _require(client in (self.listening or ()), f"{client} is asked and is away")
                case TakeBack(job=job):
                    _require(job in self.running, f"{job} is taken back but does not run")
                    _require(job not in self.taken_back, f"{job} is taken back twice")
                    self.taken_back.add(job)
                case Ended():
                    self._ended(action)
                case Drained(machine=name):
                    _require(self.hosts[name].draining, f"{name} goes, and nobody took it out")
                    self.drains(name, False)
                    _require(not self.machine_lost(name), f"{name} goes while jobs run there")
                case MaterialGone(material=material):
                    self.entries.pop(material, None)
                    self.spent_entries.add(material)
        while self._due and self._due[0][0] <= now:
            _, id = heapq.heappop(self._due)
            _require(id in self.outcomes, f"{id} should have timed out")
        while self._leases and self._leases[0][0] <= now:
            _, job = heapq.heappop(self._leases)
            expected = job in self.stopped or job not in self.running
            _require(expected, f"{job} rests longer than its lease")

    def _start(self, start: Start) -> None:
        host = self.hosts.get(start.machine)
        _require(host is not None, f"{start.job} starts on a machine that is gone")
        assert host is not None
        _require(start.job not in self._jobs, f"the job id {start.job} comes twice")
        self._jobs.add(start.job)
        _require(bool(start.cores), f"{start.job} has no core")
        for core in start.cores:
            _require(0 <= core < host.machine.cores, f"{start.job} has core {core}")
            _require(core not in host.cores, f"core {core} of {start.machine} is taken")
            host.cores[core] = start.job
        host.memory[start.job] = start.memory
        memory = sum(host.memory.values())
        limit = host.machine.memory - host.aside
        _require(memory <= limit, f"{memory} bytes on {start.machine} are too many")
        self.running[start.job] = start
        pinned = start.material is not None or self._names(start)
        _require(pinned or not host.draining, f"{start.job} starts on a machine that is drained")
        self._serves(start)
        if start.phase is Phase.ON:
            self._uses(start)

    def _names(self, start: Start) -> bool:
        """Whether the submission that a job serves named its machine."""
        submission = self.admitted.get(start.request)
        return submission is not None and bool(submission.machine)

    def _serves(self, start: Start) -> None:
        """The submission that a job serves is live and asked for it."""
        submission = self.admitted.get(start.request)
        if submission is None:
            ahead = start.phase is Phase.PRE and start.request.startswith("ahead-")
            _require(ahead, f"nobody asked for {start.job}")
            self._hears(start)
            return
        request_key = (submission.client, submission.model, submission.suite)
        start_key = (start.client, start.model, start.suite)
        _require(request_key == start_key, f"{start.job} is not what {start.request} asked for")
        _require(start.request not in self.outcomes, f"{start.job} starts after its request ended")
        if start.phase is Phase.ON:
            _require(not submission.notice, f"{start.job} infers for a notice")
        if submission.only is not None:
            _require(start.phase is submission.only, f"{start.job} is of another phase")
        if submission.machine:
            _require(start.machine == submission.machine, f"{start.job} is elsewhere")
        else:
            self._hears(start)

    def _hears(self, start: Start) -> None:
        """The client that must come for a job listens."""
        is_listening = self.listening is None or start.client in self.listening
        _require(is_listening, f"{start.job} starts, and its client is away")

    def _uses(self, start: Start) -> None:
        """The entry of a T_on was made, for this, here, and never used."""
        if self.admitted[start.request].only is not None:
            _require(start.material is None, f"{start.job} is alone and uses material")
            return
        material = start.material or ""
        _require(material not in self.spent_entries, f"{start.job} uses {material} again")
        _require(material in self.entries, f"{start.job} starts before its T_pre is over")
        stream, machine = self.entries.pop(material)
        self.spent_entries.add(material)
        _require(stream == _stream(start), f"{material} was made for {stream}")
        _require(machine == start.machine, f"{material} lies on {machine}")

    def _ended(self, ended: Ended) -> None:
        submission = self.admitted.get(ended.id)
        _require(submission is not None, f"{ended.id} ends but was not admitted")
        _require(ended.id not in self.outcomes, f"{ended.id} ends twice")
        self.outcomes[ended.id] = ended.outcome
        assert submission is not None
        if ended.outcome is Outcome.DONE and not submission.notice:
            samples = self._inferred.pop(ended.id, 0)
            _require(samples == submission.batch, f"{ended.id} is done after {samples} samples")

    def closed(self) -> None:
        """At the end of a drain: everything ended and nothing runs."""
        unended = [id for id in self.admitted if id not in self.outcomes]
        _require(not unended, f"never ended: {unended[:5]}")
        _require(not self.running, f"still running: {list(self.running)[:5]}")


def _stream(start: Start) -> JobStream:
    return JobStream(start.client, start.model, start.suite, start.batch)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise Violation(message)
