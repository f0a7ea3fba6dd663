"""Privet: private predictions from ONNX models.

`compile` turns a model into a program; `Server` offers it and `Client` queries it over TLS; `Pool`
keeps material ready; `Gmw`, `Fss`, `Ckks` and `Stream` are the suites with their options;
`ServiceClient` queries a service of many models (`privet serve`); `run` does
both on this machine and compares with the plaintext model; `plan` advises which
suite to take. Errors are in `privet.errors`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Not lazily: the module has the function's name, and would take its place once it is imported.
from privet.compile import Compiled, compile, load

if TYPE_CHECKING:
    from privet.gateway import ServiceClient
    from privet.parties import Client, Credentials, Dealer, Link, Pool, Result, Run, Server, run
    from privet.study import plan
    from privet.suites import Ckks, Fss, Gmw, Stream, Suite

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
    "Pool",
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


_HOMES = {
    "ServiceClient": "privet.gateway",
    "plan": "privet.study",
    **dict.fromkeys(("Ckks", "Fss", "Gmw", "Stream", "Suite"), "privet.suites"),
}


def __getattr__(name: str) -> Any:
    """Loads a name of `__all__` when it is first used, so that `import privet` stays light."""
    if name not in __all__:
        raise AttributeError(f"module 'privet' has no attribute {name!r}")
    home = _HOMES.get(name, "privet.parties")
    return getattr(import_module(home), name)
