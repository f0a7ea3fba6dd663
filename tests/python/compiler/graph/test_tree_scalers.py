"""Trees behind a Scaler compare the numbers that were given, exactly as ONNX Runtime does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.ensembles import random_trees
from tests.python.compiler.graph.single import Array, expected

from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.graph.order import number_at, places

FEATURES = 4
SCALE, OFFSET = [0.3, 1e-3, 7.0, 40.0], [0.25, 4e4, -1.5, 1e-3]


def scaled_trees(modes: list[str], rows: int, **attributes: Any) -> onnx.ModelProto:
    """Random trees behind a Scaler of columns of very different sizes."""
    proto = random_trees(9, 4, FEATURES, targets=2, modes=modes, rows=rows, complete=False)
    fields = {"scale": SCALE, "offset": OFFSET, **attributes}
    scaler = onnx.helper.make_node("Scaler", ["x"], ["z"], domain="ai.onnx.ml", **fields)
    proto.graph.node[0].input[0] = "z"
    proto.graph.node.insert(0, scaler)
    return proto


def near_thresholds(proto: onnx.ModelProto, rows: int) -> Array:
    """Numbers that the Scaler brings to a threshold, and the next ones on either side."""
    rng = np.random.default_rng(2)
    values = next(a.floats for a in proto.graph.node[1].attribute if a.name == "nodes_values")
    scaled = rng.choice(np.array(values), (rows, FEATURES))
    x = (scaled / np.array(SCALE) + np.array(OFFSET)).astype(np.float32)
    return number_at(places(x) + rng.integers(-2, 3, x.shape))


@pytest.mark.parametrize(
    "modes",
    [["LEQ"], ["LT"], ["GT"], ["GTE"], ["LEQ", "LT", "GT", "GTE"], ["EQ"], ["NEQ", "EQ", "LT"]],
)
def test_rows_at_thresholds_go_the_same_way(modes: list[str]) -> None:
    proto = scaled_trees(modes, 300)
    x = near_thresholds(proto, 300)
    compiled = compile(proto)
    assert compiled.program.inputs[0].order
    assert compiled.program.calibration == "sound"
    (output,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
    np.testing.assert_allclose(output, expected(proto, {"x": x})[0], rtol=0, atol=1e-5)


def test_missing_values_go_where_an_imputer_before_a_scaler_sends_them() -> None:
    proto = scaled_trees(["LEQ"], 1)
    filling: dict[str, Any] = {"imputed_value_floats": [0.5], "replaced_value_float": float("nan")}
    node = onnx.helper.make_node("Imputer", ["x"], ["full"], domain="ai.onnx.ml", **filling)
    proto.graph.node[0].input[0] = "full"
    proto.graph.node.insert(0, node)
    compiled = compile(proto)
    assert compiled.program.inputs[0].missing
    for column in (None, *range(FEATURES)):
        x = np.array([[0.1, 4e4, -1.0, 0.0]], np.float32)
        if column is not None:
            x[0, column] = np.nan
        (output,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
        np.testing.assert_allclose(output, expected(proto, {"x": x})[0], rtol=0, atol=1e-5)


def test_scalers_of_several_steps() -> None:
    """As MinMaxScaler is exported: a cast, a product and a sum."""
    proto = scaled_trees(["LEQ"], 200)
    x = near_thresholds(proto, 200)
    node = onnx.helper.make_node
    del proto.graph.node[0]
    constants = {"by": np.array(SCALE), "and": -np.array(OFFSET) * SCALE, "three": np.array(3)}
    for name, array in constants.items():
        tensor = onnx.numpy_helper.from_array(array.astype(np.float32), name)
        proto.graph.initializer.append(tensor)
    steps = [
        node("Cast", ["x"], ["a"], to=onnx.TensorProto.FLOAT),
        node("Mul", ["by", "a"], ["b"]),
        node("Add", ["b", "and"], ["c"]),
        node("Div", ["c", "three"], ["d"]),
        node("Mul", ["d", "three"], ["z"]),
    ]
    for number, step in enumerate(steps):
        proto.graph.node.insert(number, step)
    compiled = compile(proto)
    assert compiled.program.inputs[0].order
    (output,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
    np.testing.assert_allclose(output, expected(proto, {"x": x})[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "change",
    ["a negative scale", "a second reader", "an output"],
)
def test_other_scalers_stay(change: str) -> None:
    proto = scaled_trees(["LEQ"], 1)
    if change == "a negative scale":
        proto = scaled_trees(["LEQ"], 1, scale=[0.3, -1e-3, 7.0, 40.0])
    if change == "a second reader":
        proto.graph.node.append(onnx.helper.make_node("Neg", ["x"], ["w"]))
        proto.graph.output.append(onnx.helper.make_tensor_value_info("w", 1, [1, FEATURES]))
    if change == "an output":
        proto.graph.output.append(onnx.helper.make_tensor_value_info("z", 1, [1, FEATURES]))
    assert not compile(proto).program.inputs[0].order


def test_places_are_numbers_and_back() -> None:
    numbers = np.array([0.0, 1e-45, -1e-45, 1.5, -1.5, 3e38, -3e38, np.inf, -np.inf], np.float32)
    assert np.array_equal(number_at(places(numbers)), numbers)


ENCODERS: dict[str, dict[str, Any]] = {
    "hot": {"cats_int64s": [2], "zeros": 1},
    "rising": {"keys_int64s": [1, 2, 3], "values_int64s": [0, 1, 2], "default_int64": -1},
    "mixed": {"keys_int64s": [2, 3, 1], "values_int64s": [0, 1, 2], "default_int64": -1},
    "apart": {"keys_int64s": [1, 3, 7], "values_int64s": [0, 1, 2], "default_int64": -1},
    "between": {"keys_int64s": [1, 2, 3], "values_int64s": [0, 1, 2], "default_int64": 1},
}


@pytest.mark.parametrize("mode", ["LEQ", "EQ"])
@pytest.mark.parametrize("name", ENCODERS)
def test_no_threshold_behind_an_encoder_moves_the_public_half(name: str, mode: str) -> None:
    """Nor where its test holds for no number, for all, or for some that are not side by side."""
    outlines = []
    for threshold in (-7.0, -1.0, 0.0, 0.5, 1.0, 1.5, 7.0):
        proto = random_trees(1, 1, 1, modes=[mode], rows=10)
        values = next(a for a in proto.graph.node[0].attribute if a.name == "nodes_values")
        values.floats[0] = threshold
        operator = "OneHotEncoder" if name == "hot" else "LabelEncoder"
        encoder = onnx.helper.make_node(
            operator, ["x"], ["code"], domain="ai.onnx.ml", **ENCODERS[name]
        )
        cast = onnx.helper.make_node("Cast", ["flat"], ["z"], to=onnx.TensorProto.FLOAT)
        shape = onnx.numpy_helper.from_array(np.array([-1, 1]), "shape")
        proto.graph.initializer.append(shape)
        reshape = onnx.helper.make_node("Reshape", ["code", "shape"], ["flat"])
        proto.graph.node[0].input[0] = "z"
        for node in (cast, reshape, encoder):
            proto.graph.node.insert(0, node)
        proto.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
        x = np.arange(-1, 9)[:, None]
        compiled = compile(proto, calibration=[x])
        assert compiled.program.inputs[0].order == (name in ("hot", "rising"))
        (output,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
        np.testing.assert_allclose(output, expected(proto, {"x": x})[0], rtol=0, atol=1e-3)
        document = json.loads(compiled.program.to_public_bytes())
        del document["weights_commitment"], document["weight_bits"]
        for entry in document["inputs"]:
            del entry["magnitude"]
        outlines.append(document)
    assert all(outline == outlines[0] for outline in outlines)
