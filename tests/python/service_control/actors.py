"""An executor that only pretends, and a service over it with a port on this machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from privet.errors import Misuse
from privet.runtime import PhaseCost, StoreEntry
from privet.runtime.listening import ListenerBounds
from privet.service.control.app import make_app
from privet.service.control.identity import Gate, tls
from privet.service.driver import ClientEndpoint
from privet.service.executor import ExecutorNode, Grant, JobOutcome, MachineEvent
from privet.service.http import serving
from privet.service.repository import Build, ModelConfig, ModelFolders
from privet.service.repository.files import Source
from privet.service.service import Service, Settings

GIB = 2**30


async def eventually(condition: Callable[[], bool]) -> None:
    """Waits until a condition holds, as it must soon."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def entry(material: str, grant: Grant, **fields: Any) -> StoreEntry:
    """What a store says of material that a job made, 10 bytes and as old as can be."""
    stream = (grant.program, "digits", grant.suite, grant.client)
    return replace(StoreEntry(material, *stream, 10, 0.0), **fields)


class PretendedJob:
    """A job that ends when its executor says so."""

    host = "127.0.0.1"

    def __init__(self, grant: Grant) -> None:
        self.port = 7400
        self.grant = grant
        self.end: asyncio.Future[JobOutcome] = asyncio.get_running_loop().create_future()

    @property
    def job(self) -> str:
        """Its name."""
        return self.grant.job

    async def started(self) -> bool:
        """Whether it did not fail."""
        return (await self.outcome()).failure is None

    async def outcome(self) -> JobOutcome:
        """How it was told to end."""
        return await asyncio.shield(self.end)


