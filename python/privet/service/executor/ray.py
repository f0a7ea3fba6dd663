"""Jobs on the nodes of a Ray cluster.

On each node an actor owns the worker processes. It holds all CPUs and the memory that its jobs may
have, so that Ray gives them to nobody else; which job runs where is the scheduler's choice, not
Ray's. Clients connect to the node. Ray carries grants and outcomes, and programs with their
weights: let it use TLS, as its documentation says, where the network is not your own.

A node that is named (`privet.runtime.cluster`) is the machine of that name, and finds its material
again after a restart. If any node is named so, only those serve; otherwise every node with a CPU
does, under its host's name.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privet.errors import InvalidProgram, Misuse, PrivetError
from privet.runtime import StoreEntry, cluster
from privet.runtime.tasks import Tasks
from privet.service.executor.agent import FILES, NodeAgent
from privet.service.executor.grant import Grant, JobOutcome
from privet.service.executor.protocol import ExecutorNode, MachineEvent

POLL_SECONDS = 1.0
"""Between two looks at the cluster, and between two signs of life of a node."""

SILENCE_SECONDS, MISSED = 4.0, 2
"""A node is lost that so many times gave no sign of life for so long."""

START_SECONDS = 120.0
"""How long an actor may take to come up with its workers."""

_log = logging.getLogger(__name__)


@dataclass
class RayMachine:
    """A node of ours, the actor there, and its jobs that have not ended."""

    node: ExecutorNode
    id: str
    agent: Any
    loss: asyncio.Future[None]
    is_down: bool = False
    jobs: dict[str, RayJob] = field(default_factory=dict)


class RayJob:
    """A job on a node of the cluster."""

    def __init__(
        self,
        grant: Grant,
        host: str,
        port: int,
        started: Awaitable[bool | None],
        outcome: Awaitable[JobOutcome | None],
    ) -> None:
        self.job, self.host, self.port = grant.job, host, port
        self._grant = grant
        self._started = asyncio.ensure_future(started)
        self._outcome = asyncio.ensure_future(outcome)

    async def started(self) -> bool:
        """Waits for the client's request; whether it came before the job ended."""
        return bool(await asyncio.shield(self._started))

    async def outcome(self) -> JobOutcome:
        """Waits for the end."""
        outcome = await asyncio.shield(self._outcome)
        loss = JobOutcome(self.job, "machine lost", "its machine was lost", self._grant.material)
        return outcome or loss


