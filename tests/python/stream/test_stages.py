"""Stages one after the other, in any number of parts: the fixed-point executor's integers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.python.stream import models
from tests.python.stream.blinding import CIPHERS, blindings, entry

from privet import _native
from privet.compiler.compile import PRIVATE_FILE, Compiled
from privet.compiler.executor import encode_input, execute
from privet.errors import Misuse, PeerMisbehaved, PrivetError
from privet.stream.blinding import DataBlinding, MaterialBlinding, ModelBlinding
from privet.stream.cipher import BFV, PAILLIER, Cipher
from privet.stream.frames import FrameKind
from privet.stream.link import Patience
from privet.stream.provider import Caller, ProviderSession
from privet.stream.rounds import LinearRounds
from privet.stream.stages import NONE, Stages, StageSlice, names, split_into_ranges
from privet.suites import Guard, make_policy

INDEX = np.dtype("<u4")


@pytest.fixture(scope="module")
def key() -> _native.StreamKey:
    return _native.StreamKey.generate(2048)


def both(compiled: Compiled, folder: Path, cipher: Cipher = PAILLIER) -> tuple[Stages, Stages]:
    """The model provider's stages and the data provider's."""
    compiled.save(folder)
    public = compiled.program.to_public_bytes()
    return Stages(public, cipher, (folder / PRIVATE_FILE).read_bytes()), Stages(public, cipher)


def walk(
    model: Stages,
    data: Stages,
    key: _native.StreamKey,
    blinding: tuple[ModelBlinding, DataBlinding],
    inputs: list[np.ndarray],
    parts: int,
) -> list[np.ndarray]:
    """A request through all stages, each in so many parts; its outputs."""
    model_blinding, data_blinding = blinding
    keyed = None if model.cipher.masked else key
    noise = None if keyed is None else model.native.noise(key.public())
    bases, outputs = {}, {}
    for number, (declared, values) in enumerate(zip(data.program.inputs, inputs, strict=True)):
        hiding = data_blinding.hiding_input(number, slice(0, values.size))
        encrypted = data.native.encrypt(keyed, values.astype("<i8").tobytes(), hiding)
        bases[declared.value] = model.rows(encrypted, values.size)
    for index, step in enumerate(model.rounds):
        order, returned = model_blinding.arrange(index)
        message = np.empty((step.sent, model.row_bytes), np.uint8)
        if (order == NONE).any():
            message[order == NONE] = model.least
        for part in model.slices(index, parts):
            places = np.flatnonzero(np.isin(order, part.elements))
            sources = [
                (need.tobytes(), bases[value][need].tobytes())
                for value, need in zip(step.bases, part.needs, strict=True)
            ]
            sources += model_blinding.shares(step, part)
            if len(places):
                product = model.native.linear(index, noise, order[places].tobytes(), sources)
                message[places] = model.rows(product, len(places))
        message = model_blinding.leaving(index, message)
        ranges = split_into_ranges(step.sent, step.unit, parts)
        openings = [
            (message[span].tobytes(), data_blinding.opening(index, span)) for span in ranges
        ]
        if step.output:
            plain = b"".join(data.native.values(index, keyed, *opening) for opening in openings)
            outputs[step.target] = np.frombuffer(plain, "<i8")
        else:
            units = [slice(span.start // step.unit, span.stop // step.unit) for span in ranges]
            answer = b"".join(
                data.native.answer(index, keyed, *opening, data_blinding.hiding(index, unit))
                for opening, unit in zip(openings, units, strict=True)
            )
            bases[step.target] = model_blinding.returned(
                index, model.rows(answer, step.returned), returned
            )
        for value in model.last_uses[index]:
            del bases[value]
    assert not bases
    return [outputs[index] for index in range(len(outputs))]


MODELS = [
    models.perceptron,
    models.windows,
    models.overhanging,
    models.residual,
    models.movement,
    models.flattened,
    models.gated,
]
QUICK = [(models.windows, 3), (models.gated, 1)]
"""Under Paillier, which takes longer, the others are slow tests."""


@pytest.mark.parametrize(
    ("model", "parts", "cipher"),
    [
        pytest.param(
            *(model, parts, cipher),
            marks=[] if cipher.masked or (model, parts) in QUICK else pytest.mark.slow,
            id=f"{model.__name__}-{parts}-{cipher.name}",
        )
        for model in MODELS
        for parts in (1, 3)
        for cipher in CIPHERS
    ],
)
def test_parts_of_a_stage_give_the_result_of_the_whole(
    model: Callable[[], Compiled],
    parts: int,
    cipher: Cipher,
    key: _native.StreamKey,
    key_folder: Path,
    tmp_path: Path,
) -> None:
    compiled = model()
    model_stages, data_stages = both(compiled, tmp_path, cipher)
    blinding = blindings(model_stages, (tmp_path / PRIVATE_FILE).read_bytes(), key_folder, key)
    shape = compiled.program.values[compiled.program.inputs[0].value].shape
    sample = np.random.default_rng(6).uniform(-1, 1, shape)
    inputs = encode_input(compiled.program, [sample])
    output = walk(model_stages, data_stages, key, blinding, inputs, parts)
    expected = execute(compiled.program, compiled.weights, [sample]).integers
    for array, other in zip(output, expected, strict=True):
        assert np.array_equal(array, other.ravel())


def test_a_material_entry_gives_the_same_bytes_again_and_another_gives_others(
    key_folder: Path, tmp_path: Path
) -> None:
    model_stages, _ = both(models.windows(), tmp_path, BFV)
    weights = (tmp_path / PRIVATE_FILE).read_bytes()
    covered = [entry(model_stages, weights, key_folder)[0] for _ in range(2)]
    step = model_stages.rounds[0]
    whole = model_stages.slices(0, 1)[0]
    rows = np.zeros((model_stages.inputs[step.bases[0]], model_stages.row_bytes), np.uint8)

    def send(blinding: MaterialBlinding) -> bytes:
        order, _ = blinding.arrange(0)
        sources = [(whole.needs[0].tobytes(), rows.tobytes()), *blinding.shares(step, whole)]
        product = model_stages.native.linear(0, None, order.tobytes(), sources)
        return blinding.leaving(0, model_stages.rows(product, step.sent)).tobytes()

    assert send(covered[0]) == send(covered[0])
    assert send(covered[0]) != send(covered[1])
    assert not np.array_equal(covered[0].arrange(0)[0], covered[1].arrange(0)[0])


def test_masked_values_are_of_the_ring(tmp_path: Path) -> None:
    model_stages, data_stages = both(models.perceptron(), tmp_path, BFV)
    index, all_six = np.array([0], INDEX).tobytes(), np.arange(6, dtype=INDEX).tobytes()
    share = (np.array([0], INDEX).tobytes(), bytes(model_stages.row_bytes))
    with pytest.raises(PeerMisbehaved, match="does not fit the ring"):
        model_stages.native.linear(
            0, None, index, [(all_six, b"\xff" * 6 * model_stages.row_bytes), share]
        )
    with pytest.raises(Misuse, match="lacks a share"):
        model_stages.native.linear(0, None, index, [(all_six, bytes(6 * model_stages.row_bytes))])
    with pytest.raises(Misuse, match="as many rows"):
        data_stages.native.encrypt(None, bytes(16), bytes(model_stages.row_bytes))


def test_a_part_of_a_convolution_needs_a_strip_of_its_input(tmp_path: Path) -> None:
    model_stages, _ = both(models.windows(), tmp_path)
    strips = model_stages.slices(0, 2)
    assert [len(strip.elements) for strip in strips] == [54, 54]
    # Four of six rows for three of them: the padded convolution reaches one row further.
    assert [strip.read for strip in strips] == [48, 48]


def test_a_flattened_image_is_still_cut_by_its_rows(tmp_path: Path) -> None:
    model_stages, _ = both(models.flattened(), tmp_path)
    assert model_stages.rounds[0].shape == (1, 108)
    assert [strip.read for strip in model_stages.slices(0, 2)] == [24, 24]


def test_a_part_of_a_dense_layer_needs_all_of_it(tmp_path: Path) -> None:
    model_stages, _ = both(models.perceptron(), tmp_path)
    parts: tuple[StageSlice, ...] = model_stages.slices(0, 3)
    assert [len(part.elements) for part in parts] == [3, 3, 3]
    assert [part.read for part in parts] == [6, 6, 6]


def test_adjacent_operations_are_one_stage(tmp_path: Path) -> None:
    model_stages, _ = both(models.residual(), tmp_path)
    sides = [side for side, _ in names(model_stages.rounds)]
    assert sides == ["data", "model"] * 3 + ["data"]
    # The shortcut's sum is made where it is read.
    assert "sum" in " ".join(model_stages.rounds[1].linear)


def test_each_permutation_is_fresh(tmp_path: Path) -> None:
    model_stages, _ = both(models.perceptron(), tmp_path)
    orders = {model_stages.arrange(0)[0].tobytes() for _ in range(50)}
    assert len(orders) == 50
    assert np.array_equal(model_stages.arrange(2)[0], np.arange(3))


class WorkerPool:
    """Workers that make noise as real ones do, in this process."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages

    async def call(self, stage: int, part: int, method: str, *arguments: Any) -> Any:
        assert method == "ready"
        self._stages.native.noise(arguments[0])


