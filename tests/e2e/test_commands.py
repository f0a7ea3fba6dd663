"""The commands as two hosts would run them: real processes, real sockets, JSON on stdout."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

MODELS = Path(__file__).parents[2] / "zoo" / "models"
DIGITS = MODELS / "digits-cnn.onnx"
SEVEN = MODELS / "digit-7.png"
PRIVET = [sys.executable, "-c", "from privet.cli import main; main()"]


def privet(*words: object, code: int = 0) -> dict[str, Any]:
    """Runs a command with `--json` and returns its object; it must end with `code`."""
    command = [*PRIVET, *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr + done.stdout
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture(scope="module")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "made"
    privet("keys", folder)
    return folder


@pytest.fixture
def server(key_folder: Path, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """`privet server` on a free port: what it prints when it listens."""
    command = [*PRIVET, "server", str(DIGITS), "--keys", str(key_folder), "--listen", "127.0.0.1:0"]
    command += ["--state", str(tmp_path / "server"), "--input-range", "0", "1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


def test_run_prints_what_programs_need() -> None:
    result = privet("run", DIGITS, "--input", SEVEN)
    assert list(result)[:4] == ["model", "suite", "security", "rounds"]
    assert int(np.argmax(result["output"])) == 7
    assert result["argmax_agrees"] is True
    assert result["max_abs_error"] < 0.1
    assert result["max_fixed_point_error"] >= 0
    for phase in ("offline", "online"):
        cost = result[phase]
        assert cost.pop("bytes_dealer") == 0
        assert cost.pop("cpu_seconds") > 0
        assert set(cost) == {"seconds", "bytes_client", "bytes_server", "rounds", "peak_rss_mb"}
        assert min(cost.values()) > 0
    assert result["layers"]


def test_results_without_samples_say_so(tmp_path: Path) -> None:
    """And those with samples, or with a proof, do not."""
    samples = ("--calibration", str(MODELS / "digits-cnn-samples.npy"))
    for options, basis in (((), "random"), (samples, "samples")):
        command = [*PRIVET, "run", str(DIGITS), "--input", str(SEVEN), *options]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        assert ("Not calibrated" in shown.stdout) == (basis == "random")
        assert privet("run", DIGITS, "--input", SEVEN, *options)["calibration"] == basis
        told = privet("compile", DIGITS, tmp_path / basis, *options)
        assert told["calibration"] == basis
        assert told["ranges"]["sound"] is False
    wide = ("--bits", str(told["ranges"]["sound_bits"]), "--sound", *samples)
    proved = privet("compile", DIGITS, tmp_path / "sound", *wide)
    assert proved["calibration"] == "sound"
    assert all(layer["sound"] for layer in proved["ranges"]["layers"])


def test_a_proof_that_fails_names_the_layer(tmp_path: Path) -> None:
    command = [*PRIVET, "compile", str(DIGITS), str(tmp_path / "p"), "--sound"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    assert "layer norm3" in done.stderr
    assert "--bits 44" in " ".join(done.stderr.split())
    assert not (tmp_path / "p").exists()


def test_run_prints_for_people() -> None:
    command = [*PRIVET, "run", str(DIGITS), "--input", str(SEVEN), "--rounds", "log", "--layers"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    for part in (
        "Prediction: 7",
        "agrees",
        "offline",
        "online",
        "peak memory",
        "norm1",
        "log rounds",
    ):
        assert part in shown


def test_two_hosts(server: dict[str, Any], key_folder: Path, tmp_path: Path) -> None:
    address, state = server["address"], tmp_path / "client"
    base: list[str | Path] = ["client", address, "--keys", key_folder, "--state", state]
    stocked = privet(*base, "--prepare", "2", "--program-hash", server["program_hash"])
    assert len(stocked["prepared"]) == stocked["ready"] == 2
    assert "output" not in stocked

    first = privet(*base, "--input", SEVEN)
    assert int(np.argmax(first["output"])) == 7
    assert first["offline"] is None
    assert first["ready"] == 1

    vector = tmp_path / "x.npy"
    np.save(vector, np.load(MODELS / "digits-cnn.npz")["inputs"][0])
    second = privet(*base, "--input", vector)
    third = privet(*base, "--input", vector, "--rounds", "log")
    assert second["ready"] == 0
    assert third["offline"]["seconds"] > 0
    np.testing.assert_allclose(second["output"], third["output"], atol=0.05)
    materials = {result["material"] for result in (first, second, third)}
    assert len(materials) == 3


def test_a_client_that_pins_another_program_stops(
    server: dict[str, Any], key_folder: Path, tmp_path: Path
) -> None:
    words = ["client", server["address"], "--keys", key_folder, "--state", tmp_path / "client"]
    failed = privet(*words, "--input", SEVEN, "--program-hash", "0" * 64, code=4)
    assert failed["error"]["type"] == "PeerMisbehaved"
    assert server["program_hash"] in failed["error"]["message"]


def test_nobody_listens(key_folder: Path, tmp_path: Path) -> None:
    words = ["client", "127.0.0.1:1", "--keys", key_folder, "--state", tmp_path, "--prepare", "1"]
    failed = privet(*words, code=4)
    assert failed["error"]["type"] == "LinkError"
    assert "127.0.0.1:1" in failed["error"]["message"]


def test_wrong_inputs_are_named(tmp_path: Path) -> None:
    vector = tmp_path / "x.npy"
    for array, part in (
        (np.zeros((1, 1, 9, 9)), "shape"),
        (np.full((1, 1, 8, 8), np.nan), "NaN"),
        (np.zeros((1, 1, 8, 8), dtype=complex), "type"),
    ):
        np.save(vector, array)
        failed = privet("run", DIGITS, "--input", vector, code=2)
        assert failed["error"]["type"] == "InputError"
        assert part in failed["error"]["message"]
    np.save(vector, np.array([{}], dtype=object), allow_pickle=True)
    assert privet("run", DIGITS, "--input", vector, code=2)["error"]["type"] == "InputError"
    assert privet("run", DIGITS, "--suite", "magic", code=2)["error"]["type"] == "Misuse"
    assert privet("run", DIGITS, "--rounds", "few", code=2)["error"]["type"] == "Misuse"
    overflow = privet("run", DIGITS, "--bits", "24", code=3)["error"]
    assert overflow["type"] == "OverflowRisk"
    assert overflow["layer"] in overflow["message"]


def test_a_link_slows_a_run_down_and_decides_on_its_rounds() -> None:
    link = {"rtt_ms": 10.0, "bits_per_second": 100_000_000}
    for given, rounds in (((), "blocks"), (("--rounds", "linear"), "linear")):
        words = ["--link", "10ms,100Mbit", *given]
        expected = privet("inspect", DIGITS, *words)
        result = privet("run", DIGITS, "--input", SEVEN, *words)
        for found in (expected, result):
            assert found["rounds"] == rounds
            assert found["link"] == link
        assert int(np.argmax(result["output"])) == 7
        assert result["online"]["seconds"] > 0.95 * expected["online_delay"]
        assert expected["online_delay"] > 0.0049 * result["online"]["rounds"]
    plain = privet("run", DIGITS, "--input", SEVEN)
    assert plain["rounds"] == "linear"
    assert plain["link"] is None
    wrong = privet("run", DIGITS, "--link", "moon", code=2)["error"]
    assert wrong["type"] == "Misuse"
    assert "20ms,100Mbit" in wrong["message"]


def test_a_client_shapes_its_link_and_uses_what_is_ready(
    server: dict[str, Any], key_folder: Path, tmp_path: Path
) -> None:
    base: list[str | Path] = ["client", server["address"], "--keys", key_folder]
    base += ["--state", tmp_path / "client"]
    prepared = privet(*base, "--prepare", "1", "--link", "10ms,100Mbit")
    assert (prepared["rounds"], prepared["ready"]) == ("blocks", 1)
    # Over loopback it would be linear, but a piece for the other depth is ready.
    used = privet(*base, "--input", SEVEN)
    assert (used["rounds"], used["offline"], used["ready"]) == ("blocks", None, 0)
    plain = privet(*base, "--prepare", "1")
    assert (plain["rounds"], plain["link"]) == ("linear", None)


def test_inspect_tells_the_material(tmp_path: Path) -> None:
    found = privet("inspect", DIGITS)
    assert found["supported"] == {"gmw": True, "fss": True, "ckks": False, "stream": True}
    assert found["forecast"]["correlations"]["triples"] > 0
    assert [node["operator"] for node in found["nodes"]].count("Conv") == 4
    result = privet("run", DIGITS, "--input", SEVEN)
    for phase in ("offline", "online"):
        for party in ("client", "server"):
            assert result[phase][f"bytes_{party}"] == found["forecast"][f"{phase}_bytes_{party}"]


def test_inspect_lists_every_problem_at_once(tmp_path: Path) -> None:
    privet("zoo", "build", "bert-tiny", "-o", tmp_path)
    found = privet("inspect", tmp_path / "bert-tiny.onnx", code=3)
    assert found["supported"] == dict.fromkeys(("gmw", "fss", "ckks", "stream"), False)
    operators = {problem["operator"] for problem in found["problems"]}
    assert operators >= {"MatMul", "LayerNormalization"}
    assert all(
        problem["node"] and problem["why"] and problem["instead"] for problem in found["problems"]
    )


def test_the_zoo_is_listed_and_built(tmp_path: Path) -> None:
    listed = subprocess.run(
        [*PRIVET, "zoo", "list"], capture_output=True, text=True, check=True
    ).stdout
    assert "squeezenet" in listed
    built = privet("zoo", "build", "mnist-1", "-o", tmp_path)
    assert Path(built["path"]).stat().st_size == built["bytes"]
