"""Connections that are open when certificates and authorities are read again."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from tests.e2e.caller import tls as client_tls

from privet import keys
from privet.runtime.listening import RenewedTls
from privet.service.control.identity import tls
from privet.service.http import serving

RELOADS = pytest.mark.parametrize("reloads", [True, False], ids=["reloaded", "control"])


@dataclass(frozen=True)
class Site:
    """A server of the keys in `folder`, and what it answers at `/` at once, at `/held` later and at
    `/stream` for ever."""

    folder: Path
    shown: RenewedTls
    port: int
    may_answer: asyncio.Event

    def url(self, path: str) -> str:
        """The address of one of them."""
        return f"https://localhost:{self.port}{path}"


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    """Serves meanwhile."""
    may_answer = asyncio.Event()

    async def live(_request: web.Request) -> web.Response:
        return web.Response()

    async def held(_request: web.Request) -> web.Response:
        await may_answer.wait()
        return web.Response(text="secret")

    async def stream(request: web.Request) -> web.WebSocketResponse:
        link = web.WebSocketResponse()
        await link.prepare(request)
        async for message in link:
            await link.send_str(message.data)
        return link

    app = web.Application()
    app.add_routes([web.get("/", live), web.get("/held", held), web.get("/stream", stream)])
    server_tls = RenewedTls(lambda: tls(folder))
    async with serving(app, "127.0.0.1", 0, server_tls, shutdown=0.1) as (_, port):
        yield Site(folder, server_tls, port, may_answer)


Act = Callable[[Site, aiohttp.ClientSession, Path], Awaitable[None]]


def run(act: Act, key_folder: Path, tmp_path: Path) -> None:
    """Does it at a site whose keys are a copy of `key_folder`, with those of another authority."""
    folder, other = tmp_path / "own", tmp_path / "other"
    shutil.copytree(key_folder, folder)
    keys.make(other)

    async def main() -> None:
        connector = aiohttp.TCPConnector(ssl=client_tls(key_folder, "client"))
        async with site(folder) as server, aiohttp.ClientSession(connector=connector) as session:
            await act(server, session, other)

    asyncio.run(main())


async def until_closed(transport: asyncio.BaseTransport | None) -> None:
    """Waits until a client's connection has ended."""
    async with asyncio.timeout(10):
        while transport is not None and not transport.is_closing():
            await asyncio.sleep(0.01)


@RELOADS
def test_an_idle_connection_is_cut_once_its_authority_is_gone(
    key_folder: Path, tmp_path: Path, reloads: bool
) -> None:
    async def act(server: Site, session: aiohttp.ClientSession, other: Path) -> None:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1",
            server.port,
            ssl=client_tls(key_folder, "client"),
            server_hostname="localhost",
        )
        ask = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        writer.write(ask)
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        shutil.copy(other / "ca.pem", server.folder)
        if reloads:
            server.shown.reload()
            async with asyncio.timeout(10):
                assert await reader.read() == b""
        else:
            writer.write(ask)
            assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    run(act, key_folder, tmp_path)


@RELOADS
def test_an_answer_under_way_goes_to_nobody_whose_authority_is_gone(
    key_folder: Path, tmp_path: Path, reloads: bool
) -> None:
    async def act(server: Site, session: aiohttp.ClientSession, other: Path) -> None:
        request_task = asyncio.create_task(session.get(server.url("/held")))
        await asyncio.sleep(0.2)
        shutil.copy(other / "ca.pem", server.folder)
        if reloads:
            server.shown.reload()
        server.may_answer.set()
        with pytest.raises(aiohttp.ClientError) if reloads else nullcontext():
            assert await (await request_task).text() == "secret"

    run(act, key_folder, tmp_path)


@RELOADS
def test_a_stream_is_cut_once_its_authority_is_gone(
    key_folder: Path, tmp_path: Path, reloads: bool
) -> None:
    async def act(server: Site, session: aiohttp.ClientSession, other: Path) -> None:
        async with session.ws_connect(server.url("/stream")) as link:
            shutil.copy(other / "ca.pem", server.folder)
            if reloads:
                server.shown.reload()
                assert (await link.receive(10)).type is not aiohttp.WSMsgType.TEXT
                assert link.closed
            else:
                await link.send_str("on")
                assert await link.receive_str(timeout=10) == "on"

    run(act, key_folder, tmp_path)


@RELOADS
def test_a_handshake_that_began_before_is_judged_by_the_authorities_of_its_end(
    key_folder: Path, tmp_path: Path, reloads: bool
) -> None:
    async def act(server: Site, session: aiohttp.ClientSession, other: Path) -> None:
        plain = socket.create_connection(("127.0.0.1", server.port))
        # The server has made its half of the handshake by the authorities of this moment.
        await asyncio.sleep(0.2)
        shutil.copy(other / "ca.pem", server.folder)
        if reloads:
            server.shown.reload()

        def attack() -> bytes:
            plain.settimeout(10)
            context = client_tls(key_folder, "client")
            with context.wrap_socket(plain, server_hostname="localhost") as link:
                link.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return link.recv(100)

        try:
            answer = await asyncio.to_thread(attack)
        except (OSError, ssl.SSLError):
            answer = b""
        assert (b" 200 " in answer) != reloads

    run(act, key_folder, tmp_path)


def test_connections_of_those_who_are_trusted_still_go_on(key_folder: Path, tmp_path: Path) -> None:
    """Whatever goes on over them is not lost, also where another authority was taken out; the next
    answer is the last."""

    async def act(server: Site, session: aiohttp.ClientSession, other: Path) -> None:
        authorities = (key_folder / "ca.pem").read_text() + (other / "ca.pem").read_text()
        (server.folder / "ca.pem").write_text(authorities)
        server.shown.reload()
        async with session.ws_connect(server.url("/stream")) as link:
            request_task = asyncio.create_task(session.get(server.url("/held")))
            async with session.get(server.url("/")) as answer:
                assert answer.headers.get("Connection") is None
            await asyncio.sleep(0.2)
            shutil.copy(key_folder / "ca.pem", server.folder)
            server.shown.reload()
            async with session.get(server.url("/")) as answer:
                assert answer.headers.get("Connection") == "close"
            await link.send_str("on")
            assert await link.receive_str(timeout=10) == "on"
            server.may_answer.set()
            async with await request_task as answer:
                assert await answer.text() == "secret"

    run(act, key_folder, tmp_path)


def test_a_stream_begins_on_a_connection_from_before(key_folder: Path, tmp_path: Path) -> None:
    async def act(server: Site, session: aiohttp.ClientSession, other: Path) -> None:
        async with session.get(server.url("/")) as answer:
            assert answer.status == 200
        server.shown.reload()
        async with session.ws_connect(server.url("/stream")) as link:
            await link.send_str("on")
            assert await link.receive_str(timeout=10) == "on"

    run(act, key_folder, tmp_path)
