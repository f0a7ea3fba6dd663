"""Suite `ckks` between two hosts: `privet serve` and `privet infer` as processes over TLS."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from tests.e2e.processes import listening
from tests.e2e.test_commands import privet

from privet import zoo

RANGE = ("--input-range", "0", "1")


SMOOTH = Path(__file__).parents[2] / "zoo" / "models" / "digits-smooth" / "square.onnx"


@pytest.fixture(scope="module")
def nn5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zoo.build("nn5", tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "made"
    privet("keys", folder)
    return folder


def plain(model: Path, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {session.get_inputs()[0].name: x})[0])


def serve(model: Path, key_folder: Path, folder: Path, *options: object) -> list[object]:
    """The words of a service of the model."""
    words: list[object] = ["serve", model, "--suite", "ckks", "--keys", key_folder]
    return [*words, "--state", folder / "state", *RANGE, *options]


@pytest.mark.parametrize("scenario", ["encrypted-data", "encrypted-model"])
def test_two_hosts(scenario: str, key_folder: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(5).uniform(0, 1, (1, 1, 8, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    words = serve(SMOOTH, key_folder, tmp_path, "--set", f"scenario={scenario}")
    with listening(*words) as (_, address):
        command: list[object] = ["infer", address, "--suite", "ckks", "--scenario", scenario]
        command += ["--keys", key_folder, "--input", tmp_path / "x.npy"]
        for _ in range(2):
            report = privet(*command)
            np.testing.assert_allclose(report["output"], plain(SMOOTH, x), atol=0.01)
            assert report["offline"]["seconds"] > 0
        pinned = privet(*command, "--program-hash", "0" * 64, code=4)
        assert report["program_hash"] in pinned["error"]["message"]
        command[command.index(scenario)] = {
            "encrypted-data": "encrypted-model",
            "encrypted-model": "encrypted-data",
        }[scenario]
        reply = privet(*command, code=4)
        assert f"offered in scenario {scenario}" in reply["error"]["message"]


def test_a_batch_between_two_hosts(key_folder: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(6).uniform(0, 1, (3, 1, 8, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    with listening(*serve(SMOOTH, key_folder, tmp_path, "--batch", "4")) as (_, address):
        command = ["infer", address, "--suite", "ckks", "--keys", key_folder]
        report = privet(*command, "--input", tmp_path / "x.npy")
    assert report["samples"] == 3
    assert report["plan"]["statistical"] is True
    expected = np.concatenate([plain(SMOOTH, sample[None]) for sample in x])
    np.testing.assert_allclose(report["output"], expected, atol=0.01)


def test_a_key_of_an_encrypted_model_is_never_under_light_noise(
    nn5: Path, key_folder: Path, tmp_path: Path
) -> None:
    words = serve(nn5, key_folder, tmp_path, "--set", "scenario=encrypted-model")
    error = privet(*words, "--flooding", "light", code=2)["error"]
    assert "a client could compute the key" in error["message"]


@pytest.mark.parametrize(
    ("words", "sends"),
    [
        ((), "offline_bytes_client"),
        (("--flooding", "light"), "offline_bytes_client"),
        (("--scenario", "encrypted-model"), "offline_bytes_server"),
        (("--scenario", "collective", "--parties", "4"), "member_bytes"),
    ],
)
def test_plans_of_every_scenario(words: tuple[str, ...], sends: str, nn5: Path) -> None:
    plan = privet("inspect", nn5, "--suite", "ckks", *RANGE, *words)["plan"]
    assert plan["statistical"] is ("light" not in words)
    assert plan[sends] > 10e6
    assert plan["log_qp"] <= plan["log_qp_limit"]


@pytest.mark.parametrize(
    "words",
    [
        ("prepare", "--count", "2"),
        ("infer", "--input", "x.npy", "--scenario", "encrypted-model", "--suite", "gmw"),
    ],
)
def test_what_a_client_of_this_suite_does_not_do(words: tuple[str, ...], key_folder: Path) -> None:
    (key_folder.parent / "x.npy").write_bytes(b"")
    arguments = [str(key_folder.parent / word) if word == "x.npy" else word for word in words]
    command = [arguments[0], "127.0.0.1:1", "--suite", "ckks", "--keys", key_folder, *arguments[1:]]
    assert privet(*command, code=2)["error"]["type"] == "Misuse"
