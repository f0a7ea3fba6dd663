"""Sessions of suite `ckks` as jobs: what they compute waits for its turn like all else.

A client's keys are a T_pre alone: it takes a core until they are there, then keeps their memory
until the session ends, `LEASE_SECONDS` at most. Each inference is a T_on alone: the version's
process asks for it when the inputs are there, and computes when the scheduler starts it. So
whatever runs on the machine shares one account of cores and memory, and one order.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from privet.errors import NotAccepted
from privet.runtime import PhaseCost
from privet.scheduler import Demand, Ended, Phase, Refused, Start, Submission
from privet.service.driver import Driver
from privet.service.estimates import FIXED_SECONDS, OFFLINE_BYTES_PER_SECOND, Estimates
from privet.service.event_recorder import EventRecorder
from privet.service.executor import Failure, JobOutcome
from privet.service.jobs import Job, Jobs
from privet.service.limits import Exhausted, LimitReached
from privet.service.model_server import SILENCE_SECONDS, ModelServer
from privet.service.repository import Version
from privet.suites import Mode

LEASE_SECONDS = 600.0
"""How long a session may keep its keys: then others that wait for the memory get it."""

QUEUE_SECONDS = SILENCE_SECONDS - 20.0
"""How long a client may wait for its turn: it takes the service for dead a little later."""

OVER = "the session is over"

Work = Literal["keys", "infer", "step"]
"""A client's keys (of an encrypted model, the service's own); an inference; and of an encrypted
model, each refresh and decryption in an inference that has begun."""

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Permit:
    """Something that a session asked for: the `job` it became. `start` once the scheduler let it
    begin, `end` is then set when it is over. `missing` were not there when it was last looked."""

    work: Work
    job: Job
    start: Start | None = None
    began: float = 0.0
    end: asyncio.Future[JobOutcome] | None = None
    missing: frozenset[str] = frozenset()


@dataclass(eq=False)
class EncryptedSession:
    """A client's conversation with a version's process, `number` on both sides; `name` is the
    common name in the client's certificate. Where it is that of a party which others' inferences
    need, that is its `partner`, and `submission` the one whose job takes it now.

    `keys` and `permit` are what it holds and what it waits for or computes; `busy` from a client's
    question to its answer. `over`: the client has left. `ending`: it is to end once it is not busy;
    `closing` is set when the service ends it.
    """

    number: int
    client: str
    model_server: ModelServer
    name: str | None = None
    partner: str | None = None
    submission: str | None = None
    keys: Permit | None = None
    permit: Permit | None = None
    busy: bool = False
    over: bool = False
    ending: bool = False
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def version(self) -> Version:
        """What it asks."""
        return self.model_server.version


class Sessions:
    """All sessions: takes in what processes say, and runs for `driver` what it decides to start."""

    def __init__(
        self,
        driver: Driver,
        jobs: Jobs,
        recorder: EventRecorder,
        estimates: Estimates,
        limit_reached: Callable[[str, Version], LimitReached | None],
        admit: Callable[[str, str | None, Mode, int], None],
        machine: Callable[[], str],
        grace: float,
    ) -> None:
        self._driver = driver
        self._jobs = jobs
        self._recorder = recorder
        self._estimates = estimates
        self._limit_reached = limit_reached
        self._admit = admit
        self._machine = machine
        self._grace = grace
        self._partners: dict[str, EncryptedSession] = {}
        self._last = 0
        self._sessions: dict[int, EncryptedSession] = {}
        self._permits: dict[str, tuple[EncryptedSession, Permit]] = {}

    # For the control plane ----------------------------------------------------------------------

    def open(
        self,
        client: str,
        model_server: ModelServer,
        name: str | None = None,
        partner: str | None = None,
    ) -> EncryptedSession:
        """A client comes, with the common name in its certificate; or a `partner` of clients."""
        self._last += 1
        session = EncryptedSession(self._last, client, model_server, name, partner)
        self._sessions[self._last] = session
        return session

    def close(self, session: EncryptedSession) -> None:
        """A client has left: what waits is cancelled, what computes ends soon."""
        session.over = True
        self._remove_partner(session)
        permit = session.permit
        if permit is not None and permit.start is None:
            self._driver.cancel(permit.job.id)
        session.model_server.order(session=session.number, gone=True)
        if session.keys is None and session.permit is None:
            self._sessions.pop(session.number, None)

    def end_refused(self, refuses: Callable[[str], str | None]) -> None:
        """Ends the sessions of clients that are refused now."""
        for session in list(self._sessions.values()):
            if refuses(session.client) is not None:
                session.closing.set()
                if session.partner is not None:
                    session.model_server.order(session=session.number, gone=True)

    # For the model servers ----------------------------------------------------------------------

    def on_event(self, model_server: ModelServer, event: dict[str, Any] | None) -> None:
        """An event of a version's process, or (None) its end."""
        if event is None:
            for session in [
                other for other in self._sessions.values() if other.model_server is model_server
            ]:
                self._on_process_end(session)
            return
        current = self._sessions.get(int(event.get("session", 0)))
        if current is not None and current.model_server is model_server:
            self._on_session_event(current, event)
        elif event["event"] == "ask":
            # The client left before the process came to ask, which waits for an answer.
            model_server.order(session=event["session"], refused=OVER, busy=True)
        elif event["event"] == "waits":
            model_server.order(session=event["session"], gone=True)

    def _on_session_event(self, session: EncryptedSession, event: dict[str, Any]) -> None:
        match event["event"]:
            case "ask":
                self._ask(session, event["work"])
            case "leave":
                self._on_work_end(session, float(event["seconds"]), event.get("error"))
            case "prepared" | "inferred" | "failed":
                self._on_answer(session)
            case "waits":
                self._on_waiting(session)
            case "left":
                self._on_left(session)

    # Partners -----------------------------------------------------------------------------------

    def _on_waiting(self, session: EncryptedSession) -> None:
        """A partner waits for the next inference; an earlier connection of it does so no more."""
        if session.partner is not None and not session.over:
            awaited = session.version.awaited(session.partner)
            self._partners[awaited] = session
            session.submission = None
            self._driver.party_waits(awaited, True)

    def _remove_partner(self, session: EncryptedSession) -> None:
        """A partner has left."""
        if session.partner is not None:
            awaited = session.version.awaited(session.partner)
            if self._partners.get(awaited) is session:
                del self._partners[awaited]
                self._driver.party_waits(awaited, False)

    def on_start(self, start: Start) -> None:
        """The scheduler starts a job, which takes its partners."""
        permitted = self._permits.get(start.request)
        if permitted is not None and permitted[1].work == "keys":
            for partner in permitted[0].version.session.suite.partners:
                if session := self._partners.get(permitted[0].version.awaited(partner)):
                    session.submission = start.request

    def _release_partners(self, request: str) -> None:
        """A job comes to nothing before its process is told of it: its partners wait on."""
        for session in list(self._partners.values()):
            if session.submission == request:
                self._on_waiting(session)

    def _check_partners(self, job: Job) -> None:
        """Refuses a client whose job waits for partners that were away for the grace."""
        permitted = self._permits.get(job.id)
        if permitted is None or permitted[1].start is not None:
            return
        session, permit = permitted
        version = session.version
        away = [
            partner
            for partner in version.session.suite.partners
            if version.awaited(partner) not in self._partners
        ]
        if long := [partner for partner in away if partner in permit.missing]:
            verb = "has" if len(long) == 1 else "have"
            self._give_up(session, permit, f"{', '.join(long)} {verb} not come: try again later")
            return
        permit.missing = frozenset(away)
        asyncio.get_running_loop().call_later(self._grace, self._check_partners, job)

    # Work ---------------------------------------------------------------------------------------

    def _ask(self, session: EncryptedSession, work: Work) -> None:
        if session.over:
            self._refuse(session, OVER, busy=True)
            return
        session.busy = True
        if work == "keys" and session.keys is not None:
            self._drop_keys(session)
        try:
            # What has begun goes on, however many others have come meanwhile.
            limit_reached = (
                None if work == "step" else self._limit_reached(session.client, session.version)
            )
            if limit_reached is not None:
                self._recorder.refused(limit_reached.reason)
                self._refuse(session, str(limit_reached), busy=True)
                return
            together = bool(session.version.session.suite.partners)
            if work == ("keys" if together else "infer"):
                # What others take part in is counted when they all do.
                self._count(session, 0 if together else session.version.session_batch)
            session.permit = Permit(work, self._submit(session, work))
        except (NotAccepted, Exhausted) as refused:
            busy = isinstance(refused, Exhausted)
            self._recorder.refused("answers" if busy else "policy")
            self._refuse(session, str(refused), busy=busy)
            return
        except Refused as refused:
            self._recorder.refused(str(refused.why))
            self._refuse(session, str(refused), busy=refused.retry)
            return
        self._permits[session.permit.job.id] = (session, session.permit)
        loop = asyncio.get_running_loop()
        loop.call_later(QUEUE_SECONDS, self._on_queue_timeout, session.permit.job)
        if together and work == "keys":
            self._check_partners(session.permit.job)

    def _count(self, session: EncryptedSession, answers: int) -> None:
        self._admit(session.client, session.name, session.version.session.mode, answers)

    def _submit(self, session: EncryptedSession, work: Work) -> Job:
        version, keys = session.version, work == "keys"
        batch, choice = version.session_batch, version.session
        self._estimates.expect_session(
            version.key, choice.label, batch, demands(version, session.model_server.seconds)
        )
        within = None if keys or session.keys is None else session.keys.job.id
        kind: Literal["session", "request"] = "session" if keys else "request"
        id, now = secrets.token_hex(8), time.time()
        job = Job(id, session.client, kind, version, choice, batch, within, now)
        self._driver.submit(
            Submission(
                id,
                session.client,
                version.key,
                choice.label,
                batch,
                notice=keys,
                timeout=None if keys else version.config.limits.timeout,
                only=Phase.PRE if keys else Phase.ON,
                machine=self._machine(),
                lease=LEASE_SECONDS if keys else 0.0,
                parties=tuple(map(version.awaited, choice.suite.partners)) if keys else (),
            )
        )
        self._recorder.submitted(job, None)
        return job

    def _on_queue_timeout(self, job: Job) -> None:
        """Nobody waits for ever: the client would take the service for dead."""
        permitted = self._permits.get(job.id)
        if permitted is not None and permitted[1].start is None:
            text = f"the service is full: no room in {QUEUE_SECONDS:.0f} s; try again later"
            self._give_up(*permitted, text)

    def _give_up(self, session: EncryptedSession, permit: Permit, text: str) -> None:
        """Refuses what has not begun."""
        del self._permits[permit.job.id]
        session.permit = None
        self._recorder.refused("full")
        self._refuse(session, text, busy=True)
        self._driver.cancel(permit.job.id)

    def _on_work_end(self, session: EncryptedSession, seconds: float, error: str | None) -> None:
        """The process has computed, or received keys."""
        permit = session.permit
        if permit is None or permit.start is None:
            return
        session.permit = None
        if permit.work == "keys" and error is None:
            session.keys = permit
            permit.job.state = "prepared"
            self._driver.park(permit.start, self._outcome(session, permit, seconds), permit.began)
            self._jobs.changed(permit.job)
        elif error is None:
            self._end(permit, self._outcome(session, permit, seconds))
        else:
            failure: Failure = "absent" if session.over else "failed"
            self._end(permit, JobOutcome(permit.start.job, failure, error, seconds=seconds))

    def _on_answer(self, session: EncryptedSession) -> None:
        """The client has its answer: a session that is to end may now."""
        session.busy = False
        if session.ending:
            session.closing.set()

    def _on_left(self, session: EncryptedSession) -> None:
        # A client that left while its permit was on its way: the process does no work under it, and
        # took no partner.
        if session.permit is not None and session.permit.start is not None:
            self._release_partners(session.permit.job.id)
        self._drop_permit(session, "absent", OVER)
        self._sessions.pop(session.number, None)
        self._remove_partner(session)
        self._drop_keys(session)

    def _on_process_end(self, session: EncryptedSession) -> None:
        """The process has died."""
        self._drop_permit(session, "crashed", "the model's process died")
        session.closing.set()
        self._on_left(session)

    def _drop_permit(self, session: EncryptedSession, failure: Failure, text: str) -> None:
        permit, session.permit = session.permit, None
        if permit is not None and permit.start is not None:
            self._end(permit, JobOutcome(permit.start.job, failure, text))
        elif permit is not None:
            self._driver.cancel(permit.job.id)

    def _drop_keys(self, session: EncryptedSession) -> None:
        permit, session.keys = session.keys, None
        if permit is not None and permit.start is not None:
            self._end(permit, JobOutcome(permit.start.job))

    # For the driver -----------------------------------------------------------------------------

    async def run(self, start: Start, cores: tuple[int, ...]) -> JobOutcome:
        """Lets a session's process work, and waits until it has."""
        permitted = self._permits.get(start.request)
        if permitted is None or permitted[0].over:
            self._release_partners(start.request)
            return JobOutcome(start.job, "absent", "the client has left")
        session, permit = permitted
        if permit.work == "keys" and session.version.session.suite.partners:
            try:
                self._count(session, session.version.session_batch)
            except (NotAccepted, Exhausted) as refused:
                busy = isinstance(refused, Exhausted)
                self._recorder.refused("answers" if busy else "policy")
                del self._permits[start.request]
                session.permit = None
                self._refuse(session, str(refused), busy=busy)
                self._release_partners(start.request)
                return JobOutcome(start.job, "failed", str(refused))
        permit.start, permit.began = start, self._driver.clock()
        permit.end = asyncio.get_running_loop().create_future()
        permit.job.state = "preparing" if permit.work == "keys" else "inferring"
        self._jobs.changed(permit.job)
        session.model_server.order(session=session.number, cores=len(cores))
        return await permit.end

    async def stop(self, job: str) -> None:
        """Ends a job: an inference at its next layer; with keys their session, once the client has
        the answer that it waits for."""
        for session, permit in list(self._permits.values()):
            if permit.start is None or permit.start.job != job:
                continue
            session.ending = True
            if permit.work != "keys":
                session.model_server.order(session=session.number, gone=True)
            elif not session.busy or session.permit is permit:
                session.closing.set()

    def on_ended(self, ended: Ended) -> None:
        """A submission ended; one that had not begun will not."""
        permitted = self._permits.get(ended.id)
        if permitted is None or permitted[1].start is not None:
            return
        self._release_partners(ended.id)
        session, permit = permitted
        del self._permits[ended.id]
        if session.permit is permit:
            session.permit = None
            self._refuse(session, f"{ended.outcome}: {ended.reason}", busy=True)

    def _end(self, permit: Permit, outcome: JobOutcome) -> None:
        self._permits.pop(permit.job.id, None)
        if permit.end is not None and not permit.end.done():
            permit.end.set_result(outcome)

    def _outcome(self, session: EncryptedSession, permit: Permit, seconds: float) -> JobOutcome:
        """Bytes by the plan, which is what passes."""
        assert permit.start is not None
        plan, groups = session.version.plan or {}, int((session.version.plan or {})["groups"])
        if permit.work == "keys":
            bytes_client, bytes_server = plan["offline_bytes_client"], plan["offline_bytes_server"]
            cost = PhaseCost(seconds, int(bytes_client), int(bytes_server), 1, 0.0)
        else:
            bytes_client, bytes_server = plan["online_bytes_client"], plan["online_bytes_server"]
            cost = PhaseCost(seconds, bytes_client // groups, bytes_server // groups, 1, 0.0)
        return JobOutcome(permit.start.job, cost=cost, seconds=seconds)

    def _refuse(self, session: EncryptedSession, text: str, *, busy: bool) -> None:
        session.model_server.order(session=session.number, refused=text, busy=busy)


def demands(version: Version, seconds: float) -> dict[Phase, Demand]:
    """What keys and an inference take by the version's plan; `seconds` is what its process says
    that evaluating takes on one core."""
    plan, cores = version.plan or {}, version.config.cores
    offline_bytes = plan["offline_bytes_client"] + plan["offline_bytes_server"]
    arriving = FIXED_SECONDS + offline_bytes / OFFLINE_BYTES_PER_SECOND
    return {
        Phase.PRE: Demand(1, int(plan["memory_bytes_keys"]), arriving),
        Phase.ON: Demand(cores, int(plan["memory_bytes_working"]), seconds / cores),
    }
