"""A listening socket that gives every authenticated peer a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from privet import _native
from privet.errors import Misuse, PrivetError
from privet.parties.credentials import Credentials

MAX_SESSIONS = 64
"""Sessions at the same time; further peers wait in the system's queue."""

HANDSHAKE_SECONDS = 10.0
POLL_SECONDS = 0.05

Serve = Callable[[_native.Connection, str], None]
"""Serves one peer, given its connection and how it is called: its fingerprint, or its address."""

Failed = Callable[[str, PrivetError], None]
"""Hears of a session that failed, or of a listener that could not accept (the peer is empty)."""


class Acceptor:
    """Accepts peers over TLS and serves each on a thread of its own until `close` is called."""

    def __init__(
        self,
        credentials: Credentials,
        host: str,
        port: int,
        timeout: float,
        serve: Serve,
        failed: Failed,
    ) -> None:
        self._listener: _native.Listener | None = _native.Listener(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}", credentials.native
        )
        self.address = self._listener.address
        self._timeout = timeout
        self._serve = serve
        self._failed = failed
        self._slots = threading.BoundedSemaphore(MAX_SESSIONS)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Accepts peers until `close` is called from another thread."""
        listener = self._listener
        if listener is None:
            raise Misuse("this listener has been closed")
        while not self._stopping.is_set():
            if not self._slots.acquire(timeout=POLL_SECONDS):
                continue
            pending = self._accept(listener)
            if pending is None:
                self._slots.release()
                continue
            threading.Thread(target=self._session, args=(pending,), daemon=True).start()

    def start(self) -> None:
        """Runs on a thread of its own."""
        if self._thread is not None:
            raise Misuse("this listener has been started already")
        self._thread = threading.Thread(target=self.run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops listening; sessions that run go on to their end."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._listener = None

    def _accept(self, listener: _native.Listener) -> _native.Pending | None:
        """The next peer, if one comes soon."""
        try:
            return listener.accept(POLL_SECONDS)
        except PrivetError as error:
            # The system is short of something, such as file descriptors: sessions that end free it.
            self._failed("", error)
            self._stopping.wait(POLL_SECONDS)
            return None

    def _session(self, pending: _native.Pending) -> None:
        peer = pending.address
        try:
            connection = pending.handshake(HANDSHAKE_SECONDS)
            peer = connection.peer or peer
            connection.set_timeout(self._timeout)
            self._serve(connection, peer)
        except PrivetError as error:
            self._failed(peer, error)
        finally:
            self._slots.release()


class Service:
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
