"""A service that is not reached: which it is, within seconds, and what both sides say of it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web
from cryptography.x509.oid import ExtendedKeyUsageOID
from tests.e2e.test_commands import PRIVET

from privet import keys
from privet.errors import NotAccepted, PrivetError
from privet.gateway.calls import Calls
from privet.gateway.reach import NotReached, not_reached
from privet.keys import KeyPaths, fingerprint
from privet.runtime import Credentials, listening
from privet.runtime.revocation import Revoked
from privet.service.control.calls import Refusal
from privet.service.control.identity import Gate
from privet.service.http import serving

MOST_SECONDS = 5.0


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of an authority whose key was kept."""
    folder = tmp_path_factory.mktemp("made")
    keys.make(folder, keep_ca_key=True)
    return folder


def trusting(folder: Path, pair: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    """A server's TLS, which also shows certificates that no service would start with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(*(pair or (folder / "server.pem", folder / "server.key")))
    context.load_verify_locations(folder / "ca.pem")
    return context


def expired(folder: Path, target: Path, purpose: object) -> tuple[Path, Path]:
    """A certificate of the kept authority that ended a minute ago."""
    authority = keys._load_identity(KeyPaths.below(folder, ca_key=True))
    ends = datetime.now(UTC) - timedelta(minutes=1)
    certificate = keys._issue(authority, "late", [purpose], keys._subjects(["localhost"]), ends)  # type: ignore[list-item]
    paths = target / "late.pem", target / "late.key"
    paths[0].write_bytes(keys._certificate_pem(certificate))
    paths[1].write_bytes(keys._key_pem(certificate))
    return paths


@asynccontextmanager
async def service(tls: ssl.SSLContext, gate: Gate | None = None) -> AsyncIterator[int]:
    """What answers `live` to whom it lets in; the port."""

    async def live(request: web.Request) -> web.Response:
        try:
            (gate or Gate()).identify(request)
        except Refusal as refusal:
            return refusal.response()
        return web.json_response({"live": True})

    app = web.Application()
    app.router.add_get("/v2/health/live", live)
    async with serving(app, "127.0.0.1", 0, tls, shutdown=0.1) as (_, port):
        yield port


def reach(
    tls: ssl.SSLContext,
    credentials: Credentials,
    gate: Gate | None = None,
    server_name: str | None = None,
    context: ssl.SSLContext | None = None,
) -> None:
    """Reaches for a service with this TLS; what it raises comes within five seconds."""

    async def main() -> None:
        async with service(tls, gate) as port:
            calls = Calls(f"https://localhost:{port}", credentials, server_name=server_name)
            if context is not None:
                calls._tls = context
            try:
                await calls.reach()
            finally:
                await calls.close()

    start = time.monotonic()
    try:
        asyncio.run(main())
    finally:
        assert time.monotonic() - start < MOST_SECONDS


def cause(error: pytest.ExceptionInfo[NotReached]) -> str:
    """Which it was."""
    return error.value.cause


def test_the_certificate_of_the_service(certs: Path, tmp_path: Path) -> None:
    credentials = Credentials.from_directory(certs, "client")
    reach(trusting(certs), credentials)
    with pytest.raises(NotReached, match="ask its operator to renew it") as error:
        reach(
            trusting(certs, expired(certs, tmp_path, ExtendedKeyUsageOID.SERVER_AUTH)), credentials
        )
    assert cause(error) == "expired"
    with pytest.raises(NotReached, match="--server-name") as error:
        reach(trusting(certs), credentials, server_name="other.example.org")
    assert cause(error) == "other name"
    keys.make(tmp_path / "other")
    with pytest.raises(NotReached, match="another authority") as error:
        reach(trusting(tmp_path / "other"), credentials)
    assert cause(error) == "other authority"


def test_the_certificate_of_the_client(
    certs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys.make(tmp_path / "other")
    foreign = (tmp_path / "other" / "client.pem", tmp_path / "other" / "client.key")
    late = expired(certs, tmp_path, ExtendedKeyUsageOID.CLIENT_AUTH)
    for pair, words, logged in (
        (foreign, "use the --keys|does not know the authority", "certificate"),
        (late, "certificate is not valid now", "expired"),
    ):
        context = Credentials(certs / "client.pem", certs / "client.key", certs / "ca.pem").tls()
        context.load_cert_chain(*pair)
        caplog.clear()
        with (
            caplog.at_level(logging.WARNING, "privet"),
            pytest.raises(NotReached, match=words) as error,
        ):
            reach(trusting(certs), Credentials.from_directory(certs, "client"), context=context)
        assert cause(error) == "refused"
        lines = [record for record in caplog.records if "handshake failed" in record.message]
        assert len(lines) == 1, "one line, however often it is tried"
        assert vars(lines[0])["address"] == "127.0.0.1"
        assert logged in vars(lines[0])["reason"]


def test_a_revoked_certificate(certs: Path, tmp_path: Path) -> None:
    revocations = tmp_path / "revoked"
    revocations.write_text(fingerprint(certs / "client.pem") + "\n")
    with pytest.raises(NotAccepted, match="revoked"):
        reach(
            trusting(certs),
            Credentials.from_directory(certs, "client"),
            Gate(revoked=Revoked(revocations)),
        )


def test_waiting_for_a_service_that_is_away(certs: Path) -> None:
    credentials = Credentials.from_directory(certs, "client")

    async def main() -> list[PrivetError]:
        errors: list[PrivetError] = []
        with socket.create_server(("127.0.0.1", 0)) as place:
            port = place.getsockname()[1]
        calls = Calls(f"https://localhost:{port}", credentials)
        try:
            with pytest.raises(NotReached, match="nobody listens there") as error:
                await calls.reach()
            assert error.value.is_away
            task = asyncio.create_task(calls.reach(30.0, errors.append))
            while not errors:
                await asyncio.sleep(0.01)
            app = web.Application()
            app.router.add_get("/v2/health/live", _live)
            async with serving(app, "127.0.0.1", port, trusting(certs), shutdown=0.1):
                await task
        finally:
            await calls.close()
        return errors

    assert len(asyncio.run(main())) == 1


async def _live(_request: web.Request) -> web.Response:
    return web.json_response({"live": True})


def test_the_command_says_so_within_five_seconds(certs: Path, tmp_path: Path) -> None:
    """One place where nobody listens, and one where a connection is made and nothing answers."""
    np.save(tmp_path / "x.npy", np.zeros(1))
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        for place, arguments, words in (
            (unheard, ["infer", "--input", tmp_path / "x.npy"], "nobody listens"),
            (silent, ["infer", "--input", tmp_path / "x.npy"], "nothing answers"),
            (unheard, ["prepare", "digits", "--keep", 1, "--wait", 0.5], "nobody listens"),
        ):
            name, *options = arguments
            command = [*PRIVET, name, f"localhost:{place.getsockname()[1]}", *options, "--json"]
            command += ["--keys", certs, "--state", tmp_path / "state"]
            process = subprocess.run(
                list(map(str, command)), capture_output=True, text=True, timeout=60, check=False
            )
            assert process.returncode == 4, process.stderr
            error = json.loads(process.stdout)["error"]
            assert error["cause"] == "away"
            assert words in error["message"]


def test_failed_handshakes_of_many_addresses_fill_no_log(caplog: pytest.LogCaptureFixture) -> None:
    ear = listening.Listening(asyncio.Protocol, None, listening.ListenerBounds(8, 8, 8, 8))
    with caplog.at_level(logging.WARNING, "privet"):
        for number in range(5000):
            ear._log_failed(f"10.0.{number // 256}.{number % 256}", "no TLS")
    assert listening.LINES_AT_ONCE <= len(caplog.records) <= listening.LINES_AT_ONCE + 1


def test_both_sides_of_a_websocket_notice_that_the_other_has_vanished(certs: Path) -> None:
    """The system probes what is silent; no test here can take a cable out."""

    def minute(transport: socket.socket) -> bool:
        def option(name: int) -> int:
            return transport.getsockopt(socket.IPPROTO_TCP, name)

        assert transport.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        quiet, probe = option(socket.TCP_KEEPIDLE), option(socket.TCP_KEEPINTVL)
        return quiet + probe * option(socket.TCP_KEEPCNT) <= 60

    results: list[bool] = []

    async def session(request: web.Request) -> web.WebSocketResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        assert request.transport is not None
        results.append(minute(request.transport.get_extra_info("socket")))
        return answer

    async def main() -> None:
        app = web.Application()
        app.router.add_get("/session", session)
        async with serving(app, "127.0.0.1", 0, trusting(certs), shutdown=0.1) as (_, port):
            calls = Calls(f"https://localhost:{port}", Credentials.from_directory(certs, "client"))
            try:
                async with calls.stream("/session") as link:
                    results.append(minute(link.get_extra_info("socket")))
                    await link.receive()
            finally:
                await calls.close()

    asyncio.run(main())
    assert results == [True, True]


@pytest.mark.parametrize(
    ("base", "advice"),
    [
        (
            "https://localhost",
            r"the address, which names no port \(`privet serve` takes 7480\),",
        ),
        ("https://localhost:7480", "Look at the address, and whether"),
    ],
)
def test_an_address_without_a_port_is_told(base: str, advice: str) -> None:
    assert re.search(advice, str(not_reached(base, "localhost", ConnectionRefusedError())))
