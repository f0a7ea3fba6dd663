"""Public halves of a server that means ill: totals are bounded before anything is made of them."""

from __future__ import annotations

import json
import resource
import time
from typing import Any

import pytest
from tests.python.compiler.graph.single import model, node

from privet.compiler.compile import compile
from privet.compiler.program import Program, check
from privet.compiler.program.check import MAX_ELEMENTS, MAX_LINEAR, MAX_LINES, MAX_OPERATIONS
from privet.errors import InvalidProgram, UnsupportedModel

RELU: dict[str, Any] = {"op": "relu"}
FUNCTION: dict[str, Any] = {
    "op": "piecewise",
    "steps": [{"name": "exp", "operands": [0]}],
    "low": 0,
    "bits": 16,
    "index_bits": 12,
}
SMALL = [1, 1, 8, 8]
WIDE = [1, 16, 4096, 4096]


def conv(*shape: int) -> dict[str, Any]:
    """A convolution that keeps the shape, with weights of this one."""
    around = {"stride": [1, 1], "padding": [1] * 4, "dilation": [1, 1], "groups": 1}
    return {"op": "conv2d", "weight": "w", "weight_shape": shape, "bias": None, **around}


def chain(shape: list[int], operation: dict[str, Any], count: int) -> bytes:
    """A public half in which the same operation comes so many times, one after the other."""
    document = {
        "format": "privet-program",
        "version": 1,
        "model": "bomb",
        "ring_bits": 37,
        "scale_bits": 12,
        "weight_bits": 12,
        "weights_commitment": "00" * 32,
        "inputs": [{"name": "x", "value": 0, "magnitude": 8.0}],
        "outputs": [{"name": "y", "value": count, "client": None}],
        "values": [{"scale": 12, "shape": shape}] * (count + 1),
        "operations": [
            {**operation, "name": str(index), "inputs": [index], "output": index + 1}
            for index in range(count)
        ],
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def test_a_model_of_too_many_operations_is_refused_when_it_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check, "MAX_OPERATIONS", 16)
    nodes = [
        node("Neg" if index % 2 else "Relu", [f"t{index}"], [f"t{index + 1}"])
        for index in range(20)
    ]
    proto = model(nodes, {"t0": (1,)}, ["t20"])
    with pytest.raises(UnsupportedModel, match=r"more than 16 \(operations\). Use smaller"):
        compile(proto)


@pytest.mark.parametrize(
    "public",
    [
        chain(WIDE, RELU, 8),
        chain([1, 16, 256, 256], RELU, MAX_OPERATIONS - 1),
        chain([1, 16, 180, 180], conv(16, 16, 3, 3), MAX_LINEAR),
        chain([1, 1, 1 << 14, 1 << 14], RELU, 1),
    ],
    ids=["wide", "many", "convolutions", "widest"],
)
def test_a_program_at_the_limits_is_read_soon_and_in_little_memory(public: bytes) -> None:
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    assert Program.from_public_bytes(public).model == "bomb"
    assert time.process_time() - start < 5.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


@pytest.mark.parametrize(
    ("public", "problem"),
    [
        (chain(SMALL, RELU, MAX_OPERATIONS + 1), "operations: more than 4096"),
        (chain(WIDE, RELU, 16), "4563402752 elements in all, more than 4294967296"),
        (chain([1, MAX_ELEMENTS + 1], RELU, 1), "value 0: shape .* is out of bounds"),
        (chain([1] * 9, RELU, 1), "value 0: shape .* is out of bounds"),
        (chain([1 << 20, 1 << 20, 1 << 20, 1 << 20], RELU, 1), "value 0: .* out of bounds"),
        (chain(SMALL, conv(1, 1, 3, 3), MAX_LINEAR + 1), "513 have weights, more than 512"),
        (chain(SMALL, FUNCTION, (MAX_LINES >> 12) + 1), "528384 lines in all, more than 524288"),
        (chain(SMALL, conv(1, 1, 1 << 15, 1 << 15), 1), "weights of shape .* out of bounds"),
        (chain(SMALL, conv(1 << 14, 1 << 14, 1, 1), 17), "weights: 4563402752 elements in all"),
        (chain(SMALL, conv(-1, -1, 3, 3), 1), "weights of shape .* out of bounds"),
        (chain(SMALL, {**conv(), "weight_shape": "w"}, 1), "weights of shape 'w' are out"),
    ],
)
def test_a_program_beyond_the_limits_is_refused_with_the_reason(
    public: bytes, problem: str
) -> None:
    start = time.process_time()
    with pytest.raises(InvalidProgram, match=problem):
        Program.from_public_bytes(public)
    assert time.process_time() - start < 5.0


def test_operations_that_read_too_much_are_refused() -> None:
    document = json.loads(chain(SMALL, RELU, 1))
    document["operations"][0] |= {"op": "concat", "axis": 0, "inputs": [0] * (1 << 15)}
    public = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(InvalidProgram, match="more than 16384 inputs of operations"):
        Program.from_public_bytes(public)
