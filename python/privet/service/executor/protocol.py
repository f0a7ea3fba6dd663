"""What runs jobs: the interface that the control plane sees."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from privet.runtime import StoreEntry
from privet.service.executor.grant import Grant, JobOutcome


@dataclass(frozen=True)
class ExecutorNode:
    """A machine that runs jobs.

    `cores` are the numbers of its CPUs that jobs may have, or of shares in them if several jobs may
    have one; `memory` the bytes that its jobs may have together, `host` the address at which
    clients reach it.
    """

    name: str
    cores: tuple[int, ...]
    memory: int
    host: str


@dataclass(frozen=True)
class MachineEvent:
    """A machine that joined, or one that was lost with all its jobs."""

    kind: Literal["joined", "lost"]
    node: ExecutorNode


class RunningJob(Protocol):
    """A job whose process waits for the client, or has begun."""

    @property
    def job(self) -> str:
        """The grant's job."""

    @property
    def host(self) -> str:
        """Where the client connects to."""

    @property
    def port(self) -> int:
        """Where the client connects to; 0 if the machine was lost before anybody could."""

    async def started(self) -> bool:
        """Waits for the client's request; whether it came before the job ended."""

    async def outcome(self) -> JobOutcome:
        """Waits for the end. Never raises for what goes wrong in the job."""


class Executor(Protocol):
    """Runs jobs on one machine or several.

    Nothing that happens in a job, or to its process or machine, makes a call of the executor raise:
    it is told in that job's outcome. Calls are made from one event loop.
    """

    async def start(self) -> None:
        """Starts; when it returns, the machines that are there from the beginning are known. Raises
        `Misuse` if it cannot run here; `PrivetError` if no process comes up."""

    def machines(self) -> list[ExecutorNode]:
        """The machines that are there now."""

    def local_machine(self) -> str | None:
        """The machine that this process runs on; None if it lends nothing of that."""

    def is_down(self) -> bool:
        """Whether no process comes up on any machine that is there; the log says why."""

    def events(self) -> AsyncIterator[MachineEvent]:
        """Machines that join or are lost after `start`; to be read by one reader, ends at `close`.

        The outcomes of a lost machine's jobs come as `machine lost` as well.
        """

    async def offer(
        self, folder: str | os.PathLike[str], *, warm: bool = True, hosts: Sequence[str] = ()
    ) -> str:
        """Offers the program that `Compiled.save` wrote on every machine, also those that join.

        With `warm`, each process gets its weights ready for preparations without a dealer, so that
        the first of them takes no longer and no more memory than others. `hosts` are labels of
        suites whose inferences are single jobs; with any, the program is offered in these alone.
        Returns the program's hash, once every process that has no job can serve it.

        Raises `InvalidProgram` if it cannot be read; `Misuse` if it cannot be served.
        """

    async def withdraw(self, program: str) -> None:
        """Offers a program no more; jobs that run go on."""

    async def run(self, grant: Grant) -> RunningJob:
        """Admits a job; returns when its client can connect. Raises `Misuse` if there is no such
        machine, core or program, a job of this name runs, or others have the cores or the memory;
        `PrivetError` if no process comes up."""

    async def stop(self, job: str) -> None:
        """Ends a job, if it has not ended by itself; returns when it has."""

    async def take_back(self, job: str) -> None:
        """Ends a job as `absent` unless its client has connected; returns when that is decided, or
        under way."""

    async def reload(self, policy: str) -> None:
        """Starts processes anew, each once its job has ended: they read certificates again, and
        accept what `policy` (in JSON) says."""

    async def material(self, machine: str) -> list[StoreEntry]:
        """What is ready in a machine's store. Raises `Misuse` if there is no such machine."""

    async def discard(self, machine: str, materials: Sequence[str]) -> list[str]:
        """Removes material for good, each entry claimed first; those that nobody had claimed.
        Raises `Misuse` if there is no such machine."""

    async def release(self, machine: str) -> None:
        """Ends the processes of a machine that has no jobs, and leaves it alone until it was
        started anew, or `recall`. Raises `Misuse` if there is no such machine, or it is the only
        one that there can be."""

    def recall(self, machine: str) -> None:
        """Takes in again a machine that was released; it then joins. Raises `Misuse` if none of
        that name was."""

    async def close(self) -> None:
        """Ends all jobs and processes."""
