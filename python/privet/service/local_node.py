"""The machine that the service itself runs on: there the processes of suite `ckks` compute.

What such a process holds without clients is set aside from the memory of jobs for as long as it
runs. Its clients' keys and inferences are jobs.
"""

from __future__ import annotations

import asyncio

from privet.errors import Misuse
from privet.runtime.machine import available_memory, usable_cores
from privet.service.driver import Driver
from privet.service.estimates import HEADROOM
from privet.service.executor import Executor, ExecutorNode
from privet.service.repository import Version

APART = "control plane"
"""What it is called where the executor lends nothing of it: then it runs sessions only."""

GLANCE_SECONDS = 0.05


class LocalNode:
    """Memory of this machine for `driver`'s jobs and for processes beside them."""

    def __init__(self, executor: Executor, driver: Driver) -> None:
        self._executor = executor
        self._driver = driver
        self._apart: ExecutorNode | None = None
        self._reserved: dict[str, int] = {}

    @property
    def name(self) -> str:
        """How schedules call it."""
        return self._executor.local_machine() or APART

    def is_apart(self, node: ExecutorNode) -> bool:
        """Whether a machine is this one, and none of the executor's."""
        return node is self._apart

    async def reserve(self, version: Version) -> None:
        """Sets aside what a version's process holds; waits until no job has it. Raises `Misuse`
        with the figure if it leaves no room for a client."""
        plan = version.plan or {}
        model_bytes = int(plan["memory_bytes_model"])
        client = int(HEADROOM * (plan["memory_bytes_keys"] + plan["memory_bytes_working"]))
        available = (await self._node()).memory - sum(self._reserved.values())
        if model_bytes + client > available:
            raise Misuse(
                f"serving {version.name} takes about {model_bytes / 1e6:.0f} MB and "
                f"{client / 1e6:.0f} MB for a client, more than the {available / 1e6:.0f} MB that "
                "are left: raise --memory, or serve less"
            )
        self._reserved[version.key] = model_bytes
        free = not self._is_lent() or self._driver.set_aside(self.name, model_bytes)
        while not free:
            await asyncio.sleep(GLANCE_SECONDS)
            free = self._driver.set_aside(self.name, 0)

    def release(self, version: Version) -> None:
        """The version's process is gone."""
        model_bytes = self._reserved.pop(version.key, 0)
        if self._is_lent():
            self._driver.set_aside(self.name, -model_bytes)

    def joined(self, node: ExecutorNode) -> None:
        """A machine runs jobs from now on; if it is this one, not in what was taken before."""
        if node.name == self.name:
            self._driver.set_aside(node.name, sum(self._reserved.values()))

    def _is_lent(self) -> bool:
        return any(node.name == self.name for node in self._driver.nodes)

    async def _node(self) -> ExecutorNode:
        for node in self._executor.machines():
            if node.name == self._executor.local_machine():
                return node
        if self._apart is None:
            cores = tuple(usable_cores())
            self._apart = ExecutorNode(APART, cores, available_memory() // 2, "")
            await self._driver.join(self._apart, reserved=True)
        return self._apart
