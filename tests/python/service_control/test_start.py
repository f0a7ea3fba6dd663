"""A service that starts: what it answers before its models are loaded, and how it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.e2e.caller import ServiceCaller
from tests.python.service_control.actors import Pretender

from privet.runtime import listening
from privet.runtime.listening import ListenerBounds
from privet.service import http
from privet.service.control.identity import Gate, tls
from privet.service.control.listener import serve
from privet.service.driver import ClientEndpoint
from privet.service.repository import ModelConfig, ModelFolders
from privet.service.repository.files import Source
from privet.service.service import Service, Settings

Act = Callable[[ServiceCaller, asyncio.Event, asyncio.Event], Awaitable[None]]


@pytest.fixture
def start(folder: Path, key_folder: Path, program: Path) -> Callable[[Act], int]:
    """Starts a service whose one model is compiled when the first event is set; the second tells
    that it is loaded. The exit code after a SIGTERM."""

    def run(act: Act) -> int:
        async def main() -> int:
            compile_now, loaded = asyncio.Event(), asyncio.Event()

            async def build(source: Source, config: ModelConfig) -> Path:
                await compile_now.wait()
                return program

            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            endpoint = ClientEndpoint("localhost", 5.0, None)
            settings = Settings(ModelFolders(folder / "repository"), folder / "state", endpoint)
            service = Service(settings, Pretender(), build, "0.0")
            serving = asyncio.create_task(
                serve(
                    service,
                    Gate(),
                    tls(key_folder),
                    "127.0.0.1",
                    port,
                    lambda host, on: loaded.set(),
                )
            )
            address = f"127.0.0.1:{port}"
            async with ServiceCaller(address, key_folder, folder / "client") as caller:
                await answering(caller)
                await act(caller, compile_now, loaded)
                os.kill(os.getpid(), signal.SIGTERM)
                async with asyncio.timeout(20):
                    return await serving

        return asyncio.run(main())

    return run


async def answering(caller: ServiceCaller) -> None:
    """Waits until calls are answered."""
    async with asyncio.timeout(20):
        while True:
            try:
                assert await caller.call("GET", "/v2/health/live") == (200, {"live": True})
                return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.01)


def test_strangers_at_the_probes_leave_files_to_clients(
    folder: Path, key_folder: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = 400
    monkeypatch.setattr(listening, "most_files", lambda: files)
    shared: list[ListenerBounds] = []

    class Seen(listening.Listening):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            shared.append(self.bounds)

    monkeypatch.setattr(http, "Listening", Seen)

    async def build(source: Source, config: ModelConfig) -> Path:
        return program

    async def main() -> None:
        endpoint = ClientEndpoint("localhost", 5.0, None)
        settings = Settings(ModelFolders(folder / "repository"), folder / "state", endpoint)
        service = Service(settings, Pretender(), build, "0.0")
        await serve(
            service,
            Gate(),
            tls(key_folder),
            "127.0.0.1",
            0,
            lambda *_: os.kill(os.getpid(), signal.SIGTERM),
            probe=("127.0.0.1", 0),
        )

    asyncio.run(main())
    assert len(shared) == 2
    assert sum(bounds.sockets for bounds in shared) + listening.RESERVED_FILES <= files


def test_a_service_is_live_before_it_is_ready(start: Callable[[Act], int]) -> None:
    async def act(caller: ServiceCaller, compile_now: asyncio.Event, loaded: asyncio.Event) -> None:
        assert (await caller.call("GET", "/v2/health/ready"))[0] == 503
        status, answer, headers = await caller.ask("POST", "/v2/models/digits/requests", {})
        assert (status, answer["reason"]) == (503, "starting")
        assert int(headers["Retry-After"]) > 0
        assert not loaded.is_set()
        compile_now.set()
        await asyncio.wait_for(loaded.wait(), 20)
        assert (await caller.call("GET", "/v2/health/ready"))[0] == 200
        assert (await caller.call("GET", "/v2/models/nowhere"))[0] == 404

    assert start(act) == 0


def test_a_signal_ends_a_service_while_it_starts(start: Callable[[Act], int]) -> None:
    async def act(caller: ServiceCaller, compile_now: asyncio.Event, loaded: asyncio.Event) -> None:
        assert (await caller.call("GET", "/v2/health/ready"))[0] == 503

    assert start(act) == 0
