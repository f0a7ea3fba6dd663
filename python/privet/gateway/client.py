"""The client of a service: announces and asks, and does its own half of each job.

The service (`privet serve`) decides when which job runs and on which cores; this client comes when
it is told to, connects to the worker that was assigned, and runs the protocol as `privet.Client`
does. Calls to the service carry names, sizes of batches and choices of suites, never an input.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from privet import _native, tracing
from privet.compiler.executor import encode_input
from privet.compiler.executor.codec import Inputs
from privet.compiler.executor.samples import fill, portions
from privet.compiler.program import Program
from privet.errors import JobFailed, MaterialError, Misuse, PeerBusy, PrivetError
from privet.gateway.attempt import WorkerClient
from privet.gateway.calls import Calls
from privet.gateway.catalog import Admitted, Catalog, submit, version_path
from privet.gateway.jobs import AttemptExecutor, ClientJob, Fetch, Notice, Portion, Request
from privet.gateway.model import Model, Offer, Terms, as_terms, same_terms
from privet.gateway.sessions import SILENCE, infer_encrypted
from privet.gateway.updates import WAIT_SECONDS, JobUpdates
from privet.runtime import Credentials, Result
from privet.runtime.machine import machine_memory
from privet.runtime.quantities import parse_size
from privet.runtime.result import join_results
from privet.runtime.tasks import Tasks
from privet.suites import MaterialSuite, Progress, Suite, forecast

THREADS = 64
"""Jobs of one client at once; the service does not lease workers to more than it has cores."""

SLACK_SECONDS = 5.0
"""How much longer than its timeout a request may take, so that the service can say what it was."""

SHORTEST_SECONDS = 0.1
"""The shortest timeout that a service takes: it is told this of a shorter one, which ends here."""

MOST_HELD = 8
"""Calls whose answers the service holds at once; the others leave connections for job updates."""

FEW_NUMBERS = 4096
"""Inputs of up to so many numbers, for programs that take no more at once, are encoded on the event
loop: that takes some 0.1 ms."""

MOST_ASKED = 1000

MOST_RESTARTS = 5
"""How often a request is asked anew because the service was restarted meanwhile."""

MOST_LOST = 100
"""Material entries that a request tries of which this side has lost its half."""


class ServiceClient:
    """A client of the service at `url` (`https://HOST:PORT`); use it with `async with`.

    `state` is the directory of the client's material. Material belongs to a certificate, so all
    clients with one certificate must share one directory; any number may, in any process.
    `server_name` is the name in the certificates of the service and its workers, by default the
    host's; `token` is a bearer token for a service that wants one. `dealer` (`HOST:PORT`) goes
    before the dealer that the service names; its certificate must carry a dealer's name either way.
    `link`, `memory` and `max_disk` are as in `privet.Client`.

    At most `threads` jobs run at once. A busy or absent service is asked again for `patience`
    seconds. With `offers`, this client also makes material when the service proposes it, for
    models and terms that it has asked for before. `progress` is called at the steps of each job,
    from the thread that runs it.

    # Errors
    `Misuse` if the address or the certificates are none.
    """

    def __init__(
        self,
        url: str,
        credentials: Credentials,
        *,
        state: str | os.PathLike[str],
        token: str | None = None,
        server_name: str | None = None,
        dealer: str | None = None,
        link: _native.Link | str | None = None,
        memory: int | str | None = None,
        max_disk: int | str | None = None,
        threads: int = THREADS,
        patience: float = 60.0,
        offers: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self._calls = Calls(
            url, credentials, server_name=server_name, token=token, patience=patience
        )
        self._progress = progress
        self._credentials = credentials
        link = _native.Link(link) if isinstance(link, str) else link
        self.link = link
        self.state = Path(state)
        self.max_disk = parse_size(max_disk, "disk space")
        worker_client = WorkerClient(
            credentials, state, self._calls.server_name, dealer, link, self.max_disk, progress
        )
        self._executor = AttemptExecutor(worker_client, threads)
        self._catalog = Catalog(self._calls, link, parse_size(memory) or machine_memory())
        self._updates = JobUpdates(self._calls, self._adopt if offers else None)
        self._offers: OrderedDict[tuple[str, Terms], Offer] = OrderedDict()
        self._notices: set[Notice] = set()
        self._held_calls = 0
        self._fetches: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._fetching = asyncio.Lock()
        self._tasks = Tasks()

    async def models(self) -> list[str]:
        """The names of the models that the service offers."""
        return await self._catalog.names()

    async def model(self, name: str, version: int | None = None) -> Model:
        """A version of a model, by default the newest, as it is now.

        # Errors
        `Misuse` if there is none; `PeerBusy`, `LinkError`, `PeerMisbehaved`.
        """
        return await self._catalog.model(name, version)

    async def offer(self, name: str, version: int | None = None) -> Offer:
        """A model with the public half of its program, which has the hash that the service calls it
        by; perhaps as they were when they were last read.

        # Errors
        As `model`; `PeerMisbehaved` or `InvalidProgram` if the program is none.
        """
        return await self._catalog.offer(name, version)

    async def reach(
        self, wait: float = 0.0, waiting: Callable[[PrivetError], None] | None = None
    ) -> None:
        """Returns once the service answers. One that is away is tried for `wait` seconds;
        `waiting` is called once, with why.

        # Errors
        `LinkError` within five seconds of the last try, with what to do: the service is away, its
        certificate has expired, is of another authority or for another name, or it refuses this
        client's. `NotAccepted` if this client's was revoked.
        """
        await self._calls.reach(wait, waiting)

    async def ready(self) -> bool:
        """Whether the service answers, and takes new jobs."""
        try:
            reply = await self._calls.get("/v2/health/ready", patience=0.0)
        except PrivetError:
            return False
        return isinstance(reply, dict) and reply.get("ready") is True

    async def notify(
        self,
        model: str,
        *,
        terms: Terms | Suite | str | None = None,
        samples: int = 1,
        timeout: float | None = None,
    ) -> Notice:
        """Announces a request for `samples` samples: its material is made in the background.

        `terms` say how to compute: a suite with its options or its name, or `Terms` that insist on
        a version or a program, too.

        # Errors
        `Misuse` if there is no such model, or not on these terms; `PeerBusy` if the service does
        not take it for all the client's patience; `LinkError`, `PeerMisbehaved`.
        """

        async def announce(offer: Offer, resolved: Terms) -> Notice:
            remaining = await self._fetch(offer, resolved, timeout)
            job = await self._submit("notices", offer, resolved, samples=samples, timeout=remaining)
            notice = Notice(job.id, offer, resolved, self._executor)
            self._notices.add(notice)
            return self._updates.follow(notice, job.sequence)

        self._notices = {notice for notice in self._notices if not notice.is_over}
        return await self._catalog.with_current(model, as_terms(terms) or Terms(), announce)

    async def infer(
        self,
        model: str,
        inputs: Inputs,
        *,
        terms: Terms | Suite | str | None = None,
        notice: Notice | str | None = None,
        timeout: float | None = None,
        deadline: float | None = None,
        ready: bool = False,
    ) -> Result:
        """The private predictions for real inputs, by name or in order, or for the only one.

        The inputs may hold any number of samples along their first axis; those beyond the program's
        batch are several inferences. `notice` is one of this client (then its terms hold), or the
        id of one that another client with this certificate made on the same terms. `timeout` ends
        the request after so many seconds, `deadline` tells the service when an answer is welcome.
        `terms` are as in `notify`. With `ready` no material is made for it: the service refuses it
        unless some lies ready. In suite `ckks` a request is a session with keys of its own: up
        to the program's batch of samples, and neither notice nor deadline.

        # Errors
        `InputError` before anything is sent if an input does not fit; `JobFailed` if the service
        ended the request without a result (one that was restarted meanwhile is asked again):
        asking again takes fresh material; `MaterialError` if
        the notice or its material is gone or used, or none is `ready`; else as `notify`.
        """
        with tracing.span("predict", kind="client", model=model):
            return await self._predict(
                model, inputs, as_terms(terms), notice, timeout, deadline, ready
            )

    async def _predict(
        self,
        model: str,
        inputs: Inputs,
        terms: Terms | None,
        notice: Notice | str | None,
        timeout: float | None,
        deadline: float | None,
        ready: bool,
    ) -> Result:
        keyed = terms is not None and terms.suite.in_sessions
        if terms is not None and notice is not None and (keyed or not terms.suite.prepares_ahead):
            name = terms.suite.name
            raise Misuse(f"suite {name} prepares nothing ahead: ask without a notice")
        if terms is not None and keyed:
            offer = await self._catalog.offer(model, terms.version)
            offer.resolve(terms)
            path = version_path(model, offer.model.version)
            limit = timeout or SILENCE
            target = (self._calls, self._credentials, path)
            result = await infer_encrypted(*target, offer, inputs, terms, limit, self._progress)
            tracing.steps("online", result.online, result.layers)
            return result
        id = notice.id if isinstance(notice, Notice) else notice
        remaining = timeout

        async def ask(offer: Offer, resolved: Terms) -> Request:
            nonlocal remaining
            if id is None:
                remaining = await self._fetch(offer, resolved, remaining)
            if _is_small(offer.program, inputs):
                request_portions = encode_portions(offer.program, inputs)
            else:
                request_portions = await asyncio.to_thread(encode_portions, offer.program, inputs)
            sequence = self._updates.sequence
            job = await self._submit(
                "requests",
                offer,
                resolved,
                samples=sum(portion.samples for portion in request_portions),
                notice=id,
                timeout=None if remaining is None else max(SHORTEST_SECONDS, remaining),
                deadline=deadline,
                unprepared=None if resolved.suite.prepares_ahead else True,
                ready=True if ready and resolved.suite.prepares_ahead else None,
                hold=_hold(remaining) if self._held_calls < MOST_HELD else 0.0,
                seen=sequence,
            )
            request = Request(job.id, offer, resolved, self._executor, request_portions, self._end)
            try:
                self._updates.follow(request, job.sequence)
                if job.updates is not None:
                    await self._updates.take(job.updates, sequence)
            except BaseException:
                self._end(request)
                raise
            return request

        if isinstance(notice, Notice):
            version = notice.offer.model.version
            request = await ask(notice.offer, replace(notice.terms, version=version))
            try:
                return await self._result(request, remaining)
            except JobFailed:
                if not request.is_lost:
                    raise
                terms, id = replace(notice.terms, version=version), None
            finally:
                self._retire_notice(notice, request)
        losses = restarts = 0
        while True:
            request = await self._catalog.with_current(model, terms or Terms(), ask)
            try:
                return await self._result(request, remaining)
            except MaterialError:
                # The service has material whose other half is not here. Nothing was sent; the
                # service drops the entry, and others may be complete.
                losses += 1
                if id is not None or losses == MOST_LOST:
                    raise
            except JobFailed:
                # The process that took the request is gone; another one is asked anew, and uses
                # other material.
                restarts += 1
                if not request.is_lost or restarts == MOST_RESTARTS:
                    raise
                id = None

    async def prepared(
        self, model: str, *, terms: Terms | Suite | str | None = None
    ) -> list[Notice]:
        """Notices whose material lies ready, of other clients with this certificate: each for one
        inference on these terms.

        # Errors
        As `notify`.
        """
        offer, resolved = await self.resolve(model, as_terms(terms) or Terms())
        notice_ids = {notice.id for notice in self._notices}
        ready = []
        for document in await self._updates.all():
            is_prepared = document["kind"] == "notice" and document["state"] == "prepared"
            fits = same_terms(document, resolved) and document["samples"] <= offer.program.batch
            if is_prepared and fits and document["id"] not in notice_ids:
                notice = Notice(document["id"], offer, resolved, self._executor)
                notice.update(document)
                self._notices.add(notice)
                ready.append(self._updates.follow(notice, document["sequence"]))
        return ready

    async def resolve(self, model: str, terms: Terms) -> tuple[Offer, Terms]:
        """The model as it was last read, and the terms with what they leave open.

        # Errors
        As `notify`.
        """
        offer = await self._catalog.offer(model, terms.version)
        return offer, await self._catalog.resolve(offer, terms)

    async def has_room(self, model: str, terms: Terms, entries: int = 1) -> bool:
        """Whether so many further material entries fit into this client's limit on disk.

        # Errors
        As `notify`.
        """
        if self.max_disk is None:
            return True
        offer, resolved = await self.resolve(model, terms)
        size = entries * forecast(offer.plan(resolved, self.link)).material_bytes_client
        return await asyncio.to_thread(self.bytes) + size <= self.max_disk

    def bytes(self) -> int:
        """Bytes of material and encrypted weights in this client's directory, whoever made them."""
        return self._executor.worker_client.store.bytes()

    async def stock(self, model: str, terms: Terms) -> int:
        """How many material entries for these terms this client has ready at the service.

        # Errors
        As `notify`.
        """
        offer, resolved = await self.resolve(model, terms)
        now = await self._catalog.model(model, terms.version)
        return now.stock.get(offer.plan(resolved, self.link).suite, 0)

    async def only_model(self) -> str:
        """The name of the model, where the service offers one alone.

        # Errors
        `Misuse` with the names if there are others, or none.
        """
        return await self._catalog.only()

    async def cancel(self, notice: Notice) -> None:
        """Withdraws a notice; material that was made for it serves another request."""
        self._notices.discard(notice)
        self._updates.drop(notice)
        await self._withdraw(notice)

    async def close(self) -> None:
        """Withdraws notices that are not ready, breaks off what runs, and closes connections."""
        for fetch in self._fetches.values():
            fetch.cancel()
        for notice in self._notices:
            if not (notice.is_over or notice.is_ready):
                self._tasks.start(self._withdraw(notice))
        await self._tasks.wait()
        await self._updates.close()
        await self._calls.close()
        await self._executor.close()

    async def __aenter__(self) -> ServiceClient:
        self._updates.begin()
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await self.close()

    async def _fetch(
        self, offer: Offer, terms: Terms, timeout: float | None = None
    ) -> float | None:
        """Waits until what this client keeps of a program on these terms is here; what is left of
        `timeout` then. One task fetches it for all who wait, and goes on when they have hung up.
        Raises `JobFailed` if it did not come, or not in time; else as `notify`."""
        if not (isinstance(terms.suite, MaterialSuite) and terms.suite.fetches):
            return timeout
        plan = offer.plan(terms, self.link)
        if not forecast(plan).kept_bytes:
            return timeout
        key, began = (offer.model.program, plan.suite), time.monotonic()
        task = self._fetches.get(key)
        if task is None:
            task = self._fetches[key] = self._tasks.start(self._keep(key, offer, terms))
            # Perhaps nobody waits for it by then.
            task.add_done_callback(lambda future: future.cancelled() or future.exception())
        await asyncio.wait({task}, timeout=timeout)
        if not task.done() or task.cancelled():
            outcome = "cancelled" if task.done() else "timed out"
            reason = "this client was closed"
            if not task.done():
                reason = f"the weights that this client keeps had not come within {timeout} s"
            raise JobFailed(reason, job="", outcome=outcome, reason=reason)
        task.result()
        if timeout is None:
            return None
        return max(SHORTEST_SECONDS, timeout - (time.monotonic() - began))

    async def _keep(self, key: tuple[str, str], offer: Offer, terms: Terms) -> None:
        """Fetches what this client keeps of a program in a suite, unless it is here. Raises what
        `_fetch` does."""

        async def is_here() -> bool:
            return await asyncio.to_thread(self._executor.has_kept, key)

        restarts = 0
        try:
            if await is_here():
                return
            # The service lets a client fetch one at a time.
            async with self._fetching:
                while not await is_here():
                    try:
                        job = await self._submit(
                            "requests", offer, terms, is_needless=is_here, fetch=True
                        )
                    except PeerBusy:
                        # Another process with this directory may have fetched it meanwhile.
                        if await is_here():
                            return
                        raise
                    fetch = Fetch(job.id, offer, terms, self._executor)
                    self._updates.follow(fetch, job.sequence)
                    try:
                        await fetch.over()
                        return
                    except JobFailed:
                        restarts += 1
                        if not fetch.is_lost or restarts == MOST_RESTARTS:
                            raise
                    finally:
                        self._updates.drop(fetch)
                        self._tasks.start(self._withdraw(fetch))
        finally:
            del self._fetches[key]

    async def _submit(self, kind: str, offer: Offer, terms: Terms, **fields: Any) -> Admitted:
        key, is_held = secrets.token_hex(16), fields.get("hold", 0.0) > 0
        self._held_calls += is_held
        try:
            job = await submit(self._calls, kind, offer, terms, key, **fields)
        except asyncio.CancelledError:
            # The service may have taken the job, and hold its answer.
            self._tasks.start(self._forsake(key))
            raise
        finally:
            self._held_calls -= is_held
        self._offers[offer.model.program, replace(terms, version=None)] = offer
        if len(self._offers) > MOST_ASKED:
            self._offers.popitem(last=False)
        return job

    async def _result(self, request: Request, timeout: float | None) -> Result:
        limit = timeout
        if timeout is not None and timeout >= SHORTEST_SECONDS:
            limit = timeout + SLACK_SECONDS
        try:
            async with asyncio.timeout(limit):
                return join_results(await request.results())
        except BaseException as error:
            self._end(request)
            if isinstance(error, TimeoutError):
                reason = f"there was no result within {timeout} s"
                failure = JobFailed(reason, job=request.id, outcome="timed out", reason=reason)
                raise failure from error
            raise

    def _retire_notice(self, notice: Notice, request: Request) -> None:
        """A notice has nothing more to say once the request that took it over is through."""
        self._updates.drop(notice)
        self._notices.discard(notice)
        notice.end("done", f"used by {request.id}")

    def _end(self, request: Request) -> None:
        """Ends a request at the service, in the background."""
        self._updates.drop(request)
        self._tasks.start(self._withdraw(request))

    async def _forsake(self, key: str) -> None:
        """Ends the job, if there is one, that the call of this key made."""
        with contextlib.suppress(PrivetError):
            await self._calls.delete(f"/v2/jobs/{key}", patience=SLACK_SECONDS)

    async def _withdraw(self, job: ClientJob) -> None:
        """Ends a job at the service, as well as it can, and what runs of it here."""
        for attempt in list(job.attempts):
            attempt.stop()
        if job.state != "ended":
            # If that fails, it ends by its timeout, or when nobody comes.
            with contextlib.suppress(PrivetError):
                await self._calls.delete(f"/v2/jobs/{job.id}", patience=SLACK_SECONDS)
        await job.stop()
        job.end("cancelled", "withdrawn")

    def _adopt(self, document: dict[str, Any]) -> ClientJob | None:
        """Takes on material that the service proposes to make, on terms that were used before."""
        if document["kind"] != "ahead" or document["state"] == "ended":
            return None
        for (_, terms), offer in self._offers.items():
            if same_terms(document, terms):
                return Notice(document["id"], offer, terms, self._executor)
        return None


