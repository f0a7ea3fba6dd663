"""Options of suites: fields of dataclasses that say what values they take and what they are for.

From one declaration come the check of a value in Python, the options of commands, and what JSON may
say.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from privet.errors import Misuse

_KEY = "option"


@dataclass(frozen=True)
class Option:
    """What a field holds: one of `choices`, or a number from `low` to `high`, or (without either) a
    switch that is off by default.

    `about` is the help text, `what` names the value in messages. A field whose default is None may
    be left open.
    """

    about: str
    what: str
    choices: tuple[str | int, ...] = ()
    low: int | None = None
    high: int | None = None

    @property
    def kind(self) -> type[str] | type[int] | type[bool]:
        """The type of a value."""
        if self.choices:
            return type(self.choices[0])
        return bool if self.low is None else int

    @property
    def metavar(self) -> str:
        """What commands show in place of a value."""
        return "|".join(map(str, self.choices)) if self.choices else "N"

    def fault(self, value: object) -> str | None:
        """What is wrong with a value; None if nothing is."""
        if self.choices:
            if value in self.choices and not isinstance(value, bool):
                return None
            possible = ", ".join(map(str, self.choices))
            return f"{self.what} is {value!r}; possible are {possible}"
        if self.low is None or self.high is None:
            return None if type(value) is bool else f"{self.what} is {value!r}, not on or off"
        if type(value) is int and self.low <= value <= self.high:
            return None
        return f"{self.what} is {value!r}; possible are {self.low} to {self.high}"


def choice(default: Any, choices: tuple[str | int, ...], about: str, what: str) -> Any:
    """A field with one of `choices`."""
    return dataclasses.field(default=default, metadata={_KEY: Option(about, what, choices)})


def number(default: Any, low: int, high: int, about: str, what: str) -> Any:
    """A field with a whole number from `low` to `high`."""
    option = Option(about, what, low=low, high=high)
    return dataclasses.field(default=default, metadata={_KEY: option})


def switch(about: str, what: str) -> Any:
    """A field that is on or off, and off by default."""
    return dataclasses.field(default=False, metadata={_KEY: Option(about, what)})


@dataclass(frozen=True)
class Field:
    """An option by the name of its field, with its default."""

    name: str
    default: Any
    option: Option

    @property
    def flag(self) -> str:
        """How commands call it."""
        return "--" + self.name.replace("_", "-")


def fields_of(of: type[Any]) -> Iterator[Field]:
    """The options of a dataclass."""
    yield from _fields(cast(Hashable, of))


@functools.lru_cache(maxsize=64)
def _fields(config: Any) -> tuple[Field, ...]:
    return tuple(
        Field(field.name, field.default, field.metadata[_KEY])
        for field in dataclasses.fields(config)
    )


def check_fields(instance: Any) -> None:
    """Raises `Misuse` unless every field of a dataclass holds what its option takes."""
    for field in fields_of(type(instance)):
        value = getattr(instance, field.name)
        if value is None and field.default is None:
            continue
        if fault := field.option.fault(value):
            raise Misuse(fault)
