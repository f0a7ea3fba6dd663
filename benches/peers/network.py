"""The network of `benches.exchange` as a JAX function; runs in a peer's environment.

Images are `[N, H, W, C]` here, the layout that compilers for secure computation expect; arrays
arrive as Privet has them, `[N, C, H, W]`.
"""

# mypy: disable-error-code="import-not-found,import-untyped"
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Step = Mapping[str, Any]
Weights = Mapping[str, Any]


def arranged(network: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The weights by name, kernels transposed to `[kh, kw, C, O]`."""
    kernels = {step["weight"] for step in network["steps"] if step["op"] == "conv2d"}
    return {
        name: np.ascontiguousarray(array.transpose(2, 3, 1, 0)) if name in kernels else array
        for name, array in arrays.items()
    }


def to_channels_last(x: Any) -> Any:
    """`[N, C, H, W] -> [N, H, W, C]`; other ranks stay."""
    return x.transpose(0, 2, 3, 1) if x.ndim == 4 else x


def to_channels_first(x: Any) -> Any:
    """`[N, H, W, C] -> [N, C, H, W]`; other ranks stay."""
    return x.transpose(0, 3, 1, 2) if x.ndim == 4 else x


def function(network: Mapping[str, Any], names: list[str]) -> Callable[..., Any]:
    """`f(x, *weights)` with the weights in the order of `names`, from `arranged`."""

    def predict(x: Any, *weights: Any) -> Any:
        tensors = dict(zip(names, weights, strict=True))
        values = {network["input"]: x}
        for step in network["steps"]:
            operands = [values[id] for id in step["inputs"]]
            values[step["output"]] = OPERATIONS[step["op"]](step, tensors, *operands)
        return values[network["output"]]

    return predict


def _conv2d(step: Step, weights: Weights, x: Any) -> Any:
    top, left, bottom, right = step["padding"]
    y = jax.lax.conv_general_dilated(
        x,
        weights[step["weight"]],
        step["stride"],
        ((top, bottom), (left, right)),
        rhs_dilation=step["dilation"],
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=step["groups"],
    )
    return y if step["bias"] is None else y + weights[step["bias"]]


def _dense(step: Step, weights: Weights, x: Any) -> Any:
    y = x @ weights[step["weight"]]
    return y if step["bias"] is None else y + weights[step["bias"]]


def _max_pool2d(step: Step, weights: Weights, x: Any) -> Any:
    if any(step["padding"]):
        raise ValueError("padding of a max pooling has no fixed-point form here")
    if _is_row(step, x):
        return jnp.max(x, axis=2, keepdims=True)
    return _windows(step, x, -jnp.inf, jax.lax.max)


def _avg_pool2d(step: Step, weights: Weights, x: Any) -> Any:
    if any(step["padding"]) or len(step["factors"]) != 1:
        raise ValueError("average pooling with padding is not offered to peers")
    if _is_row(step, x):
        return jnp.sum(x, axis=2, keepdims=True) * step["factors"][0]
    return _windows(step, x, 0.0, jax.lax.add) * step["factors"][0]


def _is_row(step: Step, x: Any) -> bool:
    """Whether a window is a row: the maximum or the sum of a softmax, which a peer reduces."""
    return bool(step["kernel"] == [1, x.shape[2]])


def _windows(step: Step, x: Any, start: float, combine: Callable[..., Any]) -> Any:
    if step["dilation"] != [1, 1]:
        raise ValueError("dilated pooling is not offered to peers")
    kernel, stride = (1, *step["kernel"], 1), (1, *step["stride"], 1)
    y = jax.lax.reduce_window(x, start, combine, kernel, stride, "VALID")
    if list(y.shape[1:3]) != step["size"]:
        raise ValueError(f"pooling to {step['size']} came out as {y.shape[1:3]}")
    return y


def _add_constant(step: Step, weights: Weights, x: Any) -> Any:
    return to_channels_last(to_channels_first(x) + weights[step["bias"]])


def _broadcast(step: Step, weights: Weights, x: Any) -> Any:
    return to_channels_last(jnp.broadcast_to(to_channels_first(x), step["shape"]))


def _transpose(step: Step, weights: Weights, x: Any) -> Any:
    return to_channels_last(to_channels_first(x).transpose(step["perm"]))


def _elementwise(step: Step, weights: Weights, x: Any) -> Any:
    steps = step["function"]
    results = [x]
    for entry in steps:
        first, *operands = (results[index] for index in entry["operands"])
        before = entry["operands"][0] - 1
        if entry["name"] == "reciprocal" and before >= 0 and steps[before]["name"] == "sqrt":
            results.append(jax.lax.rsqrt(results[steps[before]["operands"][0]]))
        else:
            results.append(STEPS[entry["name"]](first, *operands, entry["constant"]))
    return results[-1]


def _concat(step: Step, weights: Weights, *parts: Any) -> Any:
    if parts[0].ndim != 4 or step["axis"] != 1:
        raise ValueError("only channels are joined")
    return jnp.concatenate(parts, axis=3)


def _reshape(step: Step, weights: Weights, x: Any) -> Any:
    return to_channels_last(to_channels_first(x).reshape(step["shape"]))


STEPS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y, _: x + y,
    "erf": lambda x, _: jax.lax.erf(x),
    "exp": lambda x, _: jnp.exp(x),
    "mul": lambda x, y, _: x * y,
    "reciprocal": lambda x, _: 1.0 / x,
    "relu": lambda x, _: jnp.maximum(x, 0.0),
    "scale": lambda x, factor: x * factor,
    "shift": lambda x, summand: x + summand,
    "sqrt": lambda x, _: jnp.sqrt(x),
    "sub": lambda x, y, _: x - y,
    "tanh": lambda x, _: jnp.tanh(x),
}
"""Steps of functions of one number that Transformers have, by `privet.compiler.graph.function`."""

OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lambda _step, _weights, x, y: x + y,
    "add_constant": _add_constant,
    "avg_pool2d": _avg_pool2d,
    "broadcast": _broadcast,
    "concat": _concat,
    "conv2d": _conv2d,
    "dense": _dense,
    "function": _elementwise,
    "matmul": lambda _step, _weights, x, y: x @ y,
    "max_pool2d": _max_pool2d,
    "mul": lambda _step, _weights, x, y: x * y,
    "relu": lambda _step, _weights, x: jnp.maximum(x, 0.0),
    "reshape": _reshape,
    "scale": lambda step, weights, x: x * to_channels_last(weights[step["weight"]]),
    "sub": lambda _step, _weights, x, y: x - y,
    "transpose": _transpose,
}
