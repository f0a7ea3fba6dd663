"""A client's connection to its server, which can be opened anew and broken from outside."""

from __future__ import annotations

import contextlib
import logging
import operator
from collections.abc import Callable

from privet import _native
from privet.errors import Misuse, PrivetError
from privet.runtime.credentials import Credentials, check_credentials
from privet.runtime.dealer import dialer
from privet.runtime.store import MaterialStore

_log = logging.getLogger(__name__)


class Line:
    """An open `connection` to a server, which a session takes over.

    To connect may take `patience` seconds, by default `timeout`. The other parameters are those of
    `privet.Client`.

    Raises `LinkError` if the server cannot be reached; `Misuse` if the port is none.
    """

    connection: _native.Connection
    peer: str | None
    rtt: float | None

    def __init__(
        self,
        host: str,
        port: int,
        credentials: Credentials,
        *,
        link: _native.Link | None,
        server_name: str | None,
        timeout: float,
        patience: float | None = None,
    ) -> None:
        name, soon = server_name or host, patience or timeout
        check_credentials(credentials)
        self._address = (host, _number(port), credentials.native, name, soon, link)
        self._timeout = timeout
        self._stopper: _native.Stopper | None = None
        self._abandoned = False
        self.open()

    def open(self) -> None:
        """Connects; to be called again once the earlier connection is closed or broken. Raises what
        the class does."""
        self.connection = _native.Connection.connect(*self._address)
        self.connection.set_timeout(self._timeout)
        self._stopper = self.connection.stopper()
        if self._abandoned:
            self.abandon()
        self.peer, self.rtt = self.connection.peer, self.connection.rtt

    @property
    def is_abandoned(self) -> bool:
        """Whether somebody broke the connection by `abandon`."""
        return self._abandoned

    def abandon(self) -> None:
        """Breaks the connection from another thread, for good."""
        self._abandoned = True
        if self._stopper is not None:
            self._stopper.stop()


def _number(port: int) -> int:
    """The port, if it is one. Raises `Misuse`."""
    with contextlib.suppress(TypeError):
        if 0 < (number := operator.index(port)) < 1 << 16:
            return number
    raise Misuse(f"the port is {port!r}: give a number from 1 to 65535, such as 7400")


class Session(Line):
    """A line on which `native` speaks, for suites that make material.

    `store` gives where material is kept, once there is a connection. With `keep_base_ots`,
    preparations leave there what stands in for base OTs the next time.

    Raises what `Line` does; `PeerMisbehaved` if the server is no Privet.
    """

    native: _native.Client

    def __init__(
        self,
        host: str,
        port: int,
        credentials: Credentials,
        *,
        store: Callable[[], MaterialStore],
        dealer: str | None,
        link: _native.Link | None,
        server_name: str | None,
        timeout: float,
        patience: float | None = None,
        keep_base_ots: bool = True,
    ) -> None:
        self.was_left = False
        self._store = store
        self._keeps = keep_base_ots
        self._dialer = dialer(dealer, credentials, timeout, link)
        super().__init__(
            host,
            port,
            credentials,
            link=link,
            server_name=server_name,
            timeout=timeout,
            patience=patience,
        )

    def open(self) -> None:
        super().open()
        store = self._store().native
        self.native = _native.Client(self.connection, store, self._dialer, self._keeps)

    def resume(self, timeout: float) -> bool:
        """Takes up the session for another job, with another timeout. Whether the server has not
        ended it, as far as this side can tell without asking."""
        return self.native.resume(timeout)

    def reopen(self) -> None:
        """Leaves a connection that may have broken, and connects again."""
        self.leave()
        self.open()

    def warn_of_evicted(self) -> None:
        """Warns of encrypted weights that had to go for those that came."""
        for text in self.native.evicted():
            _log.warning("%s", text)

    def leave(self) -> None:
        """Closes a session that may have broken: the server need not wait for it. It `was_left` if
        the server had ended it, after an earlier job, before it heard of this one."""
        self.was_left = self.native.was_left
        with contextlib.suppress(PrivetError):
            self.native.close()

    def abandon(self) -> None:
        """As `Line`, the connection to the dealer as well."""
        super().abandon()
        if self._dialer is not None:
            self._dialer.stop()
