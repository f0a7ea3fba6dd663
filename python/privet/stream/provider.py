"""The model provider's side of a stream: serves linear stages to any number of data providers.

Of a request a session keeps the rows that later rounds read and the order in which it sent the
last; both go when the request ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from privet.errors import LinkError, NotAccepted, PeerMisbehaved, PrivetError
from privet.runtime.credentials import common_name
from privet.runtime.listening import Listening, WrapsTls
from privet.runtime.revocation import Revoked
from privet.runtime.tasks import Tasks
from privet.stream.blinding import KeyedModel, MaskedModel, ModelBlinding, ModelSide, Rows
from privet.stream.frames import (
    NO_SESSION,
    Failed,
    FrameKind,
    Header,
    Hello,
    Opened,
    Stocked,
    Successor,
    TensorFrame,
    Welcome,
)
from privet.stream.link import Link, Patience, broken, first, write
from privet.stream.preprocessing import Prepared, PreprocessingReceiver
from privet.stream.rounds import Ledger, LinearRounds
from privet.stream.stages import Indices, Stages
from privet.stream.worker_pool import WorkerPool
from privet.suites import STREAM, Guard

MOST_SESSIONS = 64

MOST_UNREAD = 1024
"""Frames that a data provider may leave unread while requests of its are refused."""

_log = logging.getLogger(__name__)


class ModelProvider:
    """Serves a program's linear stages with a pool that has a worker for each part of each.

    `parts[i]` is how many parts round `i` is computed in; `window` how many requests a data
    provider may have open. Over BFV `receiver` gets the material. `guard` holds data providers to a
    policy, which must accept this suite.
    """

    def __init__(
        self,
        stages: Stages,
        pool: WorkerPool,
        parts: Sequence[int],
        guard: Guard,
        *,
        window: int = 16,
        patience: Patience | None = None,
        receiver: PreprocessingReceiver | None = None,
        revoked: Revoked | None = None,
    ) -> None:
        self.stages, self.window = stages, window
        self.receiver = receiver
        self._guard = guard
        self._rounds = LinearRounds(stages, pool, parts)
        self._patience = patience or Patience()
        self._sessions: dict[bytes, ProviderSession] = {}
        self._revoked = revoked or Revoked()
        self._listening: Listening | None = None
        self._watching = Tasks()

    @property
    def ledger(self) -> Ledger:
        """What its rounds took."""
        return self._rounds.ledger

    async def listen(
        self, host: str, port: int, tls: WrapsTls, preparing: int = 0
    ) -> tuple[str, int]:
        """Listens; the address that data providers connect to. The preparing worker listens at
        `preparing`."""
        if self.receiver is not None:
            await self.receiver.start(host, preparing, self._accept, self.ledger)
        loop = asyncio.get_running_loop()

        def protocol() -> asyncio.StreamReaderProtocol:
            reader = asyncio.StreamReader(loop=loop)
            return asyncio.StreamReaderProtocol(reader, self._connected, loop=loop)

        self._listening = Listening(protocol, tls)
        return await self._listening.listen(host, port)

    async def renew(self) -> None:
        """Has the preparing worker read its certificate and whom it trusts again, as whoever calls
        this does with what it gave `listen`."""
        if self.receiver is not None:
            await self.receiver.renew()

    async def close(self) -> None:
        """Ends all sessions."""
        if self._listening is not None:
            await self._listening.close()
        for session in list(self._sessions.values()):
            await session.close()
        await self._watching.cancel()
        if self.receiver is not None:
            await self.receiver.close()

    def _accept(self, prepared: Prepared) -> None:
        session = self._sessions.get(prepared.session)
        if session is None or prepared.client not in session.certificates:
            _log.warning("a material entry was prepared for a session that there is not")
            return
        session.accept(prepared)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._welcome(reader, writer)
        except (OSError, EOFError, TimeoutError, PrivetError) as error:
            _log.info("a connection ended: %s", error)
        finally:
            writer.transport.abort()

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _caller(writer)
        try:
            self._check(client.fingerprint)
            header, payload = await first(reader, self._patience)
            if header.kind is not FrameKind.HELLO:
                raise PeerMisbehaved("a greeting was due")
            hello = Hello.parse(payload)
            session = self._session(hello, client)
        except (PeerMisbehaved, NotAccepted) as error:
            text = str(error).encode()
            await write(writer, Header(FrameKind.REFUSED, len(text), 0, 0), text, self._patience)
            raise
        await session.link.detach()
        port = self.receiver.port if self.receiver is not None else 0
        welcome = Welcome(session.id, session.link.received, self.window, port).to_bytes()
        await write(writer, Header(FrameKind.WELCOME, len(welcome), 0, 0), welcome, self._patience)
        if hello.session == NO_SESSION:
            await session.link.send(FrameKind.PROGRAM, self.stages.program.to_public_bytes())
        if session.caller is not client:
            raise PeerMisbehaved("the session went on over another connection")
        await session.link.attach(reader, writer, hello.received)

    def _check(self, client: str) -> None:
        why = self._revoked.refuses(client)
        if why is not None:
            raise PeerMisbehaved(why)

    def _session(self, hello: Hello, caller: Caller) -> ProviderSession:
        client = caller.fingerprint
        refusal = self._guard.check(client, caller.name, STREAM.text)
        if refusal is not None:
            raise NotAccepted(refusal)
        if hello.session == NO_SESSION:
            if hello.cipher != self.stages.cipher.code:
                raise PeerMisbehaved(f"the cipher here is {self.stages.cipher}")
            if len(self._sessions) >= MOST_SESSIONS:
                raise PeerMisbehaved("too many sessions are open")
            session = ProviderSession(
                self._rounds, self.window, caller, self._guard, self._patience
            )
            self._sessions[session.id] = session
            self._watching.start(self._watch(session))
            return session
        open_session = self._sessions.get(hello.session)
        # Another's session looks as one that is not there.
        if open_session is None or client not in (open_session.client, open_session.successor):
            raise PeerMisbehaved("there is no such session any more")
        open_session.take_over(caller)
        return open_session

    async def _watch(self, session: ProviderSession) -> None:
        """Forgets a session that ended, had no connection for too long, or whose client's
        certificate was revoked."""
        gap = 0.0
        while not session.over.is_set():
            step = min(1.0, self._patience.resume / 4)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(session.over.wait(), step)
            if why := self._revoked.refuses(session.client):
                await session.link.fail(PeerMisbehaved(why))
            gap = 0.0 if session.link.connected else gap + step
            if gap > self._patience.resume:
                await session.link.fail(broken(self._patience.resume))
        self._sessions.pop(session.id, None)
        await session.link.detach()


def _caller(writer: asyncio.StreamWriter) -> Caller:
    link = writer.get_extra_info("ssl_object")
    certificate = link.getpeercert(binary_form=True)
    if certificate is None:
        raise PeerMisbehaved("a certificate is needed")
    return Caller(hashlib.sha256(certificate).hexdigest(), common_name(link.getpeercert()))


@dataclass
class ProviderRequest:
    """What is kept of a request between rounds."""

    blinding: ModelBlinding
    bases: dict[int, Rows] = field(default_factory=dict)
    next: int = 0
    due: dict[int, int] = field(default_factory=dict)
    returned: Indices | None = None
    work: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Ends what is done for it: nobody waits for that any more."""
        if self.work is not None:
            self.work.cancel()


