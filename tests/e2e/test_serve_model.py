"""One model served by one command, asked and prepared for by two: real processes and sockets."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.e2e.caller import ServiceCaller
from tests.e2e.processes import Running, running
from tests.e2e.services import put_digits
from tests.e2e.test_commands import DIGITS, MODELS, PRIVET, SEVEN, key_folder, privet

from privet._native import Link
from privet.compiler.compile import compile
from privet.suites import Gmw

__all__ = ["key_folder"]

MODEL = "digits-cnn"

DEAR = 1_000_000
"""A price for a gigabyte, in seconds, beside which time is nothing."""


@dataclass
class Scene:
    """A service of one model: its process, what it printed, and a client's state directory."""

    process: Running
    address: str
    policy: dict[str, Any]
    program: str
    keys: Path
    state: Path

    def words(self, command: str, *options: object) -> list[object]:
        """A client's command."""
        return [command, self.address, "--keys", self.keys, "--state", self.state, *options]

    def infer(self, *options: object, code: int = 0) -> dict[str, Any]:
        """What `privet infer` prints of a seven."""
        return privet(*self.words("infer", "--input", SEVEN, *options), code=code)

    def prepare(self, *options: object, code: int = 0) -> dict[str, Any]:
        """What `privet prepare` prints."""
        return privet(*self.words("prepare", *options), code=code)

    def offline_bytes(self) -> int:
        """What all preparations have sent, as the service counts it."""

        async def ask() -> str:
            state = self.state / "operator"
            async with ServiceCaller(self.address, self.keys, state, "operator") as operator:
                return str(await operator.good("GET", "/metrics"))

        rows = asyncio.run(ask()).splitlines()
        counts = [row for row in rows if row.startswith('privet_job_bytes_total{phase="pre"')]
        return sum(int(float(row.rpartition(" ")[2])) for row in counts)

    def files(self, folder: str) -> list[Path]:
        """Files of the client's store."""
        return sorted((self.state / "client" / folder).iterdir())


@contextmanager
def serving(
    keys: Path,
    folder: Path,
    *options: object,
    model: Path = DIGITS,
    listen: str = "127.0.0.1:0",
) -> Iterator[Scene]:
    """`privet serve` of a model, with a client's state directory beside its own."""
    words = ["serve", model, "--keys", keys, "--state", folder / "server", "--listen", listen]
    with running(*words, "--input-range", 0, 1, *options) as process:
        line, rows = process.next(), process.next()["models"]
        (row,) = rows
        assert row["ready"]
        yield Scene(
            process, line["address"], line["policy"], row["program"], keys, folder / "client"
        )


@pytest.fixture
def scene(key_folder: Path, tmp_path: Path) -> Iterator[Scene]:
    with serving(key_folder, tmp_path) as scene:
        yield scene


def ready(count: int) -> Any:
    """Whether `privet prepare --keep` tells of so many entries."""
    return lambda event: event.get("ready") == count


def test_two_hosts(scene: Scene, tmp_path: Path) -> None:
    stocked = scene.prepare("--count", 2, "--program-hash", scene.program)
    assert (len(stocked["prepared"]), stocked["ready"]) == (2, 2)
    first = scene.infer()
    assert int(np.argmax(first["output"])) == 7
    assert (first["model"], first["program_hash"]) == (MODEL, scene.program)
    assert (first["offline"], first["ready"], first["weaknesses"]) == (None, 1, [])

    np.save(tmp_path / "x.npy", np.load(MODELS / "digits-cnn.npz")["inputs"][0])
    vector = ("--input", tmp_path / "x.npy")
    second = privet(*scene.words("infer", MODEL, *vector))
    third = privet(*scene.words("infer", *vector, "--rounds", "log"))
    assert second["ready"] == 0
    assert third["offline"]["seconds"] > 0
    np.testing.assert_allclose(second["output"], third["output"], atol=0.05)
    assert len({result["material"] for result in (first, second, third)}) == 3


