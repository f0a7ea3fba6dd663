"""A service whose jobs run on a Ray cluster: a node dies, or is taken out, under load."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.caller import ServiceCaller
from tests.e2e.gateways import IMAGES
from tests.e2e.processes import SOON
from tests.e2e.services import Scene, put_digits, serving
from tests.e2e.test_commands import key_folder, privet
from tests.e2e.test_service_client import check, connect
from tests.e2e.test_workers_ray import Nodes, nodes, workers

__all__ = ["key_folder", "nodes"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_node_dies_one_is_taken_out_and_one_joins_under_load(
    nodes: Nodes, key_folder: Path, tmp_path: Path, figures: list[str]
) -> None:
    """Every request that the service accepts meanwhile is answered, and rightly."""
    put_digits(tmp_path / "repository")
    nodes.add("gamma")

    async def crowd(scene: Scene) -> None:
        place = f"localhost:{scene.address.rpartition(':')[2]}"
        stop, count = asyncio.Event(), 0

        def drain() -> dict[str, object]:
            return privet("drain", place, "beta", "--keys", key_folder)

        async with (
            connect(scene, tmp_path / "client") as client,
            ServiceCaller(scene.address, key_folder, tmp_path / "o", "operator") as operator,
        ):

            async def state() -> dict[str, Any]:
                reply: dict[str, Any] = await operator.good("GET", "/v2/state")
                return reply

            async def until_at(*names: str) -> None:
                async with asyncio.timeout(SOON):
                    while {machine["name"] for machine in (await state())["machines"]} != {*names}:
                        await asyncio.sleep(0.1)

            async def until_works(name: str) -> None:
                async with asyncio.timeout(SOON):
                    while name not in {job["machine"] for job in (await state())["running"]}:
                        await asyncio.sleep(0.02)

            async def keep_asking(announces: bool) -> None:
                nonlocal count
                while not stop.is_set():
                    notice = await client.notify("digits") if announces else None
                    check(await client.infer("digits", {"input": IMAGES[:1]}, notice=notice))
                    count += 1

            async def until_answered(extra: int) -> None:
                limit = count + extra
                async with asyncio.timeout(SOON):
                    while count < limit and not any(task.done() for task in clients):
                        await asyncio.sleep(0.05)

            await until_at("alpha", "beta", "gamma")
            clients = [
                asyncio.create_task(keep_asking(announces))
                for announces in (False, False, False, True)
            ]
            await until_answered(8)
            await until_works("alpha")
            nodes.kill("alpha")
            await until_at("beta", "gamma")
            await until_answered(8)
            nodes.add("delta")  # Ray starts nodes in the main thread alone
            await until_at("beta", "gamma", "delta")
            await until_works("delta")
            assert await asyncio.to_thread(drain) == {"machine": "beta", "drained": True}
            await until_at("gamma", "delta")
            await until_answered(8)
            stop.set()
            await asyncio.gather(*clients)
            counts = (await state())["counts"]
            figures.append(f"{count} requests beside a node that died: {counts['jobs']}")
            assert set(counts["ended"]) == {"done"}

    words = ("--executor", "ray", "--address", nodes.address, "--memory", "1GiB", "--grace", 60)
    with serving(tmp_path, key_folder, *words) as scene:
        asyncio.run(crowd(scene))
        assert scene.process.end(signal.SIGTERM) == 0


def test_a_node_is_taken_out_while_the_others_serve(
    nodes: Nodes, key_folder: Path, tmp_path: Path, figures: list[str]
) -> None:
    """One of three nodes is drained by the command: what it had accepted is inferred there, nothing
    fails and nothing runs again, its workers end; stopped and started anew, it serves again, with
    the material that lay there."""
    put_digits(tmp_path / "repository")
    nodes.add("gamma")
    others = {"alpha", "gamma"}

    state = tmp_path / "client"
    store = tmp_path / "state" / "beta" / "server" / "ready"

    async def crowd(scene: Scene) -> None:
        place = f"localhost:{scene.address.rpartition(':')[2]}"

        def drain() -> dict[str, object]:
            return privet("drain", place, "beta", "--keys", key_folder)

        async with (
            connect(scene, state) as client,
            ServiceCaller(scene.address, key_folder, tmp_path / "o", "operator") as operator,
        ):

            async def names() -> set[str]:
                machines = (await operator.good("GET", "/v2/state"))["machines"]
                return {machine["name"] for machine in machines}

            async def runs() -> int:
                timeline = (await operator.good("GET", "/v2/state"))["timeline"]
                return sum(run["machine"] == "beta" for run in timeline)

            async def keep_asking(stop: asyncio.Event) -> int:
                count = 0
                while not stop.is_set():
                    check(await client.infer("digits", {"input": IMAGES[:1]}))
                    count += 1
                return count

            # Notices that nobody will refer to: their material stays where it was made.
            while not (left := set(store.iterdir())):
                notices = [await client.notify("digits") for _ in range(3)]
                await asyncio.gather(*(notice.ready() for notice in notices))
            stop = asyncio.Event()
            clients = [asyncio.create_task(keep_asking(stop)) for _ in range(3)]
            async with asyncio.timeout(60):
                while not await runs():
                    await asyncio.sleep(0.1)
            assert await asyncio.to_thread(drain) == {"machine": "beta", "drained": True}
            assert await names() == others
            assert len(workers(tmp_path)) == 2, "its workers have ended"
            before = await runs()
            await asyncio.sleep(2)
            assert await runs() == before > 0, "nothing starts there any more"
            assert left <= set(store.iterdir()), "unused material is left where it is"
            nodes.kill("beta")
            await asyncio.sleep(2)
            nodes.add("beta")  # Ray starts nodes in the main thread alone
            async with asyncio.timeout(60):
                while await names() != others | {"beta"} or left & set(store.iterdir()):
                    await asyncio.sleep(0.2)
            stop.set()
            count = sum(await asyncio.gather(*clients))
            figures.append(f"a node was taken out and came back beside {count} requests")
            counts = (await operator.good("GET", "/v2/state"))["counts"]
            assert set(counts["ended"]) <= {"done"}
            assert not [name for name in counts["jobs"] if "failed" in name or name == "rerun"]

    words = ("--executor", "ray", "--address", nodes.address, "--memory", "1GiB", "--grace", 60)
    with serving(tmp_path, key_folder, *words) as scene:
        asyncio.run(crowd(scene))
        assert scene.process.end(signal.SIGTERM) == 0
