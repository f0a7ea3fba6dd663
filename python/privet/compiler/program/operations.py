"""Between the integer graph's operations and their form in the program file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, Operation, Shape
from privet.compiler.program.functions import decode_steps, encode_steps

Tensors = Mapping[str, Array]


def encode(operation: Operation, prefix: str) -> tuple[str, dict[str, Any], dict[str, Array]]:
    """Name, attributes and private tensors of an operation; tensor names start with `prefix`."""
    match operation:
        case op.Conv2d():
            attributes, tensors = _weighted(operation.weight, operation.bias, prefix)
            attributes |= {
                "stride": list(operation.stride),
                "padding": list(operation.padding),
                "dilation": list(operation.dilation),
                "groups": operation.groups,
            }
            return "conv2d", attributes, tensors
        case op.Dense(weight=weight, bias=bias):
            return "dense", *_weighted(weight, bias, prefix)
        case op.Scale(weight=weight):
            name = f"{prefix}.weight"
            return "scale", {"weight": name, "weight_shape": list(weight.shape)}, {name: weight}
        case op.AddConstant(bias=bias):
            name = f"{prefix}.bias"
            return "add_constant", {"bias": name, "bias_shape": list(bias.shape)}, {name: bias}
        case op.Polynomial(coefficients=coefficients, bound=bound):
            names = {"coefficients": f"{prefix}.coefficients", "bound": f"{prefix}.bound"}
            limit = np.array([int(bound)], dtype=np.int64)
            tensors = {names["coefficients"]: coefficients, names["bound"]: limit}
            return "polynomial", {**names, "degree": operation.degree}, tensors
        case op.Elementwise(function=function):
            return "function", {"steps": encode_steps(function)}, {}
        case op.Piecewise(function=function, low=low, bits=bits, index_bits=index_bits):
            table = {"low": low, "bits": bits, "index_bits": index_bits}
            choices = {"rises": operation.rises, "nonnegative": operation.nonnegative}
            chosen = {name: True for name, choice in choices.items() if choice}
            return "piecewise", {"steps": encode_steps(function), **table, **chosen}, {}
        case op.MaxPool2d():
            return "max_pool2d", _window(operation), {}
        case op.AvgPool2d(factors=factors):
            return "avg_pool2d", {**_window(operation), "factors": list(factors)}, {}
        case op.Reshape():
            return "reshape", {}, {}
        case op.Broadcast():
            return "broadcast", {}, {}
        case op.ArgMax():
            return "argmax", dict(vars(operation)), {}
        case op.ChannelAffine():
            raise AssertionError("fold_batchnorm removes ChannelAffine")
        case op.Trees():
            raise AssertionError("move_truncation removes Trees")
        case op.ShiftLeft():
            return "shift_left", dict(vars(operation)), {}
        case op.Truncate(bits=bits, width=width):
            return "truncate", {"bits": bits} | ({} if width is None else {"width": width}), {}
        case _:
            attributes = {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in vars(operation).items()
            }
            return type(operation).__name__.lower(), attributes, {}


def decode(name: str, given: Mapping[str, Any], shape: Shape, tensors: Tensors) -> Operation:
    """The operation that `encode` wrote; `shape` is the output's.

    Raises `KeyError`, `TypeError` or `ValueError` on attributes that do not belong.
    """
    a = {key: _frozen(value) for key, value in given.items()}
    match name:
        case "conv2d":
            weight, bias = _read_weighted(a, tensors, a["weight_shape"][:1])
            rest = {key: a.pop(key) for key in ("stride", "padding", "dilation", "groups")}
            return _done(a, op.Conv2d(weight, bias, **rest))
        case "dense":
            return _done(a, op.Dense(*_read_weighted(a, tensors, a["weight_shape"][1:])))
        case "scale":
            return _done(a, op.Scale(_tensor(tensors, a.pop("weight"), a.pop("weight_shape"))))
        case "add_constant":
            return _done(a, op.AddConstant(_tensor(tensors, a.pop("bias"), a.pop("bias_shape"))))
        case "polynomial":
            count = a.pop("degree") + 1
            if count < 2:
                raise ValueError("a polynomial of degree 0 or less")
            coefficients = _tensor(tensors, a.pop("coefficients"), (count,))
            bound = _tensor(tensors, a.pop("bound"), (1,))
            return _done(a, op.Polynomial(coefficients, float(bound[0])))
        case "function":
            return _done(a, op.Elementwise(decode_steps(a.pop("steps"))))
        case "piecewise":
            return _piecewise(a)
        case "max_pool2d":
            return op.MaxPool2d(**a, size=_size(shape))
        case "avg_pool2d":
            return op.AvgPool2d(**a, size=_size(shape))
        case "reshape":
            return _done(a, op.Reshape(shape))
        case "broadcast":
            return _done(a, op.Broadcast(shape))
    plain = _PLAIN.get(name)
    if plain is None:
        raise ValueError(f"there is no operation {name!r}")
    decoded: Operation = plain(**a)
    return decoded


_PLAIN: dict[str, type[Any]] = {
    "add": op.Add,
    "sub": op.Sub,
    "mul": op.Mul,
    "matmul": op.MatMul,
    "negate": op.Negate,
    "shift_left": op.ShiftLeft,
    "truncate": op.Truncate,
    "relu": op.Relu,
    "step": op.Step,
    "leaves": op.Leaves,
    "transpose": op.Transpose,
    "slice": op.Slice,
    "concat": op.Concat,
    "pad": op.Pad,
    "argmax": op.ArgMax,
}


INDEX_BITS = range(6, 13)
"""Binary logarithms of the number of lines that a function may have."""


def _piecewise(a: dict[str, Any]) -> Operation:
    function = decode_steps(a.pop("steps"))
    low, bits, index_bits = (a.pop(name) for name in ("low", "bits", "index_bits"))
    if any(type(it) is not int for it in (low, bits, index_bits)):
        raise TypeError("the table of a function of lines is no integers")
    if index_bits not in INDEX_BITS or not index_bits < bits <= 62 or abs(low) >= 1 << 50:
        raise ValueError(f"a table of 2^{index_bits} lines over {bits} bits from {low} on")
    choices = [a.pop(name, False) for name in ("rises", "nonnegative")]
    if any(type(it) is not bool for it in choices):
        raise TypeError("how a function goes on beyond its table is no boolean")
    return _done(a, op.Piecewise(function, low, bits, index_bits, *choices))


def _weighted(
    weight: Array, bias: Array | None, prefix: str
) -> tuple[dict[str, Any], dict[str, Array]]:
    names = {"weight": f"{prefix}.weight", "bias": None if bias is None else f"{prefix}.bias"}
    tensors = {f"{prefix}.weight": weight}
    if bias is not None:
        tensors[f"{prefix}.bias"] = bias
    return {**names, "weight_shape": list(weight.shape)}, tensors


def _read_weighted(
    a: dict[str, Any], tensors: Tensors, bias_shape: Shape
) -> tuple[Array, Array | None]:
    weight = _tensor(tensors, a.pop("weight"), a.pop("weight_shape"))
    name = a.pop("bias")
    return weight, None if name is None else _tensor(tensors, name, bias_shape)


def _tensor(tensors: Tensors, name: str, shape: Shape) -> Array:
    tensor = tensors[name]
    if tensor.shape != shape:
        raise ValueError(f"tensor {name} has shape {list(tensor.shape)}, not {list(shape)}")
    return tensor


def _window(pool: op.MaxPool2d | op.AvgPool2d) -> dict[str, Any]:
    return {
        "kernel": list(pool.kernel),
        "stride": list(pool.stride),
        "padding": list(pool.padding),
        "dilation": list(pool.dilation),
    }


def _size(shape: Shape) -> op.Pair:
    _, _, height, width = shape
    return height, width


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _done(left: Mapping[str, Any], operation: Operation) -> Operation:
    if left:
        raise ValueError(f"unknown attribute {next(iter(left))!r}")
    return operation
