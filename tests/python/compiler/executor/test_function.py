"""Functions in the clear: those of mathematics up to rounding, and alike everywhere."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from tests.error_bound import error_bound
from tests.python.compiler.graph.single import expected, model, node, samples, single

from privet import suites
from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.graph.function import LEAST, SMOOTH, Function, Step
from privet.compiler.graph.operations.elementwise import PRIMITIVES, function_values
from privet.compiler.graph.operations.steps import decode_steps, encode_steps
from privet.compiler.passes.keep_constants import parted
from privet.compiler.program import Program
from privet.errors import InvalidProgram, Misuse

Reals = npt.NDArray[np.float64]

CASES = Path(__file__).parents[4] / "crates" / "suites" / "tests" / "fixtures" / "functions.json"

TRUE: dict[str, Callable[[float], float]] = {
    "atan": math.atan,
    "cos": math.cos,
    "erf": math.erf,
    "exp": math.exp,
    "log": lambda x: math.log(max(x, LEAST)),
    "reciprocal": lambda x: 1 / (min(x, -LEAST) if x < 0 else max(x, LEAST)),
    "relu": lambda x: max(x, 0.0),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "sin": math.sin,
    "softplus": lambda x: max(x, 0) + math.log1p(math.exp(-abs(x))),
    "sqrt": lambda x: math.sqrt(max(x, 0.0)),
    "tanh": math.tanh,
}


@pytest.mark.parametrize("name", sorted(SMOOTH))
def test_primitives_are_the_functions(name: str) -> None:
    x = np.linspace(-30, 30, 6001)
    reference = np.array([TRUE[name](value) for value in x])
    assert set(PRIMITIVES) == set(SMOOTH) == set(TRUE)
    np.testing.assert_allclose(PRIMITIVES[name](x), reference, rtol=2e-15, atol=2e-15)


def test_known_answers_are_kept() -> None:
    """The client's implementation is tested against the same file."""
    for case in json.loads(CASES.read_text()):
        x = np.array(case["x"], dtype=np.int64)
        values = function_values(x, decode_steps(case["steps"]), case["from"], case["to"], 64)
        np.testing.assert_array_equal(values, case["y"])


def test_values_are_rounded_and_kept_in_the_ring() -> None:
    x = np.array([-3, -1, 1, 3], dtype=np.int64)
    np.testing.assert_array_equal(function_values(x, Function(), 1, 0, 37), [-2, 0, 0, 2])
    cube = Function((Step("mul", (0, 0)), Step("mul", (0, 1))))
    far = np.array([-(1 << 35), 1 << 35], dtype=np.int64)
    np.testing.assert_array_equal(function_values(far, cube, 0, 0, 37), [-(1 << 36), (1 << 36) - 1])


def test_steps_keep_their_constants_exactly() -> None:
    constants = (0.1, -3.0, 0.0, 2.0**-200, 1e30, float(np.float32(0.044715)))
    steps = tuple(Step("scale", (index,), constant) for index, constant in enumerate(constants))
    document = encode_steps(Function(steps))
    assert decode_steps(json.loads(json.dumps(document))) == Function(steps)
    assert document[1]["constant"] == {"mantissa": -3, "exponent": 0}
    with pytest.raises(ValueError, match="constant"):
        encode_steps(Function((Step("shift", (0,), 2.0**-500),)))


@pytest.mark.parametrize(
    "step",
    [
        {"name": "cosine", "operands": [0]},
        {"name": "tanh", "operands": [1]},
        {"name": "tanh", "operands": []},
        {"name": "tanh", "operands": [0], "constant": {"mantissa": 1, "exponent": 0}},
        {"name": "scale", "operands": [0]},
        {"name": "scale", "operands": [0], "constant": {"mantissa": 1 << 60, "exponent": 0}},
        {"name": "mul", "operands": [0]},
    ],
)
def test_steps_that_are_none_are_refused(step: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        decode_steps([step])
    program = compile(single("Tanh", [(2, 3)]), smooth="function").program
    public = json.loads(program.to_public_bytes())
    (operation,) = (entry for entry in public["operations"] if entry["op"] == "function")
    operation["steps"] = [step]
    with pytest.raises(InvalidProgram, match="function"):
        Program.from_public_bytes(
            json.dumps(public, sort_keys=True, separators=(",", ":")).encode()
        )


@pytest.mark.parametrize("operator", ["Sigmoid", "Tanh", "Softplus", "Erf", "Gelu"])
def test_operators_are_off_by_their_rounding_alone(operator: str) -> None:
    proto = single(operator, [(3, 5)])
    inputs = samples(proto)
    compiled = compile(proto, calibration=[inputs], smooth="function")
    assert [operation.op for operation in compiled.program.operations] == ["function"]
    (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
    (reference,) = expected(proto, inputs)
    # Half a unit in the last place of the output, and of an input where slopes are up to 1.2.
    np.testing.assert_allclose(output, reference, rtol=0, atol=1.1 * 2.0**-12)
    assert list(error_bound(compiled.program, compiled.weights).values()) == [None]
    assert [suite for suite in suites.all_suites() if suite().runs(compiled.program)] == [
        suites.Stream
    ]


def test_constants_of_the_argument_stay_with_the_model() -> None:
    """The bias of a layer with one output is not part of the public function."""
    nodes = [
        node("MatMul", ["x", "w"], ["product"]),
        node("Add", ["product", "b"], ["sum"]),
        node("Sigmoid", ["sum"], ["y"]),
    ]
    weights = {"w": np.full((4, 1), 0.25, np.float32), "b": np.array([0.625], np.float32)}
    proto = model(nodes, {"x": (2, 4)}, ["y"], weights)
    operations = compile(proto, smooth="function").program.operations
    assert [operation.op for operation in operations] == ["dense", "function"]
    assert operations[1].attributes == {"steps": [{"name": "sigmoid", "operands": [0]}]}


def test_what_else_reads_the_argument_keeps_it() -> None:
    swish = [Step("scale", (0,), 2.0), Step("sigmoid", (1,)), Step("mul", (0, 2))]
    assert parted(Function(tuple(swish))) == ([], Function(tuple(swish)))
    inner = [Step("scale", (0,), 2.0), Step("shift", (1,), 1.0), Step("tanh", (2,))]
    leading, rest = parted(Function(tuple(inner)))
    assert leading == [Step("scale", (0,), 2.0), Step("shift", (0,), 1.0)]
    assert rest == Function((Step("tanh", (0,)),))


@pytest.mark.parametrize("shape", [(5,), (2, 3), (1, 2, 4, 4)])
def test_kept_constants_compute_the_same(shape: tuple[int, ...]) -> None:
    nodes = [
        node("Mul", ["x", "two"], ["scaled"]),
        node("Add", ["scaled", "one"], ["shifted"]),
        node("Tanh", ["shifted"], ["y"]),
    ]
    weights = {"two": np.float32(2.5), "one": np.float32(-0.75)}
    proto = model(nodes, {"x": shape}, ["y"], weights)
    inputs = samples(proto)
    compiled = compile(proto, calibration=[inputs], smooth="function")
    steps = [
        operation.attributes["steps"]
        for operation in compiled.program.operations
        if operation.op == "function"
    ]
    assert steps == [[{"name": "tanh", "operands": [0]}]]
    (output,) = execute(compiled.program, compiled.weights, inputs).outputs.values()
    np.testing.assert_allclose(output, expected(proto, inputs)[0], rtol=0, atol=2.0**-10)


def test_other_forms_are_refused() -> None:
    with pytest.raises(Misuse, match="polynomial, function"):
        compile(single("Tanh", [(2, 3)]), smooth="table")
