"""Material over BFV, prepared by one worker of each side over a TLS of their own.

Both authenticate themselves by their organisation's certificate. A material entry is named by
its session and number, so that the model provider knows whose it is; the data provider's
certificate must be the one that opened the session.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privet import _native
from privet.errors import PeerMisbehaved, PrivetError
from privet.logs import trace
from privet.runtime.acceptor import Acceptor
from privet.runtime.credentials import Credentials
from privet.runtime.revocation import Revoked
from privet.stream.cipher import BFV
from privet.stream.frames import LARGEST_ENTRY
from privet.stream.rounds import Ledger
from privet.stream.worker_pool import Part, Recipe, WorkerLost, WorkerPool
from privet.suites import Guard, Policy
from privet.suites.costs import PhaseCost, read_report

KEPT = 8
"""Material entries that wait in a preparing worker; more preparations wait for those to be
fetched."""


@dataclass(frozen=True)
class Prepared:
    """The model provider's part of a material entry: whose it is, its session and number."""

    client: str
    session: bytes
    number: int
    material: Any
    cost: PhaseCost


@dataclass(frozen=True)
class PreprocessingAddress:
    """Where the other side's preparing worker listens, and the name in its certificate."""

    host: str
    port: int
    name: str


def name_of(session: bytes, number: int) -> str:
    """How both sides call a material entry."""
    return f"{session.hex()}/{number}"


def _named(name: str) -> tuple[bytes, int]:
    """The session and number of a material entry; of none if a peer calls it otherwise."""
    session, _, text = name.partition("/")
    try:
        number = int(text)
        return (bytes.fromhex(session), number) if 0 < number <= LARGEST_ENTRY else (b"", 0)
    except ValueError:
        return b"", 0


@dataclass(frozen=True)
class Rules:
    """A policy in JSON, the folder in which answers are counted, and the file that lists revoked
    certificates, if there is one: workers are given these."""

    policy: str
    folder: str
    revocations: str | None = None

    def guard(self) -> Guard:
        """What holds clients to it."""
        return Guard(Policy(self.policy), self.folder)

    def revoked(self) -> Revoked:
        """Who is refused. Raises `Misuse` if the list cannot be read."""
        return Revoked(self.revocations)


class PreparingModel:
    """The model provider's: listens for data providers."""

    def __init__(
        self,
        public: bytes,
        weights: bytes,
        files: tuple[Path, Path, Path],
        timeout: float,
        rules: Rules,
    ) -> None:
        # A client may also infer here, so the counts are those of the other port.
        guard = rules.guard()
        self._server = _native.StreamServer(public, weights, guard)
        self._files, self._timeout = files, timeout
        self._revoked = rules.revoked()
        self._acceptor: Acceptor | None = None
        self._prepared: queue.Queue[Prepared] = queue.Queue(KEPT)

    def process(self) -> int:
        return os.getpid()

    def listen(self, host: str, port: int) -> int:
        if self._acceptor is None:
            credentials = Credentials(*self._files)
            self._acceptor = Acceptor(
                credentials,
                host,
                port,
                self._timeout,
                self._serve,
                lambda _peer, _error: None,
                self._revoked,
            )
            self._acceptor.start()
        return self._acceptor.address[1]

    def renew(self) -> None:
        """Reads its files again: shows them to data providers that come, and cuts the connections
        of those whose authority is trusted no more. Raises `Misuse` if one cannot be used."""
        if self._acceptor is not None:
            self._acceptor.renew(Credentials(*self._files))

    def fetch(self, seconds: float) -> Prepared | None:
        """The next entry, if one is made in time."""
        try:
            return self._prepared.get(timeout=seconds)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Stops listening."""
        if self._acceptor is not None:
            self._acceptor.close()

    def _serve(self, connection: _native.Connection, client: str) -> None:
        stopper = connection.stopper()

        def stock(name: str, material: Any, report: str) -> None:
            if self._revoked.refuses(client):
                if stopper is not None:
                    stopper.stop()
                return
            cost = read_report(report, by_server=True)[0]
            self._prepared.put(Prepared(client, *_named(name), material, cost))

        self._server.serve(connection, BFV.config, lambda _kind, _report: None, stock)


class PreparingData:
    """The data provider's: asks for one entry after the other over one connection."""

    def __init__(
        self,
        public: bytes,
        files: tuple[Path, Path, Path],
        timeout: float,
        revocations: str | None = None,
    ) -> None:
        self._plan = _native.StreamPlan(public, BFV.config)
        self._files, self._timeout = files, timeout
        self._revoked = Revoked(revocations)
        self._peer: str | None = None
        self._client: _native.StreamClient | None = None

    def process(self) -> int:
        return os.getpid()

    def prepare(self, address: PreprocessingAddress, name: str) -> tuple[Any, PhaseCost]:
        """This side's part of a material entry, and what it cost. Raises `PeerError` if the other
        side cannot be reached, fails, or was revoked; the next call connects anew."""
        client, self._client = self._client or self._connect(address), None
        if (why := self._revoked.refuses(self._peer or "")) is not None:
            raise PeerMisbehaved(why)
        material, report = client.entry(self._plan, name)
        self._client = client
        return material, read_report(report)[0]

    def renew(self) -> None:
        """Ends the connection: the next call reads its files again."""
        self._client = None

    def _connect(self, address: PreprocessingAddress) -> _native.StreamClient:
        credentials = Credentials(*self._files).native
        connection = _native.Connection.connect(
            address.host, address.port, credentials, address.name, self._timeout
        )
        connection.set_timeout(self._timeout)
        self._peer = connection.peer
        return _native.StreamClient(connection)


