"""The asynchronous client against `privet serve`: announcing, asking, ending, and what fails."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.e2e.gateways import IMAGES, assert_right, expected
from tests.e2e.processes import listening
from tests.e2e.services import DIGITS_CONFIG, Scene, put_digits, serving
from tests.e2e.test_commands import key_folder, privet

from privet import keys
from privet.errors import (
    InputError,
    JobFailed,
    LinkError,
    MaterialError,
    Misuse,
    PeerError,
    PeerMisbehaved,
)
from privet.gateway import ServiceClient, Terms
from privet.gateway.updates import AT_WORK_SECONDS
from privet.runtime import Credentials, MaterialStore, Result
from privet.suites import Fss, Gmw

__all__ = ["key_folder"]

SEVEN = IMAGES[:1]

Talk = Callable[[ServiceClient], Awaitable[None]]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, key_folder: Path) -> Iterator[Scene]:
    """A service of the digits network, for one sample and for two at once."""
    folder = tmp_path_factory.mktemp("service")
    put_digits(folder / "repository")
    put_digits(folder / "repository", config=DIGITS_CONFIG + "batch = 2\n", name="pairs")
    with serving(folder, key_folder, "--requests-per-minute", 100_000, "--grace", 3) as scene:
        yield scene


@pytest.fixture(scope="module")
def state(service: Scene) -> Path:
    """Where this certificate's material is."""
    return service.folder / "client"


def connect(scene: Scene, state: Path, **options: Any) -> ServiceClient:
    """A client of the service."""
    credentials = Credentials.from_directory(options.pop("keys", scene.keys), "client")
    url = f"https://{options.pop('address', scene.address)}"
    return ServiceClient(url, credentials, state=state, **{"patience": 5.0, **options})


@pytest.fixture
def talk(service: Scene, state: Path) -> Callable[..., None]:
    """Has a client say something."""

    def say(action: Talk, **options: Any) -> None:
        async def run() -> None:
            async with connect(service, state, **options) as client:
                async with asyncio.timeout(60):
                    await action(client)

        asyncio.run(run())

    return say


def check(result: Result, images: Any = SEVEN) -> None:
    assert_right(result.outputs["logits"], images)


def test_models_and_their_metadata(talk: Callable[..., None], service: Scene) -> None:
    async def ask(client: ServiceClient) -> None:
        assert await client.ready()
        assert sorted(await client.models()) == ["digits", "pairs"]
        model = await client.model("pairs")
        assert (model.version, model.versions, model.batch) == (1, (1,), 2)
        assert [tensor.shape for tensor in model.inputs] == [(2, 1, 8, 8)]
        assert [(suite.suite, suite.security, suite.trust) for suite in model.suites] == [
            ("gmw", "semi-honest", None)
        ]
        offer = await client.offer("pairs", 1)
        assert offer.program.program_hash == model.program

    talk(ask)


def test_a_request_alone_and_one_after_its_notice(talk: Callable[..., None], state: Path) -> None:
    async def ask(client: ServiceClient) -> None:
        alone = await client.infer("digits", {"input": SEVEN})
        check(alone)
        assert alone.offline is not None
        # The depth is the one that suits the round trip that was measured.
        assert isinstance(alone.config, Gmw)
        assert (replace(alone.config, rounds="auto"), alone.trust) == (Gmw(), None)
        notice = await client.notify("digits")
        await notice.ready()
        (entry,) = MaterialStore(state).entries()
        result = await client.infer("digits", [SEVEN], notice=notice)
        check(result)
        assert result.material == entry.id != alone.material
        assert result.offline is not None
        with pytest.raises(MaterialError, match="used"):
            await client.infer("digits", [SEVEN], notice=notice)

    talk(ask)


