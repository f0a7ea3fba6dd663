"""The part of the Ray executor on each node: an actor that owns the worker processes there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from privet.compiler.compile import PRIVATE_FILE, PUBLIC_FILE
from privet.compiler.program import Program
from privet.service.executor.grant import Grant, JobOutcome
from privet.service.executor.job import WorkerJob
from privet.service.executor.local import LocalExecutor
from privet.service.executor.protocol import ExecutorNode

FILES = (PUBLIC_FILE, PRIVATE_FILE)
"""The files of a program."""


class NodeAgent(LocalExecutor):
    """A local executor that is called from another machine, where a job cannot be handed out.

    `count` is how many CPUs of the node it may use; the other options are `LocalExecutor`'s. The
    node's programs and material lie in `state`, which is its own.
    """

    def __init__(self, state: str, count: int, **options: Any) -> None:
        cores = sorted(os.sched_getaffinity(0))[:count]
        super().__init__(state=state, cores=cores, **options)
        self._admitted: dict[str, WorkerJob] = {}

    async def join(self) -> ExecutorNode:
        """Starts the workers; what the node then has."""
        await self.start()
        return self.node

    async def offer_files(
        self, files: Mapping[str, bytes], warm: bool, hosts: Sequence[str]
    ) -> str:
        """Offers the program in these files by name, which are kept on this node."""
        program = Program.from_public_bytes(files[PUBLIC_FILE]).program_hash
        folder = self._state / "programs" / program
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in FILES:
            partial = folder / f"{name}.partial"
            partial.write_bytes(files[name])
            partial.rename(folder / name)
        return await self.offer(folder, warm=warm, hosts=hosts)

    async def admit(self, grant: Grant) -> tuple[str, int]:
        """Admits a job; where its client connects to."""
        job = self._admitted[grant.job] = await self.run(grant)
        return job.host, job.port

    async def started(self, job: str) -> bool:
        """Waits for the client's request."""
        return await self._admitted[job].started()

    async def outcome(self, job: str) -> JobOutcome:
        """Waits for the end of a job; may be asked for once."""
        outcome = await self._admitted[job].outcome()
        self._admitted.pop(job, None)
        return outcome
