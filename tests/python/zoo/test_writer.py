"""The hand-laid file against the one that ONNX itself would write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from privet.zoo import writer
from privet.zoo.graph import Array, GraphBuilder, Normal, Weight
from privet.zoo.initial import draw
from privet.zoo.minionn import m1


def test_a_file_says_what_onnx_would_say(tmp_path: Path) -> None:
    graph = m1()
    arrays: dict[str, Array] = {}

    def values(weight: Weight) -> Array:
        return arrays.setdefault(weight.name, draw("m1", weight))

    writer.write(graph, tmp_path / "m1.onnx", values)
    model = onnx.load(tmp_path / "m1.onnx")
    assert (model.ir_version, model.opset_import[0].version) == (8, 17)
    assert list(model.graph.node) == graph.nodes
    assert [weight.name for weight in model.graph.initializer] == list(arrays)
    for weight in model.graph.initializer:
        np.testing.assert_array_equal(numpy_helper.to_array(weight), arrays[weight.name])
    # Protobuf writes it again at the same length: no field is doubled or unknown.
    assert model.ByteSize() == (tmp_path / "m1.onnx").stat().st_size


@pytest.mark.parametrize(
    "wrong", [np.zeros((2, 3), np.float64), np.zeros((3, 2), np.float32), np.zeros(6, np.float32)]
)
def test_a_weight_of_another_shape_or_type_is_refused(wrong: Array, tmp_path: Path) -> None:
    graph = GraphBuilder("tiny", (1, 3), moment=1.0)
    graph.weight("w", (2, 3), Normal(1.0))
    with pytest.raises(ValueError, match="w needs float32"):
        writer.write(graph, tmp_path / "tiny.onnx", lambda _: wrong)
    assert not (tmp_path / "tiny.onnx").exists()


def test_a_graph_too_large_for_onnx_is_refused_before_a_weight_is_drawn(tmp_path: Path) -> None:
    graph = GraphBuilder("huge", (1, 2**15), moment=1.0)
    graph.weight("w", (2**15, 2**14), Normal(1.0))

    def never(weight: Weight) -> Array:
        raise AssertionError(f"{weight.name} was drawn")

    with pytest.raises(ValueError, match="more than an ONNX file can hold"):
        writer.write(graph, tmp_path / "huge.onnx", never)
    assert list(tmp_path.iterdir()) == []
