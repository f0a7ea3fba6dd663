"""Computing nodes whose inputs are all constants, so that exporters' shape arithmetic vanishes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from privet.compiler.graph.operations import Array

RANDOM = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)


def foldable(node: onnx.NodeProto) -> bool:
    """Whether the node gives the same result every time and holds no graph of its own."""
    graphs = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
    return node.op_type not in RANDOM and all(a.type not in graphs for a in node.attribute)


def fold(
    node: onnx.NodeProto, inputs: Sequence[Array | None], opsets: Sequence[onnx.OperatorSetIdProto]
) -> list[Array]:
    """The node's outputs.

    Raises whatever the reference evaluator raises on an operator it does not know, and `TypeError`
    on a result that is not a tensor.
    """
    feeds = {
        name: array
        for name, array in zip(node.input, inputs, strict=True)
        if name and array is not None
    }
    undefined = onnx.TensorProto.UNDEFINED
    graph = onnx.helper.make_graph(
        [node],
        "constant",
        [onnx.helper.make_tensor_value_info(name, undefined, None) for name in feeds],
        [onnx.helper.make_tensor_value_info(name, undefined, None) for name in node.output if name],
    )
    model = onnx.helper.make_model(graph, opset_imports=list(opsets))
    results = ReferenceEvaluator(model).run(None, feeds)
    for result in results:
        if not isinstance(result, np.ndarray | np.generic):
            raise TypeError(f"{node.op_type} gives no tensor")
    return [np.asarray(result) for result in results]
