"""Connections that stay open for a peer's next request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

IDLE_SECONDS = 15.0
"""How long a peer may keep a connection on which it asks for nothing. Peers leave sooner."""

LIFE_SECONDS = 600.0
"""How long a connection stays, however much it is used: then certificates are looked at again."""

SHARE = 2
"""Of the connections that are kept, one peer has one in so many at most."""


class Stopper(Protocol):
    """Breaks a connection."""

    def stop(self) -> None:
        """Whoever uses the connection finds it closed."""


class IdleLinks:
    """Up to `limit` idle connections, under keys of their own; whichever has been idle longest goes
    for another. All methods may be called from any thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._links: dict[Any, tuple[str, Stopper]] = {}

    def add(self, key: Any, peer: str, link: Stopper | None, since: float) -> bool:
        """Keeps a connection of `peer` that is there `since` then (of the monotonic clock), and
        serves nothing until `take`; whether it does."""
        if link is None or time.monotonic() > since + LIFE_SECONDS:
            return False
        with self._lock:
            if not self._limit:
                return False
            own_keys = [other for other, (owner, _) in self._links.items() if owner == peer]
            has_its_share = own_keys and SHARE * len(own_keys) >= self._limit
            if has_its_share or len(self._links) >= self._limit:
                self._stop(own_keys[0] if has_its_share else next(iter(self._links)))
            self._links[key] = peer, link
            return True

    def take(self, key: Any) -> bool:
        """Whether a connection was idle; it is no more, so that it stays."""
        with self._lock:
            return self._links.pop(key, None) is not None

    def give_up(self, peer: str | None = None) -> bool:
        """Breaks the connection that has been idle longest, of all or of a peer; whether there was
        one."""
        with self._lock:
            keys = (key for key, (owner, _) in self._links.items() if peer in (None, owner))
            oldest = next(keys, None)
            if oldest is None:
                return False
            self._stop(oldest)
            return True

    def end(self, matches: Callable[[Any], bool] = lambda _: True) -> None:
        """Breaks idle connections."""
        with self._lock:
            for key in [key for key in self._links if matches(key)]:
                self._stop(key)

    def close(self) -> None:
        """Breaks all, and keeps none from now on."""
        with self._lock:
            self._limit = 0
        self.end()

    def _stop(self, key: Any) -> None:
        self._links.pop(key)[1].stop()
