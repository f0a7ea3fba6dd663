"""A listening socket that gives every authenticated peer a thread of its own."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Self

from privet import _native
from privet.errors import Misuse, PeerMisbehaved, PrivetError, Short
from privet.logs import Seldom
from privet.runtime.credentials import Credentials
from privet.runtime.idle import IdleLinks
from privet.runtime.revocation import Revoked
from privet.runtime.shortage import SpareFile, as_reported, check_room, most_files
from privet.runtime.trust import PeerTrust

MAX_SESSIONS = 64
"""Sessions at the same time, and handshakes; fewer where a process may open few files. Further
peers wait: for a session after their handshake, for that in the system's queue."""

HANDSHAKE_SECONDS = 10.0
HURRY_SECONDS = 1.0
"""How long a handshake may take once a quarter of the places are taken by handshakes, so that peers
who say nothing do not keep others out for long."""

POLL_SECONDS = 0.05
SHORT_SECONDS = 0.5
"""How long nobody is accepted when the system has no resources left."""

BACKLOG = 128
"""Connections that are turned away at once then, so that no flood of them holds the thread."""

Serve = Callable[[_native.Connection, str], None]
"""Serves one peer, given its connection and how it is called: its fingerprint, or its address."""

Failed = Callable[[str, PrivetError], None]
"""Is called when a session failed, or a listener could not accept (the peer is empty)."""


