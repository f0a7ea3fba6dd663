"""The table of all calls."""

from __future__ import annotations

from typing import Any

from privet.service.asks import NoticeBody, RequestBody, Wait, WaitForJobs
from privet.service.control import answers
from privet.service.control.answers import fields
from privet.service.control.calls import HttpRoute
from privet.service.control.handlers import health, jobs, models, operator, predict

_ABSENT = {404: "there is no such model or version"}
_ASKED: dict[int, str] = {
    400: "the body is malformed, or asks for what the model does not serve",
    403: "the service's policy does not accept this; the answer says what it does accept",
    404: "there is no such model, version, or notice of this client",
    409: "the model is another program now, or the notice is used or for something else",
    413: "the body is too large, or no machine has the memory for that many samples",
    429: "this client asks too much, or has too many jobs; Retry-After tells when to come back",
    503: "the queue is full, or the service is shutting down; Retry-After",
}
_READY = fields(name=answers.TEXT, version=answers.TEXT, ready=answers.FLAG)
_SERVER = fields(name=answers.TEXT, version=answers.TEXT, extensions=answers.several(answers.TEXT))
_MACHINE = fields(machine=answers.TEXT, draining=answers.FLAG)
_VERSION = "/v2/models/{model}/versions/{version}"


def _get(path: str, name: str, summary: str, handler: Any, answer: Any, **fields: Any) -> HttpRoute:
    return HttpRoute("GET", path, name, summary, handler, answer, **fields)


def _operator(path: str, name: str, summary: str, handler: Any, answer: Any) -> HttpRoute:
    return _get(
        path, name, summary, handler, answer, role="operator", refusals={403: "not an operator"}
    )


ROUTES: tuple[HttpRoute, ...] = (
    _get("/v2", "server", "Name and version of the server", health.server, _SERVER),
    _get(
        "/v2/health/live",
        "live",
        "Whether the process answers",
        health.live,
        fields(live=answers.FLAG),
    ),
    _get(
        "/v2/health/ready",
        "ready",
        "Whether the service takes new jobs",
        health.ready,
        fields(ready=answers.FLAG),
        refusals={503: "it starts, shuts down, or serves no model"},
    ),
    _get("/v2/models", "models", "The models that are served", models.index, answers.MODELS),
    _get(
        "/v2/models/{model}",
        "model",
        "Metadata of a model's newest version, and this client's stock",
        models.model,
        answers.MODEL,
        refusals=_ABSENT,
    ),
    _get(
        "/v2/models/{model}/ready",
        "model-ready",
        "Whether a model takes new jobs",
        models.ready,
        _READY,
        refusals={**_ABSENT, 503: "the service is shutting down"},
    ),
    _get(
        _VERSION,
        "version",
        "Metadata of one version, and this client's stock",
        models.model,
        answers.MODEL,
        refusals=_ABSENT,
    ),
    _get(
        _VERSION + "/ready",
        "version-ready",
        "Whether a version takes new jobs",
        models.ready,
        _READY,
        refusals={**_ABSENT, 503: "the service is shutting down"},
    ),
    _get(
        _VERSION + "/program",
        "program",
        "The public half of the program; its SHA-256 is the program's hash",
        models.program,
        {"type": "object"},
        refusals=_ABSENT,
    ),
    HttpRoute(
        "POST",
        "/v2/models/{model}/notices",
        "notice",
        "Announce a request, so that material is made ahead",
        jobs.notice,
        answers.SUBMITTED,
        body=NoticeBody,
        status=202,
        refusals=_ASKED,
    ),
    HttpRoute(
        "POST",
        "/v2/models/{model}/requests",
        "request",
        "Ask for an inference",
        jobs.request,
        answers.REQUESTED,
        body=RequestBody,
        status=202,
        refusals=_ASKED,
    ),
    _get(
        "/v2/jobs",
        "news",
        "This client's jobs that changed; waits for updates",
        jobs.updates,
        answers.UPDATES,
        parameters=WaitForJobs,
        waits=True,
    ),
    _get(
        "/v2/jobs/{id}",
        "job",
        "One of this client's jobs; waits for updates",
        jobs.job,
        answers.JOB,
        parameters=Wait,
        refusals={404: "this client has no such job"},
        waits=True,
    ),
    HttpRoute(
        "DELETE",
        "/v2/jobs/{id}",
        "cancel",
        "Cancel one of this client's jobs",
        jobs.cancel,
        answers.JOB,
        refusals={404: "this client has no such job"},
    ),
    _get("/openapi.json", "openapi", "This document", health.openapi, {"type": "object"}),
    _get("/docs", "docs", "This document as a page", health.documentation, "text/html"),
    _get(
        "/assets/{file}", "asset", "Scripts and styles of the pages", operator.asset, "text/plain"
    ),
    _get("/predict", "predict", "A page that asks a model in sessions", predict.page, "text/html"),
    _get(
        "/predict/{file}",
        "predict-asset",
        "Scripts of that page, and its WebAssembly module",
        predict.asset,
        "text/plain",
        refusals={404: "there is no such file, or the module is not installed"},
    ),
    _get(
        _VERSION + "/session",
        "session",
        "A session with a version, by WebSocket",
        predict.session,
        "application/octet-stream",
        status=101,
        refusals={
            **_ABSENT,
            403: "a page of another site asks",
            429: "this client has its sessions, or asks too much",
            503: "the service is shutting down, or the model's process does not answer",
        },
    ),
    _operator("/", "page", "The operator's page", operator.page, "text/html"),
    _operator("/metrics", "metrics", "Metrics for Prometheus", operator.metrics, "text/plain"),
    _operator("/v2/state", "state", "The state of everything", operator.state, answers.STATE),
    HttpRoute(
        "POST",
        "/v2/machines/{machine}/drain",
        "drain-machine",
        "Take a machine out: what it has begun ends, and nothing new comes to it",
        operator.drain,
        _MACHINE,
        role="operator",
        refusals={403: "not an operator", 409: "there is no such machine, or jobs need it"},
    ),
    HttpRoute(
        "DELETE",
        "/v2/machines/{machine}/drain",
        "keep-machine",
        "Have a machine take jobs again that is being taken out, or was",
        operator.keep,
        _MACHINE,
        role="operator",
        refusals={403: "not an operator", 409: "nobody took it out"},
    ),
    _operator(
        "/v2/events",
        "events",
        "The state every second, as server-sent events",
        operator.events,
        "text/event-stream",
    ),
)
