"""What every end-to-end test leaves behind is cleared up on its own thread."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def finalised() -> Iterator[None]:
    """Triton's HTTP client lies in a cycle, and its finaliser must run where it was made."""
    yield
    if "tritonclient.http" in sys.modules:
        gc.collect()
