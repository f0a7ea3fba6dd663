"""Sessions of suite `ckks` at a service: the program `privet-ckks` on this host, and a relay to it.

The service knows sessions by the certificates of their WebSockets, and relays them; key and data
stay in the program on this host, which speaks to a Unix socket here. What a session computes waits
in the service's queues like other jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aiohttp import ClientWebSocketResponse, WSMsgType

from privet.compiler.executor.codec import Inputs
from privet.errors import LinkError, PeerBusy, PeerMisbehaved, PrivetError
from privet.gateway.calls import Calls
from privet.gateway.catalog import version_path
from privet.gateway.model import Offer, Terms
from privet.runtime import Credentials, Result
from privet.runtime.homomorphic import Endpoint, ask, take_part
from privet.runtime.revocation import Revoked
from privet.runtime.trust import PeerTrust, fingerprint_of
from privet.suites import Progress
from privet.suites.ckks import encrypting
from privet.suites.costs import PhaseCost

LINGER_SECONDS = 5.0
"""How long the program here may take to read why a session has ended."""

CHUNK_BYTES = 2**16
"""The most that goes into one message; the service takes twice as much."""


@asynccontextmanager
async def relay(calls: Calls, path: str) -> AsyncIterator[Path]:
    """A Unix socket each of whose connections is a session at the service.

    The program here first reads there the SHA-256 of the certificate that the service showed. A
    `LinkError` meanwhile becomes what the service said, if it said anything.
    """
    failures: list[PrivetError] = []
    open: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open.add(task)
        try:
            async with calls.stream(path) as link:
                writer.write(_fingerprint(link))
                await _join(link, reader, writer)
        except PrivetError as error:
            failures.append(error)
        finally:
            open.discard(task)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    with tempfile.TemporaryDirectory(prefix="privet-") as folder:
        socket = Path(folder) / "relay"
        server = await asyncio.start_unix_server(serve, socket)
        try:
            yield socket
        except LinkError as error:
            raise (failures[0] if failures else error) from error
        finally:
            server.close()
            # Whoever gives up ends the session as well: the service computes for nobody then.
            for task in (tasks := list(open)):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _join(
    link: ClientWebSocketResponse, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Passes on what comes, until either side ends. What the service said last arrives: the program
    here would not read it if nobody took what it still sends."""

    async def up() -> None:
        while data := await reader.read(CHUNK_BYTES):
            with contextlib.suppress(ConnectionError):
                await link.send_bytes(data)

    async def down() -> None:
        async for message in link:
            if message.type is not WSMsgType.BINARY:
                return
            writer.write(message.data)
            await writer.drain()

    tasks = [asyncio.create_task(up()), asyncio.create_task(down())]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    if tasks[1].done():
        with contextlib.suppress(OSError):
            writer.write_eof()
        await asyncio.wait(tasks[:1], timeout=LINGER_SECONDS)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _fingerprint(link: ClientWebSocketResponse) -> bytes:
    """The SHA-256 of the certificate that the service showed."""
    tls = link.get_extra_info("ssl_object")
    certificate = None if tls is None else tls.getpeercert(binary_form=True)
    if certificate is None:
        raise LinkError("the service showed no certificate")
    return hashlib.sha256(certificate).digest()


SILENCE = 120.0
"""Seconds that this side waits for each message if nothing else is said."""


async def infer_encrypted(
    calls: Calls,
    credentials: Credentials,
    path: str,
    offer: Offer,
    inputs: Inputs,
    terms: Terms,
    timeout: float,
    progress: Progress | None = None,
) -> Result:
    """The private predictions for real inputs, up to the program's batch, by the model at `path`,
    in the scenario of `terms` and with no less noise on results than they say. Raises `InputError`
    before anything is sent if an input does not fit, and after all is done if a result has wrapped
    around; `Misuse` without the program `privet-ckks`; `PeerBusy`, `LinkError`, `PeerError`."""
    with tempfile.TemporaryDirectory(prefix="privet-") as keys:
        credentials.link_into(Path(keys), "client")
        async with relay(calls, path + "/session") as socket:
            endpoint = Endpoint(Path(keys), encrypting(terms.suite), timeout, socket=socket)
            return await asyncio.to_thread(ask, endpoint, offer.program, inputs, progress=progress)


PAUSE_SECONDS = 0.5
WATCH_SECONDS = 1.0
"""Between two looks at the list of revoked certificates."""

OnInference = Callable[[PhaseCost | PrivetError | None], None]
"""Is called when an inference has begun (None), what it has cost, or why it failed."""


@dataclass(frozen=True)
class Membership:
    """Where a member takes part: a version of a model at a service, as member `member`, with its
    `program` (of member 0 both halves)."""

    model: str
    version: int
    program: Path
    member: int


