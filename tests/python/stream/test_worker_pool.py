"""Workers whose callers go away."""

from __future__ import annotations

import asyncio
import os
import time

from privet.stream.worker_pool import LocalPool, Part, Recipe


class Sleeper:
    """A worker that takes its time."""

    def process(self) -> int:
        return os.getpid()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def test_calls_of_callers_who_have_gone_do_not_pile_up() -> None:
    async def run() -> None:
        pool = LocalPool(2.0)
        await pool.start(Recipe(Sleeper, ()), [Part(0, 0)])
        try:
            process = await pool.call(0, 0, "process")
            for _ in range(8):
                left = asyncio.create_task(pool.call(0, 0, "sleep", 0.7))
                await asyncio.sleep(0.01)
                left.cancel()
            # The worker is not taken for one that hangs.
            assert await pool.call(0, 0, "process") == process
        finally:
            await pool.close()

    asyncio.run(run())
