"""A listening socket of an event loop that strangers cannot exhaust.

What a connection costs before anybody knows whose it is, is bounded: handshakes under way, from one
address and from all, and the time that each may take. Where there are too many, the oldest from the
address with the most of them gives way, so a client that answers at once gets through a crowd that
says nothing. Authenticated connections are counted for each client. All together stay below the
process's limit of open files, with a reserve for what else it must open.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import socket
import ssl
import time
import weakref
from asyncio import sslproto
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from privet.errors import Misuse
from privet.logs import Seldom
from privet.runtime.shortage import SpareFile, most_files, shortage
from privet.runtime.trust import PeerTrust, chain_of

HANDSHAKE_SECONDS = 10.0
"""How long a TLS handshake may take."""

PAUSE_SECONDS, PAUSES = 0.2, 5
"""How long nothing is accepted when the system has no resources left; after so many pauses on end,
connections that wait are closed."""

RESERVED_FILES = 32
"""Files that a process may open besides connections: stores, pipes to workers, databases."""

TLS_BUFFER_BYTES = 32 << 10
"""What asyncio reserves for what arrives at a connection during its TLS handshake, instead of its
256 KiB. From then on all connections share as much: most of a service's wait for updates."""

QUIET_SECONDS, PROBE_SECONDS, PROBES = 30, 10, 3
"""When a connection on which nothing came is probed, how often, and how often in vain."""

MOST_CONNECTIONS, LEAST_CONNECTIONS = 4096, 12
KEPT_PLACES = 4
"""Connections that are left to clients that have none."""

BACKLOG = 128

MOST_ADDRESSES = 1024
"""Addresses of which is remembered when a failed handshake was logged."""

LINES_AT_ONCE = 20
LINE_SECONDS = 10.0
"""ListenerBounds on lines of failed handshakes, whatever number of addresses they come from."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ListenerBounds:
    """How many connections there may be: of all, of one client, and handshakes under way, from all
    addresses and from one."""

    connections: int
    of_client: int
    handshakes: int
    of_address: int

    @classmethod
    def of_process(cls, listeners: int = 1) -> ListenerBounds:
        """What this process's limit of open files leaves room for, for each of its listeners.
        Raises `Misuse` if that is too little to serve anybody."""
        reserve = len(os.listdir("/proc/self/fd")) + RESERVED_FILES
        sockets = min(MOST_CONNECTIONS, (most_files() - reserve) // listeners)
        if sockets < LEAST_CONNECTIONS:
            raise Misuse(
                f"this process may open {most_files()} files, and needs at least "
                f"{reserve + listeners * LEAST_CONNECTIONS} to serve: raise the limit (ulimit -n, "
                "LimitNOFILE= of systemd)"
            )
        handshakes = min(64, sockets // 3)
        connections = sockets - handshakes
        return cls(connections, max(4, connections // 4), handshakes, max(4, handshakes // 2))

    @property
    def sockets(self) -> int:
        """All connections, those included that have not said who they are."""
        return self.connections + self.handshakes


def notice_loss(connection: socket.socket) -> None:
    """Ends the connections of a socket whose peer has vanished without a word, after a minute."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", QUIET_SECONDS),
        ("TCP_KEEPINTVL", PROBE_SECONDS),
        ("TCP_KEEPCNT", PROBES),
    ):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class WrapsTls(Protocol):
    """What makes the TLS object of a connection: an `ssl.SSLContext`, or what stands for one."""

    @property
    def wrap_bio(self) -> Callable[..., ssl.SSLObject]:
        """As of `ssl.SSLContext`."""


