"""What this client asked of a service, followed until it ends: notices and requests.

The service says when to go, and this goes: each leave is one visit to a worker, on a thread of the
staff. A leave comes again when the service runs a job again after a failure that was not ours; a
piece of material is used in one visit only, whatever becomes of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from privet.errors import JobFailed, MaterialError, PeerError, PeerMisbehaved, PrivetError
from privet.gateway.model import Offer, Terms
from privet.gateway.visit import Go, Payload, Traveller, Visit, read_go
from privet.runtime import MaterialStore
from privet.runtime.result import Made, Result, Spent, read_result
from privet.suites.costs import read_report

MOST_COSTS = 10_000

FATAL = (MaterialError, PeerMisbehaved)
"""Errors of a peer after which this side does not go on, whatever the service would try next."""

_log = logging.getLogger(__name__)


class Staff:
    """What errands of one client share: who travels, threads, and what is being made."""

    def __init__(self, traveller: Traveller, threads: int) -> None:
        self.traveller = traveller
        self._threads = ThreadPoolExecutor(threads, "privet-visit")
        self._making: set[asyncio.Future[Any]] = set()
        self._costs: OrderedDict[str, Made] = OrderedDict()

    async def prepare(self, visit: Visit) -> str:
        """Makes a piece on a thread; its id."""
        making = asyncio.get_running_loop().run_in_executor(self._threads, visit.prepare)
        self._making.add(making)
        try:
            material, report = await making
        finally:
            self._making.discard(making)
        self._costs[material] = read_report(report)
        if len(self._costs) > MOST_COSTS:
            self._costs.popitem(last=False)
        return material

    async def infer(self, visit: Visit, payload: Payload) -> tuple[Spent, Made]:
        """Spends a piece on a thread; also what it cost, if it was made here."""
        await self._arrival(visit.go.material or "")
        loop = asyncio.get_running_loop()
        spent = await loop.run_in_executor(self._threads, visit.infer, payload)
        return spent, self._costs.pop(spent[0], (None, ()))

    async def _arrival(self, material: str) -> None:
        """Waits for a piece that is still being made here.

        The service may be done with its half, and give leave to use it, before we are with ours.
        """
        while material not in self._costs and self._making:
            if await asyncio.to_thread(self._holds, material):
                return
            await asyncio.wait(self._making, return_when=asyncio.FIRST_COMPLETED)

    def _holds(self, material: str) -> bool:
        return any(it.id == material for it in MaterialStore(self.traveller.state).entries())

    async def close(self) -> None:
        """Waits for the threads to end."""
        await asyncio.to_thread(self._threads.shutdown)


class Errand:
    """A job of this client at the service; belongs to one event loop.

    `state`, `outcome` and `reason` are what the service told last, `error` what went wrong in this
    client's latest visit.
    """

    def __init__(self, id: str, offer: Offer, terms: Terms, staff: Staff) -> None:
        self.id = id
        self.offer = offer
        self.terms = terms
        self.state = "queued"
        self.outcome: str | None = None
        self.reason = ""
        self.error: PrivetError | None = None
        self.heard = asyncio.get_running_loop().time()
        self._staff = staff
        self._sequence = 0
        self._begun: set[str] = set()
        self._visits: dict[Visit, asyncio.Task[None]] = {}
        self._fatal: PrivetError | None = None
        self._changed = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """Whether the service has ended it, or we cannot go on."""
        return self.state == "ended" or self._fatal is not None

    @property
    def visits(self) -> list[Visit]:
        """The visits under way."""
        return list(self._visits)

    def hear(self, document: dict[str, Any]) -> None:
        """Takes in what the service says of the job; what is older than the latest is dropped.

        # Errors
        `PeerMisbehaved` if it is malformed.
        """
        self.heard = asyncio.get_running_loop().time()
        if document["sequence"] < self._sequence:
            return
        self._sequence = document["sequence"]
        self.state, self.outcome = str(document["state"]), document["outcome"]
        self.reason = str(document["reason"])
        for entry in document["go"]:
            go = read_go(entry)
            if go.job not in self._begun:
                self._begun.add(go.job)
                self._leave(go)
        self._changed.set()

    def end(self, outcome: str, reason: str) -> None:
        """The service does not run the job any more."""
        self.state, self.outcome, self.reason = "ended", outcome, reason
        self._changed.set()

    async def stop(self) -> None:
        """Breaks off all visits, and waits until they are over."""
        for visit in self.visits:
            visit.stop()
        while self._visits:
            await asyncio.wait(list(self._visits.values()))

    def failure(self) -> PrivetError:
        """Why there is no result."""
        if self._fatal is not None:
            return self._fatal
        outcome = self.outcome or "failed"
        cause = f" (this side: {self.error})" if self.error is not None else ""
        message = f"job {self.id} {outcome}: {self.reason or 'the service does not say why'}{cause}"
        failed = JobFailed(message, job=self.id, outcome=outcome, reason=self.reason)
        failed.__cause__ = self.error
        return failed

    async def _until(self, done: Callable[[], bool]) -> None:
        """Waits until `done`, or until the errand and all its visits are over."""
        while not done() and not (self.is_over and not self._visits):
            if self.is_over and (self.outcome != "done" or self._fatal is not None):
                await self.stop()
                continue
            self._changed.clear()
            await self._changed.wait()

    def _leave(self, go: Go) -> None:
        visit = Visit(go, self._staff.traveller, self.offer, self.terms)
        self._visits[visit] = asyncio.create_task(self._go(visit))

    async def _go(self, visit: Visit) -> None:
        try:
            if visit.go.phase == "prepare":
                await self._staff.prepare(visit)
            else:
                await self._infer(visit)
        except PrivetError as error:
            self.error = error
            _log.info("visit %s failed: %s", visit.go.job, error)
            # Other failures of a link or a peer are for the service to judge: it may run it again.
            if not isinstance(error, PeerError) or isinstance(error, FATAL):
                self._fatal = error
        except Exception as error:
            _log.exception("visit %s failed", visit.go.job)
            self._fatal = PeerError(f"this client made a mistake ({type(error).__name__})")
        finally:
            del self._visits[visit]
            self._changed.set()

    async def _infer(self, visit: Visit) -> None:
        raise PeerMisbehaved("the service wants to infer for what was no request")


@dataclass(frozen=True)
class Portion:
    """Inputs of one inference, and how many samples are in it."""

    payload: Payload
    samples: int


class Request(Errand):
    """A request for the predictions of `portions`.

    `idle` is called when the service gives leave although all results are there: it lost a worker
    that had just served us, and is about to run the job again for nobody.
    """

    def __init__(
        self,
        id: str,
        offer: Offer,
        terms: Terms,
        staff: Staff,
        portions: Sequence[Portion],
        idle: Callable[[Request], None],
    ) -> None:
        super().__init__(id, offer, terms, staff)
        self._idle = idle
        self._portions = portions
        self._pending = deque(range(len(portions)))
        self._results: dict[int, Result] = {}

    async def results(self) -> list[Result]:
        """The result of each portion, in order.

        # Errors
        `JobFailed` if the service ended the job otherwise; what went wrong on this side for good.
        """
        await self._until(lambda: self.is_answered)
        if not self.is_answered:
            raise self.failure()
        return [self._results[index] for index in range(len(self._portions))]

    @property
    def is_answered(self) -> bool:
        """Whether all results are there."""
        return len(self._results) == len(self._portions)

    def _leave(self, go: Go) -> None:
        if self.is_answered:
            self._idle(self)
        else:
            super()._leave(go)

    async def _infer(self, visit: Visit) -> None:
        while not self._pending:
            # A visit to a worker that died may still hold what the service runs again.
            others = [task for it, task in self._visits.items() if it is not visit]
            if self.is_answered or not others:
                raise PeerMisbehaved("the service wants to infer on more samples than there are")
            await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
        index = self._pending.popleft()
        portion = self._portions[index]
        try:
            spent, made = await self._staff.infer(visit, portion.payload)
        except BaseException:
            self._pending.appendleft(index)
            raise
        self._results[index] = read_result(
            self.offer.program,
            self.terms.suite,
            spent,
            portion.samples,
            made=made,
        )


class Notice(Errand):
    """An advance notice: the service makes material for a request that will name it."""

    @property
    def model(self) -> str:
        """The model that it is for."""
        return self.offer.model.name

    @property
    def is_ready(self) -> bool:
        """Whether its material lies ready."""
        return self.state == "prepared"

    async def ready(self) -> None:
        """Waits until its material lies ready.

        # Errors
        `JobFailed` if the service ended it before.
        """
        await self._until(lambda: self.is_ready and not self._visits)
        if not self.is_ready:
            raise self.failure()

    async def over(self) -> None:
        """Waits until the service has nothing more to say of it."""
        await self._until(lambda: False)
