"""Connections that say nothing: they keep nobody out, and fill no log."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.attacks.scene import INPUT, small_model
from tests.e2e.caller import ServiceCaller
from tests.e2e.caller import tls as client_tls
from tests.python.service_control import quiet_server
from tests.python.service_control.actors import Scene, scene

from privet import keys
from privet.runtime import Client, Credentials, Server, acceptor, listening
from privet.runtime.listening import ListenerBounds
from privet.service import http
from privet.service.control.identity import tls
from privet.service.http import in_chunks, serving

IDLE = 200
FILES = 100


@contextmanager
def idle(port: int, count: int) -> Iterator[None]:
    """So many connections that say nothing."""
    with ExitStack() as stack:
        for _ in range(count):
            link = socket.socket()
            link.setblocking(False)
            link.connect_ex(("127.0.0.1", port))
            stack.enter_context(closing(link))
        yield


def healthy(port: int, link_tls: ssl.SSLContext, patience: float) -> bool:
    """Whether an honest call is answered in time."""
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=patience) as plain,
            link_tls.wrap_socket(plain, server_hostname="localhost") as link,
        ):
            link.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return link.recv(100).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def under_siege(key_folder: Path, kind: str, calls: int, patience: float) -> tuple[int, int]:
    """How many of the calls are answered beside 200 idle connections where the process may open 100
    files, and how many lines it logs."""
    command = [sys.executable, quiet_server.__file__, str(key_folder), str(FILES), kind]
    context = client_tls(key_folder, "client")
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines: list[str] = []
        errors = process.stderr
        reader = threading.Thread(target=lambda: lines.extend(errors))
        reader.start()
        port = int(process.stdout.readline())
        assert healthy(port, context, 10.0)
        with idle(port, IDLE):
            time.sleep(0.5)
            answers = sum(healthy(port, context, patience) for _ in range(calls))
            assert process.poll() is None
        process.kill()
        reader.join()
    return answers, len(lines)


def test_idle_strangers_stop_no_call_and_fill_no_log(key_folder: Path, figures: list[str]) -> None:
    answers, lines = under_siege(key_folder, "ours", 10, 5.0)
    assert answers == 10
    assert lines <= 3
    # The control: aiohttp's own way of accepting.
    control_answers, control_lines = under_siege(key_folder, "aiohttp", 2, 1.0)
    assert control_answers == 0
    assert control_lines > 50
    figures.append(
        f"{IDLE} idle connections, {FILES} files: {lines} lines logged; without {control_lines}"
    )


def test_places_are_shared_between_clients(folder: Path, program: Path, tmp_path: Path) -> None:
    key_folder = tmp_path / "keys"
    keys.make(key_folder, keep_ca_key=True)
    keys.issue(key_folder, "greedy")
    bounds = ListenerBounds(connections=16, of_client=12, handshakes=8, of_address=8)

    async def act(testbed: Scene) -> None:
        context, port = client_tls(key_folder, "greedy"), int(testbed.address.rpartition(":")[2])
        writers = []
        for _ in range(20):
            _, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=context, server_hostname="localhost"
            )
            writers.append(writer)
        async with ServiceCaller(testbed.address, key_folder, folder / "c") as client:
            assert (await client.call("GET", "/v2/health/live"))[0] == 200
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0.2)
        async with ServiceCaller(testbed.address, key_folder, folder / "g", "greedy") as greedy:
            assert (await greedy.call("GET", "/v2/health/live"))[0] == 200

    async def main() -> None:
        async with scene(folder, key_folder, program, connections=bounds) as testbed:
            await act(testbed)

    asyncio.run(main())


def test_a_body_that_does_not_come_is_given_up(
    folder: Path, key_folder: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privet.service.http.BODY_SECONDS", 0.2)

    async def main() -> None:
        async with scene(folder, key_folder, program) as testbed:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1",
                int(testbed.address.rpartition(":")[2]),
                ssl=client_tls(key_folder, "client"),
                server_hostname="localhost",
            )
            head = "POST /v2/models/digits/requests HTTP/1.1\r\nHost: localhost\r\n"
            writer.write(f"{head}Content-Length: 10\r\n\r\n{{".encode())
            async with asyncio.timeout(10):
                assert b" 408 " in await reader.readline()
            writer.transport.abort()

    asyncio.run(main())


@pytest.mark.parametrize("case", ["unread", "slow", "control"])
def test_an_answer_that_nobody_reads_is_given_up(
    case: str, key_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then it takes little memory. A client that reads slowly gets all of it. The control is
    an answer in one chunk, all of which waits in memory."""
    monkeypatch.setattr(http, "UNREAD_SECONDS", 0.5)
    body, parts = bytes(32 << 20), 16
    handlers: list[web.RequestHandler] = []

    async def large(request: web.Request) -> web.Response:
        handlers.append(request.protocol)
        return web.Response(body=body) if case == "control" else in_chunks(body, "text/plain")

    def waits() -> int:
        transport: Any = handlers[0].transport
        inner = transport._ssl_protocol._transport
        return int(transport.get_write_buffer_size() + inner.get_write_buffer_size())

    async def main() -> None:
        app = web.Application()
        app.router.add_get("/", large)
        context = client_tls(key_folder, "client")
        async with serving(app, "127.0.0.1", 0, tls(key_folder), shutdown=0.1) as (_, port):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=context, server_hostname="localhost"
            )
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            if case == "slow":
                for _ in range(parts):
                    await reader.readexactly(len(body) // parts)
                    await asyncio.sleep(0.1)
                assert handlers[0].transport is not None
            elif case == "control":
                assert waits() > len(body) // 2
            else:
                assert waits() < len(body) // parts
                async with asyncio.timeout(30):
                    while handlers[0].transport is not None:
                        await asyncio.sleep(0.05)
            writer.transport.abort()

    asyncio.run(main())


def test_connections_share_the_memory_that_they_are_read_into(key_folder: Path) -> None:
    """What clients send at the same time reaches each one's own call."""
    handlers: list[web.RequestHandler] = []

    async def echo(request: web.Request) -> web.Response:
        handlers.append(request.protocol)
        return web.Response(body=await request.read())

    async def ask(port: int, context: ssl.SSLContext, body: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname="localhost"
        )
        head = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode())
        for start in range(0, len(body), 5000):
            writer.write(body[start : start + 5000])
            await writer.drain()
            await asyncio.sleep(0)
        await reader.readuntil(b"\r\n\r\n")
        answer = await reader.readexactly(len(body))
        writer.transport.abort()
        return answer

    async def main() -> None:
        app = web.Application(client_max_size=1 << 20)
        app.router.add_post("/", echo)
        context = client_tls(key_folder, "client")
        bodies = [bytes([number]) * 400_000 for number in range(8)]
        async with serving(app, "127.0.0.1", 0, tls(key_folder), shutdown=0.1) as (_, port):
            calls = (ask(port, context, body) for body in bodies)
            assert await asyncio.gather(*calls) == bodies
            async with asyncio.timeout(5):
                while any(handler.transport is not None for handler in handlers):
                    await asyncio.sleep(0.02)

    buffers: set[int] = set()
    original = http.Handler.connection_made

    def connection_made(handler: http.Handler, transport: Any) -> None:
        buffers.add(id(transport._ssl_protocol._ssl_buffer))
        original(handler, transport)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http.Handler, "connection_made", connection_made)
        asyncio.run(main())
    assert len(handlers) == 8
    assert len(buffers) == 1