class RenewedTls:
    """For connections to come: the context that `make` made last. Raises what `make` does.

    `on_reload` has what is called whenever it was made anew, on any thread.
    """

    def __init__(self, make: Callable[[], ssl.SSLContext]) -> None:
        self._make = make
        self._trust = PeerTrust()
        self.on_reload: list[Callable[[], object]] = []
        self.reload()

    def reload(self) -> None:
        """Makes it anew; the one before stays where that fails. Connections from before whose
        peer's authority is trusted no more are cut. Raises what `make` does."""
        self._context = self._make()
        self._trust.renew(self._context.get_ca_certs(binary_form=True))
        for call in tuple(self.on_reload):
            call()

    @property
    def wrap_bio(self) -> Callable[..., ssl.SSLObject]:
        """As of the context that was made last."""
        return self._context.wrap_bio

    def is_current(self, link: ssl.SSLObject) -> bool:
        """Whether a connection is of the context that was made last."""
        return link.context is self._context

    def refuses(self, chain: Sequence[bytes]) -> str | None:
        """As `PeerTrust.refuses`, by the authorities of the context that was made last."""
        return self._trust.refuses(chain)


class Listening:
    """Accepts connections at a port; each gets a protocol that `factory` makes.

    With `tls`, the protocol is given a connection once its handshake is done. `listen` gives the
    address; `close` ends listening, and what is under way before a protocol knows of it. `count` is
    called with how each handshake ended: `done`, or one of a few words for why it failed.
    """

    def __init__(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        tls: WrapsTls | None,
        bounds: ListenerBounds | None = None,
        count: Callable[[str], None] = lambda outcome: None,
    ) -> None:
        self._factory = factory
        self._count = count
        self._tls = tls
        self.bounds = bounds or ListenerBounds.of_process()
        self._listener: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._handshakes: dict[asyncio.Task[None], str] = {}
        self._clients: Counter[str] = Counter()
        self._open: set[_Counted] = set()
        self._buffer = bytearray(TLS_BUFFER_BYTES)
        self._seldom = Seldom()
        self._failed: dict[str, Seldom] = {}
        self._lines = _Lines()
        self._spare = SpareFile()

    @property
    def connections(self) -> int:
        """Connections whose handshake is done."""
        return self._clients.total()

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Listens from now on. Raises `OSError` if the address cannot be had."""
        loop = self._loop = asyncio.get_running_loop()
        # It is read when a connection is made, and there is no other way to set it.
        sslproto.SSLProtocol.max_size = TLS_BUFFER_BYTES
        hosts = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = hosts[0]
        listener = socket.create_server(
            cast(tuple[str, int], address), family=family, backlog=BACKLOG
        )
        notice_loss(listener)  # what is accepted inherits it
        listener.setblocking(False)
        self._listener = listener
        if isinstance(self._tls, RenewedTls):
            self._tls.on_reload.append(self._cut_soon)
        self._task = asyncio.create_task(self._accept(listener))
        name = listener.getsockname()
        return str(name[0]), int(name[1])

    async def close(self) -> None:
        """Listens no more; connections whose handshake is done go on."""
        if isinstance(self._tls, RenewedTls) and self._cut_soon in self._tls.on_reload:
            self._tls.on_reload.remove(self._cut_soon)
        tasks = [task for task in (self._task, *self._handshakes) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._listener is not None:
            self._listener.close()
        self._spare.close()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        in_vain = 0
        while True:
            try:
                connection, address = await loop.sock_accept(listener)
                in_vain = 0
            except OSError as error:
                self._log_seldom(
                    f"no connection can be accepted: {shortage(error) or error.strerror}"
                )
                in_vain += 1
                if in_vain >= PAUSES:
                    self._turn_away(listener)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            self._make_room(str(address[0]))
            task = asyncio.create_task(self._greet(connection, str(address[0])))
            self._handshakes[task] = str(address[0])
            task.add_done_callback(lambda handshake: self._handshakes.pop(handshake, None))

    def _turn_away(self, listener: socket.socket) -> None:
        """Closes the connections that wait to be accepted, instead of letting them wait in vain."""
        with self._spare.given_up(), contextlib.suppress(OSError):
            for _ in range(BACKLOG):
                listener.accept()[0].close()

    def _make_room(self, address: str) -> None:
        """Gives up the handshake that has waited longest, if there are too many."""
        by_address = Counter(self._handshakes.values())
        busy_address: str | None = None
        if by_address[address] >= self.bounds.of_address:
            busy_address = address
        elif len(self._handshakes) >= self.bounds.handshakes:
            busy_address = by_address.most_common(1)[0][0]
        if busy_address is not None:
            oldest = next(
                task for task, origin in self._handshakes.items() if origin == busy_address
            )
            del self._handshakes[oldest]
            oldest.cancel()
            self._log_seldom(
                "too many connections have not said who they are: the oldest are closed"
            )

    async def _greet(self, connection: socket.socket, address: str) -> None:
        loop = asyncio.get_running_loop()
        protocol = _Counted(self, self._factory)
        handshake = _Handshake(self._tls, connection) if self._tls is not None else None
        try:
            if handshake is None:
                await loop.connect_accepted_socket(lambda: protocol, connection)
            else:
                await loop.connect_accepted_socket(
                    lambda: protocol,
                    connection,
                    ssl=cast(ssl.SSLContext, handshake),
                    ssl_handshake_timeout=HANDSHAKE_SECONDS,
                )
        except asyncio.CancelledError:
            connection.close()
            self._count("given up")
        except OSError as error:
            connection.close()
            # Whoever leaves without a word measured the way here, or is the probe of a balancer.
            is_reset = isinstance(error, ConnectionResetError)
            if is_reset and handshake is not None and not handshake.was_heard:
                self._count("silent")
                return
            outcome, reason = _failure(error)
            self._count(outcome)
            self._log_failed(address, reason)

    def refuses(self, transport: asyncio.BaseTransport) -> bool:
        """Whether a connection from before the authorities changed is of a peer whose authority is
        trusted no more."""
        link = transport.get_extra_info("ssl_object")
        if not isinstance(self._tls, RenewedTls) or link is None or self._tls.is_current(link):
            return False
        return self._tls.refuses(chain_of(link)) is not None

    def takes(self, client: str, transport: asyncio.BaseTransport) -> bool:
        """Whether a connection goes on whose handshake is done; its client has a place then."""
        # The handshake may have begun before the authorities changed.
        outcome = "certificate" if self.refuses(transport) else "done"
        if outcome == "done" and not self.admit(client):
            outcome = "no place"
        self._count(outcome)
        return outcome == "done"

    def _cut_soon(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._cut_untrusted)

    def _cut_untrusted(self) -> None:
        """Cuts the connections of peers that are trusted no more, whatever goes on over them."""
        connections = [
            connection for connection in self._open if self.refuses(connection.transport)
        ]
        for connection in connections:
            connection.transport.abort()
        if connections:
            _log.info("connections were cut", extra={"connections": len(connections)})

    def admit(self, client: str) -> bool:
        """Whether a client whose handshake is done has a place; it is taken then. Without TLS all
        programs of a machine are one client."""
        count, total = self._clients[client], self.connections
        reserve = KEPT_PLACES if count else 0
        limit = self.bounds.connections if self._tls is None else self.bounds.of_client
        if total + reserve >= self.bounds.connections or count >= limit:
            self._log_seldom("a client has too many connections: further ones are closed")
            return False
        self._clients[client] += 1
        return True

    def enter(self, connection: _Counted, transport: asyncio.BaseTransport) -> None:
        """A connection is open, of a client that has a place. What arrives goes through the one
        buffer of all: asyncio copies it from there before it looks at another connection."""
        self._open.add(connection)
        link: Any = getattr(transport, "_ssl_protocol", None)
        if hasattr(link, "_ssl_buffer") and hasattr(link, "_ssl_buffer_view"):
            link._ssl_buffer, link._ssl_buffer_view = self._buffer, memoryview(self._buffer)

    def leave(self, connection: _Counted, client: str) -> None:
        """A connection is closed."""
        self._open.discard(connection)
        self._clients[client] -= 1
        if self._clients[client] <= 0:
            del self._clients[client]

    def _log_failed(self, address: str, reason: str) -> None:
        """Logs a handshake that failed: of an address once a minute, of all a few at once."""
        seldom = self._failed.pop(address, None) or Seldom()
        self._failed[address] = seldom
        while len(self._failed) > MOST_ADDRESSES:
            del self._failed[next(iter(self._failed))]
        count = seldom.due()
        if count is not None and self._lines.due():
            fields = {"address": address, "reason": reason, "times": count}
            _log.warning("a handshake failed", extra=fields)

    def _log_seldom(self, text: str) -> None:
        count = self._seldom.due()
        if count is not None:
            _log.warning(text, extra={"times": count, "connections": self.connections})


class _Lines:
    """Lets `LINES_AT_ONCE` lines of a log through at once, and one more each ten seconds."""

    def __init__(self) -> None:
        self._tokens = float(LINES_AT_ONCE)
        self._at = time.monotonic()

    def due(self) -> bool:
        """Whether there may be another line now."""
        now = time.monotonic()
        self._tokens = min(LINES_AT_ONCE, self._tokens + (now - self._at) / LINE_SECONDS)
        self._at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


class _Handshake:
    """What makes the TLS object of one connection, in place of the context.

    asyncio drops the alert of a handshake that fails, so that a client whose certificate is refused
    sees a connection that ends, and no reason. This one sends the alert before the failure.
    `was_heard` says whether anything came from the peer.
    """

    def __init__(self, tls: WrapsTls, connection: socket.socket) -> None:
        self._tls = tls
        self._connection = connection
        self.was_heard = False

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, **options: Any
    ) -> ssl.SSLObject:
        link = self._tls.wrap_bio(incoming, outgoing, **options)
        # A link that held itself would keep its memory until cycles are collected, which is seldom.
        proxy = weakref.proxy(link)

        def do_handshake() -> None:
            self.was_heard = self.was_heard or incoming.pending > 0
            try:
                ssl.SSLObject.do_handshake(proxy)
            except ssl.SSLError as error:
                if not isinstance(error, ssl.SSLWantReadError | ssl.SSLWantWriteError):
                    with contextlib.suppress(OSError):
                        self._connection.send(outgoing.read())
                raise

        link.do_handshake = do_handshake  # type: ignore[method-assign]
        return link


def _failure(error: OSError) -> tuple[str, str]:
    """Why a handshake failed: in a word, and in a sentence that quotes nothing of the peer's."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "certificate", f"the client's certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = str(error.reason or "no TLS").lower().replace("_", " ")
        return "certificate" if reason.endswith("a certificate") else "tls", reason
    if isinstance(error, ConnectionAbortedError):
        # So asyncio calls a handshake that reached its limit of time.
        return "timed out", "it took too long"
    return "broken off", "the connection broke off"


class _Counted(asyncio.Protocol):
    """Hands a connection to the real protocol, if its client has a place."""

    def __init__(self, listening: Listening, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        self._listening = listening
        self._factory = factory
        self._inner: asyncio.Protocol | None = None
        self._client = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        client = peer_of(transport)
        self.transport = cast(asyncio.Transport, transport)
        if not self._listening.takes(client, transport):
            self.transport.abort()
            return
        self._client = client
        self._listening.enter(self, transport)
        self._inner = cast(asyncio.Protocol, self._factory())
        self._inner.connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self._inner is not None:
            self._listening.leave(self, self._client)
            self._inner.connection_lost(error)

    def data_received(self, data: bytes) -> None:
        if self._inner is not None:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._inner is None else self._inner.eof_received()

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()


def peer_of(transport: asyncio.BaseTransport) -> str:
    """The fingerprint of the peer's certificate, else its address."""
    link = transport.get_extra_info("ssl_object")
    with contextlib.suppress(ValueError):
        certificate = link.getpeercert(binary_form=True) if link is not None else None
        if certificate is not None:
            return hashlib.sha256(certificate).hexdigest()
    name = transport.get_extra_info("peername")
    return str(name[0]) if name else ""
