"""Calls that are not answered as the client wished, and what it is told."""

from __future__ import annotations

import math
from collections.abc import Iterable
from urllib.parse import urlsplit

from aiohttp import web
from multidict import CIMultiDict


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
    if origin is not None and urlsplit(origin).netloc != request.host:
        raise Refusal(403, "other origin", "this is for this service's own page")


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
