"""A world of random machines, clients and failures around a scheduler, under audit."""

from __future__ import annotations

import random

from privet.errors import Misuse
from privet.research.simulation.audit import Audit, Violation
from privet.scheduler import (
    GIB,
    Action,
    Demand,
    JobStream,
    Key,
    Limits,
    Machine,
    Phase,
    Policy,
    Profiles,
    Refused,
    Scheduler,
    Submission,
    Usage,
)

MODELS = ("small", "middle", "large")
SUITES = ("fss", "gmw")
CLIENTS = ("alice", "bob", "carol")
MACHINES = (Machine("one", 4, 8 * GIB), Machine("two", 8, 6 * GIB), Machine("three", 2, 16 * GIB))


def profiles() -> Profiles:
    """Jobs of one to eight cores and up to 6 GiB; `middle` takes two samples at once."""
    table = Profiles()
    for suite in SUITES:
        table.set(Key("small", suite, 1, Phase.PRE), Demand(1, GIB, 2.0, 100))
        table.set(Key("small", suite, 1, Phase.ON), Demand(1, GIB // 2, 1.0))
        table.set(Key("middle", suite, 2, Phase.PRE), Demand(2, 2 * GIB, 5.0, 300))
        table.set(Key("middle", suite, 2, Phase.ON), Demand(3, GIB, 2.0))
        table.set_at_once("middle", suite, 2)
        table.set(Key("large", suite, 1, Phase.PRE), Demand(8, 5 * GIB, 20.0, 1000))
        table.set(Key("large", suite, 1, Phase.ON), Demand(4, 6 * GIB, 8.0))
    table.set(Key("keyed", "ckks", 1, Phase.PRE), Demand(1, 2 * GIB, 1.0))
    table.set(Key("keyed", "ckks", 1, Phase.ON), Demand(2, GIB, 3.0))
    return table


def limits(seed: int) -> Limits:
    """Small bounds, so that they are met; some worlds keep no room or bound each model's jobs."""
    return Limits(
        reserve=seed % 4 != 3,
        jobs_per_model=2 if seed % 5 == 2 else None,
        absent_seconds=40.0 if seed % 3 == 1 else None,
        job_floor=20.0,
        patience=300.0,
        material_seconds=600.0,
        homeless_seconds=50.0,
        queue=400,
        queue_per_client=200,
    )


class World:
    """Drives a scheduler by random events and audits what it decides. Times in seconds.

    `step` makes one event, then decides. Every decision is audited; `finish` drains.
    """

    def __init__(self, policy: Policy, seed: int) -> None:
        self.now = 0.0
        self.random = random.Random(seed)
        self.audit = Audit()
        self.scheduler = Scheduler(MACHINES[:2], profiles(), policy, limits(seed))
        for machine in MACHINES[:2]:
            self.audit.joined(machine)
        for client in CLIENTS[:2]:
            self.scheduler.client_present(0.0, client, True)
        self._watched = limits(seed).absent_seconds is not None
        if self._watched:
            self._listens(CLIENTS[0], True)
        self.log: list[Action] = []
        self.refused = 0
        self._count = 0
        self._stopping: set[str] = set()
        self._late: set[str] = set()

    # Events -------------------------------------------------------------------------------------

    def step(self) -> None:
        """One random event."""
        weights = (30, 50, 12, 3, 0.4, 2, 0.5, 0.5, 0.5, 6, 0.5, 1)
        (event,) = self.random.choices(self.EVENTS, weights)
        event(self)

    def submit(self) -> None:
        """A request, a notice, or a request that refers to whatever there is, fitting or not."""
        self._count += 1
        pick = self.random
        client, model, suite = pick.choice(CLIENTS), pick.choice(MODELS), pick.choice(SUITES)
        batch, notice, refers = pick.choice((1, 1, 1, 2, 5)), pick.random() < 0.3, None
        if not notice and pick.random() < 0.4 and self._notices():
            refers = pick.choice(self._notices())
            reference = self.audit.admitted.get(refers)
            if reference is not None and pick.random() < 0.9:
                client, model, suite, batch = (
                    reference.client,
                    reference.model,
                    reference.suite,
                    reference.batch,
                )
        timeout = pick.choice((None, None, 3.0, 60.0, 1000.0))
        deadline = pick.choice((None, self.now + 30.0))
        self.send(
            Submission(
                f"s{self._count}",
                client,
                model,
                suite,
                batch,
                notice,
                refers,
                timeout,
                deadline,
                ready=not notice and self._count % 8 == 7,
            )
        )

    def submit_alone(self) -> None:
        """A session's keys, or an inference in one, on a machine that may be gone; or an inference
        that needs no material, on any."""
        self._count += 1
        pick = self.random
        keys, client = pick.random() < 0.4, pick.choice(CLIENTS)
        self.send(
            Submission(
                f"s{self._count}",
                client,
                "keyed",
                "ckks",
                notice=keys,
                timeout=None if keys else pick.choice((None, 60.0)),
                only=Phase.PRE if keys else Phase.ON,
                machine=pick.choice(MACHINES).name if keys or pick.random() < 0.7 else "",
                lease=pick.choice((5.0, 100.0)) if keys else 0.0,
            )
        )

    def set_aside(self) -> None:
        """Something else takes memory, or gives it back."""
        if self.audit.hosts:
            name = self.random.choice(list(self.audit.hosts))
            bytes = GIB if self.audit.hosts[name].aside <= 0 else -GIB
            self.scheduler.set_aside(self.now, name, bytes)
            self.audit.set_aside(name, bytes)
            self.decide()

    def send(self, submission: Submission) -> bool:
        """Submits; whether it was admitted."""
        try:
            self.scheduler.submit(self.now, submission)
        except Refused:
            self.refused += 1
            return False
        self.audit.submitted(self.now, submission)
        self.decide()
        return True

    def end_job(self) -> None:
        """A job finishes or fails; those that were stopped mostly fail."""
        jobs = list(self.audit.running)
        if not jobs:
            return self.wait()
        job = self.random.choice(jobs)
        start = self.audit.running[job]
        was_stopped = job in self.audit.stopped
        self.now += self.random.random()
        alone = self.audit.admitted.get(start.request)
        keys = alone is not None and alone.only is Phase.PRE
        if keys and job not in self.audit.parked and self.random.random() < 0.8:
            self.audit.park(self.now, job)
            self.scheduler.park(self.now, job, Usage(1.0))
            return self.decide()
        if self.random.random() < (0.8 if was_stopped else 0.1):
            self.audit.over(job)
            rerun = self.random.random() < 0.5
            if self.random.random() < 0.3:
                self.scheduler.client_lapsed(self.now, start.client)
            self.scheduler.failed(self.now, job, "it broke", rerun)
        else:
            material = f"entry of {job}"
            self.audit.over(job, material)
            memory = int(start.memory * self.random.uniform(0.5, 1.0))
            usage = Usage(self.random.uniform(0.1, 20.0), memory, 100, len(start.cores))
            report = usage if self.random.random() < 0.5 else None
            entry = material if start.phase is Phase.PRE else None
            self.scheduler.finished(self.now, job, report, entry)
        return self.decide()

    def wait(self) -> None:
        """Time passes, at most to the next thing that is due."""
        if self._watched:
            self._lateness()
        next_time = self.now + self.random.choice((0.1, 1.0, 10.0, 100.0))
        due = self.scheduler.next_event_at()
        self.now = next_time if due is None else max(self.now, min(next_time, due))
        self.decide()

    def cancel(self) -> None:
        """Cancels something, live or not."""
        if self.audit.admitted:
            recent = list(self.audit.admitted)[-50:]
            self.scheduler.cancel(self.now, self.random.choice(recent))
            self.decide()

    def lose_machine(self) -> None:
        """A machine goes."""
        if self.audit.hosts:
            name = self.random.choice(list(self.audit.hosts))
            jobs = self.audit.machine_lost(name)
            self.scheduler.machine_lost(self.now, name)
            for job in jobs[:1]:
                self.scheduler.finished(self.now, job)
            self.decide()

    def join_machine(self) -> None:
        """A machine comes, perhaps one that was lost."""
        absent = [machine for machine in MACHINES if machine.name not in self.audit.hosts]
        if absent:
            machine = self.random.choice(absent)
            self.scheduler.machine_joined(self.now, machine)
            self.audit.joined(machine)
            self.decide()

    def drain_machine(self) -> None:
        """A machine is taken out, if it can be; or kept after all."""
        if self.audit.hosts:
            name = self.random.choice(list(self.audit.hosts))
            out = self.random.random() < 0.7
            try:
                if out:
                    self.scheduler.drain_machine(self.now, name)
                else:
                    self.scheduler.keep_machine(self.now, name)
            except Misuse:
                return
            self.audit.drains(name, out)
            self.decide()

    def find_entry(self) -> None:
        """An entry from an earlier run of the service."""
        if self.audit.hosts:
            self._count += 1
            host = self.random.choice(list(self.audit.hosts))
            stream = JobStream(self.random.choice(CLIENTS), "small", "fss", 1)
            self.scheduler.stock_found(self.now, f"found{self._count}", stream, host)
            self.audit.stock_found(f"found{self._count}", stream, host)
            self.decide()

    def lose_entry(self) -> None:
        """An entry is deleted outside, if nobody has claimed it."""
        if self.audit.entries:
            self.scheduler.stock_gone(self.now, self.random.choice(list(self.audit.entries)))
            self.decide()

    def change_presence(self) -> None:
        """A client comes or goes."""
        is_present = self.random.random() < 0.5
        self.scheduler.client_present(self.now, self.random.choice(CLIENTS), is_present)
        if self._watched:
            self._listens(self.random.choice(CLIENTS), self.random.random() < 0.7)
        self.decide()

    def _lateness(self) -> None:
        """The client of a job is late, once, or comes after all; somebody calls."""
        pick = self.random
        if self.audit.running:
            job = pick.choice(list(self.audit.running))
            if job in self._late:
                self.scheduler.client_came(self.now, job)
            else:
                self.scheduler.client_late(self.now, job)
            self._late.add(job)
        if pick.random() < 0.5:
            self.scheduler.client_polled(self.now, pick.choice(CLIENTS))

    def _listens(self, client: str, is_present: bool) -> None:
        self.scheduler.client_listens(self.now, client, is_present)
        self.audit.listens(client, is_present)

    def decide(self) -> None:
        """Decides, audits, and decides again: nothing may be left to do."""
        actions = self.scheduler.decide(self.now)
        self.audit.actions(self.now, actions)
        self.log.extend(actions)
        repeats = self.scheduler.decide(self.now)
        if repeats:
            raise Violation(f"a second decision at once still did {repeats[:3]}")

    def finish(self) -> None:
        """Drains: with machines there and jobs that end, all ends."""
        for machine in MACHINES:
            if machine.name not in self.audit.hosts:
                self.scheduler.machine_joined(self.now, machine)
                self.audit.joined(machine)
        for client in CLIENTS if self._watched else ():
            self._listens(client, True)
        self.scheduler.drain(self.now)
        self.decide()
        for _ in range(20_000):
            if self.scheduler.drained:
                break
            self.end_job()
        self.audit.closed()
        if not self.scheduler.drained:
            raise Violation("the drain does not end")

    def _notices(self) -> list[str]:
        recent = list(self.audit.admitted.values())[-60:]
        return [submission.id for submission in recent if submission.notice] + ["nobody's"]

    EVENTS = (
        submit,
        end_job,
        wait,
        cancel,
        lose_machine,
        join_machine,
        find_entry,
        lose_entry,
        change_presence,
        submit_alone,
        set_aside,
        drain_machine,
    )
