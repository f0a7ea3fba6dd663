"""Processes are started deaf to Ctrl-C, and whoever starts them hears it afterwards."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privet.suites.spawned import deaf_to_ctrl_c, party


def _mask() -> set[int]:
    return signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_starts_that_overlap_leave_the_mask_as_it_was() -> None:
    async def start(first: asyncio.Event, then: asyncio.Event) -> None:
        with deaf_to_ctrl_c():
            assert signal.SIGINT in _mask()
            first.set()
            await then.wait()
            assert signal.SIGINT in _mask()

    async def both() -> None:
        entered, left = asyncio.Event(), asyncio.Event()
        a = asyncio.create_task(start(asyncio.Event(), entered))
        b = asyncio.create_task(start(entered, left))
        await a
        left.set()
        await b

    before = _mask()
    asyncio.run(both())
    assert _mask() == before
    assert signal.SIGINT not in before


def _interrupt_this_thread() -> None:
    """As a terminal does where no other thread hears."""
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


def _interrupt_another_thread() -> None:
    """Python then runs the handler in the main thread, whatever that thread blocks."""

    def interrupt() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    thread.join()


@pytest.mark.parametrize("interrupt", [_interrupt_this_thread, _interrupt_another_thread])
def test_ctrl_c_while_a_party_starts_ends_it(
    interrupt: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would run on in a folder that is gone."""
    started: list[subprocess.Popen[str]] = []

    start = subprocess.Popen[str]

    def start_and_interrupt(*args: Any, **options: Any) -> subprocess.Popen[str]:
        started.append(start(*args, **options))
        interrupt()
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", start_and_interrupt)
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with pytest.raises(KeyboardInterrupt), party(tmp_path, {"role": "server"}, command):
        pytest.fail("it was interrupted before")
    assert started[0].returncode == -signal.SIGKILL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in _mask()


def test_a_party_that_cannot_start_leaves_ctrl_c_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), party(tmp_path, {"role": "server"}, ["/no/such"]):
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in _mask()
