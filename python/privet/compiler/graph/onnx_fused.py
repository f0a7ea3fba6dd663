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
from privet.compiler.graph.rewriting import Parts, attributes, expanded

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
    around = _Surroundings(model)

    def is_known(node: onnx.NodeProto) -> bool:
        try:
            return node.domain == FUSED_DOMAIN and node.op_type in PARTS and _is_known(node, around)
        except _UNFIT:
            return False

    def parts(node: onnx.NodeProto, graph: onnx.GraphProto) -> list[onnx.NodeProto]:
        try:
            return _Fused(node, graph, around).nodes()
        except _UNFIT:
            return [node]

    return expanded(model, is_known, parts)


class _Surroundings:
    """What a node has to know of its model: its version of the standard; how many axes inputs and
    constants, and casts of them, have; which tensors are constants, which are read, and all names.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        graph = model.graph
        self.opset = opset_of(model)
        self._ranks = {entry.name: len(entry.type.tensor_type.shape.dim) for entry in graph.input}
        self._ranks |= {tensor.name: len(tensor.dims) for tensor in graph.initializer}
        self.constants = {tensor.name for tensor in graph.initializer}
        self.read = {name for node in graph.node for name in node.input}
        self.names = self.read | set(self._ranks) | {output.name for output in graph.output}
        for node in graph.node:
            self.names.update(node.output)
            moves = node.domain in DEFAULT_DOMAINS and node.op_type in ("Cast", "Identity")
            if moves and node.input and node.output and node.input[0] in self._ranks:
                self._ranks[node.output[0]] = self._ranks[node.input[0]]

    def rank(self, name: str) -> int | None:
        return self._ranks.get(name)


def _is_known(node: onnx.NodeProto, around: _Surroundings) -> bool:
    inputs, attrs = _Inputs(node.input), attributes(node)
    op = node.op_type
    if op in ("FusedConv", "FusedGemm"):
        return attrs.get("activation", b"").decode() in ACTIVATIONS
    if op == "EmbedLayerNormalization":
        # The place that the mask ends at is for forms of attention which are not listed.
        is_measured = bool(around.read.intersection(node.output[1:2]))
        return not (is_measured or attrs.get("mask_index_type", 0) or inputs[7])
    if op.endswith("LayerNormalization"):
        return not any(node.output[1:3])
    if op in ("Attention", "MultiHeadAttention"):
        return _is_plain_attention(node, inputs, attrs, around)
    if op == "RotaryEmbedding":
        return attrs.get("scale", 1.0) == 1.0 and not attrs.get("is_packed_batching", 0)
    if op == "DynamicQuantizeLSTM":
        return all(inputs[place] in around.constants for place in (1, 2, 8, 9, 10, 11))
    if op == "MatMulNBits":
        fixed = (name in around.constants for name in inputs.rest(1) if name)
        return all(fixed) and attrs.get("bits", 4) in (2, 4, 8) and not inputs[4]
    if op == "QLinearSoftmax":
        # Up to version 12 of the standard it is taken over all axes from `axis` on.
        is_flat = int(attrs["opset"]) < SOFTMAX_OF_ONE_AXIS
        same = is_flat == (around.opset < SOFTMAX_OF_ONE_AXIS)
        return (same or attrs.get("axis", -1) == -1) and bool(inputs[4])
    if op in _POINTS:
        # Without the point the type of the result is another one's.
        scale, point = _POINTS[op]
        has_type = bool(inputs[point]) or (op == "QGemm" and not inputs[scale])
        return has_type and not attrs.get("channels_last", 0)
    return True


_POINTS = {"QLinearConcat": (0, 1), "QGemm": (7, 8)} | dict.fromkeys(
    ("QLinearAdd", "QLinearMul"), (6, 7)
)
_POINTS |= dict.fromkeys(
    ("QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearSigmoid"), (3, 4)
)
"""By operator, which inputs are the scale and the zero point of its result."""


def _is_plain_attention(
    node: onnx.NodeProto, inputs: _Inputs, attrs: dict[str, Any], around: _Surroundings
) -> bool:
    """Whether it keeps nothing, and its mask, if it has one, is a zero or one for each key."""
    is_of_one = node.op_type == "Attention"
    mask = inputs[3 if is_of_one else 4]
    if any(node.output[1:]) or any(inputs.rest(6)) or attrs.get("do_rotary", 0):
        return False
    if mask and around.rank(mask) != 2:
        return False
    # With more keys than queries ONNX Runtime leaves out others than the standard does.
    if attrs.get("unidirectional", 0) and (mask or inputs[5] or not is_of_one):
        return False
    if is_of_one:
        sizes = attrs.get("qkv_hidden_sizes") or [0]
        return len(set(sizes)) == 1 and inputs[1] in around.constants and not inputs[4]
    bias = inputs[3]
    is_packed = not inputs[1] or not inputs[2]
    return not is_packed and (bias in around.constants if bias else not mask)


class _Inputs:
    """A node's inputs: "" where one is left out."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def __getitem__(self, index: int) -> str:
        return self._names[index] if index < len(self._names) else ""

    def rest(self, first: int) -> Sequence[str]:
        return self._names[first:]


