"""Operators into which ONNX Runtime fuses others (domain com.microsoft), as the nodes that they
stand for: what its optimiser, optimum and its static and weight-only quantisers write.

Only what computes the same is taken apart. A node in a form that is not listed here, such as
attention with past keys, stays as it is, and the import refuses it by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx

from privet.compiler.graph.constants import array_of
from privet.compiler.graph.onnx_model import DEFAULT_DOMAINS, FUSED_DOMAIN, opset_of
from privet.compiler.graph.operations import Array
from privet.compiler.graph.rewriting import NodeExpansion, attributes, expand_nodes

ACTIVATIONS = ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Clip")
"""What a convolution or a product may be fused with."""
BLOCKED = -10000.0
"""What the fused attention adds to scores that its mask leaves out, unless it says otherwise."""


SOFTMAX_OF_ONE_AXIS = 13
"""The first version of the standard in which a softmax is over one axis."""
_UNFIT = (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError)
"""What is raised of a node that lacks something, or has something of another type: it stays, and is
refused."""


def expand_fused(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with fused operators taken apart; itself if it has none."""
    if not any(node.domain == FUSED_DOMAIN for node in model.graph.node):
        return model
    context = _ModelContext(model)

    def is_known(node: onnx.NodeProto) -> bool:
        try:
            return (
                node.domain == FUSED_DOMAIN and node.op_type in PARTS and _is_known(node, context)
            )
        except _UNFIT:
            return False

    def expand_node(node: onnx.NodeProto, graph: onnx.GraphProto) -> list[onnx.NodeProto]:
        try:
            return _Fused(node, graph, context).nodes()
        except _UNFIT:
            return [node]

    return expand_nodes(model, is_known, expand_node)


class _ModelContext:
    """What a node has to know of its model: its version of the standard; how many axes inputs and
    constants, and casts of them, have; which tensors are constants, which are read, and all names.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        graph = model.graph
        self.opset = opset_of(model)
        self._ranks = {entry.name: len(entry.type.tensor_type.shape.dim) for entry in graph.input}
        self._ranks |= {tensor.name: len(tensor.dims) for tensor in graph.initializer}
        self.constants = {tensor.name for tensor in graph.initializer}
        self.read_names = {name for node in graph.node for name in node.input}
        self.names = self.read_names | set(self._ranks) | {output.name for output in graph.output}
        for node in graph.node:
            self.names.update(node.output)
            moves = node.domain in DEFAULT_DOMAINS and node.op_type in ("Cast", "Identity")
            if moves and node.input and node.output and node.input[0] in self._ranks:
                self._ranks[node.output[0]] = self._ranks[node.input[0]]

    def rank(self, name: str) -> int | None:
        return self._ranks.get(name)


def _is_known(node: onnx.NodeProto, context: _ModelContext) -> bool:
    inputs, attrs = _Inputs(node.input), attributes(node)
    op = node.op_type
    if op in ("FusedConv", "FusedGemm"):
        return attrs.get("activation", b"").decode() in ACTIVATIONS
    if op == "EmbedLayerNormalization":
        # The place that the mask ends at is for forms of attention which are not listed.
        reads_mask_index = bool(context.read_names.intersection(node.output[1:2]))
        return not (reads_mask_index or attrs.get("mask_index_type", 0) or inputs[7])
    if op.endswith("LayerNormalization"):
        return not any(node.output[1:3])
    if op in ("Attention", "MultiHeadAttention"):
        return _is_plain_attention(node, inputs, attrs, context)
    if op == "RotaryEmbedding":
        return attrs.get("scale", 1.0) == 1.0 and not attrs.get("is_packed_batching", 0)
    if op == "DynamicQuantizeLSTM":
        return all(inputs[place] in context.constants for place in (1, 2, 8, 9, 10, 11))
    if op == "MatMulNBits":
        are_constant = (name in context.constants for name in inputs.rest(1) if name)
        return all(are_constant) and attrs.get("bits", 4) in (2, 4, 8) and not inputs[4]
    if op == "QLinearSoftmax":
        # Up to version 12 of the standard it is taken over all axes from `axis` on.
        is_flat = int(attrs["opset"]) < SOFTMAX_OF_ONE_AXIS
        takes_same_axes = is_flat == (context.opset < SOFTMAX_OF_ONE_AXIS)
        return (takes_same_axes or attrs.get("axis", -1) == -1) and bool(inputs[4])
    if op in _RESULT_SCALES:
        # Without the point the type of the result is another one's.
        scale, zero_point = _RESULT_SCALES[op]
        has_type = bool(inputs[zero_point]) or (op == "QGemm" and not inputs[scale])
        return has_type and not attrs.get("channels_last", 0)
    return True


_RESULT_SCALES = {"QLinearConcat": (0, 1), "QGemm": (7, 8)} | dict.fromkeys(
    ("QLinearAdd", "QLinearMul"), (6, 7)
)
_RESULT_SCALES |= dict.fromkeys(
    ("QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearSigmoid"), (3, 4)
)
"""By operator, which inputs are the scale and the zero point of its result."""


def _is_plain_attention(
    node: onnx.NodeProto, inputs: _Inputs, attrs: dict[str, Any], context: _ModelContext
) -> bool:
    """Whether it keeps nothing, and its mask, if it has one, is a zero or one for each key."""
    is_self_attention = node.op_type == "Attention"
    mask = inputs[3 if is_self_attention else 4]
    if any(node.output[1:]) or any(inputs.rest(6)) or attrs.get("do_rotary", 0):
        return False
    if mask and context.rank(mask) != 2:
        return False
    # With more keys than queries ONNX Runtime leaves out others than the standard does.
    if attrs.get("unidirectional", 0) and (mask or inputs[5] or not is_self_attention):
        return False
    if is_self_attention:
        sizes = attrs.get("qkv_hidden_sizes") or [0]
        return len(set(sizes)) == 1 and inputs[1] in context.constants and not inputs[4]
    bias = inputs[3]
    is_packed = not inputs[1] or not inputs[2]
    return not is_packed and (bias in context.constants if bias else not mask)


class _Inputs:
    """A node's inputs: "" where one is left out."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def __getitem__(self, index: int) -> str:
        return self._names[index] if index < len(self._names) else ""

    def rest(self, first: int) -> Sequence[str]:
        return self._names[first:]


