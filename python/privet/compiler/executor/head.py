"""Computes the head and the front of a model in the clear, at the client, with nothing but numpy.

Either may come from a server that means ill: operators are those of `OPERATORS` and `FRONT` alone,
and no tensor takes more than `MAX_BYTES`, nor all together more than `MAX_TOTAL`. Reals are
float64, integers int64, strings numpy's; a map from labels to numbers, which `ZipMap` makes, is a
`dict` in an array of one axis, as ONNX Runtime gives a list of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from privet.compiler.graph.head import MAX_BYTES, MAX_TOTAL, Head, HeadNode, text_array
from privet.compiler.graph.operations import Array
from privet.errors import InvalidProgram

FLOATS, INTEGERS, BOOLEAN, TEXT = (1, 10, 11, 16), (2, 3, 4, 5, 6, 7, 12, 13), 9, 8
"""Types of ONNX, by their numbers."""


def run_head(
    head: Head, revealed: Mapping[str, Array], title: str = "the program's head"
) -> dict[str, Array]:
    """The outputs of a head by name, in its order; `title` is what messages call it. Raises
    `InvalidProgram` if a node cannot be computed, or would take too many elements."""
    tensors: dict[str, Array] = {**head.constants, **revealed}
    total_bytes = 0
    for node in head.nodes:
        try:
            operands = [tensors[name] if name else None for name in node.inputs]
            with np.errstate(all="ignore"):
                results = _Call(node, operands, head.opset).run()
            total_bytes += sum(array.nbytes for array in results)
            if total_bytes > MAX_TOTAL:
                raise ValueError(f"it takes more than {MAX_TOTAL} bytes")
        except (ArithmeticError, LookupError, TypeError, ValueError, MemoryError) as error:
            place = f"node {', '.join(node.outputs)} ({node.op})"
            raise InvalidProgram(f"{title} fails at {place}: {error}") from error
        tensors.update(zip(node.outputs, results, strict=False))
    # A node may make less than it names.
    missing = [name for name in head.outputs if name not in tensors]
    if missing:
        raise InvalidProgram(f"{title} makes no {', '.join(missing)}")
    return {name: tensors[name] for name in head.outputs}


class _Call:
    """A node on its operands."""

    def __init__(self, node: HeadNode, operands: Sequence[Array | None], opset: int) -> None:
        self.node, self.opset, self.operands = node, opset, operands
        self.tensors = [operand for operand in operands if operand is not None]

    def run(self) -> list[Array]:
        results = _OPERATORS[self.node.op](self)
        arrays = results if isinstance(results, list) else [results]
        for array in arrays:
            _bound(array.shape, array.itemsize)
        return arrays

    @property
    def x(self) -> Array:
        return self.tensors[0]

    def attribute(self, name: str, default: Any) -> Any:
        return self.node.attributes.get(name, default)

    def number(self, name: str, default: float) -> float:
        return float(self.attribute(name, default))

    def axis(self, default: int) -> int:
        axis, rank = int(self.attribute("axis", default)), self.x.ndim
        if not -rank <= axis < max(rank, 1):
            raise ValueError(f"axis {axis} of {rank} axes")
        return axis % max(rank, 1)

    def axes(self) -> tuple[int, ...] | None:
        """Axes as an attribute or as the second input."""
        axes = self.attribute("axes", None)
        if axes is None and len(self.tensors) > 1:
            axes = self.tensors[1].ravel().tolist()
        return None if axes is None else tuple(int(axis) for axis in axes)


def _bound(shape: Sequence[int], itemsize: int = 8) -> None:
    if math.prod(shape) * itemsize > MAX_BYTES or len(shape) > 8:
        raise ValueError(f"shape {list(shape)} is out of bounds")


def _elementwise(function: Callable[..., Any]) -> Callable[[_Call], Array]:
    """A function of tensors that broadcast."""

    def run(call: _Call) -> Array:
        itemsize = max(8, *(operand.itemsize for operand in call.tensors))
        _bound(np.broadcast_shapes(*(operand.shape for operand in call.tensors)), itemsize)
        return np.asarray(function(*call.tensors))

    return run


def _scaler(call: _Call) -> Array:
    """`(x - offset) * scale`, one of each or one for each column."""
    offset, scale = (
        np.array(call.attribute(name, default), np.float64)
        for name, default in (("offset", [0.0]), ("scale", [1.0]))
    )
    _bound(np.broadcast_shapes(call.x.shape, offset.shape, scale.shape))
    return np.asarray((call.x.astype(np.float64) - offset) * scale)


def _imputer(call: _Call) -> Array:
    """A number in place of each missing one: NaN, in attributes a text, or what stands for it."""
    x, integers = call.x, call.attribute("imputed_value_int64s", None)
    values = call.attribute("imputed_value_floats", integers or [0.0])
    substitutes = np.array(values, np.int64 if values is integers else np.float64)
    marker = call.number("replaced_value_int64" if integers else "replaced_value_float", 0)
    _bound(np.broadcast_shapes(x.shape, substitutes.shape))
    return np.where(
        np.isnan(x) if np.isnan(marker) else x == marker, substitutes.astype(x.dtype), x
    )


def sigmoid(x: Array) -> Array:
    """`1 / (1 + exp(-x))`, without overflow."""
    exponentials = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, exponentials) / (1.0 + exponentials))


def softmax(x: Array, axes: tuple[int, ...], *, log: bool) -> Array:
    """Softmax over some axes together, or its logarithm."""
    shifted = x - x.max(axis=axes, keepdims=True)
    exponentials = np.exp(shifted)
    total = exponentials.sum(axis=axes, keepdims=True)
    return np.asarray(shifted - np.log(total) if log else exponentials / total)


def _softmax_zero(call: _Call) -> Array:
    """Softmax of the scores that are not 0, in rows; those stay 0."""
    x = call.x
    exponentials = np.where(np.abs(x) > 1e-7, np.exp(x - x.max(axis=-1, keepdims=True)), 0.0)
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


def _softmax(call: _Call) -> Array:
    axis = call.axis(1 if call.opset < 13 else -1)
    axes = tuple(range(axis, call.x.ndim)) if call.opset < 13 else (axis,)
    return softmax(call.x, axes, log=call.node.op == "LogSoftmax")


def _cast(call: _Call) -> Array:
    onnx_type = int(call.attribute("to", 1))
    if onnx_type in FLOATS:
        return call.x.astype(np.float64)
    if onnx_type in INTEGERS:
        numbers = call.x if call.x.dtype.kind == "U" else np.trunc(call.x)
        return numbers.astype(np.int64)
    if onnx_type == BOOLEAN:
        return call.x.astype(np.bool_)
    if onnx_type == TEXT:
        _bound(call.x.shape, np.empty(0, call.x.dtype).astype(np.str_).itemsize)
        return call.x.astype(np.str_)
    raise ValueError(f"type {onnx_type}")


def _reshape(call: _Call) -> Array:
    shape = [int(size) for size in call.tensors[1].ravel()]
    if not call.attribute("allowzero", 0):
        shape = [call.x.shape[i] if size == 0 else size for i, size in enumerate(shape)]
    return call.x.reshape(shape)


def _flatten(call: _Call) -> Array:
    axis = int(call.attribute("axis", 1))
    return call.x.reshape(math.prod(call.x.shape[:axis]), -1)


def _squeeze(call: _Call) -> Array:
    return np.squeeze(call.x, axis=call.axes())


def _unsqueeze(call: _Call) -> Array:
    return np.expand_dims(call.x, call.axes() or ())


def _transpose(call: _Call) -> Array:
    return np.transpose(call.x, call.attribute("perm", None))


def _concat(call: _Call) -> Array:
    itemsize = max(operand.itemsize for operand in call.tensors)
    _bound((sum(operand.size for operand in call.tensors),), itemsize)
    return np.concatenate(call.tensors, axis=call.axis(0))


def _slice(call: _Call) -> Array:
    """Starts, ends, axes and steps as attributes or as inputs."""
    arguments = [operand.ravel().tolist() for operand in call.tensors[1:]]
    names = ("starts", "ends", "axes", "steps")[len(arguments) :]
    arguments += [call.attribute(name, []) for name in names]
    starts, ends, axes, steps = arguments
    slices = [slice(None)] * call.x.ndim
    axes, steps = axes or list(range(len(starts))), steps or [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        slices[axis] = slice(start, None if step < 0 and end < -call.x.shape[axis] else end, step)
    return call.x[tuple(slices)]


def _take(x: Array, indices: Array, axis: int) -> Array:
    _bound((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.itemsize)
    return np.take(x, indices.astype(np.int64), axis=axis)


def _feature_extractor(call: _Call) -> Array:
    """Columns of the last axis, at flat indices; a vector counts as one row."""
    x = call.x if call.x.ndim > 1 else call.x.reshape(1, -1)
    return _take(x, call.tensors[1].ravel(), x.ndim - 1)


def _reduce(function: Callable[..., Any]) -> Callable[[_Call], Array]:
    def run(call: _Call) -> Array:
        axes = call.axes()
        if not axes and call.attribute("noop_with_empty_axes", 0):
            return call.x
        keepdims = bool(call.attribute("keepdims", 1))
        return np.asarray(function(call.x, axis=axes or None, keepdims=keepdims))

    return run


def _log_sum_exp(x: Array, **options: Any) -> Array:
    maximum = x.max(axis=options["axis"], keepdims=True)
    total = np.exp(x - maximum).sum(**options)
    return np.asarray(np.log(total) + (maximum if options["keepdims"] else maximum.max(**options)))


def _arg_extreme(call: _Call) -> Array:
    axis, x = call.axis(0), call.x if call.node.op == "ArgMax" else -call.x
    indices = x.argmax(axis)
    if call.attribute("select_last_index", 0):
        indices = x.shape[axis] - 1 - np.flip(x, axis).argmax(axis)
    return np.expand_dims(indices, axis) if call.attribute("keepdims", 1) else np.asarray(indices)


def _top_k(call: _Call) -> list[Array]:
    axis = call.axis(-1)
    count = (
        int(call.tensors[1].ravel()[0]) if len(call.tensors) > 1 else int(call.attribute("k", 1))
    )
    if not 0 < count <= call.x.shape[axis]:
        raise ValueError(f"{count} of {call.x.shape[axis]} elements")
    keys = -call.x if call.attribute("largest", 1) else call.x
    indices = np.take(np.argsort(keys, axis=axis, kind="stable"), range(count), axis=axis)
    return [np.take_along_axis(call.x, indices, axis=axis), indices]


def _normalizer(call: _Call) -> Array:
    """Each row by its largest element, its sum of magnitudes or its length; rows of zeros stay."""
    x = call.x if call.x.ndim > 1 else call.x.reshape(1, -1)
    match call.attribute("norm", "MAX"):
        case "MAX":
            norm = x.max(axis=-1, keepdims=True)
        case "L1":
            norm = np.abs(x).sum(axis=-1, keepdims=True)
        case "L2":
            norm = np.sqrt((x * x).sum(axis=-1, keepdims=True))
        case other:
            raise ValueError(f"norm {other!r}")
    return np.asarray(x / np.where(norm == 0, 1.0, norm)).reshape(call.x.shape)


def _coupling(call: _Call) -> Array:
    """Probabilities of classes from decision values of their pairs, as ONNX Runtime has them.

    Each value is made a probability by Platt's sigmoid; these are brought together by Wu, Lin and
    Weng's second method (2004), whose iteration ends where ONNX Runtime's does.
    """
    a, b = (np.array(call.attribute(name, ()), np.float64) for name in ("prob_a", "prob_b"))
    pairs = call.x.shape[-1]
    classes = (1 + math.isqrt(1 + 8 * pairs)) // 2
    if call.x.ndim != 2 or not a.size == b.size == pairs == classes * (classes - 1) // 2:
        raise ValueError(f"{a.size} and {b.size} numbers for {list(call.x.shape)} decision values")
    _bound((len(call.x), classes, classes))
    probabilities = np.clip(sigmoid(-(call.x * a + b)), 1e-7, 1 - 1e-7)
    pairwise = np.zeros((len(probabilities), classes, classes))
    first, second = np.triu_indices(classes, 1)
    pairwise[:, first, second], pairwise[:, second, first] = probabilities, 1 - probabilities
    return _couple(pairwise)


def _couple(pairwise: Array) -> Array:
    """The probabilities of each row that fit those of pairs: `pairwise[row, i, j]` is that i is
    right and not j. Rows end one by one, and leave the computation."""
    rows, classes, _ = pairwise.shape
    quadratic = -pairwise * pairwise.swapaxes(1, 2)
    np.einsum("rii->ri", quadratic)[:] = (pairwise**2).sum(axis=1)
    probabilities = np.full((rows, classes), 1 / classes)
    results, active = probabilities.copy(), np.arange(rows)
    for _ in range(max(100, classes)):
        gradient = np.einsum("rij,rj->ri", quadratic, probabilities)
        objective = (probabilities * gradient).sum(axis=1)
        is_active = np.abs(gradient - objective[:, None]).max(axis=1) >= 0.005 / classes
        results[active] = probabilities
        if not is_active.all():
            active, quadratic, probabilities = (
                active[is_active],
                quadratic[is_active],
                probabilities[is_active],
            )
            gradient, objective = gradient[is_active], objective[is_active]
        if not active.size:
            return results
        for i in range(classes):
            diagonal = quadratic[:, i, i]
            step = (objective - gradient[:, i]) / diagonal
            probabilities[:, i] += step
            objective = (objective + step * (step * diagonal + 2 * gradient[:, i])) / (
                1 + step
            ) ** 2
            gradient = (gradient + step[:, None] * quadratic[:, i]) / (1 + step)[:, None]
            probabilities /= (1 + step)[:, None]
    results[active] = probabilities
    return results


def _probit(x: Array) -> Array:
    """The normal distribution's quantiles, by Winitzki's formula for the inverse of erf."""
    y = 2 * x - 1
    log = np.log((1 - y) * (1 + y))
    half = 2 / (3.14159 * 0.147) + log / 2
    return np.asarray(np.sqrt(2) * np.sign(y) * np.sqrt(np.sqrt(half**2 - log / 0.147) - half))


_TABLE_DTYPES = {"strings": np.str_, "int64s": np.int64, "floats": np.float64, "tensor": None}


def _label_encoder(call: _Call) -> Array:
    """Each element's value in a table, or the default."""
    keys = _table(call, "keys")
    values = _table(call, "values")
    default = {"U": "_Unused", "i": -1, "f": 0.0}[values.dtype.kind]
    for name in ("default_string", "default_int64", "default_float"):
        value = call.attribute(name, None)
        if value is not None and (values.dtype.kind == "U") == isinstance(value, str):
            default = value
    default_itemsize = np.array(default).itemsize
    _bound(call.x.shape, max(values.itemsize, default_itemsize))
    table = dict(zip(keys.tolist(), values.tolist(), strict=True))
    entries = [table.get(entry, default) for entry in call.x.ravel().tolist()]
    dtype = np.str_ if values.dtype.kind == "U" else values.dtype
    return np.array(entries, dtype=dtype).reshape(call.x.shape)


