"""What this client asked of a service, followed until it ends: notices and requests.

The service leases a worker when a job can run; each lease is one attempt, on a thread of the
executor. Another lease follows when the service runs a job again after a failure that was not ours;
material is used in one attempt only, whether it succeeds or not.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from privet import tracing
from privet.errors import (
    JobFailed,
    MaterialError,
    PeerError,
    PeerMisbehaved,
    PrivetError,
    Short,
    printable,
)
from privet.gateway.attempt import (
    RETRY_SECONDS,
    Attempt,
    Lease,
    Payload,
    WorkerClient,
    read_lease,
)
from privet.gateway.idle import IDLE_SECONDS
from privet.gateway.model import Offer, Terms
from privet.runtime.result import EntryCost, Inference, Result, read_result
from privet.runtime.shortage import shortage
from privet.suites.costs import read_report

MOST_COSTS = 10_000

LAST_WORDS_SECONDS = 1.0
"""How long attempts of a job that has ended are waited for, before they are stopped."""

FATAL = (MaterialError, PeerMisbehaved)
"""Errors of a peer after which this side does not go on, whatever the service would try next."""

_log = logging.getLogger(__name__)


class AttemptExecutor:
    """What jobs of one client share: the client at workers, threads, and what is being made."""

    def __init__(self, worker_client: WorkerClient, threads: int) -> None:
        self.worker_client = worker_client
        self._threads = ThreadPoolExecutor(threads, "privet-attempt")
        self._making: set[asyncio.Future[Any]] = set()
        self._costs: OrderedDict[str, EntryCost] = OrderedDict()
        self._useless: dict[tuple[str, str], frozenset[str]] = {}
        self._tidying: asyncio.TimerHandle | None = None

    async def prepare(self, attempt: Attempt) -> str:
        """Makes a material entry on a thread; its id."""
        making = asyncio.get_running_loop().run_in_executor(self._threads, attempt.prepare)
        self._making.add(making)
        try:
            material, report = await making
        except MaterialError:
            if attempt.fetches:
                key = attempt.lease.program, attempt.lease.suite
                self._useless[key] = await asyncio.to_thread(self._kept_names, key)
            raise
        finally:
            self._making.discard(making)
            self._tidy_later()
        cost, layers = self._costs[material] = read_report(report)
        tracing.steps("offline", cost, layers, material)
        if len(self._costs) > MOST_COSTS:
            self._costs.popitem(last=False)
        return material

    async def fetch(self, attempt: Attempt) -> None:
        """Fetches what this side keeps of a program, on a thread."""
        await asyncio.get_running_loop().run_in_executor(self._threads, attempt.fetch)
        self._useless.pop((attempt.lease.program, attempt.lease.suite), None)

    def has_kept(self, key: tuple[str, str]) -> bool:
        """Whether encrypted weights of a program (its hash) in a suite (its label) are here that
        may be this service's: others of the same program, as another service's, were of no use in
        an attempt."""
        return not self._kept_names(key) <= self._useless.get(key, frozenset())

    def _kept_names(self, key: tuple[str, str]) -> frozenset[str]:
        return self.worker_client.store.kept_names(*key)

    async def infer(self, attempt: Attempt, payload: Payload) -> tuple[Inference, EntryCost]:
        """Uses material on a thread; also what it cost, if it was made here."""
        await self._arrival(attempt.lease.material or "")
        loop = asyncio.get_running_loop()
        try:
            inference, cost = await loop.run_in_executor(self._threads, attempt.infer, payload)
        finally:
            self._tidy_later()
        return inference, cost or self._costs.pop(inference[0], (None, ()))

    async def _arrival(self, material: str) -> None:
        """Waits for material that is still being made here.

        The service may be done with its half, and lease a worker for it, before this half is done.
        """
        while material not in self._costs and self._making:
            # The last of these may end while the store is looked at.
            making = set(self._making)
            if await asyncio.to_thread(self._holds, material):
                return
            await asyncio.wait(making, return_when=asyncio.FIRST_COMPLETED)

    def _holds(self, material: str) -> bool:
        return any(entry.id == material for entry in self.worker_client.store.entries())

    def _tidy_later(self) -> None:
        if self._tidying is None:
            loop = asyncio.get_running_loop()
            self._tidying = loop.call_later(
                IDLE_SECONDS, lambda: loop.run_in_executor(None, self._tidy, loop)
            )

    def _tidy(self, loop: asyncio.AbstractEventLoop) -> None:
        """Leaves sessions that no job has taken for a while; again later if others are left."""
        self._tidying = None
        if self.worker_client.idle.tidy():
            loop.call_soon_threadsafe(self._tidy_later)

    async def close(self) -> None:
        """Waits for the threads to end, and leaves idle sessions."""
        await asyncio.to_thread(self._threads.shutdown)
        if self._tidying is not None:
            self._tidying.cancel()
        await asyncio.to_thread(self.worker_client.idle.tidy, 0.0)


class ClientJob:
    """A job of this client at the service; belongs to one event loop.

    `state`, `outcome` and `reason` are what the service said last, `error` what went wrong in this
    client's latest attempt.
    """

    def __init__(self, id: str, offer: Offer, terms: Terms, executor: AttemptExecutor) -> None:
        self.id = id
        self.offer = offer
        self.terms = terms
        self.state = "queued"
        self.outcome: str | None = None
        self.reason = ""
        self.error: PrivetError | None = None
        self.is_lost = False
        self.updated_at = asyncio.get_running_loop().time()
        self._executor = executor
        self._trace = tracing.current()
        self._sequence = 0
        # Until when the service waits for this client at each worker that it leased, and where now.
        self._grace_ends: dict[str, float] = {}
        self._leased: set[str] = set()
        self._stopped = False
        self._attempts: dict[Attempt, asyncio.Task[None]] = {}
        self._fatal: PrivetError | None = None
        self._changed = asyncio.Event()
        self._waiting: Callable[[], None] = lambda: None

    @property
    def is_at_work(self) -> bool:
        """Whether all that is left to do is with workers, or done: the service need not be asked
        for anything."""
        return False

    def on_waiting(self, hear: Callable[[], None]) -> None:
        """From now on, `hear` is called when the job may have begun to wait for the service."""
        self._waiting = hear

    @property
    def is_over(self) -> bool:
        """Whether the service has ended it, or we cannot go on."""
        return self.state == "ended" or self._fatal is not None

    @property
    def attempts(self) -> list[Attempt]:
        """The attempts under way."""
        return list(self._attempts)

    def update(self, document: dict[str, Any]) -> None:
        """Takes in what the service says of the job; what is older than the latest is dropped.
        Raises `PeerMisbehaved` if it is malformed."""
        self.updated_at = asyncio.get_running_loop().time()
        if document["sequence"] < self._sequence:
            return
        self._sequence = document["sequence"]
        self.state, self.outcome = str(document["state"]), document["outcome"]
        self.reason = printable(str(document["reason"]))
        leases = [read_lease(entry) for entry in document["go"]]
        self._leased = {lease.job for lease in leases}
        for lease in leases:
            if lease.job not in self._grace_ends:
                self._grace_ends[lease.job] = self.updated_at + lease.grace
                self._begin(lease)
        self._changed.set()

    def end(self, outcome: str, reason: str, *, is_lost: bool = False) -> None:
        """The service does not run the job any more; it `is_lost` if the process that took it is
        gone."""
        self.is_lost = is_lost
        self.state, self.outcome, self.reason = "ended", outcome, reason
        self._changed.set()

    async def stop(self) -> None:
        """Breaks off all attempts, and waits until they are over."""
        self._stopped = True
        for attempt in self.attempts:
            attempt.stop()
        while self._attempts:
            await asyncio.wait(list(self._attempts.values()))

    def failure(self) -> PrivetError:
        """Why there is no result."""
        if self._fatal is not None:
            return self._fatal
        outcome = self.outcome or "failed"
        # What ran when the time was over broke off because of that.
        tells = self.error is not None and outcome != "timed out"
        cause = f" (this side: {self.error})" if tells else ""
        message = f"job {self.id} {outcome}: {self.reason or 'the service does not say why'}{cause}"
        error = JobFailed(message, job=self.id, outcome=outcome, reason=self.reason)
        error.__cause__ = self.error
        return error

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Waits until `condition`, or until the job and all its attempts are over."""
        while not condition() and not (self.is_over and not self._attempts):
            if self.is_over and (self.outcome != "done" or self._fatal is not None):
                await self._last_words()
                await self.stop()
                continue
            self._changed.clear()
            await self._changed.wait()

    async def _last_words(self) -> None:
        """Waits a moment for attempts to end by themselves: the worker tells the client why, and
        the service that the job failed, which may be heard first."""
        if self._attempts and self._fatal is None and self.outcome == "failed":
            await asyncio.wait(list(self._attempts.values()), timeout=LAST_WORDS_SECONDS)

    def _begin(self, lease: Lease) -> None:
        attempt = Attempt(lease, self._executor.worker_client, self.offer, self.terms)
        self._attempts[attempt] = asyncio.create_task(self._run(attempt))

    def _begin_again(self, lease: Lease) -> None:
        """Knocks again at a worker that refused connections, unless the service gave it up."""
        is_due = asyncio.get_running_loop().time() < self._grace_ends.get(lease.job, 0.0)
        if is_due and lease.job in self._leased and not (self.is_over or self._stopped):
            self._begin(lease)

    async def _run(self, attempt: Attempt) -> None:
        lease = attempt.lease
        try:
            with tracing.span(
                lease.phase, parent=self._trace, kind="client", job=lease.job, suite=lease.suite
            ):
                if lease.phase == "prepare":
                    await self._executor.prepare(attempt)
                elif lease.phase == "fetch":
                    await self._executor.fetch(attempt)
                    self.error = None
                else:
                    await self._infer(attempt)
        except PrivetError as error:
            self.error = error
            _log.info("attempt %s failed: %s", attempt.lease.job, error)
            if attempt.was_refused:
                again = asyncio.get_running_loop().call_later
                again(RETRY_SECONDS, self._begin_again, lease)
            # Other failures of a link or a peer are for the service to judge: it may run it again.
            # Of a service that is gone nobody speaks any more, whoever has its workers' ports now.
            is_of_peer = isinstance(error, PeerError) and not attempt.dealer_is_away
            if not is_of_peer or (isinstance(error, FATAL) and not self.is_lost):
                self._fatal = error
        except Exception as error:
            _log.exception("attempt %s failed", attempt.lease.job)
            short, mistake = shortage(error), f"this client made a mistake ({type(error).__name__})"
            self._fatal = PeerError(mistake) if short is None else Short(short)
        finally:
            del self._attempts[attempt]
            self._changed.set()
            self._waiting()

    async def _infer(self, attempt: Attempt) -> None:
        raise PeerMisbehaved("the service wants to infer for what was no request")


