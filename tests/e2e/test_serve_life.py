"""The life of a service: drain, second signal, restart, reload, limits, `privet top`."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.e2e.caller import ServiceCaller
from tests.e2e.processes import SOON, listening
from tests.e2e.services import Scene, put_digits, serving
from tests.e2e.test_commands import MODELS, PRIVET, key_folder, privet

__all__ = ["key_folder"]

HELD = np.load(MODELS / "digits-cnn.npz")
SEVEN = HELD["inputs"][HELD["labels"] == 7][:1]


def visit(
    scene: Scene, act: Callable[[ServiceCaller], Awaitable[None]], role: str = "client"
) -> None:
    """Runs a coroutine as a client of the service."""

    async def main() -> None:
        state = scene.folder / role
        async with ServiceCaller(scene.address, scene.keys, state, role) as caller:
            await act(caller)

    asyncio.run(main())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose `repository` has the digits network."""
    put_digits(tmp_path / "repository")
    return tmp_path


def test_a_signal_lets_admitted_jobs_end(folder: Path, key_folder: Path) -> None:
    with serving(folder, key_folder) as scene:

        async def act(caller: ServiceCaller) -> None:
            request = await caller.request("digits")
            scene.process.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(SOON):
                while (await caller.call("GET", "/v2/health/ready"))[0] == 200:
                    await asyncio.sleep(0.01)
            status, answer = await caller.call("POST", "/v2/models/digits/requests", {})
            assert (status, answer["reason"]) == (503, "draining")
            job, results = await caller.follow(request, [SEVEN])
            assert job["outcome"] == "done"
            assert int(np.argmax(results[0].outputs["logits"])) == 7

        visit(scene, act)
        assert scene.process.process.wait(SOON) == 0


def test_a_second_signal_ends_at_once(folder: Path, key_folder: Path) -> None:
    with serving(folder, key_folder, "--grace", 60) as scene:

        async def act(caller: ServiceCaller) -> None:
            await caller.request("digits")
            scene.process.process.send_signal(signal.SIGINT)
            await asyncio.sleep(0.5)
            assert scene.process.process.poll() is None

        visit(scene, act)
        assert scene.process.end(signal.SIGINT) == 1


def test_a_service_whose_workers_do_not_start_is_not_ready(
    folder: Path, key_folder: Path, tmp_path: Path
) -> None:
    """They read their certificate when they start, which may be long after the service did."""
    own_keys = shutil.copytree(key_folder, tmp_path / "own-keys")
    with serving(folder, own_keys, "--workers", 2) as scene:
        pid = scene.process.process.pid
        workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()

        async def act(caller: ServiceCaller) -> None:
            async def readiness(status: int) -> Any:
                async with asyncio.timeout(SOON):
                    while (answer := await caller.call("GET", "/v2/health/ready"))[0] != status:
                        await asyncio.sleep(0.05)
                return answer[1]

            await readiness(200)
            key = (own_keys / "server.key").rename(own_keys / "away.key")
            for worker in workers:
                os.kill(int(worker), signal.SIGKILL)
            assert "no worker starts" in (await readiness(503))["error"]
            key.rename(own_keys / "server.key")
            await readiness(200)
            job, _ = await caller.follow(await caller.request("digits"), [SEVEN])
            assert job["outcome"] == "done"

        visit(scene, act)


def test_material_outlives_a_restart_and_jobs_do_not(folder: Path, key_folder: Path) -> None:
    ids: dict[str, str] = {}

    async def first(caller: ServiceCaller) -> None:
        ids["notice"] = await caller.notify("digits")
        await caller.follow(ids["notice"])
        ids["lost"] = await caller.request("digits", truncation="exact")

    async def second(caller: ServiceCaller) -> None:
        document = await caller.good("GET", f"/v2/jobs/{ids['lost']}")
        assert (document["outcome"], "restarted" in document["reason"]) == ("failed", True)
        stock = (await caller.good("GET", "/v2/models/digits"))["privet"]["stock"]
        assert list(stock.values()) == [1]
        request = await caller.request("digits", notice=ids["notice"])
        job, results = await caller.follow(request, [SEVEN])
        assert job["outcome"] == "done"
        assert int(np.argmax(results[0].outputs["logits"])) == 7
        profiles = (await caller.good("GET", "/v2/models/digits"))["privet"]
        assert profiles["stock"] == {}

    with serving(folder, key_folder) as scene:
        visit(scene, first)
        scene.process.end(signal.SIGKILL)
    with serving(folder, key_folder) as scene:
        visit(scene, second)


