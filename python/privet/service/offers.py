"""The versions that executors offer: also those that are served no more, while jobs need them."""

from __future__ import annotations

import logging

from privet.service.executor import Executor
from privet.service.jobs import Jobs
from privet.service.model_server import ModelServers
from privet.service.repository import Version

_log = logging.getLogger(__name__)


class Offers:
    """Follows the repository for the executors."""

    def __init__(self, executor: Executor, jobs: Jobs, model_servers: ModelServers) -> None:
        self._executor = executor
        self._model_servers = model_servers
        self._jobs = jobs
        self._by_key: dict[str, Version] = {}
        self._retired: dict[str, Version] = {}
        self._coming: list[str] = []
        """Programs of versions that are being offered."""

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
            warm = any(
                suite.jobs[0].parties == ("client", "server") for (suite, *_) in version.offers
            )
            self._coming.append(version.program.program_hash)
            try:
                await self._executor.offer(version.folder, warm=warm, hosts=version.hosts)
            finally:
                self._coming.remove(version.program.program_hash)
        self._retired.pop(version.key, None)
        self._by_key[version.key] = version
        _log.info("version ready", extra={"model": version.name, "suites": version.suites})

    def retire(self, version: Version) -> None:
        """Offers a version only as long as jobs need it."""
        self._retired[version.key] = version

    async def withdraw(self, version: Version) -> None:
        """Withdraws a retired version that nobody needs any more, and its program unless another
        version has the same one."""
        is_needed = any(job.version.key == version.key for job in self._jobs.live())
        if not is_needed and self._retired.pop(version.key, None) is not None:
            self._by_key.pop(version.key, None)
            if version.in_sessions:
                await self._model_servers.close_version(version)
            elif not self._has_program(version.program.program_hash):
                await self._executor.withdraw(version.program.program_hash)
            _log.info("version withdrawn", extra={"model": version.name})

    def of_program(self, program: str) -> Version | None:
        """The version whose program has this hash, if it is offered."""
        versions = self._by_key.values()
        return next(
            (version for version in versions if version.program.program_hash == program), None
        )

    def _has_program(self, program: str) -> bool:
        return program in self._coming or self.of_program(program) is not None
