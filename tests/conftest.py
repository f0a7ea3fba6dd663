"""Fixtures for all tests, and the figures that tests measured, printed at the end of the run."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from tests.sessions import key_folder, session

from privet.garbage import collect_seldom

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

__all__ = ["figures", "key_folder", "session"]

_FIGURES: list[str] = []

# Of the hundreds of processes that tests start, none needs a thread of linear algebra per core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# How long an example takes says nothing on a machine that does other work.
settings.register_profile("privet", deadline=None)
settings.load_profile("privet")


@pytest.fixture
def figures() -> list[str]:
    """Lines appended here appear in the run's closing summary."""
    return _FIGURES


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The garbage collector does not look at what is imported and collected for all tests, neither
    meanwhile nor again and again: that took 0.3 s of each end-to-end test, which collects at its
    end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        collect_seldom()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker process hands its figures to the process that prints them."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["figures"] = _FIGURES


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    """Takes a worker's figures."""
    _FIGURES.extend(node.workeroutput.get("figures", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the figures."""
    if _FIGURES:
        terminalreporter.section("figures")
        for line in _FIGURES:
            terminalreporter.write_line(line)
