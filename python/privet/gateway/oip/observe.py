"""What a gateway tells of its calls: a line of log, counters, a span for each, and never a value.

Where a caller sends a `traceparent`, the call belongs to that trace, and the answer carries it
back.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from privet import tracing
from privet.service.http import METHODS

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = logging.getLogger(__name__)


@dataclass
class Tally:
    """Requests for predictions of one model, by how they ended, with the time that they took, and
    the inferences that answered them: fewer where requests are joined."""

    done: int = 0
    failed: int = 0
    inferences: int = 0
    done_seconds: float = 0.0
    failed_seconds: float = 0.0
    last: float = 0.0

    def add(self, seconds: float, *, is_done: bool) -> None:
        """Counts one."""
        self.last = time.time()
        if is_done:
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
        start = time.monotonic()
        header = request.headers.get(tracing.HEADER)
        resource = request.match_info.route.resource
        method = request.method if request.method in METHODS else "other"
        route = resource.canonical if resource is not None else "none"
        with tracing.call(f"{method} {route}", header, begins=method != "GET") as span:
            response = await handler(request)
            fields = {"method": method, "route": route, "status": response.status}
            self.calls[route, response.status] += 1
            if header is not None and tracing.ids(header):
                response.headers[tracing.HEADER] = header
            if span is not None:
                span.add(status=response.status)
            _log.info("call", extra={**fields, "seconds": round(time.monotonic() - start, 6)})
        return response

    def metrics(self) -> str:
        """The counters as Prometheus reads them."""
        lines = ["# TYPE privet_gateway_calls_total counter"]
        for (route, status), count in sorted(self.calls.items()):
            lines.append(f'privet_gateway_calls_total{{route="{route}",status="{status}"}} {count}')
        for name, source in (("requests", "count"), ("request_seconds", "seconds")):
            lines.append(f"# TYPE privet_gateway_{name}_total counter")
            for model, tally in sorted(self.models.items()):
                seconds = {"done": tally.done_seconds, "failed": tally.failed_seconds}
                counts = {"done": tally.done, "failed": tally.failed}
                for outcome, value in (counts if source == "count" else seconds).items():
                    labels = f'model="{model}",outcome="{outcome}"'
                    lines.append(f"privet_gateway_{name}_total{{{labels}}} {value:g}")
        lines.append("# TYPE privet_gateway_inferences_total counter")
        for model, tally in sorted(self.models.items()):
            lines.append(f'privet_gateway_inferences_total{{model="{model}"}} {tally.inferences}')
        return "\n".join(lines) + "\n"
