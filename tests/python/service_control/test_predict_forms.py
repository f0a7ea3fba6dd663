"""The page that asks models of suite `ckks`: tables of numbers, pictures in colours, the keyboard,
narrow screens, contrast."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from playwright.async_api import FilePayload, Page
from tests.browser import flaws
from tests.python.service_control.actors import Scene
from tests.python.service_control.test_predict_page import look, predict, says

from privet.suites.policy import make_policy

__all__ = ["look"]

pytestmark = [pytest.mark.browser, pytest.mark.go]

FEATURES = ["age", "income", "debt", "years at the bank"]
LABELS = ["granted", "refused", "a person decides"]
TABLE = f"""\
suites = ["ckks"]
input_range = [0, 4]
description = "Credit, by four numbers"
labels = {LABELS}
features = {FEATURES}
"""
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
ROW = [1.5, 0.25, 3, 2]


def linear(path: Path, shape: list[int], outputs: int) -> None:
    """A model with one dense layer on what it is given, flattened."""
    count = int(np.prod(shape))
    rng = np.random.default_rng(5)
    weights = rng.uniform(-1, 1, (count, outputs)).astype("<f4") / np.float32(count) * 4
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Flatten", ["x"], ["f"], "flatten"),
            helper.make_node("MatMul", ["f", "w"], ["y"], "dense"),
        ],
        "linear",
        [value("x", TensorProto.FLOAT, [1, *shape])],
        [value("y", TensorProto.FLOAT, [1, outputs])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.mkdir(parents=True)
    onnx.save(model, path / "model.onnx")


def plain(path: Path, sample: np.ndarray) -> np.ndarray:
    """What a model says in the clear."""
    session = onnxruntime.InferenceSession(path / "model.onnx")
    logits: np.ndarray = session.run(None, {"x": sample.astype(np.float32)})[0][0]
    return logits


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose `repository` has models for a table, for colours and for a number, one of them
    with light flooding."""
    repository = tmp_path / "repository"
    for name, shape, outputs, config in (
        ("credit", [4], 3, TABLE),
        ("colours", [3, 8, 8], 2, 'suites = ["ckks"]\ninput_range = [0, 1]\n'),
        ("price", [4], 1, 'suites = ["ckks"]\ninput_range = [0, 4]\n'),
        ("long", [120], 1, 'suites = ["ckks"]\ninput_range = [0, 4]\n'),
        ("faint", [4], 1, 'suites = ["ckks"]\ninput_range = [0, 4]\nflooding = "light"\n'),
    ):
        linear(repository / name / "1", shape, outputs)
        (repository / name / "config.toml").write_text(config)
    return tmp_path


def test_a_table_has_a_field_for_each_feature_and_needs_no_mouse(
    look: Callable[..., None], folder: Path
) -> None:
    async def act(testbed: Scene, page: Page) -> None:
        await page.select_option("#model", "credit/1")
        names = await page.locator("#fields label").all_inner_texts()
        assert names == FEATURES
        # A browser keeps on its disk what it may fill in again.
        assert await page.locator("input:not([autocomplete=off])[type=number]").count() == 0
        assert not await page.is_visible("#pad")
        await says(page, "#description", "Credit")
        # From the first field on by Tab alone, past the row and to the button.
        await page.focus("#fields input")
        for number in ROW:
            await page.keyboard.type(str(number))
            await page.keyboard.press("Tab")
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.id") == "predict"
        label, scores = await predict(page)
        expected = plain(folder / "repository" / "credit" / "1", np.array([ROW]))
        assert label == LABELS[int(expected.argmax())]
        assert np.abs(np.array(scores) - expected).max() < 0.02

    look(act)