def test_a_model_changes_while_it_is_served(folder: Path, key_folder: Path) -> None:
    with serving(folder, key_folder) as scene:
        (row,) = scene.models
        assert (row["version"], row["ready"], row["error"]) == (1, True, None)
        put_digits(scene.repository, version=2, config="input_range = [0, 1]\nbits = 5\n")
        models = scene.process.until(lambda line: line["event"] == "models")["models"]
        assert models[0]["ready"]
        assert "bits is 5" in models[0]["error"]
        put_digits(scene.repository, version=2, config="input_range = [0, 1]\nbits = 40\n")
        event = scene.process.until(lambda line: line["models"][-1]["version"] == 2)
        assert [(row["version"], row["ready"]) for row in event["models"]] == [(2, True)]

        async def act(caller: ServiceCaller) -> None:
            model = await caller.good("GET", "/v2/models/digits")
            assert (model["versions"], model["privet"]["ring_bits"]) == (["2"], 40)
            job, results = await caller.follow(await caller.request("digits"), [SEVEN])
            assert job["outcome"] == "done"
            assert int(np.argmax(results[0].outputs["logits"])) == 7

        visit(scene, act)
        shutil.rmtree(scene.repository / "digits")
        assert scene.process.until(lambda line: not line["models"])


def test_a_batch_and_several_clients_at_once(folder: Path, key_folder: Path) -> None:
    put_digits(folder / "repository", config="input_range = [0, 1]\nbatch = 2\n")
    with serving(folder, key_folder) as scene:

        async def act(caller: ServiceCaller) -> None:
            request = await caller.request("digits", samples=3)
            pair = np.concatenate([SEVEN, SEVEN])
            job, results = await caller.follow(request, [pair], [SEVEN])
            assert (job["outcome"], job["done"], len(results)) == ("done", 3, 2)
            logits = np.concatenate([result.outputs["logits"] for result in results])
            assert np.argmax(logits, axis=1).tolist() == [7, 7, 7]

        async def both() -> None:
            async with asyncio.TaskGroup() as group:
                for role in ("client", "operator"):
                    state = scene.folder / role
                    caller = ServiceCaller(scene.address, scene.keys, state, role)
                    group.create_task(run(caller))

        async def run(caller: ServiceCaller) -> None:
            async with caller:
                await act(caller)

        asyncio.run(both())


def test_a_client_that_does_not_come_frees_its_cores(folder: Path, key_folder: Path) -> None:
    with serving(folder, key_folder, "--grace", 0.5, "--cores", 1) as scene:

        async def act(caller: ServiceCaller) -> None:
            idle = await caller.request("digits")
            sequence, job = 0, {"outcome": None}
            while job["outcome"] is None:
                job = await caller.good("GET", f"/v2/jobs/{idle}?wait=10&seen={sequence}")
                sequence = job["sequence"]
            assert (job["outcome"], "did not come" in job["reason"]) == ("failed", True)
            document, _ = await caller.follow(await caller.request("digits"), [SEVEN])
            assert document["outcome"] == "done"

        visit(scene, act)


def test_the_dealers_suites(folder: Path, key_folder: Path) -> None:
    with listening("dealer", "--keys", key_folder) as (_, dealer):  # noqa: SIM117
        with serving(folder, key_folder, "--dealer", dealer) as scene:
            assert scene.models[0]["suites"] == ["gmw", "fss"]

            async def act(caller: ServiceCaller) -> None:
                for wish in (
                    {"suite": "fss"},
                    {"security": "malicious"},
                    {"correlations": "dealer"},
                ):
                    job, results = await caller.follow(
                        await caller.request("digits", **wish), [SEVEN]
                    )
                    assert job["outcome"] == "done", job
                    assert int(np.argmax(results[0].outputs["logits"])) == 7

            visit(scene, act)


def test_what_operators_see_in_a_terminal(folder: Path, key_folder: Path) -> None:
    with serving(folder, key_folder) as scene:

        async def act(caller: ServiceCaller) -> None:
            await caller.follow(await caller.notify("digits"))

        visit(scene, act)
        address = f"localhost:{scene.address.rpartition(':')[2]}"
        words: list[Any] = ["top", address, "--keys", key_folder]
        state = privet(*words)
        assert state["stock"] == [
            {"model": "digits/1", "suite": "gmw linear exact tables", "entries": 1}
        ]
        command = [*PRIVET, *map(str, words), "--once"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for part in (
            "ready",
            "transit",
            "digits/1",
            "gmw linear exact tables",
            "local   0",
            "T_pre",
        ):
            assert part in text
        reply = privet(*words, "--role", "client", code=2)
        assert "operators" in reply["error"]["message"]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--policy", "luck"), "luck"),
        (("--executor", "moon"), "moon"),
        (("--cores", "100000"), "cores"),
        (("--memory", "much"), "much"),
        (("--tokens", "/nowhere"), "tokens"),
    ],
)
def test_wrong_options_are_named(
    folder: Path, key_folder: Path, options: tuple[str, str], part: str
) -> None:
    words: list[Any] = ["serve", folder / "repository", "--keys", key_folder]
    reply = privet(*words, "--state", folder / "state", *options, code=2)
    assert reply["error"]["type"] == "Misuse"
    assert part in reply["error"]["message"]
