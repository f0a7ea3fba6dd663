"""The server: offers compiled models to clients, one thread for each session."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from privet import _native
from privet.errors import Misuse, PrivetError
from privet.program import Program, Weights
from privet.serve.costs import LayerCost, PhaseCost, read_report
from privet.serve.credentials import Credentials

MAX_SESSIONS = 64
"""Sessions at the same time; further clients wait in the system's queue."""

HANDSHAKE_SECONDS = 10.0
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Finished:
    """A request that the server served, or a session that failed.

    `kind` is `described`, `prepared`, `inferred` or `failed`; `client` the peer's fingerprint, or
    its address if it did not get that far.
    """

    kind: str
    client: str
    model: str | None = None
    material: str | None = None
    cost: PhaseCost | None = None
    layers: tuple[LayerCost, ...] = ()
    error: PrivetError | None = None


Listener = Callable[[Finished], None]

_log = logging.getLogger(__name__)


class Server:
    """Serves programs over TLS; use it as a context manager or call `close`.

    `state` is a directory that keeps material. `on_finished` hears, from the session's thread, of
    every request served and of every session that failed. Neither a failed session nor an
    `on_finished` that raises (which is logged) ever stops the server or another session.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        state: str | os.PathLike[str],
        host: str = "127.0.0.1",
        port: int = 0,
        timeout: float = 120.0,
        on_finished: Listener | None = None,
    ) -> None:
        self._native = _native.Server(str(Path(state) / "server"))
        self._listener: _native.Listener | None = _native.Listener(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}", credentials.native
        )
        self._address = self._listener.address
        self._timeout = timeout
        self._on_finished = on_finished
        self._slots = threading.BoundedSemaphore(MAX_SESSIONS)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that clients connect to."""
        return self._address

    def add(self, program: Program, weights: Weights) -> str:
        """Offers a program from now on; its hash.

        # Errors
        `InvalidProgram` if the halves do not belong together; `Misuse` if a layer does not fit
        secure BFV parameters.
        """
        public = program.to_public_bytes()
        self._native.add(public, weights.to_private_bytes())
        return program.program_hash

    def serve_forever(self) -> None:
        """Accepts clients until `close` is called from another thread."""
        listener = self._listener
        if listener is None:
            raise Misuse("this server has been closed")
        while not self._stopping.is_set():
            if not self._slots.acquire(timeout=POLL_SECONDS):
                continue
            pending = self._accept(listener)
            if pending is None:
                self._slots.release()
                continue
            threading.Thread(target=self._session, args=(pending,), daemon=True).start()

    def start(self) -> Server:
        """Serves on a thread of its own."""
        if self._thread is not None:
            raise Misuse("this server has been started already")
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """Stops listening; sessions that run go on to their end."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._listener = None

    def _accept(self, listener: _native.Listener) -> _native.Pending | None:
        """The next client, if one comes soon."""
        try:
            return listener.accept(POLL_SECONDS)
        except PrivetError as error:
            # The system is short of something, such as file descriptors: sessions that end free it.
            self._tell(Finished("failed", "", error=error))
            self._stopping.wait(POLL_SECONDS)
            return None

    def _session(self, pending: _native.Pending) -> None:
        client = pending.address
        try:
            connection = pending.handshake(HANDSHAKE_SECONDS)
            client = connection.peer or client
            connection.set_timeout(self._timeout)

            def on_event(kind: str, model: str, material: str | None, report: str | None) -> None:
                cost, layers = read_report(report, by_server=True) if report else (None, ())
                self._tell(Finished(kind, client, model, material, cost, layers))

            self._native.serve(connection, on_event)
        except PrivetError as error:
            self._tell(Finished("failed", client, error=error))
        finally:
            self._slots.release()

    def _tell(self, finished: Finished) -> None:
        if self._on_finished is None:
            return
        try:
            self._on_finished(finished)
        except Exception:
            _log.exception("on_finished raised on %s", finished)

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
