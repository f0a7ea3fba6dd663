"""Who asked for which model when, under which policy: a file of JSON lines that are chained.

Each line holds the SHA-256 of the line before it as `previous`, so that a line that is changed,
taken out or put in between shows, unless whoever may write the file makes all later lines anew.
That, and lines that are cut off at the end, show to whoever keeps the latest hash elsewhere
(`head`). No line holds an input or a prediction.

A line that a crash cut short is no record. Who opens the file next says so in a record of its own,
`"event": "cut short"`: its `previous` covers all that stands after the last whole record, its
`last` is that record's hash, which a line that was cut cannot vouch for. So the chain
goes on over the cut.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privet.errors import Misuse
from privet.logs import Seldom

FIRST = "0" * 64
"""What the first line holds as `previous`."""

CUT_SHORT = "cut short"
"""The event of a record that says that lines before it are none."""

MOST_REFUSED = 10_000
"""Clients and modes of which is remembered when a refusal was written."""

_log = logging.getLogger(__name__)


class AuditLog:
    """Appends to the file at `path`, of which this is the only writer: it holds a lock on the file.
    Lines that a full disk does not take wait, and are written in order by the next `write` or
    `catch_up`. Raises `Misuse` if the file cannot be opened, or another service writes it."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            content = path.read_bytes()
        except BlockingIOError as error:
            os.close(self._file)
            raise Misuse(f"another service writes the audit log {path}") from error
        except OSError as error:
            raise Misuse(f"the audit log {path} cannot be opened: {error.strerror}") from error
        self._waiting: deque[bytes] = deque()
        self._seldom = Seldom()
        self._refusals: OrderedDict[tuple[str, str], Seldom] = OrderedDict()
        lines = content.split(b"\n")
        is_ended = not lines[-1]
        if is_ended:
            lines.pop()
        whole = next((n for n in range(len(lines), 0, -1) if _previous(lines[n - 1])), 0)
        self.head = _digest(lines[whole - 1]) if whole else FIRST
        if whole < len(lines):
            last, self.head = self.head, _digest(b"\n".join(lines[whole:]))
            self._append(CUT_SHORT, {"last": last}, before=b"" if is_ended else b"\n")
        elif not is_ended:
            self._waiting.append(b"\n")

    @property
    def waiting(self) -> int:
        """Lines that could not be written yet."""
        return len(self._waiting)

    def write(self, event: str, **fields: Any) -> None:
        """Appends a line."""
        self._append(event, fields)
        self.catch_up()

    def _append(self, event: str, fields: dict[str, Any], before: bytes = b"") -> None:
        record = {"time": round(time.time(), 3), "event": event, **fields, "previous": self.head}
        line = json.dumps(record).encode()
        self.head = _digest(line)
        self._waiting.append(before + line + b"\n")

    def refused(self, client: str, mode: str, reason: str) -> None:
        """Appends a line for a call that the policy refused: the first of a client in a mode (as
        JSON), then one a minute at most, which says how many `times` it was since. So a client that
        asks again and again does not fill the disk."""
        seldom = self._refusals.setdefault((client, mode), Seldom())
        self._refusals.move_to_end((client, mode))
        if len(self._refusals) > MOST_REFUSED:
            self._refusals.popitem(last=False)
        times = seldom.due()
        if times is not None:
            fields = {"client": client, "mode": json.loads(mode)}
            self.write("refused", **fields, reason=reason, times=times)

    def catch_up(self) -> None:
        """Writes what waits, as long as there is room."""
        try:
            while self._waiting:
                size = os.fstat(self._file).st_size
                if os.write(self._file, self._waiting[0]) < len(self._waiting[0]):
                    os.ftruncate(self._file, size)
                    raise OSError("the disk is full")
                self._waiting.popleft()
        except OSError as error:
            if self._seldom.due() is not None:
                extra = {"error": str(error), "lines": len(self._waiting)}
                _log.error("the audit log cannot be written", extra=extra)

    def close(self) -> None:
        """Writes no more."""
        os.close(self._file)


@dataclass
class Audited:
    """What a check of a file found: its lines, how many of them crashes cut short, the hash of the
    last, and what is wrong."""

    lines: int = 0
    cut: int = 0
    head: str = FIRST
    problems: list[str] = field(default_factory=list)


def check(path: Path, head: str | None = None) -> Audited:
    """Follows the chain; `head` is a hash that the file must have gone through. Raises `OSError` if
    the file cannot be read."""
    audit, has_head = Audited(), head in (None, FIRST)
    last, damaged = FIRST, list[bytes]()
    *lines, rest = path.read_bytes().split(b"\n")
    for line in [*lines, rest] if rest else lines:
        audit.lines += 1
        audit.head = _digest(line)
        has_head = has_head or audit.head == head
        previous = _previous(line)
        if previous is None:
            damaged.append(line)
            continue
        if damaged and _covers(line, damaged, last):
            audit.cut += len(damaged)
        elif damaged:
            audit.problems += _no_records(audit.lines - 1, len(damaged))
        if not damaged and previous != last:
            audit.problems.append(f"before line {audit.lines} lines were changed or are missing")
        last, damaged = audit.head, []
    audit.problems += _no_records(audit.lines, len(damaged))
    if not has_head:
        audit.problems.append(f"no line has the hash {head}: lines at the end are missing")
    return audit


def _no_records(last: int, count: int) -> list[str]:
    """The problems of `count` lines up to the line `last` for which no record stands up."""
    return [
        f"line {number} is no record: a crash cut it short, or worse"
        for number in range(last - count + 1, last + 1)
    ]


def _previous(line: bytes) -> str | None:
    """What a record holds as the hash of the one before; None if the line is no record."""
    try:
        previous = json.loads(line)["previous"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return previous if isinstance(previous, str) else None


def _covers(line: bytes, damaged: list[bytes], last: str) -> bool:
    """Whether a record says that these lines before it were cut short after the record `last`."""
    record = json.loads(line)
    expected = (CUT_SHORT, last, _digest(b"\n".join(damaged)))
    return (record.get("event"), record.get("last"), record["previous"]) == expected


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()
