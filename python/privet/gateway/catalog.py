"""What a service offers, as this client has read and checked it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from privet import _native
from privet.errors import Misuse, PeerMisbehaved, Short
from privet.gateway.calls import LIVE, Calls, OtherProgram
from privet.gateway.model import Model, Offer, Terms, read_model
from privet.gateway.reach import network_to
from privet.runtime.machine import reachable_memory
from privet.suites import MaterialSuite

T = TypeVar("T")


MOST_OFFERS = 64
"""Programs that are kept, of all models and versions together."""

LOOK_SECONDS = 1.0
"""How old what is known of free memory may be."""


class Catalog:
    """The models of a service. Programs are kept, and read again when the service has others.

    `link` is what the network is taken for (measured if None), `memory` the bytes that this client
    may take: a program that takes more is refused.
    """

    def __init__(self, calls: Calls, link: _native.Link | None, memory: int) -> None:
        self._calls = calls
        self._link = link
        self._memory = memory
        self._measured = False
        self._looked, self._reachable = -math.inf, 0
        self._offers: dict[tuple[str, int | None], Offer] = {}
        self._reading = asyncio.Lock()

    async def names(self) -> list[str]:
        """The names of the models that are ready."""
        reply = await self._calls.get("/v2/models")
        try:
            return list(
                dict.fromkeys(str(model["name"]) for model in reply["models"] if model["ready"])
            )
        except (KeyError, TypeError) as error:
            raise PeerMisbehaved(f"the service lists no models: {error!r}") from error

    async def only(self) -> str:
        """The name of the model, where the service offers one alone. Raises `Misuse` with the names
        if there are others, or none."""
        names = await self.names()
        if len(names) != 1:
            offered = (
                f"it offers {', '.join(sorted(names))}" if names else "none is ready there yet"
            )
            raise Misuse(f"say which model of the service: {offered}")
        return names[0]

    async def model(self, name: str, version: int | None = None) -> Model:
        """A model as it is now. Raises `Misuse` if there is none."""
        return read_model(await self._calls.get(version_path(name, version)))

    async def offer(self, name: str, version: int | None = None) -> Offer:
        """A model with its program, perhaps as it was when it was last read. Raises what `model`
        does; `PeerMisbehaved` or `InvalidProgram` if the program is not what it is called."""
        key = (name, version)
        async with self._reading:
            if key not in self._offers:
                model = await self.model(name, version)
                path = version_path(name, model.version) + "/program"
                public = await self._calls.get_bytes(path)
                while len(self._offers) >= MOST_OFFERS:
                    del self._offers[next(iter(self._offers))]
                self._offers[key] = await asyncio.to_thread(Offer, model, public)
            return self._offers[key]

    async def resolve(self, offer: Offer, terms: Terms) -> Terms:
        """The terms with what they leave open, which this client can run. Raises what
        `Offer.resolve` does; `Misuse` if the program takes more memory than there is, `Short` if
        more than is free now."""
        if self._link is None and not self._measured:
            self._measured = True
            ask = partial(self._calls.get, LIVE)
            self._link = await network_to(self._calls.host, self._calls.port, ask)
        if offer.has_resolved(terms, self._link):
            # Nothing is planned anew: a thread would take longer.
            return self._resolve(offer, terms)
        return await asyncio.to_thread(self._resolve, offer, terms)

    def _resolve(self, offer: Offer, terms: Terms) -> Terms:
        resolved = offer.resolve(terms, self._link)
        if isinstance(resolved.suite, MaterialSuite):
            plan = offer.plan(resolved, self._link)
            plan.check_client_memory(self._memory)
            try:
                plan.check_client_memory(min(self._free(), self._memory))
            except Misuse as error:
                raise Short(f"this host is short of memory now, try later: {error}") from error
        return resolved

    def _free(self) -> int:
        """Bytes that this process has or could take, as of a moment ago: looking through the files
        of all control groups takes a third of what a prediction costs here."""
        now = time.monotonic()
        if now > self._looked + LOOK_SECONDS:
            self._looked, self._reachable = now, reachable_memory()
        return self._reachable

    async def with_current(
        self, name: str, terms: Terms, use: Callable[[Offer, Terms], Awaitable[T]]
    ) -> T:
        """What `use` makes of the model on resolved terms; once again if it has changed meanwhile.
        Raises those of `offer`, `resolve` and `use`."""
        key = (name, terms.version)
        for last in (False, True):
            offer = await self.offer(name, terms.version)
            try:
                return await use(offer, await self.resolve(offer, terms))
            except OtherProgram:
                self._forget(key, offer)
                if last:
                    raise
            except Misuse:
                self._forget(key, offer)
                raise
        raise AssertionError("the loop returns or raises")

    def _forget(self, key: tuple[str, int | None], offer: Offer) -> None:
        if self._offers.get(key) is offer:
            del self._offers[key]


@dataclass(frozen=True)
class Admitted:
    """A job that the service took: its id, its first change, and what the service said at once, of
    it and of others, if it was to wait for that."""

    id: str
    sequence: int
    updates: dict[str, Any] | None


async def submit(
    calls: Calls,
    kind: str,
    offer: Offer,
    terms: Terms,
    key: str,
    hold: float = 0.0,
    is_needless: Callable[[], Awaitable[bool]] | None = None,
    **fields: Any,
) -> Admitted:
    """Asks for `notices` or `requests` on resolved terms. The service may hold its answer `hold`
    seconds. A call whose answer was lost is sent again, and makes no second job, because of `key`,
    which is new for each; one that met a busy service is not, once it `is_needless`. Raises
    `Misuse`, `MaterialError` or `OtherProgram` if it is refused; `PeerBusy`, `LinkError`."""
    body = {"version": terms.version, "program": terms.program_hash, **terms.facts, "key": key}
    path = f"{version_path(offer.model.name)}/{kind}"
    reply = await calls.post(path, body | fields | {"wait": hold or None}, hold, is_needless)
    try:
        return Admitted(str(reply["id"]), int(reply["sequence"]), reply.get("news"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PeerMisbehaved(f"the service admitted no job: {error!r}") from error


def version_path(name: str, version: int | None = None) -> str:
    """Where the service has a model, or a version of it."""
    base = "/v2/models/" + quote(name, safe="")
    return base if version is None else f"{base}/versions/{version}"
