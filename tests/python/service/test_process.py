"""What a worker's process may write to the control plane."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from privet.service.executor import process
from privet.service.executor.process import LINE_BYTES, WorkerProcess


def hear(code: str) -> tuple[list[dict[str, Any]], str]:
    """The events of a process that runs `code` instead of a worker, and how it ended. The code runs
    once somebody listens."""
    events: list[dict[str, Any]] = []

    def take(event: dict[str, Any]) -> None:
        if "unfit" in event:
            raise ValueError
        events.append(event)

    async def listen() -> str:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(
            lambda: process._Events(loop),
            sys.executable,
            "-c",
            f"input()\n{code}",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        worker = WorkerProcess(asyncio.subprocess.Process(transport, protocol, loop), protocol)
        worker.on_event(take)
        await worker.send({})
        return await asyncio.wait_for(worker.ended(), 60)

    return events, asyncio.run(listen())


def test_an_event_that_is_not_taken_costs_none_behind_it() -> None:
    lines = "\n".join(["{}", '{"unfit": 1}', "no JSON", json.dumps({"event": "last"})])
    events, _ = hear(f"print({lines!r})")
    assert events == [{}, {"event": "last"}]


def test_a_process_that_ends_no_line_is_killed() -> None:
    write = f"import sys\nwhile True: sys.stdout.write('x' * {LINE_BYTES})"
    assert "SIGKILL" in hear(write)[1]
