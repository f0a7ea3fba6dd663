"""Whether licences are accepted: SPDX expressions against the list in deny.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path

from .component import ROOT, Component


def accepted(path: Path = ROOT / "deny.toml") -> set[str]:
    """The licences that deny.toml allows."""
    return set(tomllib.loads(path.read_text())["licenses"]["allow"])


def is_accepted(expression: str, allowed: Collection[str]) -> bool:
    """Whether an expression of OR, AND, WITH and parentheses can be met by what is allowed."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression)
    if not tokens:
        return False
    is_met, remainder = _either(tokens, allowed)
    return is_met and not remainder


def _either(tokens: list[str], allowed: Collection[str]) -> tuple[bool, list[str]]:
    is_met, tokens = _both(tokens, allowed)
    while tokens[:1] == ["OR"]:
        other, tokens = _both(tokens[1:], allowed)
        is_met = is_met or other
    return is_met, tokens


def _both(tokens: list[str], allowed: Collection[str]) -> tuple[bool, list[str]]:
    is_met, tokens = _one(tokens, allowed)
    while tokens[:1] == ["AND"]:
        other, tokens = _one(tokens[1:], allowed)
        is_met = is_met and other
    return is_met, tokens


def _one(tokens: list[str], allowed: Collection[str]) -> tuple[bool, list[str]]:
    if not tokens:
        return False, []
    if tokens[0] == "(":
        is_met, remainder = _either(tokens[1:], allowed)
        return is_met and remainder[:1] == [")"], remainder[1:]
    if tokens[1:2] == ["WITH"]:
        return " ".join(tokens[:3]) in allowed, tokens[3:]
    return tokens[0] in allowed, tokens[1:]


def refused(components: Iterable[Component], allowed: Collection[str]) -> list[str]:
    """A line for each component whose licence is unknown or not allowed."""
    return [
        f"{component.purl}: {component.license or 'no licence was found'}"
        for component in sorted(components)
        if not is_accepted(component.license, allowed)
    ]
