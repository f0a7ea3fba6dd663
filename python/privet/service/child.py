"""The end of a child process, which no cancellation may leave half done."""

from __future__ import annotations

import asyncio
import contextlib


async def kill(process: asyncio.subprocess.Process) -> None:
    """Kills `process` if it runs and waits until it has ended.

    A cancellation is held back until then: a process that nobody has waited for would keep its
    pipes open after its event loop has closed.
    """
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    exit_task = asyncio.ensure_future(process.wait())
    cancelled: asyncio.CancelledError | None = None
    while not exit_task.done():
        try:
            await asyncio.shield(exit_task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
