"""The protocol over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Middleware

from privet.gateway.oip.binary import HEADER, Body
from privet.gateway.oip.exchange import EXTENSIONS, MORE, Exchange
from privet.gateway.oip.faults import check_caller, fault
from privet.runtime.listening import peer_of
from privet.runtime.revocation import Revoked
from privet.service.http import METHODS, read_body

MODEL = "/v2/models/{model}"
VERSION = MODEL + "/versions/{version}"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(
    exchange: Exchange, most_bytes: int, revoked: Revoked | None = None
) -> web.Application:
    """The protocol's calls, from clients that are not `revoked`; a body may have `most_bytes`."""
    handlers = _Rest(exchange)
    app = web.Application(
        client_max_size=most_bytes,
        middlewares=[exchange.observer.log, _answer_faults, _admitting(revoked or Revoked())],
    )
    app.router.add_get("/metrics", handlers.metrics)
    app.router.add_get("/v2", handlers.server)
    app.router.add_get("/v2/health/live", handlers.live)
    app.router.add_get("/v2/health/ready", handlers.ready)
    app.router.add_post("/v2/repository/index", handlers.index)
    for model in (MODEL, VERSION):
        app.router.add_get(model + "/config", handlers.config)
        app.router.add_get(model + "/stats", handlers.statistics)
        app.router.add_get(model, handlers.model)
        app.router.add_get(model + "/ready", handlers.model_ready)
        app.router.add_post(model + "/infer", handlers.infer)
    return app


@web.middleware
async def _answer_faults(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        if "Origin" in request.headers:
            # A page in a browser must not reach what listens on its own machine.
            return _failed(403, "this is for programs, and not for pages in a browser")
        return await handler(request)
    except web.HTTPException as error:
        return _failed(error.status, error.reason)
    except Exception as error:
        reply = fault(request.method if request.method in METHODS else "other", error)
        return _failed(reply.http, reply.message)


def _admitting(revoked: Revoked) -> Middleware:
    @web.middleware
    async def admit(request: web.Request, handler: Handler) -> web.StreamResponse:
        check_caller(revoked, peer_of(request.transport) if request.transport else "")
        return await handler(request)

    return admit


def _failed(status: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=status)


class _Rest:
    """The handlers."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def server(self, _request: web.Request) -> web.Response:
        exchange = self._exchange
        return web.json_response(
            {"name": exchange.name, "version": exchange.version, "extensions": [*EXTENSIONS, *MORE]}
        )

    async def metrics(self, _request: web.Request) -> web.Response:
        return web.Response(text=self._exchange.observer.metrics())

    async def index(self, _request: web.Request) -> web.Response:
        return web.json_response(await self._exchange.index())

    async def config(self, request: web.Request) -> web.Response:
        return web.json_response(await self._exchange.config(*_named(request)))

    async def statistics(self, request: web.Request) -> web.Response:
        return web.json_response(await self._exchange.statistics(*_named(request)))

    async def live(self, _request: web.Request) -> web.Response:
        return web.json_response({"live": True})

    async def ready(self, _request: web.Request) -> web.Response:
        return _whether(await self._exchange.ready())

    async def model(self, request: web.Request) -> web.Response:
        metadata = await self._exchange.metadata(*_named(request))
        return web.json_response(asdict(metadata))

    async def model_ready(self, request: web.Request) -> web.Response:
        name, version = _named(request)
        return _whether(await self._exchange.model_ready(name, version), name=name)

    async def infer(self, request: web.Request) -> web.Response:
        body = Body(*_named(request), await read_body(request), request.headers.get(HEADER))
        answer = await self._exchange.infer(body.question)
        data, length = body.answer(answer)
        if length is None:
            return web.Response(body=data, content_type="application/json")
        return web.Response(
            body=data, content_type="application/octet-stream", headers={HEADER: str(length)}
        )


def _whether(ready: bool, **fields: Any) -> web.Response:
    return web.json_response({**fields, "ready": ready}, status=200 if ready else 503)


def _named(request: web.Request) -> tuple[str, str]:
    return request.match_info["model"], request.match_info.get("version", "")
