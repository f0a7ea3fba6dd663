"""The pool: keeps a client's state directory filled with material, in the background."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from privet import suites
from privet.errors import Misuse, PrivetError
from privet.runtime.client import Client
from privet.runtime.credentials import Credentials
from privet.runtime.memory import parse_size
from privet.runtime.refill import Level, Listener, Made, Refill, Source
from privet.runtime.store import MaterialStore, StoreEntry
from privet.suites import Suite

STOPPING_SECONDS = 10.0
"""How long `close` waits for a preparation to break off."""

IDLE_SECONDS = 30.0
"""A session that made nothing for this long is closed: the server would hang up on it."""

STALE_SECONDS = 60.0
"""After this long the server is asked again which program the model is: it may have changed."""


class ServerSource(Source):
    """Makes material with a server; `connect` opens a session for the model, in a suite with every
    choice made if one is given. The store holds `max_disk` bytes at most."""

    def __init__(
        self,
        model: str,
        wanted: int,
        store: MaterialStore,
        max_disk: int,
        connect: Callable[[str, Suite | None], Client],
    ) -> None:
        super().__init__(model, wanted)
        self._store, self._max_disk, self._connect = store, max_disk, connect
        self._client: Client | None = None
        self._serves: tuple[str, str, str] | None = None
        # The suite stays what it was first chosen to be, so that material adds up.
        self._suite: Suite | None = None
        self._entry_bytes = 0
        self._met = 0.0
        self._used = 0.0

    @property
    def is_known(self) -> bool:
        """Whether the server has told not long ago which program the model is."""
        return self._serves is not None and time.monotonic() - self._met < STALE_SECONDS

    def level(self, entries: Sequence[StoreEntry]) -> Level:
        """How many of `entries` serve this model."""
        if self._serves is None:
            return Level(self.model, None, self.wanted, 0, 0)
        mine = [it for it in entries if (it.program, it.suite, it.peer) == self._serves]
        return Level(self.model, len(mine), self.wanted, sum(it.bytes for it in mine), len(mine))

    def wants(self, level: Level) -> bool:
        """As `Source`; also to ask again which program the model is."""
        return not self.is_known or super().wants(level)

    async def has_room(self) -> bool:
        """As `Source`."""
        return not self.is_known or self._store.bytes() + self._entry_bytes <= self._max_disk

    async def make(self) -> Made | None:
        """Meets the server if it was not met lately, or else makes an entry."""
        known = self.is_known
        client = self._meet()
        if not known:
            return None
        (material,) = client.prepare()
        self.succeeded()
        self._used = time.monotonic()
        return Made(material, client.offline_cost(material))

    def _meet(self) -> Client:
        """The open session, or a new one, which tells what serves the model now."""
        if not self.is_known:
            self.leave()
        if self._client is None:
            self._client = client = self._connect(self.model, self._suite)
            self._suite = client.suite
            self._serves = (client.program_hash, client.label, client.server_fingerprint or "")
            self._entry_bytes = client.entry_bytes
            self._met = self._used = time.monotonic()
        return self._client

    def put_off(self) -> float:
        """As `Source`; drops a session that failed."""
        self.leave()
        return super().put_off()

    def rest(self) -> None:
        """Ends a session that has been idle for long."""
        if time.monotonic() - self._used > IDLE_SECONDS:
            self.leave()

    def leave(self) -> None:
        """Ends the session, if one is open."""
        client, self._client = self._client, None
        if client is not None:
            # It may have failed, or the server hung up.
            with contextlib.suppress(PrivetError):
                client.close()

    def abandon(self) -> None:
        """Breaks the session from another thread."""
        client = self._client
        if client is not None:
            client.abandon()


class MaterialPool:
    """Makes material until each model has as much as its level says; a context manager.

    `levels` says how many entries each model is to have ready with this server; the model that has
    the smallest part of its level comes first. The material on disk in `state`, whoever made it,
    never exceeds `max_disk` (bytes, or such as `10GB`) through this pool. `suite` and
    `options` are those of `privet.Client` and say which material is made.

    `start` does it in the background and goes on: the pool refills what clients use. While the
    server or the dealer is away or full, the pool tries again after delays that grow to a minute;
    what the server's policy does not accept ends it. `fill` does it once and fails then. `on_event`
    hears of everything, from the pool's thread; if it raises, that is logged.
    """

    def __init__(
        self,
        host: str,
        port: int,
        credentials: Credentials,
        *,
        state: str | os.PathLike[str],
        levels: Mapping[str, int],
        max_disk: int | str,
        on_event: Listener | None = None,
        suite: Suite | str = suites.DEFAULT,
        **options: Any,
    ) -> None:
        if not levels or min(levels.values()) < 1:
            raise Misuse("a pool needs a model, and a level of at least 1 for each")
        self.max_disk = limit = parse_size(max_disk, "disk space") or 0
        self._store = store = MaterialStore(state)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: Exception | None = None

        def connect(model: str, settled: Suite | None) -> Client:
            options.update(state=state, model=model, max_disk=limit, suite=settled or suite)
            client = Client(host, port, credentials, **options)
            # `stop` finds the session from here on, or came before.
            if self._refill.stopping:
                client.abandon()
            return client

        self._sources = [
            ServerSource(model, wanted, store, limit, connect) for model, wanted in levels.items()
        ]
        self._refill = Refill(self._sources, self.levels, self.bytes, on_event)

    def levels(self) -> tuple[Level, ...]:
        """How full the pool is for each model."""
        entries = self._store.entries()
        return tuple(source.level(entries) for source in self._sources)

    def bytes(self) -> int:
        """Bytes of material on disk, whoever made it."""
        return self._store.bytes()

    def fill(self) -> tuple[Level, ...]:
        """Makes what is missing, once, as far as the disk allows; the levels after it.

        # Errors
        Those of `Client` and `Client.prepare`.
        """
        self.start(once=True).wait()
        return self.levels()

    def start(self, *, once: bool = False) -> Self:
        """Fills and, unless `once`, refills on a thread of its own until `close`."""
        if self._thread is not None:
            raise Misuse("this pool has been started already")
        self._thread = threading.Thread(target=self._run, args=(once,), daemon=True)
        self._thread.start()
        return self

    def wait(self, seconds: float | None = None) -> bool:
        """Waits for the end of a started pool, `seconds` at most; whether it has ended.

        # Errors
        Whatever ended it other than `close`: an option that cannot work, a disk that fails,
        `NotAccepted`; with `once`, any error.
        """
        if self._thread is not None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                return False
        if self._failure is not None:
            raise self._failure
        return True

    def stop(self) -> None:
        """Breaks off what is being made, which leaves nothing behind; returns at once."""
        self._refill.stopping = True
        for source in self._sources:
            source.abandon()
        if self._loop is not None:
            # It may have ended meanwhile.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._refill.wake.set)

    def close(self) -> None:
        """Stops, and waits until that is done."""
        self.stop()
        if self._thread is not None:
            self._thread.join(STOPPING_SECONDS)

    def _run(self, once: bool) -> None:
        async def run() -> None:
            self._loop = asyncio.get_running_loop()
            await self._refill.run(once=once)

        try:
            asyncio.run(run())
        except Exception as error:
            # A session that `stop` broke is no failure.
            if not self._refill.stopping:
                self._failure = error
        finally:
            for source in self._sources:
                source.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
