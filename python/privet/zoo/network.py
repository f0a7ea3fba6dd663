"""The layers of convolutional and dense networks, as methods that append ONNX nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .graph import GraphBuilder, Normal, Uniform, Value

# How much a pooling layer changes the second moment of what it pools. Neighbours of a random
# network's feature maps are correlated, so the gain of a maximum is far from that of independent
# elements; these are averages over the zoo's networks.
MAX_POOL_GAIN = 1.5
AVERAGE_POOL_GAIN = 0.75


def window(size: int, kernel: int, stride: int, padding: int) -> int:
    """The output side of a convolution or pooling over an input side, rounded down."""
    return (size + 2 * padding - kernel) // stride + 1


def covered(size: int, kernel: int, stride: int, padding: int) -> float:
    """The mean share of a window's side that lies on the image, not on its padding."""
    starts = [index * stride - padding for index in range(window(size, kernel, stride, padding))]
    taps = sum(min(start + kernel, size) - max(start, 0) for start in starts)
    return taps / (len(starts) * kernel)


class NetworkBuilder(GraphBuilder):
    """A graph that grows layer by layer; images are NCHW with a batch of one."""

    # Biases are drawn from [-bias_bound, bias_bound].
    bias_bound = 0.1

    def conv(
        self,
        x: Value,
        channels: int,
        kernel: int,
        *,
        stride: int = 1,
        padding: int = 0,
        bias: bool = True,
    ) -> Value:
        """A square convolution `[1, C, H, W] -> [1, channels, H', W']`."""
        batch, depth, height, width = x.shape
        label = self.label("conv")
        fan_in = depth * kernel * kernel
        inputs: list[Value | str] = [x]
        visible = math.prod(covered(side, kernel, stride, padding) for side in (height, width))
        weight = (channels, depth, kernel, kernel)
        inputs += self._affine(label, x, weight, fan_in * visible, bias)
        shape = (
            batch,
            channels,
            window(height, kernel, stride, padding),
            window(width, kernel, stride, padding),
        )
        self.multiply_accumulates += math.prod(shape) * fan_in
        return self.node(
            "Conv",
            inputs,
            shape,
            signed=1.0,
            label=label,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[padding] * 4,
        )

    def dense(self, x: Value, features: int, *, bias: bool = True) -> Value:
        """A dense layer `[1, K] -> [1, features]`, its weight stored `[features, K]`."""
        batch, fan_in = x.shape
        label = self.label("dense")
        inputs: list[Value | str] = [x]
        inputs += self._affine(label, x, (features, fan_in), fan_in, bias)
        self.multiply_accumulates += batch * fan_in * features
        return self.node("Gemm", inputs, (batch, features), signed=1.0, label=label, transB=1)

    def batch_norm(self, x: Value, gain: float = 1.0) -> Value:
        """Batch normalisation over axis 1 with running statistics near those of the input.

        The output's deviation is about `gain`.
        """
        label = self.label("norm")
        shape = (x.shape[1],)
        deviation = math.sqrt(x.moment)
        inputs: list[Value | str] = [
            x,
            self.weight(f"{label}.weight", shape, Uniform(0.8 * gain, 1.2 * gain)),
            self.weight(f"{label}.bias", shape, Normal(0.1)),
            self.weight(f"{label}.mean", shape, Normal(0.1 * deviation), learned=False),
            self.weight(
                f"{label}.variance",
                shape,
                Uniform(0.8 * x.moment, 1.2 * x.moment),
                learned=False,
            ),
        ]
        return self.node(
            "BatchNormalization", inputs, x.shape, signed=gain**2, label=label, epsilon=1e-5
        )

    def relu(self, x: Value) -> Value:
        self.relus += x.elements
        return self.node("Relu", [x], x.shape, signed=0.0, positive=x.positive + x.signed / 2)

    def square(self, x: Value) -> Value:
        """An elementwise square; of a normal input the fourth moment."""
        return self.node("Mul", [x, x], x.shape, signed=0.0, positive=3.0 * x.moment**2)

    def silu(self, x: Value) -> Value:
        """`x * sigmoid(x)`, element by element, as exporters write it."""
        label = self.label("silu")
        gate = self.node(
            "Sigmoid", [x], x.shape, signed=0.0, positive=0.3, label=f"{label}.sigmoid"
        )
        # Over a normal input of moment one its second moment is 0.36.
        return self.node(
            "Mul", [x, gate], x.shape, signed=0.0, positive=0.36 * x.moment, label=f"{label}.mul"
        )

    def max_pool(self, x: Value, kernel: int, stride: int, padding: int = 0) -> Value:
        return self._pool("MaxPool", x, kernel, stride, padding, MAX_POOL_GAIN)

    def average_pool(self, x: Value, kernel: int, stride: int) -> Value:
        """A square average pooling without padding."""
        return self._pool("AveragePool", x, kernel, stride, 0, AVERAGE_POOL_GAIN)

    def global_average_pool(self, x: Value) -> Value:
        """The mean of each channel, `[1, C, H, W] -> [1, C, 1, 1]`."""
        return self.node(
            "GlobalAveragePool",
            [x],
            (*x.shape[:2], 1, 1),
            signed=x.signed * AVERAGE_POOL_GAIN,
            positive=x.positive * AVERAGE_POOL_GAIN,
        )

    def flatten(self, x: Value) -> Value:
        """`[1, C, H, W] -> [1, C*H*W]`."""
        shape = (x.shape[0], math.prod(x.shape[1:]))
        return self.node("Flatten", [x], shape, signed=x.signed, positive=x.positive, axis=1)

    def add(self, x: Value, y: Value) -> Value:
        """The sum of two values of one shape."""
        return self.node(
            "Add", [x, y], x.shape, signed=x.signed + y.signed, positive=x.positive + y.positive
        )

    def concat(self, parts: Sequence[Value]) -> Value:
        """Images joined along their channels."""
        batch, _, height, width = parts[0].shape
        channels = sum(part.shape[1] for part in parts)
        signed = sum(part.signed * part.shape[1] for part in parts) / channels
        positive = sum(part.positive * part.shape[1] for part in parts) / channels
        return self.node(
            "Concat",
            parts,
            (batch, channels, height, width),
            signed=signed,
            positive=positive,
            axis=1,
        )

    def _affine(
        self, label: str, x: Value, shape: tuple[int, ...], fan_in: float, bias: bool
    ) -> list[str]:
        # He's rule, from the input's estimated moment: after a ReLU that is 1/2, which gives his
        # variance 2 / fan_in and an output of moment 1.
        deviation = math.sqrt(1.0 / (fan_in * x.moment))
        names = [self.weight(f"{label}.weight", shape, Normal(deviation))]
        if bias:
            law = Uniform(-self.bias_bound, self.bias_bound)
            names.append(self.weight(f"{label}.bias", shape[:1], law))
        return names

    def _pool(
        self, op: str, x: Value, kernel: int, stride: int, padding: int, gain: float
    ) -> Value:
        batch, channels, height, width = x.shape
        shape = (
            batch,
            channels,
            window(height, kernel, stride, padding),
            window(width, kernel, stride, padding),
        )
        return self.node(
            op,
            [x],
            shape,
            signed=x.signed * gain,
            positive=x.positive * gain,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[padding] * 4,
        )
