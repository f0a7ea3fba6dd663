"""Several samples at once give what each gives alone, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import constant, model, node, private, single

from privet import zoo
from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.compiler.program import Program
from privet.errors import Misuse, UnsupportedModel

MODELS = Path(__file__).parents[4] / "zoo" / "models"
RNG = np.random.default_rng(7)


def check(one: Compiled, many: Compiled, input_range: tuple[float, float] = (-1, 1)) -> None:
    """The batch's results are the samples' results, joined."""
    count = many.program.batch
    shapes = {e.name: one.program.values[e.value].shape for e in one.program.inputs}
    stacked = {
        name: RNG.uniform(*input_range, (count, *shape[1:])) for name, shape in shapes.items()
    }
    together = execute(many.program, many.weights, stacked).integers
    for i in range(count):
        sample = {name: array[i : i + 1] for name, array in stacked.items()}
        alone = execute(one.program, one.weights, sample).integers
        for array, expected in zip(together, alone, strict=True):
            np.testing.assert_array_equal(array[i : i + 1], expected)
    assert Program.from_public_bytes(many.program.to_public_bytes()) == many.program


@pytest.mark.parametrize("samples", [3, 16, 128])
@pytest.mark.parametrize("name", ["digits-cnn", "breast-mlp"])
def test_trained_models(name: str, samples: int) -> None:
    path = MODELS / f"{name}.onnx"
    one, many = (compile(path, input_range=(0, 1), batch=batch) for batch in (1, samples))
    check(one, many, (0, 1))


@pytest.mark.parametrize(
    ("name", "samples"), [("m1", 3), ("m1", 128), ("m2", 3), ("hinet", 16), ("squeezenet", 2)]
)
def test_zoo_models(name: str, samples: int, tmp_path: Path) -> None:
    path = zoo.build(name, tmp_path)
    one, many = (compile(path, input_range=(-1, 1), batch=batch) for batch in (1, samples))
    check(one, many)


@pytest.mark.parametrize("width", [24, 96])
def test_arguments_of_functions_are_as_fine_in_a_batch(width: int) -> None:
    """Those of the root of a variance have more places than other values."""
    constants = {"g": constant(width), "b": constant(width)}
    source = model(
        [node("LayerNormalization", ["x", "g", "b"], ["y"])], {"x": (1, width)}, ["y"], constants
    )
    one, many = (
        compile(source, input_range=(-3, 3), batch=batch, smooth="piecewise") for batch in (1, 3)
    )
    check(one, many, (-3, 3))


# Operators that work along the first axis of what they read, which is the batch or has taken it in.
ALONG_THE_BATCH: dict[str, Sequence[Any]] = {
    "turned": [
        node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        node("Relu", ["t"], ["r"]),
        node("Transpose", ["r"], ["y"], perm=[1, 2, 0]),
    ],
    "picked": [
        node("Reshape", ["x", "rows"], ["a"]),
        node("Slice", ["a", "from", "to"], ["b"]),
        node("Reshape", ["b", "back"], ["y"]),
    ],
    "joined": [
        node("Reshape", ["x", "rows"], ["a"]),
        node("Relu", ["a"], ["r"]),
        node("Concat", ["a", "r"], ["b"], axis=0),
        node("Reshape", ["b", "back"], ["y"]),
    ],
    "padded": [
        node("Reshape", ["x", "rows"], ["a"]),
        node("Pad", ["a", "pads"], ["b"]),
        node("Reshape", ["b", "back"], ["y"]),
    ],
    "spread": [
        node("Squeeze", ["x", "zero"], ["s"]),
        node("Reshape", ["s", "flat"], ["f"]),
        node("Expand", ["f", "wide"], ["e"]),
        node("Mul", ["e", "columns"], ["p"]),
        node("Reshape", ["p", "back"], ["y"]),
    ],
    "largest": [
        node("Reshape", ["x", "rows"], ["a"]),
        node("ArgMax", ["a"], ["b"], axis=0, keepdims=0),
        node("Reshape", ["b", "back"], ["y"]),
    ],
    "shifted": [
        node("Reshape", ["x", "rows"], ["a"]),
        node("Add", ["a", "per_row"], ["b"]),
        node("Mul", ["b", "per_place"], ["c"]),
        node("Reshape", ["c", "back"], ["y"]),
    ],
    "averaged": [
        node("ReduceMean", ["x"], ["m"], keepdims=0),
        node("Reshape", ["m", "back"], ["y"]),
    ],
    "multiplied": [
        node("MatMul", ["stack", "x"], ["m"]),
        node("Reshape", ["m", "back"], ["y"]),
    ],
}


def along_the_batch(nodes: Sequence[Any]) -> onnx.ModelProto:
    """A model of `x`, `[N, 4, 6]`, with whatever constants these nodes read."""
    ints = {
        "rows": [4, 6],
        "back": [1, -1],
        "from": [1, 0],
        "to": [4, 5],
        "pads": [1, 0, 2, 1],
        "zero": [0],
        "flat": [24],
        "wide": [2, 24],
    }
    constants: dict[str, Any] = {name: np.array(array) for name, array in ints.items()}
    constants |= {
        "columns": constant(24),
        "per_row": constant(4, 1),
        "per_place": constant(4, 6),
        "stack": constant(3, 5, 4),
    }
    inputs = {name for entry in nodes for name in entry.input}
    tensors = {name: array for name, array in constants.items() if name in inputs}
    return model(nodes, {"x": private("batch", 4, 6)}, ["y"], tensors)


@pytest.mark.parametrize("name", ALONG_THE_BATCH)
def test_operators_along_the_first_axis(name: str) -> None:
    proto = along_the_batch(ALONG_THE_BATCH[name])
    one, many = (compile(proto, input_range=(-1, 1), batch=batch) for batch in (1, 5))
    check(one, many)


def test_a_batch_takes_the_same_steps_as_one_sample() -> None:
    path = MODELS / "digits-cnn.onnx"
    one, many = (compile(path, batch=batch).program for batch in (1, 16))
    assert b'"batch"' not in one.to_public_bytes()
    assert [entry.op for entry in many.operations] == [entry.op for entry in one.operations]


@pytest.mark.parametrize(
    ("proto", "pattern"),
    [
        (single("Relu", [private(4, 3)]), r"x0 \(graph input\)"),
        (single("Relu", [private(3)]), r"x0 \(graph input\)"),
        (
            model([node("Squeeze", ["x"], ["y"])], {"x": private(1, 3)}, ["y"]),
            r"y, made by the_squeeze, \(graph output\)",
        ),
        (
            model(
                [node("Relu", ["x"], ["r"]), node("Softmax", ["r"], ["y"], axis=0)],
                {"x": private(1, 3)},
                ["y"],
            ),
            "its softmax is over the batch axis",
        ),
    ],
    ids=["four samples", "no batch", "batch dropped", "softmax of samples"],
)
def test_models_that_have_no_batch(proto: onnx.ModelProto, pattern: str) -> None:
    compile(proto)
    with pytest.raises(UnsupportedModel, match=pattern):
        compile(proto, batch=2)


def test_a_batch_has_at_least_one_sample() -> None:
    with pytest.raises(Misuse, match="batch is 0"):
        compile(MODELS / "digits-cnn.onnx", batch=0)
