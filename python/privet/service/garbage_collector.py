"""Keeps the ledger and the stores of all machines in step, and both within age and disk limits.

What ends, ends in this order: the record first, so that no job gets the piece any more; then the
store claims the piece durably; then its files go. A crash in between leaves a piece whose record
has ended, which the next reconciliation removes.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from privet.errors import PrivetError
from privet.service.executor import Executor, Grant, Outcome, Piece
from privet.service.ledger import Ledger, Record

LIFETIME_SECONDS = 7 * 86400.0
MEMORY_SECONDS = 30 * 86400.0
"""How long the ledger remembers pieces that have ended."""

SETTLING_SECONDS = 60.0
"""How long after a piece was made its job may still tell of it; far above what it takes."""

_log = logging.getLogger(__name__)


@dataclass
class Removed:
    """What a sweep removed: pieces for their age, and pieces for room."""

    expired: int = 0
    evicted: int = 0


class GarbageCollector:
    """Tells `ledger` what `executor` does with material, and removes what has had its time.

    Pieces live for `lifetime` seconds; those on one machine take `most_bytes` at most (None: any
    number; it may be changed), the oldest go first. `clock` tells seconds since 1970.
    """

    def __init__(
        self,
        ledger: Ledger,
        executor: Executor,
        *,
        lifetime: float = LIFETIME_SECONDS,
        most_bytes: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.ledger = ledger
        self._executor = executor
        self._lifetime = lifetime
        self.most_bytes = most_bytes
        self._clock = clock

    async def start(self) -> None:
        """Takes in the stores of all machines; to be called before any job runs."""
        for node in self._executor.machines():
            await self.joined(node.name)

    async def joined(self, machine: str) -> None:
        """Takes in the store of a machine that has joined and runs no job yet."""
        pieces = await self._executor.pieces(machine)
        stale = self.ledger.reconcile(machine, pieces, self._lifetime, self._clock())
        if stale:
            _log.warning("%s holds %d pieces that have ended: removing them", machine, len(stale))
            await self._executor.discard(machine, stale)

    def lost(self, machine: str) -> None:
        """Ends the pieces of a machine that is gone."""
        count = self.ledger.lose(machine, self._clock())
        _log.warning("%d pieces are lost with %s", count, machine)

    def take(self, material: str, client: str, program: str, suite: str) -> Record:
        """The record of a piece, which is consumed by this; to be called before its grant.

        # Errors
        `MaterialError` as `Ledger.take`.
        """
        return self.ledger.take(material, client, program, suite, self._clock())

    async def remove(self, material: str, machine: str) -> None:
        """Ends a piece that nobody will use, and removes it.

        # Errors
        `PrivetError` if the machine cannot be asked; it is removed when that machine joins again.
        """
        self.ledger.end(material, self._clock())
        await self._executor.discard(machine, [material])

    def is_ready(self, material: str) -> bool:
        """Whether a piece may be used, as far as the ledger knows."""
        record = self.ledger.find(material)
        return record is not None and record.state == "ready"

    def settle(self, grant: Grant, outcome: Outcome) -> None:
        """Records what came of a job; to be called once for each that was granted."""
        if grant.phase == "infer":
            if outcome.kept and grant.material is not None:
                self.ledger.give_back(grant.material, self._clock())
        elif outcome.failure is None and outcome.material is not None:
            now = self._clock()
            piece = Piece(
                outcome.material, grant.client, grant.program, grant.suite, outcome.bytes, now
            )
            self.ledger.add(piece, grant.machine, now + self._lifetime, now)

    async def sweep(self) -> Removed:
        """Removes what has expired and what is beyond the limit; to be called now and then."""
        now, here = self._clock(), [node.name for node in self._executor.machines()]
        for machine in here:
            await self._adopt(machine, now)
        expired = self.ledger.expire(now)
        evicted = []
        if self.most_bytes is not None:
            for machine in here:
                evicted += self.ledger.evict(machine, self.most_bytes, now)
        await self._remove(expired + evicted, here)
        self.ledger.forget(now - MEMORY_SECONDS)
        return Removed(len(expired), len(evicted))

    async def _adopt(self, machine: str, now: float) -> None:
        try:
            pieces = await self._executor.pieces(machine)
        except PrivetError as error:
            _log.error("the store of %s cannot be read: %s", machine, error)
            return
        settled = [piece for piece in pieces if piece.made < now - SETTLING_SECONDS]
        self.ledger.adopt(machine, settled, self._lifetime, now)

    async def _remove(self, records: Iterable[Record], here: list[str]) -> None:
        by_machine = defaultdict(list)
        for record in records:
            by_machine[record.machine].append(record.material)
        for machine, materials in by_machine.items():
            # A machine that is away is swept when it joins.
            if machine not in here:
                continue
            try:
                await self._executor.discard(machine, materials)
            except PrivetError as error:
                _log.error("%d pieces stay on %s: %s", len(materials), machine, error)
