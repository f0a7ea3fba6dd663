"""Between the integer graph's operations and their form in the program file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privet.compiler.graph.operations import OPERATIONS, Array, Operation, Shape


def encode(operation: Operation, prefix: str) -> tuple[str, dict[str, Any], dict[str, Array]]:
    """Name, attributes and private tensors of an operation; tensor names start with `prefix`."""
    assert operation.name, f"a pass removes {type(operation).__name__}"
    return operation.name, *operation.form(prefix)


def decode(
    name: str, attributes: Mapping[str, Any], shape: Shape, tensors: Mapping[str, Array]
) -> Operation:
    """The operation that `encode` wrote; `shape` is the output's.

    Raises `KeyError`, `TypeError` or `ValueError` on attributes that do not belong.
    """
    operation_type = OPERATIONS.get(name)
    if operation_type is None:
        raise ValueError(f"there is no operation {name!r}")
    unread = {
        key: tuple(value) if isinstance(value, list) else value for key, value in attributes.items()
    }
    operation = operation_type.read(unread, shape, tensors)
    if unread:
        raise ValueError(f"unknown attribute {next(iter(unread))!r}")
    return operation
