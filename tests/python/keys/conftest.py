"""Shared by the tests of keys."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture
def lax_umask() -> Iterator[None]:
    """A process that would let everybody read and write what it creates."""
    before = os.umask(0)
    yield
    os.umask(before)
