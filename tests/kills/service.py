"""A service that runs one job after the other until it is killed: `python service.py`.

Like `mortal.py` it gets its job on the first line of standard input and orders on the others. An
order is answered by `go` (where the client connects, and which process serves it) or `refused`;
after `go` comes the job's `outcome`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any

from privet import keys
from privet.service.executor import Grant
from privet.service.executor.local import LocalExecutor


def say(event: str, **fields: Any) -> None:
    """Answers."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


class Service:
    """An executor with one worker; what its store holds is what it offers."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._job = job
        self._client = keys.fingerprint(Path(job["keys"]) / "client.pem")
        self._names = (f"{os.getpid()}/{number}" for number in itertools.count())
        options = {"keys": job["keys"], "state": job["state"], "dealer": job["dealer"]}
        self._executor = LocalExecutor(**options, workers=1, memory=1 << 30, timeout=job["timeout"])

    async def run(self) -> None:
        """Obeys until standard input closes."""
        await self._executor.start()
        self._program = await self._executor.offer(self._job["program"])
        say("listening")
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            if order["do"] == "list":
                await self._list()
            else:
                grace = order.get("grace", self._job["timeout"])
                await self._do(order["do"], order.get("material"), grace)
        await self._executor.close()

    async def _list(self) -> None:
        ids = [entry.id for entry in await self._executor.material("local")]
        say("entries", stored=ids, ready=await self._ready())

    async def _ready(self) -> list[str]:
        """What the service would offer this client: that is all in the store's entries."""
        key = (self._client, self._program, self._job["suite"])
        entries = await self._executor.material("local")
        return [entry.id for entry in entries if (entry.peer, entry.program, entry.suite) == key]

    async def _do(self, phase: Any, material: str | None, grace: float) -> None:
        grant = Grant(
            next(self._names),
            phase,
            self._client,
            self._program,
            self._job["suite"],
            "local",
            self._executor.node.cores[:1],
            1 << 29,
            self._job["timeout"],
            material,
            grace,
        )
        if material is not None and material not in await self._ready():
            say("refused", message=f"there is no material {material} for this client")
            return
        job = await self._executor.run(grant)
        say("go", port=job.port, worker=job.pid)
        outcome = await job.outcome()
        say(
            "outcome",
            failure=outcome.failure,
            material=outcome.material,
            kept=outcome.keeps_material,
            seconds=outcome.seconds,
        )


if __name__ == "__main__":
    asyncio.run(Service(json.loads(sys.stdin.readline())).run())
