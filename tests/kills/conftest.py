"""Shared by the tests that kill parties."""

from __future__ import annotations

import pytest
from tests.attacks.scene import small_model

from privet.compiler.compile import Compiled


@pytest.fixture(scope="session")
def compiled() -> Compiled:
    """The model that is served."""
    return small_model()
