"""RNN, GRU and LSTM, unrolled, beside ONNX Runtime or ONNX's reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.python.compiler.graph.single import Array, expected, model, node

from privet.compiler.compile import compile
from privet.compiler.executor import execute
from privet.compiler.graph import import_model
from privet.errors import UnsupportedModel

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, ROWS, WIDTH, HIDDEN = 4, 3, 5, 6
EXPORTED = Path(__file__).parent / "exported_recurrent"


def net(
    op: str,
    *,
    directions: int = 1,
    seed: int = 0,
    lengths: list[int] | None = None,
    initial: str = "",
    peepholes: bool = False,
    opset: int = 22,
    **attributes: Any,
) -> onnx.ModelProto:
    """A net with all its outputs; `initial` is "private" or "constant" states to begin with."""
    rng = np.random.default_rng(seed)
    is_batch_first = bool(attributes.get("layout"))

    def weights(*shape: int) -> Array:
        return rng.uniform(-0.6, 0.6, shape).astype(np.float32)

    rows, gates = GATES[op] * HIDDEN, GATES[op]
    constants = {
        "W": weights(directions, rows, WIDTH),
        "R": weights(directions, rows, HIDDEN),
        "B": weights(directions, 2 * rows),
    }
    inputs = {"x": (ROWS, STEPS, WIDTH) if is_batch_first else (STEPS, ROWS, WIDTH)}
    names = ["x", "W", "R", "B", "", "", "", ""]
    if lengths is not None:
        constants["lengths"], names[4] = np.array(lengths, np.int32), "lengths"
    first = (ROWS, directions, HIDDEN) if is_batch_first else (directions, ROWS, HIDDEN)
    for index in range(2 if gates == 4 else 1):
        if initial == "private":
            inputs[f"s{index}"] = first
        elif initial:
            constants[f"s{index}"] = weights(*first)
        if initial:
            names[5 + index] = f"s{index}"
    if peepholes:
        constants["P"], names[7] = weights(directions, 3 * HIDDEN), "P"
    outputs = ["y", "y_h", "y_c"][: 3 if gates == 4 else 2]
    names = names[: 8 if gates == 4 else 6]
    layer = node(op, names, outputs, hidden_size=HIDDEN, **attributes)
    return model([layer], inputs, outputs, constants, opset=opset)


def check(proto: onnx.ModelProto, *, units: float = 24) -> None:
    rng = np.random.default_rng(1)
    inputs = {
        entry.name: rng.standard_normal(
            [d.dim_value for d in entry.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for entry in proto.graph.input
    }
    compiled = compile(proto, bits=50, scale=14, calibration=[inputs], smooth="piecewise")
    outputs = execute(compiled.program, compiled.weights, inputs).outputs
    for output, array in zip(proto.graph.output, expected(proto, inputs), strict=True):
        assert outputs[output.name].shape == array.shape
        np.testing.assert_allclose(outputs[output.name], array, rtol=0, atol=units * 2.0**-14)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"direction": "reverse", "initial": "constant"},
        {"direction": "bidirectional", "directions": 2, "initial": "private"},
        {"direction": "bidirectional", "directions": 2, "lengths": [4, 2, 4]},
        {"lengths": [3, 3, 3], "initial": "constant"},
        {"layout": 1, "initial": "private"},
        {"clip": 0.4},
    ],
)
def test_every_form_of_a_recurrent_net(op: str, options: dict[str, Any]) -> None:
    check(net(op, **options))


@pytest.mark.parametrize("initial", ["", "constant", "private"])
def test_a_linear_layer_before_the_reset(initial: str) -> None:
    check(net("GRU", linear_before_reset=1, initial=initial))
    two: dict[str, Any] = {"direction": "bidirectional", "directions": 2}
    check(net("GRU", linear_before_reset=1, initial=initial, **two))


@pytest.mark.parametrize("initial", ["", "constant", "private"])
def test_peepholes(initial: str) -> None:
    two: dict[str, Any] = {"direction": "bidirectional", "directions": 2}
    check(net("LSTM", peepholes=True, initial=initial))
    check(net("LSTM", peepholes=True, initial=initial, **two))


def test_coupled_gates() -> None:
    check(net("LSTM", input_forget=1, initial="private", peepholes=True))
    check(net("LSTM", input_forget=1))


@pytest.mark.parametrize(
    ("op", "options"),
    [
        ("RNN", {"activations": ["Affine"], "activation_alpha": [0.5], "activation_beta": [0.1]}),
        ("RNN", {"activations": ["LeakyRelu"]}),
        ("RNN", {"activations": ["ScaledTanh"], "activation_alpha": [1.7, 0.9]}),
        ("GRU", {"activations": ["HardSigmoid", "Softsign"], "activation_alpha": [0.3]}),
        ("LSTM", {"activations": ["Sigmoid", "Relu", "Softplus"]}),
        (
            "LSTM",
            {
                "activations": ["HardSigmoid", "ThresholdedRelu", "Elu"],
                "activation_alpha": [0.2, 0.7, 1.0],
            },
        ),
        (
            "LSTM",
            {
                "activations": ["Sigmoid", "Tanh", "Tanh", "HardSigmoid", "Elu", "LeakyRelu"],
                "activation_alpha": [0.25, 0.9, 0.05],
                "activation_beta": [0.4],
                "direction": "bidirectional",
                "directions": 2,
            },
        ),
    ],
)
def test_other_activations(op: str, options: dict[str, Any]) -> None:
    if options["activations"] == ["ScaledTanh"]:
        options = {**options, "activation_beta": [0.8]}
    check(net(op, **options))


@pytest.mark.parametrize("op", GATES)
def test_inputs_of_all_steps_are_one_linear_layer(op: str) -> None:
    graph = import_model(net(op), name="net")
    dense = [n.operation for n in graph.nodes if type(n.operation).__name__ == "Dense"]
    late = 2 if op == "GRU" else 1
    assert len(dense) == 1 + late * (STEPS - 1)


def test_an_lstm_looks_up_all_gates_of_both_directions_at_once() -> None:
    graph = import_model(net("LSTM", directions=2, direction="bidirectional"), name="net")
    lookups = [n for n in graph.nodes if type(n.operation).__name__ == "Elementwise"]
    assert len(lookups) == 2 * STEPS


@pytest.mark.parametrize(
    ("change", "words"),
    [({"activations": ["Sin"]}, "activations"), ({"lengths": [4, 9, 4]}, "lengths")],
)
def test_what_is_refused(change: dict[str, Any], words: str) -> None:
    options: dict[str, Any] = {"lengths": [4, 4, 4], **change}
    proto = net("RNN", **options)
    with pytest.raises(UnsupportedModel, match=words):
        compile(proto)


def test_private_lengths_are_refused() -> None:
    proto = net("RNN", lengths=[4, 4, 4])
    lengths = proto.graph.initializer.pop(3)
    proto.graph.input.append(
        onnx.helper.make_tensor_value_info(lengths.name, lengths.data_type, [3])
    )
    with pytest.raises(UnsupportedModel, match="lengths depend on the private input"):
        compile(proto)


def exported() -> list[Path]:
    """Files of torch and Keras."""
    return sorted(EXPORTED.glob("*.onnx"))


@pytest.mark.parametrize("path", exported(), ids=lambda path: path.stem)
def test_nets_of_real_exporters(path: Path) -> None:
    check(onnx.load(path))


@pytest.mark.parametrize("lengths", [[4, 4, 4], [3, 3, 3], [2, 4, 1]])
def test_reversed_sequences(lengths: list[int]) -> None:
    layer = node("ReverseSequence", ["x", "lengths"], ["y"], time_axis=0, batch_axis=1)
    check(model([layer], {"x": (4, 3, 2)}, ["y"], {"lengths": np.array(lengths)}))