class _Fused(NodeExpansion):
    """The nodes that one fused operator stands for."""

    def __init__(
        self, node: onnx.NodeProto, graph: onnx.GraphProto, context: _ModelContext
    ) -> None:
        super().__init__(node, graph)
        self.context, self.used_names = context, context.names
        self.inputs = _Inputs(node.input)
        # ONNX Runtime gives several nodes one name.
        self.name = self.result = node.output[0]

    def nodes(self) -> list[onnx.NodeProto]:
        PARTS[self.node.op_type](self)
        return self.new_nodes

    def tensor(self, name: str) -> onnx.TensorProto:
        """A constant of the model."""
        constant: onnx.TensorProto = next(
            tensor for tensor in self.graph.initializer if tensor.name == name
        )
        return constant

    def weights(self, index: int) -> Array:
        return self.values(self.inputs[index])

    def values(self, name: str) -> Array:
        return array_of(self.tensor(name))

    def float_constant(self, suffix: str, value: float) -> str:
        return self.constant(suffix, np.array(value, np.float32))

    def copied_attrs(self, *names: str) -> dict[str, Any]:
        """Attributes as they are."""
        return {name: self.attrs[name] for name in names if name in self.attrs}

    # Activations.

    def add_activation(self, x: str, params: dict[str, float]) -> None:
        kind = self.attrs["activation"].decode()
        if kind == "Clip":
            bounds = [
                self.float_constant(name, params[key]) for name, key in (("min", "a"), ("max", "b"))
            ]
            self.add(kind, [x, *bounds], self.result)
        else:
            # Others take none of them.
            names = {"alpha": "a", "beta": "b"} if kind in ("LeakyRelu", "HardSigmoid") else {}
            attrs = {name: params[key] for name, key in names.items() if key in params}
            self.add(kind, [x], self.result, **attrs)

    def gelu(self) -> None:
        """`Gelu`, `BiasGelu`, and by the hyperbolic tangent `FastGelu`."""
        x = self.inputs[0]
        if self.inputs[1]:
            x = self.add("Add", [x, self.inputs[1]])
        approximation = "tanh" if self.node.op_type == "FastGelu" else "none"
        self.add("Gelu", [x], self.result, approximate=approximation)

    def quick_gelu(self) -> None:
        x = self.inputs[0]
        alpha = self.float_constant("alpha", self.attrs.get("alpha", 1.702))
        self.add("Mul", [x, self.add("Sigmoid", [self.add("Mul", [x, alpha])])], self.result)

    # Convolutions and products.

    def conv(self) -> None:
        names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
        x = self.add(
            "Conv", [name for name in self.node.input[:3] if name], **self.copied_attrs(*names)
        )
        if self.inputs[3]:
            x = self.add("Add", [x, self.inputs[3]])
        params = self.attrs.get("activation_params", ())
        self.add_activation(x, dict(zip("ab", params, strict=False)))

    def gemm(self) -> None:
        names = ("alpha", "beta", "transA", "transB")
        x = self.add(
            "Gemm", [name for name in self.node.input if name], **self.copied_attrs(*names)
        )
        params = (("a", "activation_alpha"), ("b", "activation_beta"))
        self.add_activation(
            x, {key: self.attrs[name] for key, name in params if name in self.attrs}
        )

    def matmul(self) -> None:
        """A product of which each side may be transposed, and which may be scaled."""
        factors = []
        for name, key in zip(self.node.input, "AB", strict=True):
            is_transposed = bool(self.attrs.get(f"trans{key}", 0))
            equation = _TRANSPOSE_EQUATIONS[
                bool(self.attrs.get(f"transBatch{key}", 0)), is_transposed
            ]
            factors.append(self.add("Einsum", [name], equation=equation) if equation else name)
        alpha = self.attrs.get("alpha", 1.0)
        if alpha == 1.0:
            self.add("MatMul", factors, self.result)
        else:
            product = self.add("MatMul", factors)
            self.add("Mul", [product, self.float_constant("alpha", alpha)], self.result)

    def matmul_of_few_bits(self) -> None:
        """A product with weights of a few bits, packed by blocks that have a scale each."""
        bits, block_size = self.attrs.get("bits", 4), self.attrs["block_size"]
        columns, inner = self.attrs["N"], self.attrs["K"]
        blocks = -(-inner // block_size)
        packed = self.weights(1)
        if packed.dtype != np.uint8:
            raise TypeError("weights of a few bits are packed into bytes")
        levels = _unpack(packed.reshape(columns, blocks, -1), bits)
        scales = self.weights(2).astype(np.float32).reshape(columns, blocks, 1)
        zero_points: Array = np.array(1 << (bits - 1), np.float32)
        if self.inputs[3]:
            packed_points = self.weights(3)
            if packed_points.dtype == np.uint8:
                packed_points = _unpack(packed_points.reshape(columns, -1), bits)[:, :blocks]
            zero_points = packed_points.astype(np.float32).reshape(columns, blocks, 1)
        weights = ((levels - zero_points) * scales).reshape(columns, -1)[:, :inner]
        weight_name = self.constant("weights", np.ascontiguousarray(weights.T, np.float32))
        self.add_biased("MatMul", [self.inputs[0], weight_name], self.inputs[5])

    def add_biased(self, op: str, inputs: Sequence[str], bias: str) -> None:
        """The result: a node's, and a bias added if there is one."""
        if bias:
            self.add("Add", [self.add(op, inputs), bias], self.result)
        else:
            self.add(op, inputs, self.result)

    # Normalisation.

    def add_norm(self, x: str, scale: str, bias: str, output: str) -> None:
        epsilon = self.attrs.get("epsilon", 1e-12)
        factors = [scale, bias] if bias else [scale]
        kind = "RMS" if "Simplified" in self.node.op_type else "Layer"
        attrs = {"axis": self.attrs.get("axis", -1), "epsilon": epsilon}
        self.add(f"{kind}Normalization", [x, *factors], output, **attrs)

    def norm(self) -> None:
        self.attrs.setdefault("epsilon", 1e-5)
        self.add_norm(self.inputs[0], self.inputs[1], self.inputs[2], self.result)

    def skip_norm(self) -> None:
        """A norm of the sum of two tensors and perhaps a bias; the sum may be read as well."""
        has_norm_bias = "Simplified" not in self.node.op_type
        norm_bias, bias = (
            (self.inputs[3], self.inputs[4]) if has_norm_bias else ("", self.inputs[3])
        )
        terms = [name for name in (self.inputs[0], bias, self.inputs[1]) if name]
        total = terms[0]
        for place, term in enumerate(terms[1:], 2):
            sum_output = self.node.output[3] if len(self.node.output) > 3 else ""
            total = self.add("Add", [total, term], sum_output if place == len(terms) else "")
        self.add_norm(total, self.inputs[2], norm_bias, self.result)

    def embed_norm(self) -> None:
        """A norm of the sum of what ids choose of tables: words, places and perhaps segments."""
        ids, segments, word_table, position_table, segment_table = self.node.input[:5]
        x = self.add("Gather", [word_table, ids])
        if self.inputs[8]:
            x = self.add("Add", [x, self.add("Gather", [position_table, self.inputs[8]])])
        else:
            length = self.add("Gather", [self.add("Shape", [ids]), self.int_constant("one", 1)])
            positions = self.add(
                "Range", [self.int_constant("from", 0), length, self.int_constant("step", 1)]
            )
            x = self.add("Add", [x, self.add("Gather", [position_table, positions])])
        sum_output = self.node.output[2] if len(self.node.output) > 2 else ""
        if segments and segment_table:
            x = self.add("Add", [x, self.add("Gather", [segment_table, segments])], sum_output)
        elif sum_output:
            x = self.add("Identity", [x], sum_output)
        self.add_norm(x, self.inputs[5], self.inputs[6], self.result)

    def int_constant(self, suffix: str, value: int | Sequence[int]) -> str:
        return self.constant(suffix, np.array(value, np.int64))

    # Attention.

    def attention(self) -> None:
        """Of one tensor, whose queries, keys and values are columns of one product."""
        hidden = self.tensor(self.inputs[1]).dims[1] // 3
        x = self.add("MatMul", self.node.input[:2])
        if self.inputs[2]:
            x = self.add("Add", [x, self.inputs[2]])
        heads = self.attrs["num_heads"]
        shape = self.int_constant("shape", [0, 0, 3, heads, hidden // heads])
        transposed = self.add("Transpose", [self.add("Reshape", [x, shape])], perm=[2, 0, 3, 1, 4])
        qkv = [
            self.add("Gather", [transposed, self.int_constant(f"part{i}", i)], axis=0)
            for i in range(3)
        ]
        self.add_attention(qkv, hidden // heads, self.inputs[3], self.inputs[5])

    def multi_head(self) -> None:
        """Of three tensors, whose heads lie side by side."""
        heads = self.attrs["num_heads"]
        if not self.inputs[3]:
            mask = [self.inputs[5]] if self.inputs[5] else []
            counts = {"q_num_heads": heads, "kv_num_heads": heads}
            scale = {"scale": float(self.attrs["scale"])} if self.attrs.get("scale") else {}
            self.add("Attention", [*self.node.input[:3], *mask], self.result, **counts, **scale)
            return
        biases = np.split(self.weights(3), 3)
        hidden = len(biases[0])
        biased = [
            self.add("Add", [x, self.constant(f"bias{place}", bias)])
            for place, (x, bias) in enumerate(zip(self.node.input[:3], biases, strict=True))
        ]
        shape = self.int_constant("shape", [0, 0, heads, hidden // heads])
        qkv = [
            self.add("Transpose", [self.add("Reshape", [x, shape])], perm=[0, 2, 1, 3])
            for x in biased
        ]
        self.add_attention(qkv, hidden // heads, self.inputs[4], self.inputs[5])

    def add_attention(self, qkv: Sequence[str], head_size: int, mask: str, bias: str) -> None:
        """Heads of queries, keys and values, and what comes of them, side by side again."""
        queries, keys, values = qkv
        scale = float(self.attrs.get("scale") or 1.0 / math.sqrt(head_size))
        if not mask and not bias:
            causal = self.attrs.get("unidirectional", 0)
            heads = self.add("Attention", qkv, scale=scale, is_causal=causal)
        else:
            transposed_keys = self.add("Transpose", [keys], perm=[0, 1, 3, 2])
            scores = self.add("MatMul", [queries, transposed_keys])
            scores = self.add("Mul", [scores, self.float_constant("scale", scale)])
            if mask:
                filter_value = self.attrs.get("mask_filter_value", BLOCKED)
                if mask in self.context.constants:
                    mask = self.constant("kept", (self.values(mask) > 0).astype(np.int32))
                shape = self.int_constant("row", [0, 1, 1, -1])
                visible = self.add("Cast", [self.add("Reshape", [mask, shape])], to=1)
                masked = self.add("Sub", [self.float_constant("one", 1.0), visible])
                mask_bias = self.add("Mul", [masked, self.float_constant("blocked", filter_value)])
                scores = self.add("Add", [scores, mask_bias])
            if bias:
                scores = self.add("Add", [scores, bias])
            weights = self.add("Softmax", [scores], axis=-1)
            heads = self.add("MatMul", [weights, values])
        transposed = self.add("Transpose", [heads], perm=[0, 2, 1, 3])
        self.add("Reshape", [transposed, self.int_constant("flat", [0, 0, -1])], self.result)

    # Quantised operators: integers and their steps.

    def add_dequantize(self, index: int, axis: int = 1) -> str:
        """What the integers mean that the operator reads there, before their scale and point;
        several scales are those along an axis."""
        tensors = [name for name in self.node.input[index : index + 3] if name]
        return self.add("DequantizeLinear", tensors, axis=axis)

    def add_quantize(self, x: str, index: int) -> None:
        """The result: integers by the scale and the point that the operator reads there."""
        steps = [name for name in self.node.input[index : index + 2] if name]
        self.add("QuantizeLinear", [x, *steps], self.result)

    def qlinear_binary(self) -> None:
        op = self.node.op_type.removeprefix("QLinear")
        self.add_quantize(self.add(op, [self.add_dequantize(0), self.add_dequantize(3)]), 6)

    def qlinear_unary(self) -> None:
        op = self.node.op_type.removeprefix("QLinear")
        names = ("alpha", "auto_pad", "ceil_mode", "count_include_pad", "kernel_shape")
        attrs = self.copied_attrs(*names, "pads", "strides")
        if op == "Softmax":
            attrs["axis"] = self.attrs.get("axis", -1)
        self.add_quantize(self.add(op, [self.add_dequantize(0)], **attrs), 3)

    def qlinear_concat(self) -> None:
        parts = [self.add_dequantize(first) for first in range(2, len(self.node.input), 3)]
        self.add_quantize(self.add("Concat", parts, axis=self.attrs["axis"]), 0)

    def quantised_gemm(self) -> None:
        """A product of integers, to which a bias at the product of their steps is added."""
        attrs = self.copied_attrs("alpha", "transA", "transB")
        factors = [
            self.add_dequantize(0),
            self.add_dequantize(3, axis=0 if self.attrs.get("transB", 0) else 1),
        ]
        if self.inputs[6]:
            steps = self.add("Mul", [self.inputs[1], self.inputs[4]])
            if "alpha" in attrs:
                steps = self.add("Mul", [steps, self.float_constant("alpha", attrs["alpha"])])
            factors.append(self.add("Mul", [self.add("Cast", [self.inputs[6]], to=1), steps]))
        if self.inputs[7]:
            self.add_quantize(self.add("Gemm", factors, **attrs), 7)
        else:
            self.add("Gemm", factors, self.result, **attrs)

    def dynamic_matmul(self) -> None:
        """A product with integer weights, for which the other side is quantised as it comes: a
        step of 256 of its range, which is not done here."""
        a, b, scale = self.node.input[:3]
        zero_points = [self.inputs[3]] if self.inputs[3] else []
        factor = self.add("DequantizeLinear", [b, scale, *zero_points])
        self.add_biased("MatMul", [a, factor], self.inputs[4])

    def matmul_to_float(self) -> None:
        """A product of integers, and what it means."""
        a, b, *scales = self.node.input[:4]
        zero_points = [self.inputs[4], self.inputs[5]]
        while zero_points and not zero_points[-1]:
            zero_points.pop()
        product = self.add("Cast", [self.add("MatMulInteger", [a, b, *zero_points])], to=1)
        self.add_biased("Mul", [product, self.add("Mul", scales)], self.inputs[6])

    def dynamic_lstm(self) -> None:
        """An LSTM with integer weights, whose rows and columns are exchanged."""
        weights = []
        for weight_index, scale_index in ((1, 8), (2, 10)):
            levels, scale, zero_point = (
                self.weights(index) for index in (weight_index, scale_index, scale_index + 1)
            )
            if levels.ndim != 3:
                raise ValueError("weights of an LSTM have three axes")
            scale_and_zero_point = [
                array.reshape(array.shape[0], 1, -1)
                for array in (scale, zero_point.astype(np.float32))
            ]
            dequantised = (
                levels.astype(np.float32) - scale_and_zero_point[1]
            ) * scale_and_zero_point[0]
            transposed = np.ascontiguousarray(dequantised.transpose(0, 2, 1), np.float32)
            weights.append(self.constant(f"weights{weight_index}", transposed))
        optional_inputs = [self.inputs[weight_index] for weight_index in range(3, 8)]
        inputs = [self.inputs[0], *weights, *optional_inputs]
        while not inputs[-1]:
            inputs.pop()
        lstm = onnx.helper.make_node("LSTM", inputs, self.node.output, self.name)
        lstm.attribute.extend(self.node.attribute)
        self.new_nodes.append(lstm)

    def same_operator(self) -> None:
        """An operator that the standard has by the same name."""
        self.add(self.node.op_type, self.node.input, self.result, **self.copied_attrs("axis"))

    def rotary(self) -> None:
        x, positions, cos, sin = self.node.input
        attrs = self.copied_attrs("interleaved", "num_heads", "rotary_embedding_dim")
        self.add("RotaryEmbedding", [x, cos, sin, positions], self.result, **attrs)


def _unpack(bytes_: Array, bits: int) -> Array:
    """Numbers of a few bits each, lowest first, from the bytes of the last axis."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (bytes_[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return numbers.reshape(*bytes_.shape[:-1], -1).astype(np.float32)


_TRANSPOSE_EQUATIONS = {
    (False, False): "",
    (False, True): "...ij->...ji",
    (True, False): "i...j->...ij",
    (True, True): "i...j->...ji",
}
"""By whether the first axis comes last but one, and whether the last two change places then, the
equation that does it."""

PARTS: dict[str, Callable[[_Fused], None]] = {
    "Gelu": _Fused.gelu,
    "BiasGelu": _Fused.gelu,
    "FastGelu": _Fused.gelu,
    "QuickGelu": _Fused.quick_gelu,
    "FusedConv": _Fused.conv,
    "FusedGemm": _Fused.gemm,
    "FusedMatMul": _Fused.matmul,
    "TransposeMatMul": _Fused.matmul,
    "MatMulNBits": _Fused.matmul_of_few_bits,
    "LayerNormalization": _Fused.norm,
    "SimplifiedLayerNormalization": _Fused.norm,
    "SkipLayerNormalization": _Fused.skip_norm,
    "SkipSimplifiedLayerNormalization": _Fused.skip_norm,
    "EmbedLayerNormalization": _Fused.embed_norm,
    "Attention": _Fused.attention,
    "MultiHeadAttention": _Fused.multi_head,
    "RotaryEmbedding": _Fused.rotary,
    "QLinearAdd": _Fused.qlinear_binary,
    "QLinearMul": _Fused.qlinear_binary,
    "QLinearSigmoid": _Fused.qlinear_unary,
    "QLinearLeakyRelu": _Fused.qlinear_unary,
    "QLinearSoftmax": _Fused.qlinear_unary,
    "QLinearAveragePool": _Fused.qlinear_unary,
    "QLinearGlobalAveragePool": _Fused.qlinear_unary,
    "QLinearConcat": _Fused.qlinear_concat,
    "QGemm": _Fused.quantised_gemm,
    "DynamicQuantizeMatMul": _Fused.dynamic_matmul,
    "MatMulIntegerToFloat": _Fused.matmul_to_float,
    "DynamicQuantizeLSTM": _Fused.dynamic_lstm,
    "DequantizeLinear": _Fused.same_operator,
    "QuantizeLinear": _Fused.same_operator,
}
"""By operator, what makes its nodes."""