def test_a_key_without_its_proof_ends_its_session(key: _native.StreamKey, tmp_path: Path) -> None:
    model_stages, _ = both(models.perceptron(), tmp_path)
    good = key.public()
    assert len(good) == model_stages.key_bytes == 9 * 256
    errors: list[PrivetError] = []

    async def offer(key: bytes) -> None:
        parts = [1] * len(model_stages.rounds)
        rounds = LinearRounds(model_stages, cast("Any", WorkerPool(model_stages)), parts)
        guard = Guard(make_policy(revealed_values=True), str(tmp_path / "answers"))
        session = ProviderSession(rounds, 4, Caller("client", None), guard, Patience())
        fail = session.link.fail

        async def failing(error: PrivetError) -> None:
            errors.append(error)
            await fail(error)

        session.link.fail = failing  # type: ignore[method-assign]
        session._on_frame(FrameKind.KEY, key)
        await asyncio.gather(*session._tasks)
        assert session.over.is_set() == bool(errors)

    asyncio.run(offer(good))
    assert not errors
    asyncio.run(offer(good[:-1] + bytes([good[-1] ^ 1])))
    (error,) = errors
    assert isinstance(error, PeerMisbehaved)
    assert "common factor" in str(error)


def test_what_is_missing_is_named(key: _native.StreamKey, tmp_path: Path) -> None:
    model_stages, data_stages = both(models.perceptron(), tmp_path)
    noise = model_stages.native.noise(key.public())
    values = data_stages.native.encrypt(key, np.arange(6, dtype="<i8").tobytes(), b"")
    index, some = np.array([0], INDEX).tobytes(), np.arange(5, dtype=INDEX).tobytes()
    short = values[: 5 * model_stages.row_bytes]
    with pytest.raises(Misuse, match="element 5 is needed"):
        model_stages.native.linear(0, noise, index, [(some, short)])
    with pytest.raises(Misuse, match="need the weights"):
        data_stages.native.linear(0, noise, index, [(some, short)])
    with pytest.raises(PeerMisbehaved):
        model_stages.native.linear(0, noise, index, [(some, b"\xff" * len(short))])
    with pytest.raises(PeerMisbehaved, match="a tensor of 9 rows"):
        model_stages.rows(short, 9)
