"""An executor on this machine and clients of its jobs, over real TLS."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from tests.attacks.scene import INPUT, SOON

from privet import keys
from privet.compiler.compile import Compiled
from privet.compiler.executor import execute
from privet.runtime import Client, Credentials
from privet.service.executor import Executor, Grant, JobOutcome, RunningJob
from privet.service.executor.local import LocalExecutor
from privet.suites import Gmw

SUITE = "gmw linear exact tables"
"""The label of what clients here make."""

T = TypeVar("T")


@dataclass
class Floor:
    """Where jobs run; `compiled` is what is offered."""

    executor: Executor
    folder: Path
    keys: Path
    compiled: Compiled
    numbers: Any = field(default_factory=itertools.count)

    @property
    def program(self) -> str:
        """The hash of the program."""
        return self.compiled.program.program_hash

    def grant(self, phase: str, **fields: Any) -> Grant:
        """A grant for the client, generous unless `fields` say otherwise."""
        usual = {
            "job": f"job {next(self.numbers)}",
            "client": keys.fingerprint(self.keys / "client.pem"),
            "program": self.program,
            "suite": SUITE,
            "machine": self.executor.machines()[0].name,
            "cores": self.executor.machines()[0].cores[:1],
            "memory": 1 << 28,
            "seconds": SOON,
            "grace": SOON,
        }
        return Grant(**{**usual, "phase": phase, **fields})

    def client(self, port: int, host: str = "localhost", state: str = "client") -> Client:
        """A session of the client."""
        return Client(
            host,
            port,
            Credentials.from_directory(self.keys, "client"),
            state=self.folder / state,
            model=self.program,
            suite=Gmw(rounds="linear"),
            server_name="localhost",
            timeout=SOON,
        )

    async def ask(self, job: RunningJob, work: Callable[[Client], T]) -> T:
        """Has the client do something at a job's worker."""

        def session() -> T:
            with self.client(job.port, job.host) as client:
                return work(client)

        return await asyncio.to_thread(session)

    async def prepare(self, **fields: Any) -> tuple[str, JobOutcome]:
        """A preparation that goes well: what the client calls the entry, and the outcome."""
        job = await self.executor.run(self.grant("prepare", **fields))
        (material,) = await self.ask(job, lambda client: client.prepare())
        return material, await job.outcome()

    async def infer(self, material: str, **fields: Any) -> JobOutcome:
        """An inference that goes well, with the right result."""
        job = await self.executor.run(self.grant("infer", material=material, **fields))
        result = await self.ask(job, lambda client: client.infer([INPUT], material=material))
        expected = execute(self.compiled.program, self.compiled.weights, {"x": INPUT})
        assert np.abs(result.outputs["y"] - expected.outputs["y"]).max() < 0.01
        return await job.outcome()


@asynccontextmanager
async def floor(
    folder: Path, keys: Path, compiled: Compiled, **options: Any
) -> AsyncIterator[Floor]:
    """A floor with a local executor."""
    compiled.save(folder / "program")
    options = {"memory": 1 << 32, "timeout": SOON, "workers": 2, **options}
    executor = LocalExecutor(keys=keys, state=folder / "server", **options)
    await executor.start()
    try:
        assert await executor.offer(folder / "program") == compiled.program.program_hash
        yield Floor(executor, folder, keys, compiled)
    finally:
        await executor.close()
