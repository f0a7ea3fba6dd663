"""The one grant that a worker holds, and what its sessions may do under it."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from privet import tracing
from privet.errors import Misuse, PrivetError, Short
from privet.logs import unquoted
from privet.runtime.idle import IdleLinks, Stopper
from privet.runtime.shortage import shortage
from privet.service import confinement
from privet.service.confinement import MemoryBound
from privet.service.executor.grant import Grant
from privet.suites.costs import PhaseCost, read_report
from privet.suites.single import Gate

LINGER_SECONDS = 2.0
"""How long a client may keep its connection once its job is done, where that does not stay for the
next."""

BRIEF_SECONDS = 0.25
"""A job that ends sooner after its client's request is reported once: each event wakes the control
plane up, which takes longer than to read it."""


MOST_IDLE_THREADS = 8
"""A session with more threads ends with its job, which took longer than to connect."""

ASKED = {"prepare": "prepare", "infer": "infer", "fetch": "kept_weights"}
"""The request with which a client begins what its grant is for."""


_log = logging.getLogger(__name__)

SendEvent = Callable[..., None]
"""Tells the executor of an event: its name, then its fields."""


@dataclass
class AdmissionLease:
    """A grant from its arrival to its end, with times of the monotonic clock. Its start `is_known`
    once the executor has heard of it."""

    grant: Grant
    bound: MemoryBound
    granted: float
    request_time: float | None = None
    is_known: bool = False
    refused: str | None = None
    links: list[Stopper] = field(default_factory=list)

    def times(self) -> dict[str, float]:
        """How long the client took to ask, and the job since then."""
        now = time.monotonic()
        asked_at = now if self.request_time is None else self.request_time
        return {"waited": asked_at - self.granted, "seconds": now - asked_at}


class Admission:
    """Lets the client of the grant ask once for the very job of the grant, and nobody else.

    `exit_process` ends the process at once; it is called when a job takes more memory than it may.
    All methods may be called from any thread.
    """

    def __init__(self, send_event: SendEvent, exit_process: Callable[[], None]) -> None:
        self._send_event = send_event
        self._exit = exit_process
        self.idle = IdleLinks(0)
        """Where sessions wait for their clients' next jobs."""
        self.generation = 0
        self._lock = threading.RLock()
        self._lease: AdmissionLease | None = None
        self._taken_back_grant: Grant | None = None
        self._cores: tuple[int, ...] = ()
        self._is_trimmed = False

    def open(self, grant: Grant) -> None:
        """Admits a job from now on. Raises `Misuse` if another job has not ended; `OSError` if
        there are no such cores, or no files left; `RuntimeError` if no thread can be started."""
        with self._lock:
            if self._lease is not None:
                raise Misuse(f"job {self._lease.grant.job} has not ended")
            self.idle.end(lambda idle: idle.has_other_threads(grant))
            if grant.cores != self._cores:
                # Threads that were started since the last time have the cores of those before.
                confinement.pin(grant.cores)
                self._cores = grant.cores
            if not self._is_trimmed:
                confinement.give_back_memory()
            self._is_trimmed = False
            confinement.reset_peak()
            bound = MemoryBound(grant.memory, self._exceeded, self._attend)
            self._lease = AdmissionLease(grant, bound, time.monotonic())
            try:
                bound.start()
            except (OSError, RuntimeError):
                self._lease = None
                bound.end()
                raise
        self._send_event("granted", job=grant.job)

    def revoke(self, job: str) -> None:
        """Ends a job: at once if the client has not asked, else with its connection."""
        with self._lock:
            lease = self._lease
            if lease is None or lease.grant.job != job:
                return
            if lease.request_time is None:
                self._end(lease, "failed", error="stopped", message="it was stopped", kept=True)
            for link in lease.links:
                link.stop()

    def take_back(self, job: str) -> None:
        """Ends a job as `absent` unless its client has connected."""
        with self._lock:
            lease = self._lease
            if (
                lease is None
                or lease.grant.job != job
                or lease.links
                or lease.request_time is not None
            ):
                return
            self._taken_back_grant = lease.grant
            message = "the client did not connect at once, and others wait"
            self._end(lease, "failed", error="absent", message=message, kept=True)

    def session(self, client: str, link: Stopper | None) -> ClientSession:
        """What a session of the client with this fingerprint may do."""
        with self._lock:
            lease = self._lease
            if lease is None or lease.grant.client != client:
                taken_back = self._taken_back_grant
                is_its = taken_back is not None and taken_back.client == client
                return ClientSession(
                    self, client, None, link, taken_back_grant=taken_back if is_its else None
                )
            if link is not None:
                lease.links.append(link)
            return ClientSession(self, client, lease, link)

    def resume(self, session: ClientSession) -> AdmissionLease | None:
        """The grant of an idle session's client, under which the session is from now on; None if
        there is none."""
        with self._lock:
            lease = self._lease
            is_its = lease is not None and lease.grant.client == session.client
            if lease is None or not is_its or not self.idle.take(session):
                return None
            if session.link is not None:
                lease.links.append(session.link)
            return lease

    def admit(
        self,
        lease: AdmissionLease | None,
        kind: str,
        subject: str | None,
        suite: str | None,
        entry: str | None,
    ) -> str | None:
        """Whether a request is the one of the grant; if not, why."""
        with self._lock:
            if lease is None or lease is not self._lease:
                return "there is no grant for this client here: ask the service for a job"
            grant = lease.grant
            if kind == "send_weights":
                # The second half of a request for kept weights, whose first half was admitted.
                if grant.phase == "fetch":
                    return None
                message = "the weights have to be fetched first, by a job for that"
                if lease.request_time is None:
                    self._end(lease, "failed", error="failed", message=message, kept=True)
                return message
            if lease.request_time is not None:
                return "the grant was used: a grant serves one request"
            if kind == "describe":
                return None
            keeps = (kind, suite, grant.phase) == ("kept_weights", grant.suite, "prepare")
            if subject != grant.program:
                lease.refused = "the grant is for another program"
            elif kind == "hidden_weights" or keeps:
                return None
            elif kind != ASKED[grant.phase]:
                lease.refused = f"the grant is to {grant.phase}"
            elif entry != grant.material:
                lease.refused = "the grant is for another material entry"
            elif suite not in (grant.suite, None):
                lease.refused = f"the grant is for suite {grant.suite!r}"
            else:
                lease.request_time = time.monotonic()
                return None
            return lease.refused

    def finished(self, lease: AdmissionLease, material: str | None, cost: PhaseCost) -> None:
        """The job is done."""
        self._end(lease, "finished", material=material, cost=asdict(cost))

    def idles(self, session: ClientSession) -> bool:
        """Keeps a session whose job is about to be reported as done; whether it does. What has been
        offered since the session began, it would not know."""
        with self._lock:
            if session.generation != self.generation or session.threads > MOST_IDLE_THREADS:
                return False
            return self.idle.add(session, session.client, session.link, session.since)

    def failed(self, lease: AdmissionLease, error: PrivetError) -> None:
        """The session of the job failed."""
        message = shortage(error) or unquoted(f"{type(error).__name__}: {error}")
        self._end(lease, "failed", error="failed", message=message)

    def on_shortage(self, error: Short) -> None:
        """This process could not take a connection, perhaps the one of the client that has the
        grant: its job fails now, and not when nobody has come."""
        self.idle.end()
        with self._lock:
            lease = self._lease
            if lease is not None and lease.request_time is None:
                self._end(lease, "failed", error="failed", message=str(error), kept=True)
                for link in lease.links:
                    link.stop()

    def leave(self, session: ClientSession, lease: AdmissionLease | None) -> None:
        """A session is over or idle, under this grant if there was one. What a job has left goes
        back to the system now, and not while the next client waits for its grant."""
        if lease is None:
            self.idle.take(session)
        with self._lock:
            if lease is not None and session.link is not None:
                lease.links.remove(session.link)
            self._is_trimmed = lease is not None and self._lease is None
            if self._is_trimmed:
                confinement.give_back_memory()

    def changed(self) -> None:
        """The process has taken up a program or given one up, which leaves memory to give back, and
        idle sessions that do not know of it."""
        with self._lock:
            self._is_trimmed = False
            self.generation += 1
            self.idle.end()

    def _attend(self) -> None:
        try:
            self._look()
        except Exception:
            # The thread that calls this watches memory as well: no job goes on without it.
            _log.exception("a job can be watched no more")
            self._exit()

    def _look(self) -> None:
        """Whether the client has let its time pass; tells of its request if the job takes a while
        then."""
        lease, now = self._lease, time.monotonic()
        if lease is None:
            return
        if lease.request_time is None:
            if now > lease.granted + lease.grant.grace:
                self._give_up(lease)
        elif not lease.is_known and now > lease.request_time + min(
            BRIEF_SECONDS, lease.grant.seconds / 2
        ):
            with self._lock:
                if lease is self._lease and not lease.is_known:
                    lease.is_known = True
                    self._send_event("started", job=lease.grant.job, **lease.times())

    def _give_up(self, lease: AdmissionLease) -> None:
        with self._lock:
            if lease is not self._lease or lease.request_time is not None:
                return
            message = lease.refused or "the client did not ask in time"
            self._end(lease, "failed", error="absent", message=message, kept=True)
            for link in lease.links:
                link.stop()

    def _exceeded(self) -> None:
        with self._lock:
            lease = self._lease
            if lease is not None:
                message = f"it took more than the {lease.grant.memory} bytes it may have"
                try:
                    self._end(lease, "failed", error="over memory", message=message)
                finally:
                    self._exit()

    def _end(self, lease: AdmissionLease, event: str, **fields: Any) -> None:
        with self._lock:
            if lease is not self._lease:
                return
            self._lease = None
            lease.bound.end()
            memory = {"peak_rss": confinement.peak_bytes(), "base_rss": lease.bound.base}
            self._send_event(event, job=lease.grant.job, **fields, **memory, **lease.times())