class RayExecutor:
    """Runs jobs on the nodes of the cluster at `address`, as `Executor` says.

    `state` is a directory on each node, in which each has one of its own; `keys` is where each
    finds the server's certificate. `memory` are the bytes that the jobs of one node may have (what
    Ray says that it has). `options` are those of `LocalExecutor` for each node: `workers`,
    `first_port`, `dealer`, `max_material`, `policy`, `timeout`, `revoked`, `trace`.
    """

    def __init__(
        self,
        *,
        keys: str | os.PathLike[str],
        state: str | os.PathLike[str],
        address: str = "auto",
        memory: int | None = None,
        **options: Any,
    ) -> None:
        self._ray = cluster.load_ray()
        self._address = address
        self._memory = memory
        self._state = Path(state).absolute()
        self._options = {"keys": str(Path(keys).absolute()), **options}
        self._machines: dict[str, RayMachine] = {}
        self._programs: dict[str, tuple[Any, ...]] = {}
        self._released: dict[str, str] = {}
        self._tasks = Tasks()
        self._events: asyncio.Queue[MachineEvent | None] = asyncio.Queue()

    async def start(self) -> None:
        """Connects to the cluster and starts an actor on each of its nodes that serves."""
        options = {"namespace": "privet", "logging_level": logging.WARNING}
        await cluster.join(self._ray, self._address, **options)
        await self._look()
        while not self._events.empty():
            self._events.get_nowait()
        self._tasks.start(self._keep_looking())

    def machines(self) -> list[ExecutorNode]:
        """The nodes that are there now."""
        return [machine.node for machine in self._machines.values()]

    def local_machine(self) -> str | None:
        """None: which of the nodes is this one, if any, Ray does not say."""
        return None

    def is_down(self) -> bool:
        """Whether none of the nodes' workers comes up."""
        machines = self._machines.values()
        return bool(machines) and all(machine.is_down for machine in machines)

    async def events(self) -> AsyncIterator[MachineEvent]:
        """Nodes that join or are lost."""
        while (event := await self._events.get()) is not None:
            yield event

    async def offer(
        self, folder: str | os.PathLike[str], *, warm: bool = True, hosts: Sequence[str] = ()
    ) -> str:
        """Offers a program on every node; its files are sent there."""
        try:
            files = {name: (Path(folder) / name).read_bytes() for name in FILES}
        except OSError as error:
            raise InvalidProgram(f"{error.filename} cannot be read: {error.strerror}") from error
        reference = await asyncio.to_thread(self._ray.put, files)
        offer = (reference, warm, tuple(hosts))
        machines = list(self._machines.values())
        calls = [self._call(machine, machine.agent.offer_files, *offer) for machine in machines]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        programs = [answer for answer in answers if isinstance(answer, str)]
        for machine, answer in zip(machines, answers, strict=True):
            if isinstance(answer, BaseException):
                _log.error("%s cannot offer a program: %s", machine.node.name, answer)
        if not programs:
            raise _first_error(answers, "there is no machine that could offer a program")
        self._programs[programs[0]] = offer
        return programs[0]

    async def withdraw(self, program: str) -> None:
        """Offers a program no more."""
        self._programs.pop(program, None)
        for machine in list(self._machines.values()):
            await self._call(machine, machine.agent.withdraw, program)

    async def run(self, grant: Grant) -> RayJob:
        """Admits a job on the node that the grant names."""
        machine = self._machine(grant.machine)
        # Whether the node still answers shows when the job is asked for.
        answer = await self._call(machine, machine.agent.admit, grant)
        host, port = answer or (machine.node.host, 0)
        start = self._call(machine, machine.agent.started, grant.job)
        outcome = self._outcome(machine, grant.job)
        job = machine.jobs[grant.job] = RayJob(grant, host, port, start, outcome)
        return job

    async def stop(self, job: str) -> None:
        """Ends a job."""
        for machine in list(self._machines.values()):
            if job in machine.jobs:
                running = machine.jobs[job]
                await self._call(machine, machine.agent.stop, job)
                await running.outcome()

    async def take_back(self, job: str) -> None:
        """Ends a job whose client has not connected."""
        for machine in list(self._machines.values()):
            if job in machine.jobs:
                await self._call(machine, machine.agent.take_back, job)

    async def reload(self, policy: str) -> None:
        """Starts the workers of every machine anew."""
        self._options["policy"] = policy
        for machine in list(self._machines.values()):
            await self._call(machine, machine.agent.reload, policy)

    async def material(self, machine: str) -> list[StoreEntry]:
        """The material on a node."""
        place = self._machine(machine)
        return await self._call(place, place.agent.material, machine) or []

    async def discard(self, machine: str, materials: Sequence[str]) -> list[str]:
        """Removes material from a node."""
        place = self._machine(machine)
        return await self._call(place, place.agent.discard, machine, list(materials)) or []

    async def release(self, machine: str) -> None:
        """Ends the actor of a node. A node that is started anew has another id, and serves."""
        place = self._machine(machine)
        self._released[machine] = place.id
        # Its end is no loss: nobody is told of one.
        del self._machines[machine]
        place.loss.set_result(None)
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                await place.agent.close.remote()
        except (self._ray.exceptions.RayError, TimeoutError) as error:
            _log.warning("%s does not end its workers, and is killed: %s", machine, error)
        self._ray.kill(place.agent)

    def recall(self, machine: str) -> None:
        """Lets the next look at the cluster take the node in."""
        if self._released.pop(machine, None) is None:
            raise Misuse(f"no machine {machine!r} was taken out")

    async def close(self) -> None:
        """Ends all actors with their workers, and leaves the cluster."""
        await self._tasks.cancel()
        for machine in list(self._machines.values()):
            await self._call(machine, machine.agent.close)
            self._lose(machine)
        self._events.put_nowait(None)
        await asyncio.to_thread(self._ray.shutdown)

    def _machine(self, name: str) -> RayMachine:
        if name not in self._machines:
            raise Misuse(f"there is no machine {name!r}, only {sorted(self._machines)}")
        return self._machines[name]

    async def _outcome(self, machine: RayMachine, job: str) -> JobOutcome | None:
        try:
            outcome: JobOutcome | None = await self._call(machine, machine.agent.outcome, job)
            return outcome
        finally:
            machine.jobs.pop(job, None)

    async def _call(self, machine: RayMachine, call: Any, *arguments: Any) -> Any:
        """What a node answers; None if it is lost first, which a call that fails makes it."""
        if machine.loss.done():
            return None
        answer = asyncio.ensure_future(call.remote(*arguments))
        await asyncio.wait([answer, machine.loss], return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
            return None
        try:
            return answer.result()
        except self._ray.exceptions.RayActorError as error:
            _log.warning("%s is lost: %s", machine.node.name, error)
            self._lose(machine)
            return None

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                await self._look()
            except Exception:
                _log.exception("the cluster cannot be looked at")

    async def _look(self) -> None:
        """Takes in the nodes that are new."""
        nodes = [node for node in await asyncio.to_thread(self._ray.nodes) if node["Alive"]]
        named_nodes = [node for node in nodes if cluster.names(node)]
        known_ids = {machine.id for machine in self._machines.values()} | {*self._released.values()}
        new = [node for node in named_nodes or nodes if node["NodeID"] not in known_ids]
        await asyncio.gather(*(self._join(node) for node in new if node["Resources"].get("CPU")))

    async def _join(self, node: dict[str, Any]) -> None:
        name = next(iter(cluster.names(node)), node["NodeManagerHostname"])
        if name in self._machines:
            return
        agent = self._agent(node, name)
        try:
            async with asyncio.timeout(START_SECONDS):
                joined = await agent.join.remote()
                for program in list(self._programs.values()):
                    await agent.offer_files.remote(*program)
        except (self._ray.exceptions.RayError, PrivetError, TimeoutError) as error:
            _log.error("%s cannot serve: %s", name, error)
            self._ray.kill(agent)
            return
        loss = asyncio.get_running_loop().create_future()
        machine = self._machines[name] = RayMachine(joined, node["NodeID"], agent, loss)
        self._released.pop(name, None)
        self._events.put_nowait(MachineEvent("joined", joined))
        self._tasks.start(self._watch(machine))

    def _agent(self, node: dict[str, Any], name: str) -> Any:
        """An actor on the node, which takes all that it has for jobs."""
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            node["NodeID"], soft=False
        )
        resources = node["Resources"]
        memory = int(self._memory or resources["memory"])
        actor = self._ray.remote(NodeAgent).options(
            num_cpus=resources["CPU"],
            memory=memory,
            resources={key: 1 for key in resources if key.startswith(cluster.NAME)},
            scheduling_strategy=strategy,
            max_restarts=0,
        )
        return actor.remote(
            state=str(self._state / name),
            count=int(resources["CPU"]),
            name=name,
            memory=memory,
            host=node["NodeManagerAddress"],
            **self._options,
        )

    async def _watch(self, machine: RayMachine) -> None:
        """Waits until a node gives no more sign of life."""
        missed = 0
        while missed < MISSED and not machine.loss.done():
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    machine.is_down = bool(await self._call(machine, machine.agent.is_down))
                missed = 0
                await asyncio.sleep(POLL_SECONDS)
            except TimeoutError:
                missed += 1
        if missed:
            _log.warning("%s is lost: it does not answer", machine.node.name)
        self._lose(machine)

    def _lose(self, machine: RayMachine) -> None:
        if machine.loss.done():
            return
        self._machines.pop(machine.node.name, None)
        machine.loss.set_result(None)
        # If it is only cut off, it must not go on: its jobs count as ended.
        self._ray.kill(machine.agent)
        self._events.put_nowait(MachineEvent("lost", machine.node))


def _first_error(answers: Sequence[object], otherwise: str) -> PrivetError:
    errors = [answer for answer in answers if isinstance(answer, PrivetError)]
    return errors[0] if errors else PrivetError(otherwise)
