"""The supported ONNX operators: one importer each, and the table that documents them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from privet.compiler.graph.site import Operand, Site, TensorList

    Importer = Callable[[Site], Operand | TensorList | tuple[Operand, ...]]

Registered = TypeVar("Registered", bound="Importer")

OLDEST_OPSET = 6
"""The oldest opset of the default domain that the importers know."""


@dataclass(frozen=True)
class OperatorSupport:
    """A row of the table of supported operators.

    `since` is the first opset whose form of the operator is understood; every later form up to
    the newest that the `onnx` package knows is too. `restrictions` says what is not.
    """

    name: str
    domain: str
    since: int
    restrictions: str


_IMPORTERS: dict[str, Importer] = {}
_SUPPORT: dict[str, OperatorSupport] = {}


def operator(
    name: str, *, domain: str = "ai.onnx", since: int = OLDEST_OPSET, restrictions: str = ""
) -> Callable[[Registered], Registered]:
    """Registers the decorated function as the importer of `name`."""

    def register(importer: Registered) -> Registered:
        _IMPORTERS[name] = importer
        _SUPPORT[name] = OperatorSupport(name, domain, since, restrictions)
        return importer

    return register


def importer(name: str) -> Importer | None:
    """The importer of an operator of the domains ai.onnx and ai.onnx.ml, if there is one."""
    _load()
    return _IMPORTERS.get(name)


def supported_operators() -> list[OperatorSupport]:
    """Every operator that a private value may go through, by name.

    Operators whose inputs are all constants are computed while the model is read, whichever they
    are, and so need no place here.
    """
    _load()
    return [_SUPPORT[name] for name in sorted(_SUPPORT)]


def _load() -> None:
    from privet.compiler.graph import operators

    assert operators
