"""The data provider's side of a stream: its requests, on their way through the pipeline.

Its private key, or the masks of its entries, are with it and its workers alone. Requests go through
the pipeline side by side, at most as many as both sides agreed on. A worker that is lost is
replaced and its part done again; a connection that breaks is made again and the session goes on
where it was.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from privet import _native
from privet.compiler.executor import decode_output, encode_input
from privet.compiler.executor.codec import Inputs
from privet.compiler.executor.samples import fill
from privet.compiler.graph.operations import Array
from privet.compiler.program import Program
from privet.errors import LinkError, Misuse, PeerMisbehaved, PrivetError
from privet.runtime.credentials import Credentials
from privet.runtime.revocation import Revoked
from privet.runtime.tasks import Tasks
from privet.runtime.trust import PeerTrust, fingerprint_of
from privet.stream.blinding import DataBlinding, DataSide, KeyedData
from privet.stream.cipher import PAILLIER, Cipher
from privet.stream.frames import LARGEST_PROGRAM, Failed, FrameKind, Opened, Successor, TensorFrame
from privet.stream.link import Dialler, Link, Patience
from privet.stream.mask_queue import MaskQueue
from privet.stream.preprocessing import PreparingData, PreprocessingAddress
from privet.stream.rounds import Ledger, NonlinearRounds
from privet.stream.stages import Stages
from privet.stream.worker_pool import Part, Recipe, WorkerPool
from privet.stream.workers import NonlinearWorker

WATCH_SECONDS = 1.0
"""Between two looks at the list of revoked certificates."""


@dataclass(frozen=True)
class Preparing:
    """How entries are prepared over BFV: `ahead` of them, by a worker of `pool` with the
    certificate, key and authority in `files`; `seconds` bounds one. It makes none with a model
    provider on the list in `revocations`."""

    pool: WorkerPool
    files: tuple[Path, Path, Path]
    ahead: int = 4
    seconds: float = 300.0
    revocations: str | None = None


@dataclass
class OpenRequest:
    """A request on its way."""

    blinding: DataBlinding
    reply: asyncio.Future[list[Array]]
    next: int = 0
    outputs: dict[int, Array] = field(default_factory=dict)


class DataProvider:
    """Asks the model provider at `host` and `port`, with a pool of its own.

    `allocate` gives, for the public half of the program served, a place for each worker: stage 0
    hides inputs, the others are what is done in each round. Without it each stage has one worker.
    Over BFV `preparing` says how entries are.
    `request_seconds` bounds a request; `window` how many are open, within what the peer allows.
    `program_hash` pins the program. The session ends once the model provider's certificate is one
    of the `revoked`. Use it as an asynchronous context manager.
    """

    def __init__(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext,
        pool: WorkerPool,
        *,
        allocate: Callable[[bytes], Sequence[Part]] | None = None,
        cipher: Cipher = PAILLIER,
        preparing: Preparing | None = None,
        window: int = 8,
        server_name: str | None = None,
        program_hash: str | None = None,
        request_seconds: float = 600.0,
        patience: Patience | None = None,
        revoked: Revoked | None = None,
    ) -> None:
        self._revoked, self._trust = (
            revoked or Revoked(),
            PeerTrust(tls.get_ca_certs(binary_form=True)),
        )
        self._pool, self._allocate = pool, allocate
        self._cipher, self._preparing, self._window = cipher, preparing, window
        self._hiding: DataSide | None = None
        self._hash = program_hash
        self._seconds = request_seconds
        self._patience = patience or Patience()
        self._described: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._open: dict[int, OpenRequest] = {}
        self._last = 0
        self._slots = asyncio.Semaphore(window)
        self._order = asyncio.Lock()
        self._tasks = Tasks()
        self._stages: Stages | None = None
        self._rounds: NonlinearRounds | None = None
        self.link = Link(self._on_frame, self._ended, self._patience)
        self.link.limit = LARGEST_PROGRAM
        self._dialler = Dialler(
            host,
            port,
            server_name or host,
            tls,
            self._trust,
            cipher,
            self.link,
            self._patience,
            self._agree,
        )
        self.ledger = Ledger()

    async def __aenter__(self) -> Self:
        """Connects, makes a key or starts to prepare, and starts the workers. Raises `LinkError` if
        the peer cannot be reached, `PeerMisbehaved` if it is not what it should be."""
        self._tasks.start(self._dialler.keep())
        self._tasks.start(self._watch())
        try:
            async with asyncio.timeout(self._patience.resume):
                public = await self._described
        except TimeoutError as error:
            await self.close()
            raise LinkError("the model provider does not say what it serves") from error
        except BaseException:
            await self.close()
            raise
        try:
            await self._start(public)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await self.close()

    async def renew(self, credentials: Credentials) -> None:
        """Goes on with these credentials, and whom they trust: the session, its requests and its
        material stay, and all connections are made anew. The preparing worker reads its files,
        which are those of the same party, after the entry that it makes. Raises whatever ended the
        session; `LinkError` if the model provider does not take note, and goes on with the
        certificate before then, and whom both trust.

        A model provider that is trusted no more is told nothing: its connection is cut at once, and
        the session goes on if another certificate is shown before its time is up.
        """
        tls = await asyncio.to_thread(credentials.tls, self._revoked)
        self._trust.renew(credentials.authorities)
        if self._trust.refuses(self._dialler.certificates) is None:
            # The session goes on with this certificate alone, or the one before.
            name = Successor(bytes.fromhex(credentials.fingerprint))
            try:
                async with asyncio.timeout(self._patience.resume):
                    await self.link.deliver(FrameKind.SUCCESSOR, name.to_bytes())
            except TimeoutError:
                raise LinkError("the model provider takes no note of another certificate") from None
        self._dialler.tls = tls
        await self.link.detach()
        if isinstance(self._hiding, MaskQueue):
            self._tasks.start(self._hiding.renew())

    async def _watch(self) -> None:
        """Leaves a model provider whose certificate was revoked: the session ends if it shows that
        one again."""
        while self.link.failure is None:
            if (chain := self._dialler.certificates) and self._revoked.refuses(
                fingerprint_of(chain)
            ):
                await self.link.detach()
            await asyncio.sleep(WATCH_SECONDS)

    @property
    def stages(self) -> Stages:
        if self._stages is None:
            raise Misuse("connect first")
        return self._stages

    @property
    def address(self) -> tuple[str, int]:
        return self._dialler.address

    @property
    def stock(self) -> MaskQueue:
        """The material, over BFV."""
        if not isinstance(self._hiding, MaskQueue):
            raise Misuse("there is no stock")
        return self._hiding

    def _working(self) -> NonlinearRounds:
        if self._rounds is None:
            raise Misuse("connect first")
        return self._rounds

    async def _start(self, public: bytes) -> None:
        # What is not the pinned program is not even read.
        if self._hash not in (None, hashlib.sha256(public).hexdigest()):
            raise PeerMisbehaved("the model provider serves another program than the one pinned")
        try:
            Program.from_public_bytes(public)
        except PrivetError as error:
            raise PeerMisbehaved(
                f"what the model provider serves is no program: {error}"
            ) from error
        self._stages = Stages(public, self._cipher)
        self.link.limit = TensorFrame.longest(self._stages.largest())
        count = 1 + len(self._stages.rounds)
        if self._allocate is None:
            parts: Sequence[Part] = places([1] * count)
        else:
            parts = await asyncio.to_thread(self._allocate, public)
        counts = [sum(part.stage == stage for part in parts) for stage in range(count)]
        if min(counts) < 1 or sum(counts) != len(parts):
            raise Misuse(f"the program has {count} stages here, and each needs a worker")
        self._rounds = NonlinearRounds(self._stages, self._pool, counts, self.ledger)
        hiding = await self._hide(public)
        self._hiding = hiding
        await self._pool.start(
            Recipe(NonlinearWorker, (public, self._cipher), hiding.secret), parts
        )
        await hiding.start(self.link.send)

    async def _hide(self, public: bytes) -> DataSide:
        if not self._cipher.masked:
            began = time.perf_counter()
            key = await asyncio.to_thread(_native.StreamKey.generate, self._cipher.key_bits)
            self.ledger.offline_seconds += time.perf_counter() - began
            return KeyedData(key)
        if self._preparing is None or not self._dialler.preparing:
            raise Misuse("BFV needs preparing workers at both sides")
        jobs = self._preparing
        return MaskQueue(
            jobs.pool,
            Recipe(PreparingData, (public, jobs.files, jobs.seconds, jobs.revocations)),
            PreprocessingAddress(self.address[0], self._dialler.preparing, self._dialler.name),
            self._dialler.session,
            self.stages.row_bytes,
            self.ledger,
            ahead=jobs.ahead,
            patience=self._patience.resume,
        )

    async def infer(self, inputs: Inputs) -> dict[str, Array]:
        """The outputs for real inputs, by name; as many calls at a time as you like. Raises
        `InputError` on unfit inputs; `PeerError` if the other side fails or `request_seconds`
        pass."""
        return decode_output(self.stages.program, await self.integers(inputs))

    async def integers(self, inputs: Inputs) -> list[Array]:
        """As `infer`, the outputs as the program's integers."""
        filled, _ = fill(self.stages.program, inputs)
        encoded = encode_input(self.stages.program, filled)
        async with self._slots:
            if self.link.failure is not None:
                raise self.link.failure
            try:
                async with asyncio.timeout(self._seconds):
                    number, request = await self.begin()
                    try:
                        hide = (
                            self._working().hide(request.blinding, *entry)
                            for entry in enumerate(encoded)
                        )
                        await self.send(number, await asyncio.gather(*hide))
                        return await request.reply
                    finally:
                        await self._forget(number)
            except TimeoutError as error:
                raise LinkError(f"a request took longer than {self._seconds:.0f} s") from error

    async def _forget(self, number: int) -> None:
        """Ends a request here, and there too unless it went through."""
        request = self._open.pop(number, None)
        if request is None or self.link.failure is not None:
            return
        if (
            not request.reply.done()
            or request.reply.cancelled()
            or request.reply.exception() is not None
        ):
            await self.link.send(FrameKind.FAILED, Failed(number, "given up").to_bytes())

    async def begin(self) -> tuple[int, OpenRequest]:
        """Opens a request at both sides, and uses up what blinds it."""
        if self._hiding is None:
            raise Misuse("connect first")
        # One after the other: requests use entries in the order of their numbers.
        async with self._order:
            blinding = await self._hiding.take()
            if self.link.failure is not None:
                raise self.link.failure
            self._last += 1
            number = self._last
            request = self._open[number] = OpenRequest(
                blinding, asyncio.get_running_loop().create_future()
            )
            try:
                await self.link.send(FrameKind.OPEN, Opened(number, blinding.entry).to_bytes())
            except BaseException:
                self._open.pop(number, None)
                raise
        return number, request

    async def send(self, number: int, tensors: Sequence[bytes]) -> None:
        """Sends the hidden inputs of a request."""
        for entry, rows in zip(self.stages.program.inputs, tensors, strict=True):
            await self.link.send(
                FrameKind.TENSOR, TensorFrame(number, entry.value, rows).to_bytes()
            )

    def _on_frame(self, kind: FrameKind, payload: bytes) -> None:
        if kind is FrameKind.PROGRAM and not self._described.done():
            self._described.set_result(payload)
        elif kind is FrameKind.TENSOR and self._stages is not None:
            self._take(TensorFrame.parse(payload))
        elif kind is FrameKind.FAILED:
            failed = Failed.parse(payload)
            request = self._open.get(failed.request)
            if request is not None and not request.reply.done():
                self._open.pop(failed.request)
                request.reply.set_exception(PeerMisbehaved(f"the model provider: {failed.reason}"))
        elif self._hiding is not None:
            self._hiding.on_frame(kind, payload)
        else:
            raise PeerMisbehaved(f"a frame of kind {kind.name} is not due")

    def _take(self, tensor: TensorFrame) -> None:
        request = self._open.get(tensor.request)
        if request is None:
            if tensor.request > self._last:
                raise PeerMisbehaved(f"there is no request {tensor.request}")
            return
        if tensor.place != request.next or request.next >= len(self.stages.rounds):
            raise PeerMisbehaved(f"round {tensor.place} came where {request.next} was due")
        self.stages.rows(tensor.rows, self.stages.rounds[request.next].sent)
        request.next += 1
        self._tasks.start(self._answer(tensor, request))

    async def _answer(self, tensor: TensorFrame, request: OpenRequest) -> None:
        index, stream_round = tensor.place, self.stages.rounds[tensor.place]
        try:
            if stream_round.output:
                rows = await self._working().reveal(request.blinding, index, tensor.rows)
                self._reveal(request, stream_round.target, rows)
            else:
                rows = await self._working().answer(request.blinding, index, tensor.rows)
                answer = TensorFrame(tensor.request, stream_round.target, rows)
                await self.link.send(FrameKind.TENSOR, answer.to_bytes())
        except PrivetError as error:
            if not request.reply.done():
                request.reply.set_exception(error)

    def _reveal(self, request: OpenRequest, target: int, values: bytes) -> None:
        outputs = self.stages.program.outputs
        shape = self.stages.program.values[outputs[target].value].shape
        request.outputs[target] = np.frombuffer(values, dtype="<i8").reshape(shape)
        if len(request.outputs) == len(outputs) and not request.reply.done():
            request.reply.set_result([request.outputs[index] for index in range(len(outputs))])

    def _agree(self, window: int) -> None:
        if window < 1:
            raise PeerMisbehaved("the model provider takes no requests")
        if window < self._window:
            self._slots = asyncio.Semaphore(window)

    def _ended(self, error: PrivetError) -> None:
        if not self._described.done():
            self._described.set_exception(error)
            self._described.exception()
        if self._hiding is not None:
            self._hiding.ended(error)
        for request in self._open.values():
            if not request.reply.done():
                request.reply.set_exception(error)

    async def close(self) -> None:
        """Ends the session and the workers."""
        if self.link.failure is None and self.link.connected:
            await self.link.send(FrameKind.BYE, b"")
            try:
                async with asyncio.timeout(1.0):
                    await self.link.disconnected()
            except TimeoutError:
                pass
        await self.link.fail(LinkError("this session is closed"))
        await self.link.detach()
        await self._tasks.cancel()
        if self._hiding is not None:
            await self._hiding.close()
        await self._pool.close()


def places(parts: Sequence[int]) -> list[Part]:
    """A worker for each part of each stage, on no server in particular."""
    return [Part(stage, part) for stage, count in enumerate(parts) for part in range(count)]
