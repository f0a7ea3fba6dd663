"""The same requests at the same times, asked of the service or answered one by one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from benches.serving.stage import Stage, server
from privet.gateway import Notice, ServiceClient, Terms
from privet.research.simulation.record import InputRecord, JobRecord, SimulationRecord
from privet.research.simulation.workload import Arrival
from privet.runtime import Client
from privet.scheduler import Outcome, Phase
from privet.service.records import Records
from privet.service.service import RECORDS_FILE
from privet.suites import Fss, Gmw

ROUNDS = "linear"
"""Depth of comparisons in suite `gmw`: what suits a loopback link."""


def sequential(
    stage: Stage, dealer: str, schedule: Sequence[Arrival], cores: int, link: str | None
) -> SimulationRecord:
    """The paper's baseline: request by request in the order of arrival, each prepared, then
    inferred, on all cores, by a client that connects for each."""
    record = SimulationRecord("sequential", cores)
    requests = [arrival for arrival in schedule if not arrival.submission.notice]
    with ExitStack() as stack:
        addresses = {
            model: stack.enter_context(server(stage, model, dealer)) for model in stage.programs
        }

        def answer(model: str, suite: str) -> tuple[float, float]:
            """When the inference began, and when it was done."""
            host, port = addresses[model]
            state = stage.folder / "baseline-client"
            with Client(
                host,
                port,
                stage.credentials(),
                state=state,
                suite=terms(suite).suite,
                dealer=dealer if suite == "fss" else None,
                link=link,
            ) as client:
                client.prepare()
                begin = time.monotonic()
                client.infer(stage.inputs[model])
                return begin, time.monotonic()

        for model in stage.programs:
            for suite in ("gmw", "fss"):
                # Weights that a dealer's client keeps are fetched once.
                answer(model, suite)
        start = time.monotonic()
        for arrival in requests:
            time.sleep(max(0.0, start + arrival.at - time.monotonic()))
            submission = arrival.submission
            now = time.monotonic() - start
            begin, end = (moment - start for moment in answer(submission.model, submission.suite))
            for phase, first, last in ((Phase.PRE, now, begin), (Phase.ON, begin, end)):
                job = f"{submission.id}/{phase}"
                core_ids = tuple(range(cores))
                record.jobs.append(
                    JobRecord(
                        job,
                        submission.id,
                        submission.model,
                        "",
                        phase,
                        "",
                        core_ids,
                        0,
                        first,
                        last,
                    )
                )
            record.inputs.append(
                InputRecord(submission.id, submission.model, "", 1, arrival.at, begin, end)
            )
            record.outcomes[submission.id] = Outcome.DONE
    return record


async def serve(
    url: str, stage: Stage, schedule: Sequence[Arrival], policy: str, cores: int, link: str | None
) -> tuple[SimulationRecord, float]:
    """The same requests, each asked when it arrives; notices before them. Its jobs are not in the
    record yet; times in it count from the moment besides, in seconds since 1970."""
    record = SimulationRecord(policy, cores)
    notices: dict[str, asyncio.Task[Notice]] = {}
    state = stage.folder / policy
    async with ServiceClient(
        url, stage.credentials(), state=state, link=link, offers="ahead" in policy
    ) as client:
        for model in stage.programs:
            for suite in ("gmw", "fss"):
                await client.infer(model, stage.inputs[model], terms=terms(suite))
        start, begin = time.time(), time.monotonic()

        async def ask(arrival: Arrival) -> None:
            await asyncio.sleep(begin + arrival.at - time.monotonic())
            submission = arrival.submission
            if submission.notice:
                notices[submission.id] = asyncio.ensure_future(
                    client.notify(submission.model, terms=terms(submission.suite))
                )
                return
            notice = await notices[submission.refers_to] if submission.refers_to else None
            await client.infer(
                submission.model,
                stage.inputs[submission.model],
                terms=terms(submission.suite),
                notice=notice,
            )
            end = time.monotonic() - begin
            record.inputs.append(
                InputRecord(submission.id, submission.model, "", 1, arrival.at, arrival.at, end)
            )
            record.outcomes[submission.id] = Outcome.DONE

        await asyncio.gather(*map(ask, schedule))
    return record, start


def terms(suite: str) -> Terms:
    """How an inference in `suite` is asked for."""
    return Terms(Fss() if suite == "fss" else Gmw(rounds=ROUNDS))


def read_jobs(record: SimulationRecord, state: Path, start: float) -> None:
    """Adds what a service that has ended noted of its jobs, and when inferences began.

    Which request of a model an inference belongs to is not told apart; means do not depend on it.
    """
    records = Records(state / RECORDS_FILE)
    for run in records.runs(start, limit=1_000_000):
        record.jobs.append(
            JobRecord(
                run.job,
                run.request,
                run.model.partition("@")[0].partition("/")[0],
                "",
                Phase(run.phase),
                run.machine,
                run.cores,
                run.memory,
                run.started - start,
                run.ended - start,
                run.failure is None,
            )
        )
    records.close()
    starts: dict[str, list[float]] = {}
    for job in record.jobs:
        if job.phase is Phase.ON and job.done:
            starts.setdefault(job.model, []).append(job.start)
    record.inputs.sort(key=lambda entry: entry.arrival)
    record.inputs = [replace(entry, start=starts[entry.model].pop(0)) for entry in record.inputs]


def violations(record: SimulationRecord, memory: int) -> list[str]:
    """Where jobs held one core at the same time, or took more memory together than there is."""
    faults = []
    edges = sorted(
        [(job.start, 1, job) for job in record.jobs] + [(job.end, 0, job) for job in record.jobs],
        key=lambda edge: edge[:2],
    )
    owners: dict[int, str] = {}
    total = 0
    for _, begins, job in edges:
        total += job.memory if begins else -job.memory
        if total > memory:
            faults.append(f"{total} bytes are used when {job.job} begins")
        for core in job.cores:
            if not begins:
                owners.pop(core, None)
            elif owners.setdefault(core, job.job) != job.job:
                faults.append(f"{job.job} has core {core} of {owners[core]}")
    return faults
