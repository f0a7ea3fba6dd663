"""The page that asks a model of suite `ckks`, in a headless Chromium, with a real process of the
suite behind a service whose executor pretends."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnxruntime
import pytest
from playwright.async_api import Page
from tests.browser import browsing
from tests.python.service_control.actors import Scene, scene

from privet.service.control.identity import Gate, Token
from privet.service.model_server import ModelServer, Streams
from privet.service.repository import Builder
from privet.suites import module_paths, plan_ckks

pytestmark = [pytest.mark.browser, pytest.mark.go]

ZOO = Path(__file__).parents[3] / "zoo" / "models"
MODEL = ZOO / "digits-smooth" / "square.onnx"
CONFIG = 'suites = ["ckks"]\ninput_range = [0, 1]\n'

SEVEN = ((70, 50), (210, 50), (120, 235))
"""Corners of a digit, in pixels of the pad."""

GREETING = 8
TOKEN = "open-sesame"
REQUEST_BYTES = 4096

Look = Callable[[Scene, Page], Awaitable[None]]


class Tap:
    """What goes up to the process, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sessions: list[bytearray] = []
        connect = ModelServer.connect

        async def tapped(
            model_server: ModelServer, client: str, name: str | None, per_minute: int, number: int
        ) -> Streams:
            reader, writer = await connect(model_server, client, name, per_minute, number)
            self.sessions.append(bytearray())
            write, into = writer.write, self.sessions[-1]

            def copy(data: Any) -> None:
                into.extend(data)
                write(data)

            monkeypatch.setattr(writer, "write", copy)
            return reader, writer

        monkeypatch.setattr(ModelServer, "connect", tapped)

    def frames(self, session: int) -> list[bytes]:
        """Payloads of a session's frames, each of which is data."""
        stream, messages = bytes(self.sessions[session]), []
        while stream:
            assert stream[0] == 1
            length = int.from_bytes(stream[1:5], "little")
            messages.append(stream[5 : 5 + length])
            assert len(messages[-1]) == length
            stream = stream[5 + length :]
        return messages


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose `repository` has the model `digits` for suite `ckks`."""
    (tmp_path / "repository" / "digits" / "1").mkdir(parents=True)
    shutil.copy(MODEL, tmp_path / "repository" / "digits" / "1" / "model.onnx")
    (tmp_path / "repository" / "digits" / "config.toml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def look(folder: Path, key_folder: Path, program: Path) -> Callable[..., None]:
    """Opens the page as a client, and runs a test's coroutine on it. Whatever the page says on its
    console, errors of its content policy among it, fails the test."""

    def run(
        act: Look,
        gate: Gate | None = None,
        settings: Mapping[str, Any] = MappingProxyType({}),
        **options: Any,
    ) -> None:
        async def main() -> None:
            messages: list[str] = []
            compiler = Builder(folder / "programs")
            async with scene(
                folder, key_folder, program, gate=gate, compiler=compiler, **settings
            ) as testbed:
                origin = f"https://{testbed.address}"
                options["viewport"] = {"width": 1280, "height": 900}
                async with browsing(origin, key_folder, "client", **options) as context:
                    page = await context.new_page()
                    page.on("console", lambda message: messages.append(message.text))
                    page.on("pageerror", lambda error: messages.append(str(error)))
                    await page.goto(f"{origin}/predict")
                    await says(page, "#status", "ready")
                    await act(testbed, page)
            assert messages == []

        asyncio.run(main())

    return run


async def says(page: Page, place: str, text: str) -> None:
    """Waits until a place on the page has a text."""
    await page.wait_for_function(
        "([place, text]) => document.querySelector(place)?.innerText.includes(text)",
        arg=[place, text],
        timeout=120_000,
    )


async def draw(page: Page, corners: tuple[tuple[int, int], ...]) -> None:
    """Draws with the mouse."""
    box = await page.locator("#pad").bounding_box()
    assert box is not None
    places = [(box["x"] + x, box["y"] + y) for x, y in corners]
    await page.mouse.move(*places[0])
    await page.mouse.down()
    for place in places[1:]:
        await page.mouse.move(*place, steps=12)
    await page.mouse.up()


async def seen(page: Page) -> np.ndarray:
    """Grey levels that the page encrypts, as it shows them."""
    levels = await page.evaluate(SEEN)
    return np.array(levels, dtype=np.uint8).reshape(8, 8)


def plain(levels: np.ndarray) -> np.ndarray:
    """What the model says of grey levels in the clear."""
    session = onnxruntime.InferenceSession(MODEL)
    sample = (levels[None, None] / 255).astype(np.float32)
    scores: np.ndarray = session.run(None, {session.get_inputs()[0].name: sample})[0][0]
    return scores


async def predict(page: Page) -> tuple[str, list[float]]:
    """Asks for a prediction: the label and the scores on the page."""
    await page.click("#predict")
    await page.wait_for_function(ENDED, timeout=120_000)
    assert await page.inner_text("#status") == "ready"
    cells = await page.locator("#scores td.number").all_inner_texts()
    return await page.inner_text("#answer"), [float(cell) for cell in cells]


def test_a_drawn_digit_is_recognised_and_the_wire_has_ciphertexts_only(
    look: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tap = Tap(monkeypatch)

    async def act(testbed: Scene, page: Page) -> None:
        await draw(page, SEVEN)
        levels = await seen(page)
        assert levels.max() > 200
        label, scores = await predict(page)
        expected = plain(levels)
        assert label == str(np.argmax(expected)) == "7"
        assert np.abs(np.array(scores) - expected).max() < 0.05
        await says(page, "#costs", "sent")
        version = testbed.service.repository.version("digits")
        assert version is not None
        check_wire(tap.frames(0), plan_ckks(version.program.to_public_bytes()))
        stream = bytes(tap.sessions[0])
        for picture in (levels.tobytes(), (levels / 255).tobytes()):
            assert picture[:64] not in stream

    look(act)


def check_wire(frames: list[bytes], plan: dict[str, Any]) -> None:
    """A session has a greeting, three requests of known words, keys, and ciphertexts, each of the
    size that the plan says, and nothing else."""
    assert len(frames[0]) == GREETING
    requests = [json.loads(frame) for frame in frames[1:] if len(frame) <= REQUEST_BYTES]
    assert [request["request"] for request in requests] == ["describe", "keys", "infer"]
    words = {"request", "scenario", "program", "parameters", "batch"}
    assert set().union(*requests) <= words
    kinds = [
        json.loads(frame)["request"] if len(frame) <= REQUEST_BYTES else "" for frame in frames[1:]
    ]
    keys, data = frames[kinds.index("keys") + 2 : kinds.index("infer") + 1], frames[-1:]
    assert len(keys) == 1 + plan["keys"]  # the first is an encryption of zero
    assert sum(len(frame) for frame in keys) == plan["offline_bytes_client"]
    assert kinds.index("infer") == len(kinds) - 2
    assert len(data[0]) == plan["online_bytes_client"]


def test_a_picture_and_a_second_question_under_the_same_keys(
    look: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tap = Tap(monkeypatch)

    async def act(testbed: Scene, page: Page) -> None:
        for digit in ("3", "9"):
            await page.set_input_files("#file", ZOO / f"digit-{digit}.png")
            await page.wait_for_function(BRIGHT)
            await page.wait_for_timeout(200)
            label, _ = await predict(page)
            assert label == str(np.argmax(plain(await seen(page)))) == digit
        assert len(tap.sessions) == 1

    look(act)


def test_the_page_says_the_hash_of_the_module(look: Callable[..., None]) -> None:
    async def act(testbed: Scene, page: Page) -> None:
        digest = hashlib.sha256(module_paths()[0].read_bytes()).hexdigest()
        assert await page.inner_text("#hash") == digest
        await says(page, "#costs", "Module\t1")

    look(act)


def test_a_person_who_knows_the_token_is_served_and_nothing_logs_it(
    look: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def act(testbed: Scene, page: Page) -> None:
        await draw(page, SEVEN)
        label, _ = await predict(page)
        assert label == "7"

    token = Token(hashlib.sha256(TOKEN.encode()).hexdigest(), "visitors", operator=False)
    person = {"username": "anybody", "password": TOKEN}
    look(act, Gate(tokens=(token,)), http_credentials=person)
    assert "session: inferred" in caplog.text
    for secret in (TOKEN, base64.b64encode(f"anybody:{TOKEN}".encode()).decode()):
        assert secret not in caplog.text


SEEN = """() => {
  const seen = document.getElementById("seen");
  const all = seen.getContext("2d").getImageData(0, 0, seen.width, seen.height).data;
  return [...all].filter((_, at) => at % 4 === 0);
}"""

ENDED = "() => !document.getElementById('predict').disabled"

BRIGHT = f"() => Math.max(...({SEEN})()) > 200"
