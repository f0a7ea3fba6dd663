"""The pool: keeps a client's state directory filled with material, in the background."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from privet import suites
from privet.errors import Misuse, NotAccepted, PeerError, PrivetError, StoreFull
from privet.runtime.client import Client
from privet.runtime.credentials import Credentials
from privet.runtime.memory import parse_size
from privet.runtime.store import MaterialStore
from privet.runtime.target import Level, Target
from privet.suites import Suite
from privet.suites.costs import PhaseCost

POLL_SECONDS = 0.5
"""How often a full pool looks whether somebody has used a piece."""

STOPPING_SECONDS = 10.0
"""How long `close` waits for a preparation to break off."""


@dataclass(frozen=True)
class PoolEvent:
    """Something that happened in a pool; `levels` and `bytes` (on disk) are those after it.

    `kind` is `levels` (the levels changed otherwise than by this pool), `made` (a piece was made),
    `full` (a piece for `model` would go beyond the limit on disk) or `waiting` (`error` keeps the
    pool from making material for `model` for `seconds`).
    """

    kind: str
    levels: tuple[Level, ...]
    bytes: int
    model: str | None = None
    material: str | None = None
    cost: PhaseCost | None = None
    seconds: float | None = None
    error: PrivetError | None = None


Listener = Callable[[PoolEvent], None]

_log = logging.getLogger(__name__)


class MaterialPool:
    """Makes material until each model has as much as its level says; a context manager.

    `levels` says how many pieces each model is to have ready with this server; the model that has
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
        self.max_disk = parse_size(max_disk, "disk space") or 0
        self._on_event = on_event
        self._store = MaterialStore(state)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None
        self._known: tuple[Level, ...] | None = None
        self._crowded: set[str] = set()

        def connect(model: str, settled: Suite | None) -> Client:
            return Client(
                host,
                port,
                credentials,
                state=state,
                model=model,
                max_disk=self.max_disk,
                suite=settled or suite,
                **options,
            )

        self._targets = [Target(model, wanted, connect) for model, wanted in levels.items()]

    def levels(self) -> tuple[Level, ...]:
        """How full the pool is for each model."""
        entries = self._store.entries()
        return tuple(target.level(entries) for target in self._targets)

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
        self._stopping.set()
        for target in self._targets:
            target.abandon()

    def close(self) -> None:
        """Stops, and waits until that is done."""
        self.stop()
        if self._thread is not None:
            self._thread.join(STOPPING_SECONDS)

    def _run(self, once: bool) -> None:
        try:
            while not self._stopping.is_set():
                if self._step(patient=not once):
                    continue
                if once:
                    break
                self._stopping.wait(POLL_SECONDS)
        except Exception as error:
            # A session that `stop` broke is no failure.
            if not self._stopping.is_set():
                self._failure = error
        finally:
            self._leave()

    def _step(self, *, patient: bool) -> bool:
        """Makes one piece where it is missed most; False if there is nothing to make now."""
        levels = self.levels()
        if levels != self._known:
            self._tell("levels", levels)
        order = sorted(
            zip(self._targets, levels, strict=True),
            key=lambda it: (it[1].ready or 0) / it[1].wanted,
        )
        for target, level in order:
            full = level.ready is not None and level.ready >= level.wanted
            if not target.is_due or (full and target.is_known):
                target.rest()
                continue
            try:
                if self._serve(target):
                    return True
            except (PeerError, StoreFull) as error:
                refused = isinstance(error, NotAccepted)
                if refused or not patient or self._stopping.is_set():
                    raise
                self._put_off(target, error)
        return False

    def _serve(self, target: Target) -> bool:
        """Meets the server for a target, or makes a piece; False if the disk is too full."""
        if not target.is_known:
            target.meet()
            return True
        if self.bytes() + target.piece_bytes > self.max_disk:
            if target.model not in self._crowded:
                self._crowded.add(target.model)
                self._tell("full", self.levels(), model=target.model)
            return False
        self._crowded.discard(target.model)
        target.meet()
        # From here on `stop` finds the session, whenever it comes.
        if self._stopping.is_set():
            return False
        made = target.make()
        levels = self.levels()
        self._tell("made", levels, model=target.model, material=made.material, cost=made.cost)
        return True

    def _put_off(self, target: Target, error: PrivetError) -> None:
        seconds = target.put_off()
        self._tell("waiting", self.levels(), model=target.model, seconds=seconds, error=error)

    def _leave(self) -> None:
        for target in self._targets:
            target.leave()

    def _tell(self, kind: str, levels: tuple[Level, ...], **fields: Any) -> None:
        self._known = levels
        if self._on_event is None:
            return
        event = PoolEvent(kind, levels, self.bytes(), **fields)
        try:
            self._on_event(event)
        except Exception:
            _log.exception("on_event raised on %s", event)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
