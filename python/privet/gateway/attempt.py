"""One attempt at a job: a connection to a worker, on which material is made or used.

This is the protocol of `privet.Client`, and blocks: an attempt runs on a thread of its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from privet import _native
from privet.errors import LinkError, NobodyListens, NotAccepted, PeerMisbehaved, printable
from privet.gateway.idle import IdleSessions
from privet.gateway.model import Offer, Terms
from privet.runtime import Credentials, MaterialStore
from privet.runtime.client import network_of
from privet.runtime.result import EntryCost, Inference
from privet.runtime.session import Line, Session
from privet.suites import MaterialSuite, Progress, SingleJobSuite, material_suite
from privet.suites.costs import NOTHING

RETRY_SECONDS = 0.2

REFUSED_SECONDS = 1.0
"""How long a worker is knocked at that refuses connections. It listened before it was leased, so it
has ended, and the service leases another: whoever knocks on would not come to that one in time.
Where it leases no other, as with a proxy that was refused itself, a job knocks again."""

REOPEN_SECONDS = 60.0
"""How long attempts share a store that was opened once."""

MOST_SECONDS = 86_400.0
"""The most that a service's times count for."""

L = TypeVar("L", bound=Line)
R = TypeVar("R")

Payload = list[bytes]
"""Inputs of one inference as the program takes them: little-endian int64, in its order."""


@dataclass(frozen=True)
class Lease:
    """The service's lease of a worker for a job; the fields are those of its answer."""

    job: str
    phase: Literal["prepare", "infer", "fetch"]
    host: str
    port: int
    program: str
    suite: str
    material: str | None
    grace: float
    seconds: float
    dealer: str | None


