"""Turns what the driver reports into updates for clients, records and figures."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable

from privet import tracing
from privet.scheduler import (
    Action,
    Ended,
    Key,
    Material,
    MaterialGone,
    MaterialReady,
    Phase,
    Start,
)
from privet.service.audit_log import AuditLog
from privet.service.driver import CompletedJob
from privet.service.estimates import Estimates
from privet.service.jobs import Job, Jobs
from privet.service.metrics import Metrics
from privet.service.records import JobRun, Records
from privet.service.timeline import CompletedRequest, Monitor, Timeline, phase_of

_log = logging.getLogger(__name__)


class EventRecorder:
    """Keeps `jobs` up to date. `on_ended` is called with each job whose work is over.

    `epoch` is the time since 1970 at which the driver's clock showed 0.
    """

    def __init__(
        self,
        jobs: Jobs,
        material: Material,
        records: Records,
        metrics: Metrics,
        timeline: Timeline,
        monitor: Monitor,
        estimates: Estimates,
        epoch: float,
        on_ended: Callable[[Job], None],
        audit: AuditLog | None = None,
    ) -> None:
        self._jobs = jobs
        self._material = material
        self._records = records
        self._metrics = metrics
        self._timeline = timeline
        self._monitor = monitor
        self._estimates = estimates
        self._epoch = epoch
        self._on_ended = on_ended
        self._audit = audit
        # Notices that a request took over before their material was made: by which.
        self._claims: dict[str, str] = {}

    def submitted(self, job: Job, notice: Job | None) -> None:
        """A notice or a request was admitted; `notice` is the one that it names."""
        self._jobs.add(job)
        self._records.submitted(job)
        if self._audit is not None:
            mode = json.loads(job.choice.mode.text)
            subject = {"model": job.version.key, "program": job.version.program.program_hash}
            fields = {"client": job.client, "kind": job.kind, **subject, "mode": mode}
            self._audit.write("asked", job=job.id, **fields, samples=job.samples)
        self._metrics.submitted(job.kind, job.version.key, job.choice.label)
        if notice is not None and notice.state == "prepared":
            self.close(notice, f"used by {job.id}")
        elif notice is not None:
            self._claims[notice.id] = job.id

    def refused(self, reason: str) -> None:
        """Something was not admitted; `reason` says why in a word."""
        self._metrics.refused(reason)

    def close(self, job: Job, reason: str) -> None:
        """Ends the job of a notice that was done, or of material that was made ahead."""
        job.state, job.reason, job.ended = "ended", reason, time.time()
        if job.kind == "notice":
            self._records.ended(job)
        self._jobs.changed(job)
        self._on_ended(job)

    def on_action(self, action: Action) -> None:
        """The driver carried out an action."""
        if isinstance(action, Ended):
            self._ended(action)
        elif isinstance(action, MaterialReady):
            self._material_ready(action)
        elif isinstance(action, MaterialGone):
            self._material_gone(action)
        elif isinstance(action, Start) and action.phase is Phase.ON:
            if action.material is not None:
                self._metrics.material(action.model, "used")
            job = self._jobs.find(action.request)
            if job is not None and job.kind == "request" and job.waited is None:
                job.waited = time.time() - job.created
                self._metrics.waited(action.model, job.waited)

    def on_completed(self, completed_job: CompletedJob) -> None:
        """A job is over."""
        start, outcome = completed_job.start, completed_job.outcome
        run = self._run(completed_job)
        self._records.add_run(run)
        self._timeline.add(run)
        phase = run.phase
        self._metrics.add_job(phase, start.model, start.suite, outcome.seconds, outcome.failure)
        if outcome.cost is not None:
            self._metrics.add_bytes(phase, "client", outcome.cost.bytes_client)
            self._metrics.add_bytes(phase, "server", outcome.cost.bytes_server)
        row = self._estimates.row(Key(start.model, start.suite, start.batch, start.phase))
        if outcome.failure is None and row is not None:
            self._records.keep_profile(row)
        job = self._jobs.find(start.request)
        if job is not None and outcome.failure is None and run.phase == "on":
            job.done = min(job.samples, job.done + start.batch)
            self._jobs.changed(job, quietly=True)
        if outcome.failure is not None:
            extra = {"job": start.job, "failure": outcome.failure, "why": outcome.message}
            _log.info(
                "job failed", extra={**extra, **tracing.ids(None if job is None else job.trace)}
            )
            if job is not None and job.kind == "ahead":
                # Nobody submitted it, so the scheduler does not report its end.
                self.close(job, f"it was not made ahead: {outcome.failure}")

    def _run(self, completed_job: CompletedJob) -> JobRun:
        start, outcome = completed_job.start, completed_job.outcome
        return JobRun(
            start.job,
            start.request,
            phase_of(str(start.phase), start.suite),
            start.model,
            start.suite,
            start.batch,
            start.machine,
            start.cores,
            self._epoch + completed_job.began,
            self._epoch + completed_job.ended,
            outcome.seconds,
            outcome.memory,
            outcome.failure,
        )

    def _material_ready(self, event: MaterialReady) -> None:
        job = self._jobs.find(event.id)
        if job is None:
            return
        self._metrics.material(job.version.key, "made")
        if job.kind == "ahead":
            self.close(job, "made ahead")
            return
        if job.kind == "notice":
            job.done = min(job.samples, job.done + job.version.program.batch)
        elif job.state != "ended":
            job.state = "prepared"
        self._jobs.changed(job, quietly=True)

    def _material_gone(self, event: MaterialGone) -> None:
        self._metrics.material(event.model, event.reason)
        for job in self._jobs.live():
            waits = job.kind == "notice" and job.state == "prepared"
            if waits and not self._material.has(job.id):
                self.close(job, f"its material is gone: {event.reason}")

    def _ended(self, event: Ended) -> None:
        job = self._jobs.find(event.id)
        if job is None:
            return
        job.outcome, job.reason, job.ended = str(event.outcome), event.reason, time.time()
        seconds = job.ended - job.created
        self._records.ended(job)
        if self._audit is not None:
            self._audit.write("ended", job=job.id, outcome=job.outcome, reason=job.reason)
        self._metrics.ended(job.kind, job.version.key, job.outcome, seconds)
        if job.kind == "request" and job.outcome == "done":
            self._monitor.add(CompletedRequest(job.ended, seconds, job.waited or 0.0))
        extra = {"job": job.id, "kind": job.kind, "model": job.version.name}
        extra |= {"client": job.client[:16], "outcome": job.outcome, "reason": job.reason}
        extra |= tracing.ids(job.trace)
        _log.info("ended", extra={**extra, "seconds": round(seconds, 3)})
        claim = self._claims.pop(job.id, None)
        waits = job.kind == "notice" and job.outcome == "done" and self._material.has(job.id)
        job.state = "prepared" if waits and claim is None else "ended"
        self._jobs.changed(job)
        self._on_ended(job)
