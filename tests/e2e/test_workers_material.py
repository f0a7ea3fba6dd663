"""The scheduler's view of material beside the stores of a running executor."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.attacks.scene import INPUT, small_model
from tests.e2e.floor import SUITE, Floor, floor
from tests.python.service_control.actors import eventually

from privet import keys
from privet.compiler.compile import Compiled
from privet.errors import MaterialError
from privet.scheduler import Limits, MaterialEntry, Policy, Profiles, Scheduler
from privet.service.driver import ClientEndpoint, Driver
from privet.service.estimates import Estimates
from privet.service.material import SETTLING_SECONDS, Reconciliation
from privet.service.metrics import Metrics


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return small_model()


class View:
    """A driver over the executor of a floor, which serves its program alone."""

    def __init__(self, stage: Floor, limits: Limits) -> None:
        profiles = Profiles()
        self.driver = Driver(
            Scheduler([], profiles, Policy(), limits),
            stage.executor,
            Estimates(profiles),
            ClientEndpoint("localhost", 5.0, None),
            find=lambda start: None,
            changed=lambda job, quietly=False: None,
            joined=lambda node, entries: self.reconciliation.take_in(node.name, entries),
        )
        model: Any = SimpleNamespace(key="small/1", program=SimpleNamespace(batch=1))
        self.reconciliation = Reconciliation(
            stage.executor,
            self.driver,
            lambda program: model if program == stage.program else None,
            Metrics(lambda: self.driver.scheduler.snapshot(self.driver.clock())),
        )

    def unused(self) -> dict[str, MaterialEntry]:
        """What the scheduler would offer."""
        return {entry.material: entry for entry in self.driver.scheduler.material.unused()}


@asynccontextmanager
async def view(stage: Floor, **limits: Any) -> AsyncIterator[View]:
    """A service that starts anew over the stores there are."""
    stage_view = View(stage, Limits(**limits))
    await stage_view.driver.join(stage.executor.machines()[0])
    task = asyncio.create_task(stage_view.driver.run())
    try:
        yield stage_view
    finally:
        await stage_view.driver.close()
        await task


Scenario = Callable[[Floor], Awaitable[None]]


@pytest.fixture
def on_floor(tmp_path: Path, key_folder: Path, compiled: Compiled) -> Callable[[Scenario], None]:
    """Plays a scenario on a floor."""

    def play(scenario: Scenario) -> None:
        async def run() -> None:
            async with floor(tmp_path, key_folder, compiled) as stage:
                await scenario(stage)

        asyncio.run(run())

    return play


async def stored(stage: Floor) -> set[str]:
    """What the store would hand out."""
    return {entry.id for entry in await stage.executor.material("local")}


def ready(stage: Floor, material: str) -> list[Path]:
    """The files of material that was not used."""
    return list((stage.folder / "server" / "server" / "ready").glob(f"{material}*"))


def age(stage: Floor, material: str, seconds: float) -> None:
    """Makes material look as if it had been made that long ago."""
    for path in ready(stage, material):
        os.utime(path, (time.time() - seconds,) * 2)


def test_a_service_that_starts_again_finds_what_was_not_used(
    on_floor: Callable[[Scenario], None],
) -> None:
    async def scenario(stage: Floor) -> None:
        used, untouched = [(await stage.prepare())[0] for _ in range(2)]
        await stage.infer(used)
        # Its client does not come, so nobody touches it, whatever the service knew by then.
        grant = stage.grant("infer", material=untouched, grace=0.2)
        assert (await (await stage.executor.run(grant)).outcome()).keeps_material
        async with view(stage) as service:
            (reservation,) = service.unused().values()
            client = keys.fingerprint(stage.keys / "client.pem")
            assert reservation.material == untouched
            assert (reservation.stream.client, reservation.stream.suite) == (client, SUITE)
            (entry,) = await stage.executor.material("local")
            assert (reservation.machine, reservation.bytes) == ("local", entry.bytes)
        await stage.infer(untouched)
        async with view(stage) as service:
            assert service.unused() == {}

    on_floor(scenario)


def test_old_material_goes_and_can_never_be_used(on_floor: Callable[[Scenario], None]) -> None:
    async def scenario(stage: Floor) -> None:
        old, new = [(await stage.prepare())[0] for _ in range(2)]
        age(stage, old, 200.0)
        async with view(stage, material_seconds=100.0) as service:
            await eventually(lambda: not ready(stage, old))
            assert set(service.unused()) == await stored(stage) == {new}
        assert (stage.folder / "server" / "server" / "spent" / old).exists()
        # Even a grant for it is of no use: the store's spent marker decides.
        job = await stage.executor.run(stage.grant("infer", material=old))
        with pytest.raises(MaterialError):
            await stage.ask(job, lambda client: client.infer([INPUT], material=old))
        assert (await job.outcome()).failure == "failed"

    on_floor(scenario)


def test_a_sweep_finds_what_no_job_told_of(on_floor: Callable[[Scenario], None]) -> None:
    async def scenario(stage: Floor) -> None:
        kept, deleted = [(await stage.prepare())[0] for _ in range(2)]
        async with view(stage) as service:
            left, _ = await stage.prepare()
            for path in ready(stage, deleted):
                path.unlink()
            await service.reconciliation.sweep()
            assert set(service.unused()) == {kept}, "its job may still tell of what is new"
            age(stage, left, SETTLING_SECONDS + 1)
            await service.reconciliation.sweep()
            assert set(service.unused()) == {kept, left}
            await service.reconciliation.sweep()
            assert set(service.unused()) == {kept, left}
        for material in (kept, left):
            await stage.infer(material)

    on_floor(scenario)


def test_material_of_no_model_is_deleted(on_floor: Callable[[Scenario], None]) -> None:
    async def scenario(stage: Floor) -> None:
        material, _ = await stage.prepare()
        stage_view = View(stage, Limits())
        stage_view.reconciliation._version = lambda program: None
        await stage_view.driver.join(stage.executor.machines()[0])
        await eventually(lambda: not ready(stage, material))
        assert stage_view.unused() == {}

    on_floor(scenario)
