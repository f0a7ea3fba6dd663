"""Where the material for an inference comes from: what is ready, else what the policy brings."""

from __future__ import annotations

import time
from collections.abc import Callable

from privet.errors import MaterialError, PeerError
from privet.runtime.dry import MAKE, REFUSE, WAIT, Dry
from privet.runtime.result import Spent
from privet.runtime.route import Route
from privet.runtime.session import Session

POLL_SECONDS = 0.1
"""How often a client that waits looks for material."""

FRESH_SECONDS = 10.0
"""A client that waited longer than this connects anew: the server may have hung up on it."""

Take = Callable[[Route], Spent | None]
"""Infers on a ready entry of a route; None if there is none."""

Make = Callable[[Route], str]
"""Makes an entry for a route."""

Unprepared = Callable[[Route], Spent]
"""Infers without material, which is made as it goes."""


class Supply:
    """Finds material for one inference after the other.

    `asked` is the route to take, `other` the one to fall back to, `policy` what to do if no
    material is ready (`make` for `other`), `patience` how many seconds to wait for some. To make
    some is not needed where a route runs `unprepared`.
    """

    def __init__(
        self,
        session: Session,
        asked: Route,
        other: Route | None,
        policy: str,
        patience: float,
        take: Take,
        make: Make,
        unprepared: Unprepared | None = None,
    ) -> None:
        self._session = session
        self._asked = asked
        self._other = other
        self._policy = policy
        self._patience = patience
        self._take = take
        self._make = make
        self._unprepared = unprepared

    def spend(self) -> tuple[Route, Dry | None, Spent]:
        """Infers on the next entry: on which route, why on that one, and what came of it.

        # Errors
        `MaterialError` if there is none and none may be made, or none came in time.
        """
        spent = self._take(self._asked)
        if spent is not None:
            return self._asked, None, spent
        if self._policy == REFUSE:
            raise self._refusal("")
        if self._policy == WAIT:
            return self._wait()
        if self._policy == MAKE and self._unprepared is not None:
            return self._asked, Dry("refilled", 0.0), self._unprepared(self._asked)
        if self._policy == MAKE or self._other is None:
            return self._made(self._asked, time.monotonic())
        return self._fall_back(self._other)

    def _wait(self) -> tuple[Route, Dry, Spent]:
        start = opened = time.monotonic()
        while True:
            now = time.monotonic()
            if self._asked.settle(self._session.native):
                if now - opened > FRESH_SECONDS:
                    self._session.reopen()
                    opened = time.monotonic()
                spent = self._take(self._asked)
                if spent is not None:
                    return self._asked, Dry("waited", now - start), spent
            if now - start > self._patience:
                raise self._refusal(f" after {now - start:.0f} s")
            time.sleep(POLL_SECONDS)

    def _made(
        self, route: Route, start: float, reason: str | None = None
    ) -> tuple[Route, Dry, Spent]:
        """Makes material until an entry is left by other processes that share the store."""
        while True:
            self._make(route)
            seconds = time.monotonic() - start
            spent = self._take(route)
            if spent is not None:
                return route, self._why(route, "made", seconds, reason), spent

    def _fall_back(self, other: Route) -> tuple[Route, Dry, Spent]:
        start = time.monotonic()
        spent = self._take(other)
        if spent is not None:
            return other, self._why(other, "", 0.0, None), spent
        try:
            return self._made(self._asked, start)
        except PeerError as error:
            # A refusal ends a session.
            self._session.reopen()
            return self._made(other, start, str(error))

    def _why(self, route: Route, action: str, seconds: float, reason: str | None) -> Dry:
        if route is self._asked:
            return Dry(action, seconds)
        return Dry("fell back", seconds, self._asked.plan.suite, reason)

    def _refusal(self, since: str) -> MaterialError:
        suite = self._asked.plan.suite
        return MaterialError(
            f"no material is ready for suite {suite}{since}, and this client makes none: prepare "
            "some"
        )
