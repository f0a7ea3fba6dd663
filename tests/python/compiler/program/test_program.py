"""The two halves of a program: canonical, bound together, and checked when read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import safetensors.numpy
from tests.python.compiler.graph.single import constant, model, node

from privet.compiler.compile import Compiled, compile, load
from privet.compiler.executor import execute
from privet.compiler.program import Program
from privet.compiler.program.public import MAX_BYTES
from privet.errors import InvalidProgram, Misuse


def network() -> onnx.ModelProto:
    """Every kind of attribute that the file format has."""
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        node("Add", ["c", "x"], ["s"]),
        node("Relu", ["s"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("AveragePool", ["p"], ["a"], kernel_shape=[2, 2], pads=[0, 0, 1, 1]),
        node("Pad", ["a", "pads", "one"], ["d"]),
        node("Transpose", ["d"], ["t"], perm=[0, 2, 3, 1]),
        node("Slice", ["t", "from", "to"], ["l"]),
        node("Concat", ["l", "l"], ["k"], axis=1),
        node("Flatten", ["k"], ["f"]),
        node("Mul", ["f", "m"], ["g"]),
        node("Expand", ["g", "wide"], ["e"]),
        node("MatMul", ["e", "fc"], ["o"]),
        node("ArgMax", ["e"], ["label"], axis=1),
        node("Softmax", ["o"], ["y"], axis=1),
    ]
    constants: dict[str, Any] = {
        "w": constant(2, 2, 3, 3),
        "b": constant(2),
        "pads": np.array([0, 0, 0, 0, 0, 0, 1, 0]),
        "one": np.float32(1),
        "from": np.array([0, 0]),
        "to": np.array([1, 2]),
        "m": constant(1, 16),
        "wide": np.array([2, 1]),
        "fc": constant(16, 3),
    }
    return model(nodes, {"x": (1, 2, 4, 4)}, ["y", "label"], constants)


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compile(network())


def test_public_half_round_trips(compiled: Compiled) -> None:
    data = compiled.program.to_public_bytes()
    copy = Program.from_public_bytes(data)
    assert copy.to_public_bytes() == data
    assert copy.program_hash == hashlib.sha256(data).hexdigest() == compiled.program.program_hash


def test_public_half_has_the_documented_form(compiled: Compiled) -> None:
    document = json.loads(compiled.program.to_public_bytes())
    assert document["format"] == "privet-program"
    assert document["version"] == 1
    assert set(document) == {
        *("format", "version", "model", "ring_bits", "scale_bits", "weight_bits"),
        *("weights_commitment", "inputs", "outputs", "values", "operations"),
    }
    assert document["inputs"] == [{"name": "x", "value": 0, "magnitude": 6.0}]
    assert document["outputs"][0]["client"] == {"op": "softmax", "axis": 1}
    assert document["outputs"][1]["client"] is None
    conv = document["operations"][0]
    assert conv == {
        "op": "conv2d",
        "name": "the_conv",
        "inputs": [0],
        "output": 1,
        "weight": "0.weight",
        "weight_shape": [2, 2, 3, 3],
        "bias": "0.bias",
        "stride": [1, 1],
        "padding": [1, 1, 1, 1],
        "dilation": [1, 1],
        "groups": 1,
    }


def test_a_batch_is_named_and_checked() -> None:
    proto = model([node("Relu", ["x"], ["y"])], {"x": (1, 2)}, ["y"])
    program = compile(proto, batch=3).program
    document = json.loads(program.to_public_bytes())
    assert document["batch"] == 3
    assert Program.from_public_bytes(program.to_public_bytes()).batch == 3
    for batch in (0, 1, 2, "3"):
        data = json.dumps({**document, "batch": batch}, sort_keys=True, separators=(",", ":"))
        with pytest.raises(InvalidProgram):
            Program.from_public_bytes(data.encode())


def test_what_ranges_rest_on_is_named_and_checked() -> None:
    proto = model([node("Relu", ["x"], ["y"])], {"x": (1, 2)}, ["y"])
    programs = {
        "random": compile(proto).program,
        "samples": compile(proto, calibration=[np.ones((1, 2), np.float32)]).program,
        "sound": compile(proto, sound=True).program,
    }
    for calibration, program in programs.items():
        data = program.to_public_bytes()
        assert Program.from_public_bytes(data).calibration == calibration
        assert ("calibration" in json.loads(data)) == (calibration != "random")
    for other in ("random", "perfect", 1, None):
        document = json.loads(data) | {"calibration": other}
        with pytest.raises(InvalidProgram):
            Program.from_public_bytes(
                json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
            )


def test_compiling_again_changes_only_the_commitment(compiled: Compiled) -> None:
    second = compile(network())
    assert second.program.weights_commitment != compiled.program.weights_commitment
    alike = replace(second.program, weights_commitment=compiled.program.weights_commitment)
    assert alike.to_public_bytes() == compiled.program.to_public_bytes()
    for name, tensor in compiled.weights.tensors.items():
        np.testing.assert_array_equal(second.weights.tensors[name], tensor)


def test_neither_weights_nor_ranges_are_in_the_public_half(compiled: Compiled) -> None:
    """Other weights of like size give the same public half, but for the commitment."""
    other = network()
    for tensor in other.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if tensor.name in ("w", "b", "fc", "m"):
            tensor.CopyFrom(
                onnx.numpy_helper.from_array(array[::-1] * np.float32(0.97), tensor.name)
            )
    variant = compile(other).program
    alike = replace(variant, weights_commitment=compiled.program.weights_commitment)
    assert alike.to_public_bytes() == compiled.program.to_public_bytes()


def test_private_half_is_a_safetensors_file(compiled: Compiled) -> None:
    data = compiled.weights.to_private_bytes()
    tensors = safetensors.numpy.load(data)
    assert tensors.pop("salt").shape == (32,)
    assert {name: t.dtype for name, t in tensors.items()} == {
        name: np.dtype(np.int64) for name in compiled.weights.tensors
    }
    assert hashlib.sha256(data).hexdigest() == compiled.program.weights_commitment


def test_weights_stay_below_the_declared_bits(compiled: Compiled) -> None:
    names = [o.attributes.get("weight") for o in compiled.program.operations]
    largest = max(np.abs(compiled.weights.tensors[name]).max() for name in names if name)
    bits = compiled.program.weight_bits
    assert bits % 4 == 0
    assert 2 ** (bits - 4) <= largest < 2**bits


def test_save_and_load(compiled: Compiled, tmp_path: Path) -> None:
    compiled.save(tmp_path)
    program, weights = load(tmp_path)
    x = np.ones((1, 2, 4, 4))
    first = execute(compiled.program, compiled.weights, [x]).integers
    second = execute(program, weights, [x]).integers
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (tmp_path / "weights.safetensors").stat().st_mode & 0o077 == 0


def test_halves_of_different_programs_are_refused(compiled: Compiled, tmp_path: Path) -> None:
    compile(network()).save(tmp_path)
    (tmp_path / "program.json").write_bytes(compiled.program.to_public_bytes())
    with pytest.raises(InvalidProgram, match="different programs"):
        load(tmp_path)
    with pytest.raises(InvalidProgram, match="another program"):
        execute(compiled.program, compile(network()).weights, [np.ones((1, 2, 4, 4))])


@pytest.mark.parametrize("half", ["program.json", "weights.safetensors"])
def test_a_missing_half_is_said(compiled: Compiled, tmp_path: Path, half: str) -> None:
    compiled.save(tmp_path)
    (tmp_path / half).unlink()
    with pytest.raises(InvalidProgram, match=half):
        load(tmp_path)


def test_a_changed_weight_is_refused(compiled: Compiled, tmp_path: Path) -> None:
    compiled.save(tmp_path)
    file = tmp_path / "weights.safetensors"
    data = bytearray(file.read_bytes())
    data[-40] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(InvalidProgram, match="different programs"):
        load(tmp_path)


def test_a_file_that_is_too_long_is_not_read() -> None:
    with pytest.raises(InvalidProgram, match="4194305 bytes, more than 4194304"):
        Program.from_public_bytes(b"[" * (MAX_BYTES + 1))


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_bytes_that_are_no_program(data: bytes) -> None:
    with pytest.raises(InvalidProgram):
        Program.from_public_bytes(data)


def _set(*path: Any) -> Callable[[Any], None]:
    *way, last, value = path

    def change(document: Any) -> None:
        for key in way:
            document = document[key]
        document[last] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("version", 2),
        _set("ring_bits", 65),
        _set("ring_bits", "37"),
        _set("weights_commitment", "00"),
        _set("inputs", []),
        _set("inputs", 0, "value", 999),
        _set("inputs", 0, "magnitude", -1.0),
        _set("outputs", 0, "value", -1),
        _set("outputs", 0, "client", {"op": "exec", "axis": 0}),
        _set("outputs", 0, "client", {"op": "softmax", "axis": 9}),
        _set("values", 1, "shape", [1, 2, 4, 5]),
        _set("values", 1, "shape", [0]),
        _set("values", 1, "scale", 99),
        _set("operations", 0, "op", "launch"),
        _set("operations", 0, "inputs", [17]),
        _set("operations", 0, "inputs", []),
        _set("operations", 0, "output", 0),
        _set("operations", 0, "groups", 0),
        _set("operations", 0, "stride", [0, 1]),
        _set("operations", 0, "weight_shape", [2, 2, 3]),
        _set("operations", 0, "weight_shape", [10**9, 10**9, 3, 3]),
        _set("operations", 0, "extra", 1),
        _set("extra", 1),
    ],
)
def test_a_program_that_contradicts_itself(
    compiled: Compiled, change: Callable[[Any], None]
) -> None:
    document = json.loads(compiled.program.to_public_bytes())
    change(document)
    data = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(InvalidProgram):
        Program.from_public_bytes(data)


def test_spaces_are_refused_as_they_would_change_the_hash(compiled: Compiled) -> None:
    with pytest.raises(InvalidProgram, match="canonical"):
        Program.from_public_bytes(compiled.program.to_public_bytes() + b" ")


@pytest.mark.parametrize(
    "options",
    [
        {"bits": 15},
        {"bits": 51},
        {"scale": 3},
        {"scale": 21},
        {"weight_scale": 21},
        {"margin": 0.5},
        {"margin": float("nan")},
        {"input_range": (1.0, 0.0)},
        {"input_range": (0.0, float("inf"))},
    ],
)
def test_options_out_of_their_range(options: dict[str, Any]) -> None:
    with pytest.raises(Misuse, match=next(iter(options))):
        compile(network(), **options)


def test_an_input_that_nothing_reads_is_like_any_other() -> None:
    """Without trees it is not given as places, which suites without these do not read."""
    nodes = [onnx.helper.make_node("Relu", ["x"], ["y"])]
    proto = model(nodes, {"x": (1, 3), "unused": (1, 2)}, ["y"])
    inputs = compile(proto).program.inputs
    assert [(entry.order, entry.missing) for entry in inputs] == [(False, False)] * 2
