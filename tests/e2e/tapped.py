"""A service as a gateway sees it through a tap that hears all that it says, under TLS.

The tap holds the keys of both parties. It relays the calls of the control plane, and puts a tap of
its own before each worker that the service sends the gateway to.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from tests.e2e.caller import tls
from tests.kills.wiretap import Wiretap

from privet.service.control.identity import tls as service_tls

EVERYTHING = 1 << 40


@dataclass(frozen=True)
class Spoken:
    """A call as the gateway made it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Tap:
    """Relays between a gateway at `port` and the service at `upstream`; remembers the former."""

    def __init__(self, keys: Path, upstream: str, stack: ExitStack) -> None:
        self.port = 0
        self.calls: list[Spoken] = []
        self._keys = keys
        self._upstream = f"https://localhost:{upstream.rpartition(':')[2]}"
        self._stack = stack
        self._workers: dict[int, Wiretap] = {}

    def said_to_workers(self) -> list[bytes]:
        """Each frame from the gateway to a worker, whole."""
        return [
            frame.payload
            for worker in self._workers.values()
            for frame in worker.frames
            if frame.sender == "client"
        ]

    async def start(self) -> None:
        """Listens."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._relay)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=service_tls(self._keys)).start()
        self.port = runner.addresses[0][1]
        connector = aiohttp.TCPConnector(ssl=tls(self._keys, "client"))
        self._session = aiohttp.ClientSession(connector=connector)
        self._runner = runner

    async def stop(self) -> None:
        """Hangs up."""
        await self._session.close()
        await self._runner.cleanup()

    async def _relay(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.calls.append(Spoken(request.method, request.path_qs, dict(request.headers), body))
        kind = {"Content-Type": request.content_type} if body else {}
        async with self._session.request(
            request.method, self._upstream + request.path_qs, data=body or None, headers=kind
        ) as answer:
            raw = await answer.read()
            if "/jobs" in request.path:
                raw = json.dumps(self._redirected(json.loads(raw))).encode()
            return web.Response(body=raw, status=answer.status, content_type=answer.content_type)

    def _redirected(self, answer: Any) -> Any:
        """The answer, with the taps' ports in place of the workers'."""
        if isinstance(answer, list):
            return [self._redirected(item) for item in answer]
        if not isinstance(answer, dict):
            return answer
        fields = {name: self._redirected(value) for name, value in answer.items()}
        if "port" in fields:
            fields["port"] = self._worker(fields["port"]).port
        return fields

    def _worker(self, port: int) -> Wiretap:
        if port not in self._workers:
            tap = Wiretap(self._keys, EVERYTHING)
            tap.upstream = port
            self._workers[port] = self._stack.enter_context(tap.listening())
        return self._workers[port]


@contextmanager
def tapped(keys: Path, upstream: str) -> Iterator[Tap]:
    """A tap at work on a thread of its own, before the service at an address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    with ExitStack() as stack:
        tap = Tap(keys, upstream, stack)
        try:
            asyncio.run_coroutine_threadsafe(tap.start(), loop).result()
            yield tap
            asyncio.run_coroutine_threadsafe(tap.stop(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
