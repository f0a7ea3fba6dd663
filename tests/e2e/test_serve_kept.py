"""Encrypted weights that a service's clients keep: fetched once by a job of its own."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.e2e.caller import ServiceCaller
from tests.e2e.gateways import HTTP, gateway
from tests.e2e.processes import Running, running
from tests.e2e.services import Scene, put_digits, serving
from tests.e2e.test_commands import SEVEN, privet
from tests.e2e.test_kept_weights import network

from privet import keys
from privet.compiler.compile import Compiled, compile
from privet.compiler.executor import execute
from privet.errors import MaterialError
from privet.gateway import ServiceClient, Terms
from privet.runtime import Credentials
from privet.suites import Gmw

ROWS, INNER = 16, 2048
INPUT = np.random.default_rng(3).uniform(-1, 1, (ROWS, INNER)).astype(np.float32)
KEPT = 48_000_000
"""Bytes that a client keeps, at least: more than buffers hold (a system's may grow to 32 MB for a
receiver, a shaped link has 4)."""

STALL = 3.0
SLOW = "1ms,20Mbit"
MODE = ("--encrypts", "weights", "--rounds", "log")


def put(repository: Path, version: int) -> Compiled:
    """Puts a version of the model into a repository."""
    folder = repository / "kept" / str(version)
    folder.mkdir(parents=True)
    onnx.save(network(version, INNER), folder / "model.onnx")
    (repository / "kept" / "config.toml").write_text("input_range = [-1, 1]\n")
    return compile(folder / "model.onnx", input_range=(-1, 1), name="kept")


@dataclass
class Kept:
    """A service that accepts kept weights, with clients `client`, `bob` and `carol`."""

    scene: Scene
    compiled: Compiled

    def words(self, name: str = "client") -> tuple[object, ...]:
        """How a client asks."""
        folder = self.scene.folder
        return (
            f"https://{self.scene.address}",
            "--keys",
            folder / f"of-{name}",
            "--state",
            folder / name,
        )

    def infer(self, name: str = "client", *words: object) -> dict[str, Any]:
        """A client's prediction, which must be right."""
        address, *options = self.words(name)
        np.save(self.scene.folder / "x.npy", INPUT)
        input_options = ("--input", self.scene.folder / "x.npy")
        report = privet("infer", address, "kept", *options, *MODE, *input_options, *words)
        expected = execute(self.compiled.program, self.compiled.weights, [INPUT]).outputs["y"]
        assert np.array_equal(np.array(report["output"]), expected)
        return report

    def files(self, name: str = "client") -> dict[str, str]:
        """What a client keeps: files with hashes of what is in them."""
        folder = self.scene.folder / name / "client" / "kept"
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()
        }

    def operator(self, path: str) -> Any:
        """What the service tells its operator."""

        async def ask() -> Any:
            async with ServiceCaller(
                self.scene.address, self.scene.keys, self.scene.folder / "o", "operator"
            ) as caller:
                return await caller.good("GET", path)

        return asyncio.run(ask())

    def fetched(self, failure: str = "none") -> int:
        """How many fetches have ended so."""
        line = f'privet_jobs_total{{failure="{failure}",phase="fetch"}} '
        lines = [text for text in self.operator("/metrics").splitlines() if text.startswith(line)]
        return int(float(lines[0].removeprefix(line))) if lines else 0


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("service")
    keys.make(folder / "keys", keep_ca_key=True)
    for name in ("bob", "carol"):
        keys.issue(folder / "keys", name)
    for name in ("client", "bob", "carol"):
        identity = folder / f"of-{name}"
        identity.mkdir()
        shutil.copy(folder / "keys" / "ca.pem", identity)
        for kind in ("pem", "key"):
            shutil.copy(folder / "keys" / f"{name}.{kind}", identity / f"client.{kind}")
    compiled = put(folder / "repository", 1)
    put_digits(folder / "repository")
    options = ("--encrypts", "weights", "--cores", 2, "--timeout", STALL)
    with serving(folder, folder / "keys", *options, "--audit", folder / "audit") as scene:
        yield Kept(scene, compiled)


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Waits until a condition holds."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_each_client_fetches_once(kept: Kept) -> None:
    report = kept.infer()
    assert report["weaknesses"] == ["kept-weights"]
    first = kept.files()
    kept.infer("client")
    kept.infer("bob")
    assert kept.files() == first
    assert kept.fetched() == 2
    metrics = kept.operator("/metrics")
    prefix = 'privet_job_bytes_total{phase="fetch",sender="server"} '
    (line,) = [text for text in metrics.splitlines() if text.startswith(prefix)]
    assert 2 * KEPT < float(line.removeprefix(prefix)) < 2.2 * KEPT
    audit = [json.loads(text) for text in (kept.scene.folder / "audit").read_text().splitlines()]
    requests = [entry for entry in audit if entry["event"] == "asked" and entry["kind"] == "fetch"]
    assert len({request["client"] for request in requests}) == len(requests) == 2
    # Ciphertexts under another key, and other ones.
    assert set(kept.files("bob").values()).isdisjoint(first.values())
    state = kept.operator("/v2/state")
    assert [run["phase"] for run in state["timeline"]].count("fetch") == 2


