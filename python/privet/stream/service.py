"""Both sides as commands run them: measured, allocated to servers, and started."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from privet.compiler.compile import Compiled
from privet.errors import Misuse
from privet.runtime.credentials import Credentials
from privet.runtime.hangup import Hangup
from privet.runtime.listening import RenewedTls
from privet.runtime.machine import usable_cores
from privet.runtime.revocation import Revoked
from privet.stream.allocation import (
    Side,
    Stage,
    StageServer,
    allocate,
)
from privet.stream.cipher import Cipher
from privet.stream.preprocessing import PreparingModel, PreprocessingReceiver, Rules
from privet.stream.profile import profile
from privet.stream.provider import ModelProvider
from privet.stream.requester import DataProvider, Preparing
from privet.stream.stages import Stages
from privet.stream.worker_pool import LocalPool, Part, Recipe, connect
from privet.stream.workers import LinearWorker

WORTH_SECONDS = 1e-3
"""What a slice must take to be worth a worker of its own: to call one takes about half of it."""


@dataclass(frozen=True)
class Plan:
    """Where an organisation's workers run: its cluster (None: processes here), servers as
    `NAME:CORES` (none: this machine), and how threads are allocated."""

    cluster: str | None
    words: tuple[str, ...]
    per_core: int
    seconds: float

    def servers(self, side: Side) -> list[StageServer]:
        if self.words and self.cluster is None:
            raise Misuse("servers by name are nodes of a cluster: say which by --cluster")
        if not self.words:
            return [StageServer("", len(usable_cores()), side)]
        return [StageServer(*server_of(word), side) for word in self.words]

    def allocate(self, stages: Sequence[Stage], side: Side) -> tuple[list[Part], tuple[int, ...]]:
        """A place for each worker, and the threads of each stage.

        Stages that are quicker than calls to workers, as BFV's are online, are not cut so far.
        """
        servers = self.servers(side)
        least = -(-len(stages) // max(1, sum(server.cores for server in servers)))
        # Every stage needs a worker, also where there are more of them than threads.
        per_core = max(self.per_core, least)
        allocation = allocate(stages, servers, per_core=per_core)
        threads = tuple(
            min(count, max(1, math.ceil(stage.seconds / WORTH_SECONDS)))
            for stage, count in zip(stages, allocation.threads, strict=True)
        )
        parts = [
            Part(stage, part, servers[allocation.servers[stage]].name or None)
            for stage, count in enumerate(threads)
            for part in range(count)
        ]
        return parts, threads


async def serve(
    compiled: Compiled,
    credentials: Callable[[], Credentials],
    address: tuple[str, int],
    plan: Plan,
    *,
    cipher: Cipher,
    preparing: int,
    window: int,
    rules: Rules,
    listening: Callable[[str, tuple[int, ...]], None],
) -> None:
    """Serves a program's linear stages until cancelled, to data providers that `rules` accept. At
    SIGHUP it shows and trusts what `credentials` gives then.

    `listening` is called with where, and the threads of each stage. Over BFV a preparing worker
    listens at the port `preparing`, on this machine.
    """
    files = credentials().files
    public, private = compiled.program.to_public_bytes(), compiled.weights.to_private_bytes()
    stages = Stages(public, cipher)
    profiles = await asyncio.to_thread(profile, public, cipher, private)
    model_stages = [stage_times.stage for stage_times in profiles if stage_times.side == "model"]
    parts, threads = plan.allocate(model_stages, "model")
    pool = connect(plan.cluster, plan.seconds)
    await pool.start(Recipe(LinearWorker, (public, cipher, private)), parts)
    receiver = None
    if cipher.masked:
        recipe = Recipe(PreparingModel, (public, private, files, plan.seconds, rules))
        receiver = PreprocessingReceiver(LocalPool(plan.seconds), recipe)
    provider = ModelProvider(
        stages,
        pool,
        threads,
        rules.guard(),
        window=window,
        receiver=receiver,
        revoked=rules.revoked(),
    )
    try:
        tls = RenewedTls(lambda: credentials().tls_server())

        async def reload() -> None:
            await asyncio.to_thread(tls.reload)
            await provider.renew()

        with Hangup(reload, "certificates"):
            host, port = await provider.listen(*address, tls, preparing)
            listening(f"{host}:{port}", threads)
            await asyncio.Event().wait()
    finally:
        await provider.close()
        await pool.close()


@asynccontextmanager
async def ask(
    host: str,
    port: int,
    credentials: Callable[[], Credentials],
    plan: Plan,
    *,
    cipher: Cipher,
    ahead: int,
    window: int,
    program_hash: str | None,
    server_name: str | None,
    revoked: Path | None = None,
) -> AsyncIterator[DataProvider]:
    """A data provider in a session, with its stages measured and allocated, and over BFV with
    `ahead` entries in stock. At SIGHUP the session goes on with what `credentials` gives then. It
    ends with a model provider on the list `revoked`."""
    client_credentials, revocation_list = credentials(), Revoked(revoked)

    def allocated(public: bytes) -> list[Part]:
        profiles = profile(public, cipher)
        return plan.allocate([stage_times.stage for stage_times in profiles], "data")[0]

    provider = DataProvider(
        host,
        port,
        client_credentials.tls(revocation_list),
        connect(plan.cluster, plan.seconds),
        allocate=allocated,
        cipher=cipher,
        preparing=Preparing(
            LocalPool(plan.seconds),
            client_credentials.files,
            ahead,
            plan.seconds,
            None if revoked is None else str(revoked.absolute()),
        ),
        window=window,
        program_hash=program_hash,
        server_name=server_name,
        request_seconds=plan.seconds,
        revoked=revocation_list,
    )

    async def reload() -> None:
        await provider.renew(await asyncio.to_thread(credentials))

    with Hangup(reload, "certificates"):
        async with provider:
            yield provider


def server_of(word: str) -> tuple[str, int]:
    """The name and the cores in `NAME:CORES`."""
    name, _, cores = word.rpartition(":")
    if not name or not cores.isdigit() or int(cores) < 1:
        raise Misuse(f"{word!r} is not NAME:CORES, such as alpha:24")
    return name, int(cores)
