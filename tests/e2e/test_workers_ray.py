"""Jobs on the nodes of a Ray cluster on this machine, one of which is killed under load."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.scene import INPUT, SOON, small_model
from tests.e2e.floor import Floor

from privet.compiler.compile import Compiled
from privet.errors import Misuse, PeerError
from privet.runtime import Client
from privet.service.executor import JobOutcome, MachineEvent
from privet.service.executor.ray import RayExecutor

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return small_model()


class Nodes:
    """A cluster whose head serves nothing, and nodes by name with one CPU each."""

    def __init__(self) -> None:
        # Only here: it takes a second, also where this test is left out.
        from ray.cluster_utils import Cluster

        self._cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        self._nodes: dict[str, Any] = {}

    @property
    def address(self) -> str:
        """Where the cluster is."""
        return str(self._cluster.address)

    def add(self, name: str) -> None:
        """Starts a node."""
        self._nodes[name] = self._cluster.add_node(num_cpus=1, resources={f"privet:{name}": 1})

    def kill(self, name: str) -> None:
        """Kills a node."""
        self._cluster.remove_node(self._nodes.pop(name), False)

    def end(self) -> None:
        """Ends the cluster."""
        self._cluster.shutdown()


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Nodes]:
    """The nodes `alpha` and `beta`."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(os.path.abspath, filter(None, sys.path))))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # Workers inherit it through Ray: so this test's workers are told from others.
    monkeypatch.setenv("PRIVET_TEST", str(tmp_path))
    nodes = Nodes()
    try:
        nodes.add("alpha")
        nodes.add("beta")
        yield nodes
    finally:
        nodes.end()


@asynccontextmanager
async def floor(nodes: Nodes, folder: Path, keys: Path, compiled: Compiled) -> AsyncIterator[Floor]:
    """A floor on the cluster."""
    compiled.save(folder / "program")
    executor = RayExecutor(
        keys=keys,
        state=folder / "server",
        address=nodes.address,
        memory=1 << 30,
        workers=2,
        timeout=SOON,
    )
    await executor.start()
    try:
        assert await executor.offer(folder / "program") == compiled.program.program_hash
        yield Floor(executor, folder, keys, compiled)
    finally:
        await executor.close()


async def works(stage: Floor, machine: str) -> str:
    """An entry made and one used on a machine; another one that stays there."""
    cores = next(node.cores for node in stage.executor.machines() if node.name == machine)
    place = {"machine": machine, "cores": cores}
    material, _ = await stage.prepare(**place)
    outcome = await stage.infer(material, **place)
    assert outcome.failure is None
    assert outcome.peak_rss > outcome.base_rss > 0
    return (await stage.prepare(**place))[0]


def workers(folder: Path) -> set[int]:
    """Ids of the worker processes of the test in `folder`."""
    pids = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            in_folder = os.fsencode(folder) in (path / "environ").read_bytes()
        except OSError:
            continue
        if b"privet.service.worker" in words and in_folder:
            pids.add(int(path.name))
    return pids


def test_a_node_is_killed_under_load(
    nodes: Nodes, tmp_path: Path, key_folder: Path, compiled: Compiled, figures: list[str]
) -> None:
    async def run() -> None:
        async with floor(nodes, tmp_path, key_folder, compiled) as stage:
            executor = stage.executor
            assert {node.name for node in executor.machines()} == {"alpha", "beta"}
            events: asyncio.Queue[MachineEvent] = asyncio.Queue()
            listening = asyncio.create_task(pass_on(stage, events))
            entries = {machine: await works(stage, machine) for machine in ("alpha", "beta")}
            for machine, material in entries.items():
                assert [entry.id for entry in await executor.material(machine)] == [material]
            with pytest.raises(Misuse, match="another job has its cores"):
                await refused(stage)
            unheard = await executor.run(stage.grant("prepare"))
            await executor.take_back(unheard.job)
            assert (await unheard.outcome()).failure == "absent"

            # Jobs go on on alpha while beta is killed in the middle of one.
            stop = asyncio.Event()
            load = asyncio.create_task(keep_busy(stage, "alpha", stop))
            outcome, seconds = await die_with(nodes, stage, entries["beta"])
            assert (outcome.failure, outcome.keeps_material) == ("machine lost", False)
            figures.append(f"the loss of a Ray node was told after {seconds:.1f} s")
            event = await asyncio.wait_for(events.get(), SOON)
            assert (event.kind, event.node.name) == ("lost", "beta")
            assert [node.name for node in executor.machines()] == ["alpha"]
            with pytest.raises(Misuse, match="no machine 'beta'"):
                await executor.run(stage.grant("prepare", machine="beta"))
            stop.set()
            assert await load >= 1
            # The job runs again, on fresh material, where there still is a machine.
            await works(stage, "alpha")
            assert len(workers(tmp_path)) == 2, "workers outlive their node"

            # The node comes back with its disk, where what a job had begun with is spent.
            nodes.add("beta")
            event = await asyncio.wait_for(events.get(), 60)
            assert (event.kind, event.node.name) == ("joined", "beta")
            assert await executor.material("beta") == []
            await works(stage, "beta")
            listening.cancel()
        deadline = time.monotonic() + SOON
        while workers(tmp_path):
            assert time.monotonic() < deadline, "a worker outlives the executor"
            await asyncio.sleep(0.1)

    asyncio.run(run())


async def pass_on(stage: Floor, events: asyncio.Queue[MachineEvent]) -> None:
    """Collects what the executor tells of machines."""
    async for event in stage.executor.events():
        events.put_nowait(event)


async def refused(stage: Floor) -> None:
    """Two jobs on the same core of a node."""
    first = await stage.executor.run(stage.grant("prepare"))
    try:
        await stage.executor.run(stage.grant("prepare"))
    finally:
        await stage.executor.stop(first.job)
        assert (await first.outcome()).failure == "stopped"


async def keep_busy(stage: Floor, machine: str, stop: asyncio.Event) -> int:
    """Runs jobs on a machine until told to stop; how many pairs there were."""
    count = 0
    while not stop.is_set():
        material, _ = await stage.prepare(machine=machine)
        assert (await stage.infer(material, machine=machine)).failure is None
        count += 1
    return count


async def die_with(nodes: Nodes, stage: Floor, material: str) -> tuple[JobOutcome, float]:
    """Kills beta in the middle of an inference; its outcome, and how long it took to be told."""
    cores = next(node.cores for node in stage.executor.machines() if node.name == "beta")
    job = await stage.executor.run(
        stage.grant("infer", material=material, machine="beta", cores=cores)
    )
    begun, dead = threading.Event(), threading.Event()

    def infer(client: Client) -> object:
        def hold(*_step: object) -> None:
            begun.set()
            dead.wait(SOON)

        return client.infer([INPUT], material=material, progress=hold)

    client = asyncio.create_task(stage.ask(job, infer))
    assert await asyncio.to_thread(begun.wait, SOON)
    start = time.monotonic()
    await asyncio.to_thread(nodes.kill, "beta")
    outcome = await asyncio.wait_for(job.outcome(), SOON)
    seconds = time.monotonic() - start
    dead.set()
    with pytest.raises(PeerError):
        await client
    return outcome, seconds
