"""Networks that hospitals and banks have, written as PyTorch's exporter writes them, with drawn
weights: attention gates, several inputs, masks, experts, survival curves and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

Model = onnx.ModelProto
FLOAT, INT64, UINT8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.UINT8


class Exporter:
    """Nodes and initialisers of a graph; results of calls are names of tensors."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: list[onnx.TensorProto] = []

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.many(op, 1, *inputs, **attributes)[0]

    def many(self, op: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        """An operator with several results."""
        number = len(self._nodes)
        names = [f"{op}_{number}_{k}" for k in range(outputs)]
        self._nodes.append(helper.make_node(op, inputs, names, f"/{op}_{number}", **attributes))
        return names

    def constant(self, array: npt.ArrayLike) -> str:
        """An initialiser."""
        name = f"const_{len(self._tensors)}"
        self._tensors.append(onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def whole(self, *numbers: int) -> str:
        """A row of integers."""
        return self.constant(np.array(numbers, np.int64))

    def number(self, number: float) -> str:
        """A float without axes."""
        return self.constant(np.float32(number))

    def weight(self, *shape: int, spread: float | None = None) -> str:
        """Normal numbers; by default of a spread that keeps the size of what they multiply."""
        spread = float(np.prod(shape[1:])) ** -0.5 if spread is None else spread
        return self.constant(np.asarray(spread * self._rng.standard_normal(shape), np.float32))

    def gemm(self, x: str, inputs: int, outputs: int) -> str:
        """`nn.Linear` on rows."""
        bias = self.weight(outputs, spread=0.2)
        return self("Gemm", x, self.weight(outputs, inputs), bias, transB=1)

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        """`nn.Linear` on more axes."""
        weight = self.weight(inputs, outputs, spread=inputs**-0.5)
        return self("Add", self("MatMul", x, weight), self.weight(outputs, spread=0.1))

    def conv(self, x: str, inputs: int, outputs: int, size: int = 3, **attributes: Any) -> str:
        """`nn.Conv1d` to `nn.Conv3d` with padding that keeps sides, unless `pads` are given."""
        axes, group = attributes.pop("axes", 2), attributes.get("group", 1)
        dilation = attributes.pop("dilation", 1)
        defaults = {"kernel_shape": [size] * axes, "dilations": [dilation] * axes}
        defaults["pads"] = [size // 2 * dilation] * (2 * axes)
        kernel = self.weight(outputs, inputs // group, *[size] * axes)
        return self(
            "Conv", x, kernel, self.weight(outputs, spread=0.1), **{**defaults, **attributes}
        )

    def layer_norm(self, x: str, size: int) -> str:
        """`nn.LayerNorm` of the last axis."""
        scale, bias = self.constant(np.ones(size, np.float32)), self.weight(size, spread=0.1)
        return self("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)

    def gelu(self, x: str) -> str:
        """`nn.GELU`."""
        erf = self("Erf", self("Div", x, self.number(2**0.5)))
        whole = self("Mul", x, self("Add", erf, self.number(1)))
        return self("Mul", whole, self.number(0.5))

    def flat_mean(self, x: str) -> str:
        """`nn.AdaptiveAvgPool2d(1)` and `flatten`."""
        return self("Flatten", self("GlobalAveragePool", x), axis=1)

    def model(self, inputs: Mapping[str, tuple[int, Sequence[int]]], *outputs: str) -> Model:
        """What was written, as a model."""
        entries = [
            helper.make_tensor_value_info(name, kind, shape)
            for name, (kind, shape) in inputs.items()
        ]
        graph = helper.make_graph(
            self._nodes,
            "main_graph",
            entries,
            [onnx.ValueInfoProto(name=name) for name in outputs],
            self._tensors,
        )
        opsets = [helper.make_opsetid("", 17)]
        proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        return onnx.shape_inference.infer_shapes(proto)


def attention_gate() -> Model:
    """A U-Net whose skip passes through a gate, with bilinear upsampling."""
    g = Exporter()
    skip = g("Relu", g.conv("x", 1, 4))
    pooled = g("MaxPool", skip, kernel_shape=[2, 2], strides=[2, 2])
    deep = g("Relu", g.conv(pooled, 4, 8))
    twice = g.constant(np.array([1, 1, 2, 2], np.float32))
    up = g("Resize", deep, "", twice, mode="linear", coordinate_transformation_mode="half_pixel")
    total = g("Relu", g("Add", g.conv(up, 8, 4, 1), g.conv(skip, 4, 4, 1)))
    gated = g("Mul", skip, g("Sigmoid", g.conv(total, 4, 1, 1)))
    last = g("Relu", g.conv(g("Concat", up, gated, axis=1), 12, 4))
    y = g("Sigmoid", g.conv(last, 4, 1, 1))
    return g.model({"x": (FLOAT, [1, 1, 8, 8])}, y)


def siamese() -> Model:
    """The cosine of two images' embeddings, by the same weights."""
    g = Exporter()
    weight, bias = g.weight(8, 6), g.weight(8, spread=0.5)

    def embedded(x: str) -> str:
        h = g("Tanh", g("Gemm", x, weight, bias, transB=1))
        size = g("Clip", g("ReduceL2", h, axes=[1], keepdims=1), g.number(1e-12))
        return g("Div", h, g("Expand", size, g("Shape", h)))

    y = g("ReduceSum", g("Mul", embedded("a"), embedded("b")), g.whole(1), keepdims=0)
    return g.model({"a": (FLOAT, [1, 6]), "b": (FLOAT, [1, 6])}, y)


def causal_convolutions() -> Model:
    """A temporal network: dilated convolutions without what is ahead, and residuals."""
    g = Exporter()
    x, channels = "x", 2
    for d in (1, 2, 4):
        wide = g.conv(x, channels, 4, 3, axes=1, dilation=d, pads=[2 * d, 2 * d])
        y = g("Relu", g("Slice", wide, g.whole(0), g.whole(-2 * d), g.whole(2), g.whole(1)))
        x = g.conv(x, channels, 4, 1, axes=1) if channels != 4 else x
        x, channels = g("Relu", g("Add", y, x)), 4
    last = g("Gather", x, g.constant(np.array(-1)), axis=2)
    return g.model({"x": (FLOAT, [1, 2, 16])}, g.gemm(last, 4, 3))


def wave_gates() -> Model:
    """WaveNet: a hyperbolic tangent times a sigmoid of two halves, and sums of skips."""
    g = Exporter()
    x, skips = g.conv("x", 1, 4, 1, axes=1), []
    for d in (1, 2):
        padded = g("Pad", x, g.whole(0, 0, d, 0, 0, 0))
        filters = g.conv(padded, 4, 8, 2, axes=1, dilation=d, pads=[0, 0])
        halves = g.many("Split", 2, filters, g.whole(4, 4), axis=1)
        gated = g("Mul", g("Tanh", halves[0]), g("Sigmoid", halves[1]))
        skips.append(g.conv(gated, 4, 4, 1, axes=1))
        x = g("Add", x, skips[-1])
    y = g.conv(g("Relu", g("Add", *skips)), 4, 2, 1, axes=1)
    return g.model({"x": (FLOAT, [1, 1, 12])}, y)


TOKENS, WIDTH = 6, 8
TEXT = {"x": (FLOAT, [1, TOKENS, WIDTH]), "m": (FLOAT, [1, TOKENS])}


def _encoder(g: Exporter, scores: Callable[[str], str]) -> str:
    """An encoder layer with two heads, and the mean of its tokens; `scores` masks."""

    def heads() -> str:
        split = g("Reshape", g.linear("x", WIDTH, WIDTH), g.whole(1, TOKENS, 2, WIDTH // 2))
        return g("Transpose", split, perm=[0, 2, 1, 3])

    q, k, v = heads(), heads(), heads()
    products = g("MatMul", q, g("Transpose", k, perm=[0, 1, 3, 2]))
    weights = g("Softmax", scores(g("Div", products, g.number((WIDTH // 2) ** 0.5))), axis=-1)
    context = g("Transpose", g("MatMul", weights, v), perm=[0, 2, 1, 3])
    flat = g("Reshape", context, g.whole(1, TOKENS, WIDTH))
    x = g.layer_norm(g("Add", "x", g.linear(flat, WIDTH, WIDTH)), WIDTH)
    inner = g.linear(g.gelu(g.linear(x, WIDTH, 16)), 16, WIDTH)
    x = g.layer_norm(g("Add", x, inner), WIDTH)
    return g.linear(g("ReduceMean", x, axes=[1], keepdims=0), WIDTH, 3)


def padding_by_the_least_number() -> Model:
    """As BERT's exports have it: `(1 - mask) * finfo.min`, of a mask of integers."""
    g = Exporter()
    mask = g("Cast", g("Unsqueeze", "m", g.whole(1, 2)), to=FLOAT)
    low = g("Mul", g("Sub", g.number(1), mask), g.number(float(np.finfo(np.float32).min)))
    y = _encoder(g, lambda scores: g("Add", scores, low))
    return g.model({"x": TEXT["x"], "m": (INT64, [1, TOKENS])}, y)


def padding_by_minus_infinity() -> Model:
    """As `nn.TransformerEncoder` fills it in, where the mask is 0."""
    g = Exporter()
    out = g("Equal", g("Unsqueeze", "m", g.whole(1, 2)), g.number(0))
    infinity = g.number(-np.inf)
    return g.model(TEXT, _encoder(g, lambda scores: g("Where", out, infinity, scores)))


def padding_kept_by_a_mask() -> Model:
    """The other way round, before the softmax is divided for a sum of tokens."""
    g = Exporter()
    mask = g("Greater", "m", g.number(0.5))
    h = g("Tanh", g.linear("x", WIDTH, WIDTH))
    scores = g("Squeeze", g.linear(h, WIDTH, 1), g.whole(2))
    weights = g("Softmax", g("Where", mask, scores, g.number(-1e9)), axis=1)
    pooled = g("Mul", h, g("Unsqueeze", weights, g.whole(2)))
    y = g.gemm(g("ReduceSum", pooled, g.whole(1), keepdims=0), WIDTH, 2)
    return g.model(TEXT, y)


def largest_of_tokens() -> Model:
    """The largest of those that a mask keeps."""
    g = Exporter()
    mask = g("Greater", g("Unsqueeze", "m", g.whole(2)), g.number(0.5))
    h = g("Where", mask, g.linear("x", WIDTH, WIDTH), g.number(-1e9))
    return g.model(TEXT, g.gemm(g("ReduceMax", h, axes=[1], keepdims=0), WIDTH, 2))


def mean_of_tokens() -> Model:
    """The mean of those that a mask keeps."""
    g = Exporter()
    h, mask = g("Tanh", g.linear("x", WIDTH, WIDTH)), g("Unsqueeze", "m", g.whole(2))
    total = g("ReduceSum", g("Mul", h, mask), g.whole(1), keepdims=0)
    count = g("Clip", g("ReduceSum", mask, g.whole(1), keepdims=0), g.number(1e-9))
    return g.model(TEXT, g.gemm(g("Div", total, count), WIDTH, 2))


def recurrent_attention() -> Model:
    """A bidirectional LSTM and a weighted mean of its states."""
    g, h = Exporter(), 5
    weights = [g.weight(2, 4 * h, size, spread=0.4) for size in (4, h)]
    bias = g.weight(2, 8 * h, spread=0.1)
    sequence = g("Transpose", "x", perm=[1, 0, 2])
    states = g("LSTM", sequence, *weights, bias, hidden_size=h, direction="bidirectional")
    y = g("Reshape", g("Transpose", states, perm=[2, 0, 1, 3]), g.whole(0, 0, -1))
    scores = g("MatMul", g("Tanh", g.linear(y, 2 * h, 4)), g.weight(4, 1))
    context = g("ReduceSum", g("Mul", y, g("Softmax", scores, axis=1)), g.whole(1), keepdims=0)
    y = g("LogSoftmax", g.gemm(context, 2 * h, 3), axis=1)
    return g.model({"x": (FLOAT, [1, TOKENS, 4])}, y)


def mobile_block() -> Model:
    """An inverted residual with squeeze and excitation, and a head."""
    g = Exporter()
    x = g("HardSwish", g.conv("x", 3, 8, 3, strides=[2, 2]))
    y = g("HardSwish", g.conv(x, 8, 16, 1))
    y = g("HardSwish", g.conv(y, 16, 16, 5, group=16))
    squeezed = g("Relu", g.conv(g("GlobalAveragePool", y), 16, 4, 1))
    excited = g("HardSigmoid", g.conv(squeezed, 4, 16, 1), alpha=1 / 6, beta=0.5)
    x = g("Add", x, g.conv(g("Mul", excited, y), 16, 8, 1))
    return g.model({"x": (FLOAT, [1, 3, 12, 12])}, g.gemm(g.flat_mean(x), 8, 4))


def group_norm() -> Model:
    """`nn.GroupNorm` as an instance normalisation of groups, and a pixel shuffle by moves."""
    g = Exporter()
    x = g.conv("x", 2, 8)
    groups = g("Reshape", x, g.whole(0, 4, -1))
    one, zero = (g.constant(np.full(4, value, np.float32)) for value in (1, 0))
    x = g("Reshape", g("InstanceNormalization", groups, one, zero), g("Shape", x))
    x = g("Add", g("Mul", x, g.weight(8, 1, 1, spread=1)), g.weight(8, 1, 1, spread=0.3))
    x = g("Mul", x, g("Sigmoid", x))
    apart = g("Reshape", x, g.whole(1, 2, 2, 2, 6, 6))
    y = g("Reshape", g("Transpose", apart, perm=[0, 1, 4, 2, 5, 3]), g.whole(1, 2, 12, 12))
    return g.model({"x": (FLOAT, [1, 2, 6, 6])}, y)


def factorisation() -> Model:
    """A factorisation machine of categories: squares of sums less sums of squares."""
    g = Exporter()
    e = g("Gather", g.weight(20, 4, spread=0.7), "ids")
    first = g("Pow", g("ReduceSum", e, g.whole(1), keepdims=0), g.number(2))
    second = g("ReduceSum", g("Pow", e, g.number(2)), g.whole(1), keepdims=0)
    pairs = g("ReduceSum", g("Sub", first, second), g.whole(1), keepdims=1)
    biases = g("ReduceSum", g("Gather", g.weight(20, 1, spread=0.5), "ids"), g.whole(1), keepdims=0)
    deep = g("Relu", g.gemm(g("Reshape", e, g.whole(-1, 20)), 20, 6))
    wide = g("Add", g("Mul", pairs, g.number(0.5)), biases)
    y = g("Sigmoid", g("Add", wide, g.gemm(deep, 6, 1)))
    return g.model({"ids": (INT64, [1, 5])}, y)


def survival_curve() -> Model:
    """Chances to be alive after each period: the exponential of sums of log(1 - hazard)."""
    g = Exporter()
    hazards = g("Sigmoid", g.gemm(g("Relu", g.gemm("x", 6, 8)), 8, 5))
    logs = g("Log", g("Sub", g.number(1), hazards))
    y = g("Exp", g("CumSum", logs, g.constant(np.array(1))))
    return g.model({"x": (FLOAT, [1, 6])}, y)


def stages() -> Model:
    """Ordinal regression: how many thresholds are passed, as a whole number."""
    g = Exporter()
    h = g.gemm(g("Relu", g.gemm("x", 6, 8)), 8, 1)
    cuts = g.constant(np.array([1, 0.3, -0.4, -1], np.float32))
    steps = g("Greater", g("Sigmoid", g("Add", h, cuts)), g.number(0.5))
    y = g("ReduceSum", g("Cast", steps, to=INT64), g.whole(1), keepdims=0)
    return g.model({"x": (FLOAT, [1, 6])}, y)


def experts() -> Model:
    """A mixture: networks weighted by a softmax."""
    g = Exporter()
    gate = g("Softmax", g.gemm("x", 6, 3), axis=1)
    heads = [g.gemm(g("Relu", g.gemm("x", 6, 5)), 5, 2) for _ in range(3)]
    rows = g("Concat", *(g("Unsqueeze", head, g.whole(1)) for head in heads), axis=1)
    y = g("Squeeze", g("MatMul", g("Unsqueeze", gate, g.whole(1)), rows), g.whole(1))
    return g.model({"x": (FLOAT, [1, 6])}, y)


def capsules() -> Model:
    """Vectors squashed by their lengths, and what these are."""
    g = Exporter()
    u = g("Reshape", g.gemm("x", 6, 12), g.whole(-1, 3, 4))
    square = g("ReduceSum", g("Mul", u, u), g.whole(2), keepdims=1)
    share = g("Div", square, g("Add", square, g.number(1)))
    factor = g("Div", share, g("Sqrt", g("Add", square, g.number(1e-8))))
    return g.model({"x": (FLOAT, [1, 6])}, g("ReduceL2", g("Mul", u, factor), axes=[2], keepdims=0))


def image_and_table() -> Model:
    """A scan beside a row of a patient's numbers, one of them in thousands."""
    g = Exporter()
    scan = g("Relu", g.conv("scan", 1, 4))
    scale = g.constant(np.array([2e-5, 1, 0.02, 50, 1], np.float32))
    row = g("Relu", g.gemm(g("Mul", "row", scale), 5, 4))
    y = g("Softmax", g.gemm(g("Concat", g.flat_mean(scan), row, axis=1), 8, 3), axis=1)
    return g.model({"scan": (FLOAT, [1, 1, 6, 6]), "row": (FLOAT, [1, 5])}, y)


def bytes_last() -> Model:
    """Keras's order of axes, and pixels as bytes."""
    g = Exporter()
    x = g("Div", g("Cast", "x", to=FLOAT), g.number(255))
    mean, spread = (np.array(row, np.float32) for row in ((0.5, 0.4, 0.45), (0.2, 0.25, 0.22)))
    x = g("Div", g("Sub", x, g.constant(mean)), g.constant(spread))
    x = g("Relu", g.conv(g("Transpose", x, perm=[0, 3, 1, 2]), 3, 4))
    flat = g("Reshape", g("Transpose", x, perm=[0, 2, 3, 1]), g.whole(-1, 144))
    return g.model({"x": (UINT8, [1, 6, 6, 3])}, g.gemm(flat, 144, 3))


def convnext() -> Model:
    """Blocks of ConvNeXt with layers that are scaled by a millionth."""
    g, widths = Exporter(), (8, 16)

    def norm(x: str, size: int) -> str:
        channels_last = g.layer_norm(g("Transpose", x, perm=[0, 2, 3, 1]), size)
        return g("Transpose", channels_last, perm=[0, 3, 1, 2])

    x = norm(g.conv("x", 3, 8, 4, strides=[4, 4], pads=[0] * 4), 8)
    for before, width in zip((8, *widths), widths, strict=False):
        if before != width:
            x = g.conv(norm(x, before), before, width, 2, strides=[2, 2], pads=[0] * 4)
        y = g("Transpose", g.conv(x, width, width, 7, group=width), perm=[0, 2, 3, 1])
        y = g.gelu(g.linear(g.layer_norm(y, width), width, 4 * width))
        y = g("Transpose", g.linear(y, 4 * width, width), perm=[0, 3, 1, 2])
        scale = g.constant(np.full((width, 1, 1), 1e-6, np.float32))
        x = g("Add", g("Mul", y, scale), x)
    y = g.gemm(g("Flatten", norm(g("GlobalAveragePool", x), 16), axis=1), 16, 10)
    return g.model({"x": (FLOAT, [1, 3, 32, 32])}, y)


NETWORKS: tuple[Callable[[], Model], ...] = (
    *(attention_gate, siamese, causal_convolutions, wave_gates, padding_by_the_least_number),
    *(
        padding_by_minus_infinity,
        padding_kept_by_a_mask,
        mean_of_tokens,
        largest_of_tokens,
        recurrent_attention,
    ),
    *(mobile_block, group_norm, factorisation, survival_curve, stages, experts, capsules),
    *(image_and_table, bytes_last, convnext),
)
