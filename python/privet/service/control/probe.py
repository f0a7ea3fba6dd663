"""A second, plain listener for probes of a cluster and for Prometheus, without TLS or certificates.

It says whether the service lives and is ready, and its metrics: nothing of a client or a model's
weights. It takes no jobs.
"""

from __future__ import annotations

from aiohttp import web

from privet.service.service import Service


def probe_app(service: Service) -> web.Application:
    """`/v2/health/live`, `/v2/health/ready` and `/metrics` of a service."""

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
