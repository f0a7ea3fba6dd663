"""A worker's process, as its executor sees it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import Callable
from typing import Any

from privet.errors import error_named
from privet.logs import trace
from privet.service import child
from privet.start import START
from privet.suites.spawned import deaf_to_ctrl_c

START_SECONDS = 60.0
"""How long a process may take to listen; far above what it takes."""

EVENTS = 1
"""The file descriptor that a worker writes events to."""

LINE_BYTES = 1 << 20
"""Longest line of a worker; far above what it writes."""

OnEvent = Callable[[dict[str, Any]], None]

_log = logging.getLogger(__name__)


class _Events(SubprocessStreamProtocol):
    """Reads events as they arrive, without the turns of the event loop that a stream's reader takes
    until it has a line. `first` is the first of them, or None if the worker ends before it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=1 << 16, loop=loop)
        self.first: asyncio.Future[dict[str, Any] | None] = loop.create_future()
        self.over = asyncio.Event()
        self.on_event: OnEvent = self._first
        self._partial_line = b""
        self._process: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._process = transport

    def _first(self, event: dict[str, Any]) -> None:
        if not self.first.done():
            self.first.set_result(event)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        *lines, self._partial_line = (self._partial_line + data).split(b"\n")
        if len(self._partial_line) > LINE_BYTES:
            self._partial_line = b""
            if self._process is not None:
                self._process.kill()
            return
        for line in lines:
            try:
                # Of bytes, `json` would look for the encoding first.
                self.on_event(json.loads(line.decode()))
            except Exception as error:
                _log.error("a worker's event was not taken", extra={"trace": trace(error)})

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == EVENTS:
            if not self.first.done():
                self.first.set_result(None)
            self.over.set()
        super().pipe_connection_lost(fd, exc)


class WorkerProcess:
    """A worker that listens at `port`; `privet.service.worker` has its orders and events."""

    def __init__(self, process: Process, events: _Events) -> None:
        self._process = process
        self._events = events
        self.port = 0

    @classmethod
    async def start(cls, job: dict[str, Any]) -> WorkerProcess:
        """A worker that listens; `job` says where its things are. Raises `PrivetError` of the kind
        that the worker met, such as `Misuse` if it finds no keys."""
        path = os.pathsep.join(entry for entry in sys.path if entry)
        loop = asyncio.get_running_loop()
        with deaf_to_ctrl_c():
            transport, events = await loop.subprocess_exec(
                lambda: _Events(loop),
                *START,
                "privet.service.worker",
                stdin=PIPE,
                stdout=PIPE,
                stderr=None,
                # Offers use one core; a job brings threads of its own.
                env={
                    **os.environ,
                    "PYTHONPATH": path,
                    "OPENBLAS_NUM_THREADS": "1",
                    "RAYON_NUM_THREADS": "1",
                },
            )
        worker = cls(Process(transport, events, loop), events)
        try:
            await worker.send(job)
            async with asyncio.timeout(START_SECONDS):
                event = await events.first
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

    def on_event(self, on_event: OnEvent) -> None:
        """From now on, `on_event` is called with each event. It must be quick."""
        self._events.on_event = on_event

    def terminate(self) -> None:
        """Ends the process at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def ended(self) -> str:
        """Waits for the last event and the end of the process; how it ended, for people."""
        await self._events.over.wait()
        code = await self._process.wait()
        if code < 0:
            return f"its process died of {signal.Signals(-code).name}"
        return f"its process ended with exit code {code}"

    async def kill(self) -> None:
        """Ends the process at once and waits for that."""
        await child.kill(self._process)