@dataclass(frozen=True)
class Caller:
    """A data provider: its certificate's fingerprint, and the common name in it."""

    fingerprint: str
    name: str | None


class ProviderSession:
    """The requests of a data provider, `window` at most at once, counted by `guard`.

    The certificate of `caller` goes on with it, or the `successor` that this one has named last.
    Material is for the session if it was made for one of its `certificates`.
    """

    def __init__(
        self,
        rounds: LinearRounds,
        window: int,
        caller: Caller,
        guard: Guard,
        patience: Patience,
    ) -> None:
        self.id = secrets.token_bytes(16)
        self.caller, self._guard = caller, guard
        self.successor = self._before = caller.fingerprint
        self.link = Link(self._on_frame, self._ended, patience)
        self._rounds, self._window = rounds, window
        self._stages = rounds.stages
        self._hiding: ModelSide = self._hidden()
        self._requests: dict[int, ProviderRequest] = {}
        self._last = 0
        self._tasks = Tasks()
        self.link.limit = TensorFrame.longest(self._stages.largest())
        self.over = asyncio.Event()

    @property
    def client(self) -> str:
        """The fingerprint of the certificate that goes on with it."""
        return self.caller.fingerprint

    @property
    def certificates(self) -> set[str]:
        """The fingerprints of that certificate, the one before, and the one that is to follow:
        while one replaces the other, material is made for either."""
        return {self._before, self.client, self.successor}

    def take_over(self, caller: Caller) -> None:
        """Goes on with the certificate of a caller, which may be another one than before."""
        if caller.fingerprint != self.client:
            self._before = self.client
        self.caller = caller

    def _hidden(self) -> ModelSide:
        if self._stages.cipher.masked:
            return MaskedModel(self._stages, self._announce)
        return KeyedModel(self._stages, lambda key: self._tasks.start(self._prepare(key)))

    async def _prepare(self, key: bytes) -> None:
        """Makes noise under a key, or ends the session of whoever sent one that workers refuse."""
        try:
            await self._rounds.prepare(key)
        except PeerMisbehaved as error:
            _log.warning("a session ended: %s", error)
            await self.link.fail(error)

    def _announce(self, entry: int) -> None:
        self._tasks.start(self._send(FrameKind.STOCKED, Stocked(entry).to_bytes()))

    def _announce_failure(self, request: int, why: str) -> None:
        self._tasks.start(self._send(FrameKind.FAILED, Failed(request, why).to_bytes()))

    async def _send(self, kind: FrameKind, payload: bytes) -> None:
        """Sends a frame, unless the session is over, which ends everything that waits for it."""
        with contextlib.suppress(PrivetError):
            await self.link.send(kind, payload)

    def accept(self, prepared: Prepared) -> None:
        if isinstance(self._hiding, MaskedModel):
            self._hiding.accept(prepared.number, prepared.material)

    def _on_frame(self, kind: FrameKind, payload: bytes) -> None:
        if kind is FrameKind.OPEN:
            self._open(Opened.parse(payload))
        elif kind is FrameKind.TENSOR:
            self._take(TensorFrame.parse(payload))
        elif kind is FrameKind.FAILED:
            if request := self._requests.pop(Failed.parse(payload).request, None):
                request.stop()
        elif kind is FrameKind.SUCCESSOR:
            self.successor = Successor.parse(payload).fingerprint.hex()
        elif kind is FrameKind.BYE:
            self._tasks.start(self.link.fail(LinkError("the data provider ended the session")))
        else:
            self._hiding.on_frame(kind, payload)

    def _open(self, frame: Opened) -> None:
        # Numbers rise, so that what comes late for a request that ended is not a new one.
        if frame.request <= self._last:
            raise PeerMisbehaved(f"request {frame.request} was there before")
        if len(self._requests) >= self._window:
            raise PeerMisbehaved(f"more than {self._window} requests are open")
        batch = self._stages.program.batch
        refusal = self._guard.count(self.caller.fingerprint, self.caller.name, batch)
        if refusal is not None:
            if self.link.unacknowledged > MOST_UNREAD:
                raise PeerMisbehaved("requests are refused, and nobody reads why")
            # The entry that it would have used up stays.
            self._last = frame.request
            self._announce_failure(frame.request, refusal[0])
            return
        blinding = self._hiding.open(frame.entry)
        self._requests[frame.request] = ProviderRequest(blinding, due=dict(self._stages.inputs))
        self._last = frame.request

    def _take(self, tensor: TensorFrame) -> None:
        request = self._requests.get(tensor.request)
        if request is None:
            if tensor.request <= self._last:
                return
            raise PeerMisbehaved(f"request {tensor.request} was never opened")
        if tensor.place not in request.due:
            raise PeerMisbehaved(f"value {tensor.place} of request {tensor.request} is not due")
        rows = self._stages.rows(tensor.rows, request.due.pop(tensor.place))
        if request.returned is not None:
            rows = request.blinding.returned(request.next - 1, rows, request.returned)
            request.returned = None
        request.bases[tensor.place] = rows
        if not request.due and request.work is None:
            request.work = self._tasks.start(self._advance(tensor.request, request))

    async def _advance(self, number: int, request: ProviderRequest) -> None:
        """Runs rounds until one waits for the data provider."""
        try:
            while request.next < len(self._stages.rounds) and not request.due:
                await self._round(number, request)
        except PrivetError as error:
            self._requests.pop(number, None)
            _log.warning("a request failed: %s", error)
            if self.link.failure is None:
                await self.link.send(FrameKind.FAILED, Failed(number, str(error)).to_bytes())
        finally:
            request.work = None

    async def _round(self, number: int, request: ProviderRequest) -> None:
        index, round = request.next, self._stages.rounds[request.next]
        message, places = await self._rounds.run(request.blinding, index, request.bases)
        for value in self._stages.last_uses[index]:
            request.bases.pop(value, None)
        request.next += 1
        if not round.output:
            request.due, request.returned = {round.target: round.returned}, places
        elif request.next == len(self._stages.rounds):
            self._requests.pop(number, None)
        await self.link.send(FrameKind.TENSOR, TensorFrame(number, index, message).to_bytes())

    def _ended(self, _error: PrivetError) -> None:
        for request in self._requests.values():
            request.stop()
        self._requests.clear()
        self.over.set()

    async def close(self) -> None:
        await self.link.fail(LinkError("the model provider was stopped"))
        await self.link.detach()
        await self._tasks.cancel()
