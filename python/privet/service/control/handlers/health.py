"""The server's metadata and health, as in the Open Inference Protocol."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from privet.service.control.calls import Answer, Call, answer
from privet.service.control.refusal import unavailable

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