class Acceptor:
    """Accepts peers over TLS and serves each on a thread of its own until `close` is called.

    `short` is called whenever a peer could not be accepted or served for want of files, memory or
    threads.
    """

    def __init__(
        self,
        credentials: Credentials,
        host: str,
        port: int,
        timeout: float,
        serve: Serve,
        failed: Failed,
        revoked: Revoked | None = None,
        short: Callable[[Short], None] | None = None,
    ) -> None:
        self._listener: _native.Listener | None = _native.Listener(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}", credentials.native
        )
        self.address = self._listener.address
        self._timeout = timeout
        self._serve = serve
        self._failed = failed
        self._revoked = revoked or Revoked()
        self._trust = PeerTrust(credentials.authorities)
        self._open: dict[object, tuple[list[bytes], _native.Stopper | None]] = {}
        self._short = short
        self._places = _places()
        self.idle = IdleLinks(self._places // 2)
        """Connections that wait for another request, and give way to peers that come."""
        self._sessions = threading.BoundedSemaphore(self._places)
        self._handshakes = threading.BoundedSemaphore(self._places)
        self._greeting = 0
        self._clients: Counter[str] = Counter()
        self._seldom = Seldom()
        self._spare = SpareFile()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Accepts peers until `close` is called from another thread."""
        listener = self._listener
        if listener is None:
            raise Misuse("this listener has been closed")
        while not self._stopping.is_set():
            if not self._handshakes.acquire(timeout=POLL_SECONDS):
                continue
            pending = self._accept(listener)
            if pending is None:
                self._handshakes.release()
                continue
            try:
                if self._short is None:
                    # A process whose owner is told of this is replaced when it ends.
                    check_room()
                threading.Thread(target=self._greet, args=(pending,), daemon=True).start()
            except (PrivetError, MemoryError, RuntimeError) as error:
                del pending
                self._handshakes.release()
                self._pause(error)

    def start(self) -> None:
        """Runs on a thread of its own."""
        if self._thread is not None:
            raise Misuse("this listener has been started already")
        self._thread = threading.Thread(target=self.run, daemon=True)
        self._thread.start()

    def renew(self, credentials: Credentials) -> None:
        """Shows these credentials to peers that come from now on, and lets in whom they trust.
        Connections of peers whose authority is trusted no more are cut."""
        if self._listener is not None:
            self._listener.renew(credentials.native)
        self._trust.renew(credentials.authorities)
        with self._lock:
            open = tuple(self._open.values())
        for chain, stopper in open:
            if stopper is not None and self._trust.refuses(chain):
                stopper.stop()

    def close(self) -> None:
        """Stops listening; sessions that run go on to their end."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._listener = None
        self._spare.close()
        self.idle.close()

    def _accept(self, listener: _native.Listener) -> _native.Pending | None:
        """The next peer, if one comes soon."""
        try:
            return listener.accept(POLL_SECONDS)
        except (PrivetError, MemoryError) as error:
            self._pause(error)
            return None

    def _turn_away(self) -> None:
        """Closes the connections that wait to be accepted."""
        if self._listener is not None:
            with self._spare.given_up(), suppress(PrivetError):
                for _ in range(BACKLOG):
                    if self._listener.accept(0.0) is None:
                        return

    def _report(self, peer: str, error: Exception) -> None:
        """Says why a peer was not served. The caller keeps no name for the error, whose traceback
        holds the caller's connection: it would stay open until cycles are collected."""
        failure = as_reported(error)
        self._failed(peer, failure)
        self._report_shortage(failure)

    def _report_shortage(self, error: PrivetError) -> None:
        if isinstance(error, Short) and self._short is not None:
            self._short(error)

    def _pause(self, error: Exception) -> None:
        """The system is short of something, such as open files: sessions that end free it."""
        failure = as_reported(error)
        if self._seldom.due() is not None:
            self._failed("", failure)
        self._report_shortage(failure)
        self._turn_away()
        self._stopping.wait(SHORT_SECONDS)

    def _greet(self, pending: _native.Pending) -> None:
        """Finds out who a peer is, within a time that is short where many have not said it."""
        peer = pending.address
        with self._lock:
            self._greeting += 1
            is_crowded = 4 * self._greeting > self._places
        try:
            connection = pending.handshake(
                min(HURRY_SECONDS if is_crowded else 60, HANDSHAKE_SECONDS)
            )
            peer = connection.peer or peer
            why = self._revoked.refuses(peer)
            if why is not None:
                raise PeerMisbehaved(f"it was turned away: {why}")
            has_place = self._take_place(peer)
        except (PrivetError, OSError, MemoryError) as error:
            self._report(peer, error)
            return
        finally:
            with self._lock:
                self._greeting -= 1
            self._handshakes.release()
        if not has_place:
            self._failed(peer, PeerMisbehaved("too many sessions are open: it was turned away"))
            return
        try:
            connection.set_timeout(self._timeout)
            with self._trusted(connection.chain, connection.stopper()):
                self._serve(connection, peer)
        except (PrivetError, OSError, MemoryError) as error:
            self._report(peer, error)
        finally:
            with self._lock:
                self._clients[peer] -= 1
            self._sessions.release()

    @contextmanager
    def _trusted(self, chain: list[bytes], stopper: _native.Stopper | None) -> Iterator[None]:
        """Has `renew` judge the peer of a connection meanwhile. Raises `PeerMisbehaved` if it is
        not trusted any more: its handshake may have begun before the authorities changed."""
        key = object()
        with self._lock:
            self._open[key] = chain, stopper
        try:
            if (why := self._trust.refuses(chain)) is not None:
                raise PeerMisbehaved(f"it was turned away: {why}")
            yield
        finally:
            with self._lock:
                del self._open[key]

    def _take_place(self, peer: str) -> bool:
        """Waits a while for a session to end; no client has more than half of them."""
        with self._lock:
            # What was idle is about to leave its place.
            if 2 * self._clients[peer] >= self._places and not self.idle.give_up(peer):
                return False
            self._clients[peer] += 1
        has_place = self._sessions.acquire(blocking=False)
        if not has_place:
            self.idle.give_up()
            has_place = self._sessions.acquire(timeout=HANDSHAKE_SECONDS)
        with self._lock:
            self._clients[peer] -= not has_place
            self._clients += Counter()
        return has_place


def _places() -> int:
    """Sessions, and handshakes, for which this process may open enough files."""
    return min(MAX_SESSIONS, max(2, most_files() // 5))


class PartyService:
    """What listens by an `Acceptor`; use it as a context manager or call `close`."""

    def __init__(self, acceptor: Acceptor) -> None:
        self._acceptor = acceptor

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that peers connect to."""
        return self._acceptor.address

    def serve_forever(self) -> None:
        """Serves until `close` is called from another thread."""
        self._acceptor.run()

    def start(self) -> Self:
        """Serves on a thread of its own."""
        self._acceptor.start()
        return self

    def close(self) -> None:
        """Stops listening; sessions that run go on to their end."""
        self._acceptor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()
