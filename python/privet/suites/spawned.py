"""Processes of this machine: parties, which say what happens as JSON, one object on each line; and
processes that compute what a function says."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

from privet.errors import LinkError
from privet.start import START
from privet.suites.base import Progress
from privet.suites.ckks.program import raise_failure

T = TypeVar("T")

PYTHON_PARTY = (*START, "privet.runtime.process")


class _Deaf(threading.local):
    """Uses of `deaf_to_ctrl_c` that this thread is in, and its mask before the first of them."""

    uses = 0
    before: Collection[int] = ()
    was_called = False

    def note(self, *_: object) -> None:
        """Stands in for the handler that raises `KeyboardInterrupt`."""
        self.was_called = True


_deaf = _Deaf()


@contextmanager
def deaf_to_ctrl_c() -> Iterator[None]:
    """Processes that this thread starts meanwhile never hear SIGINT.

    A terminal sends it to them, too: they would print tracebacks, or end before their work does.
    Whoever started them ends them. Tasks of one event loop may be in it at once, and leave it in
    any order: the thread hears again once the last has left.

    Raises `KeyboardInterrupt` as it is left if SIGINT came meanwhile: what was started must be
    guarded by then.
    """
    if not _deaf.uses:
        _deaf.before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        # Another thread may get the signal, and Python then runs its handler in this one.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler and _in_main_thread():
            signal.signal(signal.SIGINT, _deaf.note)
    _deaf.uses += 1
    try:
        yield
    finally:
        _deaf.uses -= 1
        if not _deaf.uses:
            signal.pthread_sigmask(signal.SIG_SETMASK, _deaf.before)
            if signal.getsignal(signal.SIGINT) == _deaf.note:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            if _deaf.was_called:
                _deaf.was_called = False
                raise KeyboardInterrupt


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def end_with_parent() -> None:
    """From now on, this process of a `multiprocessing` pool ends when the one that started it does,
    however that ends: it waits for work at a pipe that it holds open itself."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, name="privet-parent", daemon=True).start()


def compute(function: Callable[..., T], *arguments: Any) -> T:
    """What a function of a module gives in a process of its own, which ends with this call."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=end_with_parent) as pool:
        try:
            with deaf_to_ctrl_c():
                future = pool.submit(function, *arguments)
            return future.result()
        except BaseException:
            kill(pool)
            raise


def kill(pool: ProcessPoolExecutor) -> None:
    """Ends the processes of a pool at once."""
    for process in list((pool._processes or {}).values()):
        process.kill()


@contextmanager
def party(
    folder: Path,
    job: Mapping[str, Any],
    command: Sequence[str] = PYTHON_PARTY,
) -> Iterator[subprocess.Popen[str]]:
    """A running party; its standard input is closed at the end, which stops a server.

    `command` gets the path of a file with the job as its last argument.
    """
    path = folder / f"{job['role']}-{job.get('member', 0)}.json"
    path.write_text(json.dumps(job))
    with ExitStack() as starting:
        starting.enter_context(deaf_to_ctrl_c())
        with subprocess.Popen(
            [*command, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                # It multiplies no matrices in Python; starting a thread for each core takes time.
                "OPENBLAS_NUM_THREADS": "1",
            },
        ) as process:
            try:
                starting.close()
                yield process
            except BaseException:
                process.kill()
                raise
            finally:
                _pipe(process.stdin).close()


def event(
    process: subprocess.Popen[str], kind: str, progress: Progress | None = None
) -> dict[str, Any]:
    """The next line of this kind; progress lines on the way are passed on. Raises the error that
    the party tells of; `LinkError` if its process ends before."""
    for line in _pipe(process.stdout):
        message: dict[str, Any] = json.loads(line)
        if message["event"] == kind:
            return message
        raise_failure(message)
        if message["event"] == "progress" and progress is not None:
            progress(message["phase"], message["done"], message["total"], message["next"])
    raise LinkError(f"a party's process {_how_it_ended(process.wait())} before {kind!r}")


def _how_it_ended(code: int) -> str:
    """What a process with this return code did, for people."""
    if code >= 0:
        return f"ended with exit code {code}"
    if code == -signal.SIGKILL:
        return "was killed (SIGKILL; systems do that when they run out of memory)"
    return f"died of signal {-code} ({signal.strsignal(-code)})"


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise LinkError("a party's process has no pipe")
    return pipe
