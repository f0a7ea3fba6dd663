"""Notices, requests, and updates of them. A client sees and ends its own jobs only."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

from privet.errors import Misuse, NotAccepted
from privet.scheduler import Refused, Why
from privet.service.asks import Ask, NoticeBody, RequestBody, Wait, WaitForJobs
from privet.service.control.calls import (
    Answer,
    Call,
    Refusal,
    answer,
    bad_request,
    check_takes_jobs,
    not_found,
    too_many,
    unavailable,
)
from privet.service.control.handlers.models import find
from privet.service.http import while_connected
from privet.service.jobs import Job
from privet.service.limits import Exhausted
from privet.service.repository import Version

NOT_YOURS = "there is no such job of yours"


async def notice(call: Call[NoticeBody]) -> Answer:
    """Announces a request: material is made ahead."""
    if (before := _before(call, "notice")) is not None:
        return answer(_admitted(before), 202)
    version = _version_for(call)
    jobs = call.service.jobs.live_of(call.caller.client)
    waiting = [entry for entry in jobs if entry.kind == "notice" and entry.is_open]
    waiting = [entry for entry in waiting if entry.version.model == version.model]
    maximum = version.config.limits.notices_per_client
    stock = call.service.requested_count(call.caller.client, version)
    if len(waiting) + stock + 1 > maximum:
        raise too_many(
            f"you have {len(waiting)} notices that wait and {stock} entries that you asked for, of "
            f"{version.name}, and {maximum} is the most: use them first",
            call.service.retry_seconds(),
            "notices",
        )
    submitted = _submit(call, version)
    _charge(call, version)
    return answer(_admitted(submitted), 202)


async def request(call: Call[RequestBody]) -> Answer:
    """Asks for an inference, or to fetch what this client keeps."""
    if (before := _before(call, "fetch" if call.body.fetch else "request")) is not None:
        return await _admission(call, before, after=0)
    version = _version_for(call)
    limits = version.config.limits
    if limits.requests_per_minute is not None:
        _spend(call, version.name, limits.requests_per_minute)
    submitted = _submit(call, version)
    _charge(call, version)
    if limits.requests_per_minute is not None:
        _charge(call, version, version.name, limits.requests_per_minute)
    return await _admission(call, submitted, after=submitted.sequence)


async def updates(call: Call[None]) -> Answer:
    """The client's jobs that changed after `seen`; waits for some."""
    wait: WaitForJobs = call.parameters
    client = call.caller.client
    ahead = call.service.presence.of(client) if wait.ahead else nullcontext()
    with ahead:
        await _listen(call, wait.seen, wait.wait)
    return answer(_updates(call, wait.seen))


async def job(call: Call[None]) -> Answer:
    """One job; waits until it changes after `seen`."""
    wait: Wait = call.parameters
    entry = _job_or_record(call)
    if isinstance(entry, Job):
        await _listen(call, wait.seen, wait.wait, entry.id)
        return answer(entry.document())
    return answer(entry)


async def cancel(call: Call[None]) -> Answer:
    """Ends a job as cancelled, also one that runs."""
    entry = _job_or_record(call)
    if isinstance(entry, Job):
        call.service.cancel(entry)
        return answer(entry.document())
    return answer(entry)


async def _listen(call: Call[Any], after: int, seconds: float, id: str | None = None) -> None:
    """Waits for updates as `Jobs.wait`; the caller listens meanwhile, as long as it is there."""
    service, client = call.service, call.caller.client
    with service.listening.of(client), while_connected(call.request):
        await service.jobs.wait(client, after, seconds, id)


def _job_or_record(call: Call[None]) -> Job | dict[str, Any]:
    """The caller's job that the address names, or what is on record of it."""
    id, client, jobs = call.path["id"], call.caller.client, call.service.jobs
    entry = jobs.of_client(client, id) or jobs.keyed(client, id) or call.service.past(client, id)
    if entry is None:
        raise not_found(NOT_YOURS)
    return entry


