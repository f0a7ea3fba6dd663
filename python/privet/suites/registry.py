"""The suites that there are, by name. This is their only list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privet.errors import Misuse
from privet.suites.base import Suite
from privet.suites.ckks.config import Ckks
from privet.suites.fss import Fss
from privet.suites.gmw import Gmw
from privet.suites.material.suite import MaterialSuite
from privet.suites.options import fields_of
from privet.suites.stream.config import Stream

_SUITES: dict[str, type[Suite]] = {
    suite_class.name: suite_class for suite_class in (Gmw, Fss, Ckks, Stream)
}

PREPARED = tuple(
    suite_class.name for suite_class in _SUITES.values() if issubclass(suite_class, MaterialSuite)
)
"""Names of the suites that make material ahead of time."""

DEFAULT: Suite = Gmw()
"""What is taken where nobody chooses."""


def register(suite: type[Suite]) -> None:
    """Adds a suite."""
    _SUITES[suite.name] = suite


def names() -> tuple[str, ...]:
    """The names of all suites."""
    return tuple(_SUITES)


def all_suites() -> tuple[type[Suite], ...]:
    """All suites."""
    return tuple(_SUITES.values())


def suite_type(name: str) -> type[Suite]:
    """The suite of a name. Raises `Misuse` if there is none."""
    if name not in _SUITES:
        raise Misuse(f"the suite is {name!r}; possible are {', '.join(_SUITES)}")
    return _SUITES[name]


def as_suite(suite: Suite | str) -> Suite:
    """A suite with its options; a name means its defaults. Raises `Misuse` if there is no suite of
    that name, or it is no suite at all."""
    if isinstance(suite, str):
        return suite_type(suite)()
    if not isinstance(suite, Suite):
        raise Misuse(
            f"the suite is {suite!r}; give one with its options, such as privet.Gmw(), or the name "
            f"of one: {', '.join(_SUITES)}"
        )
    return suite


def from_options(name: str, options: Mapping[str, Any]) -> Suite:
    """The suite of a name with options by the names of its fields. Raises `Misuse` if there is no
    such suite, or it has no such option; the message names the suites that have it."""
    suite_class = suite_type(name)
    option_names = {field.name for field in fields_of(suite_class)}
    for option in options:
        if option not in option_names and (having := owners(option)):
            raise Misuse(f"{option} is an option of suite {' and '.join(having)}, not of {name}")
    return suite_class.from_options(options)


def owners(option: str) -> list[str]:
    """The names of the suites that have an option."""
    return [
        name
        for name, suite_class in _SUITES.items()
        if any(field.name == option for field in fields_of(suite_class))
    ]


def from_json(document: Any) -> Suite:
    """The suite that `Suite.to_json` wrote. Raises `Misuse` if it is none."""
    if not isinstance(document, Mapping) or not isinstance(document.get("suite"), str):
        raise Misuse("a suite in JSON is an object with the suite's name under `suite`")
    return suite_type(document["suite"]).from_json(document)


def from_label(label: str) -> Suite:
    """The suite with its options of which `label` is the label. Raises `Misuse` if there is
    none."""
    for suite_class in _SUITES.values():
        if (suite := suite_class.from_label(label)) is not None:
            return suite
    raise Misuse(f"there is no suite {label!r}")
