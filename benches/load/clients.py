"""Clients that ask again as soon as they have an answer, and clients that only wait."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime

from benches.load.place import Place
from benches.vitals import Meter, machine_load, resident_bytes
from privet.errors import PrivetError
from privet.gateway import ServiceClient, Terms
from privet.gateway.calls import Calls
from privet.runtime import Credentials, Result

PERCENTILES = (50, 90, 95, 99, 100)
TOLERANCE = 0.1
OPENING = 16
"""Handshakes of idle clients at once: fewer than a service allows one address."""

POLL_SECONDS = 25.0


@dataclass
class Figures:
    """What came of a phase: answers that were right, by their seconds, and faults by their text.

    `beyond` are the milliseconds of each answer in which no party computed or sent anything for
    it: calls of the control plane, and waiting for a worker.
    """

    seconds: list[float] = field(default_factory=list)
    beyond: list[float] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    wall_seconds: float = 0.0
    control_cpu_seconds: float = 0.0
    machine_load: float = 0.0

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        count = len(self.seconds)
        return {
            "answers": count,
            "faults": dict(self.faults),
            "seconds": round(self.wall_seconds, 1),
            "per_second": round(count / self.wall_seconds, 2) if self.wall_seconds else 0.0,
            "latency_ms": percentiles([1000 * second for second in self.seconds]),
            "beyond_protocol_ms": percentiles(self.beyond),
            "control_cpu_ms_each": round(1000 * self.control_cpu_seconds / max(1, count), 2),
            "machine_load": self.machine_load,
        }


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Those of `PERCENTILES`; nothing of nothing."""
    if not values:
        return {}
    return {
        f"p{percentile}": round(float(np.percentile(values, percentile)), 1)
        for percentile in PERCENTILES
    }


class Load:
    """The clients of a phase: each with a certificate and a folder of its own."""

    def __init__(self, place: Place, address: str, terms: Terms) -> None:
        self._place = place
        self._url = f"https://{address}"
        self._terms = terms
        self._plain = onnxruntime.InferenceSession(place.model)
        self._name = self._plain.get_inputs()[0].name

    async def ask(
        self, process: int, clients: int, seconds: float, *, anew: bool = False
    ) -> Figures:
        """Has `clients` ask for `seconds`; with `anew`, each prediction has a connection to the
        control plane of its own, as a command has."""
        figures = Figures()
        async with contextlib.AsyncExitStack() as stack:
            connections = [
                None if anew else await self._enter(stack, index) for index in range(clients)
            ]
            meter = Meter(process)
            deadline = time.monotonic() + seconds
            runs = (self._run(*entry, deadline, figures) for entry in enumerate(connections))
            await asyncio.gather(*runs)
            figures.control_cpu_seconds, figures.wall_seconds = meter.read()
            figures.machine_load = machine_load()
        return figures

    async def _enter(self, stack: contextlib.AsyncExitStack, number: int) -> ServiceClient:
        client = await stack.enter_async_context(self._client(number))
        await client.offer(self._place.name)
        return client

    @contextlib.asynccontextmanager
    async def _client(self, number: int) -> AsyncIterator[ServiceClient]:
        role = self._place.role(number)
        credentials = Credentials.from_directory(self._place.keys, role)
        state = self._place.folder / "clients" / role
        async with ServiceClient(self._url, credentials, state=state, threads=2) as client:
            yield client

    async def _run(
        self, number: int, connection: ServiceClient | None, deadline: float, figures: Figures
    ) -> None:
        random = np.random.default_rng(number)
        while time.monotonic() < deadline:
            shape = self._place.shape
            sample = random.uniform(-1, 1, shape).astype(np.float32)
            start = time.monotonic()
            try:
                result = await self._infer(number, connection, sample)
            except PrivetError as error:
                figures.faults[f"{type(error).__name__}: {error}"] += 1
                continue
            seconds = time.monotonic() - start
            (right,) = self._plain.run(None, {self._name: sample})
            (output,) = result.outputs.values()
            if float(np.abs(output - right).max()) > TOLERANCE:
                figures.faults["a wrong answer"] += 1
                continue
            figures.seconds.append(seconds)
            offline = 0.0 if result.offline is None else result.offline.seconds
            figures.beyond.append(1000 * (seconds - offline - result.online.seconds))

    async def _infer(self, number: int, connection: ServiceClient | None, sample: Any) -> Result:
        if connection is not None:
            return await connection.infer(self._place.name, [sample], terms=self._terms)
        async with self._client(number) as client:
            return await client.infer(self._place.name, [sample], terms=self._terms)


async def idle(place: Place, address: str, process: int, clients: int) -> dict[str, Any]:
    """What so many clients, each of which waits for job updates, take of the control plane."""
    before = resident_bytes(process)
    opening = asyncio.Semaphore(OPENING)
    arrived = 0

    async def wait(number: int) -> None:
        nonlocal arrived
        credentials = Credentials.from_directory(place.keys, place.role(number))
        calls = Calls(f"https://{address}", credentials)
        try:
            async with opening:
                await calls.reach(wait=POLL_SECONDS)
            arrived += 1
            sequence = 0
            while True:
                reply = await calls.get(
                    "/v2/jobs", hold=POLL_SECONDS, wait=POLL_SECONDS, seen=sequence
                )
                sequence = reply["sequence"]
        finally:
            await calls.close()

    tasks = [asyncio.create_task(wait(number)) for number in range(clients)]
    try:
        while arrived < clients:
            done, _ = await asyncio.wait(tasks, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        meter = Meter(process)
        await asyncio.sleep(min(POLL_SECONDS, clients / 10))
        cpu, wall = meter.read()
        after = resident_bytes(process)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "clients": clients,
        "before_mb": round(before / 2**20, 1),
        "after_mb": round(after / 2**20, 1),
        "kb_each": round((after - before) / 1024 / clients, 1),
        "control_cpu_share": round(cpu / wall, 3),
    }
