"""Suite `ckks` at a service, as people use it: `privet serve`, `privet infer` and their programs as
real processes over TLS, beside jobs of other suites."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import onnxruntime
import pytest
from tests.e2e.caller import ServiceCaller, tls
from tests.e2e.gateways import GRPC, HTTP, IMAGES, assert_right, gateway, tensor
from tests.e2e.processes import listening
from tests.e2e.services import Scene, put_digits, serving
from tests.e2e.test_commands import PRIVET, SEVEN, key_folder, privet
from tritonclient.utils import InferenceServerException

from privet.gateway import ServiceClient, Terms
from privet.runtime import Credentials
from privet.service.model_server import SESSIONS_PER_CLIENT
from privet.suites import Ckks, as_suite

__all__ = ["key_folder"]

pytestmark = pytest.mark.go

MODEL = Path(__file__).parents[2] / "zoo" / "models" / "digits-smooth" / "square.onnx"
CONFIG = 'suites = ["ckks"]\ninput_range = [0, 1]\n'
CORES = 2
GRACE = 60.0
"""Seconds for which a client that was told to come and does not come keeps a core."""

TOKEN = "open-sesame"
ROUNDS = 4
"""How often each suite is asked at once."""


def put_smooth(repository: Path, name: str = "smooth", config: str = CONFIG) -> None:
    """Puts a network with smooth activations into a repository."""
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    shutil.copy(MODEL, folder / "model.onnx")
    (repository / name / "config.toml").write_text(config)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, key_folder: Path) -> Iterator[Scene]:
    """A service of one network in suite `ckks` and one in the suites of shares, with a dealer. An
    inference of `wide` takes all cores."""
    folder = tmp_path_factory.mktemp("service")
    put_smooth(folder / "repository")
    put_smooth(folder / "repository", "wide", CONFIG + f"cores = {CORES}\n")
    put_smooth(folder / "repository", "rare", CONFIG + "[limits]\nrequests_per_minute = 1\n")
    put_digits(folder / "repository")
    options = ("--cores", CORES, "--memory", "2GiB", "--grace", GRACE)
    with (
        listening("dealer", "--keys", key_folder) as (_, dealer),
        serving(folder, key_folder, *options, "--dealer", dealer) as scene,
    ):
        yield scene


def ask(scene: Scene, model: str, *words: object, code: int = 0) -> dict[str, Any]:
    """What `privet infer` prints for programs."""
    options = ("--keys", scene.keys, "--state", scene.folder / "client", *words)
    return privet("infer", f"https://{scene.address}", model, *options, code=code)


def scores(x: np.ndarray) -> np.ndarray:
    """What the smooth network says of samples in the clear."""
    session = onnxruntime.InferenceSession(MODEL)
    output: np.ndarray = session.run(None, {session.get_inputs()[0].name: x.astype(np.float32)})[0]
    return output


def test_the_command_predicts_and_prints(service: Scene) -> None:
    answer = ask(service, "smooth", "--suite", "ckks", "--input", SEVEN)
    assert (answer["suite"], answer["samples"], int(np.argmax(answer["output"]))) == ("ckks", 1, 7)
    assert answer["offline"]["bytes_client"] > 10 * answer["online"]["bytes_client"] > 10_000
    assert answer["layers"] == []
    command = [*PRIVET, "infer", f"https://{service.address}", "smooth", "--suite", "ckks"]
    command += ["--keys", str(service.keys), "--input", str(SEVEN)]
    text = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    for part in ("Prediction: class 7", "offline", "online", "Suite ckks (semi-honest), program"):
        assert part in text


def test_inputs_from_arrays_are_those_of_the_model(service: Scene, tmp_path: Path) -> None:
    x = np.random.default_rng(3).uniform(0, 1, (1, 1, 8, 8))
    np.save(tmp_path / "x.npy", x)
    answer = ask(service, "smooth", "--suite", "ckks", "--input", tmp_path / "x.npy")
    assert np.abs(np.array(answer["output"]) - scores(x)).max() < 0.05


def test_a_gateway_predicts_with_it(service: Scene, tmp_path: Path) -> None:
    x = np.random.default_rng(7).uniform(0, 1, (2, 1, 8, 8)).astype(np.float32)
    with gateway(service.address, service.keys, tmp_path, "--suite", "ckks") as front:
        for library, sample in ((HTTP, x[:1]), (GRPC, x[1:])):
            with front.client(library) as client:
                assert client.is_model_ready("smooth")
                assert not client.is_model_ready("digits")
                answer = client.infer("smooth", [tensor(library, sample)])
            logits, right = answer.as_numpy("logits"), scores(sample)
            assert logits.shape == right.shape
            assert 0 < np.abs(logits - right).max() < 0.05
            reply = answer.get_response()
            suite = reply["parameters"]["suite"] if library is HTTP else reply.parameters["suite"]
            assert "ckks" in str(suite)
            # A session takes as many samples as the program.
            with pytest.raises(InferenceServerException, match="takes 1 sample at once"):
                front.infer(library, "smooth", x)


def test_wrong_calls_are_refused_before_anything_is_sent(service: Scene, tmp_path: Path) -> None:
    np.save(tmp_path / "wide.npy", np.zeros((1, 1, 9, 8)))
    np.save(tmp_path / "many.npy", np.zeros((5, 1, 8, 8)))
    np.save(tmp_path / "large.npy", np.full((1, 1, 8, 8), 1e6))
    options = ("--suite", "ckks", "--input")
    for name, message in (("wide", "[1, 1, 9, 8]"), ("many", "5"), ("large", "reaches 1e+06")):
        error = ask(service, "smooth", *options, tmp_path / f"{name}.npy", code=2)["error"]
        assert error["type"] == "InputError"
        assert message in error["message"]
    error = ask(service, "smooth", *options, SEVEN, "--notice", "1", code=2)["error"]
    assert "prepares nothing ahead" in error["message"]
    error = ask(service, "smooth", "--input", SEVEN, code=2)["error"]
    assert "not offered in gmw" in error["message"]
    error = ask(service, "digits", *options, SEVEN, code=2)["error"]
    assert "not offered in ckks" in error["message"]
    error = ask(service, "smooth", *options, SEVEN, "--program-hash", "0" * 64, code=4)["error"]
    assert error["type"] == "PeerMisbehaved"


def test_a_service_that_is_full_says_so(service: Scene) -> None:
    async def crowd() -> dict[str, Any]:
        url = f"https://{service.address}/v2/models/smooth/versions/1/session"
        async with aiohttp.ClientSession() as web:
            context = tls(service.keys, "client")
            sockets = [await web.ws_connect(url, ssl=context) for _ in range(SESSIONS_PER_CLIENT)]
            options = ("--suite", "ckks", "--input", SEVEN)
            reply = await asyncio.to_thread(ask, service, "smooth", *options, code=4)
            assert not any(socket.closed for socket in sockets)
            return reply

    error = asyncio.run(crowd())["error"]
    assert error["type"] == "PeerBusy"
    assert "429" in error["message"]
    ask(service, "rare", "--suite", "ckks", "--input", SEVEN)
    error = ask(service, "rare", "--suite", "ckks", "--input", SEVEN, code=4)["error"]
    assert error["type"] == "PeerBusy"
    assert "more than 1 inferences in a minute" in error["message"]


def test_a_token_that_is_asked_for(key_folder: Path, tmp_path: Path) -> None:
    put_smooth(tmp_path / "repository")
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    (tmp_path / "tokens").write_text(f"{digest} visitors\n")
    with serving(tmp_path, key_folder, "--tokens", tmp_path / "tokens") as scene:
        options = ("--suite", "ckks", "--input", SEVEN)
        assert "asks for a token" in ask(scene, "smooth", *options, code=4)["error"]["message"]
        command = [*PRIVET, "infer", f"https://{scene.address}", "smooth", *map(str, options)]
        command += ["--keys", str(key_folder), "--json"]
        environment = {**os.environ, "PRIVET_TOKEN": TOKEN}
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=True, env=environment
        )
        assert int(np.argmax(json.loads(process.stdout)["output"])) == 7


def test_a_killed_client_gives_its_place_back(service: Scene, tmp_path: Path) -> None:
    async def act() -> None:
        async with (
            ServiceCaller(service.address, service.keys, tmp_path / "v") as caller,
            ServiceCaller(service.address, service.keys, tmp_path / "o", "operator") as operator,
        ):
            before = await settled(operator)
            # A client that listens, is told to come and does not come keeps a core, so that `wide`
            # waits.
            listening = asyncio.create_task(caller.good("GET", "/v2/jobs?wait=10&seen=0"))
            notice = await caller.notify("digits")
            command = [*PRIVET, "infer", f"https://{service.address}", "wide", "--suite", "ckks"]
            command += ["--keys", str(service.keys), "--input", str(SEVEN)]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
                await until(operator, lambda snapshot: snapshot["queues"]["ready"]["length"] == 1)
                state = await operator.good("GET", "/v2/state")
                assert state["machines"][0]["memory_taken"] > before
                process.send_signal(signal.SIGKILL)
            await until(operator, lambda snapshot: snapshot["queues"]["ready"]["length"] == 0)
            await listening
            await caller.good("DELETE", f"/v2/jobs/{notice}")
            assert await settled(operator) == before

    asyncio.run(act())


async def until(operator: ServiceCaller, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Waits for a state of the service."""
    async with asyncio.timeout(30):
        while True:
            state: dict[str, Any] = await operator.good("GET", "/v2/state")
            if holds(state):
                return state
            await asyncio.sleep(0.05)