def _hold(timeout: float | None) -> float:
    """How long the service may hold its answer to a request that ends after `timeout` seconds."""
    if timeout is None:
        return WAIT_SECONDS
    return min(WAIT_SECONDS, timeout) if timeout >= SHORTEST_SECONDS else 0.0


def _is_small(program: Program, inputs: Inputs) -> bool:
    """Whether inputs are encoded sooner than a thread would have begun to: few numbers, of which a
    program takes few as well (a row for each index, all samples of a batch), without a front."""
    elements = (math.prod(program.values[entry.value].shape) for entry in program.inputs)
    if program.front is not None or sum(elements) > FEW_NUMBERS:
        return False
    values = inputs.values() if isinstance(inputs, Mapping) else inputs
    arrays = [values] if isinstance(values, np.ndarray) else values
    if not isinstance(arrays, Collection):
        return False
    sizes = (array.size if isinstance(array, np.ndarray) else FEW_NUMBERS + 1 for array in arrays)
    return sum(sizes) <= FEW_NUMBERS


def encode_portions(program: Program, inputs: Inputs) -> tuple[Portion, ...]:
    """Inputs cut into those of one inference each, as integers. Raises `InputError` if they do not
    fit the program."""
    parts = []
    for portion in portions(program, inputs):
        filled, samples = fill(program, portion)
        encoded = encode_input(program, filled)
        parts.append(Portion([array.astype("<i8").tobytes() for array in encoded], samples))
    return tuple(parts)
