"""One end of a session between two organisations, which outlives its connections.

Frames that the peer has not acknowledged are kept, so that after a broken connection both sides
go on where they were: each says which frame it received last, and the other sends what came after.
A frame out of turn ends the session. Waiting is bounded everywhere: a connection that is silent is
closed, and a session without one for `resume` seconds fails. `Dialler` connects anew for a data
provider.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from privet.errors import LinkError, PeerMisbehaved, PrivetError, printable
from privet.runtime.revocation import REVOKED_CODE
from privet.runtime.trust import PeerTrust, chain_of
from privet.stream.cipher import Cipher
from privet.stream.frames import (
    HEADER_BYTES,
    LARGEST_TEXT,
    NO_SESSION,
    FrameKind,
    Header,
    Hello,
    Welcome,
)

CHUNK_BYTES = 1 << 16
ALIVE_SECONDS = 2.0
"""Between two signs of life."""


@dataclass(frozen=True)
class Patience:
    """Deadlines in seconds, and what may wait for the peer in bytes.

    A connection may be silent for `silence`, a session be without one for `resume`, and opening
    one take `connect`. Sending waits while more than `unsent` bytes are not acknowledged.
    """

    silence: float = 15.0
    resume: float = 60.0
    connect: float = 10.0
    unsent: int = 64 << 20


class Link:
    """A session: numbered frames both ways, over one connection after the other.

    `on_frame` is called with each frame that comes, in order, and raises `PeerMisbehaved` on what
    must
    not be; `on_end` is called once, with why, when the session is over.
    """

    def __init__(
        self,
        on_frame: Callable[[FrameKind, bytes], None],
        on_end: Callable[[PrivetError], None],
        patience: Patience,
    ) -> None:
        self._on_frame, self._on_end, self._patience = on_frame, on_end, patience
        self._outbox: deque[tuple[int, FrameKind, bytes]] = deque()
        self._waiting = 0
        self._next = 1
        self._changed = asyncio.Condition()
        self._connection: asyncio.Task[None] | None = None
        self.received = 0
        self.limit = LARGEST_TEXT
        self.failure: PrivetError | None = None
        self.connections = 0

    @property
    def connected(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None and not self._connection.done()

    @property
    def unacknowledged(self) -> int:
        """How many frames the peer may not have received."""
        return len(self._outbox)

    async def send(self, kind: FrameKind, payload: bytes) -> int:
        """Sends a frame, now or over a later connection, and gives its number; waits while too much
        is on its way. Raises whatever ended the session."""
        async with self._changed:
            while self.failure is None and self._waiting > self._patience.unsent:
                await self._changed.wait()
            if self.failure is not None:
                raise self.failure
            number = self._next
            self._outbox.append((number, kind, payload))
            self._next += 1
            self._waiting += len(payload)
            self._changed.notify_all()
            return number

    async def deliver(self, kind: FrameKind, payload: bytes) -> None:
        """As `send`, and waits until the peer has the frame."""
        number = await self.send(kind, payload)
        async with self._changed:
            await self._changed.wait_for(
                lambda: self.failure or not self._outbox or self._outbox[0][0] > number
            )
            if self.failure is not None:
                raise self.failure

    async def disconnected(self) -> None:
        """Waits until there is no connection."""
        if self._connection is not None:
            await asyncio.wait({self._connection})

    async def attach(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer_received: int
    ) -> None:
        """Goes on over a connection until it breaks; `peer_received` is what the peer received
        last. Raises `PeerMisbehaved` if it says that it received what was never sent, or sends what
        it must not; the session has ended then."""
        await self.detach()
        self.connections += 1
        connection = self._connection = asyncio.create_task(
            self._run(reader, writer, peer_received)
        )
        try:
            await asyncio.wait({connection})
        finally:
            connection.cancel()
            writer.transport.abort()
        error = None if connection.cancelled() else connection.exception()
        if isinstance(error, PrivetError):
            await self.fail(error)
            raise error
        # Any other end of a connection is bad luck, after which the session goes on.
        if error is not None and not isinstance(error, OSError | EOFError | TimeoutError):
            raise error

    async def detach(self) -> None:
        """Closes the connection, if there is one; the session goes on over another."""
        connection, self._connection = self._connection, None
        if connection is not None and not connection.done():
            connection.cancel()
            await asyncio.wait({connection})

    async def fail(self, error: PrivetError) -> None:
        """Ends the session."""
        async with self._changed:
            if self.failure is not None:
                return
            self.failure = error
            self._changed.notify_all()
        self._on_end(error)

    async def _run(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, last: int
    ) -> None:
        await self._acknowledge(last)
        tasks = {
            asyncio.create_task(coroutine)
            for coroutine in (self._read(reader), self._write(writer, last))
        }
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        errors = [result for result in results if isinstance(result, Exception)]
        # What the peer did wrong comes before what became of the connection for it.
        errors.sort(key=lambda error: not isinstance(error, PrivetError))
        if errors:
            raise errors[0]

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            head = await read(reader, HEADER_BYTES, self._patience.silence)
            header = Header.parse(head, self.limit)
            payload = await read(reader, header.length, self._patience.silence)
            await self._acknowledge(header.received)
            if header.kind is FrameKind.ALIVE:
                continue
            if header.number != self.received + 1:
                raise PeerMisbehaved(
                    f"frame {header.number} came where {self.received + 1} was due"
                )
            self.received = header.number
            self._on_frame(header.kind, payload)

    async def _write(self, writer: asyncio.StreamWriter, last: int) -> None:
        while True:
            frame = await self._after(last)
            if frame is None:
                await write(
                    writer, Header(FrameKind.ALIVE, 0, 0, self.received), b"", self._patience
                )
                continue
            number, kind, payload = frame
            header = Header(kind, len(payload), number, self.received)
            await write(writer, header, payload, self._patience)
            last = number

    async def _after(self, last: int) -> tuple[int, FrameKind, bytes] | None:
        """The frame after number `last`; None when it is time for a sign of life."""

        def due() -> tuple[int, FrameKind, bytes] | None:
            if not self._outbox or self._outbox[-1][0] <= last:
                return None
            return self._outbox[max(0, last + 1 - self._outbox[0][0])]

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ALIVE_SECONDS), self._changed:
                await self._changed.wait_for(lambda: due() is not None)
                return due()
        return None

    async def _acknowledge(self, number: int) -> None:
        if number >= self._next:
            raise PeerMisbehaved(f"the peer says that it received frame {number}, never sent")
        if not self._outbox or self._outbox[0][0] > number:
            return
        async with self._changed:
            while self._outbox and self._outbox[0][0] <= number:
                self._waiting -= len(self._outbox.popleft()[2])
            self._changed.notify_all()


async def read(reader: asyncio.StreamReader, count: int, silence: float) -> bytes:
    """So many bytes; `silence` bounds the wait for any of them. Raises `TimeoutError`, `EOFError`,
    `OSError`."""
    chunks = []
    while count:
        async with asyncio.timeout(silence):
            chunk = await reader.read(min(count, CHUNK_BYTES))
        if not chunk:
            raise EOFError("the peer closed the connection")
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)


async def write(
    writer: asyncio.StreamWriter, header: Header, payload: bytes, patience: Patience
) -> None:
    """Sends a frame in chunks, so that a peer that reads nothing is noticed."""
    writer.write(header.to_bytes())
    for start in range(0, max(1, len(payload)), CHUNK_BYTES):
        writer.write(payload[start : start + CHUNK_BYTES])
        async with asyncio.timeout(patience.silence):
            await writer.drain()


async def greet(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, payload: bytes, patience: Patience
) -> bytes:
    """The data provider's half of a greeting: the model provider's welcome. Raises `PeerMisbehaved`
    if it refuses; those of `read`."""
    await write(writer, Header(FrameKind.HELLO, len(payload), 0, 0), payload, patience)
    header, answer = await first(reader, patience)
    if header.kind is FrameKind.REFUSED:
        text = printable(answer.decode(errors="replace"))
        raise PeerMisbehaved(f"the model provider refused: {text}")
    if header.kind is not FrameKind.WELCOME:
        raise PeerMisbehaved(f"a welcome was due, not {header.kind.name}")
    return answer


async def first(reader: asyncio.StreamReader, patience: Patience) -> tuple[Header, bytes]:
    """The first frame of a connection."""
    header = Header.parse(await read(reader, HEADER_BYTES, patience.connect), LARGEST_TEXT)
    return header, await read(reader, header.length, patience.connect)


def broken(seconds: float) -> LinkError:
    """The session had no connection for too long."""
    return LinkError(f"the other organisation could not be reached for {seconds:.0f} s")


AGAIN_SECONDS = 0.2
"""Between two attempts to connect."""

_log = logging.getLogger(__name__)


class Dialler:
    """Connects `link` to the model provider at `host` and `port`, whose certificate is of `name`.

    `agree` is called with how many requests may be open. Of a session `session` is what it is
    called there and `preparing` the port of the preparing worker, 0 if there is none. `tls` is what
    the next connection shows and trusts, `trust` says whom it does not trust for all that, and
    `certificates` those that the model provider showed last, in DER.
    """

    def __init__(
        self,
        host: str,
        port: int,
        name: str,
        tls: ssl.SSLContext,
        trust: PeerTrust,
        cipher: Cipher,
        link: Link,
        patience: Patience,
        agree: Callable[[int], None],
    ) -> None:
        self.address, self.name = (host, port), name
        self.tls, self._trust = tls, trust
        self.certificates: list[bytes] = []
        self._cipher, self._link, self._patience, self._agree = cipher, link, patience, agree
        self.session = NO_SESSION
        self.preparing = 0

    async def keep(self) -> None:
        """Connects, and again whenever the connection breaks, until the session is over. There is
        none if nobody listens at first."""
        loop = asyncio.get_running_loop()
        since, told = loop.time(), ""
        while self._link.failure is None:
            try:
                await self._connect()
                since = loop.time()
            except PrivetError as error:
                await self._link.fail(error)
            except ssl.SSLCertVerificationError as error:
                if error.verify_code == REVOKED_CODE:
                    await self._link.fail(
                        PeerMisbehaved(f"the model provider: {error.verify_message}")
                    )
                told = self._tell(error, told)
            except (OSError, EOFError, TimeoutError) as error:
                if isinstance(error, ConnectionRefusedError) and self.session == NO_SESSION:
                    host, port = self.address
                    await self._link.fail(
                        LinkError(
                            f"nobody listens at {host}:{port}: look at the address, and whether "
                            "the model provider runs there"
                        )
                    )
                    return
                told = self._tell(error, told)
            if loop.time() - since > self._patience.resume:
                await self._link.fail(broken(self._patience.resume))
            await asyncio.sleep(AGAIN_SECONDS)

    def _tell(self, error: Exception, told: str) -> str:
        """Logs why there is no connection, unless that was told last; what is told now."""
        why = str(error) or type(error).__name__
        if why != told:
            _log.info("no connection: %s", why)
        return why

    async def _connect(self) -> None:
        """One connection, from its greeting to its end."""
        tls = self.tls
        async with asyncio.timeout(self._patience.connect):
            reader, writer = await asyncio.open_connection(
                *self.address, ssl=tls, server_hostname=self.name
            )
        try:
            self.certificates = chain_of(writer.get_extra_info("ssl_object"))
            if (why := self._trust.refuses(self.certificates)) is not None:
                raise ConnectionError(f"the model provider: {why}")
            hello = Hello(self._cipher.code, self.session, self._link.received)
            answer = await greet(reader, writer, hello.to_bytes(), self._patience)
            welcome = Welcome.parse(answer)
            if self.session not in (NO_SESSION, welcome.session):
                raise PeerMisbehaved("the model provider answers for another session")
            if self.session == NO_SESSION:
                self._agree(welcome.window)
            self.session, self.preparing = welcome.session, welcome.preparing
            if tls is self.tls:  # else others are shown and trusted by now
                await self._link.attach(reader, writer, welcome.received)
        finally:
            writer.transport.abort()
