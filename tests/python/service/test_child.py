"""The end of child processes."""

from __future__ import annotations

import asyncio

import pytest

from privet.service import child


async def sleeper() -> asyncio.subprocess.Process:
    """A process that would sleep for longer than any test."""
    return await asyncio.create_subprocess_exec(
        "sleep", "600", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )


def test_a_killed_process_has_ended() -> None:
    async def scenario() -> None:
        process = await sleeper()
        await child.kill(process)
        assert process.returncode == -9
        await child.kill(process)

    asyncio.run(scenario())


def test_a_cancellation_waits_until_the_process_has_ended() -> None:
    async def scenario() -> None:
        process = await sleeper()
        killing = asyncio.create_task(child.kill(process))
        for _ in range(3):
            await asyncio.sleep(0)
            killing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await killing
        assert process.returncode == -9

    asyncio.run(scenario())
