"""Fixtures for all tests, and the figures that tests measured, printed at the end of the run."""

from __future__ import annotations

import pytest
from tests.sessions import key_folder, session

__all__ = ["figures", "key_folder", "session"]

_FIGURES: list[str] = []


@pytest.fixture
def figures() -> list[str]:
    """Lines appended here appear in the run's closing summary."""
    return _FIGURES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the figures."""
    if _FIGURES:
        terminalreporter.section("figures")
        for line in _FIGURES:
            terminalreporter.write_line(line)
