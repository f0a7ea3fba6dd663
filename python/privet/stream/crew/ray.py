"""Workers as Ray actors on the servers of one organisation.

Each organisation has a cluster of its own; nothing of Ray passes between two. A server is a node
whose resources name it, as `ray start --resources '{"privet:alpha": 1}'` does. If it is lost, its
workers come up on another that is so named. Ray carries weights, slices and, at the data provider,
the private key: let it use TLS, as its documentation says, where the network is not your own.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from privet.errors import Misuse, PrivetError
from privet.parties.address import split_address
from privet.stream.crew.crew import Part, Recipe, WorkerLost

NAME = "privet:"
"""Begins the name of the resource that names a server."""

KNOCK_SECONDS = 10.0
"""How long the cluster's head may take to accept a connection."""

START_SECONDS = 120.0
"""How long the cluster may take to bring up all workers."""


class RayCrew:
    """As `Crew`, on the cluster at `address` (`auto` finds the one of this machine)."""

    def __init__(self, address: str, seconds: float) -> None:
        try:
            import ray
        except ImportError as error:
            raise Misuse("a cluster needs Ray: pip install 'privet[ray]'") from error
        self._ray: Any = ray
        self._address = address
        self._seconds = seconds
        self._recipe: Recipe | None = None
        self._arguments: list[Any] = []
        self._servers: dict[tuple[int, int], str | None] = {}
        self._workers: dict[tuple[int, int], Any] = {}
        self._turns: defaultdict[tuple[int, int], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def start(self, recipe: Recipe, parts: Sequence[Part]) -> None:
        """Connects to the cluster and starts an actor for each part."""
        await self._knock()
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            await asyncio.to_thread(
                self._ray.init,
                address=self._address,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except (ConnectionError, RuntimeError) as error:
            raise Misuse(f"there is no Ray cluster at {self._address}: {error}") from error
        self._recipe = recipe
        # Weights go into the cluster's store once, not once for each worker.
        self._arguments = [self._ray.put(it) for it in recipe.arguments]
        self._servers = {(it.stage, it.part): it.server for it in parts}
        try:
            for place in self._servers:
                self._workers[place] = self._hire(place)
            async with asyncio.timeout(START_SECONDS):
                await self.processes()
        except TimeoutError as error:
            await self.close()
            raise PrivetError("the cluster has no room for all workers") from error
        except BaseException:
            await self.close()
            raise

    async def call(self, stage: int, part: int, method: str, *arguments: Any) -> Any:
        """Has a worker do something."""
        # Its turn first, so that the deadline counts what the worker does and not others' calls.
        async with self._turns[stage, part]:
            return await self._call(stage, part, method, arguments)

    async def _call(self, stage: int, part: int, method: str, arguments: tuple[Any, ...]) -> Any:
        worker = self._workers.get((stage, part))
        if worker is None:
            raise Misuse(f"there is no worker for part {part} of stage {stage}")
        try:
            async with asyncio.timeout(self._seconds):
                return await getattr(worker, method).remote(*arguments)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise cause if isinstance(cause, PrivetError) else error from None
        except (self._ray.exceptions.RayError, TimeoutError) as error:
            self._replace((stage, part), worker)
            raise WorkerLost(f"a worker of stage {stage} was lost: {error!r}") from error

    async def processes(self) -> dict[tuple[int, int], int]:
        """Ids of the workers' processes by stage and part."""
        ids = await asyncio.gather(*(self.call(*place, "process") for place in self._servers))
        return dict(zip(self._servers, ids, strict=True))

    async def close(self) -> None:
        """Ends all workers and leaves the cluster."""
        workers, self._workers = self._workers, {}
        for worker in workers.values():
            self._ray.kill(worker)
        await asyncio.to_thread(self._ray.shutdown)

    async def _knock(self) -> None:
        """Fails if nobody is at the cluster's address: Ray itself would try for minutes."""
        if self._address == "auto":
            return
        try:
            async with asyncio.timeout(KNOCK_SECONDS):
                _, writer = await asyncio.open_connection(*split_address(self._address))
        except (OSError, TimeoutError) as error:
            raise Misuse(f"there is no Ray cluster at {self._address}: {error}") from error
        writer.close()

    def _hire(self, place: tuple[int, int]) -> Any:
        recipe, server = self._recipe, self._alive(place)
        if recipe is None:
            raise Misuse("start the crew first")
        # How many workers a server takes is the allocation's choice, not Ray's.
        resources = {NAME + server: 0.001} if server else {}
        actor = self._ray.remote(recipe.kind).options(
            num_cpus=0, resources=resources, max_restarts=0, max_task_retries=0
        )
        worker = actor.remote(*self._arguments)
        if recipe.secret is not None:
            method, secret = recipe.secret
            getattr(worker, method).remote(secret)
        return worker

    def _alive(self, place: tuple[int, int]) -> str | None:
        """The server of a part, or another if it is not there."""
        wanted = self._servers[place]
        if wanted is None:
            return None
        alive = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        names: list[str] = sorted(
            {key.removeprefix(NAME) for it in alive for key in it if NAME in key}
        )
        if wanted in names or not names:
            return wanted
        return names[sum(place) % len(names)]

    def _replace(self, place: tuple[int, int], lost: Any) -> None:
        """Puts a new worker in a place, once for each that was lost."""
        if self._workers.get(place) is lost:
            self._workers[place] = self._hire(place)
            self._ray.kill(lost)
