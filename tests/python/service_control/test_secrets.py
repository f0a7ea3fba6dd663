"""Marked secrets, sent by every way in: none comes out in a log, a metric, a state or an error.

Each test has a control in which the same bytes reach aiohttp's own handler and log, where the same
search finds them.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import logging
import queue
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import grpc.aio
import pytest
from aiohttp import web
from tests.e2e.caller import ServiceCaller
from tests.e2e.caller import tls as client_tls
from tests.python.gateway.test_rest import MOST_BYTES, Echo
from tests.python.service_control.actors import Pretender, scene

from privet.errors import PeerBusy
from privet.gateway.oip.exchange import Exchange
from privet.gateway.oip.rest import application
from privet.gateway.oip.rpc import handlers
from privet.logs import JsonLines
from privet.runtime import Credentials, Finished, Server
from privet.service.control.identity import Gate, Token
from privet.service.http import serving

TOKEN = "canary-token-5d41402abc4b"
SECRET = "0.73125017363"
"""A value of an input, as it is written."""

FORMS = [
    form.encode()
    for word in (TOKEN, SECRET)
    for form in (word, word.encode().hex(), word[4:], repr(word.encode())[2:-1])
]


def framings(path: str) -> list[bytes]:
    """Requests that no parser can read, with the secrets where it stumbles."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n"
    bearer = f"Authorization: Bearer {TOKEN}\r\n"
    chunked = head + bearer + "Transfer-Encoding: chunked\r\n\r\n"
    sized = head + bearer + "Content-Length: 2\r\n\r\n{}"
    return [
        text.encode()
        for text in (
            # A chunk whose size is the input; one that does not end where it says.
            f"{chunked}{SECRET}\r\n{TOKEN}\r\n0\r\n\r\n",
            f"{chunked}2\r\n{SECRET}{TOKEN}\r\n0\r\n\r\n",
            f"{chunked}2\r\n{{}}\r\n{TOKEN}\r\n\r\n",
            # What is left of a body is taken for the next request.
            f"{sized}{SECRET} {TOKEN}\r\n\r\n",
            f"{sized}{TOKEN} / HTTP/1.1\r\n\r\n",
            # Headers and request lines that are none.
            f"{head}Authorization Bearer {TOKEN}\r\nx{SECRET}\r\n\r\n",
            f"{head}Authorization: Bearer {TOKEN}\r\nContent-Length: {SECRET}\r\n\r\n",
            f"{TOKEN} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n",
            f"GET {path}?{TOKEN} HTTP/{SECRET}\r\n\r\n",
            f"{head}X: {TOKEN * 2000}\r\n\r\n",
            f"{head}{bearer}Content-Length: 99\r\n\r\n{SECRET}",
        )
    ]


def test_what_a_peer_says_when_it_breaks_off_is_in_no_line() -> None:
    quoted = f'the peer aborted because it is too busy; try again later: "{TOKEN} \\" {SECRET}"'
    error = PeerBusy(quoted)
    record = logging.LogRecord("privet.x", logging.INFO, "", 0, "failed: %s", (error,), None)
    record.why, record.exc_info = f"PeerBusy: {error}", (PeerBusy, error, None)
    line = JsonLines().format(record)
    assert line.count("the peer aborted because it is too busy; try again later") == 3
    assert TOKEN not in line
    assert SECRET not in line
    assert TOKEN in logging.Formatter().format(record)


@contextmanager
def logged() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """All that is logged meanwhile: as a service prints it, and as Python does by default."""
    json_log, plain = io.StringIO(), io.StringIO()
    root, before = logging.getLogger(), logging.getLogger().level
    log_handlers = []
    for stream, formatter in ((json_log, JsonLines()), (plain, logging.Formatter("%(message)s"))):
        handler = logging.StreamHandler(stream)
        handler.setFormatter(formatter)
        root.addHandler(handler)
        log_handlers.append(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield json_log, plain
    finally:
        root.setLevel(before)
        for handler in log_handlers:
            root.removeHandler(handler)


def leaks(output: bytes | str) -> list[bytes]:
    """The secrets in it, in any of their forms."""
    output = output.encode() if isinstance(output, str) else output
    return [form for form in FORMS if form in output]


async def say(address: str, text: bytes, tls: ssl.SSLContext | None) -> bytes:
    """Sends bytes over a connection; what comes back until it is closed."""
    port = int(address.rpartition(":")[2])
    name = "localhost" if tls else None
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name)
    writer.write(text)
    try:
        async with asyncio.timeout(1.0):
            return await reader.read()
    except (TimeoutError, OSError):
        return b""
    finally:
        writer.transport.abort()


