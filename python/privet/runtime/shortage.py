"""The system has no more open files, memory or threads for this process: how that is reported."""

from __future__ import annotations

import errno
import mmap
import os
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from privet.errors import PrivetError, Short

ADVICE = "try again later; its operator can raise the limit (ulimit -n, LimitNOFILE= of systemd)"

ROOM_BYTES = 64 << 20
"""What a session or a prediction is to find: stacks and heaps of its threads, and small things."""

_FILES = (errno.EMFILE, errno.ENFILE)
_CODE = re.compile(r"\(os error (\d+)\)")


def most_files() -> int:
    """How many files this process may open."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 20 if limit == resource.RLIM_INFINITY else limit


def take_all_files() -> None:
    """Lets this process, and those that it starts, open as many files as it may allow itself: the
    usual limit is for programs that use `select`."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def check_room() -> None:
    """Sees that this process may have `ROOM_BYTES` more. Without them a thread that starts can fail
    before it can say so, which leaves who started it waiting, and native code ends the process.
    Raises `Short` if it may not."""
    try:
        mmap.mmap(-1, ROOM_BYTES).close()
    except OSError as error:
        raise Short("out of memory: try again later") from error


class SpareFile:
    """A file that is kept open for when there are no others: given up for a moment, it lets one
    connection be accepted, so that its peer sees it close at once instead of waiting in vain."""

    def __init__(self) -> None:
        self._file: int | None = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    @contextmanager
    def given_up(self) -> Iterator[None]:
        """Within it, one more file can be opened; it must be closed again."""
        self.close()
        try:
            yield
        finally:
            # If another thread was quicker, there is none until the next time.
            with suppress(OSError):
                self._file = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Gives it up for good."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def shortage(error: BaseException) -> str | None:
    """What this process is short of, if that is why something failed, and what to do: for a peer to
    read, so without a path. None if it failed for another reason."""
    code_in = _CODE.search(str(error))
    code = int(code_in[1]) if code_in else getattr(error, "errno", None)
    if code in _FILES:
        return f"out of open files (the process may have {most_files()}): {ADVICE}"
    if code == errno.ENOMEM or isinstance(error, MemoryError):
        return "out of memory: try again later"
    if isinstance(error, RuntimeError) and "new thread" in str(error):
        return "out of threads (by memory, or ulimit -u): try again later"
    return None


def as_reported(error: Exception) -> PrivetError:
    """An error as it is reported: of a shortage, what is short."""
    short = shortage(error)
    if short is not None:
        return Short(short)
    return error if isinstance(error, PrivetError) else PrivetError(f"{type(error).__name__}")