def test_a_gateway_keeps_weights_as_well(kept: Kept) -> None:
    """It fetches them for the material that it keeps ready, before anybody asks it."""
    state = kept.scene.folder / "gateway"
    with (
        gateway(
            kept.scene.address, kept.scene.folder / "of-carol", state, *MODE, "--ahead", "kept=1"
        ) as front,
        front.client(HTTP) as client,
    ):
        until(lambda: any((state / "client" / "kept").glob("*")))
        input_tensor = HTTP.InferInput("x", list(INPUT.shape), "FP32")
        input_tensor.set_data_from_numpy(INPUT)
        output = client.infer("kept", [input_tensor]).as_numpy("y")
    expected = execute(kept.compiled.program, kept.compiled.weights, [INPUT]).outputs["y"]
    assert np.allclose(output, expected, atol=1e-6)


def test_kept_weights_of_no_use_any_more_are_fetched_anew(kept: Kept) -> None:
    kept.infer()
    before, fetches = kept.files(), kept.fetched()
    for secret in (kept.scene.folder / "state" / "server" / "secrets").glob("kept-key-*"):
        secret.unlink()
    kept.infer()
    assert kept.files().keys() == before.keys()
    assert kept.files() != before
    assert kept.fetched() == fetches + 1


def test_weights_fetched_under_an_earlier_certificate_are_fetched_anew(kept: Kept) -> None:
    kept.infer()
    (before, *_), fetches = kept.files(), kept.fetched()
    folder = kept.scene.folder / "client" / "client" / "kept"
    program, peer, suite, model = before.split("-")
    earlier = "-".join((program, peer[::-1], suite, model))
    (folder / before).rename(folder / earlier)
    address, *options = kept.words()
    report = privet("prepare", address, "kept", *options, *MODE, "--count", 1)
    assert len(report["prepared"]) == 1
    assert kept.files().keys() == {before, earlier}
    assert kept.fetched() == fetches + 1
    (folder / earlier).unlink()


def test_weights_of_two_services_of_one_program_stay(kept: Kept, tmp_path: Path) -> None:
    """Each took the other's place, and was fetched again at every turn."""
    shutil.rmtree(kept.scene.folder / "client", ignore_errors=True)
    keys.make(tmp_path / "keys")
    for part in ("repository", "state/server/programs"):
        shutil.copytree(kept.scene.folder / part, tmp_path / part)
    shutil.copytree(tmp_path / "keys", tmp_path / "of-client")
    with serving(tmp_path, tmp_path / "keys", "--encrypts", "weights", "--cores", 2) as scene:
        other = Kept(scene, kept.compiled)
        (tmp_path / "client").symlink_to(kept.scene.folder / "client")
        fetches = kept.fetched()
        kept.infer()
        files = kept.files()
        for service in (other, kept, other):
            service.infer()
        assert (kept.fetched() - fetches, other.fetched()) == (1, 1)
        assert len(kept.files()) == 2
        assert len({name.split("-")[0] for name in kept.files()}) == 1
        for name in kept.files().keys() - files.keys():
            (kept.scene.folder / "client" / "client" / "kept" / name).unlink()


@contextmanager
def fetching(kept: Kept, name: str) -> Iterator[Running]:
    """A client over a slow link that fetches, with some of it on its disk."""
    address, *options = kept.words(name)
    words = ("prepare", address, "kept", *options, *MODE, "--link", SLOW, "--count", 1)
    folder = kept.scene.folder / name / "client" / "ready"
    with running(*words) as client:
        # The file has its whole length from its first moment.
        until(lambda: any(path.stat().st_blocks > 1 << 10 for path in folder.glob("*.partial")))
        yield client


