"""Records of the server's material: what there is, for whom, and what became of it.

The authority is the tombstone in the store of the machine that holds the piece: it alone decides
whether a piece may still be used. The records let the service find a piece, let pieces expire, and
tell what happened; where the two differ, `reconcile` makes the records follow. So SQLite may lose
the last moments before a power failure (`synchronous=NORMAL`), and no piece is used twice for it.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Literal

from privet.errors import MaterialError, PrivetError
from privet.service.executor import Piece

State = Literal["ready", "consumed", "expired", "lost"]
"""Usable; granted to a job; removed for its age or for room; gone with its machine or its file."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS material (
    material TEXT PRIMARY KEY,
    client TEXT NOT NULL,
    program TEXT NOT NULL,
    suite TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    made REAL NOT NULL,
    machine TEXT NOT NULL,
    expires REAL NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('ready', 'consumed', 'expired', 'lost')),
    changed REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS stock ON material (state, client, program, suite, made);
CREATE INDEX IF NOT EXISTS age ON material (state, expires);
"""


@dataclass(frozen=True)
class Record(Piece):
    """A piece, the `machine` that holds it, and its `state` since the time `changed`.

    It `expires` at that time; all times are in seconds since 1970.
    """

    machine: str
    expires: float
    state: State
    changed: float


class Ledger:
    """The records in the SQLite file `path`; this object is their only writer.

    Calls take the time `now` and end within milliseconds, so an event loop may make them. Others
    may read the file meanwhile.

    # Errors
    `PrivetError` if the file is no ledger, or another object writes it; from any call that writes,
    if the disk is full: nothing has changed then.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise PrivetError(f"another service writes {path}: stop it first") from None
        try:
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.executescript(_SCHEMA)
        except sqlite3.Error as error:
            os.close(self._lock)
            raise PrivetError(f"{path} is no ledger that can be written: {error}") from error
        Path(path).chmod(0o600)

    def close(self) -> None:
        """Closes the file."""
        self._database.close()
        os.close(self._lock)

    def add(self, piece: Piece, machine: str, expires: float, now: float) -> None:
        """Records a piece that was made.

        # Errors
        `MaterialError` if one of this name was ever recorded.
        """
        try:
            with self._transaction():
                self._insert(piece, machine, expires, now)
        except sqlite3.IntegrityError:
            raise MaterialError(f"material {piece.material} is recorded already") from None

    def take(self, material: str, client: str, program: str, suite: str, now: float) -> Record:
        """Consumes a piece for a job of this client; from now on nobody else gets it.

        # Errors
        `MaterialError` if it is not ready, or for another client, program or suite.
        """
        with self._transaction():
            record = self.find(material)
            if record is None or record.client != client:
                raise MaterialError(f"there is no material {material} for this client: prepare")
            if record.state != "ready" or record.expires <= now:
                state = "expired" if record.state == "ready" else record.state
                raise MaterialError(f"material {material} is {state}: prepare another piece")
            if (record.program, record.suite) != (program, suite):
                raise MaterialError(f"material {material} is for another program or suite")
            self._set(material, "consumed", now)
        return record

    def give_back(self, material: str, now: float) -> None:
        """Makes a consumed piece ready again, of which its job has told that nobody touched it."""
        with self._transaction():
            self._database.execute(
                "UPDATE material SET state = 'ready', changed = ? "
                "WHERE material = ? AND state = 'consumed'",
                (now, material),
            )

    def expire(self, now: float) -> list[Record]:
        """Ends the pieces whose time is over; they are to be removed from their stores."""
        with self._transaction():
            due = list(self._select("WHERE state = 'ready' AND expires <= ?", now))
            for record in due:
                self._set(record.material, "expired", now)
        return due

    def end(self, material: str, now: float) -> None:
        """Ends a piece that is ready, which is to be removed from its store."""
        with self._transaction():
            self._database.execute(
                "UPDATE material SET state = 'expired', changed = ? "
                "WHERE material = ? AND state = 'ready'",
                (now, material),
            )

    def evict(self, machine: str, most_bytes: int, now: float) -> list[Record]:
        """Ends the oldest pieces of a machine until the others take `most_bytes` at most."""
        evicted = []
        with self._transaction():
            excess = self.bytes(machine) - most_bytes
            order = "WHERE state = 'ready' AND machine = ? ORDER BY made, material"
            for record in self._select(order, machine):
                if excess <= 0:
                    break
                self._set(record.material, "expired", now)
                excess -= record.bytes
                evicted.append(record)
        return evicted

    def lose(self, machine: str, now: float) -> int:
        """Ends all pieces of a machine that is gone; how many there were."""
        with self._transaction():
            return self._database.execute(
                "UPDATE material SET state = 'lost', changed = ? "
                "WHERE machine = ? AND state = 'ready'",
                (now, machine),
            ).rowcount

    def reconcile(
        self, machine: str, pieces: Iterable[Piece], lifetime: float, now: float
    ) -> list[str]:
        """Makes the records of a machine follow its store, which holds `pieces`.

        A piece without a record gets one, to expire `lifetime` seconds after it was made. A record
        without a piece is lost. Returns the pieces that are there although their records have
        ended, by a crash between the two: they are to be removed.
        """
        found = {piece.material: piece for piece in pieces}
        with self._transaction():
            mine = {it.material: it for it in self._select("WHERE machine = ?", machine)}
            for material, record in mine.items():
                if record.state == "ready" and material not in found:
                    self._set(material, "lost", now)
            stale = []
            for material, piece in found.items():
                if self.find(material) is None:
                    self._insert(piece, machine, piece.made + lifetime, now)
                elif material not in mine or mine[material].state != "ready":
                    stale.append(material)
        return stale

    def adopt(self, machine: str, pieces: Iterable[Piece], lifetime: float, now: float) -> int:
        """Records pieces of a machine's store that have no record; how many there were.

        Such are left by a job whose process died between making a piece and telling of it.
        """
        with self._transaction():
            unknown = [piece for piece in pieces if self.find(piece.material) is None]
            for piece in unknown:
                self._insert(piece, machine, piece.made + lifetime, now)
        return len(unknown)

    def forget(self, before: float) -> int:
        """Deletes records that ended before this time; how many there were.

        Their pieces must be gone from the stores: a piece without a record counts as new.
        """
        with self._transaction():
            return self._database.execute(
                "DELETE FROM material WHERE state != 'ready' AND changed < ?", (before,)
            ).rowcount

    def find(self, material: str) -> Record | None:
        """The record of a piece."""
        return next(self._select("WHERE material = ?", material), None)

    def ready(self, client: str, program: str, suite: str, now: float) -> list[Record]:
        """Pieces that are ready for this client, program and suite, the oldest first."""
        which = "WHERE state = 'ready' AND client = ? AND program = ? AND suite = ? AND expires > ?"
        return list(self._select(f"{which} ORDER BY made, material", client, program, suite, now))

    def bytes(self, machine: str) -> int:
        """Bytes of the pieces that are ready on a machine."""
        query = "SELECT total(bytes) FROM material WHERE state = 'ready' AND machine = ?"
        return int(self._database.execute(query, (machine,)).fetchone()[0])

    def counts(self) -> dict[str, int]:
        """How many records there are in each state."""
        query = "SELECT state, count(*) FROM material GROUP BY state"
        return dict(self._database.execute(query))

    def _select(self, rest: str, *values: object) -> Iterator[Record]:
        columns = ", ".join(Record.__dataclass_fields__)
        rows = self._database.execute(f"SELECT {columns} FROM material {rest}", values)
        return (Record(*row) for row in rows)

    def _insert(self, piece: Piece, machine: str, expires: float, now: float) -> None:
        values = (*astuple(piece), machine, expires, "ready", now)
        places = ", ".join("?" * len(values))
        columns = ", ".join(Record.__dataclass_fields__)
        self._database.execute(f"INSERT INTO material ({columns}) VALUES ({places})", values)

    def _set(self, material: str, state: State, now: float) -> None:
        self._database.execute(
            "UPDATE material SET state = ?, changed = ? WHERE material = ?", (state, now, material)
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise
        except sqlite3.OperationalError as error:
            raise PrivetError(
                f"the ledger cannot be written ({error}): is the disk full?"
            ) from error
