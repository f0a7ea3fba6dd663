"""The two-phase scheduler (SwiftSNNI, Section 4): a pure state machine over events.

It has no clock, no threads, no input or output and no randomness. The caller brings events with the
time at which they happened, in any unit-consistent clock of seconds that never runs back, and asks
`decide` what is to be done. The same events give the same decisions.

    scheduler = Scheduler([Machine("here", 4, 8 * GIB)], Profiles(), Fcfs())
    scheduler.submit(0.0, Submission("r1", client="alice", model="m1", suite="fss"))
    for action in scheduler.decide(0.0):
        ...                                   # Start("r1/pre#1", ...): run it
    scheduler.finished(2.5, "r1/pre#1", Usage(2.5))
    scheduler.decide(2.5)                     # MaterialReady(...), Start("r1/on#2", ...)
"""

from __future__ import annotations

from collections.abc import Iterable

from privet.errors import Misuse
from privet.scheduler import draining, lateness, progress, survey
from privet.scheduler.actions import Action
from privet.scheduler.admission import admit, check
from privet.scheduler.dispatch import Dispatch
from privet.scheduler.limits import Limits
from privet.scheduler.machine import Machine
from privet.scheduler.material import Material
from privet.scheduler.pairs import PairStage
from privet.scheduler.policies.policy import JobStream, Policy
from privet.scheduler.profiles import Profiles, Usage
from privet.scheduler.snapshot import Snapshot
from privet.scheduler.state import State
from privet.scheduler.submission import Outcome, Submission

BY_CLIENT = "cancelled by the client"


