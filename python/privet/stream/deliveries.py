"""The model provider's preparing worker, and whose its pieces are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from privet.errors import PrivetError
from privet.stream.crew import Crew, Part, Recipe, WorkerLost
from privet.stream.ledger import Ledger
from privet.stream.preparing import Delivery

POLL_SECONDS = 1.0
"""How long the preparing worker is asked to wait for a piece, so that one that hangs is noticed."""

AGAIN_SECONDS = 0.2
"""Between two attempts to listen."""

_log = logging.getLogger(__name__)


class Deliveries:
    """Fetches pieces from the preparing worker, and hands each to its session by `deliver`.

    A worker that is lost takes the pieces with it that nobody has been told of; another listens at
    the same port.
    """

    def __init__(self, crew: Crew, recipe: Recipe) -> None:
        self._crew, self._recipe = crew, recipe
        self._ledger = Ledger()
        self._host, self.port = "", 0
        self._deliver: Callable[[Delivery], None] = lambda _: None
        self._task: asyncio.Task[None] | None = None

    async def start(
        self, host: str, port: int, deliver: Callable[[Delivery], None], ledger: Ledger
    ) -> None:
        """Listens; port 0 lets the system choose. Costs go into `ledger`."""
        self._ledger = ledger
        await self._crew.start(self._recipe, [Part(0, 0)])
        self._host, self._deliver = host, deliver
        self.port = int(await self._crew.call(0, 0, "listen", host, port))
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        listening = True
        while True:
            try:
                if not listening:
                    await self._crew.call(0, 0, "listen", self._host, self.port)
                    listening = True
                delivery = await self._crew.call(0, 0, "fetch", POLL_SECONDS)
            except PrivetError as error:
                _log.warning("the preparing worker: %s", error)
                self._ledger.redone += isinstance(error, WorkerLost)
                listening = False
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            if delivery is not None:
                self._ledger.stocked(delivery.cost)
                self._deliver(delivery)

    async def processes(self) -> list[int]:
        """The preparing worker's process."""
        return list((await self._crew.processes()).values())

    async def close(self) -> None:
        """Ends the preparing worker."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._crew.close()
