"""The server's metadata and health, as in the Open Inference Protocol."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from privet.service.control.calls import Answer, Call, answer, unavailable
from privet.service.service import Service

EXTENSIONS = ("privet",)


async def server(call: Call[Any]) -> Answer:
    """Name, version and extensions."""
    return answer(
        {"name": "privet", "version": call.service.version, "extensions": list(EXTENSIONS)}
    )


async def live(_call: Call[Any]) -> Answer:
    """Whether the process answers: if this arrives, it does."""
    return answer({"live": True})


async def ready(call: Call[Any]) -> Answer:
    """Whether the service takes new jobs: not while it starts, drains, or serves no model."""
    why = call.service.why_not_ready()
    if why is not None:
        raise unavailable(why, 5.0, "not ready")
    return answer({"ready": True})


async def openapi(call: Call[Any]) -> Answer:
    """The OpenAPI document."""
    return answer(call.pages.openapi)


async def documentation(call: Call[Any]) -> Answer:
    """The OpenAPI document as a page."""
    return web.Response(
        text=call.pages.documentation,
        content_type="text/html",
        headers={"Content-Security-Policy": "default-src 'none'; style-src 'self'"},
    )


def probe_app(service: Service) -> web.Application:
    """`/v2/health/live`, `/v2/health/ready` and `/metrics` of a service, without certificates.

    For a second, plain listener for probes of a cluster and for Prometheus: it tells nothing of a
    client or of a model's weights, and takes no jobs.
    """

    async def live(_request: web.Request) -> web.Response:
        return web.json_response({"live": True})

    async def ready(_request: web.Request) -> web.Response:
        why = service.why_not_ready()
        if why is not None:
            return web.json_response({"ready": False, "reason": why}, status=503)
        return web.json_response({"ready": True})

    async def metrics(_request: web.Request) -> web.Response:
        body, content_type = service.metrics.render()
        return web.Response(body=body, headers={"Content-Type": content_type})

    app = web.Application()
    app.router.add_get("/v2/health/live", live)
    app.router.add_get("/v2/health/ready", ready)
    app.router.add_get("/metrics", metrics)
    return app
