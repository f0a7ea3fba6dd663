"""Combinations of two parameters, of which the default run takes so few that each value occurs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet


def combinations(first: Sequence[Any], second: Sequence[Any]) -> list[ParameterSet]:
    """All pairs; those that the default run does not take are slow.

    It takes one pair for each value of the longer sequence, and those of the shorter by turns.
    """
    size = max(len(first), len(second))
    taken = {(index % len(first), index % len(second)) for index in range(size)}
    return [
        pytest.param(one, other, marks=() if (i, j) in taken else pytest.mark.slow)
        for i, one in enumerate(first)
        for j, other in enumerate(second)
    ]
