"""Networks that hospitals and banks have: the executor beside ONNX Runtime, and some in suites."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from tests.combinations import combinations
from tests.python.compiler.graph.single import Array, expected, model, node
from tests.python.compiler.graph.usual_networks import (
    NETWORKS,
    TOKENS,
    Exporter,
    Model,
    padding_by_minus_infinity,
    padding_by_the_least_number,
    stages,
)

import privet
from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.executor.samples import fill
from privet.errors import PrivetError, UnsupportedModel

ALLOWED = 3e-3
"""Of the spread of outputs."""
BUILDERS = {builder.__name__: builder for builder in NETWORKS}


def drawn(proto: Model, rng: np.random.Generator) -> dict[str, Array]:
    """Inputs: normal numbers, pixels, categories below 20, numbers of tokens that are none."""
    arrays: dict[str, Array] = {}
    for entry in proto.graph.input:
        kind = entry.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        if entry.name == "m":
            mask = np.arange(TOKENS) < rng.integers(1, TOKENS + 1)
            arrays["m"] = mask[None].astype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        elif kind.elem_type == onnx.TensorProto.FLOAT:
            arrays[entry.name] = rng.standard_normal(shape).astype(np.float32)
        elif kind.elem_type == onnx.TensorProto.UINT8:
            arrays[entry.name] = rng.integers(0, 256, shape).astype(np.uint8)
        else:
            arrays[entry.name] = rng.integers(0, 20, shape)
    if "row" in arrays:
        arrays["row"] = arrays["row"] * np.array([5e4, 1, 50, 0.02, 1], np.float32)
    return arrays


@pytest.mark.parametrize("name", BUILDERS)
def test_a_network_gives_what_onnx_runtime_gives(name: str) -> None:
    proto, rng = BUILDERS[name](), np.random.default_rng(0)
    rows = [drawn(proto, rng) for _ in range(24)]
    compiled = compile(proto, smooth="piecewise", calibration=rows[:16])
    outputs, references = [], []
    for row in rows[16:]:
        inputs, _ = fill(compiled.program, row)
        (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
        (reference,) = expected(proto, row)
        assert output.shape == reference.shape
        outputs.append(output)
        references.append(reference)
    if references[0].dtype.kind == "i":
        assert np.array_equal(outputs, references)
    else:
        error = np.abs(np.array(outputs) - np.array(references)).max()
        assert error <= ALLOWED * np.ptp(np.array(references))


@pytest.mark.parametrize(
    ("builder", "suite"),
    combinations([padding_by_the_least_number, padding_by_minus_infinity, stages], ["gmw", "fss"]),
)
def test_parties_give_the_same(builder: Any, suite: str) -> None:
    proto, rng = builder(), np.random.default_rng(1)
    rows = [drawn(proto, rng) for _ in range(9)]
    run = privet.run(proto, rows[0], suite=suite, calibration=rows[1:])
    assert run.max_fixed_point_error == 0
    (output,), (reference,) = run.outputs.values(), run.reference.values()
    np.testing.assert_allclose(output.tolist(), reference.tolist(), rtol=0, atol=5e-3)


@pytest.mark.parametrize("low", [-np.inf, -1e9])
def test_masked_scores_that_outputs_tell_are_not_lowered(low: float) -> None:
    """Of a last softmax the client would see them, and what they were before."""
    nodes = [
        node("Greater", ["m", "half"], ["kept"]),
        node("Where", ["kept", "x", "low"], ["scores"]),
        node("Softmax", ["scores"], ["y"]),
    ]
    constants = {"half": np.float32(0.5), "low": np.float32(low)}
    proto = model(nodes, {"x": (1, 4), "m": (1, 4)}, ["y"], constants)
    mask = np.array([[1, 0, 1, 1]], np.float32)
    with pytest.raises(PrivetError):
        compile(proto, smooth="piecewise", calibration=[{"x": mask, "m": mask}])


@pytest.mark.parametrize("kind", [onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL])
def test_a_mask_by_products_is_of_whole_numbers(kind: int) -> None:
    """ONNX Runtime masks a score by 0.999999, which fixed point does not tell from 1."""
    g = Exporter()
    mask = g("Cast", "m", to=onnx.TensorProto.FLOAT)
    low = g("Mul", g("Sub", g.number(1), mask), g.number(-1e9))
    weights = g("Softmax", g("Add", g.linear("x", 4, 4), low), axis=-1)
    proto = g.model(
        {"x": (onnx.TensorProto.FLOAT, [1, 4]), "m": (kind, [1, 4])}, g("Mul", weights, "x")
    )
    rows = [
        {"x": np.full((1, 4), 0.3 * row, np.float32), "m": np.array([[1, row % 2, 1, 0]])}
        for row in range(6)
    ]
    if kind == onnx.TensorProto.FLOAT:
        with pytest.raises(UnsupportedModel, match="need not be 0 or 1"):
            compile(proto, smooth="piecewise", calibration=rows)
        return
    compiled = compile(proto, smooth="piecewise", calibration=rows)
    for row in rows:
        inputs = {**row, "m": row["m"].astype(bool)}
        (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
        np.testing.assert_allclose(output, expected(proto, inputs)[0], rtol=0, atol=5e-3)


def test_a_mask_of_floats_that_becomes_truth_values_is_whole() -> None:
    g = Exporter()
    mask = g("Cast", g("Cast", "m", to=onnx.TensorProto.BOOL), to=onnx.TensorProto.FLOAT)
    low = g("Mul", g("Sub", g.number(1), mask), g.number(-1e9))
    weights = g("Softmax", g("Add", g.linear("x", 4, 4), low), axis=-1)
    kind = onnx.TensorProto.FLOAT
    proto = g.model({"x": (kind, [1, 4]), "m": (kind, [1, 4])}, g("Mul", weights, "x"))
    rows = [
        {
            "x": np.full((1, 4), 0.3 * row, np.float32),
            "m": np.array([[1, row % 2, 0.5, 0]], np.float32),
        }
        for row in range(6)
    ]
    compiled = compile(proto, smooth="piecewise", calibration=rows)
    for row in rows:
        (output,) = execute(compiled.program, compiled.weights, row).outputs.values()
        np.testing.assert_allclose(output, expected(proto, row)[0], rtol=0, atol=5e-3)


def test_a_large_factor_elsewhere_stays() -> None:
    g = Exporter()
    y = g("Mul", "x", g.number(1e9))
    proto = g.model({"x": (onnx.TensorProto.FLOAT, [1, 4])}, y)
    x = np.array([[1e-9, -2e-9, 0, 3e-9]], np.float32)
    compiled = compile(proto, calibration=[x])
    (output,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
    np.testing.assert_allclose(output, expected(proto, {"x": x})[0], atol=1e-2)


def masked_maximum(low: Any, axis: int = 1) -> onnx.ModelProto:
    nodes = [
        node("Greater", ["m", "half"], ["kept"]),
        node("Where", ["kept", "x", "low"], ["found"]),
        node("ReduceMax", ["found", "last"], ["y"]),
    ]
    constants: dict[str, Any] = {"half": np.float32(0.5), "low": np.float32(low)}
    constants["last"] = np.array([axis])
    return model(nodes, {"x": (1, 4), "m": (1, 4)}, ["y"], constants)


AMOUNTS = {
    "x": np.array([[2.5e3, 7.0, 1.9e4, -3e3]], np.float32),
    "m": np.array([[0, 1, 0, 1]], np.float32),
}


def test_masks_of_numbers_that_are_too_large_are_not_lowered() -> None:
    for low in (-1e5, -1e9):
        proto = masked_maximum(low)
        compiled = compile(proto, calibration=[AMOUNTS])
        (output,) = execute(compiled.program, compiled.weights, AMOUNTS).outputs.values()
        np.testing.assert_allclose(output, expected(proto, AMOUNTS)[0], atol=1.0)
    for low in (-1e12, -np.inf):
        with pytest.raises(PrivetError, match=r"need 67 bits|NaN"):
            compile(masked_maximum(low), calibration=[AMOUNTS])


def test_what_is_masked_has_the_shape_that_a_constant_gives_it() -> None:
    proto = masked_maximum(np.full((1, 1, 1), -1e9), axis=2)
    inputs = {**AMOUNTS, "x": AMOUNTS["x"] / np.float32(1e3)}
    compiled = compile(proto, calibration=[inputs])
    (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
    np.testing.assert_allclose(output, expected(proto, inputs)[0], atol=2e-3)
    assert output.shape == (1, 1, 1)


@pytest.mark.parametrize("operators", [["ReduceMax"], ["Add", "ReduceMax"]])
def test_a_large_factor_before_a_maximum_stays(operators: list[str]) -> None:
    nodes = [node("Mul", ["x", "factor"], ["t0"])]
    for number, operator in enumerate(operators):
        other = "x" if operator == "Add" else "last"
        nodes.append(node(operator, [f"t{number}", other], [f"t{number + 1}"]))
    constants: dict[str, Any] = {"factor": np.float32(1e9), "last": np.array([1])}
    proto = model(nodes, {"x": (1, 4)}, [f"t{len(operators)}"], constants)
    x = np.array([[1e-3, -2.0, 0, 1.5]], np.float32)
    compiled = compile(proto, calibration=[x])
    (output,) = execute(compiled.program, compiled.weights, [x]).outputs.values()
    np.testing.assert_allclose(output, expected(proto, {"x": x})[0], rtol=1e-3)


def test_masks_hold_without_calibration() -> None:
    """Random inputs of whole numbers are zeros and ones, as masks are."""
    proto, rng = padding_by_the_least_number(), np.random.default_rng(2)
    compiled = compile(proto, smooth="piecewise")
    for _ in range(8):
        row = drawn(proto, rng)
        (output,) = execute(compiled.program, compiled.weights, row).outputs.values()
        np.testing.assert_allclose(output, expected(proto, row)[0], rtol=0, atol=1e-2)
    run = privet.run(proto, suite="fss")
    assert run.agrees
    assert run.calibration == "random"