def test_connections_that_are_closed_leave_no_tls(key_folder: Path) -> None:
    """They do not wait until cycles are collected, which is seldom in a service."""

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text="x")

    def links() -> int:
        # Not `isinstance`, which asks a dead proxy for its class.
        return sum(issubclass(type(instance), ssl.SSLObject) for instance in gc.get_objects())

    async def main() -> None:
        app = web.Application()
        app.router.add_get("/", answer)
        context = client_tls(key_folder, "client")
        async with serving(app, "127.0.0.1", 0, tls(key_folder), shutdown=0.1) as (_, port):
            count = links()
            for _ in range(20):
                assert await asyncio.to_thread(healthy, port, context, 10.0)
            async with asyncio.timeout(10):
                while links() > count:
                    await asyncio.sleep(0.05)

    gc.collect()
    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()


def test_a_handshake_has_its_time(
    key_folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listening, "HANDSHAKE_SECONDS", 0.3)

    async def main() -> None:
        app = web.Application()
        server_tls = tls(key_folder)
        async with serving(app, "127.0.0.1", 0, server_tls, shutdown=0.1) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.timeout(5):
                assert await reader.read() == b""
            writer.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    (line,) = caplog.records
    assert (vars(line)["address"], vars(line)["reason"]) == ("127.0.0.1", "it took too long")


def test_who_leaves_without_a_word_is_counted_and_not_logged_as_a_handshake_that_failed(
    key_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As clients do who measure their way to the service, and probes of balancers."""
    outcomes: list[str] = []

    async def main() -> None:
        server = serving(
            web.Application(),
            "127.0.0.1",
            0,
            tls(key_folder),
            shutdown=0.1,
            count=outcomes.append,
        )
        async with server as (_, port):
            for words in (b"", b"", b"\x16\x03\x01"):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(words)
                writer.close()
                await asyncio.sleep(0.2)
                if not words:
                    assert not caplog.records
            nobody = ssl.create_default_context(cafile=str(key_folder / "ca.pem"))
            for context in (client_tls(key_folder, "client"), nobody):
                await asyncio.to_thread(healthy, port, context, 5.0)

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    (line,) = caplog.records  # of one address, one a minute
    assert vars(line)["reason"] == "the connection broke off"
    assert outcomes == ["silent", "silent", "broken off", "done", "certificate"]


def test_sighup_ends_no_process_that_reads_files_again_later_or_did_before() -> None:
    code = """
import asyncio, os, signal
from privet.runtime import hangup
# As a program that was not started by `nohup`.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
hangup.hold()
os.kill(os.getpid(), signal.SIGHUP)
heard = asyncio.Event()
async def reload():
    heard.set()
async def main():
    with hangup.Hangup(reload, "files"):
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.wait_for(heard.wait(), 5)
    os.kill(os.getpid(), signal.SIGHUP)
asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    control = code.replace("hangup.hold()", "")
    status = subprocess.run([sys.executable, "-c", control], check=False).returncode
    assert status == -signal.SIGHUP


@pytest.mark.parametrize("hurried", [True, False], ids=["as it is", "control"])
def test_silent_peers_keep_a_data_port_busy_for_a_moment(
    key_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hurried: bool
) -> None:
    monkeypatch.setattr(acceptor, "MAX_SESSIONS", 8)
    monkeypatch.setattr(acceptor, "HANDSHAKE_SECONDS", 4.0)
    monkeypatch.setattr(acceptor, "HURRY_SECONDS", 0.05 if hurried else 4.0)
    compiled = small_model()
    server_credentials = Credentials.from_directory(key_folder, "server")
    with Server(server_credentials, state=tmp_path / "server") as server:
        server.add(compiled.program, compiled.weights)
        port = server.start().address[1]
        with idle(port, 16):
            time.sleep(0.1)
            start = time.monotonic()
            credentials = Credentials.from_directory(key_folder, "client")
            with Client("localhost", port, credentials, state=tmp_path / "client") as client:
                seconds = time.monotonic() - start
                client.infer([INPUT])
    assert (seconds < 8.0) == hurried