def read_lease(document: Any) -> Lease:
    """A lease from the service's answer. Raises `PeerMisbehaved` if it does not have the form of
    one."""
    try:
        phase = document["phase"]
        is_known = phase in ("prepare", "infer", "fetch")
        if not is_known or (phase != "infer" and document["material"]):
            raise ValueError(f"phase {phase!r} with material {document['material']!r}")
        port, grace = int(document["port"]), min(float(document["grace"]), MOST_SECONDS)
        seconds = min(float(document["seconds"]), MOST_SECONDS)
        if not (0 < port < 1 << 16 and grace > 0 and seconds > 0):
            raise ValueError(f"port {port}, {grace} and {seconds} seconds")
        return Lease(
            job=str(document["job"]),
            phase=phase,
            host=str(document["host"]),
            port=port,
            program=str(document["program"]),
            suite=str(document["suite"]),
            material=document["material"] and str(document["material"]),
            grace=grace,
            seconds=seconds,
            dealer=document["dealer"] and str(document["dealer"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        text = printable(repr(error))
        raise PeerMisbehaved(f"the service gave no proper lease: {text}") from error


@dataclass(frozen=True)
class WorkerClient:
    """What an attempt takes along: who the client is, where its material is, whom it expects.

    `server_name` must be in the worker's certificate: it is the name by which the service itself is
    known, and nothing that the service says changes it. `dealer` goes before the service's.
    """

    credentials: Credentials
    state: str | os.PathLike[str]
    server_name: str
    dealer: str | None = None
    link: _native.Link | None = None
    max_disk: int | None = None
    progress: Progress | None = None
    idle: IdleSessions = field(default_factory=IdleSessions, init=False, repr=False, compare=False)
    _stores: list[tuple[int, MaterialStore]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    @property
    def store(self) -> MaterialStore:
        """The client's material. To open it waits for the disk, so attempts share it for a while;
        opened anew it sweeps away what a full disk has left, and sees whether its key is another.
        """
        period = int(time.monotonic() / REOPEN_SECONDS)
        if not self._stores or self._stores[0][0] != period:
            self._stores[:] = [(period, MaterialStore(self.state, most=self.max_disk))]
        return self._stores[0][1]


class Attempt:
    """One job at a worker. `fetch`, `prepare` and `infer` block; any thread may call `stop`.

    It `was_refused` if the worker refused connections until it was left; `dealer_is_away` if nobody
    listens where the dealer should be.
    """

    def __init__(
        self, lease: Lease, worker_client: WorkerClient, offer: Offer, terms: Terms
    ) -> None:
        self.lease = lease
        self._worker_client = worker_client
        self._offer = offer
        self._terms = terms
        self._lock = threading.Lock()
        self._stopped = False
        self._line: Line | None = None
        self.was_refused = False
        self.dealer_is_away = False

    @property
    def fetches(self) -> bool:
        """Whether the client keeps something of the program on these terms."""
        return isinstance(self._terms.suite, MaterialSuite) and self._terms.suite.fetches

    def fetch(self) -> None:
        """Fetches what this side keeps of the program. Raises what `privet.Client.prepare` does."""
        session = self._open()
        progress = self._worker_client.progress or (lambda *_: None)
        try:
            plan = self._plan(session)
            progress("fetch", 0, 1, "the encrypted weights, once")
            session.native.fetch(plan)
            progress("fetch", 1, 1, "")
            session.warn_of_evicted()
        finally:
            session.leave()

    def prepare(self) -> tuple[str, str]:
        """Makes a material entry: its id, and the report. Raises what `privet.Client.prepare`
        does."""
        progress = self._worker_client.progress
        return self._on_session(lambda session, plan: session.native.prepare(plan, progress))

    def infer(self, payload: Payload) -> tuple[Inference, EntryCost | None]:
        """Uses the material that the service named; this side claims it before anything is sent.
        What needs none tells what it made on the way. Raises `MaterialError` if this side has not
        got it, or used it; else as `privet.Client.infer`."""
        suite, material = self._terms.suite, self.lease.material or ""
        if suite.prepares_ahead != bool(material):
            raise PeerMisbehaved("the service names material where none is used, or none")
        if isinstance(suite, SingleJobSuite):
            return self._infer_at_once(suite, payload)
        progress = self._worker_client.progress

        def work(session: Session, plan: _native.Plan) -> tuple[Inference, EntryCost | None]:
            if not material:
                result = session.native.infer_unprepared(plan, payload, progress)
                return (material, *result), (NOTHING, ())
            return (material, *session.native.infer(plan, material, payload, progress)), None

        return self._on_session(work)

    def _infer_at_once(
        self, suite: SingleJobSuite, payload: Payload
    ) -> tuple[Inference, EntryCost]:
        self._check(suite.label)
        client = self._worker_client
        line = self._connect(
            lambda: Line(
                self.lease.host,
                self.lease.port,
                client.credentials,
                link=client.link,
                server_name=client.server_name,
                timeout=self.lease.seconds,
                patience=self.lease.grace,
            )
        )
        try:
            result = suite.infer(line.connection, self._offer.public, payload)
        finally:
            line.abandon()
        return ("", result.revealed, result.report), (result.offline, result.layers)

    def stop(self) -> None:
        """Breaks the connection: what runs then fails with `LinkError`."""
        with self._lock:
            self._stopped = True
            if self._line is not None:
                self._line.abandon()

    def _check(self, label: str) -> None:
        if self.lease.program != self._offer.program.program_hash:
            raise PeerMisbehaved("the service wants to run another program than was asked for")
        if self.lease.suite != label:
            raise PeerMisbehaved(
                f"the service wants to run suite {self.lease.suite!r}; {label!r} was asked for"
            )

    def _on_session(self, work: Callable[[Session, _native.Plan], R]) -> R:
        """Works on a session that is kept from an earlier job with the worker, and on a new one if
        there is none, or the worker has ended it before it heard of this job. It is kept then."""
        client = self._worker_client
        # A store that is opened anew has sessions of its own.
        key = (self.lease.host, self.lease.port, self._dealer, client.store)
        session, was_left = self._take_idle(key), False
        if session is not None:
            try:
                self._attach(session)
                return self._work(key, session, work)
            except LinkError:
                was_left = session.was_left
                if not was_left or self._stopped:
                    raise
        try:
            return self._work(key, self._open(), work)
        except NotAccepted:
            # Perhaps its yes was lost: the server's half is spent then, and this one of no use.
            if was_left and self.lease.material:
                client.store.discard([self.lease.material])
            raise

    def _take_idle(self, key: Hashable) -> Session | None:
        """A session that is kept and that the worker has not ended, as far as one can see."""
        idle = self._worker_client.idle
        while (session := idle.take(key)) is not None:
            if session.resume(self.lease.seconds):
                return session
            session.leave()
        return None

    def _work(
        self,
        key: Hashable,
        session: Session,
        work: Callable[[Session, _native.Plan], R],
    ) -> R:
        try:
            result = work(session, self._plan(session))
        except NobodyListens as error:  # the worker is connected
            session.leave()
            self.dealer_is_away = True
            raise LinkError(
                f"nobody listens at {self._dealer}: look at the dealer's address, and whether "
                "`privet dealer` runs there"
            ) from error
        except BaseException:
            session.leave()
            raise
        with self._lock:
            self._line = None
        if session.is_abandoned:
            session.leave()
        else:
            self._worker_client.idle.put(key, session)
        return result

    @property
    def _dealer(self) -> str | None:
        is_dealt = material_suite(self._terms.suite).dealt
        return (self._worker_client.dealer or self.lease.dealer) if is_dealt else None

    def _open(self) -> Session:
        client = self._worker_client
        return self._connect(
            lambda: Session(
                self.lease.host,
                self.lease.port,
                client.credentials,
                store=lambda: client.store,
                dealer=self._dealer,
                link=client.link,
                server_name=client.server_name,
                timeout=self.lease.seconds,
                patience=self.lease.grace,
            )
        )

    def _plan(self, session: Session) -> _native.Plan:
        network = self._worker_client.link or network_of(session.rtt)
        plan = self._offer.plan(self._terms, network)
        self._check(plan.suite)
        return plan

    def _attach(self, line: Line) -> None:
        """Has `stop` break this connection."""
        with self._lock:
            self._line = line
            if self._stopped:
                line.abandon()

    def _connect(self, open: Callable[[], L]) -> L:
        """Connects within the time that the service gives."""
        start = time.monotonic()
        while True:
            try:
                line = open()
                self._attach(line)
                return line
            except LinkError as error:
                grace = self.lease.grace
                if isinstance(error, NobodyListens):
                    grace = min(grace, REFUSED_SECONDS)
                if self._stopped or time.monotonic() + RETRY_SECONDS > start + grace:
                    self.was_refused = isinstance(error, NobodyListens) and not self._stopped
                    raise
                time.sleep(RETRY_SECONDS)
