"""Joining a Ray cluster leaves a process its handlers of signals."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from privet.runtime import cluster

IGNORED = ctypes.c_void_p(1)


def take_over(**_options: Any) -> None:
    """Sets another handler below Python's, as Ray's own does."""
    ctypes.CDLL(None).signal(ctypes.c_int(signal.SIGTERM), IGNORED)


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """What a handler of SIGTERM hears."""
    signals: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: signals.append(number))
    yield signals
    signal.signal(signal.SIGTERM, before)


def test_a_signal_reaches_its_handler_after_ray_began(heard: list[int]) -> None:
    take_over()
    os.kill(os.getpid(), signal.SIGTERM)
    assert heard == [], "the control: what lies below Python's handler takes the signal"
    asyncio.run(cluster.join(SimpleNamespace(init=take_over), "auto"))
    os.kill(os.getpid(), signal.SIGTERM)
    assert heard == [signal.SIGTERM]
