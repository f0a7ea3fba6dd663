"""Privet: private predictions from ONNX models.

What the package offers is loaded when it is first used, so that `import privet` stays quick.
`from privet.compile import compile` turns a model into a program.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privet.errors import (
    InputError,
    InvalidModel,
    InvalidProgram,
    LinkError,
    MaterialError,
    Misuse,
    ModelError,
    OverflowRisk,
    PeerError,
    PeerMisbehaved,
    PrivetError,
    Problem,
    UnsupportedModel,
)

if TYPE_CHECKING:
    from privet.compile import Compiled
    from privet.executor import Execution, decode_output, encode_input, error_bound, execute
    from privet.graph import OperatorSupport, supported_operators
    from privet.program import Program, Weights

__version__ = "0.1.0"

_HOMES = {
    "Compiled": "privet.compile",
    "Execution": "privet.executor",
    "OperatorSupport": "privet.graph",
    "Program": "privet.program",
    "Weights": "privet.program",
    "decode_output": "privet.executor",
    "encode_input": "privet.executor",
    "error_bound": "privet.executor",
    "execute": "privet.executor",
    "supported_operators": "privet.graph",
}

__all__ = [
    "Compiled",
    "Execution",
    "InputError",
    "InvalidModel",
    "InvalidProgram",
    "LinkError",
    "MaterialError",
    "Misuse",
    "ModelError",
    "OperatorSupport",
    "OverflowRisk",
    "PeerError",
    "PeerMisbehaved",
    "PrivetError",
    "Problem",
    "Program",
    "UnsupportedModel",
    "Weights",
    "decode_output",
    "encode_input",
    "error_bound",
    "execute",
    "supported_operators",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'privet' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