def test_a_client_without_material_may_wait_or_refuse(scene: Scene) -> None:
    error = scene.infer("--when-dry", "refuse", code=4)["error"]
    assert error["type"] == "MaterialError"
    late = scene.infer("--when-dry", "wait", "--timeout", 1, code=4)["error"]
    assert "privet prepare" in late["message"]
    assert scene.prepare(f"{MODEL}=1", "--count", 5)["ready"] == 1
    assert scene.infer("--when-dry", "refuse")["offline"] is None
    assert scene.infer("--when-dry", "never", code=2)["error"]["type"] == "Misuse"


def test_the_printout_for_people_has_the_prediction_costs_and_program(scene: Scene) -> None:
    command = [*PRIVET, *map(str, scene.words("infer", "--input", SEVEN, "--layers"))]
    command += ["--rounds", "linear"]
    text = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    for part in (
        "Prediction: class 7",
        "offline",
        "online",
        "norm1",
        "Suite gmw (semi-honest), linear rounds, program",
        f"program {scene.program[:16]}",
        "Not calibrated",
        "Material for 0 more inferences",
    ):
        assert part in text


def test_the_default_of_a_service_is_the_strongest_semi_honest_policy(scene: Scene) -> None:
    accepted = scene.policy["accepts"]
    assert (accepted["truncation"], accepted["correlations"]) == (["exact"], ["parties"])
    error = scene.infer("--truncation", "one-bit", code=4)["error"]
    assert error["type"] == "NotAccepted"


def test_a_program_that_is_pinned(scene: Scene) -> None:
    error = scene.infer("--program-hash", "0" * 64, code=4)["error"]
    assert error["type"] == "PeerMisbehaved"
    assert scene.program in error["message"]


def test_the_same_model_is_the_same_program_after_a_restart(
    key_folder: Path, tmp_path: Path
) -> None:
    with serving(key_folder, tmp_path) as scene:
        before = scene.program
        scene.prepare("--count", 1)
        assert scene.process.end(signal.SIGTERM) == 0
    with serving(key_folder, tmp_path) as scene:
        assert scene.program == before
        assert scene.infer()["offline"] is None


def test_a_link_decides_on_the_depth_and_material_too(scene: Scene) -> None:
    report = scene.prepare("--count", 1, "--link", "10ms,100Mbit")
    assert (report["rounds"], report["ready"]) == ("blocks", 1)
    # Over loopback it might be another, but an entry for this depth is ready.
    inference = scene.infer()
    assert (inference["rounds"], inference["offline"], inference["ready"]) == ("blocks", None, 0)
    assert scene.prepare("--count", 1, "--link", "10us,100Mbit")["rounds"] == "linear"


def test_a_price_of_bytes_decides_on_the_extension_of_new_material(scene: Scene) -> None:
    """Between two prices the traffic of a preparation differs by what the two extensions send, but
    for the tags of what they leave for the next one."""
    public = compile(DIGITS, input_range=(0, 1)).program.to_public_bytes()
    options = ("--rounds", "linear", "--link", "lan")

    def forecast(price: int) -> tuple[str, int, int]:
        """The extension that a price takes, what it sends, and what the one with fewest does."""
        plan = Gmw(rounds="linear", byte_price=price).native(public, Link("lan"))
        phases = json.loads(plan.forecast())
        totals = {
            extension["name"]: extension["bytes_client"] + extension["bytes_server"]
            for extension in phases["extensions"]
        }
        return phases["extension"], totals[phases["extension"]], min(totals.values())

    def bytes_of(command: Callable[..., dict[str, Any]], price: int, *extra: object) -> int:
        """Bytes that a command's preparation sends."""
        before = scene.offline_bytes()
        command(*options, "--byte-price", price, *extra)
        return scene.offline_bytes() - before

    (free, many, _), (dear, few, fewest) = forecast(0), forecast(DEAR)
    assert free != dear
    assert many > few == fewest
    scene.infer(*options)  # The first preparation of a client makes base OTs as well.
    for command, *extra in ((scene.infer,), (scene.prepare, "--count", 1)):
        saved = bytes_of(command, 0, *extra) - bytes_of(command, DEAR, *extra)
        assert saved == pytest.approx(many - few, rel=0.01)


@pytest.mark.parametrize("mode", [("--field", "prime"), ("--linear", "online")])
def test_other_modes_have_material_of_their_own(scene: Scene, mode: tuple[str, str]) -> None:
    assert scene.prepare("--count", 1, *mode)["ready"] == 1
    assert scene.infer()["offline"] is not None
    report = scene.infer(*mode)
    assert int(np.argmax(report["output"])) == 7
    assert (report["offline"], report["weaknesses"], report["ready"]) == (None, [], 0)


