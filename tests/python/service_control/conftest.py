"""Fixtures: keys, a compiled program, and a repository with one model."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.services import put_digits
from tests.e2e.test_commands import DIGITS

from privet.compiler.compile import compile


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled digits network."""
    folder = tmp_path_factory.mktemp("program")
    compile(DIGITS, input_range=(0, 1), name="digits").save(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose `repository` has the model `digits`."""
    put_digits(tmp_path / "repository")
    return tmp_path
