"""Which clients listen: those to whom a job that starts now would be told at once.

A job needs its client at the worker. One that starts for a client who is gone takes its cores until
the client's grace is over, so jobs start only for clients that listen, and those of a client that
stays away are cancelled. A client that listens and still does not come has *lapsed*: until a job of
it is done, others go first, and one job of it runs at a time.

A process that was stopped, or whose network is gone, keeps its connections and seems to listen.
When a client lets a job wait, those behind it are *asked* whether they are there, all at once; who
does not call again in time is *silent*, and listens no more until it calls.
"""

from __future__ import annotations

from itertools import takewhile
from math import inf

KEPT = 1024
"""Clients whose absence or lapses are remembered, at most."""


class Clients:
    """Who listens, and since when others do not. Without a limit (None) all listen always, and
    come."""

    def __init__(self, absent_seconds: float | None) -> None:
        self._limit = absent_seconds
        self._listening: set[str] = set()
        self._silent: set[str] = set()
        self._last_call: dict[str, float] = {}
        self._deadlines: dict[str, float] = {}
        self._last_answer: dict[str, float] = {}
        self._last_presence: dict[str, float] = {}
        self._lapses: dict[str, int] = {}
        self._recalled: dict[str, None] = {}

    def listens(self, client: str) -> bool:
        return self._limit is None or client in self._listening

    def set_listening(self, now: float, client: str, is_listening: bool) -> None:
        """A client began to listen, or ceased to."""
        if is_listening:
            self._silent.discard(client)
            self._listening.add(client)
            self._last_presence.pop(client, None)
            self._last_call[client] = now
        elif client in self._silent:
            self._silent.discard(client)
        else:
            self._remove_listener(now, client)

    def on_call(self, now: float, client: str) -> bool:
        """A client that listens has called; whether it was silent."""
        was_silent = client in self._silent
        if was_silent:
            self.set_listening(now, client, True)
        elif client in self._listening:
            self._last_call[client] = now
            if self._deadlines.pop(client, None) is not None:
                self._last_answer[client] = now
        return was_silent

    def called_after(self, client: str, time: float) -> bool:
        """Whether a client listens and has called after that time."""
        return client in self._listening and self._last_call[client] > time

    def answered_after(self, client: str, time: float) -> bool:
        """Whether a client that listens was asked and has called after that time."""
        return self._last_answer.get(client, -inf) > time

    def ask(self, client: str, due: float) -> bool:
        """A client that listens is to call by then, no earlier than those that were asked before;
        False if it was asked already."""
        if client in self._deadlines:
            return False
        self._deadlines[client] = due
        return True

    def answer_due(self) -> float | None:
        """When the first is to call of those that were asked and have not called since."""
        return next(iter(self._deadlines.values()), None)

    def overdue(self, now: float) -> list[str]:
        """Those that were to call by now and did not."""
        return list(takewhile(lambda client: self._deadlines[client] <= now, self._deadlines))

    def mark_silent(self, now: float, client: str) -> None:
        """A client that was to call did not."""
        if client in self._listening:
            self._remove_listener(now, client)
            self._silent.add(client)

    def _remove_listener(self, now: float, client: str) -> None:
        self._listening.discard(client)
        self._last_call.pop(client, None)
        self._deadlines.pop(client, None)
        self._last_answer.pop(client, None)
        self.note_presence(now, client)

    def note_presence(self, now: float, client: str) -> None:
        """A client that may not listen was there just now."""
        if self._limit is None or client in self._listening:
            return
        self._last_presence[client] = now
        if len(self._last_presence) > KEPT:
            self._last_presence = {
                name: at for name, at in self._last_presence.items() if now < at + self._limit
            }

    def add_lapse(self, client: str) -> None:
        """A job started for a client, and the client did not come."""
        if self._limit is None:
            return
        self._lapses[client] = self._lapses.pop(client, 0) + 1
        if len(self._lapses) > KEPT:
            del self._lapses[next(iter(self._lapses))]

    def recall(self, client: str) -> None:
        """A job is taken back from a client."""
        self._recalled[client] = None
        if len(self._recalled) > KEPT:
            del self._recalled[next(iter(self._recalled))]

    def was_recalled(self, client: str) -> bool:
        """Whether a job was taken back from a client since one of it was last done."""
        return client in self._recalled

    def on_job_done(self, client: str) -> None:
        """A job of a client is done: its lapses are forgotten."""
        self._lapses.pop(client, None)
        self._recalled.pop(client, None)

    def lapses(self, client: str) -> int:
        """How often a client has lapsed since a job of it was last done."""
        return self._lapses.get(client, 0)

    def due(self, client: str, arrived: float) -> float:
        """When what arrived at that time is to be cancelled, unless its client comes back."""
        assert self._limit is not None
        return max(arrived, self._last_presence.get(client, arrived)) + self._limit
