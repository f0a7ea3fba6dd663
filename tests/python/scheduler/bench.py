"""A scheduler at hand: submits by short names, and tells what was decided."""

from __future__ import annotations

from collections.abc import Sequence

from privet.scheduler import (
    GIB,
    Action,
    Demand,
    Ended,
    Fcfs,
    Key,
    Limits,
    Machine,
    MaterialGone,
    Outcome,
    Phase,
    Policy,
    Profiles,
    Scheduler,
    Start,
    Stop,
    Submission,
)

FOUR_CORES = (Machine("here", 4, 8 * GIB),)


def table() -> Profiles:
    """Models of suite `fss`: `small` (1 core, 1 GiB), `wide` (4 cores), `heavy` (1 core, 6 GiB);
    T_pre takes 10 s, T_on 4 s, entries 100 bytes."""
    profiles = Profiles()
    for model, cores, memory in (("small", 1, GIB), ("wide", 4, GIB), ("heavy", 1, 6 * GIB)):
        profiles.set(Key(model, "fss", 1, Phase.PRE), Demand(cores, memory, 10.0, 100))
        profiles.set(Key(model, "fss", 1, Phase.ON), Demand(cores, memory, 4.0))
    return profiles


class Bench:
    """A scheduler, its clock, and all actions so far."""

    def __init__(
        self,
        policy: Policy | None = None,
        machines: Sequence[Machine] = FOUR_CORES,
        limits: Limits | None = None,
        profiles: Profiles | None = None,
    ) -> None:
        self.scheduler = Scheduler(machines, profiles or table(), policy or Fcfs(), limits)
        self.now = 0.0
        self.actions: list[Action] = []

    def decide(self) -> list[Action]:
        """Decides now."""
        actions = self.scheduler.decide(self.now)
        self.actions += actions
        return actions

    def submit(
        self,
        id: str,
        model: str = "small",
        batch: int = 1,
        to: str | None = None,
        client: str = "alice",
        timeout: float | None = None,
        deadline: float | None = None,
        ready: bool = False,
    ) -> list[Action]:
        """Submits a request (a notice if `id` begins with n) and decides."""
        notice = id.startswith("n")
        self.scheduler.submit(
            self.now,
            Submission(id, client, model, "fss", batch, notice, to, timeout, deadline, ready=ready),
        )
        return self.decide()

    def wait(self, seconds: float) -> list[Action]:
        """Lets time pass, then decides."""
        self.now += seconds
        return self.decide()

    def finish(self, *jobs: str) -> list[Action]:
        """Jobs do their work."""
        for job in jobs:
            self.scheduler.finished(self.now, job)
        return self.decide()

    def fail(self, job: str, rerun: bool = False) -> list[Action]:
        """A job breaks."""
        self.scheduler.failed(self.now, job, "it broke", rerun)
        return self.decide()

    @property
    def running(self) -> list[str]:
        """Jobs that run."""
        return [run.job for run in self.scheduler.snapshot(self.now).running]

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """How submissions ended."""
        return {action.id: action.outcome for action in self.actions if isinstance(action, Ended)}

    def starts(self, actions: Sequence[Action] | None = None) -> list[str]:
        """Jobs started, by `actions` or ever."""
        source = self.actions if actions is None else actions
        return [action.job for action in source if isinstance(action, Start)]

    def places(self) -> dict[str, str]:
        """The machine of each job that was ever started."""
        return {action.job: action.machine for action in self.actions if isinstance(action, Start)}

    def stops(self) -> list[str]:
        """Jobs that were told to stop."""
        return [action.job for action in self.actions if isinstance(action, Stop)]

    def gone(self) -> list[tuple[str, str]]:
        """Material entries that are gone, and why."""
        return [
            (action.material, action.reason)
            for action in self.actions
            if isinstance(action, MaterialGone)
        ]

    def queues(self) -> dict[str, list[str]]:
        """The four queues, by the ids of requests or notices."""
        snapshot = self.scheduler.snapshot(self.now)
        return {
            name: [entry.request or entry.notice or "" for entry in getattr(snapshot, name).first]
            for name in ("pre", "transit", "waiting", "ready")
        }
