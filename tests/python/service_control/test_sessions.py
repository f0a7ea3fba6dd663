"""Sessions of suite `ckks` over WebSockets: who may open one, and what ends it."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import numpy as np
import onnxruntime
import pytest
from tests.e2e.caller import ServiceCaller, tls
from tests.python.service_control.actors import Scene, eventually, scene

from privet.compiler.compile import compile
from privet.errors import Misuse, PeerBusy
from privet.gateway import ServiceClient, Terms
from privet.runtime import Credentials
from privet.service.model_server import SESSIONS_PER_CLIENT
from privet.service.repository import ModelFolders
from privet.suites import Ckks

pytestmark = pytest.mark.go

MODEL = Path(__file__).parents[3] / "zoo" / "models" / "digits-smooth" / "square.onnx"
CONFIG = 'suites = ["ckks"]\ninput_range = [0, 1]\n[limits]\nrequests_per_minute = 30\n'
GREETING = b"\x01\x08\x00\x00\x00PRIVET\x01\x00"
ADDRESS = "/v2/models/{}/versions/1/session"

Dial = Callable[..., Awaitable[aiohttp.ClientWebSocketResponse]]
Play = Callable[[Scene, Dial], Awaitable[None]]


@pytest.fixture(scope="module")
def smooth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiled program with smooth activations."""
    folder = tmp_path_factory.mktemp("smooth")
    compile(MODEL, bits=50, scale=16, input_range=(0, 1), name="smooth").save(folder)
    return folder


@pytest.fixture
def play(tmp_path: Path, key_folder: Path, smooth: Path) -> Callable[..., None]:
    """Runs a test's coroutine beside a service of the model `smooth`; it gets what opens sockets of
    a client."""

    def run(act: Play) -> None:
        async def main() -> None:
            folder = tmp_path / "repository" / "smooth" / "1"
            folder.mkdir(parents=True)
            shutil.copy(MODEL, folder / "model.onnx")
            (folder.parent / "config.toml").write_text(CONFIG)
            async with (
                scene(tmp_path, key_folder, smooth) as testbed,
                aiohttp.ClientSession() as web,
            ):
                context = tls(key_folder, "client")

                async def dial(
                    model: str = "smooth", origin: str | None = None
                ) -> aiohttp.ClientWebSocketResponse:
                    url = f"https://{testbed.address}" + ADDRESS.format(model)
                    return await web.ws_connect(url, ssl=context, origin=origin)

                await act(testbed, dial)

        asyncio.run(main())

    return run


async def greets(socket: aiohttp.ClientWebSocketResponse) -> bool:
    """Whether the model's process answers on a socket."""
    await socket.send_bytes(GREETING)
    data = b""
    async with asyncio.timeout(20):
        while len(data) < len(GREETING):
            message = await socket.receive()
            if message.type is not aiohttp.WSMsgType.BINARY:
                return False
            data += message.data
    return data == GREETING


async def ended(socket: aiohttp.ClientWebSocketResponse) -> None:
    """Waits until the service has closed a socket."""
    async with asyncio.timeout(20):
        while not socket.closed:
            await socket.receive()


async def refused(dialling: Awaitable[aiohttp.ClientWebSocketResponse]) -> int:
    """The status that a socket is refused with."""
    with pytest.raises(aiohttp.WSServerHandshakeError) as excinfo:
        await dialling
    return excinfo.value.status


def test_a_client_has_so_many_sessions_and_gets_their_places_back(
    play: Callable[..., None],
) -> None:
    async def act(testbed: Scene, dial: Dial) -> None:
        sockets = [await dial() for _ in range(SESSIONS_PER_CLIENT)]
        assert all([await greets(socket) for socket in sockets])
        assert await refused(dial()) == 429
        await sockets[0].close()
        async with asyncio.timeout(20):
            while True:
                try:
                    assert await greets(await dial())
                    break
                except aiohttp.WSServerHandshakeError:
                    await asyncio.sleep(0.05)

    play(act)


