"""Reading an ONNX model: from a path, bytes or a `ModelProto`, checked, functions inlined."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import onnx.inliner
from google.protobuf.message import DecodeError

from privet.errors import InvalidModel

ModelSource = str | os.PathLike[str] | bytes | onnx.ModelProto
DEFAULT_DOMAINS = ("", "ai.onnx")
ML = "ai.onnx.ml"
"""The domain of traditional machine learning."""


def load_model(source: ModelSource) -> onnx.ModelProto:
    """The model, with external data loaded and its local functions inlined.

    # Errors
    `InvalidModel` if it cannot be read or breaks the ONNX specification.
    """
    try:
        model = _read(source)
        onnx.checker.check_model(model)
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
    except OSError as error:
        raise InvalidModel(f"{source!s} cannot be read: {error.strerror or error}") from error
    except (DecodeError, onnx.checker.ValidationError, ValueError) as error:
        raise InvalidModel(f"{_title(source)} is not a valid ONNX model: {error}") from error
    if not model.graph.output:
        raise InvalidModel(f"{_title(source)} has no output")
    return model


def model_name(source: ModelSource, model: onnx.ModelProto) -> str:
    """A name for people: the file's, else the graph's."""
    if isinstance(source, str | os.PathLike):
        return Path(source).stem
    return model.graph.name or "model"


def opset_of(model: onnx.ModelProto) -> int:
    """The version of the default operator set."""
    for entry in model.opset_import:
        if entry.domain in DEFAULT_DOMAINS:
            return int(entry.version)
    return onnx.defs.onnx_opset_version()


def _read(source: ModelSource) -> onnx.ModelProto:
    if isinstance(source, onnx.ModelProto):
        return source
    if isinstance(source, bytes):
        return onnx.load_from_string(source)
    return onnx.load(source)


def _title(source: ModelSource) -> str:
    return str(source) if isinstance(source, str | os.PathLike) else "the model"
