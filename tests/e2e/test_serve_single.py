"""Inferences that are single jobs of a service: suite `stream`, and `gmw` without material, as
people use them: `privet serve` and `privet infer` as real processes over TLS."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.e2e.caller import ServiceCaller
from tests.e2e.services import Scene, put_digits, serving
from tests.e2e.test_commands import SEVEN, key_folder, privet
from tests.python.stream import models

from privet import _native
from privet.compiler.compile import Compiled
from privet.compiler.executor import execute
from privet.errors import PrivetError
from privet.runtime import Credentials
from privet.suites import Stream

__all__ = ["key_folder"]

STREAM = 'suites = ["stream"]\ninput_range = [-1, 1]\n'
CODED = 'cipher = ["paillier"]\nkey_bits = [2048]\n'
PAILLIER = ("--cipher", "paillier", "--key-bits")
ABSENT = 3.0


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    """The perceptron that the services have."""
    return models.perceptron()


def put(repository: Path, name: str, compiled: Compiled, config: str) -> None:
    """Puts the perceptron into a repository."""
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    onnx.save(compiled.source, folder / "model.onnx")
    (repository / name / "config.toml").write_text(config)


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, key_folder: Path, compiled: Compiled
) -> Iterator[Scene]:
    """A service of a network in suite `stream` in every way and in a single one, and one in suite
    `gmw`."""
    folder = tmp_path_factory.mktemp("service")
    put(folder / "repository", "flow", compiled, STREAM)
    put(folder / "repository", "coded", compiled, STREAM + CODED)
    put_digits(folder / "repository")
    options = ("--cores", 2, "--memory", "2GiB", "--absent", ABSENT, "--reveal-values")
    with serving(folder, key_folder, *options) as scene:
        yield scene


def ask(scene: Scene, model: str, *words: object, code: int = 0) -> dict[str, Any]:
    """What `privet infer` prints for programs."""
    options = ("--keys", scene.keys, "--state", scene.folder / "client", *words)
    return privet("infer", f"https://{scene.address}", model, *options, code=code)


@pytest.mark.parametrize(
    ("model", "words"),
    [("flow", ()), ("flow", (*PAILLIER, 3072)), ("coded", (*PAILLIER, 2048))],
)
def test_a_stream_is_asked_like_any_model(
    service: Scene, compiled: Compiled, tmp_path: Path, model: str, words: tuple[object, ...]
) -> None:
    x = np.random.default_rng(2).uniform(-1, 1, (1, 6))
    np.save(tmp_path / "x.npy", x)
    answer = ask(service, model, "--suite", "stream", *words, "--input", tmp_path / "x.npy")
    expected = execute(compiled.program, compiled.weights, [x]).outputs["y"]
    assert np.allclose(answer["output"], expected, atol=2**-10)
    assert "revealed up to order" in answer["trust"]
    assert answer["weaknesses"]
    assert answer["offline"]["bytes_client"] > 0
    assert answer["online"]["bytes_client"] > 0
    assert (answer["ready"], answer["material"]) == (0, "")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((*PAILLIER, 3072), "does not serve key_bits 3072; it serves 2048"),
        ((), "does not serve cipher bfv; it serves paillier"),
        ((*PAILLIER, 2048, "--packed"), "no service offers suite stream paillier 2048 packed"),
    ],
)
def test_a_way_that_is_not_offered_is_refused_by_name(
    service: Scene, tmp_path: Path, words: tuple[object, ...], reason: str
) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 6)))
    options = ("--suite", "stream", *words, "--input", tmp_path / "x.npy")
    assert reason in ask(service, "coded", *options, code=2)["error"]["message"]


def test_a_prediction_without_material(service: Scene) -> None:
    words = ("--linear", "online", "--unprepared", "--input", SEVEN)
    answer = ask(service, "digits", "--rounds", "log", *words)
    report = ask(service, "digits", "--rounds", "log", "--linear", "online", "--input", SEVEN)
    assert int(np.argmax(answer["output"])) == 7
    assert answer["output"] == report["output"]
    assert answer["material"] == ""
    assert report["material"]
    assert answer["online"]["bytes_client"] > report["online"]["bytes_client"]
    error = ask(service, "digits", *words, "--notice", "1", code=2)["error"]
    assert "prepares nothing ahead" in error["message"]


def test_a_grant_is_for_one_inference(service: Scene, tmp_path: Path) -> None:
    """A client that goes on after its inference is refused; one that does not listen is not told to
    come, and its job is cancelled."""
    payload = [np.zeros((1, 6), dtype="<i8").tobytes()]

    def go_on(go: dict[str, Any], public: bytes) -> str:
        plan = _native.StreamPlan(public, Stream().text)
        client = connected(service, go)
        client.prepare(plan)
        client.infer(plan, payload)
        with pytest.raises(PrivetError) as excinfo:
            client.prepare(plan)
        return str(excinfo.value)

    async def act() -> None:
        async with (
            ServiceCaller(service.address, service.keys, tmp_path / "v") as caller,
            ServiceCaller(service.address, service.keys, tmp_path / "o", "operator") as operator,
        ):
            status, answer = await caller.call("POST", "/v2/models/flow/notices", {})
            assert status == 400
            assert "nothing is prepared" in answer["error"]
            job = await caller.request("flow", suite="stream")
            go = await grant(caller, job)
            assert (go["phase"], go["suite"], go["material"]) == ("infer", "stream bfv", None)
            public = public_half(service)
            message = await asyncio.to_thread(go_on, go, public)
            assert "the grant is for one inference" in message
            assert (await ending(caller, job))["outcome"] == "done"
            # Nobody listens from here on.
            await asyncio.sleep(ABSENT + 3)
            lost_job = await caller.request("flow", suite="stream")
            await asyncio.sleep(2 * ABSENT)
            document = await caller.good("GET", f"/v2/jobs/{lost_job}")
            assert (document["outcome"], document["go"]) == ("cancelled", [])
            metrics = await operator.good("GET", "/metrics")
            assert 'suite="stream bfv"' in metrics

    asyncio.run(act())


def test_a_job_is_served_as_it_was_asked_for_alone(service: Scene, tmp_path: Path) -> None:
    """Two samples in one plaintext would be two answers for a job that counts as one."""
    two = _native.StreamPlan(public_half(service), Stream(cipher="paillier").text, 2)

    def pack(go: dict[str, Any]) -> str:
        with pytest.raises(PrivetError) as excinfo:
            connected(service, go).prepare(two)
        return str(excinfo.value)

    async def act() -> None:
        async with ServiceCaller(service.address, service.keys, tmp_path / "v") as caller:
            job = await caller.request("flow", suite="stream", cipher="paillier")
            go = await grant(caller, job)
            assert go["suite"] == "stream paillier 2048"
            assert "packs no samples" in await asyncio.to_thread(pack, go)
            assert (await ending(caller, job))["outcome"] == "failed"

    asyncio.run(act())


async def grant(caller: ServiceCaller, job: str) -> dict[str, Any]:
    """The only lease of a worker for a job."""
    document = await caller.good("GET", f"/v2/jobs/{job}")
    while not document["go"]:
        sequence = document["sequence"]
        document = await caller.good("GET", f"/v2/jobs/{job}?wait=20&seen={sequence}")
    (go,) = document["go"]
    return dict(go)


async def ending(caller: ServiceCaller, job: str) -> dict[str, Any]:
    """A job that has ended."""
    document = await caller.good("GET", f"/v2/jobs/{job}")
    while document["state"] != "ended":
        sequence = document["sequence"]
        document = await caller.good("GET", f"/v2/jobs/{job}?wait=20&seen={sequence}")
    return dict(document)


def connected(scene: Scene, go: dict[str, Any]) -> _native.StreamClient:
    """A client at the worker that it was given."""
    credentials = Credentials.from_directory(scene.keys, "client").native
    connection = _native.Connection.connect(
        go["host"], go["port"], credentials, go["server_name"], 20.0
    )
    return _native.StreamClient(connection)


def public_half(scene: Scene) -> bytes:
    """The public half of the program that is served as `flow`."""
    (row,) = [model for model in scene.models if model["model"] == "flow"]
    programs = (scene.folder / "state" / "server" / "programs").glob("*/program.json")
    return next(
        data
        for path in programs
        if hashlib.sha256(data := path.read_bytes()).hexdigest() == row["program"]
    )


def test_values_are_revealed_only_where_the_server_accepts_it(
    key_folder: Path, compiled: Compiled, tmp_path: Path
) -> None:
    put(tmp_path / "repository", "flow", compiled, STREAM)
    np.save(tmp_path / "x.npy", np.zeros((1, 6)))
    with serving(tmp_path, key_folder, "--cores", 1) as scene:
        words = ("--suite", "stream", "--input", tmp_path / "x.npy")
        error = ask(scene, "flow", *words, code=4)["error"]
        assert error["type"] == "NotAccepted"
        config = STREAM.replace('["stream"]', '["gmw", "stream"]')
        (tmp_path / "repository" / "flow" / "config.toml").write_text(config)
        rows = scene.process.next()["models"]
        assert "offer it alone" in rows[0]["error"]
