"""Logs for machines: a JSON object a line, without anything that a peer has sent.

Messages of Privet itself name shapes, sizes, ids and clients by the beginning of their
fingerprints, and no secret is ever given to them. What other libraries say is not printed: an HTTP
parser quotes the line that it could not read, which may hold a token or an input. Of such a record,
and of every exception, a line tells where in the code it happened and of what type it was, and not
its text.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from privet import tracing
from privet.errors import PrivetError

OWN = "privet"
"""The logger above those whose messages are printed."""

_ABORTED = "the peer aborted because "
_ABORT_TEXT = re.compile(rf'({_ABORTED}[^:"]*): ".*', re.DOTALL)

_ENCODER = json.JSONEncoder(default=str)

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """Time, level, where, what, the ids of the trace that it belongs to, and the fields given by
    `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "source": record.name,
            **tracing.ids(),
        }
        if record.name.partition(".")[0] == OWN:
            line["message"] = record.getMessage()
            line |= {name: value for name, value in vars(record).items() if name not in _PLAIN}
        else:
            line["message"] = "a library's message, which is not shown: it may quote a peer"
            line["at"] = f"{record.pathname}:{record.lineno}"
        if record.exc_info and record.exc_info[1] is not None:
            line["trace"] = trace(record.exc_info[1])
        text = _ENCODER.encode(line)
        if _ABORTED in text:
            text = _ENCODER.encode({name: _unquoted(value) for name, value in line.items()})
        return text


SELDOM_SECONDS = 60.0


class Seldom:
    """Lets one event of a kind through in `SELDOM_SECONDS`, and counts those in between."""

    def __init__(self) -> None:
        self._next = float("-inf")
        self._count = 0

    def due(self) -> int | None:
        """How many events there were since the last that came through, this one included; None if
        it is too early for another."""
        self._count += 1
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + SELDOM_SECONDS
        count, self._count = self._count, 0
        return count


def unquoted(text: str) -> str:
    """The text of an error without what a peer said when it broke off a session."""
    return _ABORT_TEXT.sub(r"\1", text) if _ABORTED in text else text


def _unquoted(value: Any) -> Any:
    if isinstance(value, list):
        return [_unquoted(element) for element in value]
    return unquoted(value) if isinstance(value, str) else value


def trace(error: BaseException) -> list[str]:
    """Where an exception was raised, and its causes: types and places. Messages are those of
    Privet's own errors alone."""
    lines: list[str] = []
    ids: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in ids:
        ids.add(id(cause))
        text = f": {cause}" if isinstance(cause, PrivetError) else ""
        lines.append(f"{type(cause).__name__}{text}")
        frames = traceback.extract_tb(cause.__traceback__)
        lines += [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
        cause = cause.__cause__ or cause.__context__
    return lines


def log_to_stderr() -> None:
    """Sends what Privet logs, and warnings of others, to standard error as JSON lines; exceptions
    that nobody catches as well."""
    # No line says which process and thread wrote it, and each record would look for that.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OWN).setLevel(logging.INFO)
    # A line that cannot be written, on a full disk, is no reason to print another.
    logging.raiseExceptions = False
    logging.captureWarnings(True)
    log = logging.getLogger(__name__)

    def uncaught(
        kind: type[BaseException], error: BaseException, _trace: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            return
        log.error("uncaught exception", extra={"trace": trace(error)})

    def in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            uncaught(args.exc_type, args.exc_value, args.exc_traceback)

    sys.excepthook = uncaught
    threading.excepthook = in_thread