def _table(call: _Call, column: str) -> Array:
    for suffix, dtype in _TABLE_DTYPES.items():
        value = call.attribute(f"{column}_{suffix}", None)
        if value is not None:
            entries = value if isinstance(value, list) else [value]
            are_texts = dtype is np.str_ or any(isinstance(entry, str) for entry in entries)
            return text_array(entries) if are_texts else np.array(value, dtype=dtype)
    raise ValueError(f"it has no {column}")


def _one_hot_encoder(call: _Call) -> Array:
    """A last axis for the categories, with a one at that of each element.

    Raises `ValueError` on an element that is none of them where the model has no row of zeros.
    """
    x, texts = call.x, call.attribute("cats_strings", None)
    integers = call.attribute("cats_int64s", [])
    categories = text_array(texts) if texts else np.array(integers, np.int64)
    _bound((*x.shape, len(categories)))
    entries = x if x.dtype.kind == "U" or texts else x.astype(np.int64)
    one_hot = entries[..., None] == categories
    if not call.attribute("zeros", 1) and not one_hot.any(axis=-1).all():
        unknown = entries[~one_hot.any(axis=-1)].ravel()[0]
        raise ValueError(f"{unknown.item()!r} is none of its categories")
    return np.asarray(one_hot, np.float64)


def _feature_vectorizer(call: _Call) -> Array:
    """Columns of all operands, one after the other, as reals."""
    _bound((sum(operand.size for operand in call.tensors),))
    rows = [x if x.ndim > 1 else x.reshape(1, -1) for x in call.tensors]
    return np.concatenate(rows, axis=1).astype(np.float64)


