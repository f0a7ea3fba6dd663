"""Servers of suite `ckks`, one process for each version that is offered in it.

A process listens at a Unix socket in a folder that only this user can enter. The control plane,
which knows each client by its certificate, relays sessions to it. Before it takes in keys or
computes, the process asks for permission by a line on its standard output; the answer comes on
its standard input (`privet.service.sessions`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.errors import PeerBusy, PrivetError
from privet.runtime.machine import available_memory
from privet.runtime.quantities import parse_size
from privet.service import child
from privet.service.repository import Version
from privet.suites.ckks import encrypting, program_path, raise_failure
from privet.suites.spawned import deaf_to_ctrl_c

if TYPE_CHECKING:
    from privet.service.local_node import LocalNode

SESSIONS = 16
"""Sessions of a version at once: as many as its process answers."""

SESSIONS_PER_CLIENT = 2

MOST_NAME_BYTES = 255

SILENCE_SECONDS = 120.0
"""How long a process waits for the next message of a client."""

STARTING_SECONDS = 600.0
STOPPING_SECONDS = 5.0
_LINE_BYTES = 2**24

_log = logging.getLogger(__name__)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
OnEvent = Callable[["ModelServer", dict[str, Any] | None], None]
"""Hears what a model server's process says, and (None) that it has ended. Must be quick."""


class ModelServers:
    """A model server for each version in suite `ckks`; `on_event` gets what their processes say."""

    def __init__(self, node: LocalNode, on_event: OnEvent) -> None:
        self._node, self._on_event = node, on_event
        self._model_servers: dict[str, ModelServer] = {}

    async def open(self, version: Version) -> None:
        """Starts the version's process. Raises those of the process, if the version does not run or
        does not fit the memory."""
        if version.key in self._model_servers:
            return
        await self._node.reserve(version)
        try:
            model_server = ModelServer(version, self._on_event)
            await model_server.start()
        except BaseException:
            self._node.release(version)
            raise
        self._model_servers[version.key] = model_server

    async def close_version(self, version: Version) -> None:
        """Ends the version's process, with its sessions."""
        model_server = self._model_servers.pop(version.key, None)
        if model_server is not None:
            await model_server.close()
            self._node.release(version)

    def find(self, version: Version) -> ModelServer | None:
        return self._model_servers.get(version.key)

    async def close(self) -> None:
        """Ends all processes."""
        for key in list(self._model_servers):
            await self._model_servers.pop(key).close()


class ModelServer:
    """A version's process (None while there is none), started again if it dies. `seconds` is about
    what evaluating one group of samples takes it on one core."""

    def __init__(self, version: Version, on_event: OnEvent) -> None:
        self.version = version
        self.seconds = 0.0
        self._on_event = on_event
        self._folder = Path(tempfile.mkdtemp(prefix="privet-"))
        self.process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._sessions: Counter[str] = Counter()
        self._partners: Counter[str] = Counter()

    async def start(self) -> None:
        """Starts the process, unless it runs, and waits until it listens. Raises what
        `ModelServers.open` does."""
        async with self._starting:
            if self.process is not None and self.process.returncode is None:
                return
            await self._stop()
            try:
                async with asyncio.timeout(STARTING_SECONDS):
                    await self._launch()
            except BaseException:
                await self._stop()
                shutil.rmtree(self._folder, ignore_errors=True)
                raise

    async def _launch(self) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._socket.unlink(missing_ok=True)
        job = self._folder / "job.json"
        job.write_text(json.dumps(self._job()))
        with deaf_to_ctrl_c():
            process = await asyncio.create_subprocess_exec(
                program_path(),
                str(job),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_LINE_BYTES,
                env={**os.environ, "GOMAXPROCS": str(self.version.config.cores)},
            )
        self.process = process
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line:
            raise PrivetError(f"the process of {self.version.name} ended before it listened")
        listening = json.loads(line)
        raise_failure(listening)
        self.seconds = float(listening["seconds"])
        self._reading = asyncio.create_task(self._follow(process.stdout))

    def _job(self) -> dict[str, Any]:
        limit = parse_size(self.version.config.limits.memory)
        return {
            **encrypting(self.version.session.suite).serving,
            "socket": str(self._socket),
            "program": str(self.version.folder),
            "memory": limit or available_memory() // 2,
            "timeout": SILENCE_SECONDS,
            "scheduled": True,
        }

    def order(self, **fields: Any) -> None:
        """Tells the process what a session may do, or that it is over."""
        process = self.process
        if process is not None and process.returncode is None and process.stdin is not None:
            with contextlib.suppress(OSError, RuntimeError):
                process.stdin.write(json.dumps(fields).encode() + b"\n")

    @property
    def _socket(self) -> Path:
        return self._folder / "socket"

    async def _follow(self, lines: asyncio.StreamReader) -> None:
        """Passes on what the process tells of its clients, and logs it."""
        try:
            async for line in lines:
                event = json.loads(line)
                self._on_event(self, event)
                self._note(event)
        finally:
            self._on_event(self, None)

    def _note(self, event: dict[str, Any]) -> None:
        fields = {"model": self.version.name, "client": str(event.get("client", ""))[:16]}
        if event["event"] == "failed":
            _log.info("session failed", extra={**fields, "error": event["message"]})
        elif event["event"] in ("prepared", "inferred"):
            fields["seconds"] = event["cost"]["seconds"]
            _log.info(f"session: {event['event']}", extra=fields)

    @contextmanager
    def place(self, client: str, partner: str | None = None) -> Iterator[None]:
        """A place for one session of a client, or of a `partner` who has places of its own. Raises
        `PeerBusy` if the client has its sessions, or there are as many as can be."""
        sessions = self._sessions if partner is None else self._partners
        if sessions[client] >= SESSIONS_PER_CLIENT:
            raise PeerBusy(f"you have {SESSIONS_PER_CLIENT} sessions already")
        if partner is None and sessions.total() >= SESSIONS:
            raise PeerBusy("there are as many sessions as can be: try again later")
        sessions[client] += 1
        try:
            yield
        finally:
            sessions[client] -= 1
            if not sessions[client]:
                del sessions[client]

    async def connect(self, client: str, name: str | None, per_minute: int, number: int) -> Streams:
        """A connection for the session `number` of `client`, the SHA-256 of its certificate in
        hexadecimal, with the common `name` in it, which may have so many inferences in a minute
        over all its sessions. Raises `OSError`; those of `start` if the process had died and does
        not come up."""
        await self.start()
        reader, writer = await asyncio.open_unix_connection(self._socket)
        name_bytes = (name or "").encode()[:MOST_NAME_BYTES]
        writer.write(
            bytes.fromhex(client)
            + per_minute.to_bytes(4, "little")
            + number.to_bytes(8, "little")
            + bytes([len(name_bytes)])
            + name_bytes
        )
        return reader, writer

    async def close(self) -> None:
        """Ends the process, with its sessions."""
        async with self._starting:
            await self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _stop(self) -> None:
        process, self.process = self.process, None
        reading, self._reading = self._reading, None
        if process is not None:
            await _end(process)
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Closes a process's standard input, at which it stops; kills it if sessions keep it."""
    if process.returncode is not None:
        return
    assert process.stdin is not None
    process.stdin.close()
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOPPING_SECONDS)
    finally:
        await child.kill(process)
