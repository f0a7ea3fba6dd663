"""The layers of Transformers, as methods that append ONNX nodes.

Tensors are `[1, T, d]`. Random weights keep hidden states, scores and gates near the sizes that
trained ones have: scores of deviation one, and residual streams that do not grow with depth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .graph import Array, GraphBuilder, Normal, Uniform, Value

FORBIDDEN = -1e9
"""What is added to the score of a token that another must not see."""


@dataclass(frozen=True)
class Heads:
    """How attention divides its width: `groups` of keys and values serve `queries`."""

    queries: int
    groups: int
    causal: bool = False
    rotary: bool = False
    biased: bool = True


@dataclass(frozen=True)
class Cache:
    """Keys and values of the tokens before: those of `context - 1`, the last of them last.

    Of the new token and these, `mask` `[1, 1, context]` lowers the scores of those that are none.
    """

    context: int
    mask: Value


class Transformer(GraphBuilder):
    """A graph that grows layer by layer, each named by its place."""

    def embed(self, ids: Value, vocabulary: int, width: int, label: str = "tokens") -> Value:
        """A row of a table for each token, `[1, T] -> [1, T, d]`.

        Elements are as large as in GPT-2, 0.14 where it is 768 wide.
        """
        law = Normal(4 / math.sqrt(width))
        table = self.weight(f"{label}.weight", (vocabulary, width), law)
        shape, moment = (*ids.shape, width), law.deviation**2
        return self.node("Gather", [table, ids], shape, signed=moment, label=label, axis=0)

    def positions(self, x: Value, label: str = "positions") -> Value:
        """The sum with a learned vector for each place."""
        table = self.weight(f"{label}.weight", x.shape, Normal(0.1))
        return self._same("Add", [x, table], x, label)

    def project(
        self, x: Value, features: int, label: str, *, gain: float = 1.0, biased: bool = True
    ) -> Value:
        """A dense layer on each token, whose output has a deviation of `gain`."""
        fan_in = x.shape[-1]
        shape = (*x.shape[:-1], features)
        law = Normal(gain / math.sqrt(fan_in * x.moment))
        weight = self.weight(f"{label}.weight", (fan_in, features), law)
        self.multiply_accumulates += math.prod(shape) * fan_in
        y = self.node("MatMul", [x, weight], shape, signed=gain**2, label=f"{label}.matmul")
        if not biased:
            return y
        bias = self.weight(f"{label}.bias", (features,), Uniform(-0.1 * gain, 0.1 * gain))
        return self._same("Add", [y, bias], y, f"{label}.add")

    def norm(self, x: Value, label: str, epsilon: float = 1e-5) -> Value:
        """LayerNorm over the width."""
        width = x.shape[-1]
        scale = self.weight(f"{label}.weight", (width,), Uniform(0.8, 1.2))
        bias = self.weight(f"{label}.bias", (width,), Normal(0.1))
        return self.node(
            "LayerNormalization",
            [x, scale, bias],
            x.shape,
            signed=1.0,
            label=label,
            axis=-1,
            epsilon=epsilon,
        )

    def rms_norm(self, x: Value, label: str, epsilon: float = 1e-5) -> Value:
        """RMSNorm in the parts that exporters write before opset 23."""
        rows = (*x.shape[:-1], 1)

        def row(op: str, *inputs: Value | str, step: str) -> Value:
            return self.node(op, list(inputs), rows, signed=1.0, label=f"{label}.{step}")

        square = self._same("Pow", [x, self.constant(f"{label}.two", 2.0)], x, f"{label}.pow")
        mean = self.node(
            "ReduceMean", [square], rows, signed=1.0, label=f"{label}.mean", axes=[-1], keepdims=1
        )
        raised = row("Add", mean, self.constant(f"{label}.epsilon", epsilon), step="add")
        inverse = row("Reciprocal", row("Sqrt", raised, step="sqrt"), step="reciprocal")
        scaled = self.node("Mul", [x, inverse], x.shape, signed=1.0, label=f"{label}.mul")
        scale = self.weight(f"{label}.weight", (x.shape[-1],), Uniform(0.8, 1.2))
        return self._same("Mul", [scaled, scale], scaled, f"{label}.scale")

    def attention(
        self, x: Value, heads: Heads, label: str, gain: float = 1.0, cache: Cache | None = None
    ) -> Value:
        """Self-attention and the projection behind it, without the residual sum.

        With a `cache`, `x` is the one token that comes next.
        """
        _, tokens, width = x.shape
        size, groups = width // heads.queries, heads.groups
        shared = heads.queries // groups

        def projected(part: str, count: int) -> Value:
            y = self.project(x, count * size, f"{label}.{part}", biased=heads.biased)
            split = self.reshape(y, (1, tokens, count, size), f"{label}.{part}.split")
            return self.transpose(split, (0, 2, 1, 3), f"{label}.{part}.heads")

        query, key = projected("query", heads.queries), projected("key", groups)
        value = projected("value", groups)
        if heads.rotary:
            query, key = (
                self._rotated(tensor, f"{label}.{p}") for tensor, p in ((query, "q"), (key, "k"))
            )
        if cache is not None:
            key = self._cached(key, cache, label, "key")
            value = self._cached(value, cache, label, "value")
        key = self.transpose(key, (0, 1, 3, 2), f"{label}.key.turned")
        if shared > 1:
            query = self.reshape(query, (1, groups, shared, tokens, size), f"{label}.query.groups")
            key = self.reshape(key, (1, groups, 1, size, tokens), f"{label}.key.groups")
            value = self.reshape(value, (1, groups, 1, tokens, size), f"{label}.value.groups")
        scores = self._product(query, key, f"{label}.scores", moment=float(size))
        root = self.constant(f"{label}.scores.divisor", math.sqrt(size))
        scores = self._same("Div", [scores, root], scores, f"{label}.scores.scaled")
        if cache is not None:
            scores = self._same("Add", [scores, cache.mask], scores, f"{label}.scores.masked")
        elif heads.causal:
            mask = np.where(np.tri(tokens, dtype=bool), 0.0, FORBIDDEN)
            mask_tensor = self.constant(f"{label}.mask", mask)
            scores = self._same("Add", [scores, mask_tensor], scores, f"{label}.scores.masked")
        weights = self.node(
            "Softmax", [scores], scores.shape, signed=1.0, label=f"{label}.weights", axis=-1
        )
        context = self._product(weights, value, f"{label}.context", moment=0.1)
        if shared > 1:
            whole = (1, heads.queries, tokens, size)
            context = self.reshape(context, whole, f"{label}.context.groups")
        context = self.transpose(context, (0, 2, 1, 3), f"{label}.context.heads")
        context = self.reshape(context, x.shape, f"{label}.context.joined")
        return self.project(context, width, f"{label}.output", gain=gain, biased=heads.biased)

    def _cached(self, x: Value, cache: Cache, label: str, part: str) -> Value:
        """Keys or values of all tokens, which the next inference gets all but the first of."""
        name = f"{len(self.more_outputs) // 2}.{part}"
        batch, heads, _, size = x.shape
        past = self.more_input(f"past_key_values.{name}", (batch, heads, cache.context - 1, size))
        whole = (batch, heads, cache.context, size)
        joined = self.node(
            "Concat", [past, x], whole, signed=x.moment, label=f"{label}.{part}.cached", axis=2
        )
        return self.more_output(joined, f"present.{name}")

    def blocks(
        self, x: Value, layers: int, heads: Heads, form: str, cache: Cache | None = None
    ) -> Value:
        """Layers with a LayerNorm before each part, as GPT-2 has them, and one behind."""
        gain = 1 / math.sqrt(2 * layers)
        for index in range(1, layers + 1):
            label = f"layer{index}"
            y = self.attention(self.norm(x, f"{label}.attention.norm"), heads, label, gain, cache)
            x = self.residual(x, y, f"{label}.attention")
            y = self.norm(x, f"{label}.output.norm")
            y = self.feed_forward(y, 4 * x.shape[-1], label, gain, form)
            x = self.residual(x, y, f"{label}.output")
        return self.norm(x, "norm")

    def feed_forward(self, x: Value, hidden: int, label: str, gain: float, form: str) -> Value:
        """Two dense layers around GELU: `form` is `erf` or, as GPT-2 has it, `tanh`."""
        y = self.project(x, hidden, f"{label}.up")
        y = self._gelu(y, label, form)
        return self.project(y, x.shape[-1], f"{label}.down", gain=gain)

    def gated(self, x: Value, hidden: int, label: str, gain: float) -> Value:
        """SwiGLU: `(x G) sigmoid(x G) (x U) D`."""
        gate = self.project(x, hidden, f"{label}.gate", biased=False)
        up = self.project(x, hidden, f"{label}.up", biased=False)
        sigmoid = self._same("Sigmoid", [gate], gate, f"{label}.sigmoid")
        # The second moment of SiLU over a standard normal input.
        silu = self.node("Mul", [gate, sigmoid], gate.shape, signed=0.36, label=f"{label}.silu")
        y = self.node("Mul", [silu, up], up.shape, signed=0.36, label=f"{label}.mul")
        return self.project(y, x.shape[-1], f"{label}.down", gain=gain, biased=False)

    def residual(self, x: Value, y: Value, label: str) -> Value:
        """The sum of a residual stream and what a layer made of it."""
        moment = x.moment + y.moment
        return self.node("Add", [x, y], x.shape, signed=moment, label=f"{label}.residual")

    def token(self, x: Value, index: int, label: str) -> Value:
        """One token's vector, `[1, d]`."""
        place = self.constant(f"{label}.index", index)
        shape = (1, x.shape[-1])
        return self.node("Gather", [x, place], shape, signed=x.moment, label=label, axis=1)

    def reshape(self, x: Value, shape: tuple[int, ...], label: str) -> Value:
        """The elements in another shape."""
        target = self.constant(f"{label}.shape", shape)
        return self.node("Reshape", [x, target], shape, signed=x.moment, label=label)

    def transpose(self, x: Value, order: tuple[int, ...], label: str) -> Value:
        """Axes in another order."""
        shape = tuple(x.shape[axis] for axis in order)
        return self.node("Transpose", [x], shape, signed=x.moment, label=label, perm=list(order))

    def _gelu(self, x: Value, label: str, form: str) -> Value:
        def constant(name: str, number: float) -> str:
            return self.constant(f"{label}.gelu.{name}", number)

        # The second moment of GELU over a standard normal input is 0.425.
        def node(op: str, *inputs: Value | str, step: str) -> Value:
            return self.node(op, list(inputs), x.shape, signed=0.425, label=f"{label}.gelu.{step}")

        if form == "erf":
            root = constant("root", math.sqrt(2.0))
            y = node("Erf", node("Div", x, root, step="div"), step="erf")
            y = node("Mul", x, node("Add", y, constant("one", 1.0), step="add"), step="mul")
            return node("Mul", y, constant("half", 0.5), step="half")
        cube = node("Pow", x, constant("three", 3.0), step="pow")
        inner = node("Add", x, node("Mul", cube, constant("cubic", 0.044715), step="c"), step="sum")
        inner = node("Mul", inner, constant("root", math.sqrt(2.0 / math.pi)), step="scaled")
        y = node("Add", node("Tanh", inner, step="tanh"), constant("one", 1.0), step="add")
        half = node("Mul", x, constant("half", 0.5), step="half")
        return node("Mul", half, y, step="mul")

    def _rotated(self, x: Value, label: str) -> Value:
        """Rotary positions (Su et al., 2021), halves of each head turned against each other."""
        *_, tokens, size = x.shape
        rates = 10000.0 ** (-np.arange(0, size, 2) / size)
        angles = np.outer(np.arange(tokens), np.concatenate([rates, rates]))
        cos, sin = self._angles("cos", np.cos(angles)), self._angles("sin", np.sin(angles))
        low, high = (self._half(x, i, f"{label}.rotary.{i}") for i in (0, 1))
        opposite = self._same("Neg", [high], high, f"{label}.rotary.neg")
        turned = self.node(
            "Concat",
            [opposite, low],
            x.shape,
            signed=x.moment,
            label=f"{label}.rotary.turn",
            axis=3,
        )
        cosine_part = self._same("Mul", [x, cos], x, f"{label}.rotary.kept")
        sine_part = self._same("Mul", [turned, sin], x, f"{label}.rotary.moved")
        return self._same("Add", [cosine_part, sine_part], x, f"{label}.rotary.sum")

    def _angles(self, name: str, elements: Array) -> str:
        label = f"rotary.{name}"
        if not any(weight.name == label for weight in self.weights):
            self.constant(label, elements)
        return label

    def _half(self, x: Value, index: int, label: str) -> Value:
        size = x.shape[-1] // 2
        bounds = [
            self.constant(f"{label}.{name}", [number])
            for name, number in (("start", index * size), ("end", (index + 1) * size), ("axis", 3))
        ]
        shape = (*x.shape[:-1], size)
        return self.node("Slice", [x, *bounds], shape, signed=x.moment, label=label)

    def _product(self, x: Value, y: Value, label: str, moment: float) -> Value:
        shape = (*x.shape[:-1], y.shape[-1])
        self.multiply_accumulates += math.prod(shape) * x.shape[-1]
        return self.node("MatMul", [x, y], shape, signed=moment, label=f"{label}.matmul")

    def _same(self, op: str, inputs: list[Value | str], like: Value, label: str) -> Value:
        """A node whose result has the shape and the size of `like`."""
        moment = like.moment if op != "Div" else 1.0
        return self.node(op, inputs, like.shape, signed=moment, label=label)
