"""The repository as it is served: what is loaded, and how it follows its files.

A version is compiled, offered to the executors, and only then takes the place of the one before.
If anything fails on the way, the one before stays, and the table shows why.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from privet.compiler.program import caveat
from privet.errors import Misuse, PrivetError
from privet.service.repository.build import Build
from privet.service.repository.config import ModelConfig
from privet.service.repository.files import Models, Source
from privet.service.repository.version import Version, load_version

RETRY_SECONDS = 15.0
"""How soon a version is tried again that failed for a reason outside itself: a full disk, or no
machine that could offer it."""

Offer = Callable[[Version], Awaitable[None]]
"""Makes a version known to the executors; called again for one that takes another's place."""

Retire = Callable[[Version], Awaitable[None]]
"""Hears of a version that is not to be asked for any more."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class VersionRow:
    """A line of the table: `ready` tells whether it is served, `error` what is wrong, if anything.

    Both may hold: then an earlier state of the files is served. `version` is None if the model's
    configuration is at fault. `program` is the hash of what is served, `calibration` on what its
    ranges were measured.
    """

    model: str
    version: int | None
    suites: tuple[str, ...]
    ready: bool
    error: str | None
    program: str | None = None
    calibration: str | None = None


@dataclass
class _VersionEntry:
    """What is known of one version's files: `key` is the state of them that was tried last."""

    key: Any = None
    version: Version | None = None
    error: Exception | None = None
    again_at: float | None = None


@dataclass
class _Model:
    error: Exception | None = None
    versions: dict[int, _VersionEntry] = field(default_factory=dict)


class Repository:
    """Follows `source`. `dealer` tells whether suites that need one can be served."""

    def __init__(
        self, source: Models, build: Build, offer: Offer, retire: Retire, *, dealer: bool
    ) -> None:
        self._source = source
        self._build = build
        self._offer = offer
        self._retire = retire
        self._dealer = dealer
        self._models: dict[str, _Model] = {}

    def models(self) -> list[str]:
        """The models that have a version to serve, by name."""
        return [name for name, model in self._models.items() if self._served(model)]

    def versions(self, model: str) -> list[Version]:
        """The versions of a model that are served, the oldest first; none if there is no such."""
        entry = self._models.get(model)
        return [] if entry is None else self._served(entry)

    def version(self, model: str, number: int | None = None) -> Version | None:
        """The version of a model, or its newest; None if it is not served."""
        matches = [version for version in self.versions(model) if number in (None, version.number)]
        return matches[-1] if matches else None

    def rows(self) -> list[VersionRow]:
        """The table: every model and version, served or not."""
        return [row for name, model in self._models.items() for row in self._rows(name, model)]

    async def refresh(self) -> bool:
        """Looks at the files once; whether anything that is served or shown changed. Raises
        `Misuse` if the repository itself cannot be read."""
        before = self.rows(), [version for name in self.models() for version in self.versions(name)]
        names = self._source.names()
        for absent_name in set(self._models) - set(names):
            await self._drop(self._models.pop(absent_name), [])
        for name in names:
            model = self._models.setdefault(name, _Model())
            try:
                config, sources = self._source.read(name)
                model.error = None
            except (Misuse, OSError) as error:
                model.error = error
                continue
            for source in sources:
                await self._update(
                    model.versions.setdefault(source.number, _VersionEntry()), source, config
                )
            await self._drop(model, [source.number for source in sources])
        self._models = dict(sorted(self._models.items()))
        return before != (
            self.rows(),
            [version for name in self.models() for version in self.versions(name)],
        )

    def require(self) -> None:
        """Raises why a model is not served that must be: what loading the model raised."""
        if not self._source.required:
            return
        for model in self._models.values():
            for error in (model.error, *(entry.error for entry in model.versions.values())):
                if error is not None:
                    raise error

    async def _update(self, entry: _VersionEntry, source: Source, config: ModelConfig) -> None:
        key = (
            replace(config, limits=ModelConfig().limits, description="", cores=1),
            source.signature(),
        )
        due = entry.again_at is not None and time.monotonic() >= entry.again_at
        if entry.key == key and not due:
            if entry.version is not None and entry.version.config != config and not entry.error:
                entry.version = replace(entry.version, config=config)
            return
        entry.key, entry.again_at = key, None
        old = entry.version
        try:
            folder = await self._build(source, config)
            fresh = await asyncio.to_thread(
                load_version, source.model, source.number, folder, config, dealer=self._dealer
            )
        except PrivetError as error:
            self._failed(entry, source, error)
            return
        except OSError as error:
            self._failed(entry, source, error, again=True)
            return
        try:
            await self._offer(fresh)
        except (PrivetError, OSError) as error:
            self._failed(entry, source, error, again=True)
            return
        entry.version, entry.error = fresh, None
        if (doubt := caveat(fresh.program.calibration)) is not None:
            extra = {"model": source.model, "version": source.number, "caveat": doubt}
            _log.warning("version not calibrated", extra=extra)
        if old is not None and old.program.program_hash != fresh.program.program_hash:
            await self._retire(old)

    def _failed(
        self, entry: _VersionEntry, source: Source, error: Exception, *, again: bool = False
    ) -> None:
        """Remembers why a version was not loaded; one that was not at fault is tried `again`."""
        entry.error = error
        entry.again_at = time.monotonic() + RETRY_SECONDS if again else None
        extra = {"model": source.model, "version": source.number, "error": str(error)}
        _log.warning("version not loaded", extra=extra)

    async def _drop(self, model: _Model, keep: list[int]) -> None:
        for number in [number for number in model.versions if number not in keep]:
            version = model.versions.pop(number).version
            if version is not None:
                await self._retire(version)

    @staticmethod
    def _served(model: _Model) -> list[Version]:
        entries = sorted(model.versions.items())
        return [entry.version for _, entry in entries if entry.version is not None]

    @staticmethod
    def _rows(name: str, model: _Model) -> list[VersionRow]:
        rows = [
            _row(name, number, entry.version, entry.error or model.error)
            for number, entry in sorted(model.versions.items())
        ]
        return rows or [_row(name, None, None, model.error)]


def _row(
    model: str, number: int | None, version: Version | None, error: Exception | None
) -> VersionRow:
    why = None if error is None else str(error)
    if version is None:
        return VersionRow(model, number, (), False, why)
    program = version.program
    return VersionRow(
        model, number, version.suites, True, why, program.program_hash, program.calibration
    )
