"""Static shapes for a model's inputs: what the model says, completed by what the user gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from privet.compiler.graph.operations import Shape
from privet.errors import InvalidModel

InputShapes = Mapping[str, Sequence[int]]

WHOLE = frozenset(
    {
        onnx.TensorProto.BOOL,
        *(onnx.TensorProto.INT8, onnx.TensorProto.INT16),
        *(onnx.TensorProto.INT32, onnx.TensorProto.INT64),
        *(onnx.TensorProto.UINT8, onnx.TensorProto.UINT16),
        *(onnx.TensorProto.UINT32, onnx.TensorProto.UINT64),
    }
)
"""Types of inputs that are whole numbers, or true and false as 1 and 0."""

FLOATS = frozenset(
    {
        *(onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE),
        *(onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16),
    }
)


def resolve(model: onnx.ModelProto, user_shapes: InputShapes | None) -> dict[str, Shape]:
    """The shape of each graph input that is a tensor and no initialiser.

    A dynamic first axis (the batch) is 1 unless `user_shapes` says otherwise; any other dynamic
    axis must be given. Axes of one name have one length.

    Raises `InvalidModel` if a shape is missing, does not fit the model, or names no input.
    """
    user_shapes = dict(user_shapes or {})
    initializers = {tensor.name for tensor in model.graph.initializer}
    entries = [
        entry
        for entry in model.graph.input
        if entry.name not in initializers and entry.type.HasField("tensor_type")
    ]
    lengths = _lengths(entries, user_shapes)
    shapes = {
        entry.name: _shape(entry, user_shapes.pop(entry.name, None), lengths) for entry in entries
    }
    if user_shapes:
        names = ", ".join(shapes) or "none"
        raise InvalidModel(
            f"the model has no input {next(iter(user_shapes))!r}; its inputs: {names}"
        )
    return shapes


def _lengths(entries: Sequence[onnx.ValueInfoProto], user_shapes: InputShapes) -> dict[str, int]:
    """Lengths of axes by their names: those that `user_shapes` has for an input; else a first axis
    is the batch, which is 1, wherever an input has it."""
    batches: dict[str, int] = {}
    lengths: dict[str, int] = {}
    for entry in entries:
        names = [axis.dim_param for axis in entry.type.tensor_type.shape.dim]
        lengths.update(zip(names, user_shapes.get(entry.name, ()), strict=False))
        batches.update((name, 1) for name in names[:1])
    named_lengths = {**batches, **lengths}
    named_lengths.pop("", None)
    return named_lengths


def _shape(
    entry: onnx.ValueInfoProto, user_shape: Sequence[int] | None, lengths: Mapping[str, int]
) -> Shape:
    tensor = entry.type.tensor_type
    declared: list[int | None] | None = None
    if tensor.HasField("shape"):
        dims = tensor.shape.dim
        declared = [d.dim_value if d.HasField("dim_value") else None for d in dims]
        if any(size is not None and size < 1 for size in declared):
            raise InvalidModel(
                f"input {entry.name!r} has shape {_shape_text(declared)}, with an axis that holds "
                "nothing: export the model with a symbolic axis there, or with its length"
            )
    if user_shape is not None:
        shape = tuple(int(size) for size in user_shape)
        fits = declared is None or (
            len(declared) == len(shape)
            and all(d in (None, s) for d, s in zip(declared, shape, strict=True))
        )
        if not fits or any(size < 1 for size in shape):
            raise InvalidModel(
                f"the shape {list(shape)} given for input {entry.name!r} does not fit the model's "
                f"{_shape_text(declared)}"
            )
        return shape
    names = [axis.dim_param for axis in tensor.shape.dim]
    sizes = [
        lengths.get(name) if size is None else size
        for name, size in zip(names, declared or [], strict=True)
    ]
    if declared is None or None in sizes[1:]:
        axis_texts = [
            name.upper() or "N" if size is None else str(size)
            for name, size in zip(names, sizes, strict=True)
        ]
        example = "1,..." if declared is None else ",".join(axis_texts)
        raise InvalidModel(
            f"input {entry.name!r} has no static shape ({_shape_text(declared)}): give each axis a "
            f"length: --shape {entry.name}={example}; in Python input_shapes, in config.toml shapes"
        )
    return tuple(1 if size is None else size for size in sizes)


def _shape_text(declared: Sequence[int | None] | None) -> str:
    if declared is None:
        return "unknown rank"
    return "[" + ", ".join("?" if size is None else str(size) for size in declared) + "]"
