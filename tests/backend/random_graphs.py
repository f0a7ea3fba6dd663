"""Networks from random numbers: residuals, groups, dilations, odd pads, ceil mode, slices and more.

A seed gives one model. ONNX Runtime says after each node whether it fits and what shape it has, so
nothing here knows how an operator is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

from privet.compiler.executor.reference import run_plaintext

Array = npt.NDArray[Any]
LEAST_NODES, MOST_NODES = 4, 11
MOST_ELEMENTS = 2000
ACTIVATIONS = ("Relu", "LeakyRelu", "Clip", "Abs", "HardSwish", "Sigmoid", "Tanh", "PRelu")


def random_graph(seed: int) -> tuple[onnx.ModelProto, list[Array]]:
    """A model with an input `x` and an output `y`, and inputs to calibrate it on and to run."""
    rng = np.random.default_rng(seed)
    network = _Network(rng)
    for _ in range(int(rng.integers(LEAST_NODES, MOST_NODES))):
        network.grow()
    rows = [rng.standard_normal(network.shapes["x"]).astype(np.float32) for _ in range(8)]
    return network.finished(f"seed{seed}"), rows


class _Network:
    """Images so far, by name; each step reads some of them and makes another."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        sides = int(rng.integers(4, 10)), int(rng.integers(4, 10))
        self.shapes: dict[str, tuple[int, ...]] = {"x": (1, self._int(1, 6), *sides)}
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}

    def grow(self) -> None:
        """Adds a step; one that does not fit what is there is taken back."""
        steps: Sequence[Callable[[str], None]] = (
            *(self._conv, self._conv, self._conv, self._pool, self._pool, self._activation),
            *(self._activation, self._join, self._join, self._concat, self._slice),
            *(self._transpose, self._pad, self._affine, self._norm, self._extreme),
        )
        snapshot = len(self.nodes), dict(self.shapes)
        recent = list(self.shapes)[-3:]
        steps[self._int(0, len(steps))](recent[self._int(0, len(recent))])
        if not self._infer():
            del self.nodes[snapshot[0] :]
            self.shapes = snapshot[1]

    def finished(self, name: str) -> onnx.ModelProto:
        last = list(self.shapes)[-1]
        count = int(np.prod(self.shapes[last]))
        flat = self._node("Flatten", [last])
        weight = self._constant((count, 3), 1 / np.sqrt(count))
        self.nodes.append(helper.make_node("Gemm", [flat, weight, self._constant((3,))], ["y"]))
        return self._model(["y"], (1, 3), name)

    def _infer(self) -> bool:
        """Has ONNX Runtime compute new tensors; whether it can, and all are small images."""
        names = [name for node in self.nodes for name in node.output if name not in self.shapes]
        x = np.zeros(self.shapes["x"], np.float32)
        model = self._model(names, None)
        try:
            arrays = run_plaintext(model, [{"x": x}], names)
            value_infos = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph.output
        except Exception:  # ONNX Runtime raises types of its own for what does not fit
            return False
        if any(array.ndim != 4 or not 0 < array.size <= MOST_ELEMENTS for array in arrays.values()):
            return False
        # They differ where in ceil mode a last window would begin on padding.
        shapes = [
            tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim) for info in value_infos
        ]
        if shapes != [array.shape for array in arrays.values()]:
            return False
        self.shapes.update((name, array.shape) for name, array in arrays.items())
        return True

    def _model(
        self, outputs: Sequence[str], shape: Sequence[int] | None, name: str = "random"
    ) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            name,
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shapes["x"])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape) for output in outputs],
            [onnx.numpy_helper.from_array(array, key) for key, array in self.constants.items()],
        )
        opset = [helper.make_opsetid("", 19)]
        return helper.make_model(graph, opset_imports=opset, ir_version=9)

    # Steps.

    def _conv(self, x: str) -> None:
        channels = self.shapes[x][1]
        divisors = [g for g in range(1, channels + 1) if channels % g == 0]
        groups = divisors[self._int(0, len(divisors))]
        out = groups * self._int(1, 4)
        kernel = [self._int(1, 4), self._int(1, 4)]
        weight = (out, channels // groups, *kernel)
        inputs = [x, self._constant(weight, 1.2 / np.sqrt(np.prod(weight[1:])))]
        inputs += [self._constant((out,), 0.5)] if self._int(0, 2) else []
        self._node("Conv", inputs, group=groups, **self._window(kernel))

    def _pool(self, x: str) -> None:
        kernel = [self._int(1, 4), self._int(1, 4)]
        window = self._window(kernel)
        # ONNX wants each padding to be smaller than the kernel.
        window["pads"] = [min(pad, (kernel * 2)[i] - 1) for i, pad in enumerate(window["pads"])]
        window["ceil_mode"] = self._int(0, 2)
        if self._int(0, 2):
            self._node("MaxPool", [x], kernel_shape=kernel, **window)
        else:
            include_pad = self._int(0, 2)
            attributes = {"kernel_shape": kernel, "count_include_pad": include_pad}
            self._node("AveragePool", [x], **attributes, **window)

    def _window(self, kernel: Sequence[int]) -> dict[str, Any]:
        strides, dilations = ([self._int(1, 3), self._int(1, 3)] for _ in range(2))
        pads = [self._int(0, 3) for _ in range(4)]
        return {"strides": strides, "dilations": dilations, "pads": pads}

    def _activation(self, x: str) -> None:
        op = ACTIVATIONS[self._int(0, len(ACTIVATIONS))]
        inputs = [x]
        if op == "Clip":
            bounds = zip(("low", "high"), (-1.0, 1.5), strict=True)
            self.constants.update((name, np.array(value, np.float32)) for name, value in bounds)
            inputs += ["low", "high"]
        if op == "PRelu":
            inputs.append(self._constant((self.shapes[x][1], 1, 1), 0.3))
        self._node(op, inputs, **({"alpha": 0.2} if op == "LeakyRelu" else {}))

    def _join(self, x: str) -> None:
        """A residual: with what has the same shape, or else with what a convolution makes fit."""
        same = [name for name, shape in self.shapes.items() if shape == self.shapes[x]]
        other = same[self._int(0, len(same))]
        op = ("Add", "Add", "Sub")[self._int(0, 3)]
        if other == x:
            channels = self.shapes[x][1]
            weight = self._constant((channels, channels, 1, 1), 1 / np.sqrt(channels))
            other = self._node("Conv", [x, weight])
        self._node(op, [x, other])

    def _concat(self, x: str) -> None:
        n, _, *sides = self.shapes[x]
        fits = [k for k, s in self.shapes.items() if len(s) == 4 and [s[0], *s[2:]] == [n, *sides]]
        others = [fits[self._int(0, len(fits))] for _ in range(self._int(1, 3))]
        self._node("Concat", [x, *others], axis=1)

    def _slice(self, x: str) -> None:
        axis = self._int(1, 4)
        size = self.shapes[x][axis]
        step = (1, 2, -1)[self._int(0, 3)]
        start = self._int(0, size)
        bounds = (start, size, step) if step > 0 else (start, -size - 1, step)
        names = [self._number(value) for value in (*bounds[:2], axis, bounds[2])]
        self._node("Slice", [x, *names])

    def _transpose(self, x: str) -> None:
        perm = (0, 1, 3, 2) if self._int(0, 2) else (0, 2, 1, 3)
        self._node("Transpose", [x], perm=perm)

    def _pad(self, x: str) -> None:
        mode = ("constant", "edge", "reflect")[self._int(0, 3)]
        pads = [0, 0, *(self._int(0, 3) for _ in range(2)), 0, 0, *(self._int(0, 3) for _ in "hw")]
        name = f"c{len(self.constants)}"
        self.constants[name] = np.array(pads, np.int64)
        self._node("Pad", [x, name], mode=mode)

    def _affine(self, x: str) -> None:
        shape = (self.shapes[x][1], 1, 1) if self._int(0, 2) else (1,)
        op = ("Mul", "Add", "Sub")[self._int(0, 3)]
        self._node(op, [x, self._constant(shape)])

    def _norm(self, x: str) -> None:
        channels = (self.shapes[x][1],)
        names = [self._constant(channels, 0.5) for _ in range(3)]
        variance = f"c{len(self.constants)}"
        self.constants[variance] = self.rng.uniform(0.5, 2, channels).astype(np.float32)
        self._node("BatchNormalization", [x, *names, variance])

    def _extreme(self, x: str) -> None:
        same = [name for name, shape in self.shapes.items() if shape == self.shapes[x]]
        op = ("Max", "Min")[self._int(0, 2)]
        self._node(op, [x, same[self._int(0, len(same))]])

    # Parts of steps.

    def _int(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def _constant(self, shape: tuple[int, ...], spread: float = 1.0) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = (self.rng.standard_normal(shape) * spread).astype(np.float32)
        return name

    def _number(self, value: int) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.array([value], np.int64)
        return name

    def _node(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        output = f"t{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(op, inputs, [output], name=f"{op}_{output}", **attributes)
        )
        return output
