"""Shared by the tests of attacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.attacks.scene import Scene, small_model

from privet.compiler.compile import Compiled


@pytest.fixture(scope="session")
def compiled() -> Compiled:
    """The model that the servers offer."""
    return small_model()


@pytest.fixture
def scene(tmp_path: Path, key_folder: Path, compiled: Compiled) -> Scene:
    """A stage with nobody on it yet."""
    return Scene(tmp_path, key_folder, compiled)