def _clip(call: _Call) -> Array:
    """Bounds as inputs, each of which may be left out, or as attributes."""
    low, high = (
        call.operands[index] if len(call.operands) > index else call.attribute(name, None)
        for index, name in ((1, "min"), (2, "max"))
    )
    bound_shapes = [np.asarray(bound).shape for bound in (low, high) if bound is not None]
    _bound(np.broadcast_shapes(call.x.shape, *bound_shapes))
    return np.asarray(np.clip(call.x, low, high)) if low is not None or high is not None else call.x


def _split(call: _Call) -> list[Array]:
    """Parts of given sizes, or else as equal as can be, the last one the smallest."""
    sizes = (
        call.tensors[1].ravel().tolist() if len(call.tensors) > 1 else call.attribute("split", [])
    )
    axis, part_count = call.axis(0), len(call.node.outputs)
    length = call.x.shape[axis]
    if not sizes:
        part_size = -(-length // part_count)
        sizes = [min(part_size, length - i * part_size) for i in range(part_count)]
    if sum(sizes) != length or min(sizes) < 0 or len(sizes) != part_count:
        raise ValueError(f"parts of {list(sizes)} do not fit {length}")
    return np.split(call.x, np.cumsum(sizes)[:-1].tolist(), axis=axis)


def _zip_map(call: _Call) -> Array:
    """A map for each row, by its labels in order, as ONNX Runtime has it."""
    texts, integers = (
        call.attribute(f"classlabels_{suffix}", None) for suffix in ("strings", "int64s")
    )
    labels = texts or integers
    rows = call.x.reshape(1, -1) if call.x.ndim == 1 else call.x
    if not labels or rows.ndim != 2 or rows.shape[1] != len(labels):
        raise ValueError(f"its labels do not fit {list(call.x.shape)}")
    maps = np.empty(len(rows), dtype=object)
    for index, row in enumerate(rows.tolist()):
        maps[index] = dict(sorted(zip(labels, row, strict=True)))
    return maps


_OPERATORS: dict[str, Callable[[_Call], Array | list[Array]]] = {
    "Add": _elementwise(np.add),
    "Sub": _elementwise(np.subtract),
    "Mul": _elementwise(np.multiply),
    "Div": _elementwise(np.divide),
    "Sum": _elementwise(lambda *operands: sum(operands)),
    "Exp": _elementwise(np.exp),
    "Log": _elementwise(np.log),
    "Abs": _elementwise(np.abs),
    "Neg": _elementwise(np.negative),
    "Sign": _elementwise(np.sign),
    "SoftmaxZero": _softmax_zero,
    "Probit": _elementwise(_probit),
    "PairwiseCoupling": _coupling,
    "Not": _elementwise(np.logical_not),
    "Tanh": _elementwise(np.tanh),
    "Greater": _elementwise(np.greater),
    "Less": _elementwise(np.less),
    "Reciprocal": _elementwise(lambda x: 1.0 / x),
    "Sigmoid": _elementwise(sigmoid),
    "Binarizer": lambda call: (call.x > call.number("threshold", 0.0)).astype(np.float64),
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "Normalizer": _normalizer,
    "Cast": _cast,
    "Dropout": lambda call: call.x,
    "Identity": lambda call: call.x,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Concat": _concat,
    "Slice": _slice,
    "Gather": lambda call: _take(call.x, call.tensors[1], call.axis(0)),
    "ArrayFeatureExtractor": _feature_extractor,
    "ReduceSum": _reduce(np.sum),
    "ReduceMean": _reduce(np.mean),
    "ReduceMax": _reduce(np.max),
    "ReduceLogSumExp": _reduce(_log_sum_exp),
    "ArgMax": _arg_extreme,
    "ArgMin": _arg_extreme,
    "TopK": _top_k,
    "LabelEncoder": _label_encoder,
    "Clip": _clip,
    "Equal": _elementwise(np.equal),
    "Floor": _elementwise(np.floor),
    "IsNaN": _elementwise(np.isnan),
    "Max": _elementwise(lambda *operands: reduce(np.maximum, operands)),
    "Min": _elementwise(lambda *operands: reduce(np.minimum, operands)),
    "Pow": _elementwise(np.power),
    "Sqrt": _elementwise(np.sqrt),
    "Where": _elementwise(np.where),
    "Split": _split,
    "FeatureVectorizer": _feature_vectorizer,
    "Imputer": _imputer,
    "OneHotEncoder": _one_hot_encoder,
    "Scaler": _scaler,
    "ZipMap": _zip_map,
}
