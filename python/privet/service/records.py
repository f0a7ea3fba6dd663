"""What outlives the process: jobs, runs and profiles, in one SQLite file.

Inputs and predictions never come here: the service has neither. A new job is written before its
client is told that it was taken. Ends and runs are written together, a moment later or with the
next job: after a kill in between, a job that had just ended is one that the restart ended. Profiles
are written every few seconds: a kill loses what the last runs changed of an average. A full disk
stops nothing: what cannot be written is kept, up to a bound, and written when there is room again.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import sqlite3
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from privet.errors import Misuse
from privet.logs import Seldom
from privet.service.jobs import Job

RESTARTED = "the service was restarted while this job waited or ran: ask again"

KEPT_SECONDS = 30 * 86400.0
"""How long jobs and runs that ended are kept."""

SOON_SECONDS = 0.1
"""How long a line may wait for others, so that one transaction writes them all."""

MOST_WAITING = 10_000
"""Lines that are kept while the disk is full; the oldest go first."""

_log = logging.getLogger(__name__)

_MIGRATIONS = (
    """
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY, client TEXT NOT NULL, kind TEXT NOT NULL, model TEXT NOT NULL,
    version INTEGER NOT NULL, program TEXT NOT NULL, suite TEXT NOT NULL, samples INTEGER NOT NULL,
    notice TEXT, created REAL NOT NULL, ended REAL, outcome TEXT, reason TEXT NOT NULL DEFAULT '',
    document TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS jobs_open ON jobs (ended) WHERE ended IS NULL;