def test_a_model_that_cannot_be_served_ends_the_command(key_folder: Path, tmp_path: Path) -> None:
    words = ["serve", DIGITS, "--keys", key_folder, "--state", tmp_path, "--listen", "127.0.0.1:0"]
    wide = privet(*words, "--set", "bits=24", code=3)["error"]
    assert "bits" in wide["message"]
    dealer_error = privet(*words, "--suite", "fss", code=2)["error"]
    assert "dealer" in dealer_error["message"]
    name_error = privet(*words, "--name", "a/b", code=2)["error"]
    assert "cannot be a model's name" in name_error["message"]
    put_digits(tmp_path / "repository")
    words[1] = tmp_path / "repository"
    batch_error = privet(*words, "--batch", 2, code=2)["error"]
    assert "--batch: in a repository, config.toml says that" in batch_error["message"]


def test_a_batch_and_samples_for_calibration(key_folder: Path, tmp_path: Path) -> None:
    samples = ("--calibration", MODELS / "digits-cnn-samples.npy")
    with serving(key_folder, tmp_path, "--batch", 2, "--name", "digits", *samples) as scene:
        report = scene.infer()
        assert (report["batch"], report["samples"], len(report["output"])) == (2, 1, 1)
        assert (report["model"], report["calibration"]) == ("digits", "samples")
        two = scene.infer("--input", MODELS / "digit-3.png")
        assert [int(np.argmax(row)) for row in two["output"]] == [7, 3]


def test_answers_are_counted_over_restarts(key_folder: Path, tmp_path: Path) -> None:
    for _ in range(2):
        with serving(key_folder, tmp_path, "--answers-per-hour", 2) as scene:
            scene.infer()
    with serving(key_folder, tmp_path, "--answers-per-hour", 2) as scene:
        error = scene.infer("--timeout", 3, code=4)["error"]
        assert error["type"] == "PeerBusy"
        assert "2 answers in an hour" in error["message"]


