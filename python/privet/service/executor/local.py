"""Jobs on this machine, each in one of a number of worker processes that are kept warm."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from privet.errors import Misuse, PrivetError
from privet.runtime import MaterialStore, StoreEntry
from privet.runtime.machine import available_memory, usable_cores
from privet.runtime.tasks import Tasks
from privet.service.executor.grant import Grant, JobOutcome
from privet.service.executor.job import WorkerJob
from privet.service.executor.protocol import ExecutorNode, MachineEvent
from privet.service.executor.slot import ProgramOffer, Slot

PATIENCE_SECONDS = 60.0
"""How long a job waits for a worker that is being replaced."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class LocalExecutor:
    """Runs jobs on this machine, as `Executor` says.

    `keys` is a directory with the server's certificate, `state` the one that keeps its material.
    `cores` are the CPUs that jobs may have (those that this process may use), `memory` the bytes
    that they may have together (what is available now), `workers` how many run at once at most
    (one for each core). With `jobs_per_core` over 1, the node has each core that often, under
    numbers that lie a constant apart.

    Workers listen on `host`, from the port `first_port` on if one is given; clients reach them at
    `advertise` (the same). `dealer` and `max_material` are those of `privet.Server`; `policy` is
    what workers accept, in JSON, by default as `privet.Server` (the control plane counts answers
    before them); `timeout` bounds a worker's wait for any one message, in seconds; `revoked` is a
    file as for `privet.Server`, `trace` where workers write their spans.
    """

    def __init__(
        self,
        *,
        keys: str | os.PathLike[str],
        state: str | os.PathLike[str],
        name: str = "local",
        cores: Sequence[int] | None = None,
        jobs_per_core: int = 1,
        memory: int | None = None,
        workers: int | None = None,
        host: str = "127.0.0.1",
        advertise: str | None = None,
        first_port: int = 0,
        dealer: str | None = None,
        max_material: int | None = None,
        policy: str | None = None,
        timeout: float = 30.0,
        revoked: str | os.PathLike[str] | None = None,
        trace: str | None = None,
    ) -> None:
        usable = sorted(os.sched_getaffinity(0))
        cores = tuple(usable_cores() if cores is None else cores)
        if not cores or not set(cores) <= set(usable):
            raise Misuse(f"this process may use the cores {usable}, not {list(cores)}")
        memory = available_memory() if memory is None else memory
        self._apart = max(cores) + 1
        slots = tuple(core + turn * self._apart for turn in range(jobs_per_core) for core in cores)
        self.node = ExecutorNode(name, slots, memory, advertise or host)
        self._state = Path(state).absolute()
        self._settings = {
            "keys": str(Path(keys).absolute()),
            "state": str(self._state),
            "dealer": dealer,
            "max_material": max_material,
            "policy": policy,
            "host": host,
            "timeout": timeout,
            "revoked": None if revoked is None else str(Path(revoked).absolute()),
            "trace": trace,
        }
        count = len(slots) if workers is None else workers
        if first_port + count - 1 > 65_535:
            raise Misuse(f"{count} workers from port {first_port} on: there are none beyond 65535")
        self.ports = [first_port + number for number in range(count)] if first_port else []
        """Where workers listen, if that was given."""
        self._count = count
        self._slots: list[Slot] = []
        self._programs: dict[str, ProgramOffer] = {}
        self._jobs: dict[str, Grant] = {}
        # Who waits for a task gets its error; nobody else need be told.
        self._tasks = Tasks(lambda task: task.cancelled() or task.exception())
        self._change = asyncio.Event()
        self._closed = asyncio.Event()

    async def start(self) -> None:
        """Starts all workers."""
        self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._store = await asyncio.to_thread(MaterialStore, self._state, "server")
        for number in range(self._count):
            port = self.ports[number] if self.ports else 0
            settings = {**self._settings, "port": port}
            slot = Slot(settings, self.node.host, self._programs, self._finish, self._changed)
            self._slots.append(slot)
        try:
            async with asyncio.TaskGroup() as group:
                for slot in self._slots:
                    group.create_task(slot.start())
        except ExceptionGroup as errors:
            await self.close()
            raise errors.exceptions[0] from None

    def machines(self) -> list[ExecutorNode]:
        """This machine."""
        return [self.node]

    def local_machine(self) -> str | None:
        """This machine."""
        return self.node.name

    def is_down(self) -> bool:
        """Whether none of the workers comes up."""
        return bool(self._slots) and all(slot.is_down for slot in self._slots)

    async def events(self) -> AsyncIterator[MachineEvent]:
        """Nothing: this machine is there for as long as the executor."""
        await self._closed.wait()
        nothing: tuple[MachineEvent, ...] = ()
        for event in nothing:
            yield event

    def workers(self) -> list[int]:
        """Ids of the workers' processes."""
        return [slot.pid for slot in self._slots if slot.pid is not None]

    async def offer(
        self, folder: str | os.PathLike[str], *, warm: bool = True, hosts: Sequence[str] = ()
    ) -> str:
        """Offers a program; busy workers offer it once their job has ended."""
        offer = ProgramOffer(str(Path(folder).absolute()), warm, tuple(hosts))
        offers = [self._tasks.start(self._offer(slot, offer)) for slot in self._slots]
        done, _ = await asyncio.wait(offers, return_when=asyncio.FIRST_COMPLETED)
        program = done.pop().result()
        self._programs[program] = offer
        busy = {offer for offer, slot in zip(offers, self._slots, strict=True) if slot.job}
        await asyncio.wait({*offers} - busy or {*offers})
        return program

    async def withdraw(self, program: str) -> None:
        """Offers a program no more."""
        self._programs.pop(program, None)
        for slot in self._slots:
            await slot.withdraw(program)

    async def run(self, grant: Grant) -> WorkerJob:
        """Admits a job."""
        self._check(grant)
        self._jobs[grant.job] = grant
        while True:
            try:
                slot = self._idle(grant.program) or await self._slot(grant.program)
            except BaseException:
                self._jobs.pop(grant.job, None)
                raise
            try:
                job = await slot.grant(self._on_cpus(grant))
            except asyncio.CancelledError:
                self._tasks.start(self.stop(grant.job))
                raise
            if not job.is_stillborn:
                return job

    async def stop(self, job: str) -> None:
        """Ends a job."""
        for slot in self._slots:
            if slot.job is not None and slot.job.job == job:
                await slot.job.stop()

    async def take_back(self, job: str) -> None:
        """Ends a job whose client has not connected."""
        for slot in self._slots:
            if slot.job is not None and slot.job.job == job:
                await slot.job.take_back()

    async def reload(self, policy: str) -> None:
        """Starts workers anew, each once its job has ended."""
        self._settings["policy"] = policy
        for slot in self._slots:
            slot.renew(policy)

    async def material(self, machine: str) -> list[StoreEntry]:
        self._check_machine(machine)
        return await asyncio.to_thread(self._store.entries)

    async def discard(self, machine: str, materials: Sequence[str]) -> list[str]:
        """Removes material."""
        self._check_machine(machine)
        return await asyncio.to_thread(self._store.discard, list(materials))

    async def release(self, machine: str) -> None:
        """Refuses: there is no other machine."""
        raise Misuse(f"{machine} is the only machine of this service")

    def recall(self, machine: str) -> None:
        """Refuses: it is never released."""
        raise Misuse(f"no machine {machine!r} was taken out")

    async def close(self) -> None:
        """Ends all workers."""
        self._closed.set()
        self._changed()
        await self._tasks.cancel()
        await asyncio.gather(*(slot.close() for slot in self._slots))
        await self._tasks.wait()
        self._slots.clear()

    async def _offer(self, slot: Slot, offer: ProgramOffer) -> str:
        while not slot.can():
            await self._change.wait()
        return await slot.offer(offer)

    def _idle(self, program: str) -> Slot | None:
        """A worker that can have a job of a program now."""
        if self._closed.is_set():
            return None
        return next((slot for slot in self._slots if slot.can(program)), None)

    async def _slot(self, program: str) -> Slot:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not self._closed.is_set():
                    if (slot := self._idle(program)) is not None:
                        return slot
                    await self._change.wait()
        except TimeoutError:
            raise PrivetError("no worker came up for a job in time") from None
        raise PrivetError("the executor was closed")

    def _changed(self) -> None:
        change, self._change = self._change, asyncio.Event()
        change.set()

    def _finish(self, job: WorkerJob, outcome: JobOutcome) -> None:
        if job.is_stillborn:
            return
        if outcome.material and outcome.failure and not outcome.keeps_material:
            self._tasks.start(self._discard_of(job, outcome, outcome.material))
            return
        if outcome.material and job.grant.phase == "prepare":
            # Two looks at names that were just written: a thread would take longer.
            with contextlib.suppress(PrivetError):
                outcome = replace(outcome, bytes=self._store.entry_bytes(outcome.material))
        self._over(job, outcome)

    async def _discard_of(self, job: WorkerJob, outcome: JobOutcome, material: str) -> None:
        """Tells how a job failed once its material is out of reach."""
        try:
            await asyncio.to_thread(self._store.discard, [material])
        except PrivetError as error:
            _log.error("material %s of job %s stays: %s", material, job.job, error)
        finally:
            self._over(job, outcome)

    def _over(self, job: WorkerJob, outcome: JobOutcome) -> None:
        self._jobs.pop(job.job, None)
        job.finish(outcome)

    def _check(self, grant: Grant) -> None:
        self._check_machine(grant.machine)
        if grant.job in self._jobs:
            raise Misuse(f"job {grant.job} runs already")
        if grant.program not in self._programs:
            raise Misuse(f"program {grant.program} is not offered")
        if not set(grant.cores) <= set(self.node.cores):
            raise Misuse(f"job {grant.job}: {self.node.name} has the cores {self.node.cores}")
        busy_cores = {core for other in self._jobs.values() for core in other.cores}
        if busy_cores & set(grant.cores):
            raise Misuse(f"job {grant.job}: another job has its cores")
        if grant.memory + sum(other.memory for other in self._jobs.values()) > self.node.memory:
            raise Misuse(f"job {grant.job}: other jobs have its memory")

    def _on_cpus(self, grant: Grant) -> Grant:
        """The grant with the CPUs that its cores are."""
        cpus = tuple(sorted({core % self._apart for core in grant.cores}))
        return grant if cpus == grant.cores else replace(grant, cores=cpus)

    def _check_machine(self, machine: str) -> None:
        if machine != self.node.name:
            raise Misuse(f"there is no machine {machine!r} here, only {self.node.name!r}")
