"""Processes are started deaf to Ctrl-C, and whoever starts them hears it afterwards."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from privet.errors import LinkError
from privet.suites.spawned import deaf_to_ctrl_c, event, party


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Ctrl-C is heard, which what a shell runs in the background ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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
    processes: list[subprocess.Popen[str]] = []

    start = subprocess.Popen[str]

    def start_and_interrupt(*args: Any, **options: Any) -> subprocess.Popen[str]:
        processes.append(start(*args, **options))
        interrupt()
        return processes[0]

    monkeypatch.setattr(subprocess, "Popen", start_and_interrupt)
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with pytest.raises(KeyboardInterrupt), party(tmp_path, {"role": "server"}, command):
        pytest.fail("it was interrupted before")
    assert processes[0].returncode == -signal.SIGKILL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in _mask()


ORPHAN = """
import signal
from privet.suites.spawned import compute
from tests.python.suites.test_spawned import tell_and_wait
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    compute(tell_and_wait)
"""


def tell_and_wait() -> None:
    """Says which process this is, and what it hears."""
    ignored = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    sys.stdout.write(f"{os.getpid()} {int(ignored)}\n")
    sys.stdout.flush()
    time.sleep(600)


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_computes_ends_with_the_one_that_asked(
    signal_number: signal.Signals, tmp_path: Path
) -> None:
    """It lived on for good, or its parent waited until it had computed in vain."""
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as parent:
        assert parent.stdout is not None
        child, ignores = map(int, parent.stdout.readline().split())
        assert ignores
        parent.send_signal(signal_number)
        parent.wait(timeout=20)
    limit = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and _state(child) != "Z":
        assert time.monotonic() < limit
        time.sleep(0.02)


def _state(pid: int) -> str:
    """Of a process; a zombie has ended, and nobody has waited for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def test_a_party_that_cannot_start_leaves_ctrl_c_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), party(tmp_path, {"role": "server"}, ["/no/such"]):
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in _mask()


@pytest.mark.parametrize(
    ("command", "ending"),
    [
        ("kill -KILL $$", "was killed (SIGKILL; systems do that when they run out of memory)"),
        ("kill -TERM $$", "died of signal 15 (Terminated)"),
        ("kill -RTMIN $$", "died of signal 34 (Real-time signal 0)"),
        ("exit 3", "ended with exit code 3"),
    ],
)
def test_a_party_that_ends_too_soon_says_how(command: str, ending: str, tmp_path: Path) -> None:
    with (
        party(tmp_path, {"role": "server"}, ["sh", "-c", command]) as process,
        pytest.raises(LinkError, match=re.escape(f"process {ending} before 'ready'")),
    ):
        event(process, "ready")
