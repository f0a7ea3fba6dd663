"""Calls of the control plane: when they are made again, and what their refusals become."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from privet.errors import (
    LinkError,
    MaterialError,
    Misuse,
    PeerBusy,
    PeerError,
    PeerMisbehaved,
    PrivetError,
)
from privet.gateway import calls
from privet.gateway.calls import Calls, NotThere, OtherProgram
from privet.runtime import Credentials
from privet.service.control.identity import tls

Handler = Callable[[web.Request], Awaitable[web.Response]]


@pytest.fixture
def call(key_folder: Path) -> Callable[..., Any]:
    """What a GET of a service that answers by `handler` comes to, or another call: `ask`."""

    def run(
        handler: Handler,
        ask: Callable[[Calls], Any] = lambda client: client.get("/v2"),
        **options: Any,
    ) -> Any:
        async def scene() -> Any:
            app = web.Application()
            app.router.add_route("*", "/v2", handler)
            runner = web.AppRunner(app)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls(key_folder)).start()
            url = f"https://localhost:{runner.addresses[0][1]}"
            credentials = Credentials.from_directory(key_folder, "client")
            caller = Calls(url, credentials, **{"patience": 3.0, **options})
            try:
                return await ask(caller)
            finally:
                await caller.close()
                await runner.cleanup()

        return asyncio.run(scene())

    return run


def sequence(*answers: web.Response | None) -> tuple[Handler, list[float]]:
    """Answers in turn (None hangs up), and the times at which it was asked."""
    left, times = list(answers), []

    async def handler(request: web.Request) -> web.Response:
        times.append(time.monotonic())
        answer = left.pop(0)
        if answer is None:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        return answer

    return handler, times


def refusal(status: int, reason: str = "", **headers: str) -> web.Response:
    return web.json_response({"error": "why", "reason": reason}, status=status, headers=headers)


def good() -> web.Response:
    return web.json_response({"name": "privet"})


@pytest.mark.parametrize("status", [429, 503, 507])
def test_a_busy_service_is_asked_again_when_it_says(call: Callable[..., Any], status: int) -> None:
    handler, times = sequence(refusal(status, **{"Retry-After": "1"}), good())
    assert call(handler) == {"name": "privet"}
    assert 1.0 <= times[1] - times[0] < 2.0


def test_whoever_waits_for_a_busy_service_is_told_why(
    call: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    handler, _ = sequence(refusal(503, **{"Retry-After": "1"}), good())
    call(handler)
    assert not caplog.records
    handler, _ = sequence(refusal(507, **{"Retry-After": "2"}), good())
    call(handler, patience=10.0)
    (record,) = caplog.records
    assert (record.levelname, record.message) == (
        "WARNING",
        "why; asked again for up to 10 seconds",
    )


def test_a_call_that_is_needless_by_now_is_not_made_again(call: Callable[..., Any]) -> None:
    answers = [False, True]

    async def is_needless() -> bool:
        return answers.pop(0)

    handler, times = sequence(*(refusal(429) for _ in range(3)), good())
    with pytest.raises(PeerBusy, match="why"):
        call(handler, lambda client: client.post("/v2", {}, is_needless=is_needless))
    assert (len(times), answers) == (2, [])


def test_a_broken_connection_is_made_again(call: Callable[..., Any]) -> None:
    # The library itself tries a GET twice at once.
    handler, times = sequence(None, None, good())
    assert call(handler) == {"name": "privet"}
    assert times[2] - times[0] >= calls.PAUSE_SECONDS * 0.9


def test_patience_ends(call: Callable[..., Any]) -> None:
    handler, times = sequence(refusal(503, **{"Retry-After": "9"}), good())
    with pytest.raises(PeerBusy, match="why"):
        call(handler)
    assert len(times) == 1
    handler, times = sequence(*[None] * 20)
    with pytest.raises(LinkError, match="cannot be reached"):
        call(handler, patience=1.0)
    assert 2 <= len(times) <= 10


@pytest.mark.parametrize(
    ("status", "reason", "error"),
    [
        (400, "bad request", Misuse),
        (401, "no token", PeerError),
        (403, "operators only", PeerError),
        (404, "not found", NotThere),
        (405, "method", Misuse),
        (409, "used notice", MaterialError),
        (409, "other program", OtherProgram),
        (413, "too large", Misuse),
        (500, "internal", PeerMisbehaved),
        (302, "", PeerMisbehaved),
    ],
)
def test_refusals_are_errors_and_not_asked_again(
    call: Callable[..., Any], status: int, reason: str, error: type[PrivetError]
) -> None:
    handler, times = sequence(refusal(status, reason))
    with pytest.raises(error, match="why") as excinfo:
        call(handler)
    assert excinfo.type is error
    assert len(times) == 1


def test_control_characters_from_a_service_do_not_reach_the_terminal(
    call: Callable[..., Any],
) -> None:
    message = "no\x1b[2J\r\n room" + 5000 * "x"
    handler, _ = sequence(web.json_response({"error": message}, status=500))
    with pytest.raises(PeerMisbehaved) as excinfo:
        call(handler)
    assert str(excinfo.value).startswith("no[2J roomxxx")
    assert len(str(excinfo.value)) <= 1000


def test_an_odd_time_to_come_back_is_none(call: Callable[..., Any]) -> None:
    handler, _ = sequence(refusal(503, **{"Retry-After": "²"}), good())
    assert call(handler) == {"name": "privet"}


def test_answers_that_are_none(call: Callable[..., Any], monkeypatch: Any) -> None:
    for raw in (b"", b"{", b"[" * 100_000, b"[Infinity]", b"NaN", b"[-1e999]"):
        handler, _ = sequence(web.Response(body=raw))
        with pytest.raises(PeerMisbehaved, match="no JSON"):
            call(handler)
    monkeypatch.setattr(calls, "MOST_BYTES", 1000)
    handler, _ = sequence(web.Response(body=bytes(2000)))
    with pytest.raises(PeerMisbehaved, match="more than 1000 bytes"):
        call(handler)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:1",
        "https://",
        "https://a:1/path",
        "ftp://a:1",
        "",
        "a:99999",
        "a:x",
        "[::1",
    ],
)
def test_addresses_that_are_none(key_folder: Path, url: str) -> None:
    with pytest.raises(Misuse, match="is not https"):
        Calls(url, Credentials.from_directory(key_folder, "client"))


def test_an_address_without_its_scheme(key_folder: Path) -> None:
    calls = Calls("localhost:7480", Credentials.from_directory(key_folder, "client"))
    assert (calls.host, calls.server_name) == ("localhost", "localhost")