def _before(call: Call[Any], kind: str) -> Job | None:
    """What a call of the same key made, if there was one."""
    before = call.service.jobs.keyed(call.caller.client, call.body.key)
    if before is None:
        return None
    if (before.kind, before.version.model) != (kind, call.path["model"]):
        raise Refusal(409, "key", f"key {before.key} was used for another call: take a new one")
    return before


def _admitted(job: Job) -> dict[str, Any]:
    return {"id": job.id, "state": job.state, "sequence": job.sequence}


def _updates(call: Call[Any], after: int) -> dict[str, Any]:
    jobs, client = call.service.jobs, call.caller.client
    changed = [job.document() for job in jobs.updates(client, after)]
    return {"sequence": jobs.sequence(client), "jobs": changed}


async def _admission(call: Call[RequestBody], job: Job, after: int) -> Answer:
    """The answer to a call that made `job`; if the caller waits, with updates once the job has some
    beyond number `after` that it can act on. Such calls leave half of the places to calls for
    updates."""
    body, jobs, client = call.body, call.service.jobs, call.caller.client
    if not body.wait or 2 * jobs.waiting(client) >= call.service.limits.long_polls:
        return answer(_admitted(job), 202)
    before = job.sequence - 1 if body.seen is None else body.seen
    await _listen(call, after, body.wait, job.id)
    return answer({**_admitted(job), "news": _updates(call, before)}, 202)


def _version_for(call: Call[Any]) -> Version:
    body: Ask = call.body
    check_takes_jobs(call.service)
    version = find(call, body.version)
    if body.program not in (None, version.program.program_hash):
        raise Refusal(
            409,
            "other program",
            f"model {version.name} is program {version.program.program_hash} now: look whether "
            "you trust it, and ask for that",
        )
    _spend(call, "", call.service.limits.requests_per_minute)
    return version


def _spend(call: Call[Any], model: str, rate: float) -> None:
    """Takes one request out of the caller's bucket: of a model's, or of the service's own."""
    name = (call.caller.client, model)
    wait = call.service.buckets.take(name, rate / 60, max(1.0, rate / 6), time.monotonic())
    if wait:
        suffix = f" of model {model}" if model else ""
        raise too_many(f"more than {rate:g} requests a minute{suffix}", wait)


def _charge(call: Call[Any], version: Version, model: str = "", rate: float | None = None) -> None:
    """Takes the inferences of a request beyond the first, which was taken to let it in: a client
    that asks for a thousand at once asks for no more until it might have them one by one."""
    rate = call.service.limits.requests_per_minute if rate is None else rate
    further_inferences = -(-call.body.samples // version.program.batch) - 1
    if further_inferences:
        buckets, now = call.service.buckets, time.monotonic()
        buckets.charge(
            (call.caller.client, model), rate / 60, max(1.0, rate / 6), now, further_inferences
        )


def _submit(call: Call[Any], version: Version) -> Job:
    limit_reached = call.service.limit_reached(call.caller.client, version)
    if limit_reached is not None:
        refuse = too_many if limit_reached.is_own else unavailable
        raise refuse(str(limit_reached), call.service.retry_seconds(), limit_reached.reason)
    try:
        caller = call.caller
        return call.service.submit(caller.client, caller.certified, version, call.body)
    except NotAccepted as error:
        raise Refusal(403, "policy", str(error)) from error
    except Exhausted as error:
        raise too_many(str(error), error.seconds, error.reason) from error
    except Misuse as error:
        raise bad_request(str(error)) from error
    except Refused as refused:
        raise _translated(call, refused) from refused


def _translated(call: Call[Any], refused: Refused) -> Refusal:
    if refused.retry:
        return unavailable(str(refused), call.service.retry_seconds(), str(refused.why))
    if refused.why in (Why.UNKNOWN_NOTICE, Why.FOREIGN_NOTICE):
        # In the same words, so that nobody learns which notices others have.
        return not_found("there is no such notice of yours")
    status = 413 if refused.why is Why.TOO_LARGE else 409
    return Refusal(status, str(refused.why), str(refused))