CREATE TABLE IF NOT EXISTS runs (
    job TEXT PRIMARY KEY, request TEXT NOT NULL, phase TEXT NOT NULL, model TEXT NOT NULL,
    suite TEXT NOT NULL, samples INTEGER NOT NULL, machine TEXT NOT NULL, cores TEXT NOT NULL,
    started REAL NOT NULL, ended REAL NOT NULL, seconds REAL NOT NULL, memory INTEGER NOT NULL,
    failure TEXT
);
CREATE TABLE IF NOT EXISTS profiles (
    model TEXT, suite TEXT, batch INTEGER, phase TEXT, cores INTEGER NOT NULL,
    memory INTEGER NOT NULL, seconds REAL NOT NULL, material INTEGER NOT NULL,
    PRIMARY KEY (model, suite, batch, phase)
);
""",
)
"""What turns a file of version n into one of n + 1, from an empty file (0) on. A script that was
released is never changed; `tests/compat` has a file of each release."""

VERSION = len(_MIGRATIONS)


PROFILE_KEY = ("model", "suite", "batch", "phase")

_PROFILE = (
    "INSERT OR REPLACE INTO profiles VALUES"
    " (:model, :suite, :batch, :phase, :cores, :memory, :seconds, :material)"
)


@dataclass(frozen=True, slots=True)
class JobRun:
    """A job that ran: on which cores, from when to when (seconds since 1970).

    `phase` is `pre`, `on` or `fetch`, `seconds` what it computed without waiting for its client,
    `memory` its peak in bytes; `failure` None if it was done.
    """

    job: str
    request: str
    phase: str
    model: str
    suite: str
    samples: int
    machine: str
    cores: tuple[int, ...]
    started: float
    ended: float
    seconds: float
    memory: int
    failure: str | None


_RAN = (
    "INSERT OR REPLACE INTO runs VALUES "
    f"({', '.join(f':{field.name}' for field in fields(JobRun))})"
)


class Records:
    """The file, of which this object is the only writer; every call is done when it returns, unless
    the disk is full. Raises `Misuse` if another service writes the file, or a later version of
    Privet wrote it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise Misuse(
                f"another service writes {path}: stop it first, or give this one another --state"
            ) from None
        self._waiting: deque[tuple[str, Any]] = deque(maxlen=MOST_WAITING)
        self._profiles: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        self._soon: asyncio.TimerHandle | None = None
        self._is_late = False
        self._seldom = Seldom()
        try:
            self._base = sqlite3.connect(path, isolation_level=None)
            path.chmod(0o600)
            self._check_version(path)
            self._base.row_factory = sqlite3.Row
            # Without a flush for every job: what a crash of the system loses is the last few lines.
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA synchronous = NORMAL")
            self._migrate()
        except sqlite3.Error as error:
            os.close(self._lock)
            raise Misuse(
                f"the records {path} cannot be opened ({error}): make room on the disk or, if the "
                "file is damaged, move it away: it holds records of jobs alone"
            ) from error

    def _check_version(self, path: Path) -> None:
        stored_version = self._version()
        if stored_version > VERSION:
            self.close()
            raise Misuse(
                f"{path} is of a later version of Privet (format {stored_version}, this one knows "
                f"{VERSION}): use that version, or move the file away: it holds records of jobs "
                "alone"
            )

    def _migrate(self) -> None:
        for number in range(self._version(), VERSION):
            script = f"BEGIN; {_MIGRATIONS[number]} PRAGMA user_version = {number + 1}; COMMIT;"
            self._base.executescript(script)

    def _version(self) -> int:
        return int(self._base.execute("PRAGMA user_version").fetchone()[0])

    @property
    def waiting(self) -> int:
        """Lines that could not be written."""
        return len(self._waiting) if self._is_late else 0

    def _write(self, line: str, values: Any) -> None:
        """Writes a line, after those that wait."""
        self._waiting.append((line, values))
        self._write_waiting()

    def _write_soon(self, line: str, values: Any) -> None:
        """Writes a line in a moment, or with the next that is written; at once outside of an event
        loop."""
        self._waiting.append((line, values))
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._write_waiting()
            return
        if self._soon is None:
            self._soon = loop.call_later(SOON_SECONDS, self._write_waiting)

    def catch_up(self) -> None:
        """Writes what waits, profiles as well, if there is room."""
        for row in self._profiles.values():
            self._waiting.append((_PROFILE, dict(row)))
        self._profiles.clear()
        self._write_waiting()

    def _write_waiting(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if not self._waiting:
            return
        try:
            with self._base:
                self._base.execute("BEGIN")
                for line, values in self._waiting:
                    self._base.execute(line, values)
            self._waiting.clear()
            self._is_late = False
        except sqlite3.OperationalError as error:
            self._is_late = True
            if self._seldom.due() is not None:
                extra = {"error": str(error), "lines": len(self._waiting)}
                _log.error("records cannot be written: is the disk full?", extra=extra)

    def submitted(self, job: Job) -> None:
        """Writes down a new job."""
        self._write(
            "INSERT INTO jobs (id, client, kind, model, version, program, suite, samples, notice,"
            " created, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                job.id,
                job.client,
                job.kind,
                job.version.model,
                job.version.number,
                job.version.program.program_hash,
                job.choice.label,
                job.samples,
                job.notice,
                job.created,
                json.dumps(job.document()),
            ),
        )

    def ended(self, job: Job) -> None:
        """Writes down how a job ended."""
        self._write_soon(
            "UPDATE jobs SET ended = ?, outcome = ?, reason = ?, document = ? WHERE id = ?",
            (job.ended, job.outcome, job.reason, json.dumps(job.document()), job.id),
        )

    def add_run(self, run: JobRun) -> None:
        """Writes down a run."""
        self._write_soon(_RAN, {**asdict(run), "cores": ",".join(map(str, run.cores))})

    def interrupt(self, now: float) -> int:
        """Ends the jobs that the last process left open; how many those were."""
        cursor = self._base.execute(
            "UPDATE jobs SET ended = ?, outcome = 'failed', reason = ? WHERE ended IS NULL",
            (now, RESTARTED),
        )
        return cursor.rowcount

    def past(self, client: str, id: str) -> dict[str, Any] | None:
        """A client's own job that this process does not know any more, as `Job.document` tells one;
        it has ended in any case."""
        self.catch_up()
        row = self._base.execute(
            "SELECT outcome, reason, document FROM jobs WHERE id = ? AND client = ?", (id, client)
        ).fetchone()
        if row is None:
            return None
        ending = {"outcome": row["outcome"], "reason": row["reason"]}
        return {**json.loads(row["document"]), **ending, "state": "ended", "go": [], "sequence": 0}

    def profiles(self) -> list[dict[str, Any]]:
        """The profile table, as `privet.scheduler.Profiles.load` reads it."""
        return [dict(row) for row in self._base.execute("SELECT * FROM profiles")]

    def keep_profile(self, row: Mapping[str, Any]) -> None:
        """Writes a row of the profile table when `catch_up` is called next, unless another one of
        the same kind has come until then: each run changes it a little."""
        self._profiles[tuple(row[name] for name in PROFILE_KEY)] = row

    def runs(self, since: float, limit: int = 2000) -> list[JobRun]:
        """The latest runs that ended after `since`, the oldest first."""
        self.catch_up()
        rows = self._base.execute(
            "SELECT * FROM runs WHERE ended > ? ORDER BY ended DESC LIMIT ?", (since, limit)
        ).fetchall()
        return [_run(row) for row in reversed(rows)]

    def prune(self) -> None:
        """Forgets jobs and runs that ended long ago."""
        limit = time.time() - KEPT_SECONDS
        self._write("DELETE FROM jobs WHERE ended < ?", (limit,))
        self._write("DELETE FROM runs WHERE ended < ?", (limit,))

    def close(self) -> None:
        """Closes the file."""
        self.catch_up()
        self._base.close()
        os.close(self._lock)


def _run(row: sqlite3.Row) -> JobRun:
    values = dict(row)
    values["cores"] = tuple(int(core) for core in values["cores"].split(",") if core)
    return JobRun(**values)