async def settled(operator: ServiceCaller) -> int:
    """The memory that processes have once nothing runs."""
    state = await until(operator, lambda snapshot: not snapshot["running"])
    assert state["machines"][0]["cores_taken"] == 0
    return int(state["machines"][0]["memory_taken"])


def test_suites_share_the_machine(service: Scene, tmp_path: Path) -> None:
    """Clients of three suites at once: all are served, none has what another has."""
    x = np.random.default_rng(5).uniform(0, 1, (ROUNDS, 1, 1, 8, 8))

    async def watch(operator: ServiceCaller, states: list[dict[str, Any]]) -> None:
        while True:
            state = await operator.good("GET", "/v2/state")
            (machine,) = state["machines"]
            assert machine["cores_taken"] <= machine["cores"] == CORES
            assert machine["memory_taken"] <= machine["memory"]
            states.append(state)
            await asyncio.sleep(0.05)

    async def shares(client: ServiceClient, suite: str) -> None:
        for _ in range(ROUNDS):
            result = await client.infer("digits", [IMAGES[:1]], terms=Terms(as_suite(suite)))
            assert_right(next(iter(result.outputs.values())), IMAGES[:1])

    async def ciphertexts(client: ServiceClient, model: str) -> None:
        for sample in x:
            result = await client.infer(model, [sample], terms=Terms(Ckks()))
            assert np.abs(next(iter(result.outputs.values())) - scores(sample)).max() < 0.05

    async def act() -> None:
        credentials = Credentials.from_directory(service.keys, "client")
        url, state = f"https://{service.address}", service.folder / "mixed"
        states: list[dict[str, Any]] = []
        async with (
            ServiceCaller(service.address, service.keys, tmp_path / "o", "operator") as operator,
            ServiceClient(url, credentials, state=state) as client,
        ):
            before = await settled(operator)
            task = asyncio.create_task(watch(operator, states))
            async with asyncio.TaskGroup() as group:
                for suite in ("gmw", "fss"):
                    group.create_task(shares(client, suite))
                # Two of one model at once: its process computes for both.
                for model in ("smooth", "smooth", "wide"):
                    group.create_task(ciphertexts(client, model))
            assert not task.done()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            assert await settled(operator) == before
            last = await operator.good("GET", "/v2/state")
            metrics = await operator.good("GET", "/metrics")
        assert_apart(last["timeline"])
        runs = [run for run in last["timeline"] if run["failure"] is None]
        for model in ("smooth", "wide"):
            infers = [run for run in runs if run["model"] == f"{model}/1" and run["phase"] == "on"]
            assert len(infers) >= ROUNDS
        assert {run["suite"].split()[0].split("-")[0] for run in runs} >= {"gmw", "fss", "ckks"}
        # Each suite waited for another at some time.
        jobs = [job for state in states for job in state["queues"]["ready"]["first"]]
        assert "ckks" in {job["suite"] for job in jobs}
        for suite, model in (("gmw", "digits"), ("fss", "digits"), ("ckks", "smooth")):
            lines = [
                line for line in metrics.splitlines() if f'model="{model}/1",phase="on"' in line
            ]
            assert any(
                "privet_job_seconds_count" in line and f'suite="{suite}' in line for line in lines
            )

    asyncio.run(act())


def assert_apart(runs: list[dict[str, Any]]) -> None:
    """No core was lent to two jobs at once."""
    for core in range(CORES):
        spans = sorted(
            (run["started"], run["ended"], run["job"]) for run in runs if core in run["cores"]
        )
        for (_, end, first), (start, _, second) in itertools.pairwise(spans):
            assert end <= start + 1e-3, f"{first} and {second} had core {core} at once"
