"""The versions that executors offer: also those that are served no more, while jobs need them."""

from __future__ import annotations

import logging

from privet.scheduler import Stream
from privet.service.driver import Driver
from privet.service.executor import Executor
from privet.service.garbage_collector import GarbageCollector
from privet.service.jobs import Jobs
from privet.service.metrics import Metrics
from privet.service.model_server import ModelServers
from privet.service.repository import Version

_log = logging.getLogger(__name__)


class Offers:
    """Follows the repository for the executors and the stock."""

    def __init__(
        self, executor: Executor, jobs: Jobs, metrics: Metrics, model_servers: ModelServers
    ) -> None:
        self._executor = executor
        self._model_servers = model_servers
        self._jobs = jobs
        self._metrics = metrics
        self._by_key: dict[str, Version] = {}
        self._retired: dict[str, Version] = {}

    def find(self, key: str) -> Version | None:
        """A version that is offered, by how schedules call it."""
        return self._by_key.get(key)

    def is_retired(self, version: Version) -> bool:
        """Whether a version is offered only for jobs that were admitted before."""
        return version.key in self._retired

    async def offer(self, version: Version) -> None:
        """Offers a version on every machine, or for sessions at a model server on this one."""
        if version.in_sessions:
            await self._model_servers.open(version)
        else:
            # What the two parties make without a dealer takes tables that are best made early.
            warm = any(it.jobs[0].parties == ("client", "server") for (it, *_) in version.offers)
            await self._executor.offer(version.folder, warm=warm, hosts=version.hosts)
        self._retired.pop(version.key, None)
        self._by_key[version.key] = version
        _log.info("version ready", extra={"model": version.name, "suites": version.suites})

    def retire(self, version: Version) -> None:
        """Offers a version only as long as jobs need it."""
        self._retired[version.key] = version

    async def withdraw(self, version: Version) -> None:
        """Withdraws a retired version that nobody needs any more."""
        needed = any(job.version.key == version.key for job in self._jobs.live())
        if not needed and self._retired.pop(version.key, None) is not None:
            self._by_key.pop(version.key, None)
            if version.in_sessions:
                await self._model_servers.shut(version)
            else:
                await self._executor.withdraw(version.program.program_hash)
            _log.info("version withdrawn", extra={"model": version.name})

    async def take_stock(self, driver: Driver, collector: GarbageCollector, machine: str) -> None:
        """Tells the driver of pieces on a machine that an earlier process made; deletes what serves
        nothing: a piece belongs to its client and its program, which may not be served any more.
        """
        served = {it.program.program_hash: it for it in self._by_key.values()}
        for piece in await self._executor.pieces(machine):
            version = served.get(piece.program)
            if version is None:
                await collector.remove(piece.material, machine)
                _log.info("useless material deleted", extra={"material": piece.material})
            elif collector.is_ready(piece.material):
                stream = Stream(piece.client, version.key, piece.suite, version.program.batch)
                driver.found(piece.material, stream, machine)
                self._metrics.material(version.key, "found")
