"""A worker's process, as its executor sees it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

from privet.errors import error_named
from privet.service import child

START_SECONDS = 60.0
"""How long a process may take to listen; far above what it takes."""

LINE_BYTES = 1 << 20
"""The longest event."""


class WorkerProcess:
    """A worker that listens at `port`; `privet.service.worker` has its orders and events."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.port = 0

    @classmethod
    async def start(cls, job: dict[str, Any]) -> WorkerProcess:
        """A worker that listens; `job` says where its things are.

        # Errors
        `PrivetError` of the kind that the worker met, such as `Misuse` if it finds no keys.
        """
        path = os.pathsep.join(entry for entry in sys.path if entry)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "privet.service.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_BYTES,
            # Offers use one core; a job brings threads of its own.
            env={
                **os.environ,
                "PYTHONPATH": path,
                "OPENBLAS_NUM_THREADS": "1",
                "RAYON_NUM_THREADS": "1",
            },
        )
        worker = cls(process)
        try:
            await worker.send(job)
            async with asyncio.timeout(START_SECONDS):
                event = await worker.next()
        except BaseException:
            await worker.kill()
            raise
        if event is None or event["event"] != "listening":
            await worker.kill()
            event = event or {"error": "PrivetError", "message": "it ended at once"}
            raise error_named(event["error"], f"a worker did not start: {event['message']}")
        worker.port = int(event["port"])
        return worker

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    async def send(self, order: dict[str, Any]) -> None:
        """Gives an order; one to a worker that has died is lost."""
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(ConnectionError):
            stdin.write(json.dumps(order).encode() + b"\n")
            await stdin.drain()

    async def next(self) -> dict[str, Any] | None:
        """The next event; None once the worker has ended."""
        stdout = self._process.stdout
        assert stdout is not None
        line = await stdout.readline()
        if not line.endswith(b"\n"):
            return None
        event: dict[str, Any] = json.loads(line)
        return event

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """Events until the worker ends."""
        while (event := await self.next()) is not None:
            yield event

    def terminate(self) -> None:
        """Ends the process at once; `events` ends as well, then."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def ended(self) -> str:
        """Waits for the end of the process; how it ended, for people."""
        code = await self._process.wait()
        if code < 0:
            return f"its process died of {signal.Signals(-code).name}"
        return f"its process ended with exit code {code}"

    async def kill(self) -> None:
        """Ends the process at once and waits for that."""
        await child.kill(self._process)
