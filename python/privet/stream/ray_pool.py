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
from collections.abc import Sequence
from typing import Any

from privet.errors import Misuse, PrivetError
from privet.runtime import cluster
from privet.stream.worker_pool import Part, Place, Recipe, WorkerPool

START_SECONDS = 120.0
"""How long the cluster may take to bring up all workers."""


class RayPool(WorkerPool):
    """On the cluster at `address` (`auto` finds the one of this machine)."""

    def __init__(self, address: str, seconds: float) -> None:
        super().__init__(seconds)
        self._ray = ray = cluster.load_ray()
        self.lost_errors = (ray.exceptions.RayError, TimeoutError)
        self._address = address
        self._arguments: list[Any] = []
        self._servers: dict[Place, str | None] = {}

    async def start(self, recipe: Recipe, parts: Sequence[Part]) -> None:
        """Connects to the cluster and starts an actor for each part."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        await cluster.join(self._ray, self._address, logging_level=logging.ERROR)
        self._recipe = recipe
        # Weights go into the cluster's store once, not once for each worker.
        self._arguments = [self._ray.put(argument) for argument in recipe.arguments]
        self._servers = {(part.stage, part.part): part.server for part in parts}
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

    async def close(self) -> None:
        """Ends all workers and leaves the cluster."""
        await super().close()
        await asyncio.to_thread(self._ray.shutdown)

    def _hire(self, place: Place) -> Any:
        recipe, server = self._recipe, self._alive(place)
        if recipe is None:
            raise Misuse("start the pool first")
        # How many workers a server takes is the allocation's choice, not Ray's.
        resources = {cluster.NAME + server: 0.001} if server else {}
        actor = self._ray.remote(recipe.kind).options(
            num_cpus=0, resources=resources, max_restarts=0, max_task_retries=0
        )
        worker = actor.remote(*self._arguments)
        if recipe.secret is not None:
            method, secret = recipe.secret
            getattr(worker, method).remote(secret)
        return worker

    def _alive(self, place: Place) -> str | None:
        """The server of a part, or another if it is not there."""
        server = self._servers[place]
        if server is None:
            return None
        alive = [cluster.names(node) for node in self._ray.nodes() if node["Alive"]]
        names = sorted({name for node_names in alive for name in node_names})
        if server in names or not names:
            return server
        return names[sum(place) % len(names)]

    async def _ask(self, worker: Any, method: str, arguments: tuple[Any, ...]) -> Any:
        try:
            return await getattr(worker, method).remote(*arguments)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None

    def _end(self, worker: Any) -> None:
        self._ray.kill(worker)
