"""The HTTP application: each route of the table with what all of them have in common.

Who calls, how often, how much and in what form is decided here, before a handler runs.
"""

from __future__ import annotations

import json
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from privet import tracing
from privet.errors import Misuse
from privet.logs import Seldom
from privet.service.asks import parameters
from privet.service.control.calls import (
    Call,
    HttpRoute,
    Refusal,
    bad_request,
    check_origin,
    not_found,
    too_many,
)
from privet.service.control.identity import Gate, Identity
from privet.service.control.openapi import Pages
from privet.service.control.routes import ROUTES
from privet.service.http import METHODS, read_body
from privet.service.limits import Buckets
from privet.service.schema import read
from privet.service.service import Service

Endpoint = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = logging.getLogger(__name__)

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""On every answer, unless a handler has set its own."""


MOST_REFUSED = 10_000
"""Clients and kinds of calls of which is remembered when a refusal was logged."""


def make_app(service: Service, gate: Gate) -> web.Application:
    """The application over a service."""
    front = _front(service, gate)
    app = web.Application(client_max_size=service.limits.body_bytes, middlewares=[front])
    calls = Buckets()
    pages = Pages(ROUTES, service.version)
    # The router tries them in turn, and each prediction asks by POST.
    for route in sorted(ROUTES, key=lambda entry: entry.method != "POST"):
        app.router.add_route(
            route.method, route.path, _endpoint(service, pages, gate, calls, route), name=route.name
        )
    return app


def _front(service: Service, gate: Gate) -> Any:
    """Times, counts and logs calls, and turns what goes wrong into answers."""
    account = _Account(service, gate)

    def refused(refusal: Refusal) -> web.Response:
        service.metrics.refused(refusal.reason)
        return refusal.response()

    @web.middleware
    async def front(request: web.Request, handler: Endpoint) -> web.StreamResponse:
        resource = request.match_info.route.resource
        name = resource.canonical if resource is not None else "unknown"
        method = request.method if request.method in METHODS else "other"
        header = request.headers.get(tracing.HEADER)
        with tracing.call(f"{method} {name}", header, begins=method != "GET") as span:
            response = await respond(request, handler, name)
            if span is not None:
                span.add(status=response.status)
        return response

    async def respond(request: web.Request, handler: Endpoint, name: str) -> web.StreamResponse:
        start = time.monotonic()
        response: web.StreamResponse
        try:
            response = await handler(request)
        except Refusal as refusal:
            response = refused(refusal)
        except web.HTTPException as error:
            response = refused(_translated(error))
        except Exception:
            _log.exception("call failed", extra={"route": name})
            response = refused(Refusal(500, "internal", "the service made a mistake; see its log"))
        if not response.prepared:
            for header, value in HEADERS.items():
                response.headers.setdefault(header, value)
        seconds = time.monotonic() - start
        account.add(request, name, response.status, seconds)
        return response

    return front


class _Account:
    """Counts calls, and logs those that are refused: the lines of a job tell what others made.
    Refusals of one kind get a line a minute for each client, with how many `times` there were
    since: nobody fills a disk with what is not even let in."""

    def __init__(self, service: Service, gate: Gate) -> None:
        self._service = service
        self._gate = gate
        self._refused: OrderedDict[tuple[str, str, int], Seldom] = OrderedDict()

    def add(self, request: web.Request, route: str, status: int, seconds: float) -> None:
        """Takes in a call."""
        method = request.method if request.method in METHODS else "other"
        self._service.metrics.call(method, route, status, seconds)
        if status < 400:
            return
        client = self._gate.client(request)
        times = self._due((client, route, status))
        if times is not None:
            fields: dict[str, Any] = {"method": method, "route": route, "status": status}
            fields |= {"client": client[:16], "times": times, "seconds": round(seconds, 4)}
            _log.info("call", extra=fields)

    def _due(self, kind: tuple[str, str, int]) -> int | None:
        seldom = self._refused.setdefault(kind, Seldom())
        self._refused.move_to_end(kind)
        if len(self._refused) > MOST_REFUSED:
            self._refused.popitem(last=False)
        return seldom.due()


def _translated(error: web.HTTPException) -> Refusal:
    if error.status == 413:
        return Refusal(413, "too large", "the body is larger than this service takes")
    if error.status == 405:
        return Refusal(405, "method", "there is no such call at this address; see /openapi.json")
    if error.status == 404:
        return not_found("there is nothing at this address; see /openapi.json")
    return Refusal(error.status, "http", error.reason)


def _endpoint(
    service: Service, pages: Pages, gate: Gate, buckets: Buckets, route: HttpRoute
) -> Endpoint:
    async def endpoint(request: web.Request) -> web.StreamResponse:
        caller = gate.identify(request)
        if route.method != "GET":
            check_origin(request)
        _admit(service, buckets, route, caller)
        try:
            query = read(route.parameters, parameters(request.query), "the address")
            body = await _body(request, route)
        except Misuse as error:
            raise bad_request(str(error)) from error
        return await route.handler(
            Call(service, pages, gate, caller, request, dict(request.match_info), query, body)
        )

    return endpoint


def _admit(service: Service, buckets: Buckets, route: HttpRoute, caller: Identity) -> None:
    limits = service.limits
    rate = limits.calls_per_second
    wait = buckets.take((caller.client,), rate, rate, time.monotonic())
    if wait:
        raise too_many(f"more than {rate:g} calls a second", wait)
    if route.role == "operator" and not caller.operator:
        raise Refusal(403, "operators only", "this is for operators of the service")
    if route.waits and service.jobs.waiting(caller.client) >= limits.long_polls:
        maximum = limits.long_polls
        raise too_many(f"more than {maximum} calls that wait for updates", 1.0, "long polls")


async def _body(request: web.Request, route: HttpRoute) -> Any:
    """The body as the route's dataclass; None for a route that takes none. Raises `Misuse` if it is
    no JSON object of that form."""
    if route.body is None:
        return None
    raw = await read_body(request)
    try:
        document = json.loads(raw.decode()) if raw else {}
    except (ValueError, RecursionError) as error:
        raise Misuse(f"the body is no JSON ({type(error).__name__})") from error
    return read(route.body, document, "the body")