@dataclass(eq=False)
class Seat:
    """A member that takes part by these calls, with these credentials, and whether an inference has
    begun."""

    calls: Calls
    credentials: Credentials
    has_begun: threading.Event = field(default_factory=threading.Event)


class CohortMember:
    """Takes part in inferences as a member of a cohort, one after the other.

    Each is a process with a new share of a new key; nothing is kept between two. One that failed,
    for instance because another party left, is told of, and the next is waited for; a service that
    is away is tried for `wait` seconds. One whose certificate is on the list of the `revoked` is
    left.
    """

    def __init__(
        self,
        membership: Membership,
        endpoint: Endpoint,
        on_inference: OnInference,
        wait: float,
        revoked: Revoked | None = None,
    ) -> None:
        self._membership, self._endpoint = membership, endpoint
        self._on_inference, self._wait = on_inference, wait
        self._revoked = revoked or Revoked()
        self._trust = PeerTrust()
        self._seats: dict[asyncio.Task[None], Seat] = {}
        self._current: Seat | None = None
        self._failure: BaseException | None = None

    async def run(self, calls: Calls, credentials: Credentials) -> None:
        """Takes part until it is cancelled. Raises what the service refuses the member for;
        `LinkError` if it stays away; `PeerMisbehaved` if it is trusted no more."""
        self._trust.renew(credentials.authorities)
        self._sit(calls, credentials)
        try:
            while self._seats:
                await asyncio.wait(
                    self._seats, timeout=WATCH_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                self._look()
        finally:
            for task in (tasks := list(self._seats)):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._failure is not None:
            raise self._failure

    async def renew(self, calls: Calls, credentials: Credentials) -> None:
        """Waits for inferences by these calls from now on. One that has begun goes on to its end as
        it began, unless the authority of the service's certificate is trusted no more: whatever
        goes on with that is cut at once.

        Raises `NotReached` if the service does not answer these calls; the member waits on as it
        did then.
        """
        self._trust.renew(credentials.authorities)
        if self._current is not None and self._refuses(self._current.calls.certificates) is None:
            try:
                await calls.reach(self._wait)
            except BaseException:
                await calls.close()
                raise
        # The service gives the seat to the connection that came last, and lets the other one go.
        self._sit(calls, credentials)
        self._look()

    def _sit(self, calls: Calls, credentials: Credentials) -> None:
        self._current = seat = Seat(calls, credentials)
        self._seats[asyncio.create_task(self._take_part(seat))] = seat

    def _look(self) -> None:
        """Forgets seats that were left, and leaves those at a service that is trusted no more."""
        for task, seat in tuple(self._seats.items()):
            failure: BaseException | None = None
            if task.done():
                failure = task.exception()
            elif (why := self._refuses(seat.calls.certificates)) is not None:
                failure = PeerMisbehaved(f"the service: {why}")
                task.cancel()
                if seat.has_begun.is_set():
                    self._on_inference(failure)
            else:
                continue
            del self._seats[task]
            if seat is self._current:
                self._failure = failure

    def _refuses(self, chain: list[bytes]) -> str | None:
        if not chain:
            return None
        return self._revoked.refuses(fingerprint_of(chain)) or self._trust.refuses(chain)

    async def _take_part(self, seat: Seat) -> None:
        try:
            await self._inferences(seat)
        finally:
            await seat.calls.close()

    async def _inferences(self, seat: Seat) -> None:
        membership, calls = self._membership, seat.calls
        path = version_path(membership.model, membership.version) + "/session"
        limit = time.monotonic() + self._wait
        while seat is self._current:
            since, has_begun = time.monotonic(), threading.Event()
            seat.has_begun = has_begun

            def begins(has_begun: threading.Event = has_begun) -> None:
                has_begun.set()
                self._on_inference(None)

            try:
                self._on_inference(await self._once(seat, path, begins))
            except PrivetError as error:
                if has_begun.is_set():
                    self._on_inference(error)
                elif seat is not self._current:
                    return
                elif not isinstance(error, LinkError | PeerBusy):
                    raise
                elif time.monotonic() - since > PAUSE_SECONDS:  # it was there before
                    limit = time.monotonic() + self._wait
                elif time.monotonic() > limit:
                    raise
                await asyncio.sleep(PAUSE_SECONDS)
                if seat is self._current:
                    await calls.reach(self._wait)
            else:
                limit = time.monotonic() + self._wait

    async def _once(self, seat: Seat, path: str, begins: Callable[[], None]) -> PhaseCost:
        program, member = self._membership.program, self._membership.member
        # The party reads its keys when it starts, whatever the files hold by then.
        with seat.credentials.kept(f"member-{member}") as keys:
            async with relay(seat.calls, path) as socket:
                endpoint = replace(self._endpoint, keys=keys, socket=socket)
                return await asyncio.to_thread(take_part, program, member, endpoint, begins)
