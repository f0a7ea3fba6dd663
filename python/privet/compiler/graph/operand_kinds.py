"""What operators may read of private tensors that stand for more than their numbers, and what their
results stand for then: rows of zeros with a one, integers, quantised or masked elements, numbers
that a cast cuts off, and what the client computes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from privet.compiler.graph.estimators import ROUNDED
from privet.compiler.graph.graph import ClientStep
from privet.compiler.graph.heads import AtClient
from privet.compiler.graph.input_shapes import WHOLE
from privet.compiler.graph.site import Operand, Private, Quantized, TensorList, Unsupported

THROUGH_CLIENT_STEPS = ("Identity", "Dropout", "Cast", "ArgMax")
"""Operators that may read a result on which the client still has a step to do."""
THROUGH_NEG_INF = ("Add", "Where", "Softmax", "Identity", "Cast", "Dropout")
"""Operators that may read elements that stand for minus infinity."""
READS_ROWS = ("Gather", "ArrayFeatureExtractor", "GatherElements")
"""Operators that may read places as rows of zeros with a one, besides those that move them."""
READS_INTEGER_CAST = ("ArrayFeatureExtractor", "Gather", "OneHot")
KEEPS_INTEGER_CAST = (
    *("ArrayFeatureExtractor", "Cast", "Flatten", "Gather", "Identity", "Reshape", "Squeeze"),
    "Unsqueeze",
)
"""Operators that may read numbers as the places to which a cast cuts them off, or move those."""
READS_QUANTIZED = (
    *("DequantizeLinear", "MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv"),
)
KEEPS_QUANTIZED = (
    *("Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Identity", "MaxPool"),
    *("Concat", "Slice", "Split", "Gather", "Expand", "Tile", "DepthToSpace", "SpaceToDepth"),
)
"""Operators that may read quantised integers: their result has the same steps as what they read."""
KEEPS_INTEGERS = (
    *("Abs", "Add", "Clip", "Concat", "CumSum", "Einsum", "MatMul", "Max", "Min", "Mul", "Neg"),
    *("ReduceL1", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
    *("Scatter", "ScatterElements", "ScatterND", "Sign", "Sub", "Sum", "TopK", "Trilu", "Where"),
)
"""Operators whose result is of the type of their operands, however it is computed."""

INTEGER_CAST = ("a cast rounds it to integers", "Remove the cast, or do it on the client")
"""Why and what instead, of numbers that a cast cuts off."""


def refuse_client_steps(operands: Sequence[Operand | TensorList | AtClient | None]) -> None:
    """What the client computes in the clear after the private part."""
    for operand in operands:
        client = operand.client if isinstance(operand, Private) else operand
        if isinstance(client, AtClient | ClientStep):
            raise Unsupported(
                f"it reads the result of {client.op}, which the client computes in the "
                "clear after the private part",
                "End the model at that result, or do this step on the client",
            )


def are_integers(node: onnx.NodeProto, operands: Sequence[Operand | TensorList | None]) -> bool:
    """Whether results are of whole numbers in the model, too, as all is that is read."""
    numbers = operands[1:] if node.op_type == "Where" else operands
    return node.op_type in KEEPS_INTEGERS and all(map(_is_integer, numbers))


def _is_integer(x: Operand | TensorList | None) -> bool:
    """Whether an operand, if there is one, is of whole numbers."""
    if isinstance(x, Private):
        return x.integer
    return x is None or (isinstance(x, np.ndarray) and x.dtype.kind in "iu")


def refuse_integers(operands: Sequence[Operand | TensorList | AtClient | None]) -> None:
    """Of which a mean is taken: it need not be whole."""
    if any(isinstance(x, Private) and x.integer for x in operands):
        raise Unsupported("it averages integers", "Cast to float first")


def refuse_neg_inf(operands: Sequence[Operand | TensorList | AtClient | None]) -> None:
    """Masked elements."""
    if any(isinstance(x, Private) and x.neg_inf is not None for x in operands):
        raise Unsupported(
            "it reads a masked tensor, whose elements stand for minus infinity",
            "Let a Softmax read it, and put what is between them before the mask",
        )


def is_cast_to_integer(
    node: onnx.NodeProto, operands: Sequence[Operand | TensorList | None]
) -> bool:
    """Whether a result is of numbers that a cast cuts off, as what is read is."""
    flags = [isinstance(x, Private) and x.cast_to_integer for x in operands]
    if not any(flags):
        return False
    keeps_integers = node.op_type != "Cast" or node.attribute[0].i in WHOLE - {
        onnx.TensorProto.BOOL
    }
    if flags[0] and sum(flags) == 1 and node.op_type in KEEPS_INTEGER_CAST and keeps_integers:
        return True
    if sum(flags) > 1 or node.op_type not in READS_INTEGER_CAST:
        raise Unsupported(ROUNDED, INTEGER_CAST[1])
    return False


def shared_quantization(
    op: str, operands: Sequence[Operand | TensorList | None]
) -> Quantized | None:
    """The steps of what the operator reads, where its result has the same."""
    quantizations = {x.quantized for x in operands if isinstance(x, Private)}
    if quantizations <= {None} or op in READS_QUANTIZED:
        return None
    if len(quantizations) > 1 or op not in KEEPS_QUANTIZED:
        raise Unsupported(
            "it reads quantised integers",
            "Put a DequantizeLinear before it: the QDQ format has one",
        )
    return next(iter(quantizations))


def read_privately(nodes: Sequence[onnx.NodeProto]) -> set[int]:
    """Nodes whose results something reads that a client's step on them does not serve."""
    private: set[str] = set()
    revealing = set()
    for node in reversed(nodes):
        if private.intersection(node.output):
            revealing.add(id(node))
        # The place of the largest element is the same before the step, whoever reads it.
        is_through = node.op_type in THROUGH_CLIENT_STEPS and id(node) not in revealing
        passes = node.op_type == "ArgMax" or is_through
        if not passes:
            private.update(node.input)
    return revealing
