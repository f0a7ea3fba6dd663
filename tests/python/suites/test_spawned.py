"""Processes are started deaf to Ctrl-C, and whoever starts them hears it afterwards."""

from __future__ import annotations

import asyncio
import signal

from privet.suites.spawned import deaf_to_ctrl_c


def _mask() -> set[int]:
    return signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_starts_that_overlap_leave_the_mask_as_it_was() -> None:
    async def start(first: asyncio.Event, then: asyncio.Event) -> None:
        with deaf_to_ctrl_c():
            assert signal.SIGINT in _mask()
            first.set()
            await then.wait()
            assert signal.SIGINT in _mask()

    async def both() -> None:
        entered, left = asyncio.Event(), asyncio.Event()
        a = asyncio.create_task(start(asyncio.Event(), entered))
        b = asyncio.create_task(start(entered, left))
        await a
        left.set()
        await b

    before = _mask()
    asyncio.run(both())
    assert _mask() == before
    assert signal.SIGINT not in before
