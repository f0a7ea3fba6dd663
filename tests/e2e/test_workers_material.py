"""Records of material beside the store of a running executor."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.scene import INPUT, small_model
from tests.e2e.floor import SUITE, Floor, floor

from privet.compile import Compiled
from privet.errors import MaterialError
from privet.serve.executor import Grant, Outcome
from privet.serve.keeper import Keeper
from privet.serve.ledger import Ledger


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return small_model()


class Clock:
    """A clock that tests set."""

    now = 1e9

    def __call__(self) -> float:
        return self.now


Scenario = Callable[[Floor, Keeper, Clock], Awaitable[None]]


@pytest.fixture
def on_floor(tmp_path: Path, key_folder: Path, compiled: Compiled) -> Callable[..., None]:
    """Plays a scenario on a floor with a keeper, whose options may be given."""

    def play(scenario: Scenario, **options: Any) -> None:
        async def run() -> None:
            ledger, clock = Ledger(tmp_path / "ledger.sqlite"), Clock()
            async with floor(tmp_path, key_folder, compiled) as stage:
                keeper = Keeper(ledger, stage.executor, clock=clock, **options)
                await keeper.start()
                await scenario(stage, keeper, clock)
            ledger.close()

        asyncio.run(run())

    return play


async def make(stage: Floor, keeper: Keeper) -> str:
    """A piece that is made and recorded."""
    grant = stage.grant("prepare")
    running = await stage.executor.run(grant)
    (material,) = await stage.ask(running, lambda client: client.prepare())
    keeper.settle(grant, await running.outcome())
    return material


def take(stage: Floor, keeper: Keeper, material: str, **fields: Any) -> Grant:
    """A grant for an inference on a piece that the ledger gave out."""
    grant = stage.grant("infer", material=material, **fields)
    keeper.take(material, grant.client, grant.program, grant.suite)
    return grant


async def use(stage: Floor, keeper: Keeper, grant: Grant) -> Outcome:
    """A granted inference to its end."""
    running = await stage.executor.run(grant)
    await stage.ask(running, lambda client: client.infer([INPUT], material=grant.material))
    outcome = await running.outcome()
    keeper.settle(grant, outcome)
    return outcome


async def stored(stage: Floor) -> set[str]:
    """The pieces in the store."""
    return {it.material for it in await stage.executor.pieces("local")}


def test_material_is_recorded_made_and_used(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor, keeper: Keeper, clock: Clock) -> None:
        material = await make(stage, keeper)
        record = keeper.ledger.find(material)
        (piece,) = await stage.executor.pieces("local")
        assert record is not None
        assert (record.bytes, record.machine, record.suite) == (piece.bytes, "local", SUITE)
        assert (record.client, record.program) == (piece.client, piece.program)
        assert (await use(stage, keeper, take(stage, keeper, material))).failure is None
        with pytest.raises(MaterialError, match="is consumed"):
            take(stage, keeper, material)
        assert keeper.ledger.counts() == {"consumed": 1}

    on_floor(scenario)


def test_a_piece_that_nobody_touched_is_given_back(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor, keeper: Keeper, clock: Clock) -> None:
        material = await make(stage, keeper)
        grant = take(stage, keeper, material, grace=0.2)
        keeper.settle(grant, await (await stage.executor.run(grant)).outcome())
        assert keeper.ledger.counts() == {"ready": 1}
        assert (await use(stage, keeper, take(stage, keeper, material))).failure is None

    on_floor(scenario)


def test_old_pieces_go_and_can_never_be_used(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor, keeper: Keeper, clock: Clock) -> None:
        old = await make(stage, keeper)
        clock.now += 60
        new = await make(stage, keeper)
        clock.now += 45
        removed = await keeper.sweep()
        assert (removed.expired, removed.evicted) == (1, 0)
        assert await stored(stage) == {new}
        assert not list((stage.folder / "server" / "server" / "ready").glob(f"{old}*"))
        assert (stage.folder / "server" / "server" / "spent" / old).exists()
        # Even a grant for it is of no use: the store's tombstone is the authority.
        running = await stage.executor.run(stage.grant("infer", material=old))
        with pytest.raises(MaterialError):
            await stage.ask(running, lambda client: client.infer([INPUT], material=old))
        assert (await running.outcome()).failure == "failed"

    on_floor(scenario, lifetime=100.0)


def test_the_oldest_pieces_make_room(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor, keeper: Keeper, clock: Clock) -> None:
        made = []
        for _ in range(3):
            clock.now += 1
            made.append(await make(stage, keeper))
        held = take(stage, keeper, made[0])
        (size,) = {it.bytes for it in await stage.executor.pieces("local")}
        keeper.most_bytes = size
        removed = await keeper.sweep()
        # The piece that a job was granted stays for it, although it is the oldest.
        assert (removed.evicted, await stored(stage)) == (1, {made[0], made[2]})
        assert (await use(stage, keeper, held)).failure is None

    on_floor(scenario)


def test_records_and_store_are_reconciled_at_start(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor, keeper: Keeper, clock: Clock) -> None:
        taken, deleted, kept = [await make(stage, keeper) for _ in range(3)]
        unrecorded, _ = await stage.prepare()
        take(stage, keeper, taken)
        for path in (stage.folder / "server" / "server" / "ready").glob(f"{deleted}*"):
            path.unlink()
        # A service that starts again after it died between the ledger and the grant.
        await Keeper(keeper.ledger, stage.executor, clock=clock).start()
        assert await stored(stage) == {kept, unrecorded}
        assert keeper.ledger.counts() == {"consumed": 1, "lost": 1, "ready": 2}
        for material in (kept, unrecorded):
            assert (await use(stage, keeper, take(stage, keeper, material))).failure is None

    on_floor(scenario)


def test_what_a_dead_job_left_is_found_by_a_sweep(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor, keeper: Keeper, clock: Clock) -> None:
        piece, _ = await stage.prepare()
        (found,) = await stage.executor.pieces("local")
        clock.now = found.made + 30
        await keeper.sweep()
        assert keeper.ledger.counts() == {}, "its job may still tell of it"
        clock.now = found.made + 61
        await keeper.sweep()
        record = keeper.ledger.find(piece)
        assert record is not None
        assert record.state == "ready"

    on_floor(scenario)