POLL_SECONDS = 1.0
"""How long the preparing worker is asked to wait for a material entry, so that one that hangs is
noticed."""

AGAIN_SECONDS = 0.2
"""Between two attempts to listen."""

_log = logging.getLogger(__name__)


class PreprocessingReceiver:
    """Fetches entries from the preparing worker, and hands each to its session by `accept`.

    A worker that is lost takes the entries with it that were not announced; another listens at
    the same port.
    """

    def __init__(self, pool: WorkerPool, recipe: Recipe) -> None:
        self._pool, self._recipe = pool, recipe
        self._ledger = Ledger()
        self._host, self.port = "", 0
        self._accept: Callable[[Prepared], None] = lambda _: None
        self._task: asyncio.Task[None] | None = None
        self._listening = False

    async def start(
        self, host: str, port: int, accept: Callable[[Prepared], None], ledger: Ledger
    ) -> None:
        """Listens; port 0 lets the system choose. Costs go into `ledger`."""
        self._ledger = ledger
        await self._pool.start(self._recipe, [Part(0, 0)])
        self._host, self._accept = host, accept
        self.port = int(await self._pool.call(0, 0, "listen", host, port))
        self._listening = True
        self._task = asyncio.create_task(self._run())

    async def renew(self) -> None:
        """Has the preparing worker read its files again. Raises `Misuse` if one cannot be used."""
        if self._task is None:
            return  # It reads them when it listens.
        try:
            await self._pool.call(0, 0, "renew")
        except WorkerLost as error:
            _log.warning("the preparing worker: %s", error)
            self._listening = False  # The next one reads them when it listens.

    async def _run(self) -> None:
        while True:
            try:
                if not self._listening:
                    await self._pool.call(0, 0, "listen", self._host, self.port)
                    self._listening = True
                prepared = await self._pool.call(0, 0, "fetch", POLL_SECONDS)
                if prepared is not None:
                    self._ledger.stocked(prepared.cost)
                    self._accept(prepared)
            except PrivetError as error:
                _log.warning("the preparing worker: %s", error)
                self._ledger.redone += isinstance(error, WorkerLost)
                self._listening = False
                await asyncio.sleep(AGAIN_SECONDS)
            except Exception as error:
                # That entry is lost; its session asks for another.
                _log.error("a material entry was not taken", extra={"trace": trace(error)})
                await asyncio.sleep(AGAIN_SECONDS)

    async def processes(self) -> list[int]:
        """The preparing worker's process."""
        return list((await self._pool.processes()).values())

    async def close(self) -> None:
        """Ends the preparing worker."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._pool.close()
