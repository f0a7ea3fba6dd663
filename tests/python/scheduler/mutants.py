"""Schedulers broken on purpose, one mistake each; the properties must notice every one.

Each mutant changes one method by way of `change(owner, name, replacement)`, as pytest's monkeypatch
does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from privet.scheduler import Drained, draining, progress, state
from privet.scheduler.clients import Clients
from privet.scheduler.machine import FreeResources
from privet.scheduler.material import Material, MaterialEntry
from privet.scheduler.pairs import Pair, PairStage, SubmissionState
from privet.scheduler.placement import Placement
from privet.scheduler.policies import JobStream
from privet.scheduler.timers import Alarm, Timers

Change = Callable[[Any, str, Any], None]


def memory_is_not_counted(change: Change) -> None:
    """A job needs cores only."""
    change(FreeResources, "fits", lambda self, cores, memory: cores <= self.cores)


def a_core_is_lent_twice(change: Change) -> None:
    """Lends the lowest cores, whoever has them."""

    def take(self: FreeResources, cores: int, memory: int) -> tuple[int, ...]:
        self.memory -= memory
        return tuple(range(cores))

    change(FreeResources, "take", take)


def cores_are_free_at_the_stop(change: Change) -> None:
    """Frees what a stopped job has before it is over."""
    stop = state.State.stop

    def freed(self: state.State, pair: Pair, reason: str) -> None:
        stop(self, pair, reason)
        self.leave(pair.since, pair.job or "")

    change(state.State, "stop", freed)


def an_entry_stays_in_stock(change: Change) -> None:
    """Takes an entry and leaves it there."""

    def take(self: Material, stream: JobStream) -> MaterialEntry | None:
        return next((entry for entry in self.unused() if entry.stream == stream), None)

    change(Material, "take", take)


def stock_is_everybodys(change: Change) -> None:
    """Gives a client the entry of another."""

    original = Material.take

    def take(self: Material, stream: JobStream) -> MaterialEntry | None:
        fits = (entry for entry in self.free() if entry.model == stream.model)
        return original(self, next(fits, stream))

    change(Material, "take", take)


def stock_survives_its_machine(change: Change) -> None:
    """Keeps the entries of a lost machine."""
    change(Material, "unclaimed", lambda self, machine: [])


def a_failed_t_on_starts_again(change: Change) -> None:
    """Runs a T_on again with the same entry."""
    original = progress._rerun

    def resumed(at: state.State, now: float, pair: Pair, reason: str, rerun: bool) -> None:
        original(at, now, pair, reason, rerun)
        if pair.stage is PairStage.PRE and "on#" in (pair.job or "") and at.resources:
            at.queues.remove(pair)
            pair.machine, pair.material = next(iter(at.resources)), (pair.job or "")
            at.enqueue(now, pair, PairStage.READY)

    change(progress, "_rerun", resumed)


def t_on_runs_anywhere(change: Change) -> None:
    """Forgets where the material lies."""
    find = Placement.find
    change(Placement, "find", lambda self, demand, pinned, lease: find(self, demand, None, lease))


def timeouts_are_forgotten(change: Change) -> None:
    """Sets no alarm for a submission's timeout."""
    original = Timers.set

    def some(self: Timers, alarm: Alarm, name: str, at: float) -> None:
        if alarm is not Alarm.TIMEOUT:
            original(self, alarm, name, at)

    change(Timers, "set", some)


def a_request_ends_with_its_first_batch(change: Change) -> None:
    """Counts all pairs of a request as one."""
    change(state.State, "close_pairs", lambda self, entry, count: setattr(entry, "open", 0))


def a_submission_may_end_again(change: Change) -> None:
    """Forgets that a submission has ended."""
    end = state.State.end

    def repeated(self: state.State, now: float, entry: SubmissionState, *rest: Any) -> None:
        end(self, now, entry, *rest)
        entry.ended = False

    change(state.State, "end", repeated)


def a_lost_job_is_forgotten(change: Change) -> None:
    """Neither runs the jobs of a lost machine again nor fails them."""
    change(progress, "_running_on", _dropped)


def a_session_that_rests_gives_its_memory_back(change: Change) -> None:
    """Frees with the cores what the keys take."""
    park = state.State.park

    def freed(self: state.State, now: float, job: str) -> state.RunState | None:
        run = park(self, now, job)
        if run is not None and run.status.machine in self.resources:
            self.resources[run.status.machine].release((), run.status.memory)
            run.status = replace(run.status, memory=0)
        return run

    change(state.State, "park", freed)


def sessions_last_for_ever(change: Change) -> None:
    """Lets a session keep its memory beyond its lease."""
    park = state.State.park

    def kept(self: state.State, now: float, job: str) -> state.RunState | None:
        run = park(self, now, job)
        self.timers.drop(Alarm.LIMIT, job)
        return run

    change(state.State, "park", kept)


def what_is_set_aside_is_lent(change: Change) -> None:
    """Forgets what jobs may not have."""
    change(FreeResources, "set_aside", lambda self, memory: None)


def jobs_start_for_clients_that_are_away(change: Change) -> None:
    """Takes every client to be there."""
    change(Clients, "listens", lambda self, client: True)


def a_drained_machine_takes_jobs(change: Change) -> None:
    """Lends a machine to all, though it is being taken out."""
    change(FreeResources, "is_for", lambda self, machine: machine in (None, self.machine.name))


def a_drained_machine_goes_at_once(change: Change) -> None:
    """Takes a machine out in the middle of its jobs."""

    def release_drained(at: state.State) -> bool:
        for name in [name for name, free in at.resources.items() if free.draining]:
            at.remove_machine(name)
            at.outbox.append(Drained(name))
        return False

    change(draining, "release_drained", release_drained)


def _dropped(at: state.State, now: float, machine: str) -> list[Pair]:
    for job, run in list(at.running.items()):
        if run.status.machine == machine:
            at.leave(now, job)
            if run.pair.request is None and run.pair.maker.ahead:
                progress._unlist(at, run.pair)
            run.pair.stage = PairStage.OVER
    return []


MUTANTS = (
    memory_is_not_counted,
    a_core_is_lent_twice,
    cores_are_free_at_the_stop,
    an_entry_stays_in_stock,
    stock_is_everybodys,
    stock_survives_its_machine,
    a_failed_t_on_starts_again,
    t_on_runs_anywhere,
    timeouts_are_forgotten,
    a_request_ends_with_its_first_batch,
    a_submission_may_end_again,
    a_lost_job_is_forgotten,
    a_session_that_rests_gives_its_memory_back,
    sessions_last_for_ever,
    what_is_set_aside_is_lent,
    jobs_start_for_clients_that_are_away,
    a_drained_machine_takes_jobs,
    a_drained_machine_goes_at_once,
)
