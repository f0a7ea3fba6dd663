"""For operators: the page with what it needs, metrics, and the state as JSON or as events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from privet.errors import Misuse
from privet.service.control.calls import Answer, Call, Refusal, answer, not_found
from privet.service.state import state as describe

EVENT_SECONDS = 1.0
"""How often the page gets a new state."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page's Content-Security-Policy: nothing inline, nothing from elsewhere."""


async def page(call: Call[Any]) -> Answer:
    return _file(call, "index.html")


async def asset(call: Call[Any]) -> Answer:
    """A script or a style sheet of the pages."""
    return _file(call, call.path["file"])


def _file(call: Call[Any], name: str) -> Answer:
    page = call.pages.file(name)
    if page is None:
        raise not_found("there is no such file")
    kind, text = page
    return web.Response(text=text, content_type=kind, headers={"Content-Security-Policy": POLICY})


async def metrics(call: Call[Any]) -> Answer:
    """Prometheus metrics."""
    body, content_type = call.service.metrics.render()
    return web.Response(body=body, headers={"Content-Type": content_type})


async def state(call: Call[Any]) -> Answer:
    """The state of everything."""
    return answer(describe(call.service))


async def drain(call: Call[Any]) -> Answer:
    """Takes a machine out, once what it has begun is over."""
    return _machine(call, call.service.driver.drain_machine, draining=True)


async def keep(call: Call[Any]) -> Answer:
    """Has a machine take jobs again."""
    return _machine(call, call.service.driver.keep_machine, draining=False)


def _machine(call: Call[Any], change: Callable[[str], None], *, draining: bool) -> Answer:
    name = call.path["machine"]
    try:
        change(name)
    except Misuse as error:
        raise Refusal(409, "machine", str(error)) from error
    return answer({"machine": name, "draining": draining})


async def events(call: Call[Any]) -> Answer:
    """The state as server-sent events, until the caller leaves, is an operator no more, or the
    service ends; each but the first has only the runs that ended since the one before."""
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
    )
    await response.prepare(call.request)
    closing = call.service.closing
    since = 0.0
    try:
        while not closing.is_set() and call.gate.is_operator(call.request):
            now = describe(call.service, since)
            since = max([since, *(run["ended"] for run in now["timeline"])])
            data = json.dumps(now, separators=(",", ":"))
            await response.write(f"event: state\ndata: {data}\n\n".encode())
            try:
                await asyncio.wait_for(closing.wait(), EVENT_SECONDS)
            except TimeoutError:
                continue
    except ConnectionError:
        pass
    return response
