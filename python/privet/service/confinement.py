"""What keeps a worker's process to its cores, its memory and its parent's life (Linux).

Memory is watched by sampling the resident set, which is what a machine runs out of; a limit on
mappings (RLIMIT_AS, RLIMIT_DATA) also counts what was reserved and never touched. RLIMIT_DATA, set
far above the bound, is a second line: a single allocation that large fails at once, and the process
aborts before the next sample.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import threading
from collections.abc import Callable, Collection
from pathlib import Path

from privet.runtime.acceptor import MAX_SESSIONS

SAMPLE_SECONDS = 0.01
"""Between two looks at the resident set."""

SLACK_FACTOR, SLACK_BYTES = 2, 256 << 20
"""RLIMIT_DATA is this many times a job's bound and so many bytes beyond what is mapped already, and
the stacks of all threads that peers can make the process start."""

STACK_BYTES = 8 << 20
"""What a thread reserves for its stack where the system does not say."""

STATUS_BYTES = 1 << 16
"""More than a status has."""

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Has the kernel kill this process when the thread that started it ends."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def keep_no_core() -> None:
    """Forbids core dumps: they would hold shares and weights.

    Linux holds no limit against a program that takes dumps from a pipe, as systemd's does, but for
    one: of a single byte, with which it starts none (core(5); `fs/coredump.c`). No file fits that
    either.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    limit = 0 if hard == 0 else 1
    resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))


def pin(cores: Collection[int]) -> None:
    """Keeps all threads of this process, and those that they start, to `cores`. Raises `OSError` if
    this process may use none of them."""
    for thread in os.listdir("/proc/self/task"):
        # A thread may have ended meanwhile.
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread), cores)


def give_back_memory() -> None:
    """Returns freed memory to the system, so that one job's peak does not hide the next one's."""
    with contextlib.suppress(AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def reset_peak() -> None:
    """Forgets the peak so far; without the permission the peak stays the process's."""
    with contextlib.suppress(OSError):
        file = os.open("/proc/self/clear_refs", os.O_WRONLY)
        try:
            os.write(file, b"5")
        finally:
            os.close(file)


def resident_bytes() -> int:
    """The resident set now."""
    return status_bytes("VmRSS")[0]


def peak_bytes() -> int:
    """The largest resident set since the last reset; without a file to read it from, that of the
    process's life, which is no less."""
    try:
        return status_bytes("VmHWM")[0]
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def status_bytes(*names: str) -> list[int]:
    """Sizes in /proc/self/status, by one look; 0 where there is none."""
    file = os.open("/proc/self/status", os.O_RDONLY)
    try:
        text = os.read(file, STATUS_BYTES).decode()
    finally:
        os.close(file)
    values = dict(line.split(":", 1) for line in text.splitlines())
    return [int(values.get(name, "0").split()[0]) << 10 for name in names]


def stack_bytes() -> int:
    """What stacks of sessions and handshakes reserve at most. Strangers can fill the places for
    handshakes, and a job must be able to start its threads all the same."""
    stack, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return 2 * MAX_SESSIONS * (STACK_BYTES if stack == resource.RLIM_INFINITY else stack)


class MemoryBound:
    """Calls `exceeded` from a thread of its own once the process takes `bytes` more than now, and
    `look` after each look at that.
    """

    def __init__(
        self, bytes: int, exceeded: Callable[[], None], look: Callable[[], None] = lambda: None
    ) -> None:
        self.base, data = status_bytes("VmRSS", "VmData")
        self._limit = self.base + bytes
        self._data = data + SLACK_FACTOR * bytes + SLACK_BYTES + stack_bytes()
        self._exceeded, self._look = exceeded, look
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        """Begins to watch. Raises `OSError` without a file to watch by; `RuntimeError` without a
        thread."""
        self._statm = Path("/proc/self/statm").open("rb", buffering=0)  # noqa: SIM115, `_watch` closes it
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (self._data, hard))
        self._thread.start()

    def end(self) -> None:
        """Lifts the bound."""
        self._over.set()
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))

    def _watch(self) -> None:
        page = resource.getpagesize()
        with self._statm as statm:
            while not self._over.wait(SAMPLE_SECONDS):
                statm.seek(0)
                if int(statm.read(128).split()[1]) * page > self._limit:
                    self._exceeded()
                    return
                self._look()