class _Fused(Parts):
    """The nodes that one fused operator stands for."""

    def __init__(self, node: onnx.NodeProto, graph: onnx.GraphProto, around: _Surroundings) -> None:
        super().__init__(node, graph)
        self.around, self.taken = around, around.names
        self.inputs = _Inputs(node.input)
        # ONNX Runtime gives several nodes one name.
        self.name = self.result = node.output[0]

    def nodes(self) -> list[onnx.NodeProto]:
        PARTS[self.node.op_type](self)
        return self.emitted

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

    def number(self, what: str, value: float) -> str:
        return self.constant(what, np.array(value, np.float32))

    def kept(self, *names: str) -> dict[str, Any]:
        """Attributes as they are."""
        return {name: self.given[name] for name in names if name in self.given}

    # Activations.

    def activated(self, x: str, params: dict[str, float]) -> None:
        kind = self.given["activation"].decode()
        if kind == "Clip":
            bounds = [self.number(name, params[key]) for name, key in (("min", "a"), ("max", "b"))]
            self.add(kind, [x, *bounds], self.result)
        else:
            # Others take none of them.
            names = {"alpha": "a", "beta": "b"} if kind in ("LeakyRelu", "HardSigmoid") else {}
            more = {name: params[key] for name, key in names.items() if key in params}
            self.add(kind, [x], self.result, **more)

    def gelu(self) -> None:
        """`Gelu`, `BiasGelu`, and by the hyperbolic tangent `FastGelu`."""
        x = self.inputs[0]
        if self.inputs[1]:
            x = self.add("Add", [x, self.inputs[1]])
        form = "tanh" if self.node.op_type == "FastGelu" else "none"
        self.add("Gelu", [x], self.result, approximate=form)

    def quick_gelu(self) -> None:
        x = self.inputs[0]
        alpha = self.number("alpha", self.given.get("alpha", 1.702))
        self.add("Mul", [x, self.add("Sigmoid", [self.add("Mul", [x, alpha])])], self.result)

    # Convolutions and products.

    def conv(self) -> None:
        names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
        x = self.add("Conv", [name for name in self.node.input[:3] if name], **self.kept(*names))
        if self.inputs[3]:
            x = self.add("Add", [x, self.inputs[3]])
        params = self.given.get("activation_params", ())
        self.activated(x, dict(zip("ab", params, strict=False)))

    def gemm(self) -> None:
        names = ("alpha", "beta", "transA", "transB")
        x = self.add("Gemm", [name for name in self.node.input if name], **self.kept(*names))
        params = (("a", "activation_alpha"), ("b", "activation_beta"))
        self.activated(x, {key: self.given[name] for key, name in params if name in self.given})

    def matmul(self) -> None:
        """A product of which each side may be transposed, and which may be scaled."""
        sides = []
        for name, key in zip(self.node.input, "AB", strict=True):
            turned = bool(self.given.get(f"trans{key}", 0))
            form = _TURNED[bool(self.given.get(f"transBatch{key}", 0)), turned]
            sides.append(self.add("Einsum", [name], equation=form) if form else name)
        alpha = self.given.get("alpha", 1.0)
        if alpha == 1.0:
            self.add("MatMul", sides, self.result)
        else:
            product = self.add("MatMul", sides)
            self.add("Mul", [product, self.number("alpha", alpha)], self.result)

    def matmul_of_few_bits(self) -> None:
        """A product with weights of a few bits, packed by blocks that have a scale each."""
        bits, size = self.given.get("bits", 4), self.given["block_size"]
        columns, inner = self.given["N"], self.given["K"]
        blocks = -(-inner // size)
        packed = self.weights(1)
        if packed.dtype != np.uint8:
            raise TypeError("weights of a few bits are packed into bytes")
        levels = _unpacked(packed.reshape(columns, blocks, -1), bits)
        scales = self.weights(2).astype(np.float32).reshape(columns, blocks, 1)
        middle: Array = np.array(1 << (bits - 1), np.float32)
        if self.inputs[3]:
            points = self.weights(3)
            if points.dtype == np.uint8:
                points = _unpacked(points.reshape(columns, -1), bits)[:, :blocks]
            middle = points.astype(np.float32).reshape(columns, blocks, 1)
        weights = ((levels - middle) * scales).reshape(columns, -1)[:, :inner]
        factor = self.constant("weights", np.ascontiguousarray(weights.T, np.float32))
        self.summed("MatMul", [self.inputs[0], factor], self.inputs[5])

    def summed(self, op: str, inputs: Sequence[str], bias: str) -> None:
        """The result: a node's, and a bias added if there is one."""
        if bias:
            self.add("Add", [self.add(op, inputs), bias], self.result)
        else:
            self.add(op, inputs, self.result)

    # Normalisation.

    def normalised(self, x: str, scale: str, bias: str, output: str) -> None:
        epsilon = self.given.get("epsilon", 1e-12)
        factors = [scale, bias] if bias else [scale]
        kind = "RMS" if "Simplified" in self.node.op_type else "Layer"
        more = {"axis": self.given.get("axis", -1), "epsilon": epsilon}
        self.add(f"{kind}Normalization", [x, *factors], output, **more)

    def norm(self) -> None:
        self.given.setdefault("epsilon", 1e-5)
        self.normalised(self.inputs[0], self.inputs[1], self.inputs[2], self.result)

    def skip_norm(self) -> None:
        """A norm of the sum of two tensors and perhaps a bias; the sum may be read as well."""
        has_shift = "Simplified" not in self.node.op_type
        shift, bias = (self.inputs[3], self.inputs[4]) if has_shift else ("", self.inputs[3])
        terms = [name for name in (self.inputs[0], bias, self.inputs[1]) if name]
        total = terms[0]
        for place, term in enumerate(terms[1:], 2):
            sum_output = self.node.output[3] if len(self.node.output) > 3 else ""
            total = self.add("Add", [total, term], sum_output if place == len(terms) else "")
        self.normalised(total, self.inputs[2], shift, self.result)

    def embed_norm(self) -> None:
        """A norm of the sum of what ids choose of tables: words, places and perhaps segments."""
        ids, segments, words, places, kinds = self.node.input[:5]
        x = self.add("Gather", [words, ids])
        if self.inputs[8]:
            x = self.add("Add", [x, self.add("Gather", [places, self.inputs[8]])])
        else:
            length = self.add("Gather", [self.add("Shape", [ids]), self.whole("one", 1)])
            numbers = self.add("Range", [self.whole("from", 0), length, self.whole("step", 1)])
            x = self.add("Add", [x, self.add("Gather", [places, numbers])])
        sum_output = self.node.output[2] if len(self.node.output) > 2 else ""
        if segments and kinds:
            x = self.add("Add", [x, self.add("Gather", [kinds, segments])], sum_output)
        elif sum_output:
            x = self.add("Identity", [x], sum_output)
        self.normalised(x, self.inputs[5], self.inputs[6], self.result)

    def whole(self, what: str, value: int | Sequence[int]) -> str:
        return self.constant(what, np.array(value, np.int64))

    # Attention.

    def attention(self) -> None:
        """Of one tensor, whose queries, keys and values are columns of one product."""
        hidden = self.tensor(self.inputs[1]).dims[1] // 3
        x = self.add("MatMul", self.node.input[:2])
        if self.inputs[2]:
            x = self.add("Add", [x, self.inputs[2]])
        heads = self.given["num_heads"]
        shape = self.whole("shape", [0, 0, 3, heads, hidden // heads])
        apart = self.add("Transpose", [self.add("Reshape", [x, shape])], perm=[2, 0, 3, 1, 4])
        parts = [self.add("Gather", [apart, self.whole(f"part{i}", i)], axis=0) for i in range(3)]
        self.attended(parts, hidden // heads, self.inputs[3], self.inputs[5])

    def multi_head(self) -> None:
        """Of three tensors, whose heads lie side by side."""
        heads = self.given["num_heads"]
        if not self.inputs[3]:
            mask = [self.inputs[5]] if self.inputs[5] else []
            counts = {"q_num_heads": heads, "kv_num_heads": heads}
            scale = {"scale": float(self.given["scale"])} if self.given.get("scale") else {}
            self.add("Attention", [*self.node.input[:3], *mask], self.result, **counts, **scale)
            return
        biases = np.split(self.weights(3), 3)
        width = len(biases[0])
        parts = [
            self.add("Add", [x, self.constant(f"bias{place}", bias)])
            for place, (x, bias) in enumerate(zip(self.node.input[:3], biases, strict=True))
        ]
        shape = self.whole("shape", [0, 0, heads, width // heads])
        apart = [
            self.add("Transpose", [self.add("Reshape", [x, shape])], perm=[0, 2, 1, 3])
            for x in parts
        ]
        self.attended(apart, width // heads, self.inputs[4], self.inputs[5])

    def attended(self, parts: Sequence[str], size: int, mask: str, bias: str) -> None:
        """Heads of queries, keys and values, and what comes of them, side by side again."""
        queries, keys, values = parts
        scale = float(self.given.get("scale") or 1.0 / math.sqrt(size))
        if not mask and not bias:
            causal = self.given.get("unidirectional", 0)
            heads = self.add("Attention", parts, scale=scale, is_causal=causal)
        else:
            turned = self.add("Transpose", [keys], perm=[0, 1, 3, 2])
            scores = self.add("MatMul", [queries, turned])
            scores = self.add("Mul", [scores, self.number("scale", scale)])
            if mask:
                filled = self.given.get("mask_filter_value", BLOCKED)
                if mask in self.around.constants:
                    mask = self.constant("kept", (self.values(mask) > 0).astype(np.int32))
                shape = self.whole("row", [0, 1, 1, -1])
                visible = self.add("Cast", [self.add("Reshape", [mask, shape])], to=1)
                left_out = self.add("Sub", [self.number("one", 1.0), visible])
                blocked = self.add("Mul", [left_out, self.number("blocked", filled)])
                scores = self.add("Add", [scores, blocked])
            if bias:
                scores = self.add("Add", [scores, bias])
            weights = self.add("Softmax", [scores], axis=-1)
            heads = self.add("MatMul", [weights, values])
        beside = self.add("Transpose", [heads], perm=[0, 2, 1, 3])
        self.add("Reshape", [beside, self.whole("flat", [0, 0, -1])], self.result)

    # Quantised operators: integers and their steps.

    def real(self, first: int, axis: int = 1) -> str:
        """What the integers mean that the operator reads there, before their scale and point;
        several scales are those along an axis."""
        tensors = [name for name in self.node.input[first : first + 3] if name]
        return self.add("DequantizeLinear", tensors, axis=axis)

    def quantised(self, x: str, first: int) -> None:
        """The result: integers by the scale and the point that the operator reads there."""
        steps = [name for name in self.node.input[first : first + 2] if name]
        self.add("QuantizeLinear", [x, *steps], self.result)

    def of_two(self) -> None:
        op = self.node.op_type.removeprefix("QLinear")
        self.quantised(self.add(op, [self.real(0), self.real(3)]), 6)

    def of_one(self) -> None:
        op = self.node.op_type.removeprefix("QLinear")
        names = ("alpha", "auto_pad", "ceil_mode", "count_include_pad", "kernel_shape")
        more = self.kept(*names, "pads", "strides")
        if op == "Softmax":
            more["axis"] = self.given.get("axis", -1)
        self.quantised(self.add(op, [self.real(0)], **more), 3)

    def concat(self) -> None:
        parts = [self.real(first) for first in range(2, len(self.node.input), 3)]
        self.quantised(self.add("Concat", parts, axis=self.given["axis"]), 0)

    def quantised_gemm(self) -> None:
        """A product of integers, to which a bias at the product of their steps is added."""
        more = self.kept("alpha", "transA", "transB")
        factors = [self.real(0), self.real(3, axis=0 if self.given.get("transB", 0) else 1)]
        if self.inputs[6]:
            steps = self.add("Mul", [self.inputs[1], self.inputs[4]])
            if "alpha" in more:
                steps = self.add("Mul", [steps, self.number("alpha", more["alpha"])])
            factors.append(self.add("Mul", [self.add("Cast", [self.inputs[6]], to=1), steps]))
        if self.inputs[7]:
            self.quantised(self.add("Gemm", factors, **more), 7)
        else:
            self.add("Gemm", factors, self.result, **more)

    def dynamic_matmul(self) -> None:
        """A product with integer weights, for which the other side is quantised as it comes: a
        step of 256 of its range, which is not done here."""
        a, b, scale = self.node.input[:3]
        point = [self.inputs[3]] if self.inputs[3] else []
        factor = self.add("DequantizeLinear", [b, scale, *point])
        self.summed("MatMul", [a, factor], self.inputs[4])

    def matmul_to_float(self) -> None:
        """A product of integers, and what it means."""
        a, b, *scales = self.node.input[:4]
        points = [self.inputs[4], self.inputs[5]]
        while points and not points[-1]:
            points.pop()
        product = self.add("Cast", [self.add("MatMulInteger", [a, b, *points])], to=1)
        self.summed("Mul", [product, self.add("Mul", scales)], self.inputs[6])

    def dynamic_lstm(self) -> None:
        """An LSTM with integer weights, whose rows and columns are exchanged."""
        weights = []
        for place, steps in ((1, 8), (2, 10)):
            levels, scale, point = (self.weights(index) for index in (place, steps, steps + 1))
            if levels.ndim != 3:
                raise ValueError("weights of an LSTM have three axes")
            scale_and_point = [
                array.reshape(array.shape[0], 1, -1) for array in (scale, point.astype(np.float32))
            ]
            real = (levels.astype(np.float32) - scale_and_point[1]) * scale_and_point[0]
            transposed = np.ascontiguousarray(real.transpose(0, 2, 1), np.float32)
            weights.append(self.constant(f"weights{place}", transposed))
        rest = [self.inputs[place] for place in range(3, 8)]
        inputs = [self.inputs[0], *weights, *rest]
        while not inputs[-1]:
            inputs.pop()
        lstm = onnx.helper.make_node("LSTM", inputs, self.node.output, self.name)
        lstm.attribute.extend(self.node.attribute)
        self.emitted.append(lstm)

    def same(self) -> None:
        """An operator that the standard has by the same name."""
        self.add(self.node.op_type, self.node.input, self.result, **self.kept("axis"))

    def rotary(self) -> None:
        x, positions, cos, sin = self.node.input
        more = self.kept("interleaved", "num_heads", "rotary_embedding_dim")
        self.add("RotaryEmbedding", [x, cos, sin, positions], self.result, **more)


def _unpacked(bytes_: Array, bits: int) -> Array:
    """Numbers of a few bits each, lowest first, from the bytes of the last axis."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (bytes_[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return numbers.reshape(*bytes_.shape[:-1], -1).astype(np.float32)


_TURNED = {
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
    "QLinearAdd": _Fused.of_two,
    "QLinearMul": _Fused.of_two,
    "QLinearSigmoid": _Fused.of_one,
    "QLinearLeakyRelu": _Fused.of_one,
    "QLinearSoftmax": _Fused.of_one,
    "QLinearAveragePool": _Fused.of_one,
    "QLinearGlobalAveragePool": _Fused.of_one,
    "QLinearConcat": _Fused.concat,
    "QGemm": _Fused.quantised_gemm,
    "DynamicQuantizeMatMul": _Fused.dynamic_matmul,
    "MatMulIntegerToFloat": _Fused.matmul_to_float,
    "DynamicQuantizeLSTM": _Fused.dynamic_lstm,
    "DequantizeLinear": _Fused.same,
    "QuantizeLinear": _Fused.same,
}
"""By operator, what makes its nodes."""
