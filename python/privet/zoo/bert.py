"""BERT encoders (Devlin et al., 2019; the tiny one of Turc et al., 2019).

The client looks up and normalises the embeddings, so the input is the hidden states `[1, 128, d]`,
and the output those of the last layer. LayerNorm follows each residual sum, and GELU is its exact
form through the error function.
"""

from __future__ import annotations

import math

from .graph import Graph, Normal, Uniform, Value

TOKENS = 128


def tiny() -> Graph:
    """Two layers, two heads, 128 wide, 512 in the feed-forward part."""
    return _encoder("bert-tiny", layers=2, heads=2, width=128)


def base() -> Graph:
    """Twelve layers, twelve heads, 768 wide, 3072 in the feed-forward part."""
    return _encoder("bert-base", layers=12, heads=12, width=768)


def _encoder(name: str, *, layers: int, heads: int, width: int) -> Graph:
    graph = Graph(name, (1, TOKENS, width), moment=1.0)
    x = graph.input
    for index in range(1, layers + 1):
        layer = _Layer(graph, f"layer{index}", heads)
        x = layer.feed_forward(layer.attention(x))
    graph.finish(x, "hidden")
    return graph


class _Layer:
    """One encoder layer; its methods append nodes named after their place in it."""

    def __init__(self, graph: Graph, prefix: str, heads: int) -> None:
        self.graph = graph
        self.prefix = prefix
        self.heads = heads

    def attention(self, x: Value) -> Value:
        """Multi-head self-attention, the residual sum and its LayerNorm."""
        width = x.shape[-1]
        size = width // self.heads
        split = (1, TOKENS, self.heads, size)
        query, key, value = (self._project(x, width, part) for part in ("query", "key", "value"))
        query = self._transpose(self._reshape(query, split, "query"), (0, 2, 1, 3), "query")
        key = self._transpose(self._reshape(key, split, "key"), (0, 2, 3, 1), "key")
        value = self._transpose(self._reshape(value, split, "value"), (0, 2, 1, 3), "value")
        scores = self._product(query, key, size, "scores", moment=float(size))
        divisor = self.graph.constant(f"{self.prefix}.scores.divisor", math.sqrt(size))
        scores = self._node("Div", [scores, divisor], scores.shape, "scores.scaled")
        weights = self._node("Softmax", [scores], scores.shape, "weights", axis=-1)
        context = self._product(weights, value, TOKENS, "context", moment=0.1)
        context = self._transpose(context, (0, 2, 1, 3), "context")
        context = self._reshape(context, (1, TOKENS, width), "context")
        return self._residual(x, self._project(context, width, "output"), "attention")

    def feed_forward(self, x: Value) -> Value:
        """Two dense layers around GELU, the residual sum and its LayerNorm."""
        width = x.shape[-1]
        y = self._gelu(self._project(x, 4 * width, "up"))
        return self._residual(x, self._project(y, width, "down"), "feed_forward")

    def _project(self, x: Value, features: int, part: str) -> Value:
        fan_in = x.shape[-1]
        label = f"{self.prefix}.{part}"
        deviation = math.sqrt(1.0 / (fan_in * x.moment))
        weight = self.graph.weight(f"{label}.weight", (fan_in, features), Normal(deviation))
        bias = self.graph.weight(f"{label}.bias", (features,), Uniform(-0.1, 0.1))
        shape = (1, TOKENS, features)
        self.graph.multiply_accumulates += TOKENS * fan_in * features
        y = self._node("MatMul", [x, weight], shape, f"{part}.matmul")
        return self._node("Add", [y, bias], shape, f"{part}.add")

    def _product(self, x: Value, y: Value, inner: int, part: str, moment: float) -> Value:
        shape = (*x.shape[:-1], y.shape[-1])
        self.graph.multiply_accumulates += math.prod(shape) * inner
        return self._node("MatMul", [x, y], shape, f"{part}.matmul", moment=moment)

    def _gelu(self, x: Value) -> Value:
        def constant(name: str, number: float) -> str:
            return self.graph.constant(f"{self.prefix}.gelu.{name}", number)

        def node(op: str, *inputs: Value | str, step: str, moment: float = 1.0) -> Value:
            return self._node(op, list(inputs), x.shape, f"gelu.{step}", moment=moment)

        y = node("Erf", node("Div", x, constant("root", math.sqrt(2.0)), step="div"), step="erf")
        y = node("Mul", x, node("Add", y, constant("one", 1.0), step="add"), step="mul")
        # The second moment of GELU over a standard normal input.
        return node("Mul", y, constant("half", 0.5), step="half", moment=0.425)

    def _residual(self, x: Value, y: Value, part: str) -> Value:
        width = x.shape[-1]
        label = f"{self.prefix}.{part}.norm"
        scale = self.graph.weight(f"{label}.weight", (width,), Uniform(0.8, 1.2))
        bias = self.graph.weight(f"{label}.bias", (width,), Normal(0.1))
        total = self._node("Add", [x, y], x.shape, f"{part}.residual")
        return self.graph.node(
            "LayerNormalization",
            [total, scale, bias],
            x.shape,
            signed=1.0,
            label=label,
            axis=-1,
            epsilon=1e-12,
        )

    def _reshape(self, x: Value, shape: tuple[int, ...], part: str) -> Value:
        target = self.graph.constant(f"{self.prefix}.{part}.shape", shape)
        return self._node("Reshape", [x, target], shape, f"{part}.reshape", moment=x.moment)

    def _transpose(self, x: Value, order: tuple[int, ...], part: str) -> Value:
        shape = tuple(x.shape[axis] for axis in order)
        label = f"{self.prefix}.{part}.transpose"
        return self.graph.node(
            "Transpose", [x], shape, signed=x.moment, label=label, perm=list(order)
        )

    def _node(
        self,
        op: str,
        inputs: list[Value | str],
        shape: tuple[int, ...],
        part: str,
        *,
        moment: float = 1.0,
        axis: int | None = None,
    ) -> Value:
        label = f"{self.prefix}.{part}"
        if axis is None:
            return self.graph.node(op, inputs, shape, signed=moment, label=label)
        return self.graph.node(op, inputs, shape, signed=moment, label=label, axis=axis)
