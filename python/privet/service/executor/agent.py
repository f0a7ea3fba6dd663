"""The part of the Ray executor on each node: an actor that owns the worker processes there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privet.compiler.compile import PRIVATE_FILE, PUBLIC_FILE
from privet.compiler.program import Program
from privet.runtime import StoreEntry
from privet.service.executor.grant import Grant, JobOutcome
from privet.service.executor.job import WorkerJob
from privet.service.executor.local import LocalExecutor
from privet.service.executor.protocol import ExecutorNode

FILES = (PUBLIC_FILE, PRIVATE_FILE)
"""The files of a program."""


class NodeAgent:
    """A local executor at the other end of remote calls, which are those of `Executor`.

    `count` is how many CPUs of the node it may use; the other options are `LocalExecutor`'s. The
    node's programs and material lie in `state`, which is its own.
    """

    def __init__(self, state: str, count: int, **options: Any) -> None:
        cores = sorted(os.sched_getaffinity(0))[:count]
        self._state = Path(state)
        self._executor = LocalExecutor(state=state, cores=cores, **options)
        self._jobs: dict[str, WorkerJob] = {}

    async def start(self) -> ExecutorNode:
        """Starts the workers; what the node then has."""
        await self._executor.start()
        return self._executor.node

    async def ping(self) -> bool:
        """Says that it is there, and whether none of its workers comes up."""
        return self._executor.is_down()

    async def offer(self, files: Mapping[str, bytes], warm: bool, hosts: Sequence[str]) -> str:
        """Offers the program in these files by name, which are kept on this node."""
        program = Program.from_public_bytes(files[PUBLIC_FILE]).program_hash
        folder = self._state / "programs" / program
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in FILES:
            partial = folder / f"{name}.partial"
            partial.write_bytes(files[name])
            partial.rename(folder / name)
        return await self._executor.offer(folder, warm=warm, hosts=hosts)

    async def withdraw(self, program: str) -> None:
        """Offers a program no more."""
        await self._executor.withdraw(program)

    async def run(self, grant: Grant) -> tuple[str, int]:
        """Admits a job; where its client connects to."""
        job = self._jobs[grant.job] = await self._executor.run(grant)
        return job.host, job.port

    async def started(self, job: str) -> bool:
        """Waits for the client's request."""
        return await self._jobs[job].started()

    async def outcome(self, job: str) -> JobOutcome:
        """Waits for the end of a job; may be asked for once."""
        outcome = await self._jobs[job].outcome()
        self._jobs.pop(job, None)
        return outcome

    async def stop(self, job: str) -> None:
        """Ends a job."""
        await self._executor.stop(job)

    async def take_back(self, job: str) -> None:
        """Ends a job whose client has not connected."""
        await self._executor.take_back(job)

    async def reload(self, policy: str) -> None:
        """Starts workers anew."""
        await self._executor.reload(policy)

    async def material(self) -> list[StoreEntry]:
        return await self._executor.material(self._executor.node.name)

    async def discard(self, materials: Sequence[str]) -> list[str]:
        """Removes material."""
        return await self._executor.discard(self._executor.node.name, materials)

    async def close(self) -> None:
        """Ends all workers."""
        await self._executor.close()
