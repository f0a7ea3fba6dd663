"""Privet: private predictions from ONNX models.

`compile` turns a model into a program; `Server` offers it and `Client` queries it over TLS;
`Gmw`, `Fss`, `Ckks` and `Stream` are the suites with their options; `ServiceClient` queries a
service of many models (`privet serve`); `run` does both on this machine and compares with the
plaintext model; `plan` advises which suite to take.
Errors are in `privet.errors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privet import errors as errors
from privet.lazy import attach

if TYPE_CHECKING:
    from privet.compiler.compile import Compiled, load
    from privet.gateway import ServiceClient
    from privet.planner import plan
    from privet.runtime import (
        Client,
        Credentials,
        Dealer,
        Link,
        Result,
        Run,
        Server,
        run,
    )
    from privet.suites import Ckks, Fss, Gmw, Stream, Suite, compile

__version__ = "0.2.0"

__all__ = [
    "Ckks",
    "Client",
    "Compiled",
    "Credentials",
    "Dealer",
    "Fss",
    "Gmw",
    "Link",
    "Result",
    "Run",
    "Server",
    "ServiceClient",
    "Stream",
    "Suite",
    "__version__",
    "compile",
    "load",
    "plan",
    "run",
]


__getattr__ = attach(
    __name__,
    {
        "privet.compiler.compile": ("Compiled", "load"),
        "privet.gateway": ("ServiceClient",),
        "privet.runtime": (
            "Client",
            "Credentials",
            "Dealer",
            "Link",
            "Result",
            "Run",
            "Server",
            "run",
        ),
        "privet.planner": ("plan",),
        "privet.suites": ("Ckks", "Fss", "Gmw", "Stream", "Suite", "compile"),
    },
)
