"""Bodies of the REST protocol: JSON, and after it, by Triton's extension, tensors as raw bytes.

The header `Inference-Header-Content-Length` says how many bytes of the body are JSON. A tensor with
the parameter `binary_data_size` has that many bytes after it, in the order of the tensors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from privet.errors import InputError
from privet.gateway.oip.exchange import InferenceRequest, InferenceResponse
from privet.gateway.oip.tensors import Array, TextRoom, from_numbers, from_raw, to_data, to_raw

HEADER = "Inference-Header-Content-Length"

SIZE = "binary_data_size"
"""Parameter of a tensor."""

WANTED = "binary_data"
"""Parameter of an output that is asked for."""

ALL_WANTED = "binary_data_output"
"""Parameter of a request, for outputs that do not say."""

_LENGTH = re.compile(r"[0-9]{1,18}")

UNSUPPORTED = ("classification", "shared_memory_region")


class Body:
    """A request's body, taken apart. Raises `InputError` if it is not what the protocol says."""

    def __init__(self, model: str, version: str, body: bytes, header: str | None) -> None:
        length = len(body) if header is None else _length(header, len(body))
        document = _parse(body[:length])
        tail = _Tail(body[length:])
        self._parameters = _part(document, "parameters", dict)
        self._outputs = _part(document, "outputs", list)
        inputs, room = {}, TextRoom()
        for tensor in _part(document, "inputs", list):
            name = _text(tensor, "name")
            if name in inputs:
                raise InputError(f"input {name} is given twice")
            inputs[name] = _tensor(name, tensor, tail, room)
        tail.end()
        self.question = InferenceRequest(
            model,
            version,
            _text(document, "id", ""),
            self._parameters,
            inputs,
            tuple(_output(output) for output in self._outputs),
        )

    def answer(self, answer: InferenceResponse) -> tuple[bytes, int | None]:
        """The answer's body as the request wants it; how many bytes of it are JSON, if not all."""
        outputs: list[dict[str, Any]] = []
        tail = b""
        for name, (datatype, array) in answer.outputs.items():
            output: dict[str, Any] = {
                "name": name,
                "datatype": datatype,
                "shape": list(array.shape),
            }
            if self._is_binary(name):
                raw = to_raw(array, datatype)
                output["parameters"] = {SIZE: len(raw)}
                tail += raw
            else:
                output["data"] = to_data(array, datatype)
            outputs.append(output)
        document: dict[str, Any] = {"model_name": answer.model, "outputs": outputs}
        document |= {"model_version": answer.version, "id": answer.id}
        document["parameters"] = dict(answer.parameters)
        text = json.dumps({name: value for name, value in document.items() if value != ""}).encode()
        return text + tail, len(text) if tail else None

    def _is_binary(self, name: str) -> bool:
        everything = self._parameters.get(ALL_WANTED) is True
        for output in self._outputs:
            if output["name"] == name:
                return bool(_part(output, "parameters", dict).get(WANTED, everything))
        return everything


class _Tail:
    """The bytes after the JSON."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, name: str, size: Any) -> bytes:
        remaining = len(self._data) - self._at
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= remaining:
            raise InputError(f"input {name} has {SIZE} {size!r}; {remaining} bytes are left")
        data = self._data[self._at : self._at + size]
        self._at += size
        return data

    def end(self) -> None:
        remaining = len(self._data) - self._at
        if remaining:
            raise InputError(f"{remaining} bytes follow that no input has as its own")


def _length(header: str, size: int) -> int:
    if not _LENGTH.fullmatch(header) or int(header) > size:
        raise InputError(f"{HEADER} is {header!r}; the body has {size} bytes")
    return int(header)


def _parse(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the body is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise InputError("the body is no JSON object")
    return document


def _part(document: Mapping[str, Any], name: str, kind: type[Any]) -> Any:
    value = document.get(name, kind())
    if not isinstance(value, kind):
        raise InputError(f"{name!r} is no {'object' if kind is dict else 'list'}")
    return value


def _text(document: Any, name: str, default: str | None = None) -> str:
    value = document.get(name, default) if isinstance(document, dict) else None
    if not isinstance(value, str):
        raise InputError(f"{name!r} is missing, or no text")
    return value


def _tensor(name: str, tensor: dict[str, Any], tail: _Tail, room: TextRoom) -> Array:
    datatype, shape = _text(tensor, "datatype"), _part(tensor, "shape", list)
    if any(isinstance(size, bool) or not isinstance(size, int) for size in shape):
        raise InputError(f"input {name} has shape {shape}: whole numbers are needed")
    parameters = _part(tensor, "parameters", dict)
    refuse_unsupported(name, parameters)
    if SIZE in parameters:
        return from_raw(name, datatype, shape, tail.take(name, parameters[SIZE]), room)
    if "data" not in tensor:
        raise InputError(f"input {name} has no data")
    return from_numbers(name, datatype, shape, tensor["data"], room)


def _output(output: Any) -> str:
    name = _text(output, "name")
    refuse_unsupported(name, _part(output, "parameters", dict))
    return name


def refuse_unsupported(name: str, parameters: Mapping[str, Any]) -> None:
    """Raises `InputError` if the parameters of this input or output ask for what is not done."""
    for parameter in UNSUPPORTED:
        if parameters.get(parameter):
            raise InputError(f"{name}: {parameter} is no part of what this gateway does")
