"""The Python package's public names with their signatures, from docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import privet
from privet import errors


def reference() -> str:
    """`privet` itself and its errors."""
    package = _module("privet", privet, privet.__all__)
    return f"{package}\n\n{_module('privet.errors', errors, _errors())}\n"


def _errors() -> list[str]:
    """All exceptions, each after the one that it derives from."""
    types = [it for it in vars(errors).values() if inspect.isclass(it)]
    ours = [it for it in types if issubclass(it, Exception) and it.__module__.startswith("privet")]
    return [it.__name__ for it in sorted(ours, key=lambda it: (len(it.__mro__), it.__name__))]


def _module(path: str, module: Any, names: list[str]) -> str:
    entries = [entry(name, getattr(module, name)) for name in names if not name.startswith("_")]
    return "\n\n".join([f"## `{path}`", _text(module), *entries])


def entry(name: str, item: Any) -> str:
    """One public name: its signature, what it says of itself, and its public methods."""
    if inspect.isclass(item):
        return "\n\n".join([f"### `{name}`", *_class(name, item)])
    if callable(item):
        return f"### `{name}`\n\n{_signature(name, item)}\n\n{_text(item)}"
    return f"### `{name}`\n\n`{item!r}`"


def _class(name: str, item: type) -> Iterator[str]:
    if issubclass(item, Exception):
        yield f"Derives from `{item.__mro__[1].__name__}`."
    else:
        yield _signature(name, item)
    yield _text(item)
    for member, value in vars(item).items():
        if member.startswith("_") or _inherits(item, member):
            continue
        if isinstance(value, property):
            yield f"**`{name}.{member}`** {_text(value)}"
        elif inspect.isroutine(method := getattr(item, member)):
            yield f"**`{name}.{member}`**\n\n{_signature(member, method)}\n\n{_text(value)}"


def _inherits(item: type, member: str) -> bool:
    return issubclass(item, Exception) and member in ("add_note", "with_traceback", "args")


def _signature(name: str, item: Any) -> str:
    try:
        signature = inspect.signature(item)
    except (TypeError, ValueError):  # of the native module, without a signature
        return f"```python\n{name}(...)\n```"
    given = [it for it in signature.parameters.values() if it.name not in ("self", "cls")]
    shown = list(_parameters(given))
    inside = ", ".join(shown)
    if len(name) + len(inside) > 80:
        inside = "\n" + "".join(f"    {it},\n" for it in shown)
    result = _type(signature.return_annotation)
    arrow = f" -> {result}" if result not in ("", "None") else ""
    return f"```python\n{name}({inside}){arrow}\n```"


def _parameters(given: list[inspect.Parameter]) -> Iterator[str]:
    """Each with its type and default, and the mark after which they are given by name."""
    marked = False
    for it in given:
        marked |= it.kind is it.VAR_POSITIONAL
        if it.kind is it.KEYWORD_ONLY and not marked:
            marked = True
            yield "*"
        stars = "*" * (it.kind is it.VAR_POSITIONAL) + "**" * (it.kind is it.VAR_KEYWORD)
        kind = f": {_type(it.annotation)}" if it.annotation is not it.empty else ""
        default = "" if it.default is it.empty else f" = {_value(it.default)}"
        yield f"{stars}{it.name}{kind}{default}"


def _value(default: Any) -> str:
    """A default as one writes it; `...` for one that is made when it is needed."""
    shown = repr(default)
    return "..." if shown.startswith("<") else shown


def _type(annotation: Any) -> str:
    """A type by its last name, as a reader would import it."""
    if annotation is inspect.Signature.empty:
        return ""
    shown = annotation.__name__ if inspect.isclass(annotation) else str(annotation)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=\w)", "", shown)


def _text(item: Any) -> str:
    """A docstring as Markdown, its headings as bold lines."""
    return re.sub(r"^#+ (.+)$", r"**\1.**", inspect.getdoc(item) or "", flags=re.M)
