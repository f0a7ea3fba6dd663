"""The state of everything as one document: for the operator's page, `privet top`, and scripts."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from privet.scheduler import QueueLine, Snapshot
from privet.service.service import Service
from privet.service.timeline import RunSpan, model_name, phase_of


def state(service: Service, since: float = 0.0) -> dict[str, Any]:
    """The document; all times in seconds since 1970, memory in bytes. Its `timeline` has runs of
    the last ten minutes that ended after `since`."""
    now = service.snapshot()
    epoch = service.epoch
    return {
        "now": time.time(),
        "started": service.started,
        "version": service.version,
        "policy": now.policy,
        "not_ready": service.why_not_ready(),
        "draining": service.draining,
        "models": [vars(row) for row in service.repository.rows()],
        "machines": [vars(load) for load in now.machines],
        "queues": {
            name: _queue(getattr(now, name), epoch)
            for name in ("pre", "transit", "waiting", "ready")
        },
        "running": _running(now, epoch),
        "timeline": service.timeline.document(time.time(), since),
        "stock": _stock(service),
        "profiles": _profiles(service),
        "counts": _counts(now),
        "last": _last(service, now),
        "backlog_seconds": _finite(service.driver.scheduler.backlog_seconds()),
    }


def _queue(line: QueueLine, epoch: float) -> dict[str, Any]:
    first = [
        {
            "id": job.request or job.notice,
            **{key: value for key, value in vars(job).items() if key != "request"},
            "client": job.client[:16],
            "model": model_name(job.model),
            "since": epoch + job.since,
        }
        for job in line.first
    ]
    return {"length": line.length, "first": first}


def _running(now: Snapshot, epoch: float) -> list[dict[str, Any]]:
    return [
        {
            **{key: value for key, value in vars(job).items() if key != "request"},
            **{key: epoch + getattr(job, key) for key in ("started", "expected_end", "limit_end")},
            "phase": phase_of(str(job.phase), job.suite),
            "client": job.client[:16],
            "model": model_name(job.model),
            "cores": list(job.cores),
        }
        for job in now.running
    ]


def _stock(service: Service) -> list[dict[str, Any]]:
    streams = [entry.stream for entry in service.driver.scheduler.material.unused()]
    counts = Counter((stream.model, stream.suite) for stream in streams)
    return [
        {"model": model_name(model), "suite": suite, "entries": count}
        for (model, suite), count in sorted(counts.items())
    ]


def _profiles(service: Service) -> list[dict[str, Any]]:
    rows = service.profiles.rows()
    served_rows = [row for row in rows if service.is_served(row["model"])]
    return [{**row, "model": model_name(row["model"])} for row in served_rows]


def _counts(now: Snapshot) -> dict[str, Any]:
    outcomes = {str(outcome): count for outcome, count in now.counters.ended.items()}
    return {**vars(now.counters), "ended": outcomes}


def _last(service: Service, now: Snapshot) -> Any:
    """The monitor's figures, with the jobs that run."""
    clock = time.time()
    cores = sum(load.cores for load in now.machines)
    spans = [RunSpan(job.cores, service.epoch + job.started, clock) for job in now.running]
    past_spans = [RunSpan(run.cores, run.started, run.ended) for run in service.timeline.runs()]
    return service.monitor.document(clock, service.started, spans + past_spans, cores)


def _finite(seconds: float) -> float | None:
    return None if seconds == float("inf") else seconds
