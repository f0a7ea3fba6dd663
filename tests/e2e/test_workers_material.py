"""Records of material beside the store of a running executor."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.scene import INPUT, small_model
from tests.e2e.floor import SUITE, Floor, floor

from privet.compiler.compile import Compiled
from privet.errors import MaterialError
from privet.service.executor import Grant, Outcome
from privet.service.garbage_collector import GarbageCollector
from privet.service.ledger import Ledger


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return small_model()


class Clock:
    """A clock that tests set."""

    now = 1e9

    def __call__(self) -> float:
        return self.now


Scenario = Callable[[Floor, GarbageCollector, Clock], Awaitable[None]]


@pytest.fixture
def on_floor(tmp_path: Path, key_folder: Path, compiled: Compiled) -> Callable[..., None]:
    """Plays a scenario on a floor with a keeper, whose options may be given."""

    def play(scenario: Scenario, **options: Any) -> None:
        async def run() -> None:
            ledger, clock = Ledger(tmp_path / "ledger.sqlite"), Clock()
            async with floor(tmp_path, key_folder, compiled) as stage:
                collector = GarbageCollector(ledger, stage.executor, clock=clock, **options)
                await collector.start()
                await scenario(stage, collector, clock)
            ledger.close()

        asyncio.run(run())

    return play


async def make(stage: Floor, collector: GarbageCollector) -> str:
    """A piece that is made and recorded."""
    grant = stage.grant("prepare")
    running = await stage.executor.run(grant)
    (material,) = await stage.ask(running, lambda client: client.prepare())
    collector.settle(grant, await running.outcome())
    return material


def take(stage: Floor, collector: GarbageCollector, material: str, **fields: Any) -> Grant:
    """A grant for an inference on a piece that the ledger gave out."""
    grant = stage.grant("infer", material=material, **fields)
    collector.take(material, grant.client, grant.program, grant.suite)
    return grant


async def use(stage: Floor, collector: GarbageCollector, grant: Grant) -> Outcome:
    """A granted inference to its end."""
    running = await stage.executor.run(grant)
    await stage.ask(running, lambda client: client.infer([INPUT], material=grant.material))
    outcome = await running.outcome()
    collector.settle(grant, outcome)
    return outcome


async def stored(stage: Floor) -> set[str]:
    """The pieces in the store."""
    return {it.material for it in await stage.executor.pieces("local")}


def test_material_is_recorded_made_and_used(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor, collector: GarbageCollector, clock: Clock) -> None:
        material = await make(stage, collector)
        record = collector.ledger.find(material)
        (piece,) = await stage.executor.pieces("local")
        assert record is not None
        assert (record.bytes, record.machine, record.suite) == (piece.bytes, "local", SUITE)
        assert (record.client, record.program) == (piece.client, piece.program)
        assert (await use(stage, collector, take(stage, collector, material))).failure is None
        with pytest.raises(MaterialError, match="is consumed"):
            take(stage, collector, material)
        assert collector.ledger.counts() == {"consumed": 1}

    on_floor(scenario)


def test_a_piece_that_nobody_touched_is_given_back(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor, collector: GarbageCollector, clock: Clock) -> None:
        material = await make(stage, collector)
        grant = take(stage, collector, material, grace=0.2)
        collector.settle(grant, await (await stage.executor.run(grant)).outcome())
        assert collector.ledger.counts() == {"ready": 1}
        assert (await use(stage, collector, take(stage, collector, material))).failure is None

    on_floor(scenario)


def test_old_pieces_go_and_can_never_be_used(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor, collector: GarbageCollector, clock: Clock) -> None:
        old = await make(stage, collector)
        clock.now += 60
        new = await make(stage, collector)
        clock.now += 45
        removed = await collector.sweep()
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
    async def scenario(stage: Floor, collector: GarbageCollector, clock: Clock) -> None:
        made = []
        for _ in range(3):
            clock.now += 1
            made.append(await make(stage, collector))
        held = take(stage, collector, made[0])
        (size,) = {it.bytes for it in await stage.executor.pieces("local")}
        collector.most_bytes = size
        removed = await collector.sweep()
        # The piece that a job was granted stays for it, although it is the oldest.
        assert (removed.evicted, await stored(stage)) == (1, {made[0], made[2]})
        assert (await use(stage, collector, held)).failure is None

    on_floor(scenario)


def test_records_and_store_are_reconciled_at_start(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor, collector: GarbageCollector, clock: Clock) -> None:
        taken, deleted, kept = [await make(stage, collector) for _ in range(3)]
        unrecorded, _ = await stage.prepare()
        take(stage, collector, taken)
        for path in (stage.folder / "server" / "server" / "ready").glob(f"{deleted}*"):
            path.unlink()
        # A service that starts again after it died between the ledger and the grant.
        await GarbageCollector(collector.ledger, stage.executor, clock=clock).start()
        assert await stored(stage) == {kept, unrecorded}
        assert collector.ledger.counts() == {"consumed": 1, "lost": 1, "ready": 2}
        for material in (kept, unrecorded):
            assert (await use(stage, collector, take(stage, collector, material))).failure is None

    on_floor(scenario)


def test_what_a_dead_job_left_is_found_by_a_sweep(on_floor: Callable[..., None]) -> None:
    async def scenario(stage: Floor, collector: GarbageCollector, clock: Clock) -> None:
        piece, _ = await stage.prepare()
        (found,) = await stage.executor.pieces("local")
        clock.now = found.made + 30
        await collector.sweep()
        assert collector.ledger.counts() == {}, "its job may still tell of it"
        clock.now = found.made + 61
        await collector.sweep()
        record = collector.ledger.find(piece)
        assert record is not None
        assert record.state == "ready"

    on_floor(scenario)
