"""What a document from outside may say: dataclasses whose fields tell how they are read.

One declaration serves three ends: it reads a TOML table or a JSON object with errors that say what
is wrong, where, and what is possible; it makes the JSON schema of the OpenAPI document; and it
makes the tables of options in the documentation.
"""

from __future__ import annotations

import dataclasses
import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

from privet.errors import Misuse

T = TypeVar("T")


class ValueKind(Protocol):
    """How a field's value is read and described."""

    def read(self, value: Any) -> Any:
        """The value as the field holds it; `ValueError` with what is possible instead."""

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the value."""


@dataclass(frozen=True)
class Text:
    """Text: one of `choices` if there are any, else up to `longest` characters of `pattern`."""

    choices: tuple[str, ...] = ()
    pattern: str = r"[^\x00-\x1f]*"
    longest: int = 200

    def read(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError("a text")
        if self.choices and value not in self.choices:
            raise ValueError(f"one of {', '.join(self.choices)}")
        if len(value) > self.longest or not self._matches(value):
            raise ValueError(f"at most {self.longest} characters that match {self.pattern}")
        return value

    @cached_property
    def _matches(self) -> Callable[[str], re.Match[str] | None]:
        return re.compile(self.pattern).fullmatch

    def schema(self) -> dict[str, Any]:
        if self.choices:
            return {"type": "string", "enum": list(self.choices)}
        return {"type": "string", "maxLength": self.longest, "pattern": f"^{self.pattern}$"}


@dataclass(frozen=True)
class Integer:
    """A whole number from `least` to `most`."""

    least: int
    most: int

    def read(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"a whole number from {self.least} to {self.most}")
        if not self.least <= value <= self.most:
            raise ValueError(f"{self.least} to {self.most}")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Sizes:
    """One of several whole numbers."""

    choices: tuple[int, ...]

    def read(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value not in self.choices:
            raise ValueError(f"one of {', '.join(map(str, self.choices))}")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "enum": list(self.choices)}


@dataclass(frozen=True)
class Number:
    """A finite number from `least` to `most`."""

    least: float
    most: float

    def read(self, value: Any) -> float:
        possible = f"a number from {self.least:g} to {self.most:g}"
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(possible)
        if not math.isfinite(value) or not self.least <= value <= self.most:
            raise ValueError(possible)
        return float(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "number", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError("true or false")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Several:
    """A list of `least` to `most` values of one kind, all different unless they may `repeat`."""

    each: ValueKind
    least: int = 1
    most: int = 16
    repeat: bool = False

    def read(self, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)) or not self.least <= len(value) <= self.most:
            raise ValueError(f"a list of {self.least} to {self.most} values")
        items = tuple(self.each.read(item) for item in value)
        if not self.repeat and len(set(items)) != len(items):
            raise ValueError("each value once")
        return items

    def schema(self) -> dict[str, Any]:
        limits = {"minItems": self.least, "maxItems": self.most, "uniqueItems": not self.repeat}
        return {"type": "array", "items": self.each.schema(), **limits}


@dataclass(frozen=True)
class SchemaPart:
    """An object or a table of its own, read as the dataclass `of`."""

    of: type[Any]

    def read(self, value: Any) -> Any:
        try:
            return read(self.of, value, "")
        except Misuse as error:
            raise ValueError(f"a table in which {error}") from error

    def schema(self) -> dict[str, Any]:
        return schema(self.of)


def option(kind: ValueKind, about: str, default: Any = None) -> Any:
    """A dataclass field that is read as `kind`; it may be left out, and is `default` then."""
    return dataclasses.field(default=default, metadata=described(kind, about))


@dataclass(frozen=True)
class SchemaEntry:
    """A name that a document may have: how its value is read, what it is for, and its default."""

    name: str
    kind: ValueKind
    about: str
    default: Any = None


def entries(*those: SchemaEntry) -> Any:
    """A dataclass field that holds, by name, what the document says under these names, which are
    beside those of the other fields; what it leaves out is not there."""
    return dataclasses.field(default_factory=dict, metadata={"entries": those})


def described(kind: ValueKind, about: str) -> dict[str, Any]:
    """The metadata of a dataclass field that is read as `kind`."""
    return {"kind": kind, "about": about}


def read(into: type[T], document: Any, source: str) -> T:
    """The dataclass `into` from a TOML table or a JSON object; null means left out. Raises `Misuse`
    that names `source`, the field, what is wrong with it, and what is possible."""
    start = f"{source}: " if source else ""
    if not isinstance(document, Mapping):
        raise Misuse(f"{start}an object with named fields is needed")
    if not document:
        return into()
    fields_by_name = _entries(into)
    unknown = [str(name) for name in document if name not in fields_by_name]
    if unknown:
        raise Misuse(
            f"{start}{', '.join(unknown)} is not known; known are {', '.join(fields_by_name)}"
        )
    values: dict[str, Any] = {}
    for name, value in document.items():
        if value is None:
            continue
        entry, field = fields_by_name[name]
        try:
            parsed = entry.kind.read(value)
        except ValueError as error:
            raise Misuse(f"{start}{name} is {_abbreviated(value)}; possible: {error}") from error
        if field == name:
            values[name] = parsed
        else:
            values.setdefault(field, {})[name] = parsed
    return into(**values)


def setting(of: type[Any], text: str) -> tuple[str, Any]:
    """A field of a dataclass from `name=value` on a command line: a value of TOML, or a plain word,
    or several of them with commas between. Raises `Misuse` if it has not that form; `read` checks
    name and value."""
    name, equals, word = text.partition("=")
    if not equals:
        raise Misuse(f"{text!r} sets nothing: write NAME=VALUE")
    value = _toml_value(word)
    entry, _ = _entries(of).get(name, (None, ""))
    if entry is not None and isinstance(entry.kind, Several) and not isinstance(value, list):
        words = word.split(",")
        value = (
            words if isinstance(entry.kind.each, Text) else [_toml_value(each) for each in words]
        )
    return name, value


def _toml_value(word: str) -> Any:
    """A value of TOML, or else a plain word."""
    try:
        return tomllib.loads(f"value = {word}")["value"]
    except tomllib.TOMLDecodeError:
        return word


def schema(of: type[Any]) -> dict[str, Any]:
    """The JSON schema of a dataclass."""
    properties = {}
    for entry, _ in _entries(of).values():
        properties[entry.name] = {**entry.kind.schema(), "description": entry.about}
        if entry.default is not None and not dataclasses.is_dataclass(entry.default):
            properties[entry.name]["default"] = entry.default
    return {"type": "object", "additionalProperties": False, "properties": properties}


def table(of: type[Any]) -> str:
    """The fields of a dataclass as a Markdown table: name, default, meaning."""
    rows = ["| Option | Default | Meaning |", "|---|---|---|"]
    for entry, _ in _entries(of).values():
        default = "" if entry.default is None else f"`{_toml(entry.default)}`"
        if not isinstance(entry.kind, SchemaPart):
            rows.append(f"| `{entry.name}` | {default} | {entry.about} |")
    return "\n".join(rows) + "\n"


def _entries(config_type: type[Any]) -> dict[str, tuple[SchemaEntry, str]]:
    """What a document may have, by name, with the fields that hold it; each call asks this of its
    form."""
    if config_type not in _ENTRIES:
        entries: dict[str, tuple[SchemaEntry, str]] = {}
        for field in dataclasses.fields(config_type):
            metadata = field.metadata
            if "kind" in metadata:
                entry = SchemaEntry(
                    field.name, metadata["kind"], metadata["about"], _default(field)
                )
                entries[entry.name] = entry, field.name
            entries |= {entry.name: (entry, field.name) for entry in metadata.get("entries", ())}
        _ENTRIES[config_type] = entries
    return _ENTRIES[config_type]


_ENTRIES: dict[type[Any], dict[str, tuple[SchemaEntry, str]]] = {}


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _abbreviated(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
