"""Keeps the scheduler's view of material true to the record: the stores on the machines' disks.

The store alone decides whether material may still be used: its spent marker outlives every crash.
The view only says what to offer, so it is made from the stores whenever a machine joins. From then
on the driver tells it what jobs do; a sweep finds what no job reported.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from privet.errors import PrivetError
from privet.runtime import StoreEntry
from privet.scheduler import JobStream
from privet.service.driver import Driver
from privet.service.executor import Executor
from privet.service.metrics import Metrics
from privet.service.repository import Version

SETTLING_SECONDS = 60.0
"""How long after material was made its job may still tell of it; far above what it takes."""

_log = logging.getLogger(__name__)


class Reconciliation:
    """Between `executor`, which has the stores, and `driver`, whose scheduler has the view.

    `version` gives the version whose program has a hash, if it is served.
    """

    def __init__(
        self,
        executor: Executor,
        driver: Driver,
        version: Callable[[str], Version | None],
        metrics: Metrics,
    ) -> None:
        self._executor = executor
        self._driver = driver
        self._version = version
        self._metrics = metrics

    def take_in(self, machine: str, entries: Iterable[StoreEntry]) -> None:
        """Material lies in a machine's store that the view lacks. What serves nothing is deleted:
        its program is not served any more, or the store was copied from another machine's."""
        for entry in sorted(entries, key=lambda candidate: -candidate.age_seconds):
            version = self._version(entry.program)
            if version is None or entry.id in self._driver.scheduler.material:
                self._driver.remove(entry.id, machine)
                _log.info("useless material deleted", extra={"material": entry.id})
            else:
                stream = JobStream(entry.peer, version.key, entry.suite, version.program.batch)
                self._driver.stock_found(entry, stream, machine)
                self._metrics.material(version.key, "found")

    async def sweep(self) -> None:
        """Takes in what jobs left whose processes died before they reported it, and gives up what
        was deleted on disk; to be called now and then."""
        for node in self._executor.machines():
            known_ids = self._driver.known_material(node.name)
            try:
                entries = await self._executor.material(node.name)
            except (PrivetError, OSError) as error:
                extra = {"machine": node.name, "error": str(error)}
                _log.error("the store of a machine cannot be read", extra=extra)
                continue
            is_gone = all(other.name != node.name for other in self._driver.nodes)
            if is_gone or self._driver.scheduler.drains(node.name):
                continue
            stored_ids = {entry.id for entry in entries}
            self._driver.give_up(known_ids - stored_ids)
            stable = [entry for entry in entries if entry.age_seconds > SETTLING_SECONDS]
            self.take_in(node.name, [entry for entry in stable if entry.id not in known_ids])
