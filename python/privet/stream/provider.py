"""The model provider's side of a stream: linear stages on hidden tensors, permuted on the way back.

Serves any number of data providers. Of a request it keeps the rows that later rounds read and the
order in which it sent the last; both go when the request ends. A worker that is lost takes nothing
with it: its round is done again, under Paillier in a fresh order and over BFV in the one that was
prepared, which gives the same bytes. Only when all of a round is there is anything sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privet.errors import LinkError, PeerMisbehaved, PrivetError
from privet.stream.covers import KeyedModel, ModelCover, ModelSide, Rows
from privet.stream.crew import Crew, WorkerLost
from privet.stream.deliveries import Deliveries
from privet.stream.frames import (
    NO_SESSION,
    Failed,
    Header,
    Hello,
    Kind,
    Opened,
    Stocked,
    Tensor,
    Welcome,
)
from privet.stream.ledger import Ledger
from privet.stream.link import Link, Patience, broken, first, write
from privet.stream.pieces import MaskedModel
from privet.stream.preparing import Delivery
from privet.stream.stages import NONE, Indices, Round, Stages

ATTEMPTS = 5
"""How often a round is tried whose workers are lost."""

MOST_SESSIONS = 64

_log = logging.getLogger(__name__)


@dataclass
class Request:
    """What is kept of a request between rounds."""

    cover: ModelCover
    bases: dict[int, Rows] = field(default_factory=dict)
    next: int = 0
    due: dict[int, int] = field(default_factory=dict)
    returned: Indices | None = None
    working: bool = False


class Session:
    """A data provider's requests."""

    def __init__(self, provider: ModelProvider, client: str, patience: Patience) -> None:
        self.id = secrets.token_bytes(16)
        self.client = client
        self.link = Link(self._hear, self._ended, patience)
        self._provider = provider
        self._stages = provider.stages
        self._hiding: ModelSide = self._hidden()
        self._requests: dict[int, Request] = {}
        self._last = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.link.limit = Tensor.longest(self._stages.largest())
        self.over = asyncio.Event()

    def _hidden(self) -> ModelSide:
        if self._stages.cipher.masked:
            return MaskedModel(self._stages, self._announce)
        return KeyedModel(self._stages, lambda key: self._do(self._provider.prepare(key)))

    def _announce(self, piece: int) -> None:
        self._do(self._send(Kind.STOCKED, Stocked(piece).to_bytes()))

    async def _send(self, kind: Kind, payload: bytes) -> None:
        """Sends a frame, unless the session is over, which ends everything that waits for it."""
        with contextlib.suppress(PrivetError):
            await self.link.send(kind, payload)

    def deliver(self, delivery: Delivery) -> None:
        """A piece for this session was prepared."""
        if isinstance(self._hiding, MaskedModel):
            self._hiding.deliver(delivery.number, delivery.made)

    def _hear(self, kind: Kind, payload: bytes) -> None:
        if kind is Kind.OPEN:
            self._open(Opened.parse(payload))
        elif kind is Kind.TENSOR:
            self._take(Tensor.parse(payload))
        elif kind is Kind.FAILED:
            self._requests.pop(Failed.parse(payload).request, None)
        elif kind is Kind.BYE:
            self._do(self.link.fail(LinkError("the data provider said goodbye")))
        else:
            self._hiding.hear(kind, payload)

    def _open(self, opened: Opened) -> None:
        # Numbers rise, so that what comes late for a request that ended is not a new one.
        if opened.request <= self._last:
            raise PeerMisbehaved(f"request {opened.request} was there before")
        if len(self._requests) >= self._provider.window:
            raise PeerMisbehaved(f"more than {self._provider.window} requests are open")
        cover = self._hiding.open(opened.piece)
        self._requests[opened.request] = Request(cover, due=dict(self._stages.inputs))
        self._last = opened.request

    def _take(self, tensor: Tensor) -> None:
        request = self._requests.get(tensor.request)
        if request is None:
            if tensor.request <= self._last:
                return
            raise PeerMisbehaved(f"request {tensor.request} was never opened")
        if tensor.place not in request.due:
            raise PeerMisbehaved(f"value {tensor.place} of request {tensor.request} is not due")
        rows = self._stages.rows(tensor.rows, request.due.pop(tensor.place))
        if request.returned is not None:
            rows = request.cover.returned(request.next - 1, rows, request.returned)
            request.returned = None
        request.bases[tensor.place] = rows
        if not request.due and not request.working:
            self._do(self._advance(tensor.request, request))

    async def _advance(self, number: int, request: Request) -> None:
        """Runs rounds until one waits for the data provider."""
        request.working = True
        try:
            while request.next < len(self._stages.rounds) and not request.due:
                await self._round(number, request)
        except PrivetError as error:
            self._requests.pop(number, None)
            _log.warning("a request failed: %s", error)
            if self.link.failure is None:
                await self.link.send(Kind.FAILED, Failed(number, str(error)).to_bytes())
        finally:
            request.working = False

    async def _round(self, number: int, request: Request) -> None:
        index, it = request.next, self._stages.rounds[request.next]
        sent, returned = await self._provider.linear(request.cover, index, it, request.bases)
        for value in self._stages.last_uses[index]:
            request.bases.pop(value, None)
        request.next += 1
        if number not in self._requests:
            return
        if not it.output:
            request.due, request.returned = {it.target: it.returned}, returned
        elif request.next == len(self._stages.rounds):
            self._requests.pop(number, None)
        await self.link.send(Kind.TENSOR, Tensor(number, index, sent).to_bytes())

    def _do(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _ended(self, _error: PrivetError) -> None:
        self._requests.clear()
        self.over.set()

    async def close(self) -> None:
        """Ends the session."""
        await self.link.fail(LinkError("the model provider was stopped"))
        await self.link.detach()
        for task in list(self._tasks):
            task.cancel()


class ModelProvider:
    """Serves a program's linear stages with a crew that has a worker for each part of each.

    `parts[i]` is how many parts round `i` is computed in; `window` how many requests a data
    provider may have open. With `whole_inputs` workers get all of a tensor, not just what their
    part reads: what tensor partitioning saves. Over BFV `deliveries` are the pieces.
    """

    def __init__(
        self,
        stages: Stages,
        crew: Crew,
        parts: Sequence[int],
        *,
        window: int = 16,
        patience: Patience | None = None,
        whole_inputs: bool = False,
        deliveries: Deliveries | None = None,
    ) -> None:
        self.stages, self.window = stages, window
        self.deliveries = deliveries
        self.ledger = Ledger()
        self._crew, self._parts = crew, tuple(parts)
        self._patience = patience or Patience()
        self._whole = whole_inputs
        self._sessions: dict[bytes, Session] = {}
        self._server: asyncio.Server | None = None
        self._watching: set[asyncio.Task[None]] = set()

    async def listen(
        self, host: str, port: int, tls: ssl.SSLContext, preparing: int = 0
    ) -> tuple[str, int]:
        """Listens; the address that data providers connect to. The preparing worker listens at
        `preparing`."""
        if self.deliveries is not None:
            await self.deliveries.start(host, preparing, self._deliver, self.ledger)
        self._server = await asyncio.start_server(
            self._connected, host, port, ssl=tls, ssl_handshake_timeout=self._patience.connect
        )
        found = self._server.sockets[0].getsockname()
        return found[0], found[1]

    async def close(self) -> None:
        """Ends all sessions."""
        if self._server is not None:
            self._server.close()
        for session in list(self._sessions.values()):
            await session.close()
        for task in list(self._watching):
            task.cancel()
        if self.deliveries is not None:
            await self.deliveries.close()

    def _deliver(self, delivery: Delivery) -> None:
        session = self._sessions.get(delivery.session)
        if session is None or session.client != delivery.client:
            _log.warning("a piece was prepared for a session that there is not")
            return
        session.deliver(delivery)

    async def prepare(self, key: bytes) -> None:
        """Has all workers make their tables of noise for a new data provider."""
        calls = [
            self._crew.call(stage, part, "ready", key)
            for stage, count in enumerate(self._parts)
            for part in range(count)
        ]
        for error in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(error, BaseException):
                _log.warning("a worker could not make noise ahead: %s", error)

    async def linear(
        self, cover: ModelCover, index: int, it: Round, bases: dict[int, Rows]
    ) -> tuple[bytes, Indices]:
        """A round's value as it is sent, and where the answer's elements come back.

        # Errors
        `WorkerLost` if workers were lost in every attempt; those of the workers.
        """
        for attempt in range(ATTEMPTS):
            order, returned = cover.arrange(index)
            try:
                return await self._attempt(cover, index, it, bases, order), returned
            except WorkerLost as error:
                _log.warning("round %d is redone: %s", index, error)
                self.ledger.redone += 1
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("there is at least one attempt")

    async def _attempt(
        self, cover: ModelCover, index: int, it: Round, bases: dict[int, Rows], order: Indices
    ) -> bytes:
        slices = self.stages.slices(index, self._parts[index])
        message = np.empty((it.sent, self.stages.row_bytes), dtype=np.uint8)
        owner = np.zeros(int(np.prod(it.shape)), dtype=np.int64)
        for part, each in enumerate(slices):
            owner[each.elements] = part
        there = order != NONE
        if not there.all():
            message[~there] = self.stages.least
        owners = np.where(there, owner[np.where(there, order, 0)], -1)
        places = [np.flatnonzero(owners == part) for part in range(len(slices))]

        async def compute(part: int) -> None:
            if not len(places[part]):
                return
            needs = self._needs(it, bases) if self._whole else slices[part].needs
            given = [
                (need.tobytes(), bases[value][need].tobytes())
                for value, need in zip(it.bases, needs, strict=True)
            ]
            given += cover.shares(it, slices[part])
            elements = order[places[part]].astype("<u4").tobytes()
            self.ledger.moved += sum(len(rows) for _, rows in given)
            made, seconds = await self._crew.call(
                index, part, "linear", cover.key, index, elements, given
            )
            self.ledger.spent(index, seconds)
            message[places[part]] = self.stages.rows(made, len(places[part]))

        results = await asyncio.gather(*map(compute, range(len(slices))), return_exceptions=True)
        raise_first(results)
        return cover.leaving(index, message).tobytes()

    def _needs(self, it: Round, bases: dict[int, Rows]) -> list[Indices]:
        """All of every base, as without tensor partitioning."""
        return [np.arange(len(bases[value]), dtype="<u4") for value in it.bases]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._welcome(reader, writer)
        except (OSError, EOFError, TimeoutError, PrivetError) as error:
            _log.info("a connection ended: %s", error)
        finally:
            writer.transport.abort()

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _fingerprint(writer)
        try:
            header, payload = await first(reader, self._patience)
            if header.kind is not Kind.HELLO:
                raise PeerMisbehaved("a greeting was due")
            hello = Hello.parse(payload)
            session = self._session(hello, client)
        except PeerMisbehaved as error:
            text = str(error).encode()
            await write(writer, Header(Kind.REFUSED, len(text), 0, 0), text, self._patience)
            raise
        await session.link.detach()
        port = self.deliveries.port if self.deliveries is not None else 0
        welcome = Welcome(session.id, session.link.received, self.window, port).to_bytes()
        await write(writer, Header(Kind.WELCOME, len(welcome), 0, 0), welcome, self._patience)
        if hello.session == NO_SESSION:
            await session.link.send(Kind.PROGRAM, self.stages.program.to_public_bytes())
        await session.link.attach(reader, writer, hello.received)

    def _session(self, hello: Hello, client: str) -> Session:
        if hello.session == NO_SESSION:
            if hello.cipher != self.stages.cipher.code:
                raise PeerMisbehaved(f"the cipher here is {self.stages.cipher}")
            if len(self._sessions) >= MOST_SESSIONS:
                raise PeerMisbehaved("too many sessions are open")
            session = Session(self, client, self._patience)
            self._sessions[session.id] = session
            task = asyncio.create_task(self._watch(session))
            self._watching.add(task)
            task.add_done_callback(self._watching.discard)
            return session
        found = self._sessions.get(hello.session)
        # Another's session looks as one that is not there.
        if found is None or found.client != client:
            raise PeerMisbehaved("there is no such session any more")
        return found

    async def _watch(self, session: Session) -> None:
        """Forgets a session that ended, or had no connection for too long."""
        without = 0.0
        while not session.over.is_set():
            step = min(1.0, self._patience.resume / 4)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(session.over.wait(), step)
            without = 0.0 if session.link.connected else without + step
            if without > self._patience.resume:
                await session.link.fail(broken(self._patience.resume))
        self._sessions.pop(session.id, None)
        await session.link.detach()


def raise_first(results: Sequence[object]) -> None:
    """Raises the first error, a lost worker before others, because that is mended by redoing."""
    errors = [it for it in results if isinstance(it, BaseException)]
    errors.sort(key=lambda error: not isinstance(error, WorkerLost))
    if errors:
        raise errors[0]


def _fingerprint(writer: asyncio.StreamWriter) -> str:
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    if certificate is None:
        raise PeerMisbehaved("a certificate is needed")
    return hashlib.sha256(certificate).hexdigest()