def test_a_client_of_several_models_says_which(key_folder: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        put_digits(tmp_path / "repository", name=name)
    words = ["serve", tmp_path / "repository", "--keys", key_folder]
    with running(*words, "--state", tmp_path / "server", "--listen", "127.0.0.1:0") as process:
        address = process.next()["address"]
        arguments = ["infer", address, "--keys", key_folder, "--state", tmp_path / "client"]
        reply = privet(*arguments, "--input", SEVEN, code=2)["error"]
        assert "say which model of the service: it offers one, two" in reply["message"]


def test_a_service_that_cannot_be_reached_is_named(key_folder: Path, tmp_path: Path) -> None:
    words = ["prepare", "127.0.0.1:1", "--keys", key_folder, "--state", tmp_path, "--count", "1"]
    error = privet(*words, "--timeout", 1, code=4)["error"]
    assert (error["type"], error["cause"]) == ("NotReached", "away")
    assert "127.0.0.1:1" in error["message"]


def test_a_level_is_kept_and_refilled(scene: Scene) -> None:
    keep = scene.words("prepare", "--keep", 2, "--max-disk", "100MB")
    with running(*keep) as keeping:
        full = keeping.until(ready(2))
        assert (full["event"], full["model"], full["wanted"]) == ("levels", MODEL, 2)
        # The service may have heard of an entry before its record is written here, and until then
        # the room counts that is reserved for it.
        files = {path: path.stat().st_size for path in scene.files("ready")}
        materials = [size for path, size in files.items() if path.suffix == ".material"]
        assert sum(materials) <= full["bytes"] <= 1.01 * sum(files.values())

        assert scene.infer()["offline"] is None
        start = time.monotonic()
        keeping.until(ready(1))
        assert time.monotonic() - start < 10
        keeping.until(ready(2))

        status = privet("prepare", "--status", "--state", scene.state)
        (entry,) = status["ready"]
        assert (entry["model"], entry["ready"]) == (MODEL, 2)
        assert entry["suite"].startswith("gmw ")
        assert status["bytes"] == entry["bytes"]

        assert keeping.end(signal.SIGTERM) == 0
        assert keeping.until(lambda event: event["event"] == "stopped")
    assert len(scene.files("spent")) == 1
    # Whoever keeps a level next takes over what is there.
    with running(*keep) as process:
        process.until(ready(2))
    (entry,) = privet("prepare", "--status", "--state", scene.state)["ready"]
    assert entry["ready"] == 2


def test_a_level_stops_at_the_limit_on_disk(scene: Scene) -> None:
    scene.prepare("--count", 1)
    size = privet("prepare", "--status", "--state", scene.state)["bytes"]
    # Room for two entries and a half.
    limit = 5 * size // 2
    with running(*scene.words("prepare", "--keep", 9, "--max-disk", limit)) as keeping:
        full = keeping.until(lambda event: event["event"] == "full")
        assert full["bytes"] <= limit
        scene.infer()
        keeping.until(ready(2))
        assert privet("prepare", "--status", "--state", scene.state)["bytes"] <= limit
    error = scene.prepare("--count", 2, "--max-disk", limit, code=1)["error"]
    assert error["type"] == "StoreFull"


def test_a_full_service_refuses_and_the_level_comes_back(key_folder: Path, tmp_path: Path) -> None:
    with (
        serving(key_folder, tmp_path, "--max-material", "1MB") as scene,
        running(*scene.words("prepare", "--keep", 20)) as keeping,
    ):
        # Jobs run side by side, so that one may be refused before the first entry is ready.
        event = keeping.until(lambda event: event["event"] == "waiting" and event["ready"])
        assert event["error"]["type"] == "JobFailed"
        assert "store is full" in event["error"]["message"]
        assert event["ready"] < 20
        full: list[Path] = []
        limit = time.monotonic() + 30
        while full != (full := scene.files("ready")):
            assert time.monotonic() < limit
            time.sleep(2)
        scene.infer()
        while not set(scene.files("ready")) - set(full):
            assert time.monotonic() < limit
            time.sleep(0.1)
        store = tmp_path / "server" / "server" / "ready"
        assert sum(path.stat().st_size for path in store.iterdir()) <= 10**6


def test_a_level_waits_for_a_service_that_is_away(key_folder: Path, tmp_path: Path) -> None:
    with serving(key_folder, tmp_path) as scene:
        pass
    keep = scene.words("prepare", MODEL, "--keep", 1, "--timeout", 1)
    with running(*keep) as keeping:
        event = keeping.until(lambda event: event["event"] == "waiting")
        assert event["error"]["type"] == "NotReached"
        with serving(key_folder, tmp_path, listen=scene.address):
            keeping.until(ready(1))
            assert keeping.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_prepare_command_that_ends_in_the_middle_leaves_no_half_entry(
    key_folder: Path, tmp_path: Path, signal_number: int
) -> None:
    with serving(key_folder, tmp_path, "--absent", 2, "--grace", 2) as scene:
        with running(*scene.words("prepare", "--keep", 9, "--link", "200ms,1Mbit")) as keeping:
            partial = scene.state / "client" / "ready"
            limit = time.monotonic() + 30
            while not list(partial.glob("*.partial")):
                assert time.monotonic() < limit
                time.sleep(0.01)
            time.sleep(1)
            code = keeping.end(signal_number)
            assert code == (0 if signal_number == signal.SIGTERM else -signal_number)
        assert privet("prepare", "--status", "--state", scene.state) == {"ready": [], "bytes": 0}
        assert scene.files("ready") == []
        assert int(np.argmax(scene.infer()["output"])) == 7


def test_what_cannot_be_prepared_is_refused(key_folder: Path, tmp_path: Path) -> None:
    words = ["prepare", "127.0.0.1:1", "--keys", key_folder, "--state", tmp_path / "state"]
    for extra, part in (
        ((), "--count N or --keep N"),
        (("--count", 1, "--keep", 1), "--count N or --keep N"),
        (("--count", 1, "--suite", "ckks"), "no material"),
        (("--count", 1, "--max-disk", "lots"), "disk space"),
        (("--status",), "state directory"),
    ):
        assert part in privet(*words, *extra, code=2)["error"]["message"]
    assert list(tmp_path.iterdir()) == []
