"""Which clients listen: those to whom a job that starts now would be told at once.

A job needs its client at the worker. One that starts for a client who is gone takes its cores until
the client's grace is over, so jobs start only for clients that listen, and those of a client that
stays away are cancelled. A client that listens and still does not come has *lapsed*: until a job of
it is done, others go first, and one job of it runs at a time.
"""

from __future__ import annotations

KEPT = 1024
"""Clients whose absence or lapses are remembered, at most."""


class Clients:
    """Who listens, and since when others do not. Without a limit (None) all listen always, and
    come."""

    def __init__(self, absent_seconds: float | None) -> None:
        self._limit = absent_seconds
        self._listening: set[str] = set()
        self._seen: dict[str, float] = {}
        self._lapses: dict[str, int] = {}

    def listens(self, client: str) -> bool:
        return self._limit is None or client in self._listening

    def set(self, now: float, client: str, listens: bool) -> None:
        """A client began to listen, or ceased to."""
        if listens:
            self._listening.add(client)
            self._seen.pop(client, None)
        else:
            self._listening.discard(client)
            self.seen(now, client)

    def seen(self, now: float, client: str) -> None:
        """A client that may not listen was there just now."""
        if self._limit is None or client in self._listening:
            return
        self._seen[client] = now
        if len(self._seen) > KEPT:
            self._seen = {name: at for name, at in self._seen.items() if now < at + self._limit}

    def lapsed(self, client: str) -> None:
        """A job started for a client, and the client did not come."""
        if self._limit is None:
            return
        self._lapses[client] = self._lapses.pop(client, 0) + 1
        if len(self._lapses) > KEPT:
            del self._lapses[next(iter(self._lapses))]

    def came(self, client: str) -> None:
        """A job of a client is done: its lapses are forgotten."""
        self._lapses.pop(client, None)

    def lapses(self, client: str) -> int:
        """How often a client has lapsed since a job of it was last done."""
        return self._lapses.get(client, 0)

    def due(self, client: str, arrived: float) -> float:
        """When what arrived at that time is to be cancelled, unless its client comes back."""
        assert self._limit is not None
        return max(arrived, self._seen.get(client, arrived)) + self._limit
