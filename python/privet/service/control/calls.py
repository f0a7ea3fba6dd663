"""A call of the control plane: who calls, with what; and the table of calls that there are.

The router, the OpenAPI document and its page are all made from this one table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from aiohttp import web

from privet.service.asks import NoParameters
from privet.service.control.identity import Identity

if TYPE_CHECKING:
    from privet.service.control.pages import Pages
    from privet.service.service import Service

Body = TypeVar("Body")

Role = Literal["client", "operator"]

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Call(Generic[Body]):
    """One call: `path` holds the parts of the address that vary, `body` what was sent."""

    service: Service
    pages: Pages
    caller: Identity
    request: web.Request
    path: Mapping[str, str]
    parameters: Any
    body: Body


Answer = web.StreamResponse
Handler = Callable[[Call[Any]], Awaitable[Answer]]


@dataclass(frozen=True)
class Route:
    """A row of the table.

    `path` has its varying parts in braces. `answer` is the JSON schema of a good answer, or its
    content type; `refusals` says when the call is refused, by status. Only an `operator` may make
    a call of that role; one that `waits` for news is bounded per client.
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


def answer(document: Any, status: int = 200) -> web.Response:
    """A good answer in JSON."""
    return web.json_response(document, status=status)
