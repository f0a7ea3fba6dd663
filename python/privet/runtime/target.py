"""One model of a pool: how much material it is to have, and the session that makes it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from privet.errors import PrivetError
from privet.runtime.client import Client
from privet.runtime.store import StoreEntry
from privet.suites import Suite
from privet.suites.costs import PhaseCost

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 60.0
"""A pool that was refused comes back after the first delay, then after twice as long each time."""

IDLE_SECONDS = 30.0
"""A session that made nothing for this long is closed: the server would hang up on it."""

STALE_SECONDS = 60.0
"""After this long the server is asked again which program the model is: it may have changed."""


@dataclass(frozen=True)
class Level:
    """How full a pool is for a model: `ready` of `wanted` pieces, which take `bytes` on disk.

    `ready` is None until the server has told which program the model is.
    """

    model: str
    ready: int | None
    wanted: int
    bytes: int


@dataclass(frozen=True)
class Made:
    """A piece that was made."""

    material: str
    cost: PhaseCost | None


class Target:
    """Keeps track of one model; `connect` opens a session for it, in a suite with every choice
    made if one is given."""

    def __init__(
        self, model: str, wanted: int, connect: Callable[[str, Suite | None], Client]
    ) -> None:
        self.model = model
        self.wanted = wanted
        self._connect = connect
        self._client: Client | None = None
        self._serves: tuple[str, str, str] | None = None
        # The suite stays what it was first chosen to be, so that material adds up.
        self._suite: Suite | None = None
        self._piece_bytes = 0
        self._met = 0.0
        self._used = 0.0
        self._delay = FIRST_DELAY_SECONDS
        self._due = 0.0

    @property
    def piece_bytes(self) -> int:
        """Most bytes that a piece takes; 0 until the server was met."""
        return self._piece_bytes

    @property
    def is_known(self) -> bool:
        """Whether the server has told not long ago which program the model is."""
        return self._serves is not None and time.monotonic() - self._met < STALE_SECONDS

    @property
    def is_due(self) -> bool:
        """Whether the time of a delay is over."""
        return time.monotonic() >= self._due

    def level(self, entries: Iterable[StoreEntry]) -> Level:
        """How many of `entries` serve this model."""
        if self._serves is None:
            return Level(self.model, None, self.wanted, 0)
        mine = [it for it in entries if (it.program, it.suite, it.peer) == self._serves]
        return Level(self.model, len(mine), self.wanted, sum(it.bytes for it in mine))

    def meet(self) -> Client:
        """The open session, or a new one, which tells what serves the model now."""
        if not self.is_known:
            self.leave()
        if self._client is None:
            self._client = client = self._connect(self.model, self._suite)
            self._suite = client.suite
            self._serves = (client.program_hash, client.label, client.server_fingerprint or "")
            self._piece_bytes = client.piece_bytes
            self._met = self._used = time.monotonic()
        return self._client

    def make(self) -> Made:
        """Makes a piece."""
        client = self.meet()
        (material,) = client.prepare()
        self._delay, self._used = FIRST_DELAY_SECONDS, time.monotonic()
        return Made(material, client.offline_cost(material))

    def put_off(self) -> float:
        """Drops a session that failed; in how many seconds to try again."""
        self.leave()
        delay = self._delay
        self._delay = min(2 * delay, LONGEST_DELAY_SECONDS)
        self._due = time.monotonic() + delay
        return delay

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