def test_jobs_begin_with_what_the_last_left_in_place_of_base_ots(
    service: Scene, tmp_path: Path
) -> None:
    async def ask() -> None:
        async with connect(service, tmp_path) as client, asyncio.timeout(60):
            results = [await client.infer("digits", {"input": SEVEN}) for _ in range(3)]
        first, *others = [result.offline for result in results]
        assert first is not None
        for other in others:
            assert other is not None
            assert other.bytes_client < first.bytes_client - 7000
            assert other.rounds == first.rounds - 1
        assert len(list(tmp_path.glob("*/base/*"))) == 1

    asyncio.run(ask())


def test_a_notice_serves_while_it_is_still_prepared(talk: Callable[..., None]) -> None:
    async def ask(client: ServiceClient) -> None:
        notice = await client.notify("digits")
        check(await client.infer("digits", [SEVEN], notice=notice))
        while {job["id"]: job for job in await _jobs(client)}[notice.id]["state"] != "ended":
            await asyncio.sleep(0.05)

    talk(ask)


def test_nothing_is_followed_that_is_over(talk: Callable[..., None]) -> None:
    async def ask(client: ServiceClient) -> None:
        notices = [await client.notify("digits") for _ in range(4)]
        inferring = (client.infer("digits", [SEVEN], notice=notice) for notice in notices)
        await asyncio.gather(*inferring, client.infer("digits", [SEVEN]))
        assert not client._notices
        while client._updates._jobs:
            await asyncio.sleep(0.05)

    talk(ask)


def test_more_samples_than_a_batch(talk: Callable[..., None]) -> None:
    async def ask(client: ServiceClient) -> None:
        for model in ("digits", "pairs"):
            result = await client.infer(model, [IMAGES[:5]])
            check(result, IMAGES[:5])
            entries = result.material.split(",")
            assert (result.samples, len(set(entries))) == (5, 5 if model == "digits" else 3)
            assert result.online.bytes_client > 0

    talk(ask)


def test_fifty_requests_at_once(talk: Callable[..., None]) -> None:
    async def ask(client: ServiceClient) -> None:
        images = IMAGES[:50]
        calls = (client.infer("digits", [image[None]]) for image in images)
        results = await asyncio.gather(*calls)
        logits = np.concatenate([result.outputs["logits"] for result in results])
        np.testing.assert_allclose(logits, expected(images), rtol=0, atol=0.1)
        assert len({result.material for result in results}) == 50

    talk(ask)


def test_inputs_that_do_not_fit_cost_nothing(talk: Callable[..., None]) -> None:
    async def ask(client: ServiceClient) -> None:
        before = await _jobs(client)
        for wrong in ([SEVEN[0]], [SEVEN * 1e6], {"x": SEVEN}, [SEVEN, SEVEN]):
            with pytest.raises(InputError):
                await client.infer("digits", wrong)
        assert await _jobs(client) == before

    talk(ask)


def test_what_the_service_does_not_offer(talk: Callable[..., None]) -> None:
    async def ask(client: ServiceClient) -> None:
        with pytest.raises(Misuse, match="no model nothing"):
            await client.infer("nothing", [SEVEN])
        with pytest.raises(Misuse, match="not offered in fss"):
            await client.infer("digits", [SEVEN], terms=Terms(Fss()))
        with pytest.raises(PeerMisbehaved, match="ask the service's operator"):
            await client.notify("digits", terms=Terms(program_hash="0" * 64))
        with pytest.raises(MaterialError, match=r"no such notice|there is no notice"):
            await client.infer("digits", [SEVEN], notice="0" * 16)

    with pytest.raises(Misuse, match=r"no such notice|there is no notice"):
        talk(ask)


def test_a_timeout_ends_a_request(talk: Callable[..., None]) -> None:
    async def ask(client: ServiceClient) -> None:
        with pytest.raises(JobFailed) as excinfo:
            await client.infer("digits", [IMAGES[:50]], timeout=0.5)
        assert excinfo.value.outcome == "timed out"

    talk(ask)


