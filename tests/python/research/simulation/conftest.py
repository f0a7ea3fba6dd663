"""Figures for the end of the run, under a name that leaves `figures` to the simulator."""

from __future__ import annotations

import pytest


@pytest.fixture
def summary(figures: list[str]) -> list[str]:
    """Lines appended here appear in the run's closing summary."""
    return figures
