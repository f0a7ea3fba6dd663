"""Connections that stay open for a peer's next request."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

IDLE_SECONDS = 15.0
"""How long a peer may keep a connection on which it asks for nothing. Peers leave sooner."""

SHARE = 2
"""Of the connections that are kept, one peer has one in so many at most."""


class Stopper(Protocol):
    """Breaks a connection."""

    def stop(self) -> None:
        """Whoever uses the connection finds it closed."""


K = TypeVar("K")


class IdleLinks(Generic[K]):
    """Up to `most` idle connections; whichever has been idle longest goes for another. All methods
    may be called from any thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._links: dict[K, tuple[str, Stopper]] = {}

    def add(self, key: K, peer: str, link: Stopper | None) -> bool:
        """Keeps a connection of `peer`, which serves nothing until `take`; whether it does."""
        if link is None or not self._most:
            return False
        with self._lock:
            own = [other for other, (whose, _) in self._links.items() if whose == peer]
            if own and SHARE * len(own) >= self._most:
                self._stop(own[0])
            elif len(self._links) >= self._most:
                self._stop(next(iter(self._links)))
            self._links[key] = peer, link
            return True

    def take(self, key: K) -> bool:
        """Whether a connection was idle; it is no more, so that it stays."""
        with self._lock:
            return self._links.pop(key, None) is not None

    def end(self, which: Callable[[K], bool] = lambda _: True) -> None:
        """Breaks idle connections."""
        with self._lock:
            for key in [key for key in self._links if which(key)]:
                self._stop(key)

    def _stop(self, key: K) -> None:
        self._links.pop(key)[1].stop()
