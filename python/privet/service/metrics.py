"""Metrics for Prometheus. No label names a client: who asks what is nobody's business here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from privet.scheduler import Snapshot
from privet.service.timeline import model_name, phase_of

Labelled = TypeVar("Labelled", Counter, Histogram)

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000)


@cache
def _child(metric: Labelled, *labels: str) -> Labelled:
    """A metric with labels, as `metric.labels` finds it; each prediction asks a dozen times."""
    return metric.labels(*labels)


class _Gauges(Collector):
    """Reads the scheduler when somebody asks."""

    def __init__(self, look: Callable[[], Snapshot]) -> None:
        self._look = look

    def collect(self) -> Iterator[Metric]:
        """Queues, machines, stock."""
        now = self._look()
        queues = GaugeMetricFamily(
            "privet_queue_length", "Jobs in each of the scheduler's queues", labels=["queue"]
        )
        oldest = GaugeMetricFamily(
            "privet_queue_oldest_seconds",
            "How long the first job of each queue has waited; 0 where none waits",
            labels=["queue"],
        )
        for name in ("pre", "transit", "waiting", "ready"):
            line = getattr(now, name)
            queues.add_metric([name], line.length)
            oldest.add_metric([name], max((now.now - job.since for job in line.first), default=0))
        yield from (queues, oldest)
        running = GaugeMetricFamily("privet_jobs_running", "Jobs that run", labels=["phase"])
        phases = [phase_of(str(job.phase), job.suite) for job in now.running]
        for phase in ("pre", "on", "fetch"):
            running.add_metric([phase], phases.count(phase))
        yield running
        for name, about in (
            ("cores", "Cores of each machine"),
            ("cores_taken", "Cores that jobs have"),
            ("memory", "Bytes that jobs may have"),
            ("memory_taken", "Bytes that jobs were given"),
        ):
            suffix = "_bytes" if name.startswith("memory") else ""
            family = GaugeMetricFamily(f"privet_{name}{suffix}", about, labels=["machine"])
            for load in now.machines:
                family.add_metric([load.name], getattr(load, name))
            yield family
        yield self._stock(now)

    @staticmethod
    def _stock(now: Snapshot) -> Metric:
        counts: dict[tuple[str, str], int] = {}
        for (_, model, suite, _), count in (*now.stock.items(), *now.announced.items()):
            counts[model, suite] = counts.get((model, suite), 0) + count
        family = GaugeMetricFamily(
            "privet_stock", "Material entries that lie ready", labels=["model", "suite"]
        )
        for (model, suite), count in counts.items():
            family.add_metric([model_name(model), suite], count)
        return family


class Metrics:
    """Everything that is counted; gauges read `look`."""

    def __init__(self, look: Callable[[], Snapshot]) -> None:
        self._registry = registry = CollectorRegistry()
        registry.register(_Gauges(look))

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"privet_{name}", about, labels, registry=registry)

        def histogram(name: str, about: str, *labels: str) -> Histogram:
            return Histogram(f"privet_{name}", about, labels, buckets=SECONDS, registry=registry)

        self._handshakes = counter("handshakes", "TLS handshakes of calls", "outcome")
        self._calls = counter("http_calls", "HTTP calls", "method", "route", "status")
        self._call_seconds = histogram("http_seconds", "Duration of HTTP calls", "route")
        self._refused = counter("rejections", "Calls that were refused", "reason")
        self._submitted = counter("submissions", "Notices and requests", "kind", "model", "suite")
        self._ended = counter("ended", "Notices and requests that ended", "kind", "outcome")
        self._delay = histogram("delay_seconds", "From a request to its end", "model")
        self._wait = histogram("wait_seconds", "From a request to its inference's start", "model")
        self._jobs = counter("jobs", "Jobs that ran", "phase", "failure")
        self._job_seconds = histogram("job_seconds", "Duration of jobs", "phase", "model", "suite")
        self._job_bytes = counter("job_bytes", "Bytes that jobs sent", "phase", "sender")
        self._material = counter("material", "Material entries", "model", "fate")

    def handshake(self, outcome: str) -> None:
        """The TLS handshake of a connection for calls has ended."""
        _child(self._handshakes, outcome).inc()

    def call(self, method: str, route: str, status: int, seconds: float) -> None:
        """An HTTP call was answered."""
        _child(self._calls, method, route, str(status)).inc()
        _child(self._call_seconds, route).observe(seconds)

    def refused(self, reason: str) -> None:
        """A call was refused."""
        _child(self._refused, reason).inc()

    def submitted(self, kind: str, model: str, suite: str) -> None:
        """A notice or a request was admitted."""
        _child(self._submitted, kind, model_name(model), suite).inc()

    def waited(self, model: str, seconds: float) -> None:
        """A request's first inference has started."""
        _child(self._wait, model_name(model)).observe(seconds)

    def ended(self, kind: str, model: str, outcome: str, seconds: float) -> None:
        """A notice or a request has ended."""
        _child(self._ended, kind, outcome).inc()
        if kind == "request" and outcome == "done":
            _child(self._delay, model_name(model)).observe(seconds)

    def add_job(
        self, phase: str, model: str, suite: str, seconds: float, failure: str | None
    ) -> None:
        """A job has ended."""
        _child(self._jobs, phase, failure or "none").inc()
        if failure is None:
            _child(self._job_seconds, phase, model_name(model), suite).observe(seconds)

    def add_bytes(self, phase: str, sender: str, count: int) -> None:
        """A job's bytes."""
        _child(self._job_bytes, phase, sender).inc(count)

    def material(self, model: str, fate: str) -> None:
        """Material entries were `made`, `used`, `found`, `expired` or `lost`."""
        _child(self._material, model_name(model), fate).inc()

    def render(self) -> tuple[bytes, str]:
        """The text, and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