def test_a_row_fills_the_fields_and_what_is_no_number_is_not_sent(
    look: Callable[..., None], folder: Path
) -> None:
    async def act(testbed: Scene, page: Page) -> None:
        await page.select_option("#model", "price/1")
        await page.click("#predict")
        await says(page, "#status", "number 1: a number from")
        assert await page.evaluate("document.activeElement.type") == "number"
        for wrong in ("1, 2", "1 2 3 four", "1 2 3 4 5"):
            await page.fill("#row", wrong)
            await page.press("#row", "Enter")
            await says(page, "#status", "a row of 4 numbers is needed")
        await page.fill("#row", "1.5; 0.25  3,2")
        await page.press("#row", "Enter")
        await says(page, "#status", "ready")
        answer, scores = await predict(page)
        expected = plain(folder / "repository" / "price" / "1", np.array([ROW]))
        assert abs(float(answer) - float(expected[0])) < 0.02
        assert scores == []
        await page.locator("#fields input").first.fill("1e9")
        await page.click("#predict")
        await says(page, "#status", "number 1: a number from")

        # More numbers than anybody types into fields.
        await page.select_option("#model", "long/1")
        assert await page.locator("#fields input").count() == 0
        await page.click("#predict")
        await says(page, "#status", "a row of 120 numbers is needed")
        numbers = [place % 4 for place in range(120)]
        await page.fill("#row", " ".join(map(str, [*numbers[:-1], 1e9])))
        await page.click("#predict")
        await says(page, "#status", "number 120: a number from")
        await page.fill("#row", " ".join(map(str, numbers)))
        answer, _ = await predict(page)
        expected = plain(folder / "repository" / "long" / "1", np.array([numbers]))
        assert abs(float(answer) - float(expected[0])) < 0.02

    look(act)


def test_a_picture_in_colours_is_taken_as_it_is(look: Callable[..., None], folder: Path) -> None:
    rng = np.random.default_rng(6)
    pixels = rng.integers(128, 256, (8, 8, 3), dtype=np.uint8)
    picture = io.BytesIO()
    Image.fromarray(pixels).resize((280, 280), Image.Resampling.NEAREST).save(picture, "png")

    async def act(testbed: Scene, page: Page) -> None:
        await page.select_option("#model", "colours/1")
        file: FilePayload = {
            "name": "picture.png",
            "mimeType": "image/png",
            "buffer": picture.getvalue(),
        }
        await page.set_input_files("#file", file)
        await page.wait_for_function(SHOWN, arg=pixels[0, 0].tolist())
        _, scores = await predict(page)
        sample = pixels.transpose(2, 0, 1)[None] / 255
        expected = plain(folder / "repository" / "colours" / "1", sample)
        assert np.abs(np.array(scores) - expected).max() < 0.02

    look(act)


def test_arrow_keys_draw_and_a_narrow_screen_shows_all(look: Callable[..., None]) -> None:
    async def act(testbed: Scene, page: Page) -> None:
        await page.select_option("#model", "colours/1")
        await page.focus("#pad")
        await page.keyboard.press("ArrowUp")
        assert await page.evaluate(INK) == 0
        await page.keyboard.press("Space")
        for _ in range(6):
            await page.keyboard.press("ArrowDown")
        ink = await page.evaluate(INK)
        assert ink > 500
        await page.keyboard.press("Space")
        await page.keyboard.press("ArrowRight")
        assert await page.evaluate(INK) == ink
        await page.set_viewport_size({"width": 375, "height": 800})
        for model in ("credit/1", "colours/1"):
            await page.select_option("#model", model)
            assert await page.evaluate("document.documentElement.scrollWidth") <= 375
            for scheme in SCHEMES:
                await page.emulate_media(color_scheme=scheme)
                assert await flaws(page) == []

    look(act)


def test_light_flooding_is_accepted_for_the_prediction_that_is_asked_for(
    look: Callable[..., None],
) -> None:
    async def act(testbed: Scene, page: Page) -> None:
        await page.select_option("#model", "faint/1")
        await page.fill("#row", " ".join(map(str, ROW)))
        await page.press("#row", "Enter")
        await page.click("#predict")
        await says(page, "#status", "light")
        # The control: who ticks the box is served.
        await page.check("#light")
        await predict(page)
        await page.uncheck("#light")
        await page.click("#predict")
        await says(page, "#status", "light")
        assert await page.inner_text("#answer") == ""

    look(act, settings={"accepts": make_policy(flooding="light")})


def test_a_session_ends_when_another_model_is_asked(look: Callable[..., None]) -> None:
    async def act(testbed: Scene, page: Page) -> None:
        # A client may have two sessions of a model.
        for turn, model in enumerate(("credit/1", "price/1") * 2 + ("credit/1",)):
            await page.select_option("#model", model)
            await page.fill("#row", f"{turn} 1 2 3")
            await page.press("#row", "Enter")
            await predict(page)

    look(act)


SHOWN = """([r, g, b]) => {
  const seen = document.getElementById("seen");
  const [x, y, z] = seen.getContext("2d").getImageData(0, 0, 1, 1).data;
  return seen.width === 8 && x === r && y === g && z === b;
}"""

INK = """() => {
  const pad = document.getElementById("pad");
  const { data } = pad.getContext("2d").getImageData(0, 0, pad.width, pad.height);
  return data.filter((it, at) => at % 4 === 0 && it > 128).length;
}"""