class Scheduler:
    """Decides which job runs when and where. All times are seconds on the caller's clock.

    After any event, call `decide`, and again at `next_event_at`.
    """

    def __init__(
        self,
        machines: Iterable[Machine] = (),
        profiles: Profiles | None = None,
        policy: Policy | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._state = State(profiles or Profiles(), policy or Policy(), limits or Limits())
        self._now = float("-inf")
        for machine in machines:
            self._state.add_machine(machine)

    @property
    def profiles(self) -> Profiles:
        """The profile table, which `finished` corrects."""
        return self._state.profiles

    # Submissions --------------------------------------------------------------------------------

    def submit(self, now: float, submission: Submission) -> None:
        """Admits a request or a notice. Raises `Refused` if it cannot be admitted; nothing has
        changed then."""
        self._at(now)
        admit(self._state, now, submission)

    def check(self, submission: Submission) -> None:
        """Raises `Refused` if a request or a notice cannot be admitted now; admits nothing."""
        check(self._state, submission)

    def cancel(self, now: float, id: str, reason: str = BY_CLIENT) -> bool:
        """Ends a submission as cancelled for this reason: its jobs stop, its material goes to the
        client's stock. A notice that is done is given up. False if there is none that can be
        cancelled: it ended before, or is a notice that a request has taken over."""
        self._at(now)
        entry = self._state.entries.get(id)
        if entry is None or entry.claimed:
            return False
        if not entry.ended:
            self._state.end(now, entry, Outcome.CANCELLED, reason)
            return True
        for pair in entry.pairs:
            pair.stage = PairStage.OVER
            self._state.material.release(now, pair)
        self._state.forget(entry, str(Outcome.CANCELLED))
        return True

    # Jobs ---------------------------------------------------------------------------------------

    def finished(
        self, now: float, job: str, measured: Usage | None = None, material: str | None = None
    ) -> None:
        """A job has done its work: frees its cores, corrects the profile by what was `measured`.
        `material` names the entry that a T_pre left (by default, as the job). A job that does not
        run any more, because its machine was lost, is ignored. Raises `Misuse` if there is an entry
        of that name already; nothing has changed then."""
        self._at(now)
        progress.finished(self._state, now, job, measured, material)

    def failed(
        self, now: float, job: str, reason: str, rerun: bool = False, keeps_material: bool = False
    ) -> None:
        """A job ended without a result: it broke, was killed at its limit, stopped, or its client
        did not come. Its material is given up, unless it `keeps_material`, which nobody touched and
        is free again. With `rerun`, its pair starts again from a fresh T_pre, a bounded number of
        times; else its submission fails for `reason`."""
        self._at(now)
        progress.failed(self._state, now, job, reason, rerun, keeps_material)

    def park(self, now: float, job: str, measured: Usage | None = None) -> None:
        """The T_pre of a submission that asked for it alone has done its work, and what it made
        stays in memory: frees its cores. Its memory is free again when `finished` or `failed` is
        called; when its lease is over it is told to stop."""
        self._at(now)
        progress.park(self._state, now, job, measured)

    def set_aside(self, now: float, machine: str, memory: int) -> bool:
        """Keeps `memory` bytes of a machine from jobs, for something else (a negative number gives
        back); whether they are free now, and not only when jobs have ended. No job starts before.
        Raises `Misuse` if the machine is unknown, or has no memory left for jobs then."""
        self._at(now)
        free = self._state.resources.get(machine)
        if free is None:
            raise Misuse(f"there is no machine {machine}")
        if memory >= free.usable_memory:
            raise Misuse(
                f"{memory} bytes are all that jobs have on {machine} "
                f"({free.usable_memory}), or more"
            )
        free.set_aside(memory)
        return free.memory >= 0

    def client_present(self, now: float, client: str, is_present: bool) -> None:
        """Whether `client` is there to take part in jobs that it did not ask for (material made
        ahead); it is not until it says so."""
        self._at(now)
        self._state.policy.present(now, client, is_present)

    def client_listens(self, now: float, client: str, is_listening: bool) -> None:
        """Whether a job that starts now would be told to `client` at once. With
        `Limits.absent_seconds` no client does until it says so; without, this changes nothing."""
        self._at(now)
        self._state.clients.set_listening(now, client, is_listening)
        self._state.watch(now, client)

    def party_waits(self, now: float, party: str, is_waiting: bool) -> None:
        """Whether `party` waits to take part in a job; once one that needs it has started, it does
        not until it says so again."""
        self._at(now)
        if is_waiting:
            self._state.parties.add(party)
        else:
            self._state.parties.discard(party)

    def client_polled(self, now: float, client: str) -> bool:
        """A client that listens has called, as only a process does that goes on; whether `decide`
        may find something to do for that."""
        self._at(now)
        return lateness.on_call(self._state, now, client)

    def client_late(self, now: float, job: str) -> None:
        """`job` was begun a while ago, and its client has not come. Unless that calls, the others
        who wait are asked whether they are there (`Probe`), and if any is, the job is taken back
        (`TakeBack`) and waits again. Nothing happens without `Limits.absent_seconds`."""
        self._at(now)
        lateness.on_late(self._state, now, job)

    def client_came(self, now: float, job: str) -> None:
        """The client of a job has come after all."""
        self._at(now)
        self._state.late.pop(job, None)

    def client_lapsed(self, now: float, client: str) -> None:
        """`client` was told to come to a job and did not, before the job is reported as failed."""
        self._at(now)
        self._state.clients.add_lapse(client)

    def lapses(self, client: str) -> int:
        """How often `client` has lapsed since a job of it was last done."""
        return self._state.clients.lapses(client)

    # Material -----------------------------------------------------------------------------------

    @property
    def material(self) -> Material:
        """All material, to be read."""
        return self._state.material

    def stock_found(
        self,
        now: float,
        material: str,
        stream: JobStream,
        machine: str,
        bytes: int = 0,
        age: float = 0.0,
    ) -> None:
        """Material of that size and age (in seconds) lies in the store of `machine`, never used.
        Without a size it counts as what a T_pre is expected to leave. Raises `Misuse` if the
        machine is unknown or the material is known."""
        self._at(now)
        if machine not in self._state.resources:
            raise Misuse(f"there is no machine {machine}")
        self._state.material.check_new(material)
        self._state.material.add_found(material, stream, machine, bytes, now - age)

    def stock_gone(self, now: float, material: str) -> bool:
        """Unclaimed material is no longer there (deleted outside); False if it was claimed."""
        self._at(now)
        if not self._state.material.is_unclaimed(material):
            return False
        self._state.give_up(material, "deleted")
        return True

    # Machines -----------------------------------------------------------------------------------

    def machine_joined(self, now: float, machine: Machine) -> None:
        """Lends a machine. Raises `Misuse` if one of that name is there."""
        self._at(now)
        if machine.name in self._state.resources:
            raise Misuse(f"there is a machine {machine.name} already")
        self._state.add_machine(machine)

    def machine_lost(self, now: float, name: str) -> None:
        """A machine is gone: its jobs run again elsewhere from a fresh T_pre, a bounded number of
        times, and its material is never used."""
        self._at(now)
        progress.machine_lost(self._state, now, name)

    def drain_machine(self, now: float, name: str) -> None:
        """Takes a machine out while others serve. Jobs that run there end, and requests whose
        material lies there are inferred; nothing else starts there, and other material there is
        given up. When all this is over, `decide` returns `Drained` and the machine is gone. Raises
        `Misuse` if there is no such machine, no other one takes jobs, or jobs wait that none of the
        others has the memory for; nothing has changed then."""
        self._at(now)
        draining.drain(self._state, name)

    def keep_machine(self, now: float, name: str) -> bool:
        """Has a machine that is being drained take jobs again; False if there is no such one."""
        self._at(now)
        return draining.keep(self._state, name)

    def drains(self, name: str) -> bool:
        """Whether a machine is being drained."""
        free = self._state.resources.get(name)
        return free is not None and free.draining

    # Time ---------------------------------------------------------------------------------------

    def drain(self, now: float) -> None:
        """Admits nothing more. Requests run to their end; notices that no request took over, and
        material made ahead, are given up."""
        self._at(now)
        self._state.draining = True
        progress.give_up_notices(self._state, now)

    @property
    def drained(self) -> bool:
        """Whether `drain` was called and all has ended."""
        return self._state.drained

    def tick(self, now: float) -> None:
        """Lets time pass: timeouts, limits, expiry. `decide` does this, too."""
        self._at(now)
        progress.come_due(self._state, now)
        lateness.come_due(self._state, now)

    def decide(self, now: float) -> list[Action]:
        """What is to be done now, in order; each action is returned once."""
        self.tick(now)
        while (
            Dispatch(self._state, now).run()
            or draining.release_drained(self._state)
            or lateness.check(self._state, now)
        ):
            pass
        actions = list(self._state.outbox)
        self._state.outbox.clear()
        return actions

    def next_event_at(self) -> float | None:
        """The earliest time at which `decide` must run although nothing happened."""
        return survey.next_event_at(self._state, self._now)

    def backlog_seconds(self) -> float:
        """Seconds in which the machines could do what waits, if they packed perfectly; a floor for
        how long to tell a client to stay away."""
        return survey.backlog_seconds(self._state)

    def snapshot(self, now: float, limit: int = 40) -> Snapshot:
        """The state, for people; of each queue its length and its first `limit`."""
        return survey.snapshot(self._state, now, limit)

    def _at(self, now: float) -> None:
        if not now >= self._now:
            raise Misuse(f"time runs back, from {self._now} to {now}")
        self._now = now
