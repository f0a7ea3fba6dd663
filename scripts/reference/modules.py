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
    types = [value for value in vars(errors).values() if inspect.isclass(value)]
    exceptions = [
        kind
        for kind in types
        if issubclass(kind, Exception) and kind.__module__.startswith("privet")
    ]
    return [
        exception.__name__
        for exception in sorted(exceptions, key=lambda kind: (len(kind.__mro__), kind.__name__))
    ]


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
    parameters = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    texts = list(_parameters(parameters))
    inside = ", ".join(texts)
    if len(name) + len(inside) > 80:
        inside = "\n" + "".join(f"    {text},\n" for text in texts)
    result = _type(signature.return_annotation)
    arrow = f" -> {result}" if result not in ("", "None") else ""
    return f"```python\n{name}({inside}){arrow}\n```"


def _parameters(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Each with its type and default, and the mark after which they are given by name."""
    has_star = False
    for parameter in parameters:
        has_star |= parameter.kind is parameter.VAR_POSITIONAL
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            has_star = True
            yield "*"
        stars = "*" * (parameter.kind is parameter.VAR_POSITIONAL) + "**" * (
            parameter.kind is parameter.VAR_KEYWORD
        )
        kind = (
            f": {_type(parameter.annotation)}"
            if parameter.annotation is not parameter.empty
            else ""
        )
        default = "" if parameter.default is parameter.empty else f" = {_value(parameter.default)}"
        yield f"{stars}{parameter.name}{kind}{default}"


def _value(default: Any) -> str:
    """A default as one writes it; `...` for one that is made when it is needed."""
    text = repr(default)
    return "..." if text.startswith("<") else text


def _type(annotation: Any) -> str:
    """A type by its last name, as a reader would import it."""
    if annotation is inspect.Signature.empty:
        return ""
    text = annotation.__name__ if inspect.isclass(annotation) else str(annotation)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=\w)", "", text)


def _text(item: Any) -> str:
    """A docstring as Markdown, its headings as bold lines."""
    return re.sub(r"^#+ (.+)$", r"**\1.**", inspect.getdoc(item) or "", flags=re.M)