def test_a_task_that_is_cancelled_ends_its_request(talk: Callable[..., None]) -> None:
    """As cancelled, or as failed if a worker tells of the lost link before the client withdraws."""

    async def ask(client: ServiceClient) -> None:
        task = asyncio.create_task(client.infer("digits", [IMAGES[:50]]))
        while not (jobs := [job for job in await _jobs(client) if job["state"] == "inferring"]):
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while [job for job in await _jobs(client) if job["outcome"] is None]:
            await asyncio.sleep(0.05)
        (outcome,) = {job["outcome"] for job in await _jobs(client) if job["id"] == jobs[0]["id"]}
        assert outcome in ("cancelled", "failed")
        check(await client.infer("digits", [SEVEN]))

    talk(ask)


def test_a_task_that_is_cancelled_before_its_request_is_answered_ends_it(
    talk: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(client: ServiceClient) -> None:
        post, old_ids = client._calls.post, {job["id"] for job in await _jobs(client)}

        async def held(*arguments: Any) -> Any:
            await post(*arguments)
            await asyncio.sleep(60)

        monkeypatch.setattr(client._calls, "post", held)
        task = asyncio.create_task(client.infer("digits", [SEVEN]))
        while not (jobs := [entry for entry in await _jobs(client) if entry["id"] not in old_ids]):
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (id,) = {entry["id"] for entry in jobs}
        while (job := {entry["id"]: entry for entry in await _jobs(client)}[id])["outcome"] is None:
            await asyncio.sleep(0.05)
        assert job["outcome"] == "cancelled"

    talk(ask)


def test_a_request_whose_material_is_ready_takes_one_call(
    talk: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(client: ServiceClient) -> None:
        notices = [await client.notify("digits") for _ in range(5)]
        for notice in notices:
            await notice.ready()
        once, calls = client._calls._once, []

        async def counted(method: str, *arguments: Any) -> Any:
            calls.append(method)
            return await once(method, *arguments)

        monkeypatch.setattr(client._calls, "_once", counted)
        start = time.monotonic()
        for notice in notices:
            check(await client.infer("digits", [SEVEN], notice=notice))
        assert calls.count("POST") == len(notices)
        # Once in a while it is looked what became of jobs.
        assert len(calls) <= len(notices) + 1 + (time.monotonic() - start) / AT_WORK_SECONDS

    talk(ask)


def test_a_notice_can_be_withdrawn(talk: Callable[..., None]) -> None:
    async def ask(client: ServiceClient) -> None:
        notice = await client.notify("digits", samples=20)
        await client.cancel(notice)
        row = {job["id"]: job for job in await _jobs(client)}[notice.id]
        assert (row["state"], row["outcome"]) == ("ended", "cancelled")

    talk(ask)


def test_closing_withdraws_what_is_not_ready(service: Scene, state: Path) -> None:
    async def run() -> None:
        async with connect(service, state) as client:
            notice = await client.notify("digits", samples=50)
        async with connect(service, state) as client:
            row = {job["id"]: job for job in await _jobs(client)}[notice.id]
            assert row["outcome"] == "cancelled"

    asyncio.run(run())


def test_a_client_that_lost_its_material_gets_fresh_one(service: Scene, state: Path) -> None:
    async def run() -> None:
        async with connect(service, state) as client:
            notices = [await client.notify("digits") for _ in range(3)]
            for notice in notices:
                await notice.ready()
        shutil.rmtree(state)
        async with connect(service, state) as client:
            with pytest.raises(MaterialError, match="there is no material"):
                await client.infer("digits", [SEVEN], notice=notices[0].id)
            check(await client.infer("digits", [SEVEN]))
            for notice in notices[1:]:
                with pytest.raises(MaterialError):
                    await client.infer("digits", [SEVEN], notice=notice.id)
            check(await client.infer("digits", [SEVEN]))

    asyncio.run(run())


def test_a_worker_that_dies_is_replaced(service: Scene, talk: Callable[..., None]) -> None:
    async def ask(client: ServiceClient) -> None:
        task = asyncio.create_task(client.infer("digits", [IMAGES[:30]]))
        while not [job for job in await _jobs(client) if job["state"] == "inferring"]:
            await asyncio.sleep(0.05)
        workers = _workers(service.process.process.pid)
        assert workers
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        check(await task, IMAGES[:30])

    talk(ask)


def test_strangers_are_told_so(service: Scene, tmp_path: Path) -> None:
    async def attempt(**options: Any) -> None:
        async with connect(service, tmp_path / "state", **options) as client:
            await client.models()

    keys.make(tmp_path / "keys")
    with pytest.raises(LinkError, match="is of another authority"):
        asyncio.run(attempt(keys=tmp_path / "keys", patience=0.5))
    with pytest.raises(LinkError, match="is for another name"):
        asyncio.run(attempt(server_name="other.example", patience=0.5))
    with pytest.raises(LinkError, match="cannot be reached"):
        asyncio.run(attempt(address="127.0.0.1:1", patience=0.5))
    with pytest.raises(Misuse, match="is not https"):
        asyncio.run(attempt(address="127.0.0.1:1/path"))


def test_tokens_and_a_service_that_restarts(key_folder: Path, tmp_path: Path) -> None:
    put_digits(tmp_path / "repository")
    tokens = tmp_path / "tokens"
    tokens.write_text("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 tester\n")
    state = tmp_path / "client"

    async def first(scene: Scene) -> str:
        async with connect(scene, state) as client:
            with pytest.raises(PeerError, match="asks for a token"):
                await client.models()
        async with connect(scene, state, token="test") as client:
            notice = await client.notify("digits")
            await notice.ready()
            task = asyncio.create_task(client.infer("digits", [IMAGES[:20]]))
            while not [job for job in await _jobs(client) if job["state"] == "inferring"]:
                await asyncio.sleep(0.05)
            scene.process.process.kill()
            scene.process.process.wait()
            with serving(tmp_path, key_folder, "--tokens", tokens, *_at(scene.address)):
                # The request went with the process; it is made again, on other material.
                result = await asyncio.wait_for(task, 60)
                check(result, IMAGES[:20])
                assert len(set(result.material.split(","))) == 20
                check(await client.infer("digits", [SEVEN]))
        return notice.id

    with serving(tmp_path, key_folder, "--tokens", tokens) as scene:
        asyncio.run(first(scene))


def test_suites_with_a_dealer(key_folder: Path, tmp_path: Path) -> None:
    put_digits(tmp_path / "repository")

    async def run(scene: Scene) -> None:
        async with connect(scene, tmp_path / "client") as client:
            for terms in (
                Terms(Fss()),
                Terms(Fss(security="malicious")),
                Terms(Gmw(correlations="dealer", rounds="blocks")),
            ):
                notice = await client.notify("digits", terms=terms)
                result = await client.infer("digits", [SEVEN], notice=notice)
                check(result)
                assert result.config == terms.suite
                assert result.trust is not None

    with listening("dealer", "--keys", key_folder) as (_, dealer):  # noqa: SIM117
        with serving(tmp_path, key_folder, "--dealer", dealer) as scene:
            asyncio.run(run(scene))


def test_the_command(service: Scene, state: Path) -> None:
    words = ["infer", f"https://{service.address}", "digits", "--keys", service.keys]
    words += ["--state", state]
    image = state.parent / "seven.npy"
    np.save(image, SEVEN)
    (notice,) = privet("prepare", *words[1:], "--count", 1)["prepared"]
    report = privet(*words, "--input", image, "--notice", notice)
    assert_right(np.array(report["output"]), SEVEN)
    assert (report["suite"], report["samples"]) == ("gmw", 1)
    error = privet(*words, "--input", image, "--notice", notice, code=4)["error"]
    assert error["type"] == "MaterialError"
    assert privet(*words, code=2)["error"]["type"] == "Misuse"


async def _jobs(client: ServiceClient) -> list[dict[str, Any]]:
    return await client._updates.all()


def _workers(service: int) -> list[int]:
    listing = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(service)],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split(None, 1) for line in listing.stdout.splitlines()]
    return [int(pid) for pid, words in lines if "privet.service.worker" in words]


def _at(address: str) -> list[str]:
    return ["--listen", address]