@dataclass(frozen=True)
class Portion:
    """Inputs of one inference, and how many samples are in it."""

    payload: Payload
    samples: int


class Request(ClientJob):
    """A request for the predictions of `portions`.

    `idle` is called if the service leases a worker when all results are here: it lost the one
    that served us, and is about to run the job again for nobody.
    """

    def __init__(
        self,
        id: str,
        offer: Offer,
        terms: Terms,
        executor: AttemptExecutor,
        portions: Sequence[Portion],
        idle: Callable[[Request], None],
    ) -> None:
        super().__init__(id, offer, terms, executor)
        self._idle = idle
        self._portions = portions
        self._pending = deque(range(len(portions)))
        self._results: dict[int, Result] = {}

    async def results(self) -> list[Result]:
        """The result of each portion, in order. Raises `JobFailed` if the service ended the job
        otherwise; what went wrong on this side for good."""
        await self._until(lambda: self.is_answered)
        if not self.is_answered:
            raise self.failure()
        return [self._results[index] for index in range(len(self._portions))]

    @property
    def is_at_work(self) -> bool:
        """Whether each portion is answered, or with a worker."""
        inferring = sum(attempt.lease.phase == "infer" for attempt in self._attempts)
        return len(self._results) + inferring >= len(self._portions)

    @property
    def is_answered(self) -> bool:
        """Whether all results are there."""
        return len(self._results) == len(self._portions)

    def _begin(self, lease: Lease) -> None:
        if self.is_answered:
            self._idle(self)
        else:
            super()._begin(lease)

    async def _infer(self, attempt: Attempt) -> None:
        while not self._pending:
            # An attempt to a worker that died may still hold what the service runs again.
            other_attempts = [
                task for other, task in self._attempts.items() if other is not attempt
            ]
            if self.is_answered or not other_attempts:
                raise PeerMisbehaved("the service wants to infer on more samples than there are")
            await asyncio.wait(other_attempts, return_when=asyncio.FIRST_COMPLETED)
        index = self._pending.popleft()
        portion = self._portions[index]
        try:
            inference, cost = await self._executor.infer(attempt, portion.payload)
        except BaseException:
            self._pending.appendleft(index)
            raise
        result = self._results[index] = read_result(
            self.offer.program,
            self.terms.suite,
            inference,
            portion.samples,
            cost=cost,
        )
        tracing.steps("online", result.online, result.layers[len(cost[1]) :])


class Fetch(ClientJob):
    """A request for what this client keeps of a program."""

    async def over(self) -> None:
        """Waits until it is here. Raises `JobFailed` if the service ended it otherwise; what went
        wrong on this side for good."""
        await self._until(lambda: False)
        if self.outcome != "done" or self._fatal is not None or self.error is not None:
            # Or the service has sent all of it, and this side could not take it.
            raise self.failure()


class Notice(ClientJob):
    """An advance notice: the service makes material for a request that will name it."""

    @property
    def model(self) -> str:
        """The model that it is for."""
        return self.offer.model.name

    @property
    def is_ready(self) -> bool:
        """Whether its material lies ready."""
        return self.state == "prepared"

    @property
    def is_at_work(self) -> bool:
        """Whether its material lies ready, until a request takes it."""
        return self.is_ready and not self._attempts

    async def ready(self) -> None:
        """Waits until its material lies ready. Raises `JobFailed` if the service ended it
        before."""
        await self._until(lambda: self.is_ready and not self._attempts)
        if not self.is_ready:
            raise self.failure()

    async def over(self) -> None:
        """Waits until the service has nothing more to say of it."""
        await self._until(lambda: False)
