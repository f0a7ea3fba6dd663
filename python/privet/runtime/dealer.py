"""The dealer: a third party that makes the material of two others, and the way to it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from privet import _native, tracing
from privet.errors import Misuse, PrivetError
from privet.keys import DEALER_NAME
from privet.runtime.acceptor import Acceptor, PartyService
from privet.runtime.credentials import Credentials, check_credentials
from privet.runtime.idle import IDLE_SECONDS
from privet.runtime.quantities import split_address
from privet.runtime.revocation import Revoked
from privet.suites.costs import DealerCost

PATIENCE_SECONDS = 30.0
"""How long a party waits at the dealer for the other one."""

MOST_BYTES = 16 << 30
"""The largest entry that a dealer makes, in bytes on the wire."""


@dataclass(frozen=True)
class Dealt:
    """An entry that was dealt, or a deal that failed.

    `peer` is the fingerprint of the party that came last, or that failed.
    """

    peer: str
    model: str | None = None
    material: str | None = None
    cost: DealerCost | None = None
    error: PrivetError | None = None


Listener = Callable[[Dealt], None]

Deal = tuple[str, str, int, int, float, float]
"""A model, an entry, bytes to client and server, seconds, and the peak of memory in MB."""

_log = logging.getLogger(__name__)


class Dealer(PartyService):
    """Deals over TLS to parties of its authority; use it as a context manager or call `close`.

    Two parties get halves of one entry if both ask for the same one and each names the other's
    certificate. The dealer sees public halves of programs, who asks, and the material that it
    makes; it keeps nothing. `revoked` is as for `Server`. `on_dealt` is called for every deal, made
    or failed.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        timeout: float = 120.0,
        most_bytes: int = MOST_BYTES,
        patience: float = PATIENCE_SECONDS,
        revoked: str | os.PathLike[str] | None = None,
        on_dealt: Listener | None = None,
    ) -> None:
        if most_bytes < 1 or patience <= 0:
            raise Misuse("a dealer needs a positive limit of bytes and some patience")
        self._native = _native.Dealer(most_bytes, patience)
        self._on_dealt = on_dealt
        self._revoked = Revoked(revoked)
        super().__init__(
            Acceptor(credentials, host, port, timeout, self._serve, self._failed, self._revoked)
        )

    def renew(self, credentials: Credentials) -> None:
        """Shows these credentials to parties that come from now on, and lets in whom they trust;
        deals that run go on to their end, unless a party's authority is trusted no more."""
        check_credentials(credentials)
        self._acceptor.renew(credentials)

    def _serve(self, connection: _native.Connection, peer: str) -> None:
        def begins() -> str | None:
            idle.take(connection)
            return self._revoked.refuses(peer)

        idle, link, since = self._acceptor.idle, connection.stopper(), time.monotonic()
        deal, is_left = self._native.serve(connection)
        self._report(deal, peer)
        while is_left and idle.add(connection, peer, link, since):
            try:
                deal, is_left = self._native.serve_another(connection, IDLE_SECONDS, begins)
            finally:
                idle.take(connection)
            self._report(deal, peer)

    def _report(self, deal: Deal | None, peer: str) -> None:
        if deal is not None:
            model, material, to_client, to_server, seconds, peak_rss_mb = deal
            cost = DealerCost(to_client, to_server, seconds, peak_rss_mb)
            tracing.dealt(
                material,
                seconds,
                model=model,
                bytes_client=to_client,
                bytes_server=to_server,
            )
            self._notify(Dealt(peer, model, material, cost))

    def _failed(self, peer: str, error: PrivetError) -> None:
        self._notify(Dealt(peer, error=error))

    def _notify(self, event: Dealt) -> None:
        if self._on_dealt is None:
            return
        try:
            self._on_dealt(event)
        except Exception:
            _log.exception("on_dealt raised on %s", event)


def dialer(
    address: str | None, credentials: Credentials, timeout: float, link: _native.Link | None = None
) -> _native.Dialer | None:
    """The way to the dealer at `HOST:PORT`, whose certificate must carry the dealer's name. Raises
    `Misuse` if `address` is no address."""
    if address is None:
        return None
    host, port = split_address(address)
    return _native.Dialer(host, port, credentials.native, DEALER_NAME, timeout, link)
