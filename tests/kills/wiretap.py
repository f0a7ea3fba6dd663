"""A wiretap between client and server that sees what TLS hides.

It holds the keys of both parties, so it shows each the certificate of the other and relays what it
decrypts. Every frame is recorded before the receiver gets it, and by a process that no test kills:
what is not in the record has reached nobody.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Party = Literal["client", "server"]

PROTOCOL = "privet/1"
HEADER_BYTES = 5
DATA = 1
KEPT_BYTES = 4096


@dataclass(frozen=True)
class Frame:
    """A message of a session as it passed by; `whole` is false for one that was cut short.

    `payload` is its first bytes, as many as the tap keeps.
    """

    session: int
    sender: Party
    kind: int
    payload: bytes
    whole: bool

    @property
    def request(self) -> dict[str, Any]:
        """The client's request in this frame; empty if it is anything else."""
        if self.sender != "client" or not self.whole or not self.payload.startswith(b'{"request"'):
            return {}
        request: dict[str, Any] = json.loads(self.payload)
        return request


class Wiretap:
    """Passes on what clients say at `port` to the server at `upstream`, and back.

    `frames` is the record, each with at most `kept` bytes. All methods may be called from any
    thread but the tap's own.
    """

    def __init__(self, keys: Path, kept: int = KEPT_BYTES) -> None:
        self.keys = keys
        self.kept = kept
        self.upstream = 0
        self.port = 0
        self.frames: list[Frame] = []
        self._links: set[_Link] = set()
        self._news = threading.Condition()

    @contextmanager
    def listening(self) -> Iterator[Wiretap]:
        """The tap at work on a thread of its own."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            listener = asyncio.run_coroutine_threadsafe(self._listen(loop), loop).result()
            self.port = listener.sockets[0].getsockname()[1]
            yield self
            listener.close()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def wait(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Waits until `seen()`, which may look at `frames`; whether that came to be in time."""
        with self._news:
            return self._news.wait_for(condition, timeout)

    def quiet(self, timeout: float) -> bool:
        """Waits until both parties have closed all sessions."""
        return self.wait(lambda: not self._links, timeout)

    async def _listen(self, loop: asyncio.AbstractEventLoop) -> asyncio.Server:
        towards_server = ssl.create_default_context(cafile=str(self.keys / "ca.pem"))
        towards_client = ssl.create_default_context(
            ssl.Purpose.CLIENT_AUTH, cafile=str(self.keys / "ca.pem")
        )
        towards_client.verify_mode = ssl.CERT_REQUIRED
        for context, role in ((towards_server, "client"), (towards_client, "server")):
            context.set_alpn_protocols([PROTOCOL])
            context.load_cert_chain(self.keys / f"{role}.pem", self.keys / f"{role}.key")

        count = iter(range(1 << 30))

        def accept() -> _Link:
            session = next(count)
            client, server = _Link(self, session, "client"), _Link(self, session, "server")
            client.other, server.other = server, client
            client.dial = lambda: loop.create_task(self._dial(server, towards_server))
            return client

        return await loop.create_server(accept, "127.0.0.1", 0, ssl=towards_client)

    async def _dial(self, link: _Link, context: ssl.SSLContext) -> None:
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: link, "127.0.0.1", self.upstream, ssl=context, server_hostname="localhost"
            )
        except OSError:
            assert link.other is not None
            link.other.close()

    def note(self, frame: Frame) -> None:
        """Records a frame."""
        with self._news:
            self.frames.append(frame)
            self._news.notify_all()

    def note_link(self, link: _Link, *, opened: bool) -> None:
        """Records that a party's link was opened or is gone."""
        with self._news:
            (self._links.add if opened else self._links.discard)(link)
            self._news.notify_all()


class _Link(asyncio.Protocol):
    """The tap's link with one party of a session."""

    def __init__(self, tap: Wiretap, session: int, party: Party) -> None:
        self.tap, self.session, self.party = tap, session, party
        self.other: _Link | None = None
        self.dial: Callable[[], object] | None = None
        # A server's first byte says that it has accepted the client's certificate.
        self._unframed = 1 if party == "server" else 0
        self._transport: asyncio.Transport | None = None
        self._heard, self._backlog, self._closed = b"", b"", False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.tap.note_link(self, opened=True)
        transport.write(self._backlog)
        if self._closed:
            transport.close()
        if self.dial is not None:
            self.dial()

    def data_received(self, data: bytes) -> None:
        self._heard += data[self._unframed :]
        self._unframed -= min(self._unframed, len(data))
        while (end := self._end()) is not None and len(self._heard) >= end:
            self._note(self._heard[:end], whole=True)
            self._heard = self._heard[end:]
        assert self.other is not None
        self.other.say(data)

    def connection_lost(self, _error: Exception | None) -> None:
        if len(self._heard) > HEADER_BYTES:
            self._note(self._heard, whole=False)
        assert self.other is not None
        self.other.close()
        self.tap.note_link(self, opened=False)

    def say(self, data: bytes) -> None:
        """Passes bytes on to the party."""
        if self._transport is None:
            self._backlog += data
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Hangs up on the party once it has got everything."""
        self._closed = True
        if self._transport is not None:
            with suppress(OSError):
                self._transport.close()

    def _end(self) -> int | None:
        """Where the frame ends that `_heard` begins with; None if that is not yet known."""
        if len(self._heard) < HEADER_BYTES:
            return None
        return HEADER_BYTES + int.from_bytes(self._heard[1:HEADER_BYTES], "little")

    def _note(self, frame: bytes, *, whole: bool) -> None:
        kind, payload = frame[0], frame[HEADER_BYTES : HEADER_BYTES + self.tap.kept]
        self.tap.note(Frame(self.session, self.party, kind, payload, whole))
