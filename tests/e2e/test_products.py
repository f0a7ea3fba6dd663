"""Products of two private tensors in suites `gmw` and `fss`: the executor's integers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.combinations import combinations
from tests.python.compiler.graph.single import expected, model, node, samples

import privet
from privet import zoo
from privet.errors import UnsupportedModel

SUITES = [
    privet.Fss(),
    privet.Gmw(correlations="dealer", rounds="log"),
    privet.Gmw(correlations="dealer", rounds="linear"),
    privet.Gmw(rounds="log"),
    privet.Gmw(rounds="log", transfers="silent"),
]


def named(
    nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, ...]], weights: dict[str, np.ndarray]
) -> onnx.ModelProto:
    """The model of these nodes, whose names ONNX Runtime needs to tell them apart."""
    for index, entry in enumerate(nodes):
        entry.name = f"{entry.op_type}{index}"
    return model(nodes, inputs, ["y"], weights)


def network() -> onnx.ModelProto:
    """Two heads of attention without a softmax, a gate, and products that share operands."""
    rng = np.random.default_rng(7)
    weights = {
        name: rng.uniform(-0.4, 0.4, (8, 8)).astype(np.float32) for name in ("wq", "wk", "wv")
    } | {"heads": np.array([5, 2, 4]), "flat": np.array([5, 8]), "rows": np.array([1])}
    nodes = []
    for name in "qkv":
        nodes += [
            node("MatMul", ["x", f"w{name}"], [f"{name}0"]),
            node("Reshape", [f"{name}0", "heads"], [f"{name}1"]),
            node("Transpose", [f"{name}1"], [name], perm=[1, 2, 0] if name == "k" else [1, 0, 2]),
        ]
    nodes += [
        node("MatMul", ["q", "k"], ["scores"]),
        node("Relu", ["scores"], ["r"]),
        node("MatMul", ["r", "v"], ["mixed"]),
        node("Transpose", ["mixed"], ["turned"], perm=[1, 0, 2]),
        node("Reshape", ["turned", "flat"], ["joined"]),
        node("Mul", ["joined", "x"], ["gated"]),
        node("ReduceMean", ["gated", "rows"], ["mean"]),
        node("Mul", ["gated", "mean"], ["y"]),
    ]
    return named(nodes, {"x": (5, 8)}, weights)


def block() -> onnx.ModelProto:
    """Normalisation, and attention of each token to itself and those before it."""
    rng = np.random.default_rng(7)
    weights = {
        "gamma": rng.uniform(0.5, 1.5, 8).astype(np.float32),
        "beta": rng.uniform(-0.5, 0.5, 8).astype(np.float32),
        "mask": np.where(np.tri(5, dtype=bool), np.float32(0), np.float32(-1e4)),
    }
    nodes = [
        node("LayerNormalization", ["x", "gamma", "beta"], ["n"], axis=-1),
        node("Transpose", ["n"], ["t"], perm=[0, 2, 1]),
        node("MatMul", ["n", "t"], ["scores"]),
        node("Add", ["scores", "mask"], ["masked"]),
        node("Softmax", ["masked"], ["p"], axis=-1),
        node("MatMul", ["p", "n"], ["y"]),
    ]
    return named(nodes, {"x": (1, 5, 8)}, weights)


@pytest.mark.parametrize(("suite", "make"), combinations(SUITES, [network, block]))
def test_a_network_with_products_of_two_tensors_is_the_executors(
    suite: privet.Suite, make: Callable[[], onnx.ModelProto]
) -> None:
    proto = make()
    inputs = samples(proto)
    result = privet.run(proto, inputs, suite=suite)
    assert result.max_fixed_point_error == 0
    (outputs,) = result.outputs.values()
    reals = np.asarray(outputs, dtype=np.float64)
    np.testing.assert_allclose(reals, expected(proto, inputs)[0], rtol=0, atol=16 * 2.0**-12)


@pytest.mark.parametrize(
    ("suite", "words"),
    [
        (privet.Gmw(linear="online"), "offline and in a ring"),
        (privet.Gmw(field="prime"), "offline and in a ring"),
        (privet.Fss(security="malicious"), "authenticate"),
        (privet.Stream(), "Choose suite gmw or fss"),
    ],
)
def test_other_suites_refuse_the_layer_by_name(suite: privet.Suite, words: str) -> None:
    with pytest.raises(UnsupportedModel, match="MatMul9") as excinfo:
        privet.run(network(), suite=suite)
    assert words in str(excinfo.value)


@pytest.mark.slow
@pytest.mark.parametrize("suite", [privet.Fss(), privet.Gmw()])
def test_bert_tiny_is_the_executors(
    suite: privet.Suite, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    proto = onnx.load(zoo.build("bert-tiny", tmp_path))
    result = privet.run(proto, samples(proto), suite=suite, bits=40)
    record_property("offline", str(result.offline))
    record_property("online", str(result.online))
    record_property("dealer", str(result.dealer))
    assert result.max_fixed_point_error == 0