def test_the_service_repeats_no_secret(folder: Path, key_folder: Path, program: Path) -> None:
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    gate = Gate(tokens=(Token(digest, "someone", False), Token("0" * 64, "other", True)))
    answers: list[bytes] = []
    documents: list[str] = []

    async def main() -> None:
        async with (
            scene(folder, key_folder, program, Pretender(0.01), gate) as testbed,
            ServiceCaller(testbed.address, key_folder, folder / "c") as client,
            ServiceCaller(testbed.address, key_folder, folder / "o", "operator") as operator,
        ):
            tls = client_tls(key_folder, "client")
            for text in framings("/v2/models/digits/requests"):
                answers.append(await say(testbed.address, text, tls))
            client.headers = {"Authorization": f"Bearer {TOKEN}x"}
            assert (await client.call("GET", "/v2/jobs"))[0] == 401
            client.headers = {"Authorization": f"Bearer {TOKEN}"}
            operator.headers = dict(client.headers)
            calls: list[tuple[str, str, Any]] = [
                ("GET", f"/{SECRET}?token={TOKEN}", None),
                ("DELETE", f"/v2/jobs/{SECRET}", None),
                ("POST", "/v2/models/digits/requests", {"timeout": 0.5, "samples": 70000}),
                ("POST", "/v2/models/digits/requests", {"notice": "0-73125017363"}),
                ("POST", "/v2/models/digits/notices", {}),
                ("POST", "/v2/models/digits/requests", "x" * 20_000 + SECRET),
            ]
            for method, path, body in calls:
                status, answer = await client.call(method, path, body)
                answers.append(f"{status} {answer}".encode())
            async with asyncio.timeout(20):
                while '"message": "ended"' not in json_log.getvalue():
                    await client.good("GET", "/v2/jobs?wait=1&seen=0")
                    await asyncio.sleep(0.05)
            for path in ("/metrics", "/v2/state", "/openapi.json"):
                documents.append(str(await operator.good("GET", path)))

    with logged() as (json_log, plain):
        asyncio.run(main())
    text = json_log.getvalue()
    outputs: list[bytes | str] = [text, *documents, *answers]
    for output in outputs:
        assert leaks(output) == [], output
    # Nor does Python's own format show them: the records themselves do not hold them.
    assert leaks(plain.getvalue()) == []


def test_the_gateway_repeats_no_input(folder: Path) -> None:
    answers: list[bytes] = []
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [SECRET]}]}
    short = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [9], "data": [float(SECRET)]}]}

    async def rest(exchange: Echo) -> None:
        app = application(cast(Exchange, exchange), MOST_BYTES)
        async with serving(app, "127.0.0.1", 0, None, shutdown=0.1) as (_, port):
            bodies = [json.dumps(document).encode() for document in (body, short)]
            bodies += [bodies[1][:-3], b"[" * 5000 + SECRET.encode(), b"\xff" + SECRET.encode()]
            posts = [_post(content) for content in bodies] + framings("/v2/models/m/infer")
            for text in posts:
                answers.append(await say(f":{port}", text, None))

    async def rpc(exchange: Echo) -> None:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((handlers(cast(Exchange, exchange)),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
            for text in (SECRET.encode(), b"\x0a\x05m" + SECRET.encode()):
                try:
                    await call(text)
                except grpc.aio.AioRpcError as error:
                    answers.append(f"{error.code()} {error.details()}".encode())
        await server.stop(0.1)

    async def main() -> None:
        for exchange in (Echo(), Echo(ValueError(f"could not read {SECRET}"))):
            await rest(exchange)
            await rpc(exchange)

    with logged() as (json_log, plain):
        asyncio.run(main())
    assert answers
    outputs: list[bytes | str] = [json_log.getvalue(), *answers]
    for output in outputs:
        assert leaks(output) == [], output
    assert "a call failed" in plain.getvalue()


def _post(body: bytes) -> bytes:
    head = "POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_the_search_finds_what_aiohttp_itself_repeats(folder: Path) -> None:
    """The control: its own handler and Python's own format give both secrets away."""
    answers: list[bytes] = []

    async def main() -> None:
        app = application(cast(Exchange, Echo()), MOST_BYTES)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        for text in framings("/v2/models/m/infer"):
            answers.append(await say(f":{runner.addresses[0][1]}", text, None))
        await runner.cleanup()

    with logged() as (json_log, plain):
        asyncio.run(main())
    assert {TOKEN.encode(), SECRET.encode()} <= set(leaks(plain.getvalue()))
    assert any(leaks(answer) for answer in answers)
    # The service's format alone keeps even these records to itself.
    assert leaks(json_log.getvalue()) == []


@pytest.mark.parametrize("text", [f"POST / HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"])
def test_a_data_port_repeats_nothing(key_folder: Path, tmp_path: Path, text: str) -> None:
    finished: queue.Queue[Finished] = queue.Queue()
    credentials = Credentials.from_directory(key_folder, "server")
    with (
        logged() as (json_log, plain),
        Server(credentials, state=tmp_path, on_finished=finished.put) as server,
    ):
        server.start()
        with socket.create_connection(server.address) as connection:
            connection.sendall(text.encode())
            connection.recv(100)
            while connection.recv(100):
                pass
        # The connection is closed before its session is reported.
        session = finished.get(timeout=10)
    assert session.error is not None
    assert finished.empty()
    for output in (json_log.getvalue(), plain.getvalue(), repr(session)):
        assert leaks(output) == [], output
