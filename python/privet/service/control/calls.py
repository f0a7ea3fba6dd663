"""A call of the control plane: who calls, with what; the table of calls that there are; refusals.

The router, the OpenAPI document and its page are all made from this one table.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar
from urllib.parse import urlsplit

from aiohttp import web
from multidict import CIMultiDict

from privet.service.asks import NoParameters

if TYPE_CHECKING:
    from privet.service.control.identity import Gate, Identity
    from privet.service.control.openapi import Pages
    from privet.service.service import Service


class Refusal(Exception):
    """A call that is refused with an HTTP `status`.

    `reason` is a word for metrics and programs, `message` says what is wrong and what to do. With
    `retry_after` (seconds) the same call may succeed later. Of `headers`, a name may come again.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        retry_after: float | None = None,
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after
        self._headers = tuple(headers)

    def response(self) -> web.Response:
        """The answer: `{"error": message, "reason": reason}`."""
        headers = CIMultiDict(self._headers)
        if self.retry_after is not None:
            headers["Retry-After"] = str(max(1, math.ceil(self.retry_after)))
        body = {"error": str(self), "reason": self.reason}
        return web.json_response(body, status=self.status, headers=headers)


def check_origin(request: web.Request) -> None:
    """Refuses the page of another site, which a browser would lend its user's certificate."""
    origin = request.headers.get("Origin")
    if origin is not None and _host(origin) != request.host:
        raise Refusal(403, "other origin", "this is for this service's own page")


def _host(origin: str) -> str | None:
    """The host and port of an origin; None if it is no address."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def bad_request(message: str) -> Refusal:
    """400: the call can never work as it is."""
    return Refusal(400, "bad request", message)


def not_found(message: str) -> Refusal:
    """404: nothing of that name, or nothing that this client may know of."""
    return Refusal(404, "not found", message)


def too_many(message: str, retry_after: float, reason: str = "rate limit") -> Refusal:
    """429: this client asks too much."""
    return Refusal(429, reason, message, retry_after)


def unavailable(message: str, retry_after: float, reason: str) -> Refusal:
    """503: the service cannot take it now, whoever asks."""
    return Refusal(503, reason, message, retry_after)


Body = TypeVar("Body")

Role = Literal["client", "operator"]

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Call(Generic[Body]):
    """One call: `path` holds the parts of the address that vary, `body` what was sent. `gate` has
    let it in, and tells whether it still would."""

    service: Service
    pages: Pages
    gate: Gate
    caller: Identity
    request: web.Request
    path: Mapping[str, str]
    parameters: Any
    body: Body


Answer = web.StreamResponse
Handler = Callable[[Call[Any]], Awaitable[Answer]]


@dataclass(frozen=True)
class HttpRoute:
    """A row of the table.

    `path` has its varying parts in braces. `answer` is the JSON schema of a good answer, or its
    content type; `refusals` says when the call is refused, by status. Only an `operator` may make
    a call of that role; one that `waits` for updates is bounded per client.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    name: str
    summary: str
    handler: Handler
    answer: Schema | str
    role: Role = "client"
    body: type[Any] | None = None
    parameters: type[Any] = NoParameters
    status: int = 200
    refusals: Mapping[int, str] = field(default_factory=dict)
    waits: bool = False


def check_takes_jobs(service: Service) -> None:
    """Refuses what would begin while the service shuts down, or its disk is full."""
    if service.draining:
        raise unavailable("the service is shutting down", 5.0, "draining")
    if (why := service.why_no_room()) is not None:
        raise Refusal(507, "disk", f"{why}: try again later", 30.0)


def answer(document: Any, status: int = 200) -> web.Response:
    """A good answer in JSON."""
    return web.json_response(document, status=status)
