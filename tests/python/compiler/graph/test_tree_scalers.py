"""Trees behind a Scaler compare the numbers that were given, exactly as ONNX Runtime does."""

from __future__ import annotations

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
    made = random_trees(9, 4, FEATURES, targets=2, modes=modes, rows=rows, complete=False)
    given = {"scale": SCALE, "offset": OFFSET, **attributes}
    scaler = onnx.helper.make_node("Scaler", ["x"], ["z"], domain="ai.onnx.ml", **given)
    made.graph.node[0].input[0] = "z"
    made.graph.node.insert(0, scaler)
    return made


def near_thresholds(made: onnx.ModelProto, rows: int) -> Array:
    """Numbers that the Scaler brings to a threshold, and the next ones on either side."""
    rng = np.random.default_rng(2)
    values = next(a.floats for a in made.graph.node[1].attribute if a.name == "nodes_values")
    scaled = rng.choice(np.array(values), (rows, FEATURES))
    x = (scaled / np.array(SCALE) + np.array(OFFSET)).astype(np.float32)
    return number_at(places(x) + rng.integers(-2, 3, x.shape))


@pytest.mark.parametrize(
    "modes",
    [["LEQ"], ["LT"], ["GT"], ["GTE"], ["LEQ", "LT", "GT", "GTE"], ["EQ"], ["NEQ", "EQ", "LT"]],
)
def test_rows_at_thresholds_go_the_same_way(modes: list[str]) -> None:
    made = scaled_trees(modes, 300)
    x = near_thresholds(made, 300)
    compiled = compile(made)
    assert compiled.program.inputs[0].order
    assert compiled.program.calibration == "sound"
    (found,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
    np.testing.assert_allclose(found, expected(made, {"x": x})[0], rtol=0, atol=1e-5)


def test_missing_values_go_where_an_imputer_before_a_scaler_sends_them() -> None:
    made = scaled_trees(["LEQ"], 1)
    filling: dict[str, Any] = {"imputed_value_floats": [0.5], "replaced_value_float": float("nan")}
    node = onnx.helper.make_node("Imputer", ["x"], ["full"], domain="ai.onnx.ml", **filling)
    made.graph.node[0].input[0] = "full"
    made.graph.node.insert(0, node)
    compiled = compile(made)
    assert compiled.program.inputs[0].missing
    for column in (None, *range(FEATURES)):
        x = np.array([[0.1, 4e4, -1.0, 0.0]], np.float32)
        if column is not None:
            x[0, column] = np.nan
        (found,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
        np.testing.assert_allclose(found, expected(made, {"x": x})[0], rtol=0, atol=1e-5)


def test_scalers_of_several_steps() -> None:
    """As MinMaxScaler is exported: a cast, a product and a sum."""
    made = scaled_trees(["LEQ"], 200)
    x = near_thresholds(made, 200)
    node = onnx.helper.make_node
    del made.graph.node[0]
    constants = {"by": np.array(SCALE), "and": -np.array(OFFSET) * SCALE, "three": np.array(3)}
    for name, array in constants.items():
        tensor = onnx.numpy_helper.from_array(array.astype(np.float32), name)
        made.graph.initializer.append(tensor)
    steps = [
        node("Cast", ["x"], ["a"], to=onnx.TensorProto.FLOAT),
        node("Mul", ["by", "a"], ["b"]),
        node("Add", ["b", "and"], ["c"]),
        node("Div", ["c", "three"], ["d"]),
        node("Mul", ["d", "three"], ["z"]),
    ]
    for number, step in enumerate(steps):
        made.graph.node.insert(number, step)
    compiled = compile(made)
    assert compiled.program.inputs[0].order
    (found,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
    np.testing.assert_allclose(found, expected(made, {"x": x})[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "change",
    ["a negative scale", "a second reader", "an output"],
)
def test_other_scalers_stay(change: str) -> None:
    made = scaled_trees(["LEQ"], 1)
    if change == "a negative scale":
        made = scaled_trees(["LEQ"], 1, scale=[0.3, -1e-3, 7.0, 40.0])
    if change == "a second reader":
        made.graph.node.append(onnx.helper.make_node("Neg", ["x"], ["w"]))
        made.graph.output.append(onnx.helper.make_tensor_value_info("w", 1, [1, FEATURES]))
    if change == "an output":
        made.graph.output.append(onnx.helper.make_tensor_value_info("z", 1, [1, FEATURES]))
    assert not compile(made).program.inputs[0].order


def test_places_are_numbers_and_back() -> None:
    numbers = np.array([0.0, 1e-45, -1e-45, 1.5, -1.5, 3e38, -3e38, np.inf, -np.inf], np.float32)
    assert np.array_equal(number_at(places(numbers)), numbers)
