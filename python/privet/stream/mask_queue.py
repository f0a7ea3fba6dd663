"""Material of the data provider, refilled in the background while requests run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from privet.errors import LinkError, PeerError, PeerMisbehaved, PrivetError
from privet.stream.blinding import MOST_ENTRIES, DataBlinding, DataSide, Masks
from privet.stream.frames import FrameKind, Stocked
from privet.stream.preprocessing import PreprocessingAddress, name_of
from privet.stream.rounds import Ledger
from privet.stream.worker_pool import Part, Recipe, WorkerLost, WorkerPool

AGAIN_SECONDS = 0.2
"""Between two attempts at a material entry."""

AWAITED_SECONDS = 10.0
"""How long a material entry may wait for the model provider to say that it has its part."""

_log = logging.getLogger(__name__)


class MaskQueue(DataSide):
    """Keeps `ahead` entries, made by a preparing worker with the model
    provider's at `address`.

    A material entry is ready when both sides have their parts: the model provider says so over the
    session. A material entry whose making was cut short is never asked for again: the next has the
    next number. After `patience` seconds without a material entry that could be made, requests that
    wait for one fail.
    """

    def __init__(
        self,
        pool: WorkerPool,
        recipe: Recipe,
        address: PreprocessingAddress,
        session: bytes,
        row_bytes: int,
        ledger: Ledger,
        *,
        ahead: int,
        patience: float,
    ) -> None:
        self._pool, self._recipe = pool, recipe
        self._address, self._session, self._row_bytes = address, session, row_bytes
        self._ledger = ledger
        self._ahead, self._patience = min(ahead, MOST_ENTRIES), patience
        self._last = 0
        self._announced = 0
        self._prepared: dict[int, tuple[float, Any]] = {}
        self._ready: deque[Masks] = deque()
        self._changed = asyncio.Condition()
        self._failure: PrivetError | None = None
        self._filling: asyncio.Task[None] | None = None

    async def start(self, send: Callable[[FrameKind, bytes], Awaitable[object]]) -> None:
        """Starts the preparing worker, and to fill."""
        await self._pool.start(self._recipe, [Part(0, 0)])
        self._filling = asyncio.create_task(self._fill())

    def keep(self, ahead: int) -> None:
        """Keeps so many entries from now on; those that are there stay."""
        self._ahead = min(ahead, MOST_ENTRIES)
        self._wake()

    async def renew(self) -> None:
        """Has the preparing worker connect anew, with its files as they are now, once the entry
        that it makes is there. What is ready stays."""
        if self._filling is None:
            return  # It reads them when it connects.
        with contextlib.suppress(WorkerLost):  # The next one reads them as well.
            await self._pool.call(0, 0, "renew")

    async def filled(self, count: int) -> None:
        """Waits until so many entries are ready. Raises whatever ended the session."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._ready) >= count or self._failure)
            if self._failure is not None:
                raise self._failure

    def on_frame(self, kind: FrameKind, payload: bytes) -> None:
        """The model provider has its part of a material entry."""
        if kind is not FrameKind.STOCKED:
            raise PeerMisbehaved(f"a frame of kind {kind.name} is not due")
        number = Stocked.parse(payload).entry
        if not self._announced < number <= self._last:
            raise PeerMisbehaved(f"entry {number} is not due")
        self._announced = number
        self._match()

    async def take(self) -> DataBlinding:
        """The oldest entry that is ready; waits for one."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._ready or self._failure)
            if self._failure is not None:
                raise self._failure
            self._changed.notify_all()
            return self._ready.popleft()

    def ended(self, error: PrivetError) -> None:
        """Nobody waits any longer."""
        self._failure = self._failure or error
        self._wake()

    async def close(self) -> None:
        """Stops filling, and ends the preparing worker."""
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.gather(self._filling, return_exceptions=True)
        await self._pool.close()

    async def _fill(self) -> None:
        loop = asyncio.get_running_loop()
        since = loop.time()
        while self._failure is None:
            if not await self._room():
                continue
            self._last += 1
            number = self._last
            try:
                material, cost = await self._pool.call(
                    0, 0, "prepare", self._address, name_of(self._session, number)
                )
            except (WorkerLost, PeerError) as error:
                _log.warning("entry %d is given up: %s", number, error)
                self._ledger.spoiled += 1
                if loop.time() - since > self._patience:
                    self.ended(LinkError(f"no entry could be prepared: {error}"))
                await asyncio.sleep(AGAIN_SECONDS)
            except PrivetError as error:
                self.ended(error)
            else:
                since = loop.time()
                self._ledger.stocked(cost)
                self._prepared[number] = loop.time(), material
                self._match()

    async def _room(self) -> bool:
        """Waits until entries are missing; false if it should be asked again."""
        oldest = asyncio.get_running_loop().time() - AWAITED_SECONDS
        numbers = [number for number, (since, _) in self._prepared.items() if since < oldest]
        for number in numbers:
            _log.warning("entry %d never came to the model provider", number)
            self._ledger.spoiled += 1
            del self._prepared[number]
        async with self._changed:
            if len(self._prepared) + len(self._ready) < self._ahead:
                return True
            try:
                async with asyncio.timeout(1.0):
                    await self._changed.wait()
            except TimeoutError:
                pass
        return False

    def _match(self) -> None:
        """Moves entries that both sides have to those that are ready, and drops those before them
        that the model provider never got."""
        for number in sorted(entry for entry in self._prepared if entry <= self._announced):
            _, material = self._prepared.pop(number)
            if number == self._announced:
                self._ready.append(Masks(number, self._row_bytes, material))
            else:
                self._ledger.spoiled += 1
        self._wake()

    def _wake(self) -> None:
        async def wake() -> None:
            async with self._changed:
                self._changed.notify_all()

        # Kept by the loop until it ran: it only takes a lock that is never held for long.
        self._waking = asyncio.ensure_future(wake())
