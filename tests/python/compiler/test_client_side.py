"""What clients compute before the private part: where models are parted, and hostile fronts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import constant, model, node

import privet
from privet.compiler.client_side import part
from privet.compiler.executor import execute
from privet.compiler.executor.reference import run_plaintext
from privet.compiler.executor.samples import fill, pad
from privet.compiler.graph.front import Front, Given
from privet.compiler.graph.head import Head, HeadNode
from privet.compiler.program import Program
from privet.errors import InputError, InvalidProgram, UnsupportedModel

ML = "ai.onnx.ml"
JOBS = ["clerk", "farmer", "nurse"]
MARK = 0.84375
"""A number of the front that would be seen among public ones."""


def learned(
    nodes: list[onnx.NodeProto], inputs: Mapping[str, tuple[int, tuple[int, ...]]], **constants: Any
) -> onnx.ModelProto:
    """A model with an output `y` that may have operators of ai.onnx.ml."""
    entries = [onnx.helper.make_tensor_value_info(name, *entry) for name, entry in inputs.items()]
    output = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (None, 3))
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = onnx.helper.make_graph(nodes, "learned", entries, [output], tensors)
    opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid(ML, 3)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)


def table(zeros: int = 1) -> onnx.ModelProto:
    """Two numbers, the first of which may be missing, and a text, scaled and encoded; then a
    layer."""
    nodes = [
        node(
            "Imputer",
            ["num"],
            ["i"],
            imputed_value_floats=[MARK],
            replaced_value_float=float("nan"),
            domain=ML,
        ),
        node("Scaler", ["i"], ["s"], offset=[1.0, 2.0], scale=[0.5, 0.25], domain=ML),
        node("OneHotEncoder", ["job"], ["o"], cats_strings=JOBS, zeros=zeros, domain=ML),
        node("Reshape", ["o", "flat"], ["e"]),
        node("Concat", ["s", "e"], ["x"], axis=1),
        node("MatMul", ["x", "w"], ["y"]),
    ]
    inputs = {"num": (onnx.TensorProto.FLOAT, (1, 2)), "job": (onnx.TensorProto.STRING, (1, 1))}
    return learned(nodes, inputs, w=constant(5, 3, seed=1), flat=np.array([-1, 3]))


def rows(*jobs: str) -> dict[str, Any]:
    numbers = np.arange(2 * len(jobs), dtype=np.float32).reshape(-1, 2)
    numbers[0, 0] = np.nan
    return {"num": numbers, "job": np.array(jobs).reshape(-1, 1)}


@pytest.mark.parametrize("batch", [1, 4])
def test_the_client_imputes_scales_and_encodes(batch: int) -> None:
    proto = table()
    compiled = privet.compile(proto, client_side=True, batch=batch)
    program = Program.from_public_bytes(compiled.program.to_public_bytes())
    assert [operation.op for operation in program.operations] == ["dense"]
    assert [(entry.name, entry.kind, entry.shape) for entry in program.given] == [
        ("num", "real", (batch, 2)),
        ("job", "text", (batch, 1)),
    ]
    inputs = rows("nurse") if batch == 1 else rows("nurse", "baker", "clerk")
    arrays, count = fill(program, inputs)
    output = execute(program, compiled.weights, arrays).outputs["y"][:count]
    samples = [{name: array[i : i + 1] for name, array in inputs.items()} for i in range(count)]
    reference = run_plaintext(proto, samples, ["y"])["y"]
    np.testing.assert_allclose(output, reference.astype(np.float64), atol=2e-3)


def test_samples_along_the_first_axis_tell_how_accurate_it_is() -> None:
    calibration = rows("nurse", "baker", "clerk")
    compiled = privet.compile(table(), client_side=True, calibration=calibration)
    (output,) = compiled.accuracy().beside
    assert output.name == "y"
    assert output.error < 2e-3


def test_only_who_serves_publishes_the_constants() -> None:
    """By default a client learns no number of a scaler; with the option it does."""
    nodes = [
        node("Scaler", ["x"], ["s"], offset=[MARK, 0.0], scale=[1.0], domain=ML),
        node("MatMul", ["s", "w"], ["y"]),
    ]
    proto = learned(nodes, {"x": (onnx.TensorProto.FLOAT, (1, 2))}, w=constant(2, 3, seed=1))
    private, public = (
        privet.compile(proto, client_side=client_side).program for client_side in (False, True)
    )
    assert private.front is None
    assert str(MARK).encode() not in private.to_public_bytes()
    assert str(MARK).encode() in public.to_public_bytes()


def test_a_table_of_embeddings_stays_private() -> None:
    """The client finds the place of a text; the row there is learned, and looked up privately."""
    table = constant(3, 4, seed=2)
    table[1, 2] = MARK
    encoder = node(
        "LabelEncoder",
        ["job"],
        ["place"],
        keys_strings=JOBS,
        values_int64s=[0, 1, 2],
        default_int64=0,
        domain=ML,
    )
    nodes = [
        encoder,
        node("Gather", ["table", "place"], ["e"]),
        node("Flatten", ["e"], ["f"]),
        node("MatMul", ["f", "w"], ["y"]),
    ]
    inputs = {"job": (onnx.TensorProto.STRING, (1, 1))}
    proto = learned(nodes, inputs, table=table, w=constant(4, 3, seed=1))
    compiled = privet.compile(proto, client_side=True)
    program = Program.from_public_bytes(compiled.program.to_public_bytes())
    assert program.front is not None
    assert [step.op for step in program.front.steps.nodes] == ["LabelEncoder"]
    assert str(MARK).encode() not in program.to_public_bytes()
    feeds = {"job": np.array([["farmer"]])}
    arrays, _ = fill(program, feeds)
    output = execute(program, compiled.weights, arrays).outputs["y"]
    reference = run_plaintext(proto, [feeds], ["y"])["y"]
    np.testing.assert_allclose(output, reference.astype(np.float64), atol=2e-3)


def test_what_follows_a_private_operation_stays_private() -> None:
    proto = model(
        [
            node("Sub", ["x", "mean"], ["a"]),
            node("Conv", ["a", "w"], ["b"]),
            node("Mul", ["b", "factor"], ["y"]),
        ],
        {"x": (1, 3, 4, 4)},
        ["y"],
        {"mean": constant(3, 1, 1, seed=1), "w": constant(2, 3, 3, 3), "factor": constant(2, 1, 1)},
    )
    front, behind = part(proto, None)
    assert front is not None
    assert [step.op for step in front.steps.nodes] == ["Sub"]
    assert [entry.name for entry in behind.graph.input] == ["a"]
    assert [step.op_type for step in behind.graph.node] == ["Conv", "Mul"]


def test_a_model_without_such_steps_is_as_it_was() -> None:
    proto = model([node("MatMul", ["x", "w"], ["y"])], {"x": (1, 2)}, ["y"], {"w": constant(2, 3)})
    assert part(proto, None) == (None, proto)
    assert privet.compile(proto, client_side=True).program.front is None


def test_an_input_that_both_parts_read_is_an_input_of_both() -> None:
    proto = model(
        [
            node("Abs", ["x"], ["a"]),
            node("MatMul", ["x", "w"], ["b"]),
            node("Add", ["a", "b"], ["y"]),
        ],
        {"x": (1, 3)},
        ["y"],
        {"w": constant(3, 3)},
    )
    compiled = privet.compile(proto, client_side=True)
    assert sorted(entry.name for entry in compiled.program.inputs) == ["a", "x"]
    x = constant(1, 3, seed=5)
    arrays, _ = fill(compiled.program, [x])
    output = execute(compiled.program, compiled.weights, arrays).outputs["y"]
    reference = run_plaintext(proto, [{"x": x}], ["y"])["y"]
    np.testing.assert_allclose(output, reference.astype(np.float64), atol=2e-3)


def test_texts_without_the_option_are_refused_and_it_is_named() -> None:
    with pytest.raises(UnsupportedModel, match="--client-side"):
        privet.compile(table())


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"num": [[1.0, 2.0]]}, "missing: job"),
        ({"num": [["a", "b"]], "job": [["nurse"]]}, "num has type .*; real is needed"),
        ({"num": [[1.0, 2.0]], "job": [[1]]}, "job has type .*; text is needed"),
        ({"num": [[1.0]], "job": [["nurse"]]}, r"num has shape \[1, 1\], not \[1, 2\]"),
        ({"num": [[1.0, 2.0]], "job": [["baker"]]}, "'baker' is none of its categories"),
    ],
)
def test_inputs_that_do_not_fit(inputs: dict[str, Any], problem: str) -> None:
    program = privet.compile(table(zeros=0), client_side=True).program
    with pytest.raises(InputError, match=problem):
        fill(program, {name: np.array(array) for name, array in inputs.items()})


def test_samples_fill_up_before_the_front() -> None:
    """A text cannot be zero."""
    program = privet.compile(table(zeros=0), client_side=True, batch=3).program
    inputs, count = pad(program, rows("farmer", "nurse"))
    assert count == 2
    assert inputs["job"].ravel().tolist() == ["farmer", "nurse", "nurse"]
    assert len(fill(program, inputs)[0]["x"]) == 3


def _steps(change: Callable[[Head], Head]) -> Callable[[Front], Front]:
    return lambda front: replace(front, steps=change(front.steps))


def _hot(categories: list[Any]) -> HeadNode:
    return HeadNode("OneHotEncoder", ("num",), ("x",), {"cats_int64s": categories})


HOSTILE: dict[str, tuple[Callable[[Front], Front], str]] = {
    "an operator": (
        _steps(lambda front: replace(front, nodes=(HeadNode("Loop", ("num",), ("x",), {}),))),
        "is not one that clients compute",
    ),
    "texts for whole numbers": (
        _steps(lambda front: replace(front, nodes=(_hot(["a", 1]),))),
        "'cats_int64s' is too long or has entries of another type",
    ),
    "lists for whole numbers": (
        _steps(lambda front: replace(front, nodes=(_hot([[1], [1, 2]]),))),
        "'cats_int64s' is too long or has entries of another type",
    ),
    "another output": (
        _steps(lambda front: replace(front, outputs=("s",))),
        "not the program's inputs",
    ),
    "a kind": (
        lambda front: replace(front, given=(Given("num", "object", (1, 2)),)),
        "a kind 'object'",
    ),
    "a shape": (
        lambda front: replace(front, given=(Given("num", "real", (1, 1 << 30)),)),
        "bounds",
    ),
    "nothing": (lambda front: replace(front, given=()), "missing or the same"),
    "twice": (lambda front: replace(front, given=front.given * 2), "missing or the same"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_front_is_refused(name: str) -> None:
    change, problem = HOSTILE[name]
    program = privet.compile(table(), client_side=True).program
    assert program.front is not None
    hostile = replace(program, front=change(program.front)).to_public_bytes()
    with pytest.raises(InvalidProgram, match=problem):
        Program.from_public_bytes(hostile)


def test_a_front_that_is_no_front_is_refused() -> None:
    document = json.loads(privet.compile(table(), client_side=True).program.to_public_bytes())
    document["front"] = {"given": [{"name": "num"}]}
    data = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(InvalidProgram, match="not readable"):
        Program.from_public_bytes(data)
