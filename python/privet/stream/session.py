"""What the model provider keeps of one data provider.

Of a request these are the rows that later rounds read and the order in which it sent the last; both
go when the request ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from dataclasses import dataclass, field
from typing import Any

from privet.errors import LinkError, PeerMisbehaved, PrivetError
from privet.stream.covers import KeyedModel, ModelCover, ModelSide, Rows
from privet.stream.frames import Failed, Kind, Opened, Stocked, Tensor
from privet.stream.linear import LinearRounds
from privet.stream.link import Link, Patience
from privet.stream.pieces import MaskedModel
from privet.stream.preparing import Delivery
from privet.stream.stages import Indices
from privet.suites import Guard

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


@dataclass(frozen=True)
class Caller:
    """A data provider: its certificate's fingerprint, and the common name in it."""

    fingerprint: str
    name: str | None


class Session:
    """The requests of a data provider, `window` at most at once, counted by `guard`."""

    def __init__(
        self,
        rounds: LinearRounds,
        window: int,
        caller: Caller,
        guard: Guard,
        patience: Patience,
    ) -> None:
        self.id = secrets.token_bytes(16)
        self.client = caller.fingerprint
        self._caller, self._guard = caller, guard
        self.link = Link(self._hear, self._ended, patience)
        self._rounds, self._window = rounds, window
        self._stages = rounds.stages
        self._hiding: ModelSide = self._hidden()
        self._requests: dict[int, Request] = {}
        self._last = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.link.limit = Tensor.longest(self._stages.largest())
        self.over = asyncio.Event()

    def _hidden(self) -> ModelSide:
        if self._stages.cipher.masked:
            return MaskedModel(self._stages, self._announce)
        return KeyedModel(self._stages, lambda key: self._do(self._prepare(key)))

    async def _prepare(self, key: bytes) -> None:
        """Makes noise under a key, or ends the session of whoever sent one that workers refuse."""
        try:
            await self._rounds.prepare(key)
        except PeerMisbehaved as error:
            _log.warning("a session ended: %s", error)
            await self.link.fail(error)

    def _announce(self, piece: int) -> None:
        self._do(self._send(Kind.STOCKED, Stocked(piece).to_bytes()))

    def _announce_failure(self, request: int, why: str) -> None:
        self._do(self._send(Kind.FAILED, Failed(request, why).to_bytes()))

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
        if len(self._requests) >= self._window:
            raise PeerMisbehaved(f"more than {self._window} requests are open")
        batch = self._stages.program.batch
        refused = self._guard.count(self._caller.fingerprint, self._caller.name, batch)
        if refused is not None:
            # The piece that it would have used up stays.
            self._last = opened.request
            self._announce_failure(opened.request, refused[0])
            return
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
        sent, returned = await self._rounds.run(request.cover, index, request.bases)
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
