"""What a gateway tells of its calls: a line of log and counters for each, and never a value.

The log's line has the ids of a `traceparent` (W3C Trace Context) where a caller sends one, so that
it can be found from a trace, and the answer carries it back.
"""

from __future__ import annotations

import logging
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from privet.service.http import METHODS

TRACE = "traceparent"
_TRACE = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = logging.getLogger(__name__)


@dataclass
class Tally:
    """Requests for predictions of one model, by how they ended, with the time that they took."""

    done: int = 0
    failed: int = 0
    done_seconds: float = 0.0
    failed_seconds: float = 0.0
    last: float = 0.0

    def add(self, seconds: float, *, done: bool) -> None:
        """Counts one."""
        self.last = time.time()
        if done:
            self.done, self.done_seconds = self.done + 1, self.done_seconds + seconds
        else:
            self.failed, self.failed_seconds = self.failed + 1, self.failed_seconds + seconds


class Observer:
    """Counts and logs the calls of a gateway."""

    def __init__(self) -> None:
        self.models: defaultdict[str, Tally] = defaultdict(Tally)
        self.calls: defaultdict[tuple[str, int], int] = defaultdict(int)

    @web.middleware
    async def log(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Logs and counts a call; models that nobody serves have no name of their own."""
        started = time.monotonic()
        traced = _TRACE.fullmatch(request.headers.get(TRACE, ""))
        response = await handler(request)
        resource = request.match_info.route.resource
        fields = {
            "method": request.method if request.method in METHODS else "other",
            "route": resource.canonical if resource is not None else "none",
            "status": response.status,
            "seconds": round(time.monotonic() - started, 6),
        }
        self.calls[str(fields["route"]), response.status] += 1
        if traced is not None:
            fields["trace"] = traced[1]
            response.headers[TRACE] = traced[0]
        _log.info("call", extra=fields)
        return response

    def metrics(self) -> str:
        """The counters as Prometheus reads them."""
        lines = ["# TYPE privet_gateway_calls_total counter"]
        for (route, status), count in sorted(self.calls.items()):
            lines.append(f'privet_gateway_calls_total{{route="{route}",status="{status}"}} {count}')
        for name, of in (("requests", "count"), ("request_seconds", "seconds")):
            lines.append(f"# TYPE privet_gateway_{name}_total counter")
            for model, tally in sorted(self.models.items()):
                seconds = {"done": tally.done_seconds, "failed": tally.failed_seconds}
                counts = {"done": tally.done, "failed": tally.failed}
                for outcome, value in (counts if of == "count" else seconds).items():
                    labels = f'model="{model}",outcome="{outcome}"'
                    lines.append(f"privet_gateway_{name}_total{{{labels}}} {value:g}")
        return "\n".join(lines) + "\n"