def test_a_client_that_is_killed_in_mid_fetch_has_nothing_and_others_are_served(
    kept: Kept,
) -> None:
    shutil.rmtree(kept.scene.folder / "bob", ignore_errors=True)
    failures, fetches = kept.fetched("failed"), kept.fetched()
    with fetching(kept, "bob") as client:
        runs = kept.operator("/v2/state")["running"]
        assert [(run["phase"], len(run["cores"])) for run in runs] == [("fetch", 1)]
        address, *options = kept.words()
        seven = privet("infer", address, "digits", *options, "--input", SEVEN)
        assert int(np.argmax(seven["output"])) == 7
        assert (kept.fetched("failed"), kept.fetched()) == (failures, fetches)
        client.end(signal.SIGKILL)
    assert kept.files("bob") == {}
    until(lambda: kept.fetched("failed") == failures + 1)
    kept.infer("bob")
    assert len(kept.files("bob")) == 1
    assert list((kept.scene.folder / "bob" / "client" / "ready").iterdir()) == []


def test_a_timeout_holds_while_weights_come(kept: Kept) -> None:
    address, *options = kept.words("carol")
    np.save(kept.scene.folder / "x.npy", INPUT)
    input_options = ("--input", kept.scene.folder / "x.npy", "--link", SLOW, "--timeout", 2)
    start = time.monotonic()
    reply = privet("infer", address, "kept", *options, *MODE, *input_options, code=4)
    assert "had not come within 2.0 s" in reply["error"]["message"]
    assert time.monotonic() - start < 6
    assert kept.files("carol") == {}
    until(lambda: kept.operator("/v2/state")["running"] == [])


def test_a_client_that_stalls_is_disconnected(kept: Kept) -> None:
    shutil.rmtree(kept.scene.folder / "bob", ignore_errors=True)
    failures = kept.fetched("failed")
    with fetching(kept, "bob") as client:
        client.process.send_signal(signal.SIGSTOP)
        until(lambda: kept.fetched("failed") == failures + 1)
        assert kept.operator("/v2/state")["running"] == []


def test_a_grant_to_prepare_is_none_to_fetch(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: Any) -> None:
        """This client skips the fetch."""

    async def main() -> None:
        credentials = Credentials.from_directory(kept.scene.folder / "of-client", "client")
        url = f"https://{kept.scene.address}"
        async with ServiceClient(url, credentials, state=tmp_path) as client:
            terms = Terms(Gmw(encrypts="weights", rounds="log"), version=1)
            notice = await client.notify("kept", terms=terms)
            with pytest.raises(MaterialError, match="have to be fetched first"):
                await notice.ready()
            # The job has ended with it, and holds no core until the client's grace is over.
            async with asyncio.timeout(5):
                while notice.state != "ended":
                    await asyncio.sleep(0.05)

    monkeypatch.setattr(ServiceClient, "_fetch", nothing)
    fetches = kept.fetched()
    asyncio.run(main())
    assert kept.fetched() == fetches
    assert not list((tmp_path / "client" / "kept").iterdir())


def test_a_new_version_is_fetched_as_well(kept: Kept) -> None:
    kept.infer()
    fetches = kept.fetched()
    second = put(kept.scene.repository, 2)
    kept.scene.process.until(lambda line: _ready(line) == 2)
    first, kept.compiled = kept.compiled, second
    kept.infer()
    kept.compiled = first
    assert kept.fetched() == fetches + 1
    assert len(kept.files()) == 2


def _ready(line: dict[str, Any]) -> int:
    rows = [row for row in line.get("models", ()) if row["model"] == "kept" and row["ready"]]
    return max((row["version"] for row in rows), default=0)


def test_a_service_refuses_by_default(tmp_path: Path, key_folder: Path) -> None:
    put_digits(tmp_path / "repository")
    with serving(tmp_path, key_folder, "--cores", 1) as scene:
        options = ("--keys", key_folder, "--state", tmp_path / "c", "--input", SEVEN)
        reply = privet("infer", f"https://{scene.address}", "digits", *options, *MODE, code=4)
    message = "this server's policy does not accept encrypts weights: accepted for you: masks"
    assert message in reply["error"]["message"]
    assert not any((tmp_path / "c" / "client" / "kept").glob("*"))