@dataclass
class Pretender:
    """Runs nothing: a job ends by itself after `seconds`, or (None) when `finish` or `fail` is
    called for it."""

    seconds: float | None = None
    nodes: list[ExecutorNode] = field(
        default_factory=lambda: [ExecutorNode("here", (0, 1), 4 * GIB, "127.0.0.1")]
    )
    jobs: dict[str, PretendedJob] = field(default_factory=dict)
    offered: dict[str, Path] = field(default_factory=dict)
    withdrawn: list[str] = field(default_factory=list)
    store: dict[str, StoreEntry] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    apart: bool = False
    discarded: list[str] = field(default_factory=list)
    released: list[ExecutorNode] = field(default_factory=list)
    pending: asyncio.Queue[MachineEvent | None] = field(default_factory=asyncio.Queue)
    count: int = 0
    policy: str = ""

    async def start(self) -> None:
        """Nothing to start."""

    def machines(self) -> list[ExecutorNode]:
        """Those it was made with."""
        return self.nodes

    def local_machine(self) -> str | None:
        """The first of them."""
        return self.nodes[0].name if self.nodes else None

    def is_down(self) -> bool:
        """Never: nothing fails to start."""
        return False

    async def events(self) -> AsyncIterator[MachineEvent]:
        """What was put into `pending`."""
        while (event := await self.pending.get()) is not None:
            yield event

    async def offer(
        self, folder: str | os.PathLike[str], *, warm: bool = True, hosts: Sequence[str] = ()
    ) -> str:
        """Remembers a program."""
        self.offered[str(folder)] = Path(folder)
        return str(folder)

    async def withdraw(self, program: str) -> None:
        """Remembers that."""
        self.withdrawn.append(program)

    async def run(self, grant: Grant) -> PretendedJob:
        """Pretends to."""
        job = self.jobs[grant.job] = PretendedJob(grant)
        if self.seconds is not None:
            asyncio.get_running_loop().call_later(self.seconds, self.finish, grant.job)
        return job

    async def stop(self, job: str) -> None:
        """Ends a job as stopped."""
        self.fail(job, "stopped")

    async def take_back(self, job: str) -> None:
        """Ends a job as if its client had not connected."""
        self.fail(job, "absent")

    async def reload(self, policy: str) -> None:
        """Remembers the policy."""
        self.policy = policy

    async def material(self, machine: str) -> list[StoreEntry]:
        """What `store` has; `apart`, what this machine made of it."""
        entries = list(self.store.values())
        return [record for record in entries if not self.apart or self.places[record.id] == machine]

    async def discard(self, machine: str, materials: Sequence[str]) -> list[str]:
        """Remembers that."""
        self.discarded += materials
        return [material for material in materials if self.store.pop(material, None)]

    async def release(self, machine: str) -> None:
        """Remembers that, and has the machine no more."""
        self.released += [node for node in self.nodes if node.name == machine]
        self.nodes = [node for node in self.nodes if node.name != machine]

    def recall(self, machine: str) -> None:
        """A machine that was released joins."""
        nodes = [node for node in self.released if node.name == machine]
        if not nodes:
            raise Misuse(f"no machine {machine!r} was taken out")
        self.released.remove(nodes[0])
        self.nodes = [*self.nodes, nodes[0]]
        self.pending.put_nowait(MachineEvent("joined", nodes[0]))

    async def close(self) -> None:
        """Ends the events."""
        await self.pending.put(None)

    def finish(self, job: str, **fields: Any) -> None:
        """Lets a job end well."""
        end = self.jobs[job].end
        if end.done():
            return
        self.count += 1
        cost = PhaseCost(0.5, 1000, 2000, 3, 10.0)
        grant = self.jobs[job].grant
        material = f"{self.count:032x}" if grant.phase == "prepare" else grant.material
        outcome = JobOutcome(
            job, material=material, cost=cost, seconds=0.5, peak_rss=50, base_rss=20
        )
        outcome = replace(outcome, **fields)
        if grant.phase == "prepare" and outcome.material is not None:
            self.store[outcome.material] = entry(outcome.material, grant)
            self.places[outcome.material] = grant.machine
        elif grant.material is not None:
            self.store.pop(grant.material, None)
        end.set_result(outcome)

    def fail(self, job: str, failure: Any, **fields: Any) -> None:
        """Lets a job end badly."""
        end = self.jobs[job].end
        if not end.done():
            grant = self.jobs[job].grant
            end.set_result(JobOutcome(job, failure, "so it was told", grant.material, **fields))

    async def granted(self, phase: str) -> PretendedJob:
        """Waits for a job of a phase that has not ended; the latest."""
        async with asyncio.timeout(10):
            while True:
                open = [job for job in self.jobs.values() if not job.end.done()]
                matching = [job for job in open if job.grant.phase == phase]
                if matching:
                    return matching[-1]
                await asyncio.sleep(0.01)


@dataclass
class Scene:
    """A service in this process; `address` is where its control plane listens."""

    service: Service
    executor: Pretender
    address: str


@asynccontextmanager
async def scene(
    folder: Path,
    keys: Path,
    program: Path,
    executor: Pretender | None = None,
    gate: Gate | None = None,
    compiler: Build | None = None,
    connections: ListenerBounds | None = None,
    **settings: Any,
) -> AsyncIterator[Scene]:
    """A service on the repository in `folder`, whose models all compile to the one in `program`
    unless there is a `compiler`."""

    async def build(source: Source, config: ModelConfig) -> Path:
        return program

    executor = executor or Pretender()
    models = ModelFolders(folder / "repository")
    defaults = Settings(models, folder / "state", ClientEndpoint("localhost", 5.0, None), poll=0.05)
    service = Service(replace(defaults, **settings), executor, compiler or build, "0.0")
    await service.start()
    app = make_app(service, gate or Gate())
    task = asyncio.create_task(service.run())
    try:
        count = service.metrics.handshake
        server = serving(
            app, "127.0.0.1", 0, tls(keys), shutdown=0.1, bounds=connections, count=count
        )
        async with server as (host, port):
            try:
                yield Scene(service, executor, f"{host}:{port}")
            finally:
                service.leave()
    finally:
        await service.close()
        await task