def test_a_client_of_the_service_asks_in_a_session_of_its_own(
    play: Callable[..., None], key_folder: Path, tmp_path: Path
) -> None:
    x = np.random.default_rng(4).uniform(0, 1, (1, 1, 8, 8)).astype(np.float32)
    session = onnxruntime.InferenceSession(MODEL)
    expected = session.run(None, {session.get_inputs()[0].name: x})[0]

    async def act(testbed: Scene, dial: Dial) -> None:
        credentials = Credentials.from_directory(key_folder, "client")
        url, state = f"https://{testbed.address}", tmp_path / "state"
        async with ServiceClient(url, credentials, state=state) as client:
            result = await client.infer("smooth", [x], terms=Terms(Ckks()))
            assert (result.config, result.samples) == (Ckks(), 1)
            assert result.offline is not None
            assert result.offline.bytes_client > 1e6
            assert np.abs(next(iter(result.outputs.values())) - expected).max() < 0.05
            with pytest.raises(Misuse, match="not offered in gmw"):
                await client.infer("smooth", [x])
            with pytest.raises(Misuse, match="prepares nothing"):
                await client.infer("smooth", [x], terms=Terms(Ckks()), notice="1")
            sockets = [await dial() for _ in range(SESSIONS_PER_CLIENT)]
            assert all([await greets(socket) for socket in sockets])
            with pytest.raises(PeerBusy, match="no place for a session"):
                await client.infer("smooth", [x], terms=Terms(Ckks()))

    play(act)


def test_pages_of_other_sites_are_refused(
    play: Callable[..., None],
) -> None:
    async def act(testbed: Scene, dial: Dial) -> None:
        assert await refused(dial(origin="https://elsewhere.example")) == 403
        assert await greets(await dial(origin=f"https://{testbed.address}"))
        assert await refused(dial("none")) == 404

    play(act)


def test_a_process_that_died_is_started_again(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, dial: Dial) -> None:
        version = testbed.service.repository.version("smooth")
        assert version is not None
        model_server = testbed.service.model_servers.find(version)
        assert model_server is not None
        first = await dial()
        assert await greets(first)
        process = model_server.process
        assert process is not None
        process.kill()
        assert (await first.receive()).type is aiohttp.WSMsgType.CLOSE
        await process.wait()
        assert await greets(await dial())

    play(act)


def test_garbage_and_text_end_a_session_only(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, dial: Dial) -> None:
        for message in (b"\x07" * 64, b"\x01" + b"\xff" * 64, bytes(2**18)):
            socket = await dial()
            await socket.send_bytes(message)
            await ended(socket)
        socket = await dial()
        await socket.send_str("PRIVET")
        await ended(socket)
        assert await greets(await dial())

    play(act)


def test_the_log_repeats_nothing_that_a_client_says(
    play: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    words = b"call the operator"
    caplog.set_level(logging.INFO, "privet")

    def frame(kind: int, payload: bytes) -> bytes:
        return bytes([kind]) + len(payload).to_bytes(4, "little") + payload

    async def act(testbed: Scene, dial: Dial) -> None:
        for message in (
            frame(2, b"\x06" + words),
            frame(1, b'{"' + words + b'": 1}'),
            frame(1, b'{"request": "' + words + b'"}'),
            frame(1, b'{"request": "keys", "program": "' + words + b'"}'),
        ):
            socket = await dial()
            assert await greets(socket)
            await socket.send_bytes(message)
            await ended(socket)
        await eventually(lambda: len(failed()) == 4)

    def failed() -> list[str]:
        return [
            vars(record)["error"]
            for record in caplog.records
            if record.getMessage() == "session failed"
        ]

    play(act)
    assert not [text for text in failed() if words.decode() in text]


def test_a_model_that_goes_takes_its_process_along(play: Callable[..., None]) -> None:
    async def act(testbed: Scene, dial: Dial) -> None:
        version = testbed.service.repository.version("smooth")
        assert version is not None
        model_server = testbed.service.model_servers.find(version)
        assert model_server is not None
        assert model_server.process is not None
        models = testbed.service.settings.models
        assert isinstance(models, ModelFolders)
        shutil.rmtree(models.folder / "smooth")
        await eventually(lambda: testbed.service.model_servers.find(version) is None)
        await eventually(lambda: model_server.process is None)

    play(act)


def test_jobs_of_other_suites_are_refused_by_name(
    tmp_path: Path, key_folder: Path, play: Callable[..., None]
) -> None:
    async def act(testbed: Scene, dial: Dial) -> None:
        async with ServiceCaller(testbed.address, key_folder, tmp_path / "v", "client") as caller:
            status, answer = await caller.call("POST", "/v2/models/smooth/requests", {})
            assert status == 400
            assert "in sessions" in answer["error"]
            answer = await caller.good("GET", "/v2/models/smooth")
            assert [suite["suite"] for suite in answer["privet"]["suites"]] == ["ckks"]
            assert answer["privet"]["input_range"] == [0, 1]

    play(act)
