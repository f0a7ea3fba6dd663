"""`privet.run`: what it refuses before any process is started, and how its result prints; what
opens no server or client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import model, node, single

import privet
from privet.compiler.executor.reference import run_plaintext
from privet.errors import InputError, InvalidModel, Misuse


@pytest.mark.parametrize(
    "options",
    [
        {"reveal": "label"},
        {"bits": 40, "scale": 12},
        {"batch": 4},
        {"calibration": np.ones((2, 3))},
        {"client_side": True},
        {"input_shapes": {"x0": (1, 3)}},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_of_compile_beside_a_compiled_model_are_refused(options: dict[str, Any]) -> None:
    """They were ignored, so that reveal="label" revealed scores."""
    compiled = privet.compile(single("Relu", [(1, 3)]))
    with pytest.raises(Misuse, match=f"compiled already: give {', '.join(options)} to privet.comp"):
        privet.run(compiled, np.ones((1, 3)), **options)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.full((5, 3), 100.0), r"^input x0 has shape \[5, 3\], not \[1, 3\]: .*batch=N"),
        (
            np.full(3, 100.0),
            r"^input x0 has shape \[3\], not \[1, 3\]: give it the axis of samples",
        ),
    ],
)
def test_unfit_inputs_beyond_calibration_are_told_as_inputs(rows: Any, message: str) -> None:
    """They are taken for calibration, too, and were refused as such."""
    with pytest.raises(InputError, match=message):
        privet.run(single("Relu", [(1, 3)]), rows, calibration=np.ones((2, 3)))


def test_whole_numbers_are_asked_for_where_the_model_declares_them() -> None:
    """ONNX Runtime cut fractions off, and the two results "disagreed"."""
    proto = model([node("Cast", ["x"], ["y"], to=onnx.TensorProto.FLOAT)], {"x": (1, 3)}, ["y"])
    proto.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    with pytest.raises(InputError, match=r"input x takes whole numbers \(int64\)"):
        run_plaintext(proto, [{"x": np.full((1, 3), 0.5)}], ["y"])
    run_plaintext(proto, [{"x": np.full((1, 3), 2.0)}], ["y"])


def test_a_model_that_onnx_runtime_refuses_is_told() -> None:
    proto = model([node("Relu", ["x"], ["y"])], {"x": (1, 3)}, ["y"])
    proto.graph.node[0].domain = "org.example"
    with pytest.raises(InvalidModel, match="ONNX Runtime refuses the model"):
        run_plaintext(proto, [{"x": np.ones((1, 3))}], ["y"])


def test_a_model_that_fails_in_onnx_runtime_is_told() -> None:
    proto = model([node("Gather", ["x", "i"], ["y"])], {"x": (3,), "i": (1,)}, ["y"])
    proto.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    inputs = {"x": np.ones(3), "i": np.array([7])}
    with pytest.raises(InvalidModel, match=r"ONNX Runtime refuses the model.*out of data bounds"):
        run_plaintext(proto, [inputs], ["y"])


def test_weights_quantised_in_blocks_without_zero_points_are_compared() -> None:
    weights = np.arange(-6, 6, dtype=np.int8).reshape(4, 3)
    nodes = [
        node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=2),
        node("MatMul", ["x", "d"], ["y"]),
    ]
    constants: dict[str, Any] = {"w": weights, "s": np.full((2, 3), 0.5, np.float32)}
    proto = model(nodes, {"x": (1, 4)}, ["y"], constants)
    output = run_plaintext(proto, [{"x": np.ones((1, 4))}], ["y"])["y"]
    np.testing.assert_array_equal(output, [weights.sum(axis=0) / 2])


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("timeout", value) for value in (-1.0, 0, float("nan"), float("inf"))),
        *(("bits", value) for value in (37.0, "37")),
        *(("batch", value) for value in (2.0, "2")),
    ],
)
def test_numbers_that_are_none_are_refused(option: str, value: Any) -> None:
    with pytest.raises(Misuse, match=r"no time to wait|whole number"):
        privet.run(single("Relu", [(1, 3)]), **{option: value})


def test_a_run_prints_as_a_few_lines() -> None:
    result = privet.run(single("Relu", [(1, 300)]), suite=privet.Fss(truncation="one-bit"))
    lines = repr(result).splitlines()
    assert lines[0] == "<Run of test in suite fss, truncation one-bit"
    assert lines[1] == "  outputs: y0 [1, 300]"
    assert lines[2].startswith("  ONNX Runtime agrees, largest difference of an output ")
    assert lines[3].startswith("  offline: ")
    assert ", dealer " in lines[3]
    assert lines[4].startswith("  online: ")
    for caution in (
        result.trust,
        *(weakness.meaning for weakness in result.weaknesses),
        "without samples",
    ):
        assert caution is not None
        assert any(caution in line for line in lines[5:])
    assert len(repr(result)) < 1500
    far = replace(result, reference={"y0": np.multiply(result.reference["y0"], 1.5)})
    assert repr(far).splitlines()[2].startswith("  ONNX Runtime DISAGREES, ")


def test_what_is_compiled_prints_no_weights() -> None:
    compiled = privet.compile(single("Mul", [(1, 2), np.array([31.25, 0.5], np.float32)]))
    text = repr(compiled)
    assert text.startswith("<Compiled test: x0 [1, 2] -> y0 [1, 2]; ")
    assert text.endswith(f"program {compiled.program.program_hash[:16]}>")
    assert "31.25" not in text
    assert len(text) < 250


@pytest.mark.parametrize(
    "open_with",
    [
        lambda keys, state: privet.Server(keys, state=state),
        lambda keys, state: privet.Client("localhost", 7400, keys, state=state),
        lambda keys, state: privet.ServiceClient("localhost:7480", keys, state=state),
    ],
    ids=["Server", "Client", "ServiceClient"],
)
def test_a_folder_is_no_credentials(open_with: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=r"credentials are 'keys': give privet.Credentials"):
        open_with("keys", tmp_path)


@pytest.mark.parametrize("port", ["7400", None, 7400.0, 0, 1 << 16])
def test_what_is_no_port_is_named(port: Any, key_folder: Path, tmp_path: Path) -> None:
    """Rust's extraction ended in a bare TypeError or OverflowError."""
    keys = privet.Credentials.from_directory(key_folder, "client")
    with pytest.raises(Misuse, match=f"the port is {port!r}: give a number from 1 to 65535"):
        privet.Client("localhost", port, keys, state=tmp_path)
