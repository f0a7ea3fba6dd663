"""The driver decides when something is due, although nothing has happened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from privet.service.driver import Driver


class Due:
    """A scheduler for which something is due at each of these `times`."""

    def __init__(self, times: list[float]) -> None:
        self._times = times
        self.decided: list[float] = []

    def decide(self, now: float) -> list[Any]:
        self.decided.append(now)
        return []

    def next_event_at(self) -> float | None:
        return next((moment for moment in self._times if moment > self.decided[-1]), None)

    def drain(self, now: float) -> None:
        """Wakes the driver."""


class Nowhere:
    """An executor without machines."""

    async def events(self) -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield None


def test_what_is_due_is_decided_then_whatever_else_wakes_the_driver() -> None:
    async def main() -> None:
        start = time.monotonic()
        times = [start + 0.1, start + 0.2, start + 60]
        scheduler: Any = Due(times[2:])
        none: Any = None
        executor: Any = Nowhere()
        driver = Driver(scheduler, executor, none, none, find=none, changed=none, joined=none)
        task = asyncio.create_task(driver.run())
        await asyncio.sleep(0.02)
        # What is due earlier is heard of while an alarm for later is set, and the other way round.
        scheduler._times[:0] = times[:2]
        driver.drain()
        await asyncio.sleep(0.03)
        del scheduler._times[0]
        driver.drain()
        async with asyncio.timeout(10):
            while scheduler.decided[-1] < times[1]:
                await asyncio.sleep(0.01)
        # The alarm for later was set again, and gives way once more.
        scheduler._times[:0] = [time.monotonic() + 0.05]
        driver.drain()
        async with asyncio.timeout(10):
            while scheduler.decided[-1] < scheduler._times[0]:
                await asyncio.sleep(0.01)
        await driver.close()
        await task

    asyncio.run(main())
