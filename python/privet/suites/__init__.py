"""The ways to run a program privately; each suite is one module with the same interface."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from privet.errors import Misuse
from privet.suites import gmw

SUITES: Mapping[str, ModuleType] = {"gmw": gmw}


def check_suite(name: str) -> None:
    """Raises `Misuse` unless there is a suite `name`."""
    if name not in SUITES:
        raise Misuse(f"there is no suite {name!r}; this release has: {', '.join(SUITES)}")


__all__ = ["SUITES", "check_suite", "gmw"]
