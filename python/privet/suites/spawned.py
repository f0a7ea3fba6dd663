"""Parties as processes of this machine, which say what happens as JSON, one object on each line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from privet.errors import LinkError
from privet.suites.base import Progress
from privet.suites.ckks.program import raise_failure

PYTHON_PARTY = (sys.executable, "-m", "privet.runtime.process")


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

    # Errors
    `KeyboardInterrupt` as it is left if SIGINT came meanwhile: what was started must be guarded by
    then.
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
    """The next line of this kind; progress lines on the way are passed on.

    # Errors
    The error that the party tells of; `LinkError` if its process ends before.
    """
    for line in _pipe(process.stdout):
        message: dict[str, Any] = json.loads(line)
        if message["event"] == kind:
            return message
        raise_failure(message)
        if message["event"] == "progress" and progress is not None:
            progress(message["phase"], message["done"], message["total"], message["next"])
    raise LinkError(f"a party's process ended (exit code {process.wait()}) before {kind!r}")


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise LinkError("a party's process has no pipe")
    return pipe
