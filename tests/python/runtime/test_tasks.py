"""Work in the background of an event loop."""

from __future__ import annotations

import asyncio

from privet.runtime.tasks import Tasks


def test_a_task_that_cancels_all_others_goes_on() -> None:
    events: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            events.append("waited")

    async def main() -> None:
        tasks = Tasks()

        async def cancel() -> None:
            await tasks.cancel()
            events.append("cancelled")

        tasks.start(wait())
        await asyncio.sleep(0)
        async with asyncio.timeout(20):
            await tasks.start(cancel())
            await tasks.wait()

    asyncio.run(main())
    assert events == ["waited", "cancelled"]