class ClientSession:
    """A session with a client, under the grant that was open for it when it came, if any. One whose
    grant was taken back (`taken_back_grant`) is refused in the words of the suite that the grant
    was for."""

    def __init__(
        self,
        admission: Admission,
        client: str,
        lease: AdmissionLease | None,
        link: Stopper | None = None,
        *,
        taken_back_grant: Grant | None = None,
    ) -> None:
        self.client = client
        self.link = link
        self.generation = admission.generation
        self.since = time.monotonic()
        self.threads = 1 if lease is None else len(lease.grant.cores)
        """On how many threads the session computes."""
        self._admission = admission
        self._grant = taken_back_grant if lease is None else lease.grant
        self._lease = lease
        self._has_requested = False
        self._is_done = False
        self._linger: threading.Timer | None = None

    def has_other_threads(self, grant: Grant) -> bool:
        """Whether the grant is for this session's client, who needs another session for it."""
        return grant.client == self.client and len(grant.cores) != self.threads

    @property
    def program(self) -> str:
        """The program that the grant is for."""
        return "" if self._grant is None else self._grant.program

    @property
    def suite(self) -> str:
        """The label of the suite that the grant is for."""
        return "" if self._grant is None else self._grant.suite

    @property
    def is_expected(self) -> bool:
        """Whether there is a grant for this client."""
        return self._lease is not None

    def admit(
        self,
        kind: str,
        subject: str | None = None,
        suite: str | None = None,
        entry: str | None = None,
    ) -> str | None:
        """Whether a request may be served; if not, why."""
        if self._is_done and self.link is not None:
            # Its client may ask on another, as it hears nothing here.
            self.link.stop()
        if self._lease is None:
            self._lease = self._admission.resume(self)
        refusal = self._admission.admit(self._lease, kind, subject, suite, entry)
        if refusal is None and self._lease is not None:
            self._has_requested = self._has_requested or kind == ASKED[self._lease.grant.phase]
        return refusal

    def on_event(self, kind: str, _model: str, material: str | None, report: str | None) -> None:
        """A request was served."""
        if report is not None:
            cost, layers = read_report(report, by_server=True)
            if self._lease is not None and self._has_requested:
                # The protocol may call from a thread of its own.
                with tracing.within(self._lease.grant.trace):
                    phase = "online" if kind == "inferred" else "offline"
                    tracing.steps(phase, cost, layers, material)
            self.served(cost, material, keep=kind in ("prepared", "inferred"))

    def served(self, cost: PhaseCost, material: str | None = None, *, keep: bool = False) -> None:
        """The job is done. The client has a moment to say goodbye, or may `keep` the session."""
        if self._lease is None or not self._has_requested:
            return
        # First, as the client's next grant may follow at once.
        if keep and self._admission.idles(self):
            lease, self._lease, self._has_requested = self._lease, None, False
            self._admission.finished(lease, material, cost)
            self._admission.leave(self, lease)
            return
        self._is_done = True
        self._admission.finished(self._lease, material, cost)
        if self.link is not None:
            linger = threading.Timer(LINGER_SECONDS, self.link.stop)
            linger.daemon = True
            # Where no thread can be started, the connection's own timeout ends it.
            with contextlib.suppress(RuntimeError):
                linger.start()
                self._linger = linger

    def failed(self, error: PrivetError) -> bool:
        """The session failed; whether the job did with it."""
        if self._lease is not None and self._has_requested:
            self._admission.failed(self._lease, error)
        return self._has_requested

    def over(self) -> None:
        """The session has ended."""
        if self._linger is not None:
            self._linger.cancel()
        self._admission.leave(self, self._lease)


def single(admit: Gate, suite: str) -> Gate:
    """Admits one preparation and then one inference, if `admit` admits the inference in this suite:
    a grant for an inference that is a single job."""
    due = ["prepare", "infer"]

    def gate(kind: str, program: str | None, _suite: str | None, _entry: str | None) -> str | None:
        if not due or kind != due[0]:
            return "the grant is for one inference, with its preparation before it"
        del due[0]
        return admit("infer", program, suite, None) if kind == "prepare" else None

    return gate
