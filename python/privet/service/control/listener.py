"""The control plane on a port, from start to drain."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack

from privet.errors import PrivetError
from privet.runtime.hangup import Hangup
from privet.runtime.listening import ListenerBounds, WrapsTls
from privet.runtime.tasks import Tasks
from privet.service.control.app import make_app
from privet.service.control.handlers.health import probe_app
from privet.service.control.identity import Gate
from privet.service.http import serving
from privet.service.service import Service
from privet.suites import Policy

LINGER_SECONDS = 1.0
"""How long calls are answered after a drain: clients want to learn how their jobs ended."""

CLOSING_SECONDS = 2.0
"""How long open calls have to end after that."""

_log = logging.getLogger(__name__)


async def serve(
    service: Service,
    gate: Gate,
    tls: WrapsTls,
    host: str,
    port: int,
    listening: Callable[[str, int], None],
    reload: Callable[[], Policy] | None = None,
    probe: tuple[str, int] | None = None,
) -> int:
    """Serves until a signal; the exit code.

    SIGHUP calls `reload`, which reads certificates again and gives the policy to go on with; models
    are looked at, too. Jobs and sessions go on.

    SIGTERM or SIGINT drains: health turns to not ready, nothing new is admitted, what was admitted
    runs to its end. A second signal ends at once, with code 1. Calls are answered from the start,
    by 503 while models are loaded; `listening` is called with the address once they are. At `probe`
    health and metrics are served to anybody, without TLS.

    Raises what `Service.start` does; `OSError` if the port cannot be had; `Misuse` if this process
    may open too few files.
    """
    stop = _Stop()
    running: asyncio.Task[None] | None = None
    try:
        app = make_app(service, gate)
        # Nobody at the plain listener says who they are, and must not take the files of clients.
        bounds = ListenerBounds.of_process(1 if probe is None else 2)
        async with AsyncExitStack() as stack:
            if reload is not None:
                stack.enter_context(_hangup(service, reload))
            if probe is not None:
                plain = serving(probe_app(service), *probe, None, shutdown=0.0, bounds=bounds)
                _log.info("probes", extra={"address": await stack.enter_async_context(plain)})
            shutdown, count = CLOSING_SECONDS, service.metrics.handshake
            main = serving(app, host, port, tls, shutdown=shutdown, bounds=bounds, count=count)
            address = await stack.enter_async_context(main)
            try:
                if not await _started(service, stop):
                    return 0
                running = asyncio.create_task(service.run())
                listening(*address)
                return await _until_stopped(service, running, stop)
            finally:
                service.leave()
    finally:
        stop.forget()
        await service.close()
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def _hangup(service: Service, reload: Callable[[], Policy]) -> Hangup:
    async def act() -> None:
        await service.reload(await asyncio.to_thread(reload))

    return Hangup(act, "certificates, policy and models")


async def _started(service: Service, stop: _Stop) -> bool:
    """Whether the service has started; not if a signal came before."""
    starting = asyncio.create_task(service.start())
    signalled = asyncio.create_task(stop.wait(1))
    await asyncio.wait({starting, signalled}, return_when=asyncio.FIRST_COMPLETED)
    signalled.cancel()
    if starting.done():
        await starting
        return True
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    return False


async def _until_stopped(service: Service, running: asyncio.Task[None], stop: _Stop) -> int:
    first = asyncio.create_task(stop.wait(1))
    await asyncio.wait({first, running}, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        first.cancel()
        await running
        raise PrivetError("the service stopped by itself")
    _log.info("draining", extra={"jobs": len(service.jobs.open())})
    drained = asyncio.create_task(service.drain())
    second = asyncio.create_task(stop.wait(2))
    await asyncio.wait({drained, second, running}, return_when=asyncio.FIRST_COMPLETED)
    for task in (drained, second):
        task.cancel()
    if running.done():
        await running
    if drained.done():
        drained.result()
        _log.info("drained")
        await asyncio.sleep(LINGER_SECONDS)
        return 0
    _log.warning("stopped with jobs running", extra={"jobs": len(service.jobs.open())})
    return 1


class _Stop:
    """Counts signals to stop."""

    def __init__(self) -> None:
        self._count = 0
        self._condition = asyncio.Condition()
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._on_signal)

    async def wait(self, count: int) -> None:
        """Waits until that many signals have come."""
        async with self._condition:
            await self._condition.wait_for(lambda: self._count >= count)

    def forget(self) -> None:
        """Removes the signal handlers."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.remove_signal_handler(number)

    def _on_signal(self) -> None:
        self._count += 1
        self._tasks.start(self._notify())

    async def _notify(self) -> None:
        async with self._condition:
            self._condition.notify_all()
