"""Both organisations on this machine, over real sockets: for tests, benchmarks and a first try."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from privet.compiler.compile import PRIVATE_FILE, PUBLIC_FILE
from privet.runtime.credentials import Credentials
from privet.runtime.listening import RenewedTls
from privet.runtime.revocation import Revoked
from privet.stream.cipher import PAILLIER, Cipher
from privet.stream.link import Patience
from privet.stream.preprocessing import PreparingModel, PreprocessingReceiver, Rules
from privet.stream.provider import ModelProvider
from privet.stream.requester import DataProvider, Preparing, places
from privet.stream.stages import Stages
from privet.stream.worker_pool import LocalPool, Recipe, WorkerPool
from privet.stream.workers import LinearWorker
from privet.suites import Policy, make_policy

CALL_SECONDS = 300.0
"""Deadline of a worker's call."""


@dataclass
class StreamPair:
    """Two sides that are connected, their pools, and what the model provider shows and trusts."""

    model: ModelProvider
    data: DataProvider
    model_workers: WorkerPool
    data_workers: WorkerPool
    preparing: WorkerPool
    tls: RenewedTls


@asynccontextmanager
async def pair(
    folder: Path,
    keys: Path,
    *,
    data_keys: Path | None = None,
    model_parts: Sequence[int] | None = None,
    cipher: Cipher = PAILLIER,
    ahead: int = 4,
    window: int = 8,
    patience: Patience | None = None,
    pools: tuple[WorkerPool, WorkerPool] | None = None,
    revoked: Path | None = None,
    data_revoked: Path | None = None,
    through: Callable[[int], Awaitable[int]] | None = None,
    policy: Policy | None = None,
) -> AsyncIterator[StreamPair]:
    """Starts both sides for the compiled program in `folder` with certificates from `keys`, the
    data provider with those in `data_keys` if they are elsewhere; over BFV with `ahead` entries in
    stock. The model provider refuses whom `revoked` lists, the data provider whom `data_revoked`.

    `through` gets the model provider's port and gives the one that the data provider connects to,
    for whoever stands between the two. The `policy` by default accepts this suite and counts
    nothing.
    """
    public, private = ((folder / name).read_bytes() for name in (PUBLIC_FILE, PRIVATE_FILE))
    stages = Stages(public, cipher)
    host = Credentials.from_directory(keys, "server")
    tls = RenewedTls(lambda: Credentials.from_directory(keys, "server").tls_server())
    client = Credentials.from_directory(data_keys or keys, "client")
    effective_policy = policy or make_policy(revealed_values=True)
    revocations = None if revoked is None else str(revoked)
    rules = Rules(effective_policy.text(), str(folder / "answers"), revocations)
    receiver = None
    if cipher.masked:
        recipe = Recipe(PreparingModel, (public, private, host.files, CALL_SECONDS, rules))
        receiver = PreprocessingReceiver(LocalPool(CALL_SECONDS), recipe)
    data_revocations = None if data_revoked is None else str(data_revoked)
    preparing = Preparing(
        LocalPool(CALL_SECONDS), client.files, ahead, CALL_SECONDS, data_revocations
    )
    model_workers, data_workers = pools or (LocalPool(CALL_SECONDS), LocalPool(CALL_SECONDS))
    counts = tuple(model_parts or [1] * len(stages.rounds))
    await model_workers.start(Recipe(LinearWorker, (public, cipher, private)), places(counts))
    model = ModelProvider(
        stages,
        model_workers,
        counts,
        rules.guard(),
        window=window,
        patience=patience,
        receiver=receiver,
        revoked=rules.revoked(),
    )
    try:
        _, port = await model.listen("127.0.0.1", 0, tls)
        revocation_list = Revoked(data_revoked)
        data = DataProvider(
            "127.0.0.1",
            await through(port) if through else port,
            client.tls(revocation_list),
            data_workers,
            cipher=cipher,
            preparing=preparing,
            window=window,
            patience=patience,
            revoked=revocation_list,
        )
        async with data:
            yield StreamPair(model, data, model_workers, data_workers, preparing.pool, tls)
    finally:
        await model.close()
        await model_workers.close()
