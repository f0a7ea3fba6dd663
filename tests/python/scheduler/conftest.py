"""A small scheduler to try things on."""

from __future__ import annotations

import pytest
from tests.python.scheduler.bench import Bench


@pytest.fixture
def bench() -> Bench:
    """One machine of four cores and 8 GiB, first come first served."""
    return Bench()
